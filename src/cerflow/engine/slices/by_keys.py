"""Where to cut a stream whose events have keys, and which events each slice needs from before its own.

Keys are values that order the events. What is known of them is said of pieces of the stream: parts of partitions, or
row groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from cerflow.base.array_types import Floats, Ints
from cerflow.engine.layout import NULL

#: Keys before and after all events, if keys are integers; infinity if they are floats.
LEAST, GREATEST = -(2**63) + 1, 2**63 - 1
#: Values that order events.
Keys = Ints | Floats
Key = int | float
#: For each of some measures the greatest one outside of the window that ends there.
Bounds = Callable[[Ints], Ints]

Place = TypeVar("Place", bound=Key)


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

    @property
    def is_last(self) -> bool:
        """Whether it reaches to the end of the stream, if places are keys."""
        return self.stop in (GREATEST, math.inf)


class Pieces:
    """Facts about pieces of a stream, one element for each, in the order of ``low``.

    All keys of a piece lie in ``[low, high]``; it has ``count`` events and is (a piece of) partition ``part``. At least
    ``sure`` events of it can be used. If a window measures an attribute, ``measure`` is the greatest there, null if
    there is none.
    """

    def __init__(
        self, part: Ints, low: Keys, high: Keys, count: Ints, measure: Ints | None = None, sure: Ints | None = None
    ) -> None:
        order = np.argsort(low, kind="stable")
        self.part, self.low, self.high, self.count = part[order], low[order], high[order], count[order]
        self.measure: Ints = np.full(len(low), NULL) if measure is None else measure[order]
        self.sure: Ints = self.count if sure is None else sure[order]

    @property
    def total(self) -> int:
        """The number of events."""
        return int(self.count.sum())

    @property
    def ends(self) -> tuple[Key, Key]:
        """Keys before and after all events."""
        return (-math.inf, math.inf) if self.low.dtype.kind == "f" else (LEAST, GREATEST)

    def before(self, key: int, part: int | None = None) -> int:
        """The events before a key, which lies in no piece, in one partition or all."""
        own = np.full(len(self.low), True) if key == GREATEST else self.low < key
        assert key == GREATEST or (self.high[own] < key).all(), "pieces lie before the key or after it"
        return int(self.count[own if part is None else own & (self.part == part)].sum())

    @cached_property
    def _reached(self) -> Keys:
        found: Keys = np.maximum.accumulate(self.high)
        return found

    def touching(self, begin: Key, stop: Key) -> Ints:
        """The pieces that may have events with keys in ``[begin, stop)``."""
        low, high = int(np.searchsorted(self._reached, begin)), int(np.searchsorted(self.low, stop))
        some = np.arange(low, max(low, high))
        return some[self.high[some] >= begin]

    def shares(self, some: Ints, begin: Key, stop: Key) -> Floats:
        """About how many events of pieces have keys in ``[begin, stop)``, as if they were spread evenly."""
        low = self.low[some].astype(float)
        length = np.maximum(1e-9, self.high[some].astype(float) - low)
        found: Floats = self.count[some] * np.maximum(
            np.clip((stop - low) / length, 0, 1) - np.clip((begin - low) / length, 0, 1), 0.0
        )
        return found

    def load(self, slices: Sequence[Slice[Place]]) -> float:
        """About how many events are read for these slices."""
        return sum(float(self.shares(self.touching(s.begin, s.stop), s.begin, s.stop).sum()) for s in slices)


# -- how far a window reaches


@dataclass(frozen=True)
class Lookback:
    """How far a window reaches.

    ``inside`` gives for a key another such that matches detected there or later have no event before it; None if they
    may have any. With ``known`` this holds for the last event before the one that detects, which may come any time
    later: these are the keys, ascending, of events that are certainly there.
    """

    inside: Callable[[Key], Key | None]
    known: Keys | None = None

    def slice(self, start: Key, stop: Key, pieces: Pieces) -> Slice[Any]:
        """The slice of a stream that reports the matches detected in ``[start, stop)``."""
        least, _ = pieces.ends
        found: Key | None = None
        begin: Key | None = None
        if start != least:
            if self.known is not None:
                at = int(np.searchsorted(self.known, start))
                found = self.known[at - 1].item() if at else None
            if self.known is None or found is not None:
                begin = self.inside(start if found is None else found)
        if begin is None or begin <= pieces.low[0]:
            return Slice(least, start, stop)
        return Slice(min(begin, start), start, stop, found=found)


def first_in_time(bounds: Bounds, key: Key) -> Key:
    """`Lookback.inside` for a window of time; ``bounds`` gives for each key the greatest one outside the window."""
    return max(LEAST, int(bounds(np.array([key]))[0]) + 1)


def first_in_count(events: int, pieces: Pieces, key: Key) -> Key | None:
    """The same for a window that counts events: where the pieces before begin that surely hold it."""
    found = np.cumsum(np.where(pieces.high < key, pieces.sure, 0)[::-1])
    after = int(np.searchsorted(found, events))
    first: Key | None = None if after == len(found) else pieces.low[len(found) - 1 - after].item()
    return first


def first_in_attribute(bounds: Bounds, pieces: Pieces, key: Key) -> Key | None:
    """The same for a window on an attribute that does not decrease: where the first piece begins with a measure inside.

    ``bounds`` are those of its measures.
    """
    known = pieces.measure != NULL
    before = pieces.measure[known & (pieces.high < key)]
    if not len(before):
        return None
    inside = np.flatnonzero(known & (pieces.measure > bounds(before.max(keepdims=True))[0]))
    first: Key = pieces.low[inside[0]].item()
    return first


# -- slices


def slices_by_key(starts: Sequence[Key], lookback: Lookback, pieces: Pieces) -> list[Slice[Any]]:
    """The slices of a whole stream of pieces that begin at these keys (ascending).

    The first one always begins with the stream.
    """
    least, greatest = pieces.ends
    inner = [start for start in dict.fromkeys(starts) if pieces.low[0] < start <= pieces.high.max()]
    return [lookback.slice(start, stop, pieces) for start, stop in pairwise([least, *inner, greatest])]


def slices_at_home(pieces: Pieces, lookback: Lookback) -> list[Slice[Any]]:
    """The slices of a whole stream of partitions: those with a home, and between them those with events of several.

    They begin where pieces do. Detections from there on depend on one partition alone if no piece of another one
    reaches into the window before. Partitions may come, and return, in any order.
    """
    homes: list[tuple[int, int | None]] = []
    # The keys that any partition has reached, and any but that one.
    first = second = LEAST - 1
    owner: int | None = None
    lows: list[int] = pieces.low.tolist()
    for low, after, high, part in zip(lows, [*lows[1:], GREATEST], pieces.high.tolist(), pieces.part.tolist()):
        others = second if part == owner else first
        if part == owner:
            first = max(first, high)
        elif high > first:
            first, second, owner = high, first, part
        else:
            second = max(second, high)
        if low == after:
            continue
        # As long as a partition is alone it stays alone.
        alone = bool(homes) and homes[-1][1] == part and others < homes[-1][0]
        home = part if alone or others < lookback.slice(low, after, pieces).begin else None
        if not homes or homes[-1][1] != home:
            homes.append((low if homes else LEAST, home))
    found: list[Slice[Any]] = []
    for (start, home), (stop, _) in pairwise([*homes, (GREATEST, None)]):
        if home is None:
            found.append(lookback.slice(start, stop, pieces))
        else:
            begin = found[-1].start if found and found[-1].home is None else start
            found.append(Slice(begin, start, stop, home=home))
    return found
