"""Schemas of DataFrames as Arrow schemas and back."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType

from cerflow.errors import InputError

__all__ = ["arrow_schema", "refuse_untransferable", "spark_schema"]

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
            fields.append(pa.field(field.name, to_arrow_type(field.dataType, timezone=zone)))
        except PySparkException:
            fields.append(pa.field(field.name, pa.null(), metadata=_UNKNOWN))
    return pa.schema(fields)


def refuse_untransferable(frame: DataFrame, schema: pa.Schema, needed: Iterable[str]) -> None:
    """Raise `InputError` if a column that is needed cannot be handed to tasks."""
    for name in needed:
        if schema.field(name).metadata == _UNKNOWN:
            found = frame.schema[name].dataType.simpleString()
            raise InputError(f"the column '{name}' has type {found}, which cannot be passed on; leave it out")


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of a result; timestamps without a zone stay without one."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
