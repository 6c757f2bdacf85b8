"""Some matches of each detecting event, found on the shared graph without unfolding the others."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base.arrow_columns import truths_of
from cerflow.base.errors import ArgumentError, QueryError
from cerflow.base.schema import ValueKind
from cerflow.engine import layout
from cerflow.engine.kernels.matches.fold import GREATEST, LEAST, PLUS
from cerflow.engine.kernels.matches.search import B_DETECTION, B_PATH, FULL, NO_MORE, P_MARK, P_NEXT
from cerflow.engine.kernels.matches.unrank import unrank as unrank_long
from cerflow.engine.kernels.table import search, unrank
from cerflow.engine.matches.counting import LateWindow, LongNumbers, MatchCounter, detecting, refuse_if_cut
from cerflow.engine.matches.folding import Lowest, Values, ranked
from cerflow.engine.matches.mark_values import MarkValues, check_attribute, check_label
from cerflow.engine.matches.unfolding import Part, Unfolded
from cerflow.engine.results.report import Report
from cerflow.language.select import ProjectionKind

#: The order of matches: by the start, the number of events, or an aggregate of a label's events.
Order = str | tuple[str, str | None, str]

_FUNCTIONS = ("count", "sum", "min", "max")

#: A match: the number of its detection and its marks, in the order of the events.
Pick = tuple[int, list[int]]


class Picker(Protocol):
    """Chooses matches."""

    def start(self, report: Report, limit: int | None) -> PartPicker:
        """Begin with the first part of some matches."""
        ...


class PartPicker(Protocol):
    """Chooses matches part by part."""

    @property
    def done(self) -> bool:
        """Whether later parts have no chosen matches."""
        ...

    def picks(self, part: Part) -> Iterator[Pick]:
        """The chosen matches of a part, in the order in which they are reported."""
        ...


def picked(part: Part, picks: Iterable[Pick], max_rows: int) -> Iterator[Unfolded]:
    """Matches as flat arrays, at most ``max_rows`` at a time."""
    rest = iter(picks)
    while some := list(islice(rest, max_rows)):
        detections, owner = np.unique(np.array([d for d, _ in some]), return_inverse=True)
        sizes = [len(marks) for _, marks in some]
        used, events = np.unique(np.array([m for _, marks in some for m in marks], np.int64), return_inverse=True)
        offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
        whole = Unfolded(
            part.detections[detections, layout.D_POSITION],
            owner.astype(np.int32),
            offsets,
            events.astype(np.int32),
            np.zeros((2, len(some)), np.int32),
            part.marks[used, layout.M_POSITION],
            part.marks[used, layout.M_LABEL],
        )
        # Even without hidden events this finds the ends of each match.
        yield whole.without(np.zeros(len(used), bool))


def _with_last(part: Part, detection: int, marks: list[int]) -> list[int]:
    last = int(part.detections[detection, layout.D_MARK])
    return marks if last == layout.NO_MARK else [*marks, last]


def match_by_number(part: Part, counting: MatchCounter, d: int, rank: int) -> list[int]:
    """The marks of the match with a number among those of one detection."""
    _, amounts = counting.number(d)
    small = part.nodes.view(np.int32)
    root, bound = part.detections[d, layout.D_ROOT], part.detections[d, layout.D_BOUND]
    kernel = unrank_long if isinstance(amounts, LongNumbers) else unrank
    path = np.empty(64, np.int32)
    while (length := kernel(part.nodes, small, amounts, root, bound, rank, path)) < 0:
        path = np.empty(2 * len(path), np.int32)
    marks: list[int] = path[:length][::-1].tolist()
    return _with_last(part, d, marks)


# --- by number -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberRange:
    """The matches with numbers start, start + step, … below stop (None: to the last), among those that ``of`` chooses.

    Matches are numbered from 0 in the order in which they are reported. They are found by the counts of the sets on the
    way, without unfolding those before them.
    """

    begin: int
    stop: int | None
    step: int
    of: Picker | None = None

    def start(self, report: Report, limit: int | None) -> PartSpan:
        """Begin with the first part of some matches."""
        return PartSpan(self, report, limit)

    def among(self, begin: int, stop: int | None, step: int) -> NumberRange:
        """The selection with numbers begin, begin + step, … below stop among these."""
        ends = [end for end in (self.stop, None if stop is None else self.begin + stop * self.step) if end is not None]
        return NumberRange(self.begin + begin * self.step, min(ends, default=None), self.step * step, self.of)

    def size(self, total: int) -> int:
        """The number of chosen matches among this number of matches."""
        stop = total if self.stop is None else min(self.stop, total)
        return max(0, -((self.begin - stop) // self.step))


class PartSpan:
    """Chooses by numbers that continue from one part to the next."""

    def __init__(self, span: NumberRange, report: Report, limit: int | None) -> None:
        self._span = span
        self._limit = limit
        self._detects_only = report.select.projection.kind is ProjectionKind.NONE
        self._inner = None if span.of is None else span.of.start(report, limit)
        self._at = 0

    @property
    def done(self) -> bool:
        """Whether later matches have no chosen number."""
        stop = self._span.stop
        return (stop is not None and self._at >= stop) or (self._inner is not None and self._inner.done)

    def next(self, number: int) -> range:
        """The chosen ones among the next ``number`` matches, which are numbered from 0 here."""
        span, at = self._span, self._at
        self._at += number
        passed = max(0, -((span.begin - at) // span.step))
        stop = number if span.stop is None else min(number, span.stop - at)
        return range(span.begin + passed * span.step - at, max(stop, 0), span.step)

    def picks(self, part: Part) -> Iterator[Pick]:
        """The chosen matches of a part, in the order in which they are reported."""
        if self._inner is not None:
            for pick in self._inner.picks(part):
                if self.done:
                    return
                if self.next(1):
                    yield pick
            return
        _, begins = detecting(part.detections)
        numbers = None if self._detects_only else MatchCounter(part).numbers()
        counting = MatchCounter(part)
        for first, last in zip(begins[:-1].tolist(), begins[1:].tolist()):
            if self.done:
                return
            if numbers is None:
                yield from ((first, []) for _ in self.next(1))
                continue
            total = sum(numbers[first:last])
            d, before = first, 0
            for rank in self.next(total if self._limit is None else min(total, self._limit)):
                while rank - before >= numbers[d]:
                    before += numbers[d]
                    d += 1
                yield d, match_by_number(part, counting, d, rank - before)


# --- first matches ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class First:
    """The first ``size`` matches of each detecting event in an order, those without a value last."""

    size: int
    by: Order
    descending: bool

    def check(self, report: Report) -> None:
        """Raise `ArgumentError` for an invalid order and `QueryError` for unknown names."""
        if self.by in ("start", "events"):
            return
        if not isinstance(self.by, tuple) or len(self.by) != 3:
            raise ArgumentError(f"by must be 'start', 'events' or (label, attribute, function), not {self.by!r}")
        label, attribute, function = self.by
        if function not in _FUNCTIONS:
            raise ArgumentError(f"the function must be one of {', '.join(_FUNCTIONS)}, not {function!r}")
        check_label(report, label)
        if attribute is None:
            if function != "count":
                raise ArgumentError(f"{function} needs an attribute")
            return
        kind = check_attribute(report, attribute)
        if kind is ValueKind.OTHER or (function == "sum" and not (kind.numeric or kind is ValueKind.DURATION)):
            raise QueryError(f"{function} of '{attribute}': its values are of kind {kind}")

    def start(self, report: Report, limit: int | None) -> PartPicker:
        """Begin with the first part of some matches."""
        return _PartFirst(self, report, limit)

    def weights(self, part: Part, report: Report) -> tuple[int, Values, Any]:
        """How the values of a match are combined, the values of the marks, and the value without events."""
        marks = MarkValues(part, report)
        if self.by == "start":
            return LEAST, Values.of(pa.array(marks.positions())), float("nan")
        if self.by == "events":
            return PLUS, _ones(np.append(False, marks.shown())), 0
        assert isinstance(self.by, tuple)
        label, attribute, function = self.by
        if attribute is None:
            return PLUS, _ones(np.append(False, marks.having(label))), 0
        values = marks.values(label, attribute)
        if function == "count":
            return PLUS, _ones(truths_of(values.is_valid())), 0
        if function == "sum":
            return PLUS, Values.of(marks.numbers(label, attribute)), float("nan")
        return (LEAST if function == "min" else GREATEST), ranked(values)[0], float("nan")


def _ones(known: Any) -> Values:
    return Values.of(pa.array(np.ones(len(known), np.int64), mask=~known))


#: Matches with a common beginning: whether they have no value, the least value among them, the number of the first of
#: them, the set that they continue with (-1: there is one match, complete), the value so far, the marks so far (linked,
#: the first one on top), the detection, the amounts of its sets.
_Branch = tuple[bool, Any, int, int, Any, Any, int, Any]


class _PartFirst:
    """Best-first search: the value of each branch's best match is known, unless a better one has left the window."""

    done = False

    def __init__(self, first: First, report: Report, limit: int | None) -> None:
        self._first = first
        self._report = report
        self._limit = limit

    def picks(self, part: Part) -> Iterator[Pick]:
        operation, values, nothing = self._first.weights(part, self._report)
        late = LateWindow(part)
        lowest = Lowest(late.part, operation, values, greatest=self._first.descending)
        search = _Search(part, late, lowest, nothing)
        numbers = MatchCounter(part).numbers()
        _, begins = detecting(part.detections)
        for first, last in zip(begins[:-1].tolist(), begins[1:].tolist()):
            total = sum(numbers[first:last])
            if self._limit is not None:
                refuse_if_cut([total], self._limit)
            branches, total = search.branches(range(first, last), total)
            found = search.matches if search.beyond_words(branches, total) else search.matches_in_words
            yield from islice(found(branches), min(self._first.size, sys.maxsize))


