"""Some matches of each detecting event, found on the shared graph without unfolding the others."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import truths_of
from cerflow.base.errors import ArgumentError, QueryError
from cerflow.base.schema import ValueKind
from cerflow.engine import layout
from cerflow.engine.kernels.matches.search import B_DETECTION, B_PATH, FULL, NO_MORE, P_MARK, P_NEXT, best_with, push
from cerflow.engine.kernels.matches.search import search as search_long
from cerflow.engine.kernels.matches.semiring import GREATEST, LEAST, PLUS, joined_values
from cerflow.engine.kernels.matches.unrank import unrank as unrank_long
from cerflow.engine.kernels.table import search, unrank
from cerflow.engine.matches.counting import (
    Counted,
    LateWindow,
    LongNumbers,
    MatchCounter,
    detecting,
    match_numbers,
    numbers_of_events,
    refuse_if_cut,
)
from cerflow.engine.matches.folding import Folding, Values, lowest, ranked
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

    def picks(self, parts: Iterable[Part], report: Report, limit: int | None) -> Iterator[tuple[Part, Iterator[Pick]]]:
        """The chosen matches of each part, in the order in which they are reported; no parts beyond the last choice."""
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


def match_by_number(part: Part, amounts: Ints | LongNumbers, d: int, rank: int) -> list[int]:
    """The marks of the match with a number among those of one detection; ``amounts`` are those of `MatchCounter`."""
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

    def picks(self, parts: Iterable[Part], report: Report, limit: int | None) -> Iterator[tuple[Part, Iterator[Pick]]]:
        """The chosen matches of each part."""
        passing = Passing(self)
        if self.of is not None:
            for part, picks in self.of.picks(parts, report, limit):
                yield part, passing.chosen(picks)
                if passing.done:
                    return
            return
        detects_only = report.select.projection.kind is ProjectionKind.NONE
        for part in parts:
            yield part, passing.numbered(part, limit, detects_only)
            if passing.done:
                return

    def among(self, begin: int, stop: int | None, step: int) -> NumberRange:
        """The selection with numbers begin, begin + step, … below stop among these."""
        ends = [end for end in (self.stop, None if stop is None else self.begin + stop * self.step) if end is not None]
        return NumberRange(self.begin + begin * self.step, min(ends, default=None), self.step * step, self.of)

    def size(self, total: int) -> int:
        """The number of chosen matches among this number of matches."""
        stop = total if self.stop is None else min(self.stop, total)
        return max(0, -((self.begin - stop) // self.step))


class Passing:
    """The numbers of matches that pass by, of which a range is chosen."""

    def __init__(self, span: NumberRange) -> None:
        self._span = span
        self._at = 0

    @property
    def done(self) -> bool:
        """Whether later matches have no chosen number."""
        return self._span.stop is not None and self._at >= self._span.stop

    def next(self, number: int) -> range:
        """The chosen ones among the next ``number`` matches, which are numbered from 0 here."""
        span, at = self._span, self._at
        self._at += number
        passed = max(0, -((span.begin - at) // span.step))
        stop = number if span.stop is None else min(number, span.stop - at)
        return range(span.begin + passed * span.step - at, max(stop, 0), span.step)

    def chosen(self, picks: Iterable[Pick]) -> Iterator[Pick]:
        """The chosen ones among the next matches."""
        for pick in picks:
            if self.done:
                return
            if self.next(1):
                yield pick

    def numbered(self, part: Part, limit: int | None, detects_only: bool) -> Iterator[Pick]:
        """The chosen matches of the next part, with ``detects_only`` without their events."""
        _, begins = detecting(part.detections)
        numbers = None if detects_only else match_numbers(part).tolist()
        counting = MatchCounter(part)
        for first, last in zip(begins[:-1].tolist(), begins[1:].tolist()):
            if self.done:
                return
            if numbers is None:
                yield from ((first, []) for _ in self.next(1))
                continue
            total = sum(numbers[first:last])
            ranks = self.next(total if limit is None else min(total, limit))
            if not ranks:
                continue
            # The detections of an event have one window.
            _, amounts = counting.numbers(range(first, last))
            d, before = first, 0
            for rank in ranks:
                while rank - before >= numbers[d]:
                    before += numbers[d]
                    d += 1
                yield d, match_by_number(part, amounts, d, rank - before)


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

    def picks(self, parts: Iterable[Part], report: Report, limit: int | None) -> Iterator[tuple[Part, Iterator[Pick]]]:
        """The first matches of each part."""
        for part in parts:
            yield part, self._of_part(part, report, limit)

    def _of_part(self, part: Part, report: Report, limit: int | None) -> Iterator[Pick]:
        """Those of a part, by numbers and values of a window that lags behind.

        Values of matches outside the window only lengthen the search: a match is never better than its branch promises.
        """
        combined, values, nothing = self.weights(part, report)
        late = LateWindow(part)
        operation, folding = lowest(late.part, combined, values, greatest=self.descending)
        below = np.zeros((1, 2), folding.weights.dtype)
        _, begins = detecting(part.detections)
        for first, last, total in zip(begins.tolist(), begins[1:].tolist(), numbers_of_events(part, begins).tolist()):
            if limit is not None:
                refuse_if_cut([total], limit)
            counted = late.move_to(range(first, last), total)
            for d in range(first, last):
                folding.fold(d, below)
            found = _searched(part, operation, folding, nothing, first, counted)
            yield from islice(found, min(self.size, sys.maxsize))

    def weights(self, part: Part, report: Report) -> tuple[int, Values, Any]:
        """How the values of a match are combined, the values of the marks, and the value without events."""
        marks = MarkValues(part, report)
        if self.by == "start":
            return LEAST, Values(pa.array(marks.positions())), float("nan")
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
            return PLUS, Values(marks.numbers(label, attribute)), float("nan")
        return (LEAST if function == "min" else GREATEST), ranked(values)[0], float("nan")


def _ones(known: Any) -> Values:
    return Values(pa.array(np.ones(len(known), np.int64), mask=~known))


#: The first room for branches and paths.
_BRANCHES = 1 << 10


def _searched(
    part: Part, operation: int, folding: Folding, nothing: Any, first: int, counted: Counted
) -> Iterator[Pick]:
    """The matches of an event whose detections from number ``first`` on have been ``counted``, the best first."""
    weights, bests, (matches, amounts) = folding.weights, folding.values, counted
    # Python searches where values or numbers of the matches may need more than 64 bits.
    long = sum(matches) >= 2**63 or isinstance(amounts, LongNumbers) or weights.dtype.hasobject
    integers, numbers = (object, object) if long else (np.int64, np.float64)
    kinds = (((3,), np.int32), ((), integers), ((2,), numbers), ((2,), np.int32), ((), np.int32))
    room = [np.empty((max(_BRANCHES, 2 * len(matches)), *shape), kind) for shape, kind in kinds]
    cursor, rank = np.array([0, len(matches), 0]), 0
    for k, number in enumerate(matches):
        mark, root = (part.detections[first + k, column] for column in (layout.D_MARK, layout.D_ROOT))
        value = joined_values(operation, nothing, weights[mark, 0])
        rows, ranks, values, _, heap = room
        rows[k], ranks[k], values[k] = (
            (root, first + k, -1),
            rank,
            (best_with(operation, value, bests[root]), value),
        )
        push(k, values, ranks, heap, cursor)
        rank += number
    graph = part.nodes, part.nodes.view(np.int32), part.detections, amounts, operation, weights, bests
    while (found := (search_long if long else search)(*graph, *room, cursor)) != NO_MORE:
        if found == FULL:
            room = [np.concatenate([array, np.empty_like(array)]) for array in room]
            continue
        marks, path, paths = [], int(room[0][found, B_PATH]), room[3]
        while path >= 0:
            marks.append(int(paths[path, P_MARK]))
            path = int(paths[path, P_NEXT])
        d = int(room[0][found, B_DETECTION])
        yield d, _with_last(part, d, marks)
