"""The match graph that detections refer to, made by the kernels or only when it is read, and their moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import Bytes, IntRows, Ints, Mask, Smalls
from cerflow.engine import layout

#: Distinct numbers are found by counting if their range is at most this many times their number, else by sorting.
_SPAN = 16


@dataclass(frozen=True)
class Moments:
    """Moments by number: the reported position of the event that showed each (null: the clock did), and the time.

    ``members`` has the position of a stored event of each moment's partition. ``together`` numbers what is read
    (events, ticks, pauses), with one number for all whose detections are known at once.
    """

    places: pa.Array  # int64
    times: pa.Array  # of the type of the time column
    members: Ints
    together: Ints

    @staticmethod
    def among(positions: Ints) -> Mask:
        """Marks the detections that are at such a moment."""
        return positions <= layout.FIRST_MOMENT

    @staticmethod
    def numbers(positions: Ints) -> Ints:
        """The numbers of the moments of some detections."""
        return layout.FIRST_MOMENT - positions


def in_turn(rows: Ints, keys: IntRows, begun: Ints, *less: Ints) -> Ints:
    """The order of deadlines by the rows that show them, then by keys as their last ones ``begun``, then by the rest.

    ``keys`` has the words of each key, ``begun`` the position where each deadline begins. If the deadline of any match
    is among those of a row and key, so is that of the last one.
    """
    order = np.arange(len(rows))
    if (rows[1:] < rows[:-1]).any():
        some = order
    else:
        # Deadlines come in the order of time, so there is little to sort.
        tied = rows[1:] == rows[:-1]
        some = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    if not len(some):
        return order
    columns = [rows[some], *keys[some].T]
    grouped = np.lexsort((begun[some], *columns[::-1]))
    differs = np.logical_or.reduce([np.diff(column[grouped]) != 0 for column in columns])
    ends = np.append(np.flatnonzero(differs), len(some) - 1)
    turns = np.empty(len(some), np.int64)
    turns[grouped] = np.repeat(begun[some][grouped[ends]], np.diff(ends, prepend=-1))
    order[some] = some[np.lexsort((*(key[some] for key in less[::-1]), turns, rows[some]))]
    return order


@dataclass(frozen=True)
class MatchGraph:
    """Detections with the nodes and marks that they refer to; the detections of one event are never split.

    ``moments`` are the moments of detections that are not at events.
    """

    detections: IntRows
    nodes: IntRows
    marks: IntRows
    moments: Moments | None = None


@dataclass(frozen=True)
class EventsInTurn:
    """Matches of as many events each, in the order of their detections.

    ``positions`` has those of all first events, of all second ones, …; ``labels`` the numbers of their label sets (0:
    the event is not marked), or one for all.
    """

    positions: Sequence[Ints]
    labels: Sequence[Any]

    @cached_property
    def marked(self) -> list[int]:
        """The places of the events that are marked, such as 0 for the first ones."""
        return [place for place, some in enumerate(self.labels) if np.any(some)]

    def numbered(self, begin: int, end: int) -> tuple[Ints, Ints, IntRows]:
        """The marked events of the matches ``[begin, end)``: position and label set of each, and which a match has.

        Each is there once for all matches that have it at the same place; the last are of shape (marked, matches).
        """
        some = [positions[begin:end] for positions in self.positions]
        pairs = np.array([some[place] * len(some) + place for place in self.marked], np.int64)
        distinct, found, number = _distinct(pairs.reshape(len(self.marked), len(some[0])))
        labels = [np.broadcast_to(self.own_labels(place, begin, end), len(some[0])) for place in self.marked]
        return distinct // len(some), np.array(labels, np.int64).ravel()[found], number

    def among(self, span: slice | Ints) -> EventsInTurn:
        """The matches of a slice, or with these numbers."""
        labels = [own if np.ndim(own) == 0 else own[span] for own in self.labels]
        return EventsInTurn([own[span] for own in self.positions], labels)

    def own_labels(self, place: int, begin: int, end: int) -> Any:
        """The numbers of the label sets at a place of the matches ``[begin, end)``, or one for all."""
        labels = self.labels[place]
        return labels if np.ndim(labels) == 0 else labels[begin:end]

    def graph(self) -> MatchGraph:
        """The matches as a graph."""
        last, matches = len(self.positions) - 1, len(self.positions[0])
        positions, labels, mark = self.numbered(0, matches)
        mark += 1
        marks = np.empty((1 + len(positions), 2), np.int64)
        marks[0] = (-1, 0)
        marks[1:, layout.M_POSITION], marks[1:, layout.M_LABEL] = positions, labels

        chain = [row for row, place in enumerate(self.marked) if place < last]
        nodes = nodes_after_bottom(matches * len(chain))
        small = nodes.view(np.int32)
        own = small[1:].reshape(matches, len(chain), small.shape[1])
        numbers = 1 + np.arange(matches * len(chain)).reshape(matches, len(chain))
        for k, row in enumerate(chain):
            own[:, k, layout.I_CHILD] = numbers[:, k - 1] if k else layout.BOTTOM
            own[:, k, layout.I_MARK] = mark[row]

        detections = np.empty((matches, 4), np.int64)
        detections[:, layout.D_POSITION] = self.positions[last]
        detections[:, layout.D_BOUND] = layout.NO_BOUND
        detections[:, layout.D_MARK] = mark[-1] if last in self.marked else layout.NO_MARK
        detections[:, layout.D_ROOT] = numbers[:, -1] if chain else layout.BOTTOM
        return MatchGraph(detections, nodes, marks)


@dataclass(eq=False)
class CountedMatches:
    """``count`` matches, which ``make`` makes when they are read.

    ``single`` says that each is detected by an event of its own.
    """

    count: int
    make: Callable[[], MatchGraph | EventsInTurn]
    single: bool

    @cached_property
    def made(self) -> MatchGraph | EventsInTurn:
        """The matches."""
        return self.make()

    @cached_property
    def graph(self) -> MatchGraph:
        """The matches as a graph."""
        return self.made.graph() if isinstance(self.made, EventsInTurn) else self.made


def in_one_graph(some: Sequence[MatchGraph | CountedMatches]) -> MatchGraph:
    """One graph of the matches of several graphs, in the order of their detections."""
    graphs = [one.graph if isinstance(one, CountedMatches) else one for one in some]
    # All graphs share the first node and the first mark.
    marks = np.concatenate([graphs[0].marks[:1], *(graph.marks[1:] for graph in graphs)])
    order = np.append(0, 1 + np.argsort(marks[1:, layout.M_POSITION], kind="stable"))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    nodes, found = [graphs[0].nodes[:1]], []
    before = marked = 0
    for graph in graphs:
        own, detections = graph.nodes[1:].copy(), graph.detections.copy()
        small = own.view(np.int32)
        for column in (layout.I_LEFT, layout.I_RIGHT, layout.I_CHILD):
            small[:, column] += np.where(small[:, column] > 0, before, 0).astype(np.int32)
        detections[:, layout.D_ROOT] += np.where(detections[:, layout.D_ROOT] > 0, before, 0)
        for column_of in (small[:, layout.I_MARK], detections[:, layout.D_MARK]):
            column_of[:] = place[column_of + np.where(column_of > 0, marked, 0)]
        before, marked = before + len(own), marked + len(graph.marks) - 1
        nodes.append(own)
        found.append(detections)
    whole = np.concatenate(found)
    detected = np.argsort(whole[:, layout.D_POSITION], kind="stable")
    return MatchGraph(whole[detected], np.concatenate(nodes), marks[order])


def consecutive_events(
    first: int, ends: Bytes, labels: IntRows, kinds: Bytes | None = None, before: Smalls | None = None
) -> EventsInTurn:
    """Matches of consecutive events, one for each event that completes a match.

    ``ends`` has a bit for each event from position ``first`` on, the lowest first: whether a match ends there.
    ``labels`` are the numbers of the label sets of a match's events, by the kind of event if ``kinds`` has that of
    each: (events, kinds). ``before`` has the number of the event before each if that is not the previous one.
    """
    # NumPy finds truths faster than numbers.
    rows = [np.flatnonzero(np.unpackbits(ends, bitorder="little").view(bool))]
    for _ in labels[1:]:
        rows.append(rows[-1] - 1 if before is None else before[rows[-1]].astype(np.int64))
    rows.reverse()
    return EventsInTurn(
        [first + row for row in rows], [own[0 if kinds is None else kinds[row]] for own, row in zip(labels, rows)]
    )


def _distinct(numbers: IntRows) -> tuple[Ints, Ints, IntRows]:
    """The distinct numbers, ascending; where each is found among all, and for each of these its place among them."""
    if len(numbers) == 1 and bool((numbers[0, 1:] > numbers[0, :-1]).all()):
        return numbers[0], np.arange(numbers.size), np.arange(numbers.size).reshape(numbers.shape)
    least, span = (int(numbers.min()), int(np.ptp(numbers)) + 1) if numbers.size else (0, 1)
    if span > _SPAN * numbers.size:
        distinct, found, places = np.unique(numbers, return_index=True, return_inverse=True)
        return distinct, found, places.reshape(numbers.shape)
    # Sorting takes longer.
    at = np.full(span, -1, np.int64)
    at[(numbers - least).ravel()] = np.arange(numbers.size)
    present = at >= 0
    return np.flatnonzero(present) + least, at[present], (np.cumsum(present) - 1)[numbers - least]


def single_events(positions: Ints, labels: Smalls, moments: Moments, numbers: Ints) -> MatchGraph:
    """Matches of one event each, detected at later ``moments``, by their ``numbers``.

    ``positions`` are those of the events, ``labels`` the numbers of their label sets (0: the event is not marked).
    """
    found = EventsInTurn([positions, layout.FIRST_MOMENT - numbers], [labels, 0]).graph()
    roots = found.detections[:, layout.D_ROOT]
    roots[labels == 0] = layout.BOTTOM
    return replace(found, moments=moments)


def nodes_after_bottom(count: int) -> IntRows:
    """The bottom and this many further nodes, each with the bottom as its child and no mark yet."""
    nodes = np.zeros((1 + count, layout.NODE_WORDS), np.int64)
    small = nodes.view(np.int32)
    small[:, [layout.I_LEFT, layout.I_RIGHT]] = -1
    small[:, layout.I_RANK] = 1
    small[:, layout.I_CHILD] = layout.BOTTOM
    nodes[layout.BOTTOM, layout.W_MEASURE] = layout.NOT_BEGUN
    small[layout.BOTTOM, layout.I_CHILD] = -1
    return nodes
