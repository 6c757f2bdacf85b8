"""Slices of a stream: where to cut, and which events each slice needs from before its own.

A slice is (begin, start, stop), keys of an `Axis`: events from ``begin`` on are recognised, matches detected from
``start`` on are reported, events from ``stop`` on are not read. All of it is arithmetic on what is known of pieces of
the stream; Spark has no part in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cerflow.engine.layout import NULL
from cerflow.language.formula import Window
from cerflow.spark.frames.axis import GREATEST, LEAST, Axis

__all__ = ["Counting", "Lasting", "Measured", "Pieces", "Reach", "Slice", "boundaries", "cut", "held", "load"]

Ints = NDArray[np.int64]
#: For keys of an attribute the greatest ones outside of a window on it.
Bound = Callable[[Ints], Ints]


@dataclass(frozen=True)
class Slice:
    """See the module; `LEAST` is where the stream begins, `GREATEST` where it ends."""

    begin: int
    start: int
    stop: int


@dataclass(frozen=True)
class Pieces:
    """What is known of pieces of a stream, one element each.

    All keys of a piece lie in ``[low, high]``; it has ``count`` events and is (a piece of) partition ``part``. If a
    window measures an attribute, ``measure`` is the greatest there, null if there is none.
    """

    part: Ints
    low: Ints
    high: Ints
    count: Ints
    measure: Ints

    def of(self, part: int) -> Pieces:
        """The pieces of one partition."""
        rows = self.part == part
        return Pieces(self.part[rows], self.low[rows], self.high[rows], self.count[rows], self.measure[rows])

    def parts(self) -> list[int]:
        """The partitions in the order of time."""
        numbers, at = np.unique(self.part, return_inverse=True)
        low = np.full(len(numbers), GREATEST)
        np.minimum.at(low, at, self.low)
        found: list[int] = numbers[np.argsort(low, kind="stable")].tolist()
        return found

    @property
    def total(self) -> int:
        """The number of events."""
        return int(self.count.sum())


class Reach(ABC):
    """How far a window reaches."""

    @abstractmethod
    def begin(self, start: int) -> int:
        """A key such that matches detected at ``start`` or later have no event before it; `LEAST` if there is none."""

    @abstractmethod
    def edge(self, last: int) -> int:
        """A key such that matches detected there or later have no event up to ``last``; `GREATEST` for none."""


class Lasting(Reach):
    """A window of time, by the engine's own arithmetic."""

    def __init__(self, window: Window, axis: Axis) -> None:
        self._window = window
        self._axis = axis

    def _bound(self, key: int) -> int:
        return int(self._axis.bounds(self._window, np.array([key]))[0])

    def begin(self, start: int) -> int:
        """The first key inside the window."""
        return max(LEAST, self._bound(start) + 1)

    def edge(self, last: int) -> int:
        """The first key whose window begins after ``last``."""
        low, high = last, GREATEST
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._bound(middle) >= last else (middle, high)
        return high


class Counting(Reach):
    """A window that counts events: as many as are sure to lie between two keys."""

    def __init__(self, events: int, pieces: Pieces) -> None:
        self._events = events
        by_low = np.argsort(-pieces.low, kind="stable")
        self._falling = pieces.low[by_low], pieces.high[by_low], pieces.count[by_low]
        by_high = np.argsort(pieces.high, kind="stable")
        self._rising = pieces.low[by_high], pieces.high[by_high], pieces.count[by_high]

    def begin(self, start: int) -> int:
        """Where the pieces before begin that surely hold the window."""
        low, high, count = self._falling
        at = int(np.searchsorted(-low, -start, side="right"))
        found = 0
        for k in range(at, len(low)):
            if high[k] < start:
                found += int(count[k])
            if found >= self._events:
                return int(low[k])
        return LEAST

    def edge(self, last: int) -> int:
        """Where the pieces after end that surely fill the window."""
        low, high, count = self._rising
        found = 0
        for k in range(int(np.searchsorted(high, last, side="right")), len(low)):
            if low[k] > last:
                found += int(count[k])
            if found >= self._events:
                return int(high[k]) + 1
        return GREATEST


