"""Which task gets which events: all of them to one, those of a key to one, or slices of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial

import numpy as np
from pyspark.sql import DataFrame

from cerflow import limits
from cerflow.errors import counted
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow
from cerflow.slices.by_keys import boundaries, slices_by_key
from cerflow.slices.lookback import AttributeLookback, CountLookback, LateLookback, Lookback, TimeLookback
from cerflow.slices.pieces import Pieces, follow_each_other, held, load, stretches
from cerflow.slices.slice import LEAST, Slice
from cerflow.spark.frames.axis import Axis, exact
from cerflow.spark.frames.events import EventColumns, number_of_cuts
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.placing.by_clock import ByClock, by_clock
from cerflow.spark.placing.files_by_tasks import FilesByTasks
from cerflow.spark.placing.slice_tasks import Stretch
from cerflow.spark.placing.statistics import pieces_of_files
from cerflow.spark.placing.survey import (
    Estimate,
    PartitionSurvey,
    bounds_of,
    estimate,
    sample,
    survey_partitions,
    survey_parts,
)
from cerflow.values.array_types import Ints

_NO_KEYS: Ints = np.zeros(0, np.int64)


class PlacementKind(StrEnum):
    """How the events of a query are divided among tasks."""

    ONE_TASK = "in one ordered task"
    BY_KEY = "in parallel by key"
    SLICES = "in slices of time"


@dataclass(frozen=True)
class Cut:
    """Slices of the whole stream, to which all events are shuffled; ``pieces`` say how many there are, if counted."""

    slices: tuple[Slice[int], ...]
    pieces: Pieces | None


@dataclass(frozen=True)
class Clustered:
    """Stretches of partitions that stay where they are, in the order of time, and slices around the cuts between them.

    With ``in_order`` tasks put their rows in order by themselves; else each partition is a stretch, and Spark sorts it.
    ``files`` gives the place of the stretch with the rows of a file in a partition; ``by_file`` is for `file_of_row`.
    Unless ``counted`` the stretches have no more rows than they say, and their pieces follow each other in time.
    """

    stretches: tuple[Stretch, ...]
    boundaries: tuple[Slice[int], ...]
    in_order: bool
    files: Mapping[tuple[int, int], int]
    by_file: bool
    counted: bool = True


@dataclass(frozen=True)
class Placement:
    """The decision, and the reason for it."""

    kind: PlacementKind
    reason: str
    how: Cut | Clustered | FilesByTasks | ByClock | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def place(
    frame: DataFrame,
    plan: JobPlan,
    events: EventColumns,
    by_tasks: Callable[[], FilesByTasks | None] = lambda: None,
) -> Placement:
    """Decide for the events of a query, in a DataFrame with plain names.

    Runs no job if the query cannot be divided, or if Spark knows that the DataFrame is small; else one that reads the
    ordering column, and one or two more if all events have to be shuffled. ``by_tasks`` is asked before for slices that
    need no shuffle.
    """
    return _Placing(frame, plan, events, by_tasks).placed()


class _Placing:
    def __init__(
        self, frame: DataFrame, plan: JobPlan, events: EventColumns, by_tasks: Callable[[], FilesByTasks | None]
    ) -> None:
        self._frame = frame
        self._by_tasks = by_tasks
        self._plan = plan
        self._events = events
        self._axis = Axis(plan.schema)
        self._window = plan.division.window
        #: The share of the events around cuts between stretches, if that is why these do not stay where they are.
        self._between = math.inf

    def placed(self) -> Placement:
        plan, schema = self._plan, self._plan.schema
        if self._window is None:
            return self._otherwise(plan.division.reason)
        if not exact(schema):
            return self._otherwise(f"Spark may compare the values of '{schema.time}' differently")
        if schema.time is None and plan.sequence is not None:
            return self._otherwise("the order is that of a sequence, without a time")
        # Spark's estimate takes longer than a look at the files.
        told = self._told()
        if told is not None:
            return told
        guess = self._guess
        if self._is_small:
            return self._otherwise("the input is small")
        if not guess.stays and (plan.by_key or schema.time is None):
            return self._otherwise("whether the input is in the order of time is not known before it is computed")
        by_file = guess.stays and schema.time is not None
        found = survey_partitions(
            self._frame, self._events, self._axis, self._window, limits.SPARK_PIECE_BITS, by_file=by_file
        )
        if not found.complete:
            return self._otherwise("some events cannot be used")
        if found.pieces.total < limits.SPARK_SMALL_EVENTS:
            return self._otherwise("the input is small")
        clustered = self._clustered(found) if guess.stays else None
        # Otherwise all events are shuffled.
        placement = clustered or self._read_by_tasks()
        if placement is not None:
            return placement
        if plan.by_key and self._between < 1:
            return self._otherwise(
                f"within a window around cuts between files are {self._between:.0%} of the events; fewer and larger "
                "files would change that, or the data source cerflow, which reads on in the next file"
            )
        if plan.by_key:
            return self._otherwise("the input is not in the order of time")
        if schema.time is None:
            return self._otherwise("the window is long compared with the partitions of the input")
        return self._cut(found)

    def _told(self) -> Placement | None:
        """Files as they are, if their statistics tell that this can be done; then nothing has to be counted."""
        plan, time = self._plan, self._plan.schema.time
        # Deadlines and windows of events depend on which events there are.
        if time is None or plan.positions or plan.division.late or not isinstance(self._window, DurationWindow):
            return None
        data_type = plan.schema.columns.field(time).type
        found = pieces_of_files(self._frame, self._events.leading(), data_type, self._axis)
        if found is None:
            return None
        if found.pieces.total < limits.SPARK_SMALL_EVENTS:
            return self._otherwise("the input is small")
        numbers = stretches(found.pieces, found.files)
        follow = follow_each_other(found.pieces, numbers)
        lying = self._lying(found, numbers) if follow else self._clustered(found)
        if lying is None:
            return self._read_by_tasks()
        # Pieces that do not follow each other have to be counted.
        return lying if follow else None

    def _read_by_tasks(self) -> Placement | None:
        """Files that tasks read by themselves, across the cuts between files."""
        how = self._by_tasks()
        if how is None:
            return None
        why = "tasks read the files themselves, as the rows of Spark would have to be shuffled"
        return Placement(PlacementKind.SLICES, f"{why}; {how.reason}", how)

    def _otherwise(self, why: str) -> Placement:
        plan = self._plan
        if plan.by_key:
            return Placement(PlacementKind.BY_KEY, f"each key has its own matches (no slices of time: {why})")
        if plan.by_clock and exact(plan.schema) and not self._is_small:
            how = by_clock(self._frame, self._events, plan.until)
            if how is not None:
                reason = "a clock shows deadlines to each key, and the times of all events say when they are known"
                return Placement(PlacementKind.BY_KEY, f"{reason} (no slices of time: {why})", how)
        return Placement(PlacementKind.ONE_TASK, why)

    @cached_property
    def _guess(self) -> Estimate:
        return estimate(self._frame)

    @property
    def _is_small(self) -> bool:
        """Whether Spark knows that the input is small."""
        return self._guess.size is not None and self._guess.size < limits.SPARK_SMALL_BYTES

    def _lookback(self, pieces: Pieces, keys: Ints = _NO_KEYS) -> Lookback:
        """How far back matches go, by pieces of the stream and the ``keys`` of more of its events."""
        window = self._window
        if isinstance(window, DurationWindow):
            lookback = TimeLookback(partial(self._axis.bounds, window))
            if self._plan.division.late:
                return LateLookback(lookback, np.concatenate([pieces.low, pieces.high, keys]))
            return lookback
        if isinstance(window, CountWindow):
            return CountLookback(window.events, pieces)
        assert isinstance(window, AttributeWindow)
        return AttributeLookback(bounds_of(window, self._events), pieces)

    def _clustered(self, found: PartitionSurvey) -> Placement | None:
        """Files, or else whole partitions, as they are; None if they do not lie one after the other."""
        divisions = [stretches(found.pieces, found.files), found.pieces.part]
        if isinstance(self._window, DurationWindow):
            # As few as possible: what lies around cuts between stretches is read twice.
            divisions.insert(0, stretches(found.pieces, found.files, partial(self._axis.bounds, self._window)))
        sizes = [len(np.unique(numbers)) for numbers in divisions]
        tried = (self._lying(found, divisions[sizes.index(size)]) for size in dict.fromkeys(sizes))
        return next((placement for placement in tried if placement is not None), None)

    def _lying(self, found: PartitionSurvey, numbers: Ints) -> Placement | None:
        """The stretches with these numbers, one for each piece, as they are."""
        part = found.pieces.part
        pieces = replace(found.pieces, part=numbers)
        between = boundaries(pieces, self._lookback(pieces))
        share = load(between, pieces) / pieces.total
        if share > limits.SPARK_BOUNDARY:
            self._between = min(self._between, share)
            return None
        ties = self._plan.sequence is None
        lying: list[Stretch] = []
        files: dict[tuple[int, int], int] = {}
        in_order, offset = True, 0
        for place, number in enumerate(pieces.parts()):
            own = pieces.of(number)
            mine = numbers == number
            lying.append(Stretch(int(part[mine][0]), int(np.flatnonzero(mine)[0]), own, offset))
            files |= dict.fromkeys(zip(part[mine].tolist(), found.files[mine].tolist(), strict=True), place)
            offset += own.total
            in_order = in_order and held(own, ties=ties, most=limits.SPARK_HELD_ROWS) is not None
        partitions = len(np.unique(part))
        if len(lying) > partitions and not in_order:
            # Spark sorts whole partitions.
            return None
        what = "partitions of the input" if len(lying) == partitions else "stretches of the input, cut between files,"
        reason = (
            f"the {len(lying)} {what} follow one another in time, and "
            f"{self._plan.division.reason}; {counted(len(between), 'slice')} between them recognised apart, with about "
            f"{share:.0%} of the events"
        )
        how = Clustered(tuple(lying), tuple(between), in_order, files, found.by_file, found.counted)
        return Placement(PlacementKind.SLICES, reason, how)

    def _cut(self, found: PartitionSurvey) -> Placement:
        """Slices to which all events are shuffled."""
        total = found.pieces.total
        shuffled = int(self._frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or limits.SPARK_SLICES)
        # A power of two, so that parts that are counted begin where slices do.
        most = 1 << max(0, min(limits.SPARK_SLICES, shuffled, total // limits.SPARK_SLICE_EVENTS).bit_length() - 1)
        step = 1 << max(0, (total // limits.SPARK_SAMPLE).bit_length() - 1)
        keys = sample(self._frame, self._events, self._axis, step)
        least, greatest = int(found.pieces.low.min()), int(found.pieces.high.max())
        pieces = None
        if not isinstance(self._window, DurationWindow):
            pieces = self._counted(_quantiles(keys, min(limits.SPARK_SLICES, most * limits.SPARK_PARTS)))
        lookback = self._lookback(found.pieces if pieces is None else pieces, keys)
        while most > 1:
            slices = slices_by_key(_quantiles(keys, most), lookback, least, greatest)
            overlap, longest = _shares(slices, keys)
            if len(slices) > 1 and overlap <= limits.SPARK_OVERLAP and longest <= limits.SPARK_LONGEST:
                if self._plan.positions and pieces is None:
                    pieces = self._counted(sorted({k for s in slices[1:] for k in (s.begin, s.start) if k != LEAST}))
                width = "that time" if self._plan.division.late else "the window"
                reason = (
                    f"{self._plan.division.reason}; {len(slices)} slices, which overlap by {width}, "
                    f"{overlap:.0%} of the events"
                )
                return Placement(PlacementKind.SLICES, reason, Cut(tuple(slices), pieces))
            most //= 2
        return self._otherwise("the window is long compared with the stream")

    def _counted(self, cuts: list[int]) -> Pieces:
        part = number_of_cuts(self._events.leading(), self._axis, cuts)
        return survey_parts(self._frame, part, self._events, self._axis, self._window).pieces


def _quantiles(keys: Ints, parts: int) -> list[int]:
    """Keys that cut a stream into about this many parts of the same size, from a sample."""
    if not len(keys):
        return []
    at = np.arange(1, parts) * len(keys) // parts
    return list(dict.fromkeys(keys[at].tolist()))


def _shares(slices: list[Slice[int]], keys: Ints) -> tuple[float, float]:
    """Shares of all events, by a sample: the events that slices read besides their own, and the largest slice."""
    begins, starts, stops = (
        np.searchsorted(keys, [getattr(s, name) for s in slices]) for name in ("begin", "start", "stop")
    )
    count = max(1, len(keys))
    return float((starts - begins).sum() / count), float((stops - begins).max() / count)
