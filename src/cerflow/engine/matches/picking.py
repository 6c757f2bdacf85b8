"""Some matches of each detecting event, found on the shared graph without unfolding the others."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base.array_types import Floats, Ints
from cerflow.base.errors import ArgumentError
from cerflow.engine import layout
from cerflow.engine.kernels import table
from cerflow.engine.kernels.matches import search
from cerflow.engine.kernels.matches.semiring import LEAST, PLUS
from cerflow.engine.matches import counting
from cerflow.engine.matches.folding import Folding, MarkValues, Values, check_values, combining, lowest
from cerflow.engine.matches.graph import CountedMatches, EventsInTurn, MatchGraph
from cerflow.engine.matches.unfolding import Part, Pick, picked, unfolded
from cerflow.engine.results.report import Report
from cerflow.engine.results.unfolded_events import Unfolded, all_in_one

T = TypeVar("T")

#: The order of matches: by the start, the number of events, or an aggregate of a label's events.
Order = str | tuple[str, str | None, str]

_FUNCTIONS = ("count", "sum", "min", "max")

#: Events that are looked at together; all their matches are unfolded if there are at most so many for each event.
_EVENTS, _FEW = 1 << 12, 1 << 6

#: Parts with their chosen matches.
Picked = Iterator[tuple[Part, Iterator[Unfolded]]]
#: An event: its detections, the number of its matches, and those that are chosen, if that is known.
_Event = tuple[range, int, range]


def _together(events: Iterator[_Event]) -> Iterator[tuple[list[_Event], bool]]:
    """Some of the events after the other, and whether all their matches are few."""
    while some := list(islice(events, _EVENTS)):
        yield some, sum(total for _, total, _ in some) <= _FEW * len(some)


def _unfolded(part: Part, events: Sequence[_Event], limit: int | None) -> Iterator[Unfolded]:
    """All matches of some events, or as many of each as the query reports."""
    detections = part.graph.detections[[d for own, _, _ in events for d in own]]
    return unfolded(replace(part, found=replace(part.graph, detections=detections)), limit, _EVENTS)


def _taken(found: Iterable[Unfolded], numbers: Ints, max_rows: int) -> Iterator[Unfolded]:
    """The matches with some numbers, at most ``max_rows`` at a time; those of one of ``found`` come before the next."""
    at = 0
    for some in found:
        own = numbers[(numbers >= at) & (numbers < at + len(some))] - at
        yield from (some.chosen(own[k : k + max_rows]) for k in range(0, len(own), max_rows))
        at += len(some)
        if at > numbers[-1]:
            return


def _numbers_in(events: Sequence[_Event], chosen: Iterable[Iterable[int]]) -> Ints:
    """The numbers of chosen matches of events among all matches of these."""
    begins = accumulate((total for _, total, _ in events), initial=0)
    return np.array([begin + number for begin, own in zip(begins, chosen) for number in own], np.int64)


def _with_last(graph: MatchGraph, detection: int, marks: list[int]) -> list[int]:
    last = int(graph.detections[detection, layout.D_MARK])
    return marks if last == layout.NO_MARK else [*marks, last]


def match_by_number(graph: MatchGraph, counted: counting.Counted, first: int, number: int) -> Pick:
    """The match with a number among those of an event, whose detections from number ``first`` on were counted."""
    (ends, amounts), small = counted, graph.nodes.view(np.int32)
    at = bisect_right(ends, number)
    d, rank = first + at, number - (ends[at - 1] if at else 0)
    root, bound = graph.detections[d, layout.D_ROOT], graph.detections[d, layout.D_BOUND]
    kernel = search.unrank if isinstance(amounts, counting.LongNumbers) else table.unrank
    path = np.empty(64, np.int32)
    while (length := kernel(graph.nodes, small, amounts, root, bound, rank, path)) < 0:
        path = np.empty(2 * len(path), np.int32)
    return d, _with_last(graph, d, path[:length][::-1].tolist())


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

    def picks(self, parts: Iterable[Part], report: Report, limit: int | None, max_rows: int) -> Picked:
        """The chosen matches of each part, in the order in which they are reported; no parts beyond the last choice."""
        passing = Passing(self)
        if self.of is not None:
            chosen = ((part, passing.chosen(found)) for part, found in self.of.picks(parts, report, limit, max_rows))
        else:
            chosen = ((part, _chosen_of(part, passing, limit, max_rows)) for part in parts)
        for found in chosen:
            yield found
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

    def chosen(self, found: Iterable[Unfolded]) -> Iterator[Unfolded]:
        """The chosen ones among the next matches."""
        for some in found:
            if self.done:
                return
            if numbers := self.next(len(some)):
                yield some.chosen(np.array(numbers))


def _chosen_of(part: Part, passing: Passing, limit: int | None, max_rows: int) -> Iterator[Unfolded]:
    """The chosen matches of the next part; those that columns tell are cut out."""
    matches = None if limit is not None else _in_turn(part)
    if matches is None:
        return _numbered(part, passing, limit, max_rows)
    ranks = passing.next(len(matches.positions[0]))
    return _unfolded_in_turn(part, matches.among(slice(ranks.start, ranks.stop, ranks.step)), max_rows)


def _in_turn(part: Part) -> EventsInTurn | None:
    """The matches of a part if columns tell them."""
    found = part.found
    return found.made if isinstance(found, CountedMatches) and isinstance(found.made, EventsInTurn) else None


def _unfolded_in_turn(part: Part, matches: EventsInTurn, max_rows: int) -> Iterator[Unfolded]:
    """These matches in place of a part's own."""
    found = CountedMatches(len(matches.positions[0]), lambda: matches, single=False)
    return unfolded(replace(part, found=found), None, max_rows)