class Measured(Reach):
    """A window on an attribute that does not decrease along the stream."""

    def __init__(self, bound: Bound, pieces: Pieces) -> None:
        known = pieces.measure != NULL
        low, high, measure = pieces.low[known], pieces.high[known], pieces.measure[known]
        rising = np.argsort(high, kind="stable")
        self._high, self._by_high = high[rising], np.maximum.accumulate(measure[rising])
        self._bounds = bound(self._by_high)
        falling = np.argsort(low, kind="stable")
        self._low, self._by_low = low[falling], measure[falling]
        self._so_far = np.maximum.accumulate(self._by_low)

    def begin(self, start: int) -> int:
        """Where the first piece begins that has a measure inside the window."""
        before = int(np.searchsorted(self._high, start, side="left"))
        if not before:
            return LEAST
        inside = np.flatnonzero(self._by_low > self._bounds[before - 1])
        return min(start, int(self._low[inside[0]]))

    def edge(self, last: int) -> int:
        """Where the first piece ends whose measure is a window greater than any up to ``last``."""
        upto = int(np.searchsorted(self._low, last, side="right"))
        if not upto:
            return last + 1
        beyond = np.flatnonzero((self._bounds >= self._so_far[upto - 1]) & (self._high > last))
        return int(self._high[beyond[0]]) + 1 if len(beyond) else GREATEST


def cut(starts: Sequence[int], reach: Reach, least: int, greatest: int) -> list[Slice]:
    """The slices of a whole stream, whose keys lie in ``[least, greatest]``, that begin at these keys (ascending).

    The first one begins with the stream in any case.
    """
    inner = [start for start in dict.fromkeys(starts) if least < start <= greatest]
    begins = [LEAST, *(_clipped(min(reach.begin(start), start), least) for start in inner)]
    return [
        Slice(begin, start, stop)
        for begin, start, stop in zip(begins, [LEAST, *inner], [*inner, GREATEST], strict=True)
    ]


def boundaries(pieces: Pieces, reach: Reach) -> list[Slice]:
    """The slices around the cuts between partitions, in the order of time and apart from each other.

    Partitions are taken in the order of their least keys, whatever their numbers: Spark arranges files by their size.
    What is detected outside of them depends on the events of its own partition only: those of the partitions before
    are further back than the window, those of the partitions after are later.
    """
    parts, at = np.unique(pieces.part, return_inverse=True)
    low, high = np.full(len(parts), GREATEST), np.full(len(parts), LEAST)
    np.minimum.at(low, at, pieces.low)
    np.maximum.at(high, at, pieces.high)
    rank = np.argsort(low, kind="stable")
    after, before = low[rank], np.maximum.accumulate(high[rank])
    least, greatest = int(after[0]), int(before[-1])
    found: list[Slice] = []
    for k in range(len(parts) - 1):
        start, stop = int(after[k + 1]), reach.edge(int(before[k]))
        stop = GREATEST if stop > greatest else stop
        if start >= stop:
            continue
        if found and start <= found[-1].stop:
            last = found.pop()
            found.append(Slice(last.begin, last.start, max(last.stop, stop)))
        else:
            found.append(Slice(_clipped(min(reach.begin(start), start), least), start, stop))
    return found


def _clipped(begin: int, least: int) -> int:
    return LEAST if begin <= least else begin


def load(slices: Sequence[Slice], pieces: Pieces) -> int:
    """About how many events are read for these slices, as if the keys of a piece were spread evenly."""
    low, high = pieces.low.astype(float), pieces.high.astype(float) + 1
    high = np.maximum(high, np.nextafter(low, np.inf))
    rate = pieces.count / (high - low)
    bends = np.concatenate([low, high])
    order = np.argsort(bends, kind="stable")
    bends, slope = bends[order], np.cumsum(np.concatenate([rate, -rate])[order])
    before = np.append(0.0, np.cumsum(slope[:-1] * np.diff(bends)))
    begins, stops = (np.array([getattr(s, name) for s in slices], float) for name in ("begin", "stop"))
    return round(float((np.interp(stops, bends, before) - np.interp(begins, bends, before)).sum()))


def held(pieces: Pieces, *, ties: bool, most: int) -> Ints | None:
    """For the pieces of one partition, as they come, the least key of each and all after it.

    A task that lets go, before each piece, of what is less than that (with ``ties``: not greater), puts the partition
    in order. None if it would have to hold more than ``most`` rows, beside a piece.
    """
    to_come = np.minimum.accumulate(pieces.low[::-1])[::-1]
    waiting: list[tuple[int, int]] = []
    for k, following in enumerate(to_come[1:].tolist()):
        waiting.append((int(pieces.high[k]), int(pieces.count[k])))
        waiting = [w for w in waiting if (w[0] > following if ties else w[0] >= following)]
        if sum(rows for _, rows in waiting) > most:
            return None
    return to_come
