"""The reasons for which a record of a stream is bad, and the values that valid ones lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cerflow.api.programs.program import read_query
from cerflow.base.errors import dotted
from cerflow.logic.analysis.columns import columns_by_type
from cerflow.spark.frames.events import CORRUPT, MALFORMED, EventColumns, record_as_json
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.streaming.packing import INSTANT, REASON


def reason(events: EventColumns, ahead: tuple[str, int] | None, *, corrupt: bool) -> Column:
    """Why an event cannot be used, null if it can.

    ``ahead`` is a bound in words and microseconds; ``corrupt`` says that the reader tells what it could not read.
    """
    assert events.schema.time is not None
    time = dotted(events.schema.time)
    reasons: list[Column] = []
    if corrupt:
        reasons.append(F.when(F.col(CORRUPT).isNotNull(), F.lit(MALFORMED)))
    text = f"no timestamp can hold the time in '{time}'"
    reasons += [events.reason(), F.when(F.col(INSTANT).isNull(), F.lit(text))]
    if ahead is not None:
        # In a stream this is the start of the micro-batch, which the checkpoint keeps.
        latest = F.unix_micros(F.current_timestamp()) + F.lit(ahead[1])
        text = (
            f"its '{time}' is more than {ahead[0]} ahead of the clock (if that is right, allow more with ahead; "
            "numbers may count another time_unit)"
        )
        reasons.append(F.when(F.col(INSTANT) > latest, F.lit(text)))
    return F.coalesce(*reasons)


def record_text(events: EventColumns, names: Sequence[str], *, whole: bool) -> Column:
    """A bad record as text: what Spark could not read, or the ``whole``, all columns, as JSON."""
    shown = record_as_json([F.col(CORRUPT if n == CORRUPT else events.plain(n)).alias(n) for n in names])
    return F.when(F.col(REASON).isNotNull(), shown if whole else F.col(CORRUPT))


def expected_columns(plan: JobPlan) -> Mapping[str, Set[str] | None]:
    """The columns of the input that a query expects to have values, of events of which types."""
    schema = plan.schema
    roles = {schema.type, schema.time, schema.stream}
    found: dict[str, Set[str] | None] = {}
    for name, types in columns_by_type(read_query(plan.task.query, plan.task.language).tree).items():
        column = schema.column(name) if schema.has(name) else None
        if column is not None and column not in roles:
            found[column] = types
    return found


def lacking_observed(
    frame: DataFrame, events: EventColumns, expected: Mapping[str, Set[str] | None], name: str
) -> DataFrame:
    """The frame, for which Spark reports the numbers of valid events without a value in each of these columns."""
    counts = []
    for column, types in expected.items():
        lacking = F.col(events.plain(column)).isNull() & F.col(REASON).isNull()
        if types is not None:
            lacking &= F.col(events.plain(events.schema.type)).isin(*sorted(types))
        counts.append(F.count_if(lacking).alias(dotted(column)))
    return frame.observe(name, *counts) if counts else frame
