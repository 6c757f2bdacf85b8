"""Keys apart from each other, though events of other keys show that deadlines have passed.

A clock shows the tasks each deadline, up to the latest time of the input. The event that shows it is then looked for in
the times of all events, for the matches alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from cerflow.spark.frames.events import EventColumns, with_number_of_cuts
from cerflow.spark.placing.positions import cuts_of

_TIME, _MATCH, _PART, _SHOWN, _LATER = "time", "match", "part", "shown", "later"
#: The column of results with the time of the event that shows a deadline.
DETECTED = "detected_time"


@dataclass(frozen=True)
class ByClock:
    """A time, in an array, before which no more events come: that of the last event, or a later one that is known."""

    until: pa.Array


def by_clock(frame: DataFrame, events: EventColumns, until: pa.Array | None) -> ByClock | None:
    """How events of a DataFrame with plain names go to the tasks; None if there are none. Runs a job."""
    latest = frame.filter(events.valid()).agg(F.max(events.leading()).alias(_TIME)).toArrow().column(_TIME)
    known = latest.combine_chunks().drop_null().cast(events.schema.columns.field(str(events.schema.time)).type)
    times = known if until is None else pa.concat_arrays([known, until])
    return ByClock(times.take(pc.sort_indices(times)[-1:])) if len(known) else None


def with_times_of_events(matches: DataFrame, frame: DataFrame, events: EventColumns) -> DataFrame:
    """The matches with the time of the first event at or after each detection; those behind all events stay.

    One job sorts the times of all events, and with them the matches. Cuts divide both among the tasks.
    """
    times = frame.filter(events.valid()).select(events.leading().alias(_TIME))
    cuts, data_type = cuts_of(times, _TIME), times.schema[_TIME].dataType
    found = matches.select(F.col(DETECTED).cast(data_type).alias(_TIME), F.struct("*").alias(_MATCH))

    def in_parts(rows: DataFrame) -> DataFrame:
        return with_number_of_cuts(rows, _PART, F.col(_TIME), cuts, data_type)

    firsts = in_parts(times).groupBy(_PART).agg(F.min(_TIME).alias(_LATER))
    behind = Window.orderBy(_PART).rowsBetween(1, Window.unboundedFollowing)
    parts = firsts.select(_PART, F.min(_LATER).over(behind).alias(_LATER))
    both = in_parts(found.unionByName(times, allowMissingColumns=True))
    onward = Window.partitionBy(_PART).orderBy(_TIME).rangeBetween(Window.currentRow, Window.unboundedFollowing)
    shown = F.min(F.when(F.col(_MATCH).isNull(), F.col(_TIME))).over(onward)
    rows = both.withColumn(_SHOWN, shown).filter(F.col(_MATCH).isNotNull()).join(F.broadcast(parts), _PART, "left")
    time = F.coalesce(_SHOWN, _LATER, _TIME).cast(matches.schema[DETECTED].dataType).alias(DETECTED)
    names = [f"`{name.replace('`', '``')}`" for name in matches.columns]
    return rows.select(*(time if name == f"`{DETECTED}`" else F.col(f"{_MATCH}.{name}") for name in names))
