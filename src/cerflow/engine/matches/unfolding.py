"""Reads matches from the shared graph as flat arrays, a bounded number at a time, once NEXT, LAST or MAX has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from cerflow.base import limits
from cerflow.engine import layout
from cerflow.engine.events.store import StoredEvents
from cerflow.engine.kernels.matches.largest import NUMBERS, Room
from cerflow.engine.kernels.matches.pick import ChoosingRoom
from cerflow.engine.kernels.matches.unfold import CURSOR_WORDS, K_USED, OUTPUT_FULL, SET_WORDS, STACK_COLUMNS, UNFOLDED
from cerflow.engine.kernels.table import largest, order_detections, pick, unfold
from cerflow.engine.matches.graph import CountedMatches, EventsInTurn, MatchGraph, nodes_after_bottom
from cerflow.engine.results.unfolded_events import ListedEvents, Place, Unfolded, ends_of
from cerflow.engine.stopping import look

#: The number of sets of events that are remembered during unfolding, and of all their events.
_SETS, _LISTED = 1 << 10, 1 << 15

#: Room for the events of matches that are unfolded at a time: by match, and besides.
_EVENTS_EACH, _MORE_EVENTS = 8, 64


#: A match: the number of its detection and its marks, in the order of the events.
Pick = tuple[int, list[int]]


@dataclass(frozen=True)
class Part:
    """Detections with the graph and the events they refer to; the detections of one event are never split.

    With a ``pick`` (see `cerflow.engine.layout`), the strategy has yet to be applied. ``alone`` says that the
    strategy will leave one match of every event; ``by`` has the labels that it compares (empty for all events).
    """

    found: MatchGraph | CountedMatches
    kept: StoredEvents
    label_sets: list[frozenset[str]]
    pick: int = layout.EVERYTHING
    alone: bool = False
    by: frozenset[str] = frozenset()

    @property
    def graph(self) -> MatchGraph:
        """The graph, made now if the matches are counted only."""
        return self.found.graph if isinstance(self.found, CountedMatches) else self.found


@dataclass(frozen=True)
class RereadParts:
    """Parts that are made anew at each iteration."""

    make: Callable[[], Iterator[Part]]

    def __iter__(self) -> Iterator[Part]:
        return self.make()


def unfolded(part: Part, limit: int | None, max_rows: int) -> Iterator[Unfolded]:
    """Unfold the detections of a part, at most ``max_rows`` matches at a time and ``limit`` of each event."""
    if limit is None and isinstance(part.found, CountedMatches) and isinstance(part.found.made, EventsInTurn):
        yield from _in_turn(part.found.made, max_rows)
        return
    graph = part.graph
    small, detections = graph.nodes.view(np.int32), graph.detections
    if limit is not None:
        detections = detections.copy()
        order_detections(graph.nodes, small, graph.marks, detections)
    cursor = np.zeros(CURSOR_WORDS, np.int64)
    stack = np.zeros((256, STACK_COLUMNS), np.int32)
    path = np.zeros((2, 64), np.int32)
    number = np.zeros(len(graph.marks), np.int32)
    used = np.empty(len(graph.marks), np.int32)
    sets, listed = np.zeros((_SETS, SET_WORDS), np.int64), np.empty(_LISTED, np.int32)
    size = _EVENTS_EACH * max_rows + _MORE_EVENTS
    while True:
        look()
        # The caller keeps the arrays, so the next matches get new ones.
        offsets = np.empty(max_rows + 1, np.int32)
        events = np.empty(size, np.int32)
        ends = np.empty((2, max_rows), np.int32)
        owner = np.empty(max_rows, np.int32)
        given = (graph.nodes, small, graph.marks, detections, -1 if limit is None else limit)
        scratch = (cursor, stack, path, number, used, sets, listed)
        reason, matches = unfold(*given, *scratch, offsets, events, ends, owner)
        if matches:
            chosen = used[: cursor[K_USED]]
            first, last = int(owner[0]), int(owner[matches - 1])
            own = detections[first : last + 1]
            positions, last_marks = own[:, layout.D_POSITION], own[:, layout.D_MARK]
            marked = (last_marks != layout.NO_MARK) & (graph.marks[last_marks, layout.M_POSITION] == positions)
            of_matches = ListedEvents(
                offsets[: matches + 1],
                events[: offsets[matches]],
                ends[:, :matches],
                chosen.copy(),
                # One column at a time is faster than rows.
                graph.marks[:, layout.M_POSITION][chosen],
                graph.marks[:, layout.M_LABEL][chosen],
            )
            np.subtract(owner, first, out=owner)
            own_positions = np.ascontiguousarray(positions)
            yield Unfolded(own_positions, owner[:matches], of_matches, end_detects=bool(marked.all()))
        number[used[: cursor[K_USED]]] = 0
        cursor[K_USED] = 0
        if reason == UNFOLDED:
            return
        if reason == OUTPUT_FULL:
            # A single match may be longer than the buffer.
            size *= 1 if matches else 2
        else:
            stack = np.concatenate([stack, np.zeros_like(stack)])
            path = np.concatenate([np.zeros_like(path), path], axis=1)


def _in_turn(matches: EventsInTurn, max_rows: int) -> Iterator[Unfolded]:
    """Matches of as many events each, at most ``max_rows`` at a time; each is a detection of its own."""
    detecting, width = matches.positions[-1], len(matches.marked)
    # Long matches take no more room than in a graph.
    size = max(1, min(max_rows, (_EVENTS_EACH * max_rows + _MORE_EVENTS) // max(1, width)))
    for begin in range(0, len(detecting), size):
        look()
        detected = detecting[begin : begin + size]
        end, count = begin + len(detected), len(detected)
        yield Unfolded(
            detected,
            np.arange(count, dtype=np.int32),
            partial(_listed, matches, begin, end),
            end_detects=len(matches.positions) - 1 in matches.marked,
            places=[Place(matches.positions[k][begin:end], matches.own_labels(k, begin, end)) for k in matches.marked],
        )


def _listed(matches: EventsInTurn, begin: int, end: int) -> ListedEvents:
    """The events of the matches ``[begin, end)``."""
    positions, labels, number = matches.numbered(begin, end)
    events, count, width = number.astype(np.int32), end - begin, len(matches.marked)
    return ListedEvents(
        width * np.arange(count + 1, dtype=np.int32),
        events.T.ravel(),
        events[[0, -1]] if width else np.full((2, count), -1, np.int32),
        np.arange(len(positions), dtype=np.int32),
        positions,
        labels,
    )


def picked(part: Part, picks: Iterable[Pick], max_rows: int) -> Iterator[Unfolded]:
    """Matches as flat arrays, at most ``max_rows`` at a time."""
    rest = iter(picks)
    while some := list(islice(rest, max_rows)):
        detections, owner = np.unique([d for d, _ in some], return_inverse=True)
        marks = np.array([mark for _, own in some for mark in own], np.int64)
        used, events = (found.astype(np.int32) for found in np.unique(marks, return_inverse=True))
        offsets = np.cumsum([0, *(len(own) for _, own in some)], dtype=np.int32)
        positions, labels = (part.graph.marks[used, column] for column in (layout.M_POSITION, layout.M_LABEL))
        detected, ends = part.graph.detections[detections, layout.D_POSITION], ends_of(offsets, events)
        listed = ListedEvents(offsets, events, ends, used, positions, labels)
        yield Unfolded(detected, owner.astype(np.int32), listed)


def chosen_parts(parts: Iterable[Part]) -> Iterator[Part]:
    """Parts with the strategy of the query applied."""
    for part in parts:
        yield from [part] if part.pick == layout.EVERYTHING else _chosen(part)


def _chosen(part: Part) -> Iterator[Part]:
    """The matches that the strategy chooses, in parts of bounded size, unless one event needs a larger part."""
    size = min(limits.CHOSEN_NODES_EACH * max(1, len(part.graph.detections)), limits.CHOSEN_NODES)
    at = 0
    while at < len(part.graph.detections):
        look()
        room = _room(part, size)
        at, count, written = (largest if part.pick == layout.LARGEST else pick)(part.graph.detections, at, *room)
        if written:
            graph = MatchGraph(room.found[:written], room.new[:count], part.graph.marks, part.graph.moments)
            yield replace(part, found=graph, pick=layout.EVERYTHING)
        else:
            size *= 2


def _room(part: Part, size: int) -> Room | ChoosingRoom:
    """Room for about this many parts of sets, and nodes of the new graph."""
    graph, new = part.graph, nodes_after_bottom(size - 1)
    arrays: dict[str, Any] = {"nodes": graph.nodes, "small": graph.nodes.view(np.int32), "marks": graph.marks}
    arrays |= {"new": new, "new_small": new.view(np.int32), "found": np.empty((size, 4), np.int64)}
    count, shapes = len(graph.nodes), dict[str, Any]()
    if part.pick != layout.LARGEST:
        shapes = {"place": count, "seen": count, "stack": 2 * count + 256, "sets": (size, 4), "parts": (size, 2)}
        return ChoosingRoom(earliest=part.pick == layout.EARLIEST, **arrays, **_zeros(shapes))
    compared = np.array([bool(labels & part.by) if part.by else bool(labels) for labels in part.label_sets])
    shapes = {"place": count, "seen": (count, 4), "stack": count, "pending": (count, 2), "lists": (size, 4)}
    shapes |= {"parts": (size + count, 2), "members": (2 * (size + count), 2), "states": (size, 6), "table": 2 * size}
    shapes |= {"steps": (size, 4), "order": (size, 2), "numbers": NUMBERS}
    return Room(counts=compared[graph.marks[:, layout.M_LABEL]], **arrays, **_zeros(shapes))


def _zeros(shapes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.zeros(shape, np.int32) for name, shape in shapes.items()}
