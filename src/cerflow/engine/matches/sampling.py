"""Random matches of each detecting event.

Matches are counted in a `LateWindow`. A match drawn outside the window of its detection is drawn again.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cerflow.base.array_types import Ints
from cerflow.engine import layout
from cerflow.engine.matches.counting import LateWindow, LongNumbers, detecting, numbers_of_events, refuse_if_cut
from cerflow.engine.matches.picking import Pick, match_by_number
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.results.report import Report

#: With more nodes than this for each match, counting again takes longer than rejecting matches.
_NODES = 1 << 12
#: A sample of more than one in this many is taken from a list of all matches.
_LISTED = 4


@dataclass(frozen=True)
class Sample:
    """``size`` matches of each detecting event, chosen uniformly; at most all of them."""

    size: int
    seed: int
    replacement: bool

    def picks(self, parts: Iterable[Part], report: Report, limit: int | None) -> Iterator[tuple[Part, Iterator[Pick]]]:
        """The sample of each part."""
        draw = random.Random(self.seed)
        for part in parts:
            yield part, self._of_part(draw, part, limit)

    def _of_part(self, draw: random.Random, part: Part, limit: int | None) -> Iterator[Pick]:
        matches = _Numbered(part, stays=len(part.nodes) >= _NODES * self.size)
        _, begins = detecting(part.detections)
        for first, last, total in zip(begins.tolist(), begins[1:].tolist(), numbers_of_events(part, begins).tolist()):
            if limit is not None:
                refuse_if_cut([total], limit)
            matches.move_to(range(first, last), total)
            yield from self._drawn(draw, matches, total)

    def _drawn(self, draw: random.Random, matches: _Numbered, total: int) -> list[Pick]:
        """The sample of one event, which has ``total`` matches, in the order of their numbers."""
        size = self.size
        if not self.replacement and size * _LISTED > total:
            every = [pick for number in range(matches.count) if (pick := matches.match(number)) is not None]
            return [every[k] for k in sorted(draw.sample(range(total), min(size, total)))]
        found: list[tuple[int, Pick]] = []
        refused = set[int]()
        while len(found) < size:
            number = draw.randrange(matches.count)
            pick = None if number in refused else matches.match(number)
            if pick is not None:
                found.append((number, pick))
            if pick is None or not self.replacement:
                refused.add(number)
        return [pick for _, pick in sorted(found)]


class _Numbered:
    """The matches of the detections of an event, numbered from 0 to ``count`` together with some outside the window."""

    def __init__(self, part: Part, *, stays: bool) -> None:
        nodes = part.nodes
        small = nodes.view(np.int32)
        self._bounds: Ints = part.detections[:, layout.D_BOUND]
        self._late = LateWindow(part, stays=stays)
        #: The start of the complex events that begin at each mark.
        self._starts = np.zeros(len(part.marks), np.int64)
        begin = small[:, layout.I_CHILD] == layout.BOTTOM
        self._starts[small[begin, layout.I_MARK]] = nodes[begin, layout.W_MEASURE]
        self._detections = range(0)
        self._ends: Sequence[int] = ()
        self._amounts: Ints | LongNumbers = np.zeros(0, np.int64)
        self.count = 0

    def move_to(self, detections: range, total: int) -> None:
        """Number the matches of these detections, which are ``total`` in their windows."""
        self._detections = detections
        numbers, self._amounts = self._late.move_to(detections, total)
        self._ends = np.cumsum(numbers, dtype=object).tolist()
        self.count = self._ends[-1]

    def match(self, number: int) -> Pick | None:
        """A match by its number; None if it lies outside the window."""
        at = bisect_right(self._ends, number)
        d = self._detections[at]
        late = self._late
        marks = match_by_number(late.part, self._amounts, d, number - (self._ends[at - 1] if at else 0))
        bound = self._bounds[d]
        if late.part.detections[d, layout.D_BOUND] == bound:
            return d, marks
        # The last event need not be in the window of the earlier ones.
        earlier = len(marks) - (late.part.detections[d, layout.D_MARK] != layout.NO_MARK)
        return (d, marks) if earlier == 0 or self._starts[marks[0]] > bound else None
