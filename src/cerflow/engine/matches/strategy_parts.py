"""Applies NEXT, LAST or MAX of a window when matches are read, by making the graph of the chosen matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from cerflow.base import limits
from cerflow.base.array_types import IntRows, SmallRows
from cerflow.engine import layout
from cerflow.engine.kernels.matches.largest_states import room
from cerflow.engine.kernels.table import largest, pick
from cerflow.engine.matches.graph import MatchGraph
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.stopping import look


class ChosenParts:
    """Parts with the strategy of the query applied at each reading."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[Part]:
        for part in self._parts:
            if part.pick == layout.EVERYTHING:
                yield part
            elif part.pick == layout.LARGEST:
                yield from _largest(part)
            else:
                yield from _picked(part)


def _picked(part: Part) -> Iterator[Part]:
    """The matches that NEXT or LAST choose, in parts of bounded size, unless one event needs a larger part."""
    place = np.zeros(len(part.nodes), np.int32)
    seen = np.zeros(len(part.nodes), np.int32)
    stack = np.empty(2 * len(part.nodes) + 256, np.int32)
    size = _first_size(part)
    at = 0
    while True:
        look()
        new, small = _graph(size)
        found = np.empty((size, 4), np.int64)
        sets, parts = np.empty((size, 4), np.int32), np.empty((size, 2), np.int32)
        graph = (part.nodes, part.nodes.view(np.int32), part.marks, part.detections)
        earliest = part.pick == layout.EARLIEST
        _, at, count, written = pick(*graph, at, earliest, place, seen, stack, sets, parts, new, small, found)
        if written:
            yield replace(
                part, graph=MatchGraph(found[:written], new[:count], part.marks, part.moments), pick=layout.EVERYTHING
            )
        else:
            size *= 2
        if at >= len(part.detections):
            return
        seen.fill(0)


def _largest(part: Part) -> Iterator[Part]:
    """The matches that MAX chooses, in such parts."""
    compared = np.array([bool(labels & part.by) if part.by else bool(labels) for labels in part.label_sets])
    counts = compared[part.marks[:, layout.M_LABEL]]
    size = _first_size(part)
    at = 0
    notes = room(part.nodes, part.marks, counts, size)
    while True:
        look()
        new, small = _graph(size)
        found = np.empty((size, 4), np.int64)
        at, count, written = largest(*notes, part.detections, at, new, small, found)
        if written:
            yield replace(
                part, graph=MatchGraph(found[:written], new[:count], part.marks, part.moments), pick=layout.EVERYTHING
            )
        if at >= len(part.detections):
            return
        if not written:
            size *= 2
            notes = room(part.nodes, part.marks, counts, size)


def _first_size(part: Part) -> int:
    return min(limits.CHOSEN_NODES_EACH * max(1, len(part.detections)), limits.CHOSEN_NODES)


def _graph(size: int) -> tuple[IntRows, SmallRows]:
    """Room for a match graph, with the empty complex event; the second array is the first as int32."""
    nodes = np.zeros((size, layout.NODE_WORDS), np.int64)
    small = nodes.view(np.int32)
    small[layout.BOTTOM, [layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT]] = -1
    nodes[layout.BOTTOM, layout.W_MEASURE] = layout.NOT_BEGUN
    return nodes, small
