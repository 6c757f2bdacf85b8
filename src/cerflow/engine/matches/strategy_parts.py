"""Applies NEXT, LAST or MAX of a window when matches are read, by making the graph of the chosen matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from cerflow.base import limits
from cerflow.engine import layout
from cerflow.engine.kernels.matches.largest_states import Room
from cerflow.engine.kernels.matches.pick import ChoosingRoom
from cerflow.engine.kernels.table import largest, pick
from cerflow.engine.matches.graph import MatchGraph, nodes_after_bottom
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.stopping import look


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
    count, new = len(part.graph.nodes), nodes_after_bottom(size - 1)
    graph = part.graph.nodes, part.graph.nodes.view(np.int32), part.graph.marks
    written = new, new.view(np.int32), np.empty((size, 4), np.int64)

    def rows(*shape: int) -> Any:
        return np.zeros(shape, np.int32)

    if part.pick != layout.LARGEST:
        own = rows(count), rows(count), rows(2 * count + 256), rows(size, 4), rows(size, 2)
        return ChoosingRoom(*graph, part.pick == layout.EARLIEST, *own, *written)
    compared = np.array([bool(labels & part.by) if part.by else bool(labels) for labels in part.label_sets])
    each = rows(count), rows(count, 4), rows(count), rows(count, 2)
    some = rows(size, 4), rows(size, 2), rows(2 * size, 2), rows(size, 6), rows(2 * size), rows(size, 4)
    return Room(*graph, compared[part.graph.marks[:, layout.M_LABEL]], *each, *some, rows(size, 2), rows(7), *written)