def _numbered(part: Part, passing: Passing, limit: int | None, max_rows: int) -> Iterator[Unfolded]:
    """The chosen matches of the next part; with a limit, matches of an event come in an order of their own."""
    counter = counting.MatchCounter(part, lags=False)

    def ranked(detections: range, total: int, ranks: range) -> Iterator[Pick]:
        counted = counter.counted(detections, total)
        return (match_by_number(part.graph, counted, detections.start, rank) for rank in ranks)

    for some, few in _together(_events_chosen(part, passing, limit)):
        if few or limit is not None:
            numbers = _numbers_in(some, (ranks for _, _, ranks in some))
            yield from _taken(_unfolded(part, some, limit), numbers, max_rows)
        else:
            yield from picked(part, (pick for event in some for pick in ranked(*event)), max_rows)


def _events_chosen(part: Part, passing: Passing, limit: int | None) -> Iterator[_Event]:
    """The events with chosen matches."""
    for detections, total in counting.events_of(part, limit):
        if passing.done:
            return
        ranks = passing.next(total)
        if ranks:
            yield detections, total, ranks


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
        check_values(report, *self.by, _FUNCTIONS)

    def picks(self, parts: Iterable[Part], report: Report, limit: int | None, max_rows: int) -> Picked:
        """The first matches of each part."""
        for part in parts:
            matches = _in_turn(part)
            chosen = None if matches is None else self._among(part, matches, report, limit)
            if chosen is None:
                yield part, self._of_part(part, report, limit, max_rows)
            else:
                yield part, _unfolded_in_turn(part, chosen, max_rows)

    def _values(self, part: Part, report: Report) -> tuple[int, Values, float]:
        """By which operation the values of a match's events are combined, these by mark, and what none of them make."""
        marks = MarkValues(part, report)
        if self.by == "start":
            return LEAST, Values(pa.array(marks.positions())), float("nan")
        label, attribute, function = (None, None, "count") if isinstance(self.by, str) else self.by
        combined, values, _ = combining(function, marks.given(label, attribute, function))
        return combined, values, 0 if function == "count" else float("nan")

    def _among(self, part: Part, matches: EventsInTurn, report: Report, limit: int | None) -> EventsInTurn | None:
        """Those of a part that columns tell; None where numbers may need more than 64 bits."""
        combined, values, nothing = self._values(part, report)
        operation, folding = lowest(part, combined, values, greatest=self.descending)
        if folding.weights.dtype.hasobject:
            return None
        by_mark, detecting = folding.weights[:, 0], matches.positions[-1]
        found = np.full(len(detecting), np.nan)
        for number in matches.numbered(0, len(detecting))[2]:
            own = by_mark[1 + number]
            if operation == PLUS:
                found = np.where(np.isnan(found), own, found + np.where(np.isnan(own), 0.0, own))
            else:
                found = np.fmin(found, own) if operation == LEAST else np.fmax(found, own)
        totals = np.diff(np.flatnonzero(np.diff(detecting, prepend=-1)), append=len(detecting))
        counting.refuse_if_cut(totals.tolist(), limit)
        return matches.among(self._lowest(found, totals, nothing))

    def _of_part(self, part: Part, report: Report, limit: int | None, max_rows: int) -> Iterator[Unfolded]:
        """Those of a part. Values of matches outside the window may lengthen the search, which then counts again."""
        combined, values, nothing = self._values(part, report)
        counter = counting.MatchCounter(part, lags=True)
        operation, folding = lowest(counter.part, combined, values, greatest=self.descending)
        below = np.zeros((1, 2), folding.weights.dtype)

        def searched(detections: range, total: int, *, lags: bool = True) -> Iterator[Pick]:
            counted = counter.counted(detections, total, lags=lags)
            for d in detections:
                folding.fold(d, below)
            own = folding.weights[part.graph.detections[detections, layout.D_MARK], 0]
            # A match without events of the label has none, but their number is zero.
            begins = np.where(own != own, nothing, own)
            size, most = min(self.size, total), _BEHIND if counter.behind(detections) else None
            found = 0
            for pick in _searched(part.graph, operation, folding, detections, counted, begins, size, most):
                found += 1
                yield pick
            if found < size:
                yield from islice(searched(detections, total, lags=False), found, None)

        for some, few in _together(_events_all(part, limit)):
            if few and not folding.weights.dtype.hasobject:
                ends, best = np.cumsum([total for _, total, _ in some]), list[Unfolded]()
                kept = np.zeros(len(some), np.int64)
                for found in _unfolded(part, some, None):
                    own = np.diff(np.clip(ends, 0, len(found)), prepend=0)
                    best.append(found.chosen(self._lowest(folding.of_unfolded(found), own, nothing)))
                    ends, kept = ends - len(found), kept + np.minimum(own, min(self.size, len(found)))
                # Those of an event may have been in several.
                whole = all_in_one(best)
                yield from _taken([whole], self._lowest(folding.of_unfolded(whole), kept, nothing), max_rows)
            else:
                yield from picked(part, (pick for own, total, _ in some for pick in searched(own, total)), max_rows)

    def _lowest(self, values: Floats, totals: Ints, nothing: float) -> Ints:
        """The numbers of the first matches of each event, of which it has ``totals``; NaN stands for ``nothing``.

        Equal ones stay in their order.
        """
        values = np.where(np.isnan(values), nothing, values)
        # NumPy sorts NaN to the end.
        order = np.lexsort((values, np.repeat(np.arange(len(totals)), totals)))
        place = np.arange(len(values)) - np.repeat(np.cumsum(totals) - totals, totals)
        return order[place < min(self.size, len(values))]