#: The first room for branches and paths.
_BRANCHES = 1 << 10


class _Search:
    """Looks for the first matches of each detecting event.

    ``lowest`` has the values, and ``late`` the numbers of matches, of a window that lags behind. Values of matches
    outside the window only lengthen the search: a match is never better than its branch promises.
    """

    def __init__(self, part: Part, late: LateWindow, lowest: Lowest, nothing: Any) -> None:
        self._part = part
        self._late = late
        self._lowest = lowest
        self._nothing = nothing
        self._small = part.nodes.view(np.int32)
        #: For `search`: branches, their ranks and values, paths and the heap.
        kinds = (((3,), np.int32), ((), np.int64), ((2,), np.float64), ((2,), np.int32), ((), np.int32))
        self._room = [np.empty((_BRANCHES, *shape), kind) for shape, kind in kinds]

    def branches(self, detections: range, total: int) -> tuple[list[_Branch], int]:
        """A branch for each of the detections of an event, which have ``total`` matches, and how many are counted."""
        branches: list[_Branch] = []
        rank = 0
        for d, (number, amounts) in zip(detections, self._late.move_to(detections, total)):
            self._lowest.fold(d, d + 1)
            mark, root = (int(self._part.detections[d, column]) for column in (layout.D_MARK, layout.D_ROOT))
            value = self._lowest.joined(self._nothing, self._lowest.weight[mark])
            heapq.heappush(branches, self._branch(rank, root, value, None, d, amounts))
            rank += number
        return branches, rank

    def _branch(self, rank: int, node: int, value: Any, marks: Any, d: int, amounts: Any) -> _Branch:
        best = value if node < 0 else self._lowest.least_with(value, node)
        missing = best != best
        return missing, 0 if missing else best, rank, node, value, marks, d, amounts

    def beyond_words(self, branches: list[_Branch], total: int) -> bool:
        """Whether values or numbers of the matches may need more than 64 bits."""
        long = total >= 2**63 or any(isinstance(branch[-1], LongNumbers) for branch in branches)
        return long or self._lowest.least.dtype == object

    def matches_in_words(self, branches: list[_Branch]) -> Iterator[Pick]:
        """`matches` where neither values nor numbers need more than 64 bits."""
        lowest, part, many = self._lowest, self._part, len(branches)
        while len(self._room[0]) < 2 * many:
            self._make_room()
        rows, ranks, values, paths, heap = self._room
        # A sorted list is a heap.
        for k, (missing, best, rank, node, value, _, d, _) in enumerate(sorted(branches, key=lambda b: b[:3])):
            rows[k], ranks[k], heap[k] = (node, d, -1), rank, k
            values[k] = (np.nan if missing else best), value
        cursor = np.array([many, many, 0])
        fixed = part.nodes, self._small, part.detections, branches[0][-1]
        fold = lowest.operation, lowest.weight, lowest.least, lowest.without
        while (found := search(*fixed, *fold, rows, ranks, values, paths, heap, cursor)) != NO_MORE:
            if found == FULL:
                rows, ranks, values, paths, heap = self._make_room()
                continue
            marks, path = [], int(rows[found, B_PATH])
            while path >= 0:
                marks.append(int(paths[path, P_MARK]))
                path = int(paths[path, P_NEXT])
            d = int(rows[found, B_DETECTION])
            yield d, _with_last(part, d, marks)

    def _make_room(self) -> list[NDArray[Any]]:
        """Double the room for branches and paths, also for later events."""
        self._room = [np.concatenate([array, np.empty_like(array)]) for array in self._room]
        return self._room

    def matches(self, branches: list[_Branch]) -> Iterator[Pick]:
        """The matches of these branches, the best first; equal ones in the order of their numbers."""
        while branches:
            *_, rank, node, value, marks, d, amounts = heapq.heappop(branches)
            if node < 0:
                yield d, _with_last(self._part, d, _unlinked(marks))
                continue
            child, left, right = (int(self._small[node, f]) for f in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT))
            own = value
            if child >= 0:
                mark = int(self._small[node, layout.I_MARK])
                marks_here = (mark, marks)
                own = self._lowest.joined(value, self._lowest.weight[mark])
            else:
                marks_here = marks
            complete = child <= layout.BOTTOM
            heapq.heappush(branches, self._branch(rank, -1 if complete else child, own, marks_here, d, amounts))
            rank += 1 if complete else int(amounts[child])
            bound = self._part.detections[d, layout.D_BOUND]
            for beside in (left, right):
                if beside >= 0 and self._part.nodes[beside, layout.W_MEASURE] > bound:
                    heapq.heappush(branches, self._branch(rank, beside, value, marks, d, amounts))
                    rank += int(amounts[beside])


def _unlinked(marks: Any) -> list[int]:
    result = []
    while marks is not None:
        mark, marks = marks
        result.append(mark)
    return result
