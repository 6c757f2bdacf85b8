"""Counts of pieces of a stream: the load of slices, and the rows that wait while a partition is put in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cerflow.slices.slice import GREATEST, Slice
from cerflow.values.array_types import Floats, Ints

#: Values that order events.
Keys = Ints | Floats


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


def stretches(pieces: Pieces, files: Ints, bounds: Callable[[Ints], Ints] | None = None) -> Ints:
    """For each piece the number of its stretch, ascending; pieces come in the order of partitions and rows.

    A stretch is one file in a partition, or several that stand together there and follow each other in time, too.
    ``bounds`` gives for each key the greatest one outside of the window that ends there: then files may overlap by a
    window, since slices between them would read that again.
    """
    new = np.append(True, (pieces.part[1:] != pieces.part[:-1]) | (files[1:] != files[:-1]))
    number: Ints = np.cumsum(new) - 1
    firsts = np.flatnonzero(new)
    low, high = np.minimum.reduceat(pieces.low, firsts), np.maximum.reduceat(pieces.high, firsts)
    part = pieces.part[firsts]
    rank = np.argsort(low, kind="stable")
    before, after = rank[:-1], rank[1:]
    behind = high[before] <= low[after]
    if bounds is not None:
        behind |= bounds(high[before]) < low[after]
    follows = (after == before + 1) & (part[after] == part[before]) & behind
    begins = np.full(len(firsts), True)
    begins[after[follows]] = False
    found: Ints = (np.cumsum(begins) - 1)[number]
    return found


def follow_each_other(pieces: Pieces, numbers: Ints) -> bool:
    """Whether the pieces of each stretch ascend, and each stretch lies before or after another; ``numbers`` are these.

    Pieces of one stretch may share the key between them.
    """
    order = np.lexsort((pieces.high, pieces.low))
    before, after = pieces.high[order[:-1]], pieces.low[order[1:]]
    together = np.diff(numbers[order]) == 0
    apart = len(np.unique(numbers)) == 1 + int((~together).sum())
    ascending = (np.diff(order) > 0) | ~together
    return apart and bool((ascending & ((before < after) | (together & (before == after)))).all())


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


def held(pieces: Pieces, *, ties: bool, most: int) -> Ints | None:
    """For the pieces of one partition, as they arrive, the least key of each and all after it.

    A task that lets go, before each piece, of what is less than that (with ``ties``: not greater), puts the partition
    in order. None if it would have to hold more than ``most`` rows besides a piece.
    """
    to_come = np.minimum.accumulate(pieces.low[::-1])[::-1]
    waiting: list[tuple[int, int]] = []
    for k, following in enumerate(to_come[1:].tolist()):
        waiting.append((int(pieces.high[k]), int(pieces.count[k])))
        waiting = [w for w in waiting if (w[0] > following if ties else w[0] >= following)]
        if sum(rows for _, rows in waiting) > most:
            return None
    return to_come
