"""The content of file footers: the columns, and for each row group the number and the times of its events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq

from cerflow.errors import InputError
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
