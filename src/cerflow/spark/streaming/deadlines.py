"""NOT FOLLOWED BY in streams: the watermark is the clock that shows each key, in each bucket, when deadlines pass."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pyarrow as pa

from cerflow.automata.compile.deadlines import waits_for_time
from cerflow.programs.program import Program
from cerflow.query import Query
from cerflow.schema import Kind, Schema
from cerflow.values.units import DAY

__all__ = ["clock_value", "instant_of", "needs_clock"]


def needs_clock(query: Query | Program) -> bool:
    """Whether a query, or a statement of a program, waits for deadlines that pass with time."""
    return waits_for_time(query.tree)


def clock_value(schema: Schema, watermark: int) -> int | float | datetime:
    """The least value of the time column that an event at the watermark (microseconds) or behind it may have."""
    assert schema.time is not None
    data_type = schema.columns.field(schema.time).type
    match schema.kind(schema.time):
        case Kind.INTEGER:
            return math.ceil(watermark / schema.microseconds)
        case Kind.FLOAT:
            return math.nextafter(float(watermark / schema.microseconds), -math.inf)
    if pa.types.is_date(data_type):
        watermark = -(-watermark // DAY) * DAY
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=watermark)
    if pa.types.is_date(data_type) or data_type.tz is None:
        return moment.replace(tzinfo=None)
    return moment


def instant_of(schema: Schema, time: pa.Scalar) -> int:
    """A value of the time column in whole microseconds, rounded down."""
    assert schema.time is not None
    if schema.kind(schema.time) in (Kind.INTEGER, Kind.FLOAT):
        return math.floor(Fraction(time.as_py()) * schema.microseconds)
    microseconds: int = time.cast(pa.timestamp("us"), safe=False).value
    return microseconds
