"""Schemas of DataFrames as Arrow schemas and back; a type that Spark lacks becomes a wider one, or is refused."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

from cerflow.base.errors import InputError
from cerflow.base.nested import is_nested, parts_of

#: Marks columns of types that Arrow does not have.
_UNKNOWN = {b"cerflow": b"no Arrow type"}
#: The types in which Spark can hold values of types that it lacks.
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


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The Arrow schema in which tasks get the rows of a DataFrame.

    Timestamps (with local time zone) carry the time zone of the session. Columns of types that Arrow does not have
    are there as nulls; see `refuse_untransferable`.
    """
    return arrow_schema_of(frame.schema, frame.sparkSession)


def arrow_schema_of(schema: StructType, spark: SparkSession) -> pa.Schema:
    """The same for a schema of Spark."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    zoned: dict[str, Any] = {"timezone": zone} if "timezone" in signature(to_arrow_type).parameters else {}
    fields = []
    for field in schema.fields:
        try:
            # PySpark before 4.3 says UTC instead.
            fields.append(pa.field(field.name, _in_zone(to_arrow_type(field.dataType, **zoned), zone)))
        except PySparkException:
            fields.append(pa.field(field.name, pa.null(), metadata=_UNKNOWN))
    return pa.schema(fields)


def column_of(df: DataFrame, name: str) -> Column:
    """A column of a DataFrame, or the field that a nested attribute names."""
    root, *fields = parts_of(name) if is_nested(name) and name not in df.columns else [name]
    return reduce(Column.getField, fields, df[in_backticks(root)])


def in_backticks(name: str) -> str:
    """The name of a column as Spark reads it, whatever it has."""
    return f"`{name.replace('`', '``')}`"


def columns_as_text(schema: StructType) -> str:
    """The names and types of columns as Spark reads them back, whatever ``TIMESTAMP`` means in the session.

    `StructType.toDDL` calls times with a zone by that name, which may mean those without.
    """
    return ", ".join(f"{in_backticks(field.name)} {_type_as_text(field.dataType)}" for field in schema.fields)


def _type_as_text(found: DataType) -> str:
    match found:
        case TimestampType():
            return "TIMESTAMP_LTZ"
        case StructType(fields=fields):
            parts = (f"{in_backticks(part.name)}: {_type_as_text(part.dataType)}" for part in fields)
            return f"STRUCT<{', '.join(parts)}>"
        case ArrayType(elementType=element):
            return f"ARRAY<{_type_as_text(element)}>"
        case MapType(keyType=key, valueType=value):
            return f"MAP<{_type_as_text(key)}, {_type_as_text(value)}>"
    return found.simpleString()


def _in_zone(found: pa.DataType, zone: str | None) -> pa.DataType:
    if pa.types.is_timestamp(found) and found.tz is not None:
        return pa.timestamp(found.unit, zone)
    if pa.types.is_struct(found):
        return pa.struct([field.with_type(_in_zone(field.type, zone)) for field in found])
    if pa.types.is_list(found):
        return pa.list_(found.value_field.with_type(_in_zone(found.value_type, zone)))
    if pa.types.is_map(found):
        key, item = (field.with_type(_in_zone(field.type, zone)) for field in (found.key_field, found.item_field))
        return pa.map_(key, item)
    return found


def refuse_untransferable(frame: DataFrame, schema: pa.Schema, needed: Iterable[str]) -> None:
    """Raise `InputError` if a column that is needed cannot be handed to tasks."""
    for name in needed:
        if schema.field(name).metadata == _UNKNOWN:
            found = frame.schema[name].dataType.simpleString()
            raise InputError(f"the column '{name}' has type {found}, which cannot be passed on; leave it out")


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of a result; timestamps without a zone stay without one."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def refuse_foreign(columns: pa.Schema, needed: Iterable[str]) -> None:
    """Raise `InputError` for a column that is needed and that has a type that Spark does not have."""
    for name in needed:
        data_type = columns.field(name).type
        try:
            # Decimals of too many digits become a type of Spark, but not one of Arrow again.
            declared(pa.schema([columns.field(name)]))
        except (PySparkException, ValueError) as error:
            raise InputError(
                f"the column '{name}' has type {data_type}, which Spark does not have; leave it out: "
                "list the attributes that are wanted in SELECT, as in SELECT x[price]"
            ) from error


def declared(schema: pa.Schema) -> tuple[StructType, pa.Schema]:
    """The schema of a result for Spark, and the Arrow schema that batches must then have.

    Spark counts microseconds: what is finer is lost in its timestamps (the query sees it).
    """
    struct = spark_schema(pa.schema([(f.name, _held(f.type)) for f in schema]))
    # Spark 4.0 knows times in UTC only.
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return struct, to_arrow_schema(struct, **zone)


def _held(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(data_type):
        return _held(data_type.value_type)
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, _held(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(_held(data_type.key_type), _held(data_type.item_type))
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type) or pa.types.is_fixed_size_list(data_type):
        return pa.list_(_held(data_type.value_type))
    return _WIDER.get(data_type, data_type)
