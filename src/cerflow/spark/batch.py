"""The public functions for batches: match a query in a DataFrame, explain how that is done, show bad records."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from cerflow.api.programs.program import Program, without_definitions
from cerflow.api.query import Query
from cerflow.api.stream_inputs import schema_of
from cerflow.base import errors, limits
from cerflow.base.events import UNNAMED
from cerflow.base.nested import attribute_named, is_nested, untaken
from cerflow.base.schema import HIDDEN_TYPES, Schema
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.language.printer import show
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.conditions.connectives import TRUE
from cerflow.look.explaining.text import relevant_lines, section, table
from cerflow.spark.failures import own_errors_raised
from cerflow.spark.frames.events import CORRUPT, MALFORMED, EventColumns, pushdown, record_as_json
from cerflow.spark.frames.plan import JobPlan, PlanArguments, for_batches, make_plan, showing_arguments
from cerflow.spark.frames.schemas import arrow_schema, column_of, in_backticks, refuse_untransferable
from cerflow.spark.placing.ordering import recognized, selected
from cerflow.spark.placing.placement import Placement, PlacementKind, place
from cerflow.spark.placing.survey import Selected
from cerflow.spark.source.planned import Planned
from cerflow.spark.streaming.matching import AHEAD, LatePolicy, match_stream
from cerflow.spark.worker import require_cerflow, run_own_python


@showing_arguments
def match(
    query: Query | Program | str,
    df: DataFrame,
    *,
    on_bad_record: Literal["fail", "skip"] = "fail",
    delay: timedelta | str | None = None,
    buckets: int = 16,
    late: LatePolicy = "drop",
    ahead: timedelta | str | None = AHEAD,
    **arguments: Unpack[PlanArguments],
) -> DataFrame:
    """The matches of a query in a DataFrame of events, as a DataFrame with the result schema.

    The other arguments mean what they mean to `cerflow.Query.match`: ``type``, ``time``, ``time_unit``, ``sequence``,
    ``stream``, ``forget``, ``constant_type``, ``positions`` (default: False), ``counts``, ``flat``, ``max_matches`` and
    ``until``. Events are ordered by ``time``, ties by ``sequence`` and then by their position in the DataFrame
    (partition, and row within it); without a time by the latter alone, so the DataFrame must come from a source that
    keeps an order, as files do.

    Queries whose matches a window bounds run in slices of time that overlap by the window, if the input is large.
    Other queries with PARTITION BY run in parallel by key, and the rest in one task that sees all events; `explain`
    says which, and why. A program runs in slices if windows of time bound all its statements, and by key if
    all of them have that key; with ``positions`` it runs in one task, since positions count events of definitions.
    To decide, a large input is read once, for the ordering column alone (at this call).

    ``detected_at``, ``start``, ``end`` and ``position`` are absent unless ``positions`` is set or the query reads
    positions: to number the events of a query that runs in parallel, some of the input is counted in another job at
    this call; by key all of it is also shuffled and sorted once more. Nothing else is computed before an action.

    An event without a type or a time makes the job fail (``on_bad_record="fail"``) or is left out (``"skip"``), and so
    does one with text in a column ``_corrupt_record``, in which Spark's readers of CSV and JSON, and ``from_json``, put
    what they cannot read; without that column these are nulls. `bad_records` gives these events. As it is Spark that
    runs the job, it raises its own error, whose text ends with the `BadRecordError` of a task, which shows the event;
    `run` raises that itself.

    With ``flat`` there are columns ``label_attribute`` instead of ``events``, see `cerflow.Matches.to_batches`. With
    ``counts="text"`` the numbers of ``COUNT(*)`` are text, of any length. With ``max_matches`` a task that finds
    more matches fails with a `TooManyMatchesError` before it lists them. ``until``, a value of the time column, says
    that no event before it is missing, so deadlines at or before it have passed, too.

    A streaming DataFrame gives a streaming DataFrame of the same matches, however events are divided into
    micro-batches. It needs a ``time``. Events may come in any order as long as none comes more than ``delay`` after a
    later one: each waits until the watermark has passed it. Events that come even later are left out and counted
    (``late="drop"``) or make the query fail (``"fail"``). Events of equal time are ordered by ``sequence``. The
    substreams of PARTITION BY are divided among ``buckets``, a number that never changes for a checkpoint; a query
    without PARTITION BY has one bucket, and a warning says so. An event whose time is more than ``ahead`` (None: any)
    after the start of its micro-batch is a bad record, so that it does not move the watermark. Progress reports of
    Spark have a metric ``cerflow`` with counts, and ``cerflow_lacking`` with the numbers of events that have no value
    in columns that the query reads of them; those of further results are called ``cerflow_2`` and ``cerflow_2_lacking``
    and so on, so a query may combine several.

    Raises `QuerySyntaxError` and `QueryError` for a query that is wrong or does not fit the columns, `InputError` for
    missing columns, and `UnsupportedQueryError` for a query that cannot be evaluated; all of them here, before any job.
    """
    df, arguments = completed(df, query, **arguments)
    if isinstance(df, DataFrame) and df.isStreaming:
        refuse_bounds(arguments)
        plan = plan_of(query, df, on_bad_record, **arguments)
        return match_stream(plan, df, delay=delay, buckets=buckets, late=late, bad=on_bad_record, ahead=ahead)
    if delay is not None:
        raise errors.ArgumentError("delay is for streaming DataFrames; a batch has all its events")
    rows = _prepared(query, df, on_bad_record, **arguments)
    if hasattr(df.sparkSession, "_jvm") and df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"):
        errors.warn(
            "match is called in foreachBatch, so it sees one micro-batch at a time and loses matches across them; give "
            "the streaming DataFrame to cerflow.spark.match or cerflow.spark.stream"
        )
    # A survey of the input may meet a bad record.
    with own_errors_raised():
        placement = place(rows)
    return recognized(rows, placement)


@showing_arguments
def explain(
    query: Query | Program | str,
    df: DataFrame,
    *,
    on_bad_record: Literal["fail", "skip"] = "fail",
    **arguments: Unpack[PlanArguments],
) -> str:
    """A text that says how `match` would evaluate a query on a DataFrame; `Query.explain` tells the rest of a query.

    It says which events and columns are sent to the tasks, and how they are divided: one task, by key or slices of
    time, with the reason; and by key, whether one key has most of the work. The arguments and errors are those of
    `match`. It runs the jobs by which `match` decides, and one that counts keys.
    """
    df, arguments = completed(df, query, **arguments)
    rows = _prepared(query, df, on_bad_record, **arguments)
    placement = place(rows)
    paragraphs = {"Sent to the tasks": _sent(rows, placement), "Divided": _divided(rows, placement)}
    return errors.dotted("\n".join(section(title, table(lines)) for title, lines in paragraphs.items()).rstrip())


def completed(
    df: DataFrame, query: Query | Program | str | None, **arguments: Unpack[PlanArguments]
) -> tuple[DataFrame, PlanArguments]:
    """The DataFrame with the columns that `Schema.completed` adds, and the arguments that say which has the types.

    The columns are those of types as text and of the nested attributes that a query reads. All work on it begins here.
    The arguments are those of `match`.
    """
    if not isinstance(query, Query | Program | str | None):
        raise errors.ArgumentError(
            "Spark matches one query or one program at a time; call cerflow.spark.match for each query of a set: "
            "{name: cerflow.spark.match(query, df) for name, query in queries.items()}"
        )
    if not isinstance(df, DataFrame):
        return df, arguments
    run_own_python(df.sparkSession)
    require_cerflow(df.sparkSession)
    constant, sequence = arguments.pop("constant_type", None), arguments.get("sequence")
    known = schema_of(
        arrow_schema(df),
        type=arguments.get("type", "type"),
        time=arguments.get("time"),
        stream=arguments.get("stream"),
        constant_type=constant,
    )
    if sequence is not None:
        known = known.reading([attribute_named(known.columns, sequence)])
    if query is not None:
        known = known.reading(attributes_in(without_definitions(query).tree))
    added = [name for name in known.attributes if name not in df.columns]
    for name in filter(is_nested, added):
        df = df.withColumn(name, column_of(df, name))
    if known.type in added and not is_nested(known.type):
        only = F.lit(UNNAMED if constant is None else constant)
        df = df.withColumn(
            known.type, only if known.typed_by is None else df[in_backticks(known.typed_by)].cast("string")
        )
    return df, {**arguments, "type": known.type}


def refuse_bounds(arguments: PlanArguments) -> None:
    """Raise `ArgumentError` for bounds of a batch, which a stream cannot have."""
    if arguments.get("max_matches") is not None:
        raise errors.ArgumentError(
            "max_matches is for batches: a stream has no end; LIMIT n bounds the matches of each event"
        )
    if arguments.get("until") is not None:
        raise errors.ArgumentError("until is for batches: in a stream the watermark shows that deadlines have passed")


def _prepared(
    query: Query | Program | str, df: DataFrame, on_bad_record: str, **arguments: Unpack[PlanArguments]
) -> Selected:
    """The events that are sent; raises all that `match` raises."""
    _check_frame(df)
    skip = on_bad_record == "skip"
    df = _without_corrupt(df, skip=skip)
    return selected(df, for_batches(plan_of(query, df, on_bad_record, **arguments)), skip=skip)


def _without_corrupt(df: DataFrame, *, skip: bool) -> DataFrame:
    """The DataFrame without the column in which Spark puts what it cannot read; rows with a text there are bad."""
    if CORRUPT not in df.columns:
        return df
    shown = record_as_json([F.col("*")])
    if skip:
        readable = F.col(CORRUPT).isNull() & shown.isNotNull()
    else:
        own = F.concat(F.lit(f"{errors.__name__}.BadRecordError: row "), shown, F.lit(f": {MALFORMED}"))
        refused = F.raise_error(own).cast("boolean")
        readable = F.when(F.col(CORRUPT).isNotNull() & shown.isNotNull(), refused).otherwise(F.lit(True))
    return df.filter(readable).drop(CORRUPT)


def plan_of(
    query: Query | Program | str, df: DataFrame, on_bad_record: str, **arguments: Unpack[PlanArguments]
) -> JobPlan:
    """The plan for a DataFrame; raises what `match` raises of query and columns."""
    if on_bad_record not in ("fail", "skip"):
        raise errors.ArgumentError(
            f"on_bad_record must be 'fail' or 'skip', not {on_bad_record!r}; see also bad_records"
        )
    compiled = without_definitions(query)
    columns = arrow_schema(df)
    if df.isStreaming:
        columns = pa.schema([field for field in columns if field.name != CORRUPT])
    plan = make_plan(compiled, columns, **arguments)
    refuse_untransferable(df, columns, plan.needed)
    return plan


def bad_records(
    df: DataFrame,
    *,
    type: str | None = "type",
    time: str | None = None,
    stream: str | None = None,
    query: Query | Program | str | None = None,
) -> DataFrame:
    """The events that cannot be used, for lack of a type or a time, with a column ``reason`` in addition.

    So are records with a text in a column ``_corrupt_record`` (see `match`).

    With a ``query`` also those with a value that it reads and that 64 bits cannot hold; ``stream`` is for programs.
    Write the result with Spark's writers, which are safe when tasks are repeated. Raises `InputError` for missing
    columns.
    """
    _check_frame(df)
    df, known = completed(df, query, type=type, time=time, stream=stream)
    schema = Schema(arrow_schema(df), str(known["type"]), time, stream)
    if query is not None:
        schema = without_definitions(query).plan(schema).schema
    return refused(df, EventColumns(schema, df.schema))


def refused(df: DataFrame, events: EventColumns) -> DataFrame:
    """The events of a DataFrame (see `completed`) that cannot be used, as `bad_records` gives them."""
    name = untaken("reason", {c.casefold() for c in df.columns}, str.casefold)
    flagged = events.renamed(df).withColumn("why", events.reason())
    letters = flagged.filter(F.col("why").isNotNull()).toDF(*df.columns, name)
    return letters.drop(*HIDDEN_TYPES, *filter(is_nested, df.columns))


def _check_frame(df: DataFrame) -> None:
    if not isinstance(df, DataFrame):
        name = df.__class__.__name__
        raise errors.InputError(f"{name} is not a Spark DataFrame; cerflow.Query.match takes other events")
    if df.isStreaming:
        raise errors.UnsupportedQueryError(
            "this is for batches, and the DataFrame is a stream", hint="cerflow.spark.match takes streams, too."
        )


def _sent(rows: Selected, placement: Placement) -> list[tuple[str, str]]:
    if isinstance(placement.how, Planned):
        return [("rows", "tasks read what the query needs from the files themselves")]
    plan, sent = rows.whole, rows.plan
    pushed, left = pushdown(plan.relevance.condition, rows.events)
    reasons = plan.relevance.reasons
    if plan.positions and placement.kind is not PlacementKind.BY_KEY:
        # By key events are numbered before; else tasks count them.
        pushed, left, reasons = TRUE, (), ("positions count every event",)
    first, *others = relevant_lines({"condition": None if pushed == TRUE else show(pushed), "reasons": reasons})
    found = [("rows", first), *(("", line) for line in others)]
    if left:
        found.append(("left to the tasks", "; ".join(map(show, left))))
    found.append(("columns", ", ".join(name for name in sent.needed if name != PRECOMPUTED)))
    if sent.task.precomputed:
        found.append(("as bits", "; ".join(map(show, sent.task.precomputed))))
    return found


def _divided(rows: Selected, placement: Placement) -> list[tuple[str, str]]:
    plan = rows.whole
    found = [("how", str(placement.kind)), ("why", placement.reason)]
    if isinstance(placement.how, tuple) and any(some.home is not None for some in placement.how):
        found.append(("put in order", "by Spark"))
    by_key = placement.kind is PlacementKind.BY_KEY and not rows.guess.is_small
    share = rows.greatest_share() if by_key else 0.0
    if share > limits.SPARK_SKEW:
        way_out = "a window of time for the whole query" if plan.division.window is None else "input in order of time"
        skew = (
            f"one key has {share:.0%} of these events, so all tasks together are at most {1 / share:.1f} times as fast "
            f"as one; {way_out} lets slices of time share the work"
        )
        found.append(("skew", skew))
    found.append(("positions", "numbered" if plan.positions else "not asked for"))
    return found
