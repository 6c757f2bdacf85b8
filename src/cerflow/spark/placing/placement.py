"""Which task gets which events: all of them to one, those of a key to one, or slices of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import counted
from cerflow.engine.slices import by_keys
from cerflow.engine.slices.by_keys import LEAST, Lookback, Pieces, Slice, slices_at_home, slices_by_key
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow
from cerflow.spark.frames.axis import Axis, bounds_of, exact
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.frames.plan import JobPlan
from cerflow.spark.placing import survey
from cerflow.spark.placing.positions import end_of_events
from cerflow.spark.source.planned import Planned

_NO_KEYS: Ints = np.zeros(0, np.int64)


class PlacementKind(StrEnum):
    """How the events of a query are divided among tasks."""

    ONE_TASK = "in one ordered task"
    BY_KEY = "in parallel by key"
    SLICES = "in slices of time"


@dataclass(frozen=True)
class Cut:
    """Slices of the whole stream, in the order of time: those with a home stay where they are, others are shuffled.

    ``counted`` are the events between the keys where slices begin and start, if these had to be counted.
    """

    slices: tuple[Slice[int], ...]
    counted: Pieces | None

    @property
    def shuffled(self) -> list[Slice[int]]:
        """The slices without a home."""
        return [some for some in self.slices if some.home is None]

    @property
    def at_home(self) -> list[Slice[int]]:
        """The slices with a home."""
        return [some for some in self.slices if some.home is not None]


@dataclass(frozen=True)
class Placement:
    """The decision, and the reason for it; a time says that a clock shows deadlines up to it (see `end_of_events`)."""

    kind: PlacementKind
    reason: str
    how: Cut | Planned | pa.Array | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def place(
    frame: DataFrame, plan: JobPlan, events: EventColumns, by_tasks: Callable[[], Planned | None] = lambda: None
) -> Placement:
    """Decide for the events of a query, in a DataFrame with plain names.

    Runs no job if the query cannot be divided, or if Spark knows that the DataFrame is small; else one that reads the
    ordering column, and one or two more if all events have to be shuffled. ``by_tasks`` is asked before for slices that
    need no shuffle.
    """
    return _Placing(frame, plan, events, by_tasks).placed()


class _Placing:
    def __init__(
        self, frame: DataFrame, plan: JobPlan, events: EventColumns, by_tasks: Callable[[], Planned | None]
    ) -> None:
        self._frame = frame
        self._by_tasks = by_tasks
        self._plan = plan
        self._events = events
        self._axis = Axis(plan.schema)
        self._window = plan.division.window
        self._surveyor = survey.Surveyor(frame, events, self._axis, self._window)
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
        how = self._by_tasks()
        if how is not None:
            return Placement(PlacementKind.SLICES, f"tasks read the files themselves; {how.explanation}", how)
        guess = self._guess
        if self._guess.is_small:
            return self._otherwise("the input is small")
        if not guess.stays and (plan.by_key or schema.time is None):
            return self._otherwise("whether the input is in the order of time is not known before it is computed")
        by_file = guess.stays and schema.time is not None
        found = self._surveyor.partitions(by_file=by_file)
        if not (found.sure == found.count).all():
            return self._otherwise("some events cannot be used")
        if found.total < limits.SPARK_SMALL_EVENTS:
            return self._otherwise("the input is small")
        at_home = self._at_home(found) if guess.stays else None
        if at_home is not None:
            return at_home
        # Otherwise all events are shuffled.
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

    def _otherwise(self, why: str) -> Placement:
        plan = self._plan
        if plan.by_key:
            return Placement(PlacementKind.BY_KEY, f"each key has its own matches (no slices of time: {why})")
        if plan.by_clock and exact(plan.schema) and not self._guess.is_small:
            how = end_of_events(self._frame, self._events, plan.task.until)
            if how is not None:
                reason = "a clock shows deadlines to each key, and the times of all events say when they are known"
                return Placement(PlacementKind.BY_KEY, f"{reason} (no slices of time: {why})", how)
        return Placement(PlacementKind.ONE_TASK, why)

    @cached_property
    def _guess(self) -> survey.Estimate:
        return survey.estimate(self._frame)

    def _lookback(self, pieces: Pieces, keys: Ints = _NO_KEYS) -> Lookback:
        """How far back matches go, by pieces of the stream and the ``keys`` of more of its events."""
        window = self._window
        if isinstance(window, DurationWindow):
            inside = partial(by_keys.first_in_time, self._axis.bounds(window))
            late = self._plan.division.late
            return Lookback(inside, np.unique(np.concatenate([pieces.low, pieces.high, keys])) if late else None)
        if isinstance(window, CountWindow):
            return Lookback(partial(by_keys.first_in_count, window.events, pieces))
        assert isinstance(window, AttributeWindow)
        return Lookback(
            partial(by_keys.first_in_attribute, bounds_of(window, window.attribute, self._plan.schema), pieces)
        )

    def _at_home(self, pieces: Pieces) -> Placement | None:
        """Slices where they are, and those between them; None if these would have too many events."""
        slices = slices_at_home(pieces, self._lookback(pieces))
        how = Cut(tuple(slices), None)
        share = pieces.load(how.shuffled) / pieces.total
        if share > limits.SPARK_BOUNDARY or not how.at_home:
            self._between = share
            return None
        if self._plan.positions or not isinstance(self._window, DurationWindow):
            how = replace(how, counted=self._surveyor.parts(_edges(slices), by_partition=True))
        partitions = len(how.at_home) == len({some.home for some in how.at_home})
        what = "partitions of the input" if partitions else "stretches of the input, cut between files,"
        reason = (
            f"the {len(how.at_home)} {what} follow one another in time, and {self._plan.division.reason}; "
            f"{counted(len(how.shuffled), 'slice')} between them recognised apart, with about {share:.0%} of the events"
        )
        return Placement(PlacementKind.SLICES, reason, how)

    def _cut(self, found: Pieces) -> Placement:
        """Slices to which all events are shuffled."""
        total = found.total
        shuffled = int(self._frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or limits.SPARK_SLICES)
        # A power of two, so that parts that are counted begin where slices do.
        most = 1 << max(0, min(limits.SPARK_SLICES, shuffled, total // limits.SPARK_SLICE_EVENTS).bit_length() - 1)
        step = 1 << max(0, (total // limits.SPARK_SAMPLE).bit_length() - 1)
        keys = self._surveyor.sample(step)
        pieces = None
        if not isinstance(self._window, DurationWindow):
            cuts = _quantiles(keys, min(limits.SPARK_SLICES, most * limits.SPARK_PARTS))
            pieces = self._surveyor.parts(cuts, by_partition=False)
        lookback = self._lookback(found if pieces is None else pieces, keys)
        while most > 1:
            slices = slices_by_key(_quantiles(keys, most), lookback, found)
            overlap, longest = _shares(slices, keys)
            if len(slices) > 1 and overlap <= limits.SPARK_OVERLAP and longest <= limits.SPARK_LONGEST:
                if self._plan.positions and pieces is None:
                    pieces = self._surveyor.parts(_edges(slices), by_partition=False)
                width = "that time" if self._plan.division.late else "the window"
                reason = (
                    f"{self._plan.division.reason}; {len(slices)} slices, which overlap by {width}, "
                    f"{overlap:.0%} of the events"
                )
                return Placement(PlacementKind.SLICES, reason, Cut(tuple(slices), pieces))
            most //= 2
        return self._otherwise("the window is long compared with the stream")


def _edges(slices: Sequence[Slice[int]]) -> list[int]:
    """The keys where slices begin and start."""
    return sorted({key for some in slices for key in (some.begin, some.start)} - {LEAST})


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
