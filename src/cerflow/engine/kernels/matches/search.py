"""Best-first search for the matches of an event with the least values; equal ones come in the order of `unfold`.

A branch stands for the matches with a common end. The least value among them, and the number of the first of them, are
known in advance. So a branch taken from the heap leads to one of the wanted matches, unless the value is that of a
match that has left the window.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel, part
from cerflow.engine.kernels.matches.fold import LEAST, PLUS
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
def _joined(operation, value, other):
    """The value of two parts of a complex event, NaN for none."""
    if value != value:
        return other
    if other != other:
        return value
    if operation == PLUS:
        return value + other
    return min(value, other) if operation == LEAST else max(value, other)


@part
def _push(branch, values, ranks, heap, cursor):
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


@kernel
def search(
    nodes, small, detections, amounts, operation, weight, least, without, branches, ranks, values, paths, heap, cursor
):
    """The next complete branch, `NO_MORE`, or `FULL` if there is no room for three more branches and a path.

    ``amounts`` are numbers of complex events; ``operation``, ``weight``, ``least`` and ``without`` are those of
    `cerflow.engine.kernels.matches.fold.best`. Both are as of the bound of the detections or of an earlier one.
    ``branches`` (int32, columns B_…), ``ranks`` (int64) and ``values`` (float64, columns V_…) have a row for each
    branch, ``heap`` (int32) a place; ``paths`` are int32, columns P_…, ``cursor`` int64, columns K_….
    """
    top = np.int32(-1)
    while top >= 0 or cursor[K_WAITING] > 0:
        if top < 0:
            top = _pop(values, ranks, heap, cursor)
        node = branches[top, B_NODE]
        if node < 0:
            return top
        made = cursor[K_BRANCHES]
        if made + 3 > heap.shape[0] or cursor[K_PATHS] + 1 > paths.shape[0]:
            _push(top, values, ranks, heap, cursor)
            return FULL
        rank = ranks[top]
        bound = detections[branches[top, B_DETECTION], D_BOUND]
        following = np.int32(-1)
        for turn in range(3):
            value = values[top, V_SO_FAR]
            path = branches[top, B_PATH]
            if turn == 0:
                go_on = small[node, I_CHILD]
                if go_on >= 0:
                    mark = small[node, I_MARK]
                    paths[cursor[K_PATHS], P_MARK] = mark
                    paths[cursor[K_PATHS], P_NEXT] = path
                    path = cursor[K_PATHS]
                    cursor[K_PATHS] += 1
                    value = _joined(operation, value, weight[mark])
                if go_on <= BOTTOM:
                    go_on = -1
            else:
                go_on = small[node, I_LEFT if turn == 1 else I_RIGHT]
                if go_on < 0 or nodes[go_on, W_MEASURE] <= bound:
                    continue
            branches[made, B_NODE] = go_on
            branches[made, B_DETECTION] = branches[top, B_DETECTION]
            branches[made, B_PATH] = path
            ranks[made] = rank
            values[made, V_SO_FAR] = value
            best = value
            if go_on >= 0:
                best = _joined(operation, value, least[go_on])
                if without[go_on] == 1 and value < best:
                    best = value
            values[made, V_LEAST] = best
            branch = np.int32(made)
            if following >= 0 and _precedes(values, ranks, branch, following):
                branch, following = following, branch
            if following < 0:
                following = branch
            else:
                _push(branch, values, ranks, heap, cursor)
            made += 1
            rank += amounts[go_on] if go_on >= 0 else 1
        cursor[K_BRANCHES] = made
        # Usually the best one precedes all others and need not wait.
        top = following
        if cursor[K_WAITING] > 0 and _precedes(values, ranks, heap[0], top):
            _push(top, values, ranks, heap, cursor)
            top = np.int32(-1)
    return NO_MORE
