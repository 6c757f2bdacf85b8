"""NOT FOLLOWED BY in streams: the watermark is the clock that shows each key, in each bucket, when deadlines pass."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pyarrow as pa

from cerflow.automata.compile.deadlines import waits_for_time
from cerflow.errors import UnsupportedQueryError
from cerflow.programs.program import Program
from cerflow.query import Query
from cerflow.schema import Kind, Schema
from cerflow.values.units import DAY

__all__ = ["check_deadlines", "clock_value", "instant_of"]


def check_deadlines(query: Query | Program) -> bool:
    """Whether a query waits for deadlines that pass with time.

    Raises `UnsupportedQueryError` if a definition does.
    """
    if isinstance(query, Program):
        for definition in query.tree.definitions:
            if waits_for_time(definition.select.formula):
                raise UnsupportedQueryError(
                    f"in a stream, the definition '{definition.name}' cannot wait for deadlines: "
                    "what it defines has no place among the events",
                    span=definition.span,
                    hint="Let the last query wait for deadlines.",
                )
    select = query.tree if isinstance(query, Query) else query.tree.query
    return waits_for_time(select.formula)


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
