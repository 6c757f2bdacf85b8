"""The number of matches of each detecting event, from the shared graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import UnsupportedQueryError
from cerflow.engine import layout
from cerflow.engine.kernels.table import add_counts, add_long_counts
from cerflow.engine.matches.graph import CountedMatches, MatchGraph
from cerflow.engine.matches.sliding import count_sliding
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.stopping import portions

#: A `LateWindow` moves when it counts this many times the matches in the window.
_OUTSIDE = 2


def detecting(detections: Ints) -> tuple[Ints, Ints]:
    """The positions of the detecting events, and the first detection of each (and the last end)."""
    positions = detections[:, layout.D_POSITION]
    begins = np.flatnonzero(np.append(True, positions[1:] != positions[:-1])) if len(positions) else positions
    return positions[begins], np.append(begins, len(positions))


def count_detections(part: Part, limit: int | None) -> tuple[Ints, list[int]]:
    """The positions of detecting events, and the number of matches of each, at most ``limit`` if given."""
    positions, begins = detecting(part.detections)
    if limit == 1 or part.alone:
        return positions, [1] * len(positions)
    numbers = MatchCounter(part).numbers()
    # Sums of objects are exact at any size.
    totals = np.add.reduceat(np.array(numbers, object), begins[:-1]).tolist() if numbers else []
    return positions, [total if limit is None else min(limit, total) for total in totals]


def matches_of_part(part: Part, limit: int | None) -> int:
    """The number of matches of a part, at most ``limit`` of each event if given."""
    if isinstance(part.graph, CountedMatches) and (limit is None or part.graph.single):
        return part.graph.count
    if limit is None and not part.alone:
        return MatchCounter(part).total()
    return sum(count_detections(part, limit)[1])


def refuse_if_cut(totals: Sequence[int], limit: int) -> None:
    """Raise `UnsupportedQueryError` if an event has more matches than the query reports."""
    most = max(totals, default=0)
    if most > limit:
        raise UnsupportedQueryError(
            f"the query reports at most {limit} of the {most} matches of an event, and which ones is not determined",
            hint="Leave out LIMIT and ANY to include all matches.",
        )


class LongNumbers:
    """Numbers of several words, the lowest first, as integers of Python; ``words`` is (numbers, words)."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def __getitem__(self, at: int) -> int:
        return int.from_bytes(self._words[at].astype("<u8").tobytes(), "little")


class MatchCounter:
    """Counts the matches of the detections of a part.

    Numbers are exact at any size: from the first that exceeds 63 bits on, they are added word by word. Detections must
    be counted in their order.
    """

    def __init__(self, part: Part) -> None:
        top = len(part.nodes)
        self._graph = (part.nodes, part.nodes.view(np.int32), part.detections)
        self._part = part
        self._stack = np.empty(3 * top + 4, np.int32)
        self._found = np.zeros(len(part.detections), np.int64)
        self._amounts, self._low = np.zeros(top, np.int64), np.empty(top, np.int64)
        #: The same for numbers of several words.
        self._long: tuple[NDArray[np.uint64], Ints] | None = None

    def numbers(self) -> list[int]:
        """The number of matches of every detection."""
        size = len(self._found)
        at = self._count(self._slide(), size)
        numbers: list[int] = self._found[:at].tolist()
        return numbers + self._count_long(at, size)

    def total(self) -> int:
        """The number of matches of all detections."""
        size = len(self._found)
        at = self._count(self._slide(), size)
        found = self._found[:at]
        # Sums of integers of Python are exact at any size.
        small = int(found.max(initial=0)) < 2**63 // max(1, at)
        return int(found.sum() if small else sum(found.tolist())) + sum(self._count_long(at, size))

    def numbers_to_63_bits(self, *, go_on: bool) -> tuple[list[int], bool]:
        """The number of matches of the detections, and whether these are all and exact.

        Counting stops at a number beyond 63 bits, or continues with 2⁶² instead of it.
        """
        size, exact = len(self._found), True
        at = self._count(self._slide(), size)
        while at < size:
            if not go_on:
                return [*self._found[:at].tolist(), *self._count_long(at, at + 1)], at == size - 1
            self._found[at], exact = 1 << 62, False
            at = self._count(at + 1, size)
        return self._found.tolist(), exact

    def number(self, detection: int) -> tuple[int, Ints | LongNumbers]:
        """The number of matches of one detection, and of complex events of each set below it, for `unrank`."""
        if self._count(detection, detection + 1) > detection:
            return int(self._found[detection]), self._amounts
        (number,) = self._count_long(detection, detection + 1)
        assert self._long is not None
        return number, LongNumbers(self._long[0])

    def _slide(self) -> int:
        """Count along a sliding window if that pays; returns the number of counted detections."""
        pays = len(self._found) * len(self._low) > limits.COUNTED_PAIRS
        return count_sliding(self._part, self._found) if pays else 0

    def _count(self, first: int, last: int) -> int:
        for begin, end in portions(first, last):
            at: int = add_counts(*self._graph, begin, end, self._amounts, self._low, self._stack, self._found)
            if at < end:
                return at
        return last

    def _count_long(self, first: int, last: int) -> list[int]:
        """The numbers of matches of some detections; doubles the words when a number needs more."""
        numbers: list[int] = []
        while (at := first + len(numbers)) < last:
            amounts, low = self._long or self._longer(2)
            words = amounts.shape[1]
            found = np.zeros((min(last - at, limits.COUNTED_WORDS // words + 1), words), np.uint64)
            counted = add_long_counts(*self._graph, at, at + len(found), amounts, low, self._stack, found) - at
            numbers += map(LongNumbers(found).__getitem__, range(counted))
            if counted < len(found):
                self._longer(2 * words)
        return numbers

    def _longer(self, words: int) -> tuple[NDArray[np.uint64], Ints]:
        top = len(self._low)
        self._long = np.zeros((top, words), np.uint64), np.full(top, np.iinfo(np.int64).min)
        return self._long


class LateWindow:
    """Counts of the matches of a part, event by event, in windows that lag behind.

    The numbers of the complex events below a set depend on the window, and counting again for each detection takes time
    for the whole window. So the window moves only when more than half of its matches have left the window of the
    detections, or always if it must not lag. ``part`` is the part with these windows.
    """

    def __init__(self, part: Part, *, stays: bool = True) -> None:
        self.part = replace(part, graph=MatchGraph(part.detections.copy(), part.nodes, part.marks, part.moments))
        self._bounds: Ints = part.detections[:, layout.D_BOUND]
        self.counting = MatchCounter(self.part)
        # Counts remain valid only while bounds ascend.
        self._stays = stays and not bool((np.diff(self._bounds) < 0).any())
        self._bound: int | None = None

    def move_to(self, detections: range, total: int) -> list[tuple[int, Ints | LongNumbers]]:
        """The number of each detection of an event, and of each set below; ``total`` is that in their own windows."""
        if self._stays and self._bound is not None:
            found = self._numbers(detections, self._bound)
            if sum(number for number, _ in found) <= _OUTSIDE * total:
                return found
        self._bound = int(self._bounds[detections.start])
        return self._numbers(detections, self._bound if self._stays else None)

    def _numbers(self, detections: range, bound: int | None) -> list[tuple[int, Ints | LongNumbers]]:
        """Count with a bound; None for each detection's own."""
        some = slice(detections.start, detections.stop)
        self.part.detections[some, layout.D_BOUND] = self._bounds[some] if bound is None else bound
        return [self.counting.number(d) for d in detections]
