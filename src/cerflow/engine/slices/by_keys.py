"""Where to cut a stream whose events have keys, and which events each slice needs from before its own.

Keys are 64-bit integers that order the events.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from cerflow.base.array_types import Floats, Ints
from cerflow.engine.layout import NULL

#: Keys before and after all events.
LEAST, GREATEST = -(2**63) + 1, 2**63 - 1
#: Values that order events.
Keys = Ints | Floats
#: For each of some measures the greatest one outside of the window that ends there.
Bounds = Callable[[Ints], Ints]

Place = TypeVar("Place")


@dataclass(frozen=True)
class Slice(Generic[Place]):
    """Events from ``begin`` on are recognised, matches detected in ``[start, stop)`` are reported.

    The places are numbers of rows, or keys: values that order the events. If ``begin`` relies on an event before
    ``start`` that was found there, ``found`` is its place. With a ``home`` all these events are in that partition, and
    other events from ``begin`` to ``start`` change nothing.
    """

    begin: Place
    start: Place
    stop: Place
    found: Place | None = field(default=None, kw_only=True)
    home: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Pieces:
    """Facts about pieces of a stream, one element for each.

    All keys of a piece lie in ``[low, high]``; it has ``count`` events and is (a piece of) partition ``part``. If a
    window measures an attribute, ``measure`` is the greatest there, null if there is none.
    """

    part: Ints
    low: Ints
    high: Ints
    count: Ints
    measure: Ints

    @property
    def total(self) -> int:
        """The number of events."""
        return int(self.count.sum())

    def ordered(self, by: Keys) -> Pieces:
        """The pieces in ascending order of these values."""
        order = np.argsort(by, kind="stable")
        return Pieces(*(column[order] for column in (self.part, self.low, self.high, self.count, self.measure)))

    def before(self, key: int, part: int | None = None) -> int:
        """The events before a key, which lies in no piece, in one partition or all."""
        own = np.full(len(self.low), True) if key == GREATEST else self.low < key
        assert key == GREATEST or (self.high[own] < key).all(), "pieces lie before the key or after it"
        return int(self.count[own if part is None else own & (self.part == part)].sum())


# -- how far a window reaches


class Lookback(ABC):
    """How far a window reaches."""

    @abstractmethod
    def begin(self, start: int) -> int:
        """A key such that matches detected at ``start`` or later have no event before it; `LEAST` if there is none."""

    @abstractmethod
    def edges(self, lasts: Ints) -> Ints:
        """For each key another, from which on matches have no event up to the first one; `GREATEST` for none."""

    def found_before(self, start: int) -> int | None:
        """The key of an event before ``start`` on which `begin` relies, None if it relies on none."""
        return None


class TimeLookback(Lookback):
    """A window of time; ``bounds`` gives for each key the greatest one outside of the window that ends there."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def begin(self, start: int) -> int:
        """The first key inside the window."""
        return max(LEAST, int(self._bounds(np.array([start]))[0]) + 1)

    def edges(self, lasts: Ints) -> Ints:
        """The first keys whose windows begin after."""
        low, high = lasts, np.full(len(lasts), GREATEST)
        while (high - 1 > low).any():
            # The mean, without a sum of more than 64 bits.
            middle = (low & high) + ((low ^ high) >> 1)
            beyond = self._bounds(middle) >= lasts
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
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

    def edges(self, lasts: Ints) -> Ints:
        """The first keys after an event with which the inner lookback begins after."""
        at = np.searchsorted(self._keys, self._inner.edges(lasts))
        return np.append(_after(self._keys), GREATEST)[at]

    def found_before(self, start: int) -> int | None:
        """The key of the last of the known events before ``start``."""
        found = last_key_before(start, self._keys)
        return None if found is None else int(found)


