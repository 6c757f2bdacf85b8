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
from cerflow.engine.layout import BOTTOM, D_BOUND, I_CHILD, I_LEFT, I_MARK, I_RIGHT, W_MEASURE

# Columns of branches: the set that they continue with (-1: there is one match, complete), detection, the first mark of
# the path so far (-1: none), the branch whose path is the rest
B_NODE, B_DETECTION, B_MARK, B_REST = range(4)
# Columns of values: the least one of a branch, the one of its path so far
V_LEAST, V_SO_FAR = range(2)
# The cursor: branches on the heap, branches made
K_WAITING, K_BRANCHES = range(2)

#: Results of `search` besides branches.
NO_MORE, FULL = -1, -2


class SearchRoom(NamedTuple):
    """A match graph, what is known of its sets, and a row for each branch.

    ``amounts`` are the numbers of complex events of sets, ``bests`` their least values by ``operation`` and ``weights``
    (see `cerflow.engine.kernels.matches.semiring`), both as of the bound of the detections or of an earlier one. In
    Python ``ranks`` and ``values`` may be objects, for integers beyond 64 bits.
    """

    nodes: Any
    small: Any
    detections: Any
    amounts: Any
    operation: Any
    weights: Any
    bests: Any
    branches: Any  # int32, columns B_…
    ranks: Any  # int64
    values: Any  # float64, columns V_…
    heap: Any  # int32
    cursor: Any  # int64, columns K_…


@part
def _comes_first(one, other, f):
    """Whether a branch comes before another: the lower value, without a value last, then the lower number."""
    value, beside = f.values[one, V_LEAST], f.values[other, V_LEAST]
    if value == beside or (value != value and beside != beside):
        return f.ranks[one] < f.ranks[other]
    return value < beside or beside != beside


_put, _take = heap_by(_comes_first, "branch")


@part
def push(f, branch):
    """Put a ``branch`` on the heap of the `SearchRoom` ``f``."""
    _put(f.heap, 0, f.cursor[K_WAITING], branch, f)
    f.cursor[K_WAITING] += 1


@part
def best_with(operation, value, best):
    """The least combination by ``operation`` of a ``value`` with one of a set, whose row is ``best``."""
    least = joined_values(operation, value, best[0])
    return value if best[1] == 1 and value < least else least


@kernel
def search(*given):
    """The next complete branch of a `SearchRoom`, `NO_MORE`, or `FULL` if there is no room for three more branches."""
    f = SearchRoom(*given)
    branches, values = f.branches, f.values
    while f.cursor[K_WAITING] > 0:
        made = f.cursor[K_BRANCHES]
        if made + 3 > f.heap.shape[0]:
            return FULL
        top = _take(f.heap, 0, f.cursor[K_WAITING], f)
        f.cursor[K_WAITING] -= 1
        node, rank = branches[top, B_NODE], f.ranks[top]
        if node < 0:
            return top
        bound = f.detections[branches[top, B_DETECTION], D_BOUND]
        for field in (I_CHILD, I_LEFT, I_RIGHT):
            value, mark, rest = values[top, V_SO_FAR], branches[top, B_MARK], branches[top, B_REST]
            go_on = f.small[node, field]
            if field == I_CHILD:
                if go_on >= 0:
                    mark, rest = f.small[node, I_MARK], top
                    value = joined_values(f.operation, value, f.weights[mark, 0])
                if go_on <= BOTTOM:
                    go_on = -1
            elif go_on < 0 or f.nodes[go_on, W_MEASURE] <= bound:
                continue
            branches[made, B_NODE], branches[made, B_DETECTION] = go_on, branches[top, B_DETECTION]
            branches[made, B_MARK], branches[made, B_REST] = mark, rest
            f.ranks[made] = rank
            values[made, V_SO_FAR] = value
            values[made, V_LEAST] = value if go_on < 0 else best_with(f.operation, value, f.bests[go_on])
            push(f, np.int32(made))
            made += 1
            rank += f.amounts[go_on] if go_on >= 0 else 1
        f.cursor[K_BRANCHES] = made
    return NO_MORE


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
