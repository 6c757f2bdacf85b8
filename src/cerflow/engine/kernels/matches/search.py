"""Finds single matches by the counts of the sets on the way, in the order of `cerflow.engine.kernels.matches.unfold`.

`unrank` finds the match with a given number. `search` finds those with the least values, the best first; equal ones
come in that order. A branch stands for the matches with a common end. The least value among them, and the number of
the first of them, are known in advance. So a branch taken from the heap leads to one of the wanted matches, unless the
value is that of a match that has left the window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cerflow.engine.kernels.base.ordering import heap_by
from cerflow.engine.kernels.base.parts import kernel, part
from cerflow.engine.kernels.matches.semiring import joined_values
from cerflow.engine.layout import BOTTOM, D_BOUND, D_ROOT, I_CHILD, I_LEFT, I_MARK, I_RIGHT, W_MEASURE

# Columns of branches: the set that they continue with (-1: there is one match, complete), detection, the first mark of
# the path so far (-1: none), the branch whose path is the rest
B_NODE, B_DETECTION, B_MARK, B_REST = range(4)
# Columns of values: the least one of a branch, the one of its path so far
V_LEAST, V_SO_FAR = range(2)
# The cursor: branches on the heap, branches made, matches found
K_WAITING, K_BRANCHES, K_FOUND = range(3)


class SearchRoom(NamedTuple):
    """A match graph, what is known of the detections of an event and of sets, and a row for each branch.

    ``amounts`` are the numbers of complex events of sets, ``bests`` their least values by ``operation`` and ``weights``
    (see `cerflow.engine.kernels.matches.semiring`), both as of the bound of the detections or of an earlier one. In
    Python ``ranks`` and ``values`` may be objects, for integers beyond 64 bits.
    """

    nodes: Any
    small: Any
    detections: Any  # those of the event
    firsts: Any  # int64: the number of the first match of each detection
    begins: Any  # float64: the value of the detecting event
    amounts: Any
    operation: Any
    weights: Any
    bests: Any
    found: Any  # int32: the branches of matches
    cursor: Any  # int64, columns K_…
    branches: Any  # int32, columns B_…
    ranks: Any  # int64
    values: Any  # float64, columns V_…
    heap: Any  # int32


@part
def _comes_first(one, other, f):
    """Whether a branch comes before another: the lower value, without a value last, then the lower number."""
    value, beside = f.values[one, V_LEAST], f.values[other, V_LEAST]
    if value == beside or (value != value and beside != beside):
        return f.ranks[one] < f.ranks[other]
    return value < beside or beside != beside


_put, _take = heap_by(_comes_first, "branch")


@part
def _push(f, node, branch, rank, value):
    """Put a branch on the heap, whose path has a value so far; ``branch`` has its other columns."""
    made = f.cursor[K_BRANCHES]
    f.branches[made, B_NODE] = node
    f.branches[made, B_DETECTION], f.branches[made, B_MARK], f.branches[made, B_REST] = branch
    f.ranks[made] = rank
    f.values[made, V_SO_FAR] = f.values[made, V_LEAST] = value
    if node >= 0:
        least = joined_values(f.operation, value, f.bests[node, 0])
        f.values[made, V_LEAST] = value if f.bests[node, 1] == 1 and value < least else least
    _put(f.heap, 0, f.cursor[K_WAITING], np.int32(made), f)
    f.cursor[K_WAITING] += 1
    f.cursor[K_BRANCHES] = made + 1


@kernel
def search(*given):
    """Find the next matches of a `SearchRoom`, until they are enough; returns whether there was room for all branches.

    There must be room for the detections and three more branches at first, when the cursor is zero.
    """
    f = SearchRoom(*given)
    if f.cursor[K_BRANCHES] == 0:
        for d in range(f.detections.shape[0]):
            _push(f, f.detections[d, D_ROOT], (d, -1, -1), f.firsts[d], f.begins[d])
    while f.cursor[K_WAITING] > 0 and f.cursor[K_FOUND] < f.found.shape[0]:
        if f.cursor[K_BRANCHES] + 3 > f.heap.shape[0]:
            return False
        top = _take(f.heap, 0, f.cursor[K_WAITING], f)
        f.cursor[K_WAITING] -= 1
        node, rank, value = f.branches[top, B_NODE], f.ranks[top], f.values[top, V_SO_FAR]
        if node < 0:
            f.found[f.cursor[K_FOUND]] = top
            f.cursor[K_FOUND] += 1
            continue
        child, d = f.small[node, I_CHILD], f.branches[top, B_DETECTION]
        path = d, f.branches[top, B_MARK], f.branches[top, B_REST]
        if child >= 0:
            mark = f.small[node, I_MARK]
            more = joined_values(f.operation, value, f.weights[mark, 0])
            _push(f, child if child > BOTTOM else -1, (d, mark, top), rank, more)
        else:
            _push(f, -1, path, rank, value)
        rank += f.amounts[child] if child > BOTTOM else 1
        for field in (I_LEFT, I_RIGHT):
            beside = f.small[node, field]
            if beside >= 0 and f.nodes[beside, W_MEASURE] > f.detections[d, D_BOUND]:
                _push(f, beside, path, rank, value)
                rank += f.amounts[beside]
    return True


@kernel
def unrank(nodes, small, amounts, root, bound, rank, path):
    """Write the marks of complex event number ``rank`` of a set to ``path``, the last one first; returns their number.

    ``path`` is int32. ``amounts`` are the numbers of complex events of sets as of the bound. Returns -1 if the path
    is full.
    """
    n = root
    length = 0
    # The number of the node decreases.
    while True:
        child = small[n, I_CHILD]
        own = amounts[child] if child > BOTTOM else 1
        if rank < own:
            if child < 0:
                return length
            if length >= path.shape[0]:
                return -1
            path[length] = small[n, I_MARK]
            length += 1
            if child == BOTTOM:
                return length
            n = child
            continue
        rank -= own
        left = small[n, I_LEFT]
        if left >= 0 and nodes[left, W_MEASURE] > bound:
            if rank < amounts[left]:
                n = left
                continue
            rank -= amounts[left]
        n = small[n, I_RIGHT]
