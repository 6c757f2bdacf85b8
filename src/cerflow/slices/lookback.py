"""The extent of windows along the keys that order a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from cerflow.engine.layout import NULL
from cerflow.slices.pieces import Keys, Pieces
from cerflow.slices.slice import GREATEST, LEAST
from cerflow.values.array_types import Ints

#: For each of some measures the greatest one outside of the window that ends there.
Bounds = Callable[[Ints], Ints]


class Lookback(ABC):
    """How far a window reaches."""

    @abstractmethod
    def begin(self, start: int) -> int:
        """A key such that matches detected at ``start`` or later have no event before it; `LEAST` if there is none."""

    @abstractmethod
    def edge(self, last: int) -> int:
        """A key such that matches detected there or later have no event up to ``last``; `GREATEST` for none."""

    def found_before(self, start: int) -> int | None:
        """The key of an event before ``start`` on which `begin` relies, None if it relies on none."""
        return None


class TimeLookback(Lookback):
    """A window of time; ``bounds`` gives for each key the greatest one outside of the window that ends there."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def _bound(self, key: int) -> int:
        return int(self._bounds(np.array([key]))[0])

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


class LateLookback(Lookback):
    """A lookback that ends with the last event before the one that detects: that event may come any time later.

    ``keys`` are those of events that are certainly there.
    """

    def __init__(self, inner: Lookback, keys: Ints) -> None:
        self._inner = inner
        self._keys: Ints = np.unique(keys)

    def begin(self, start: int) -> int:
        """The first key that the lookback of the last event before contains."""
        last = self.found_before(start)
        return LEAST if last is None else self._inner.begin(last)

    def edge(self, last: int) -> int:
        """The first key after an event with which the inner lookback begins after ``last``."""
        at = int(np.searchsorted(self._keys, self._inner.edge(last)))
        return GREATEST if at == len(self._keys) else int(self._keys[at]) + 1

    def found_before(self, start: int) -> int | None:
        """The key of the last of the known events before ``start``."""
        found = last_key_before(start, self._keys)
        return None if found is None else int(found)


class CountLookback(Lookback):
    """A window that counts events: as many as are sure to lie between two keys."""

    def __init__(self, events: int, pieces: Pieces) -> None:
        self._events = events
        by_low = np.argsort(pieces.low, kind="stable")
        self._by_low = pieces.low[by_low], pieces.high[by_low], pieces.count[by_low]
        by_high = np.argsort(pieces.high, kind="stable")
        self._by_high = pieces.low[by_high], pieces.high[by_high], pieces.count[by_high]

    def begin(self, start: int) -> int:
        """Where the pieces before begin that surely hold the window."""
        first = last_piece_before(start, *self._by_low, self._events)
        return LEAST if first is None else int(self._by_low[0][first])

    def edge(self, last: int) -> int:
        """Where the pieces after end that surely fill the window."""
        low, high, count = self._by_high
        found = 0
        for k in range(int(np.searchsorted(high, last, side="right")), len(low)):
            if low[k] > last:
                found += int(count[k])
            if found >= self._events:
                return int(high[k]) + 1
        return GREATEST


def last_key_before(start: float, keys: Keys) -> int | float | None:
    """The greatest of some ascending keys that is less than ``start``; None if there is none."""
    at = int(np.searchsorted(keys, start))
    return keys[at - 1].item() if at else None


def last_piece_before(start: float, low: Keys, high: Keys, count: Ints, events: int) -> int | None:
    """The last piece that together with those after it surely has this many events before ``start``; None for none.

    All keys of a piece lie in ``[low, high]``; ``low`` ascends.
    """
    found = np.cumsum(np.where(high < start, count, 0)[::-1])
    after = int(np.searchsorted(found, events))
    return None if after == len(found) else len(found) - 1 - after


class AttributeLookback(Lookback):
    """A window on an attribute that does not decrease along the stream; ``bounds`` are those of its measures."""

    def __init__(self, bounds: Bounds, pieces: Pieces) -> None:
        known = pieces.measure != NULL
        low, high, measure = pieces.low[known], pieces.high[known], pieces.measure[known]
        rising = np.argsort(high, kind="stable")
        self._high, self._by_high = high[rising], np.maximum.accumulate(measure[rising])
        self._bounds = bounds(self._by_high)
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
