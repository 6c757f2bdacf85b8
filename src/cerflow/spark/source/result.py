"""The schema of the matches in types of Spark: a type that Spark lacks becomes a wider one, or is refused."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructType

from cerflow.base.errors import InputError

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.time32("s"): pa.time64("ns"),
    pa.time32("ms"): pa.time64("ns"),
}


def refuse_foreign(columns: pa.Schema, needed: Iterable[str]) -> None:
    """Raise `InputError` for a column that is needed and that has a type that Spark does not have."""
    for name in needed:
        data_type = columns.field(name).type
        try:
            from_arrow_type(_held(data_type), prefer_timestamp_ntz=True)
        except PySparkException as error:
            raise InputError(f"the column '{name}' has type {data_type}, which Spark does not have") from error


def declared(schema: pa.Schema) -> tuple[StructType, pa.Schema]:
    """The schema of a result for Spark, and the Arrow schema that batches must then have.

    Spark counts microseconds: what is finer is lost in its timestamps (the query sees it).
    """
    struct = from_arrow_schema(pa.schema([(f.name, _held(f.type)) for f in schema]), prefer_timestamp_ntz=True)
    # Spark 4.0 knows times in UTC only.
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return struct, to_arrow_schema(struct, **zone)


def _held(data_type: pa.DataType) -> pa.DataType:
    """The type in which Spark can hold values of a type."""
    if pa.types.is_dictionary(data_type):
        return _held(data_type.value_type)
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, _held(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(_held(data_type.key_type), _held(data_type.item_type))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.list_(_held(data_type.value_type))
    return _WIDER.get(data_type, data_type)
