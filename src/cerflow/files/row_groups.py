"""Parquet whose events are in order, row group by row group: no more than one of them is in memory at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cerflow import limits
from cerflow.errors import InputError
from cerflow.files.blocks import reading
from cerflow.files.column_types import Look
from cerflow.files.input_plans import ColumnRoles, FileSurvey, InputPlan, SplitRows, needs_look
from cerflow.files.raw_rows import Block
from cerflow.files.sources import InputFormat, Source, partition_values
from cerflow.slices.keys import extremes_of, is_orderly, keys_of
from cerflow.slices.pieces import Keys
from cerflow.stream_inputs import Input
from cerflow.values.arrow_columns import array_of_numbers, one_array


def short_texts(footers: Sequence[pq.FileMetaData], names: Sequence[str]) -> frozenset[str]:
    """The columns of text whose values repeat so often that they take less room as dictionaries."""
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


@dataclass(frozen=True)
class OrderedGroups:
    """The row groups of an input of Parquet files with the same columns, in which every event has a type and a time.

    No group has an event before the last one of the group before it. ``schema`` has the columns of the events, which
    are read as ``encoded``: short text as dictionaries. ``rows`` is their number, and ``bounds`` are the least and the
    greatest key of each group.
    """

    files: tuple[pq.ParquetFile, ...]
    plan: InputPlan
    schema: pa.Schema
    encoded: pa.Schema
    rows: int
    bounds: tuple[tuple[Any, Any], ...]

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
        survey = FileSurvey(str(source.files[0]), dict.fromkeys(schema.names, Look()), rows, 0)
        plan = InputPlan.of(one, columns, [survey], False)
        bounds = _bounds(footers, schema, plan)
        if bounds is None or any(b[0] < a[1] for a, b in pairwise(bounds)):
            return None
        short = short_texts(footers, [field.name for field in schema if pa.types.is_string(field.type)])
        files = tuple(
            pq.ParquetFile(file, metadata=footer, read_dictionary=sorted(short), pre_buffer=False)
            for file, footer in zip(source.files, footers)
        )
        nothing = (pa.Table.from_batches([], some) for some in (schema, files[0].schema_arrow))
        plain, encoded = (plan.part(Block(some, np.array([], np.int64)), 0, None).table.schema for some in nothing)
        return cls(files, plan, plain, encoded, rows, tuple(bounds))

    def sample(self, wanted: Collection[str]) -> pa.Table:
        """A small table with the extreme times of all events, and their types, or at least those that are wanted."""
        columns, found = self.plan.columns, {}
        if columns.type in self.schema.names:
            types = pa.nulls(0, pa.string())
            for part in self._parts([columns.type], ordered=False):
                more = part.table.column(columns.type).unique().cast(pa.string())
                types = pa.concat_arrays([types, more]).unique()
                if set(wanted) <= set(types.to_pylist()):
                    break
            found[columns.type] = types
        if columns.time is not None:
            ends = array_of_numbers(np.array([self.bounds[0][0], self.bounds[-1][1]]))
            kind = self.schema.field(columns.time).type
            found[columns.time] = (ends.cast(pa.timestamp("ms")) if pa.types.is_date(kind) else ends).cast(kind)
        most = max(map(len, found.values()), default=0)
        return pa.table({name: v.take(array_of_numbers(np.arange(most) % len(v))) for name, v in found.items()})

    def parts(self, names: Collection[str]) -> Iterator[SplitRows]:
        """These columns of the events, group by group, in the order of time; the next group is read meanwhile.

        Raises InputError for a file that cannot be read, or is not what its statistics say.
        """
        found = self._parts(names, ordered=True)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(next, found, None)
            while (part := waiting.result()) is not None:
                waiting = pool.submit(next, found, None)
                yield part

    def _parts(self, names: Collection[str], *, ordered: bool) -> Iterator[SplitRows]:
        given = [column for column, name in self.plan.names.items() if name in names]
        time = self.plan.columns.time
        bounds, first = iter(self.bounds), 0
        for path, file in zip(self.plan.one.events.files, self.files):
            for index in range(file.num_row_groups):
                if not file.metadata.row_group(index).num_rows:
                    continue
                with reading(path, InputFormat.PARQUET):
                    table = file.read_row_group(index, columns=given)
                part = self.plan.part(Block(table, np.arange(len(table))), first, None)
                first += len(table)
                least, greatest = next(bounds)
                if ordered and time is not None:
                    keys = keys_of(one_array(part.table.column(time)))
                    if keys.min() < least or keys.max() > greatest:
                        raise InputError(
                            f"the statistics of '{time}' in row group {index} of {path} are wrong; write the file again"
                        )
                    part = _sorted(part, keys)
                yield part


def _sorted(part: SplitRows, keys: Keys) -> SplitRows:
    if (keys[1:] >= keys[:-1]).all():
        return part
    order = np.argsort(keys, kind="stable")
    return SplitRows(part.table.take(array_of_numbers(order)), part.rows[order], part.refused)


def _bounds(footers: Sequence[pq.FileMetaData], schema: pa.Schema, plan: InputPlan) -> list[tuple[Any, Any]] | None:
    """The least and the greatest time of every row group, or anything without a time; None if not all are known."""
    given: Mapping[str, str] = {name: column for column, name in plan.names.items()}
    time = plan.columns.time
    if time is not None and time not in given:
        return None
    kind = pa.null() if time is None else schema.field(given[time]).type
    if time is not None and (not is_orderly(kind) or pa.types.is_floating(kind)):
        return None
    found = []
    for footer in footers:
        places = {footer.schema.column(k).path: k for k in range(len(footer.schema.names))}
        for index in range(footer.num_row_groups):
            group = footer.row_group(index)
            if not group.num_rows:
                continue
            ends: tuple[Any, Any] | None = (0, 0)
            for name in plan.columns.required:
                statistics = group.column(places[given[name]]).statistics if name in given else None
                if name in given and (statistics is None or not statistics.has_null_count or statistics.null_count):
                    return None
                if name == time:
                    ends = extremes_of(statistics, kind)
            if ends is None:
                return None
            found.append(ends)
    return found
