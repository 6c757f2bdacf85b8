"""Which task gets which events: all of them to one, those of a key to one, or slices of time.

Tasks read slices of Parquet files by themselves, as those of the data source do, for DataFrames that are columns of
files and no more. That takes a look at Spark's plan, for which Spark has no public interface: wherever anything is
unknown there, a DataFrame's own tasks read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import CerflowError, counted
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.ranges import limits as limits_of
from cerflow.engine.slices.cutting import LEAST, Lookback, Pieces, Slice, slices_at_home, slices_by_key
from cerflow.language.formula import DurationWindow
from cerflow.spark.frames.events import CORRUPT, exact
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.frames.schemas import spark_schema
from cerflow.spark.placing import survey
from cerflow.spark.source.files import DataFile, metadata_of
from cerflow.spark.source.planned import Planned, plan_files

#: Before 1900, in microseconds, Spark may read times of old files by another calendar.
_CALENDAR = int(np.datetime64("1900-01-02", "us").astype(np.int64))


class PlacementKind(StrEnum):
    """How the events of a query are divided among tasks."""

    ONE_TASK = "in one ordered task"
    BY_KEY = "in parallel by key"
    SLICES = "in slices of time"


@dataclass(frozen=True)
class Placement:
    """The decision, and the reason for it.

    Slices are those of the whole stream, in the order of time: those with a home stay where they are, others are
    shuffled. A time says that a clock shows deadlines up to it (see `Selected.end`).
    """

    kind: PlacementKind
    reason: str
    how: tuple[Slice, ...] | Planned | pa.Array | None = None


def place(given: survey.Selected) -> Placement:
    """Where the events of a query go.

    Runs no job if the query cannot be divided, or if Spark knows that the DataFrame is small; else one that reads the
    ordering column, and one or two more if all events have to be shuffled.
    """
    slices = _slices_of_time(given)
    if isinstance(slices, Placement):
        return slices
    plan, why = given.plan, slices
    if plan.by_key:
        own = "each key has its own matches"
        if plan.implied:
            own += (
                f": conditions make all events of a match agree on {', '.join(key.attribute for key in plan.implied)}"
            )
        return Placement(PlacementKind.BY_KEY, f"{own} (no slices of time: {why})")
    if plan.by_clock and exact(plan.schema) and not given.guess.is_small:
        how = given.end()
        if how is not None:
            reason = "a clock shows deadlines to each key, and the times of all events say when they are known"
            return Placement(PlacementKind.BY_KEY, f"{reason} (no slices of time: {why})", how)
    return Placement(PlacementKind.ONE_TASK, why)


def _slices_of_time(given: survey.Selected) -> Placement | str:
    """Slices of time, or why there are none."""
    plan, schema = given.plan, given.plan.schema
    if plan.division.window is None:
        return plan.division.reason
    if not exact(schema):
        return f"Spark may compare the values of '{schema.time}' differently"
    if schema.time is None and plan.sequence is not None:
        return "the order is that of a sequence, without a time"
    # Spark's estimate takes longer than a look at the files.
    how = files_by_tasks(given.input, given.whole, skip=given.skip)
    if how is not None:
        return Placement(PlacementKind.SLICES, f"tasks read the files themselves; {how.explanation}", how)
    guess = given.guess
    if guess.is_small:
        return "the input is small"
    if not guess.stays and (plan.by_key or schema.time is None):
        return "whether the input is in the order of time is not known before it is computed"
    found = given.partitions(by_file=guess.stays and schema.time is not None)
    if not (found.sure == found.count).all():
        return "some events cannot be used"
    if found.total < limits.SPARK_SMALL_EVENTS:
        return "the input is small"
    between = math.inf
    if guess.stays:
        at_home = _stretches(given, found)
        if isinstance(at_home, Placement):
            return at_home
        between = at_home
    # Otherwise all events are shuffled.
    if plan.by_key and between < 1:
        return (
            f"within a window around cuts between files are {between:.0%} of the events; fewer and larger files would "
            "change that, or the data source cerflow, which reads on in the next file"
        )
    if plan.by_key:
        return "the input is not in the order of time"
    if schema.time is None:
        return "the window is long compared with the partitions of the input"
    return _slices_by_sample(given, found)


def _lookback(plan: JobPlan, pieces: Pieces, keys: Sequence[Ints] = ()) -> Lookback:
    """How far back matches go, by pieces of the stream and the ``keys`` of more of its events."""
    return Lookback(plan.division, plan.schema, pieces, np.unique(np.concatenate([pieces.low, pieces.high, *keys])))


def _stretches(given: survey.Selected, pieces: Pieces) -> Placement | float:
    """Slices where they are, and those between them; the share of events in the latter if these have too many."""
    plan = given.plan
    slices = slices_at_home(_lookback(plan, pieces))
    between = [some for some in slices if some.home is None]
    homes = [some.home for some in slices if some.home is not None]
    share = pieces.load(between) / pieces.total
    if share > limits.SPARK_BOUNDARY or not homes:
        return share
    counts = None
    if plan.positions or not isinstance(plan.division.window, DurationWindow):
        counts = given.parts(_edges(slices), by_partition=True)
    what = "partitions of the input" if len(homes) == len(set(homes)) else "stretches of the input, cut between files,"
    reason = (
        f"the {len(homes)} {what} follow one another in time, and {plan.division.reason}; "
        f"{counted(len(between), 'slice')} between them recognised apart, with about {share:.0%} of the events"
    )
    return Placement(PlacementKind.SLICES, reason, _with_counts(slices, counts, plan))


def _slices_by_sample(given: survey.Selected, found: Pieces) -> Placement | str:
    """Slices of about the same size to which all events are shuffled, or why there are none."""
    plan, total = given.plan, found.total
    partitions = int(given.frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or limits.SPARK_SLICES)
    # A power of two, so that parts that are counted begin where slices do.
    most = 1 << max(0, min(limits.SPARK_SLICES, partitions, total // limits.SPARK_SLICE_EVENTS).bit_length() - 1)
    step = 1 << max(0, (total // limits.SPARK_SAMPLE).bit_length() - 1)
    keys = given.sample(step)
    pieces = None
    if not isinstance(plan.division.window, DurationWindow):
        cuts = _quantiles(keys, min(limits.SPARK_SLICES, most * limits.SPARK_PARTS))
        pieces = given.parts(cuts, by_partition=False)
    lookback = _lookback(plan, pieces or found, [keys])
    while most > 1:
        slices = slices_by_key(_quantiles(keys, most), lookback)
        overlap, longest = _shares(slices, keys)
        if len(slices) > 1 and overlap <= limits.SPARK_OVERLAP and longest <= limits.SPARK_LONGEST:
            if plan.positions and pieces is None:
                pieces = given.parts(_edges(slices), by_partition=False)
            width = "that time" if plan.division.late else "the window"
            reason = (
                f"{plan.division.reason}; {len(slices)} slices, which overlap by {width}, {overlap:.0%} of the events"
            )
            return Placement(PlacementKind.SLICES, reason, _with_counts(slices, pieces, plan))
        most //= 2
    return "the window is long compared with the stream"


def _with_counts(slices: Sequence[Slice], pieces: Pieces | None, plan: JobPlan) -> tuple[Slice, ...]:
    """The slices with the numbers of their events, if these are known."""
    return tuple(some if pieces is None else pieces.counted(some, positions=plan.positions) for some in slices)


def _edges(slices: Sequence[Slice]) -> list[int]:
    return sorted({key for some in slices for key in (some.begin, some.start)} - {LEAST})


def _quantiles(keys: Ints, parts: int) -> list[int]:
    """Keys that cut a stream into about this many parts of the same size, from a sample."""
    if not len(keys):
        return []
    at = np.arange(1, parts) * len(keys) // parts
    return list(dict.fromkeys(keys[at].tolist()))


def _shares(slices: list[Slice], keys: Ints) -> tuple[float, float]:
    """Shares of all events, by a sample: the events that slices read besides their own, and the largest slice."""
    begins, starts, stops = (
        np.searchsorted(keys, [getattr(s, name) for s in slices]) for name in ("begin", "start", "stop")
    )
    count = max(1, len(keys))
    return float((starts - begins).sum() / count), float((stops - begins).max() / count)


def files_by_tasks(df: DataFrame, plan: JobPlan, *, skip: bool) -> Planned | None:
    """A read of the files of a DataFrame as given; None if its tasks cannot read the files, or it is not cut."""
    schema = plan.schema
    # Only tasks of a DataFrame know a time that is reached and predicates, and skip values that 64 bits cannot hold.
    if (
        schema.time is None
        or plan.task.until is not None
        or plan.task.predicates is not None
        or (skip and limits_of(schema))
    ):
        return None
    # Rows that a reader could not read are left out before the plan is made.
    files = None if CORRUPT in df.columns else _files(df, {*plan.needed, schema.type})
    if not files:
        return None
    cores = df.sparkSession.sparkContext.defaultParallelism
    try:
        rows = sum({file.path: metadata_of(file).num_rows for file in files}.values())
        length = min(limits.SOURCE_SLICE_ROWS, max(limits.SPARK_SLICE_EVENTS, rows // cores))
        planned = plan_files(plan, files, skip=skip, slice_rows=length, cores=cores)
    except CerflowError:
        # Rows of Spark may still do it; if not, that error is the one to report.
        return None
    several = len(planned.tasks) > 1 and all(task.share is None for task in planned.tasks)
    if planned.rows < limits.SPARK_SMALL_EVENTS or not several or planned.again > limits.SPARK_OVERLAP:
        return None
    if not (planned.certain or skip) or not _read_alike(planned, df, schema.time):
        return None
    return planned if planned.schema.simpleString() == spark_schema(plan.result).simpleString() else None


def _read_alike(planned: Planned, df: DataFrame, time: str) -> bool:
    """Whether Arrow reads the columns of all files as Spark does, and each row group in one piece."""
    if not planned.alike:
        return False
    groups = {group.place: group for task in planned.tasks for group in task.slice.groups}.values()
    least = min((group.least for group in groups if group.least is not None), default=0)
    if any(group.least is None or group.rows > limits.SPARK_HELD_ROWS for group in groups):
        return False
    for name in planned.work.columns.names:
        if name not in planned.stored.names:
            return False
        data_type = planned.stored.field(name).type
        if pa.types.is_nested(data_type):
            return False
        if pa.types.is_temporal(data_type):
            # Statistics show that times of the time column are not so old that calendars differ.
            unit = "ms" if pa.types.is_date32(data_type) else getattr(data_type, "unit", "ns")
            if name != time or unit == "ns" or least * MICROSECONDS[unit] < _CALENDAR:
                return False
        elif name == time and not pa.types.is_signed_integer(data_type):
            return False
        try:
            found = from_arrow_type(data_type, prefer_timestamp_ntz=True)
        except PySparkException:
            return False
        if found.simpleString() != df.schema[name].dataType.simpleString():
            return False
    return True


def _files(df: DataFrame, needed: set[str]) -> list[DataFile] | None:
    """The files of a DataFrame that is columns of local Parquet files and no more, as its partitions read them.

    None if it is another one, if there are too many files, or ``needed`` columns are names of directories.
    """
    try:
        execution = df._jdf.queryExecution()
        given = _named_in_directories(execution.analyzed())
        if given is None or not given.isdisjoint(map(str.casefold, needed)):
            return None
        return _read(execution.executedPlan())
    except Exception:
        # Spark Connect has no plan to look at, and other versions may have another one.
        return None


def _named_in_directories(plan: Any) -> set[str] | None:
    """The columns of a relation that are names of directories; None for a plan that computes or leaves out anything."""
    while plan.getClass().getSimpleName() in ("Project", "SubqueryAlias", "View"):
        if plan.getClass().getSimpleName() == "Project" and any(
            some.getClass().getSimpleName() != "AttributeReference" for some in _elements(plan.projectList())
        ):
            return None
        plan = plan.child()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return None
    relation = plan.relation()
    if relation.fileFormat().getClass().getSimpleName() != "ParquetFileFormat" or relation.bucketSpec().isDefined():
        return None
    return {str(name).casefold() for name in relation.partitionSchema().fieldNames()}


def _read(plan: Any) -> list[DataFile] | None:
    """The parts of files that a physical plan with one scan reads; None if there are too many, or some far away."""
    (scan,) = _elements(plan.collectLeaves())
    (read,) = _elements(scan.inputRDDs())
    found: list[DataFile] = []
    for partition in read.partitions():
        files = partition.files()
        if len(found) + len(files) > limits.SPARK_FOOTERS:
            return None
        for file in files:
            where = urlsplit(file.filePath().urlEncoded())
            path, start = url2pathname(where.path), int(file.start())
            state = os.stat(path)
            if where.scheme != "file" or where.netloc or state.st_size != int(file.fileSize()):
                return None
            part = (start, start + int(file.length()))
            found.append(DataFile("", path, state.st_size, state.st_mtime_ns, part=part))
    return found


def _elements(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(k) for k in range(sequence.size()))
