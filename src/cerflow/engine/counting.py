"""The number of matches of each detecting event, from the shared graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cerflow.engine import layout
from cerflow.engine.kernels.unfold import count

if TYPE_CHECKING:
    from cerflow.engine.matches import Part

__all__ = ["count_detections"]

Ints = NDArray[np.int64]


def count_detections(part: Part, limit: int | None) -> tuple[Ints, list[int]]:
    """The positions of detecting events and for each the number of its matches, at most ``limit`` if there is one.

    Numbers are exact at any size: what does not fit 64 bits is counted again with Python's integers.
    """
    detections = part.detections
    n = len(detections)
    small = part.nodes.view(np.int32)
    top = len(part.nodes)
    known = np.zeros(top, np.int64)
    amounts = np.zeros(top, np.int64)
    stack = np.zeros(3 * top + 4, np.int64)
    found = np.zeros(n, np.int64)
    large: dict[int, int] = {}
    at, stamp = 0, 0
    while at < n:
        at, stamp = count(part.nodes, small, detections, at, n, stamp, known, amounts, stack, found)
        if at < n:
            large[at] = _count_exactly(part.nodes, small, detections[at])
            at += 1
    positions = detections[:, layout.D_POSITION]
    begins = np.flatnonzero(np.append(True, positions[1:] != positions[:-1])) if n else np.zeros(0, np.int64)
    numbers: list[int] = []
    for first, last in zip(begins.tolist(), [*begins[1:].tolist(), n]):
        total = sum(large[d] if d in large else int(found[d]) for d in range(first, last))
        numbers.append(total if limit is None else min(limit, total))
    return positions[begins], numbers


def _count_exactly(nodes: Ints, small: NDArray[np.int32], detection: Ints) -> int:
    bound = int(detection[layout.D_BOUND])
    root = int(detection[layout.D_ROOT])
    amounts: dict[int, int] = {}
    stack = [root]
    while stack:
        n = stack[-1]
        if n in amounts:
            stack.pop()
            continue
        below = [int(small[n, layout.I_CHILD])]
        below += [
            side
            for side in (int(small[n, layout.I_LEFT]), int(small[n, layout.I_RIGHT]))
            if side >= 0 and nodes[side, layout.W_MEASURE] > bound
        ]
        wanted = [b for b in below if b >= 0 and b not in amounts]
        if wanted:
            stack.extend(wanted)
        else:
            amounts[n] = sum(amounts[b] for b in below if b >= 0) + (below[0] < 0)
            stack.pop()
    return amounts[root]
