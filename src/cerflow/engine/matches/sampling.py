"""Random matches of each detecting event.

Matches are counted in a `LateWindow`. A match drawn outside the window of its detection is drawn again.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cerflow.base.array_types import Ints
from cerflow.engine import layout
from cerflow.engine.matches.counting import LateWindow, detecting, numbers_of_events, refuse_if_cut
from cerflow.engine.matches.picking import PartPicker, Pick, match_by_number
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

    def start(self, report: Report, limit: int | None) -> PartPicker:
        """Begin with the first part of some matches."""
        return _PartSample(self, limit)


class _PartSample:
    done = False

    def __init__(self, sample: Sample, limit: int | None) -> None:
        self._sample = sample
        self._limit = limit
        self._random = random.Random(sample.seed)

    def picks(self, part: Part) -> Iterator[Pick]:
        matches = _Numbered(part, stays=len(part.nodes) >= _NODES * self._sample.size)
        _, begins = detecting(part.detections)
        for first, last, total in zip(begins.tolist(), begins[1:].tolist(), numbers_of_events(part, begins).tolist()):
            if self._limit is not None:
                refuse_if_cut([total], self._limit)
            matches.move_to(range(first, last), total)
            yield from self._drawn(matches, total)

    def _drawn(self, matches: _Numbered, total: int) -> list[Pick]:
        """The sample of one event, which has ``total`` matches, in the order of their numbers."""
        size, draw = self._sample.size, self._random
        if not self._sample.replacement and size * _LISTED > total:
            every = [pick for number in range(matches.count) if (pick := matches.match(number)) is not None]
            return [every[k] for k in sorted(draw.sample(range(total), min(size, total)))]
        found: list[tuple[int, Pick]] = []
        refused = set[int]()
        while len(found) < size:
            number = draw.randrange(matches.count)
            pick = None if number in refused else matches.match(number)
            if pick is not None:
                found.append((number, pick))
            if pick is None or not self._sample.replacement:
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
        self.count = 0

    def move_to(self, detections: range, total: int) -> None:
        """Number the matches of these detections, which are ``total`` in their windows."""
        self._detections = detections
        self._ends = np.cumsum(self._late.move_to(detections, total)[0], dtype=object).tolist()
        self.count = self._ends[-1]

    def match(self, number: int) -> Pick | None:
        """A match by its number; None if it lies outside the window."""
        at = bisect_right(self._ends, number)
        d = self._detections[at]
        late = self._late
        marks = match_by_number(late.part, late.counting, d, number - (self._ends[at - 1] if at else 0))
        bound = self._bounds[d]
        if late.part.detections[d, layout.D_BOUND] == bound:
            return d, marks
        # The last event need not be in the window of the earlier ones.
        earlier = len(marks) - (late.part.detections[d, layout.D_MARK] != layout.NO_MARK)
        return (d, marks) if earlier == 0 or self._starts[marks[0]] > bound else None
