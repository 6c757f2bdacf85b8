"""The match graph: shared, immutable sets of complex events.

A node is an event marked with labels, in front of every complex event of the set ``child``, together with the two
further sets ``left`` and ``right``. Nodes form leftist heaps by the latest start among the complex events that go
through the event. No set below begins later, so enumeration under a window stops early and never meets a dead end (cf.
tECS of CORE). Melding copies the few nodes on its way and leaves its operands unchanged. A node points only to nodes
with smaller numbers, so bottom-up computations visit the nodes in order.

Nodes refer to events by the numbers of their marks, each a position and a label set, so a match is a list of numbers.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import inlined, kernel
from cerflow.engine.layout import (
    BOTTOM,
    I_CHILD,
    I_LEFT,
    I_MARK,
    I_RANK,
    I_REST,
    I_RIGHT,
    M_LABEL,
    M_POSITION,
    N_MARKS,
    N_NODES,
    N_RANK,
    NO_MARK,
    W_MEASURE,
)


@inlined
def add_mark(marks, counters, position, label):
    """The number of the mark of an event with a label set; marks of the latest event are reused."""
    m = counters[N_MARKS] - 1
    # Position -1 belongs to the empty mark.
    while marks[m, M_POSITION] == position:
        if marks[m, M_LABEL] == label:
            return m
        m -= 1
    m = counters[N_MARKS]
    counters[N_MARKS] = m + 1
    marks[m, M_POSITION] = position
    marks[m, M_LABEL] = label
    return m


@inlined
def add_node(nodes, small, counters, mark, measure, child):
    """A new set of one event before all complex events of ``child``; ``small`` views ``nodes`` as int32."""
    n = counters[N_NODES]
    counters[N_NODES] = n + 1
    start = nodes[child, W_MEASURE]
    nodes[n, W_MEASURE] = start if start < measure else measure
    small[n, I_CHILD] = child
    small[n, I_LEFT] = -1
    small[n, I_RIGHT] = -1
    small[n, I_MARK] = mark
    small[n, I_RANK] = 1
    small[n, I_REST] = BOTTOM
    return n


@kernel
def meld(nodes, small, counters, path, limit, a, b, bound):
    """The union of two disjoint sets ``a`` and ``b``; parts that start at or before ``bound`` may be left out.

    Ranks bound the number of new nodes. Only in a graph from a forged snapshot, where sets are not disjoint, may ranks
    grow without end: then a set is left out, and no node is made beyond ``limit``.
    """
    length = 0
    while a >= 0 and b >= 0 and length < path.shape[0]:
        if nodes[a, W_MEASURE] <= bound:
            a = -1
            break
        if nodes[b, W_MEASURE] <= bound:
            b = -1
            break
        if nodes[a, W_MEASURE] < nodes[b, W_MEASURE]:
            a, b = b, a
        path[length] = a
        length += 1
        a = small[a, I_RIGHT]
    rest = a if a >= 0 else b
    if length > 0 and counters[N_NODES] + length > limit:
        return path[0]
    for k in range(length - 1, -1, -1):
        old = path[k]
        n = counters[N_NODES]
        counters[N_NODES] = n + 1
        left = small[old, I_LEFT]
        nodes[n, W_MEASURE] = nodes[old, W_MEASURE]
        small[n, I_CHILD] = small[old, I_CHILD]
        small[n, I_MARK] = small[old, I_MARK]
        left_rank = small[left, I_RANK] if left >= 0 else 0
        rest_rank = small[rest, I_RANK] if rest >= 0 else 0
        if left_rank < rest_rank:
            left, rest = rest, left
            left_rank, rest_rank = rest_rank, left_rank
        small[n, I_LEFT] = left
        small[n, I_RIGHT] = rest
        small[n, I_RANK] = rest_rank + 1
        small[n, I_REST] = BOTTOM
        if rest_rank + 1 > counters[N_RANK]:
            counters[N_RANK] = rest_rank + 1
        rest = n
    return rest


@inlined
def add_to_set(nodes, small, counters, path, limit, mark, measure, child, old, bound):
    """The union of ``old`` (or -1) with one event before all complex events of ``child``."""
    n = add_node(nodes, small, counters, mark, measure, child)
    if old < 0:
        return n
    if nodes[n, W_MEASURE] >= nodes[old, W_MEASURE]:
        # The usual case: the new event begins no earlier, so it goes on top without any copy.
        small[n, I_LEFT] = old
        return n
    return meld(nodes, small, counters, path, limit, n, old, bound)


@kernel
def collect(nodes, small, new, new_small, marks, new_marks, roots, bounds, forward, used, stack):
    """Copy all nodes reachable from ``roots`` to a new arena, and point the roots there.

    ``roots`` and their ``bounds`` are int64. Nodes and marks keep their order. The arena is ``new``, ``new_small`` is
    the same as int32, ``new_marks`` its marks. ``forward`` (int32, -1 for each node) gets the new numbers of nodes,
    ``used`` (int32, 0 for each mark) those of marks. Returns the numbers of nodes and marks. Roots that share nodes
    must have the same bound.
    """
    forward[BOTTOM] = 0
    for r in range(roots.shape[0]):
        root = roots[r]
        if root < 0 or forward[root] >= 0:
            continue
        bound = bounds[r]
        forward[root] = 0
        stack[0] = root
        depth = 1
        # A node gets on the stack once, when it is forwarded.
        while depth > 0:
            depth -= 1
            n = stack[depth]
            used[small[n, I_MARK]] = 1
            # The last field of a node that is not a list leads to the bottom node.
            for field in (I_CHILD, I_LEFT, I_RIGHT, I_REST):
                target = small[n, field]
                if target >= 0 and forward[target] < 0 and nodes[target, W_MEASURE] > bound:
                    forward[target] = 0
                    stack[depth] = target
                    depth += 1
    mark_count = 0
    used[NO_MARK] = 1
    for m in range(used.shape[0]):
        if used[m] == 1:
            new_marks[mark_count, M_POSITION] = marks[m, M_POSITION]
            new_marks[mark_count, M_LABEL] = marks[m, M_LABEL]
            used[m] = mark_count
            mark_count += 1
    count = 0
    for n in range(forward.shape[0]):
        if forward[n] < 0:
            continue
        forward[n] = count
        new[count, W_MEASURE] = nodes[n, W_MEASURE]
        new_small[count, I_RANK] = small[n, I_RANK]
        new_small[count, I_MARK] = used[small[n, I_MARK]]
        for field in (I_CHILD, I_LEFT, I_RIGHT, I_REST):
            target = small[n, field]
            new_small[count, field] = forward[target] if target >= 0 else -1
        count += 1
    for r in range(roots.shape[0]):
        if roots[r] >= 0:
            roots[r] = forward[roots[r]]
    return count, mark_count
