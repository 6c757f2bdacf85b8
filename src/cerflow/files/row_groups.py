"""Parquet whose events are in order, row group by row group; small ones are read together, as large pushes pay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cerflow.api.stream_inputs import Input
from cerflow.base import limits
from cerflow.base.arrow_columns import array_of_numbers, pushed_together
from cerflow.base.errors import InputError
from cerflow.base.units import DAY, UNIT_NAMES
from cerflow.engine.layout import NULL
from cerflow.engine.slices.cutting import RowGroup, keys_of, values_of
from cerflow.files.blocks import reading
from cerflow.files.column_types import Look
from cerflow.files.input_plans import ColumnRoles, FileSurvey, InputPlan, SplitRows, needs_look
from cerflow.files.raw_rows import Block
from cerflow.files.sources import InputFormat, Source, partition_values


def short_texts(footers: Sequence[pq.FileMetaData], names: Sequence[str]) -> frozenset[str]:
    """The text columns that dictionaries make smaller, because their values repeat."""
    size = dict.fromkeys(names, 0)
    values = dict.fromkeys(names, 0)
    for footer in footers:
        for k in range(len(footer.schema.names)):
            name = footer.schema.column(k).path
            if name in size:
                for index in range(footer.num_row_groups):
                    chunk = footer.row_group(index).column(k)
                    size[name] += chunk.total_uncompressed_size
                    values[name] += chunk.num_values
    return frozenset(name for name in names if size[name] < limits.DICTIONARY_BYTES * values[name])


def groups_of(
    footers: Sequence[pq.FileMetaData],
    columns: pa.Schema,
    *,
    leading: str | None,
    type: str | None,
    time: str | None,
    parts: Sequence[tuple[int, int] | None],
) -> list[RowGroup]:
    """All row groups with events, in the order of the input; ``leading`` is the column of the keys.

    Without one the keys are the numbers of the rows in the whole input. Of files only ``parts`` count: see `lies_in`.
    """
    found: list[RowGroup] = []
    rows = 0
    for number, footer in enumerate(footers):
        places = {footer.schema.column(k).path: k for k in range(len(footer.schema.names))}
        first = 0
        for index in range(footer.num_row_groups):
            group = footer.row_group(index)
            size = group.num_rows
            if size and lies_in(group, parts[number]):
                statistics = {
                    name: group.column(places[name]).statistics for name in (type, leading, time) if name in places
                }
                bounds: tuple[int, int] | None = (rows, rows + size - 1)
                if leading is not None:
                    bounds = extremes_of(statistics.get(leading), columns.field(leading).type)
                least, greatest = bounds or (None, None)
                roles = [(statistics.get(name), columns.field(name).type) for name in (type, time) if name is not None]
                found.append(RowGroup(number, index, first, size, least, greatest, _valid(size, roles)))
                rows += size
            first += size
    return found


def lies_in(group: pq.RowGroupMetaData, part: tuple[int, int] | None) -> bool:
    """Whether Spark reads a row group with a part of its file: its middle lies in this range of bytes."""
    if part is None:
        return True
    columns = [group.column(k) for k in range(group.num_columns)]
    begin = columns[0].data_page_offset
    dictionary = columns[0].dictionary_page_offset
    begin = begin if dictionary is None else min(begin, dictionary)
    middle = begin + sum(column.total_compressed_size for column in columns) // 2
    return bool(part[0] <= middle < part[1])


def _valid(rows: int, roles: Sequence[tuple[Any, pa.DataType]]) -> int | None:
    """The number of events that lack neither of the columns that play a role, if statistics tell."""
    missing = []
    for statistics, data_type in roles:
        # Statistics do not count NaN.
        if statistics is None or not statistics.has_null_count or pa.types.is_floating(data_type):
            return None
        missing.append(int(statistics.null_count))
    # Two columns may lack values in the same rows.
    return rows - sum(missing) if sum(number > 0 for number in missing) <= 1 else None


def is_orderly(data_type: pa.DataType) -> bool:
    """Whether the values of a type can be ordered as numbers here, as statistics order them."""
    whole = pa.types.is_integer(data_type) and data_type != pa.uint64()
    real = pa.types.is_float32(data_type) or pa.types.is_float64(data_type)
    return bool(whole or real or pa.types.is_timestamp(data_type) or pa.types.is_date32(data_type))


def extremes_of(statistics: Any, data_type: pa.DataType) -> tuple[int, int] | None:
    """The least and greatest key that the statistics of a column chunk allow; None if they say nothing of it.

    ``data_type`` is the type in which the column is read.
    """
    if statistics is None or not statistics.has_min_max:
        return None
    raw = (statistics.min_raw, statistics.max_raw)
    if not all(isinstance(value, float if pa.types.is_floating(data_type) else int) for value in raw):
        return None
    if pa.types.is_date32(data_type):
        low, high = (days * (DAY // 1000) for days in raw)
    elif pa.types.is_unsigned_integer(data_type):
        low, high = (number + (1 << 32) if number < 0 else number for number in raw)
    else:
        values = array_of_numbers(np.array(raw))
        if pa.types.is_timestamp(data_type):
            text = statistics.logical_type.to_json()
            stored = next((unit for unit, name in UNIT_NAMES.items() if f'"{name}"' in text), None)
            if stored is None:
                return None
            # Arrow reads seconds, say, that are stored as milliseconds.
            values = values.cast(pa.timestamp(stored)).cast(pa.timestamp(data_type.unit), safe=False)
        low, high = keys_of(values).tolist()
    return (low, high) if NULL < low <= high else None


@dataclass(frozen=True)
class OrderedGroups:
    """The row groups of an input of Parquet files with the same columns, in which every event has a type and a time.

    No group has an event before the last one of the group before it. ``schema`` has the columns of the events, which
    are read as ``encoded``: short text as dictionaries. ``rows`` is their number.
    """

    files: tuple[pq.ParquetFile, ...]
    plan: InputPlan
    schema: pa.Schema
    encoded: pa.Schema
    rows: int
    groups: tuple[RowGroup, ...]

    @classmethod
    def of(cls, one: Input[Source], columns: ColumnRoles) -> OrderedGroups | None:
        """The row groups of an input; None if it has to be read as a whole. Raises InputError if it cannot be read."""
        source = one.events
        if source.format is not InputFormat.PARQUET or not source.files or columns.sequence is not None:
            return None
        if source.column_types or any(partition_values(source, file) for file in source.files):
            return None
        footers = []
        for file in source.files:
            with reading(file, source.format):
                footers.append(pq.read_metadata(file))
        schema = footers[0].schema.to_arrow_schema()
        rows = sum(footer.num_rows for footer in footers)
        if not rows or any(footer.schema.to_arrow_schema() != schema for footer in footers[1:]):
            return None
        if any(needs_look(one, columns, field) or pa.types.is_null(field.type) for field in schema):
            return None
        survey = FileSurvey(str(source.files[0]), dict.fromkeys(schema.names, Look()), rows, schema=schema)
        plan = InputPlan.of(one, columns, [survey], False)
        given = {name: column for column, name in plan.names.items()}
        time = None if columns.time is None else given.get(columns.time)
        if columns.time is not None and (time is None or not is_orderly(schema.field(time).type)):
            return None
        nowhere = [None] * len(footers)
        groups = groups_of(footers, schema, leading=time, type=given.get(columns.type), time=time, parts=nowhere)
        if any(group.valid != group.rows for group in groups):
            return None
        ends = [key for group in groups for key in (group.least, group.greatest) if key is not None]
        if len(ends) < 2 * len(groups) or ends != sorted(ends):
            return None
        short = short_texts(footers, [field.name for field in schema if pa.types.is_string(field.type)])
        files = tuple(
            pq.ParquetFile(file, metadata=footer, read_dictionary=sorted(short), pre_buffer=False)
            for file, footer in zip(source.files, footers)
        )
        encoded = plan.columns_of(files[0].schema_arrow)
        return cls(files, plan, plan.columns_of(schema), encoded, rows, tuple(groups))

    def sample(self, wanted: Collection[str]) -> pa.Table:
        """A small table with the extreme times of all events, and their types, or at least those that are wanted."""
        columns, found = self.plan.columns, {}
        if columns.type in self.schema.names:
            types = pa.nulls(0, pa.string())
            for part in self._parts([columns.type]):
                more = part.table.column(columns.type).unique().cast(pa.string())
                types = pa.concat_arrays([types, more]).unique()
                if set(wanted) <= set(types.to_pylist()):
                    break
            found[columns.type] = types
        if columns.time is not None:
            ends = np.array([self.groups[0].least, self.groups[-1].greatest])
            found[columns.time] = values_of(ends, self.schema.field(columns.time).type)
        most = max(map(len, found.values()), default=0)
        return pa.table({name: v.take(array_of_numbers(np.arange(most) % len(v))) for name, v in found.items()})

    def parts(self, names: Collection[str]) -> Iterator[SplitRows]:
        """These columns of the events, group by group, in the order of time; the next group is read in the meantime.

        Raises InputError for a file that cannot be read, or is not what its statistics say.
        """
        found = self._parts(names)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(next, found, None)
            while (part := waiting.result()) is not None:
                waiting = pool.submit(next, found, None)
                yield part

    def _parts(self, names: Collection[str]) -> Iterator[SplitRows]:
        given = [column for column, name in self.plan.names.items() if name in names]
        time = self.plan.columns.time
        first = 0

        def size(group: RowGroup) -> tuple[int, int]:
            return group.rows, self.files[group.file].metadata.row_group(group.index).total_byte_size

        by_file = groupby(self.groups, lambda group: group.file)
        for file, groups in ((file, groups) for file, some in by_file for groups in pushed_together(some, size)):
            numbers, path = [group.index for group in groups], self.plan.one.events.files[file]
            with reading(path, InputFormat.PARQUET):
                table = self.files[file].read_row_groups(numbers, columns=given)
            part = self.plan.part(Block(table, np.arange(len(table))), first, None)
            first += len(table)
            if time in names:
                keys = keys_of(part.table.column(time))
                starts = np.cumsum([0, *(group.rows for group in groups[:-1])])
                ends = zip(np.minimum.reduceat(keys, starts), np.maximum.reduceat(keys, starts))
                for group, (least, greatest) in zip(groups, ends):
                    if not group.least <= least <= greatest <= group.greatest:
                        raise InputError(
                            f"the statistics of '{time}' in row group {group.index} of {path} are wrong; "
                            "write the file again"
                        )
                if not (keys[1:] >= keys[:-1]).all():
                    order = np.argsort(keys, kind="stable")
                    part = SplitRows(part.table.take(array_of_numbers(order)), part.rows[order], part.refused)
            yield part