def _events_all(part: Part, limit: int | None) -> Iterator[_Event]:
    """All events; raises `UnsupportedQueryError` if one has more matches than the query reports."""
    for detections, total in counting.events_of(part, None):
        counting.refuse_if_cut([total], limit)
        yield detections, total, range(total)


#: The first room for branches and paths, and the matches that are found at a time.
_BRANCHES, _FOUND = 1 << 10, 1 << 12
#: With more branches than this, matches that have left the window are in the way.
_BEHIND = 1 << 14


def _searched(
    graph: MatchGraph,
    operation: int,
    folding: Folding,
    detections: range,
    counted: counting.Counted,
    begins: NDArray[Any],
    size: int,
    most: int | None,
) -> Iterator[Pick]:
    """The first ``size`` matches of an event, the best first; ``begins`` are the values of the detecting event.

    There are fewer if more than ``most`` branches would have to be kept.
    """
    (ends, amounts), left = counted, size
    # Python searches where values or numbers of the matches may need more than 64 bits.
    long = ends[-1] >= 2**63 or isinstance(amounts, counting.LongNumbers) or begins.dtype.hasobject
    integers, numbers = (object, object) if long else (np.int64, np.float64)
    kinds = (((4,), np.int32), ((), integers), ((2,), numbers), ((), np.int32))
    room = [np.empty((2 * len(ends) + _BRANCHES, *shape), kind) for shape, kind in kinds]
    firsts, cursor, found = np.array([0, *ends[:-1]], integers), np.zeros(3, np.int64), np.empty(_FOUND, np.int32)
    nodes, own = graph.nodes, graph.detections[detections.start : detections.stop]
    known = nodes, nodes.view(np.int32), own, firsts, begins, amounts, operation, folding.weights, folding.values
    while left > 0:
        cursor[search.K_FOUND] = 0
        fits = (search if long else table).search(*known, found[:left], cursor, *room)
        left -= int(cursor[search.K_FOUND])
        for top in found[: cursor[search.K_FOUND]].tolist():
            _, d, mark, rest = room[0][top].tolist()
            marks = []
            while mark >= 0:
                marks.append(mark)
                _, _, mark, rest = room[0][rest].tolist()
            yield detections[d], _with_last(graph, detections[d], marks)
        if not fits and most is not None and len(room[0]) > most:
            return
        if not fits:
            room = [np.concatenate([array, np.empty_like(array)]) for array in room]


