"""The events as tasks get them: the columns needed, with plain names, in order; all, those of a key, or of slices.

Positions in the whole stream are exact where many tasks hold it. The input is read once (without a time) or twice (with
one) to learn how many events there are before each part of it; then the parts are numbered in parallel. That holds only
if reading the input again gives the same rows, so the counts are checked.

For deadlines without a window keys are apart from each other, though events of other keys show that deadlines have
passed. A clock shows the tasks each deadline, up to the latest time of the input. The event that shows it is then
looked for in the times of all events, for the matches alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.engine.slices.cutting import GREATEST, LEAST, Slice
from cerflow.logic.conditions.connectives import TRUE
from cerflow.spark.frames import events as e
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.frames.schemas import in_backticks, spark_schema
from cerflow.spark.frames.tasks import CHANGED, OwnSlices
from cerflow.spark.placing.placement import Placement, PlacementKind
from cerflow.spark.placing.survey import Selected, estimate
from cerflow.spark.source.planned import Planned

#: Twice the number of the slice, one more if the event is its own.
SLICE = "slice"
_NUMBER = "number"
_PART = "part"
_TIME, _MATCH, _SHOWN, _LATER = "time", "match", "shown", "later"
#: The column of results with the time of the event that shows a deadline.
_DETECTED = "detected_time"
_CHANGED = (
    "the events changed between two readings, so they cannot be numbered; "
    "store or cache the DataFrame before it is matched"
)


def selected(df: DataFrame, plan: JobPlan, *, skip: bool) -> Selected:
    """The columns that the query needs, and the events that can be used if others are skipped."""
    events = e.EventColumns(plan.schema, df.schema)
    frame = events.renamed(df)
    if skip:
        frame = frame.filter(events.valid())
    if plan.keys and not plan.positions and (plan.by_key or plan.relevance.condition != TRUE):
        # Events without keys belong to no substream, and no position counts them. In one task they may show the time.
        frame = frame.filter(events.has_keys(plan))
    if not plan.positions:
        frame = e.relevant(frame, plan, events, skip=skip)
    whole, (plan, bits) = plan, e.narrowed(plan, events)
    if bits is not None:
        events = e.EventColumns(plan.schema, df.schema)
        frame = frame.withColumn(events.plain(PRECOMPUTED), bits)
    # Without a type an event cannot be used, even if types are not sent.
    names = [events.plain(name) for name in (*plan.needed, plan.schema.type)]
    extra = [] if plan.sequence is None else [events.plain(plan.sequence)]
    return Selected(frame.select(*dict.fromkeys(names + extra)), events, plan, skip, df, whole)


def recognized(given: Selected, placement: Placement) -> DataFrame:
    """The matches in selected events, recognised as a placement says."""
    plan, result = given.plan, spark_schema(given.plan.result)
    match placement.how:
        case tuple() as slices:
            return _in_slices(given, slices)
        case Planned() as planned:
            return planned.frame(given.frame.sparkSession)
        case pa.Array() as until:
            rows = _ordered(given, by_key=True, numbered=False)
            task = replace(plan.recognition(), until=until, by_clock=True)
            return with_times_of_events(rows.mapInArrow(task, result), given.frame, given.events)
    by_key = placement.kind is PlacementKind.BY_KEY
    numbered = plan.positions and by_key
    rows = _ordered(given, by_key=by_key, numbered=numbered)
    return rows.mapInArrow(plan.recognition(numbered=numbered), result)


def _ordered(given: Selected, *, by_key: bool, numbered: bool) -> DataFrame:
    """All events in one task, or those of a key."""
    frame, events, plan = given.frame, given.events, given.plan
    names = [events.plain(name) for name in plan.needed]
    # Number rows before any shuffle, in the order of the input.
    frame = frame.withColumn(e.IDENTIFIER, F.monotonically_increasing_id())
    order = events.order(plan)
    if numbered:
        leading = plan.schema.time or plan.sequence
        if leading is None:
            frame = number_rows(frame)
        else:
            frame = number_sorted(frame, events.plain(leading), order)
        order = [F.col(e.POSITION).asc()]
        names.append(e.POSITION)
        # These events count, but have no substream.
        frame = e.relevant(frame.filter(events.has_keys(plan)), plan, events, skip=given.skip)
    frame = frame.repartition(*events.keys(plan)) if by_key else frame.repartition(1)
    return frame.sortWithinPartitions(*order).select(*names)


def _in_slices(given: Selected, slices: Sequence[Slice]) -> DataFrame:
    """Every slice in a task with the events before it that it needs; those with a home where they are."""
    plan = given.plan
    recognition = plan.recognition(numbered=plan.positions)
    names = [given.events.plain(name) for name in plan.needed]
    between, at_home = ([some for some in slices if (some.home is None) is moved] for moved in (True, False))
    found = []
    if at_home:
        found.append((_at_home(given, slices), at_home))
    if between:
        found.append((_shuffled(given, between), between))
    frames = (
        rows.select(*names, SLICE).mapInArrow(OwnSlices(recognition, some), spark_schema(plan.result))
        for rows, some in found
    )
    return reduce(DataFrame.union, frames)


def _shuffled(given: Selected, slices: Sequence[Slice]) -> DataFrame:
    """The events with `SLICE`, each once for every slice that reads it, those of a slice in one task and in order.

    Events that none of the slices reads are left out.
    """
    whole = [*(s.start for s in slices), GREATEST] == [LEAST, *(s.stop for s in slices)]
    rows = given.frame if whole else _likely(given, slices)
    rows = rows.withColumn(e.IDENTIFIER, F.monotonically_increasing_id())
    for name in ("begin", "stop") if whole else ("begin", "start", "stop"):
        rows = given.events.with_number_of_keys(rows, name, [getattr(s, name) for s in slices])
    if whole:
        rows = rows.withColumn("start", F.col("stop") + 1)
    # Those that read an event are the ones that have begun and not stopped.
    rows = rows.filter(F.col("stop") < F.col("begin"))
    rows = rows.withColumn(_NUMBER, F.explode(F.sequence(F.col("stop"), F.col("begin") - 1)))
    own = (F.col(_NUMBER) < F.col("start")).cast(T.IntegerType())
    rows = rows.withColumn(SLICE, F.col(_NUMBER) * 2 + own)
    partitions = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or len(slices))
    tasks = max(1, min(len(slices), partitions))
    # Before PySpark 4.1 slices may share a task while others have none.
    divided = rows.repartitionById if hasattr(rows, "repartitionById") else rows.repartition
    return divided(tasks, F.col(_NUMBER)).sortWithinPartitions(F.col(SLICE).asc(), *given.events.order(given.plan))


def _at_home(given: Selected, slices: Sequence[Slice]) -> DataFrame:
    """The events of the slices of a whole stream that have a home, where they are and in order, with `SLICE`.

    The slices are numbered without the others. The job fails if one of their events is not at home.
    """
    rows = given.frame.withColumn(e.IDENTIFIER, F.monotonically_increasing_id())
    rows = given.events.with_number_of_keys(rows, _NUMBER, [s.start for s in slices[1:]])
    # Events of slices between are read for the next one at home.
    homes = [s.home if s.home is not None else n.home for s, n in zip(slices, [*slices[1:], slices[-1]])]
    numbers = accumulate((some.home is not None for some in slices[:-1]), initial=0)
    home, number, own = (
        F.get(e.array_column(values, T.IntegerType()), F.col(_NUMBER))
        for values in (
            [-1 if some is None else some for some in homes],
            numbers,
            [int(some.home is not None) for some in slices],
        )
    )
    changed = F.raise_error(f"{InputError.__module__}.InputError: {CHANGED}").cast(T.IntegerType())
    code = F.when(F.spark_partition_id() == home, number * 2 + own).when(own == 1, changed)
    rows = rows.withColumn(SLICE, code).filter(F.col(SLICE).isNotNull())
    # Without a time they are in order.
    return rows if given.plan.schema.time is None else rows.sortWithinPartitions(*given.events.order(given.plan))


def _likely(given: Selected, slices: Sequence[Slice]) -> DataFrame:
    """The events that any slice reads, if that can be asked of the source without changing its partitions."""
    frame, at_least = given.frame, given.events.at_least
    if given.plan.schema.time is None or len(slices) > limits.SPARK_RANGES:
        return frame
    ranges = []
    for some in slices:
        begun = F.lit(True) if some.begin == LEAST else at_least(some.begin)
        ranges.append(begun if some.stop == GREATEST else begun & ~at_least(some.stop))
    likely = frame.filter(reduce(Column.__or__, ranges))
    return likely if estimate(likely).pruned == given.guess.pruned else frame


def number_rows(frame: DataFrame) -> DataFrame:
    """The frame with the position of each row in its own order: that of partitions, and of the rows in each.

    Counts the rows of each partition in a job of its own.
    """
    part = F.shiftright(F.col(e.IDENTIFIER), e.ROW_BITS).cast(T.IntegerType())
    within = F.col(e.IDENTIFIER).bitwiseAND(F.lit((1 << e.ROW_BITS) - 1))
    counts, offsets = _counted(frame.select(part.alias(_PART)))
    return _with_position(frame, within < F.get(counts, part), F.get(offsets, part) + within)


def number_sorted(frame: DataFrame, leading: str, order: Sequence[Column]) -> DataFrame:
    """The frame with the position of each row in the given order, whose first column is ``leading``.

    Runs two jobs: one for quantiles of ``leading``, which cut the stream into parts of about the same size, and one
    that counts the parts. The result shuffles and sorts all rows; a part is numbered by one task.
    """
    cut = e.with_number_of_cuts(frame, _PART, F.col(leading), cuts_of(frame, leading), frame.schema[leading].dataType)
    counts, offsets = _counted(cut.select(_PART))
    whole = Window.partitionBy(_PART)
    so_far = whole.orderBy(*order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    part, one = F.col(_PART), F.lit(1)
    unchanged = F.count(one).over(whole) == F.get(counts, part)
    return _with_position(cut, unchanged, F.get(offsets, part) + F.count(one).over(so_far) - 1).drop(_PART)


def _with_position(frame: DataFrame, unchanged: Column, position: Column) -> DataFrame:
    changed = F.raise_error(F.lit(_CHANGED)).cast(T.LongType())
    return frame.withColumn(e.POSITION, F.when(unchanged, position).otherwise(changed))


def _counted(parts: DataFrame) -> tuple[Column, Column]:
    """The rows of each part, and of all parts before it, as arrays indexed by the part."""
    found: Mapping[int, int] = {row[_PART]: row["count"] for row in parts.groupBy(_PART).count().collect()}
    counts = [found.get(part, 0) for part in range(max(found, default=0) + 1)]
    offsets = list(accumulate(counts[:-1], initial=0))
    return e.array_column(counts, T.LongType()), e.array_column(offsets, T.LongType())


def cuts_of(frame: DataFrame, leading: str) -> list[str]:
    """Values of the column ``leading`` at which to cut, ascending, as text; none for types without quantiles."""
    data_type = frame.schema[leading].dataType
    if not isinstance(data_type, T.NumericType | T.DateType | T.TimestampType | T.TimestampNTZType):
        return []
    parts = min(
        limits.SPARK_NUMBERED_PARTS,
        int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or limits.SPARK_NUMBERED_PARTS),
    )
    if parts < 2:
        return []
    fractions = [k / parts for k in range(1, parts)]
    quantiles = F.percentile_approx(leading, fractions, F.lit(20 * parts)).cast(T.ArrayType(T.StringType()))
    (row,) = frame.agg(quantiles.alias("cuts")).collect()
    return list(dict.fromkeys(row["cuts"] or []))


def with_times_of_events(matches: DataFrame, frame: DataFrame, events: e.EventColumns) -> DataFrame:
    """The matches with the time of the first event at or after each detection; those behind all events stay.

    One job sorts the times of all events, and with them the matches. Cuts divide both among the tasks.
    """
    times = frame.filter(events.valid()).select(events.leading().alias(_TIME))
    cuts, data_type = cuts_of(times, _TIME), times.schema[_TIME].dataType
    found = matches.select(F.col(_DETECTED).cast(data_type).alias(_TIME), F.struct("*").alias(_MATCH))

    def in_parts(rows: DataFrame) -> DataFrame:
        return e.with_number_of_cuts(rows, _PART, F.col(_TIME), cuts, data_type)

    firsts = in_parts(times).groupBy(_PART).agg(F.min(_TIME).alias(_LATER))
    behind = Window.orderBy(_PART).rowsBetween(1, Window.unboundedFollowing)
    parts = firsts.select(_PART, F.min(_LATER).over(behind).alias(_LATER))
    both = in_parts(found.unionByName(times, allowMissingColumns=True))
    onward = Window.partitionBy(_PART).orderBy(_TIME).rangeBetween(Window.currentRow, Window.unboundedFollowing)
    shown = F.min(F.when(F.col(_MATCH).isNull(), F.col(_TIME))).over(onward)
    rows = both.withColumn(_SHOWN, shown).filter(F.col(_MATCH).isNotNull()).join(F.broadcast(parts), _PART, "left")
    time = F.coalesce(_SHOWN, _LATER, _TIME).cast(matches.schema[_DETECTED].dataType).alias(_DETECTED)
    others = {name: F.col(f"{_MATCH}.{in_backticks(name)}") for name in matches.columns}
    return rows.select(*(others | {_DETECTED: time}).values())
