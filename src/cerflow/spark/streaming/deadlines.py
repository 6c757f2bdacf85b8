"""NOT FOLLOWED BY in streams: the watermark is the clock that shows each key, in each bucket, when deadlines pass."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from cerflow.automata.compile.deadlines import waits_for_time
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import numbers_matches
from cerflow.language.formula import Selection, Strategy
from cerflow.language.node import walk
from cerflow.language.select import Consumption, CountItem, ProjectionKind, Select
from cerflow.programs.program import Program
from cerflow.query import Query
from cerflow.schema import Kind, Schema
from cerflow.values.units import DAY

__all__ = ["check_deadlines", "clock_value"]


def check_deadlines(query: Query | Program) -> bool:
    """Whether a query waits for deadlines that pass with time.

    Raises `UnsupportedQueryError` where it would matter which micro-batch shows that a deadline has passed.
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
    if not waits_for_time(select.formula):
        return False
    if _compares_moments(select):
        raise UnsupportedQueryError(
            "in a stream, a query with NOT FOLLOWED BY … FOR a duration reports all its matches: which matches are "
            "detected at the same moment depends on the micro-batches",
            span=select.span,
            hint="Leave out strategies, LIMIT, CONSUME and COUNT(*).",
        )
    return True


def _compares_moments(select: Select) -> bool:
    """Whether it matters which matches are detected together."""
    projection = select.projection
    return (
        select.strategy is not Strategy.ALL
        or select.limit is not None
        or select.consume is not Consumption.NONE
        or projection.kind not in (ProjectionKind.ALL, ProjectionKind.ITEMS)
        or any(isinstance(item, CountItem) for item in projection.items)
        or numbers_matches(projection)
        or any(isinstance(node, Selection) for node in walk(select.formula))
    )


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
