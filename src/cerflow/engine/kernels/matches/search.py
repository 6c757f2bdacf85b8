"""Finds single matches by the counts of the sets on the way, in the order of `cerflow.engine.kernels.matches.unfold`.

`unrank` finds the match with a given number. `search` finds those with the least values, the best first; equal ones
come in that order. A branch stands for the matches with a common end. The least value among them, and the number of
the first of them, are known in advance. So a branch taken from the heap leads to one of the wanted matches, unless the
value is that of a match that has left the window.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel, part
from cerflow.engine.kernels.matches.semiring import joined_values
from cerflow.engine.layout import BOTTOM, D_BOUND, I_CHILD, I_LEFT, I_MARK, I_RIGHT, W_MEASURE

# Columns of branches: the set that they continue with (-1: there is one match, complete), detection, path so far
B_NODE, B_DETECTION, B_PATH = range(3)
# Columns of values: the least one of a branch, the one of its path so far
V_LEAST, V_SO_FAR = range(2)
# Columns of paths: a mark, and the path after it (-1: none)
P_MARK, P_NEXT = range(2)
# The cursor: branches on the heap, branches made, paths made
K_WAITING, K_BRANCHES, K_PATHS = range(3)

#: Results of `search` besides branches.
NO_MORE, FULL = -1, -2


@part
def _precedes(values, ranks, one, other):
    """Whether a branch comes before another: the lower value, without a value last, then the lower number."""
    if values[one, V_LEAST] < values[other, V_LEAST]:
        return True
    if values[one, V_LEAST] > values[other, V_LEAST]:
        return False
    missing = values[one, V_LEAST] != values[one, V_LEAST]
    if missing != (values[other, V_LEAST] != values[other, V_LEAST]):
        return not missing
    return ranks[one] < ranks[other]


@part
def push(branch, values, ranks, heap, cursor):
    """Put a ``branch`` on the ``heap``; ``values``, ``ranks`` and ``cursor`` are those of `search`."""
    at = cursor[K_WAITING]
    cursor[K_WAITING] += 1
    while at > 0 and _precedes(values, ranks, branch, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = branch


@part
def _pop(values, ranks, heap, cursor):
    top = heap[0]
    cursor[K_WAITING] -= 1
    size = cursor[K_WAITING]
    # The last branch takes its place, and sinks.
    moved = heap[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _precedes(values, ranks, heap[below + 1], heap[below]):
            below += 1
        if not _precedes(values, ranks, heap[below], moved):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moved
    return top


@part
def best_with(operation, value, best):
    """The least combination by ``operation`` of a ``value`` with one of a set, whose row is ``best``."""
    least = joined_values(operation, value, best[0])
    return value if best[1] == 1 and value < least else least


@kernel
def search(nodes, small, detections, amounts, operation, weights, bests, branches, ranks, values, paths, heap, cursor):
    """The next complete branch, `NO_MORE`, or `FULL` if there is no room for three more branches and a path.

    ``amounts`` are the numbers of complex events of sets, ``bests`` their least values by ``operation`` and ``weights``
    (see `cerflow.engine.kernels.matches.semiring`), both as of the bound of the detections or of an earlier one.
    ``branches`` (int32, columns B_…), ``ranks`` (int64) and ``values`` (float64, columns V_…) have a row for each
    branch, ``heap`` (int32) a place; ``paths`` are int32, columns P_…, ``cursor`` int64, columns K_…. In Python
    ``ranks`` and ``values`` may be objects, for integers beyond 64 bits.
    """
    while cursor[K_WAITING] > 0:
        made = cursor[K_BRANCHES]
        if made + 3 > heap.shape[0] or cursor[K_PATHS] + 1 > paths.shape[0]:
            return FULL
        top = _pop(values, ranks, heap, cursor)
        node = branches[top, B_NODE]
        if node < 0:
            return top
        rank = ranks[top]
        bound = detections[branches[top, B_DETECTION], D_BOUND]
        for field in (I_CHILD, I_LEFT, I_RIGHT):
            value = values[top, V_SO_FAR]
            path = branches[top, B_PATH]
            go_on = small[node, field]
            if field == I_CHILD:
                if go_on >= 0:
                    mark = small[node, I_MARK]
                    paths[cursor[K_PATHS], P_MARK] = mark
                    paths[cursor[K_PATHS], P_NEXT] = path
                    path = cursor[K_PATHS]
                    cursor[K_PATHS] += 1
                    value = joined_values(operation, value, weights[mark, 0])
                if go_on <= BOTTOM:
                    go_on = -1
            elif go_on < 0 or nodes[go_on, W_MEASURE] <= bound:
                continue
            branches[made, B_NODE] = go_on
            branches[made, B_DETECTION] = branches[top, B_DETECTION]
            branches[made, B_PATH] = path
            ranks[made] = rank
            values[made, V_SO_FAR] = value
            values[made, V_LEAST] = value
            if go_on >= 0:
                values[made, V_LEAST] = best_with(operation, value, bests[go_on])
            push(np.int32(made), values, ranks, heap, cursor)
            made += 1
            rank += amounts[go_on] if go_on >= 0 else 1
        cursor[K_BRANCHES] = made
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
