"""The primary order of a stream, by time or by position in the DataFrame, as 64-bit integers and as Spark expressions.

The integers, called keys, are those by which the engine measures windows, so cuts and windows are exact.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, DateType, DoubleType, LongType, TimestampNTZType, TimestampType

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers, numbers_of, one_array
from cerflow.base.schema import Schema, ValueKind
from cerflow.base.units import DAY
from cerflow.engine.evaluate.measures import bounds, floats_of, measures
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.slices.by_keys import Bounds
from cerflow.language.formula import DurationWindow, Window

#: An identifier of a row has the number of its partition in the upper bits, that of the row there in the lower ones.
ROW_BITS = 33
#: Any window of time: events are measured by their time alone.
_TIME = DurationWindow(1)


def exact(schema: Schema) -> bool:
    """Whether Spark compares the times of a schema as the engine does."""
    data_type = None if schema.time is None else schema.columns.field(schema.time).type
    return data_type is None or not (pa.types.is_timestamp(data_type) and data_type.unit == "ns")


def rows_of_column(name: str, column: pa.Array | pa.ChunkedArray, schema: Schema) -> BatchRows:
    """One column of some events, for measures."""
    array = one_array(column)
    batch = pa.RecordBatch.from_arrays([array], names=[name])
    return BatchRows(batch, schema, np.arange(len(array)), finest_unit(schema))


def bounds_of(window: Window, name: str, schema: Schema) -> Bounds:
    """The bounds of a window on a column for measures, by the engine's own arithmetic."""
    kind = schema.kind(name)
    timed = pa.timestamp(finest_unit(schema))
    plain = {ValueKind.INTEGER: pa.int64(), ValueKind.FLOAT: pa.float64()}.get(kind, timed)

    def bound(found: Ints) -> Ints:
        column = array_of_numbers(floats_of(found) if kind is ValueKind.FLOAT else found).cast(plain)
        return bounds(window, rows_of_column(name, column, schema), schema)

    return bound


class Axis:
    """The keys of a stream: those of its times, or, without a time, the identifiers of its rows."""

    def __init__(self, schema: Schema) -> None:
        self.time = schema.time
        #: The type of the values that keys are compared by in Spark.
        self.data_type: DataType = LongType()
        if schema.time is None:
            return
        found = schema.columns.field(schema.time).type
        kind = schema.kind(schema.time)
        if kind is ValueKind.FLOAT:
            self.data_type = DoubleType()
        elif pa.types.is_date(found):
            self.data_type = DateType()
        elif kind is ValueKind.TIMESTAMP:
            self.data_type = TimestampNTZType() if found.tz is None else TimestampType()
        columns = pa.schema([("type", pa.string()), ("time", found)])
        self._given = Schema(columns, "type", "time", time_unit=schema.time_unit)

    def keys(self, column: pa.Array | pa.ChunkedArray) -> Ints:
        """The keys of some times (or identifiers), null (the least integer) where there is no time."""
        if self.time is None:
            identifiers: Ints = numbers_of(one_array(column))
            return identifiers
        return measures(_TIME, rows_of_column("time", column, self._given), self._given)

    def bounds(self, window: DurationWindow) -> Bounds:
        """For keys the greatest ones outside of a window of time that ends there."""
        return bounds_of(window, "time", self._given)

    def compared(self, column: Column) -> Column:
        """The values of a column as they are compared with a `literal`."""
        return column.cast(self.data_type) if self.data_type in (LongType(), DoubleType()) else column

    def literal(self, key: int) -> int | float | str:
        """The least value with at least a key, which is none of the ends. Cast it to ``data_type``."""
        match self.data_type:
            case LongType():
                return key
            case DoubleType():
                return float(floats_of(np.array([key]))[0])
            case DateType():
                return str(np.datetime64(-(-key // DAY), "D"))
        zone = "Z" if self.data_type == TimestampType() else ""
        return f"{np.datetime64(key, 'us')}{zone}"

    def at_least(self, column: Column, key: int) -> Column:
        """Whether a value of a column has at least a key, which is none of the ends."""
        return self.compared(column) >= F.lit(self.literal(key)).cast(self.data_type)
