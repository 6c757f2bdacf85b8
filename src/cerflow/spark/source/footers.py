"""The content of the footers of files: the columns, and of each row group how many events it has from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cerflow.errors import InputError
from cerflow.slices.by_row_groups import Key, RowGroup
from cerflow.slices.keys import extremes_of
from cerflow.spark.source.files import DataFile, each, metadata_of


def columns_of(files: Sequence[DataFile]) -> tuple[pa.Schema, bool]:
    """The columns of all files, in the types in which they are read, and whether all files have the same.

    Those that a file lacks are null there. Raises `InputError` if the files do not go together.
    """
    footers = each(metadata_of, files)
    schemas = dict.fromkeys(_readable(footer) for footer in footers)
    try:
        whole = pa.unify_schemas(list(schemas), promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the files do not have the same columns: {error}") from error
    constants: dict[str, list[str]] = {}
    for name, value in (pair for file in files for pair in file.constants):
        constants.setdefault(name, []).extend([] if value is None else [value])
    for name, values in constants.items():
        if name not in whole.names:
            whole = whole.append(pa.field(name, _type_of(values)))
    return whole, len(schemas) == 1


def _readable(footer: pq.FileMetaData) -> pa.Schema:
    schema = footer.schema.to_arrow_schema()
    instants = {
        footer.schema.column(k).path
        for k in range(len(footer.schema.names))
        if footer.schema.column(k).physical_type == "INT96"
    }
    fields = []
    for field in schema:
        data_type = field.type
        if pa.types.is_dictionary(data_type):
            data_type = data_type.value_type
        if pa.types.is_string_view(data_type) or pa.types.is_large_string(data_type):
            data_type = pa.string()
        if field.name in instants:
            # The old timestamps of Spark and Hive are points in time.
            data_type = pa.timestamp("us", "UTC")
        fields.append(pa.field(field.name, data_type))
    return pa.schema(fields)


def _type_of(values: Sequence[str]) -> pa.DataType:
    """The type of a column whose values are names of directories."""
    for convert, data_type in ((int, pa.int64()), (date.fromisoformat, pa.date32())):
        try:
            for value in values:
                convert(value)
        except ValueError:
            continue
        return data_type
    return pa.string()


def groups_of(
    files: Sequence[DataFile], columns: pa.Schema, *, leading: str | None, type: str | None, time: str | None
) -> list[RowGroup]:
    """All row groups with events, in the order of the input; ``leading`` is the column of the keys.

    Without one the keys are the numbers of the rows in the whole input.
    """
    found: list[RowGroup] = []
    rows = 0
    for number, footer in enumerate(each(metadata_of, files)):
        places = {footer.schema.column(k).path: k for k in range(len(footer.schema.names))}
        first = 0
        for index in range(footer.num_row_groups):
            group = footer.row_group(index)
            size = group.num_rows
            if not size or not lies_in(group, files[number].part):
                first += size
                continue
            statistics = {
                name: group.column(places[name]).statistics for name in (type, leading, time) if name in places
            }
            bounds: tuple[Key, Key] | None = (rows, rows + size - 1)
            if leading is not None:
                bounds = extremes_of(statistics.get(leading), columns.field(leading).type)
            least, greatest = bounds or (None, None)
            usable = _usable(size, [(statistics.get(n), columns.field(n).type) for n in (type, time) if n is not None])
            found.append(RowGroup(number, index, first, size, least, greatest, usable))
            first += size
            rows += size
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


def _usable(rows: int, roles: Sequence[tuple[Any, pa.DataType]]) -> int | None:
    """The number of events that lack neither of the columns that play a role, if statistics tell."""
    missing = []
    for statistics, data_type in roles:
        # Statistics do not count NaN.
        if statistics is None or not statistics.has_null_count or pa.types.is_floating(data_type):
            return None
        missing.append(int(statistics.null_count))
    # Two columns may lack values in the same rows.
    return rows - sum(missing) if sum(number > 0 for number in missing) <= 1 else None