class CountLookback(Lookback):
    """A window that counts events: as many as are sure to lie between two keys."""

    def __init__(self, events: int, pieces: Pieces) -> None:
        self._events = events
        self._pieces = pieces.ordered(pieces.low)

    def begin(self, start: int) -> int:
        """Where the pieces before begin that surely hold the window."""
        pieces = self._pieces
        first = last_piece_before(start, pieces.low, pieces.high, pieces.count, self._events)
        return LEAST if first is None else int(pieces.low[first])

    def edges(self, lasts: Ints) -> Ints:
        """Where the pieces after end that surely fill the window."""
        pieces = self._pieces
        ends, so_far = _after(np.maximum.accumulate(pieces.high)), np.append(0, np.cumsum(pieces.count))
        filled = np.searchsorted(so_far, so_far[np.searchsorted(pieces.low, lasts, "right")] + self._events)
        return np.append(ends, GREATEST)[filled - 1]


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

    def begin(self, start: int) -> int:
        """Where the first piece begins that has a measure inside the window."""
        before = int(np.searchsorted(self._high, start, side="left"))
        if not before:
            return LEAST
        inside = np.flatnonzero(self._by_low > self._bounds[before - 1])
        return min(start, int(self._low[inside[0]]))

    def edges(self, lasts: Ints) -> Ints:
        """Where the first pieces end whose measures are a window greater than any before."""
        upto = np.searchsorted(self._low, lasts, "right")
        greatest = np.maximum.accumulate(self._by_low)[np.maximum(upto - 1, 0)] if len(self._by_low) else lasts
        beyond = np.maximum(np.searchsorted(self._bounds, greatest), np.searchsorted(self._high, lasts, "right"))
        return np.where(upto == 0, _after(lasts), np.append(_after(self._high), GREATEST)[beyond])


def _after(keys: Ints) -> Ints:
    return np.minimum(keys, GREATEST - 1) + 1


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


# -- slices


def slices_by_key(starts: Sequence[int], lookback: Lookback, least: int, greatest: int) -> list[Slice[int]]:
    """The slices of a whole stream, whose keys lie in ``[least, greatest]``, that begin at these keys (ascending).

    The first one always begins with the stream.
    """
    inner = [start for start in dict.fromkeys(starts) if least < start <= greatest]
    return [_slice(start, stop, lookback, least) for start, stop in pairwise([LEAST, *inner, GREATEST])]


def _slice(start: int, stop: int, lookback: Lookback, least: int) -> Slice[int]:
    begin = LEAST if start == LEAST else min(lookback.begin(start), start)
    if begin <= least:
        return Slice(LEAST, start, stop)
    return Slice(begin, start, stop, found=lookback.found_before(start))


def slices_at_home(pieces: Pieces, lookback: Lookback) -> list[Slice[int]]:
    """The slices of a whole stream of partitions: those with a home, and between them those with events of several.

    A piece reaches from its first event to the last detection that may depend on one of its events. Where pieces of one
    partition alone reach, detections depend on no other. Partitions may come, and return, in any order.
    """
    pieces = pieces.ordered(pieces.low)
    low, part, last = pieces.low, pieces.part, np.maximum.accumulate(pieces.high)
    furthest = np.maximum.accumulate(np.where(pieces.high == last, np.arange(len(low)), 0))
    reached = lookback.edges(pieces.high)
    reached = np.where(reached > last[-1], GREATEST, reached)
    shared: dict[int, int] = {}
    start, stop = LEAST, LEAST
    for key, after in zip(low.tolist(), np.minimum(_reached_by_others(part, reached), reached).tolist(), strict=True):
        if after > key:
            if not shared or key > stop:
                start = LEAST if key == low[0] else key
            shared[start] = stop = max(stop, after)
    changes = low[1:][part[1:] != part[:-1]]
    ends = np.array([LEAST, *shared.values()])
    inside = changes < ends[np.searchsorted(np.array([*shared]), changes, "right")]
    cuts = {LEAST, *shared, *shared.values(), *changes[~inside & (changes > low[0])].tolist()} - {GREATEST}
    found: list[Slice[int]] = []
    for start, stop in pairwise([*sorted(cuts), GREATEST]):
        if start in shared:
            found.append(_slice(start, stop, lookback, int(low[0])))
            continue
        at = int(np.searchsorted(low, stop)) - 1
        home = int(part[at if low[at] >= start else furthest[at]])
        if found and found[-1].home == home:
            found[-1] = replace(found[-1], stop=stop)
        else:
            found.append(Slice(found[-1].start if found and found[-1].home is None else start, start, stop, home=home))
    return found


def _reached_by_others(part: Ints, reached: Ints) -> Ints:
    """For each piece how far those of other partitions before it reach, of all these the furthest."""
    found = np.full(len(part), LEAST)
    first, second, owner = LEAST, LEAST, None
    for k, (own, key) in enumerate(zip(part.tolist(), reached.tolist(), strict=True)):
        found[k] = second if own == owner else first
        if own == owner:
            first = max(first, key)
        elif key > first:
            first, second, owner = key, first, own
        else:
            second = max(second, key)
    return found


def load(slices: Sequence[Slice[int]], pieces: Pieces) -> int:
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