# --- random matches --------------------------------------------------------------------------------------------------

#: With more nodes than this for each match, counting again takes longer than rejecting matches.
_NODES = 1 << 12
#: A sample of more than one in this many is taken from a list of all matches.
_LISTED = 4


@dataclass(frozen=True)
class Sample:
    """``size`` matches of each detecting event, chosen uniformly; at most all of them.

    Matches are counted in a window that lags. A match drawn outside the window of its detection is drawn again.
    """

    size: int
    seed: int
    replacement: bool

    def picks(self, parts: Iterable[Part], report: Report, limit: int | None, max_rows: int) -> Picked:
        """The sample of each part."""
        draw = random.Random(self.seed)
        return ((part, self._of_part(draw, part, limit, max_rows)) for part in parts)

    def _of_part(self, draw: random.Random, part: Part, limit: int | None, max_rows: int) -> Iterator[Unfolded]:
        counter = counting.MatchCounter(part, lags=len(part.graph.nodes) >= _NODES * self.size)
        nodes, small = part.graph.nodes, part.graph.nodes.view(np.int32)
        begin = small[:, layout.I_CHILD] == layout.BOTTOM
        starts = np.zeros(len(part.graph.marks), np.int64)
        starts[small[begin, layout.I_MARK]] = nodes[begin, layout.W_MEASURE]

        def drawn(detections: range, total: int) -> Iterator[Pick]:
            counted = counter.counted(detections, total)
            find = partial(_match_in_window, part.graph, counter.part.graph, starts, counted, detections.start)
            return self._drawn(draw, total, counted[0][-1], find)

        for some, few in _together(_events_all(part, limit)):
            if few:
                numbers = _numbers_in(some, [[*self._drawn(draw, total, total, int)] for _, total, _ in some])
                yield from _taken(_unfolded(part, some, None), numbers, max_rows)
            else:
                yield from picked(part, (pick for own, total, _ in some for pick in drawn(own, total)), max_rows)

    def _drawn(self, draw: random.Random, total: int, count: int, find: Callable[[int], T | None]) -> Iterator[T]:
        """The sample of one event in the order of numbers, of which ``count`` stand for its ``total`` matches."""
        if not self.replacement and self.size * _LISTED > total:
            every = [pick for number in range(count) if (pick := find(number)) is not None]
            return (every[k] for k in sorted(draw.sample(range(total), min(self.size, total))))
        found: list[tuple[int, T]] = []
        refused = set[int]()
        while len(found) < self.size:
            number = draw.randrange(count)
            pick = None if number in refused else find(number)
            if pick is not None:
                found.append((number, pick))
            if pick is None or not self.replacement:
                refused.add(number)
        return (pick for _, pick in sorted(found, key=itemgetter(0)))


def _match_in_window(
    graph: MatchGraph, late: MatchGraph, starts: Ints, counted: counting.Counted, first: int, number: int
) -> Pick | None:
    """A match of an event by its number (see `match_by_number`); None if it is outside the window.

    ``late`` is the graph with the window in which matches were counted; ``starts`` has where they begin at each mark.
    """
    d, marks = match_by_number(late, counted, first, number)
    bound, last = graph.detections[d, layout.D_BOUND], graph.detections[d, layout.D_MARK]
    if late.detections[d, layout.D_BOUND] == bound:
        return d, marks
    # The last event need not be in the window of the earlier ones.
    earlier = len(marks) - (last != layout.NO_MARK)
    return (d, marks) if earlier == 0 or starts[marks[0]] > bound else None


#: Chooses matches.
Picker = NumberRange | First | Sample
