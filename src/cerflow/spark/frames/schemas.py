"""Schemas of DataFrames as Arrow schemas and back."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType

from cerflow.errors import InputError
from cerflow.spark.worker import require_cerflow, run_own_python
from cerflow.stream_inputs import schema_of
from cerflow.values.complex_events import UNNAMED

__all__ = ["arrow_schema", "refuse_untransferable", "spark_schema", "with_types"]

#: Marks columns of types that Arrow does not have.
_UNKNOWN = {b"cerflow": b"no Arrow type"}


def arrow_schema(frame: DataFrame) -> pa.Schema:
    """The Arrow schema in which tasks get the rows of a DataFrame.

    Timestamps (with local time zone) carry the time zone of the session. Columns of types that Arrow does not have
    are there as nulls; see `refuse_untransferable`.
    """
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    fields = []
    for field in frame.schema.fields:
        try:
            fields.append(pa.field(field.name, _arrow_type(field.dataType, zone)))
        except PySparkException:
            fields.append(pa.field(field.name, pa.null(), metadata=_UNKNOWN))
    return pa.schema(fields)


def with_types(df: DataFrame, type: str | None, constant_type: str | None = None) -> tuple[DataFrame, str]:
    """The DataFrame with a column of types as text, and its name; see `cerflow.Schema`. All work on it begins here."""
    if not isinstance(df, DataFrame):
        return df, type or "type"
    run_own_python(df.sparkSession)
    require_cerflow(df.sparkSession)
    known = schema_of(arrow_schema(df), type=type, constant_type=constant_type)
    if known.type in df.columns:
        return df, known.type
    only = F.lit(UNNAMED if constant_type is None else constant_type)
    types = only if known.typed_by is None else df[f"`{known.typed_by.replace('`', '``')}`"].cast("string")
    return df.withColumn(known.type, types), known.type


def _arrow_type(data_type: DataType, zone: str | None) -> pa.DataType:
    if "timezone" in signature(to_arrow_type).parameters:
        return to_arrow_type(data_type, timezone=zone)
    # PySpark before 4.3 says UTC instead.
    return _in_zone(to_arrow_type(data_type), zone)


def _in_zone(found: pa.DataType, zone: str | None) -> pa.DataType:
    """A type whose timestamps have another zone, if they have one."""
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
