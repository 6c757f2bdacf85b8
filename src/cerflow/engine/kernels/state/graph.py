"""The match graph: shared, immutable sets of complex events.

A node stands for the union of three sets: its event, marked with labels, in front of every complex event of ``child``,
and the sets ``left`` and ``right``. Nodes form leftist heaps by the latest start among the complex events that go
through the event. No set below begins later, so enumeration under a window stops early and never meets a dead end (cf.
tECS of CORE). Melding copies a few nodes and leaves its operands unchanged. A node points only to nodes with smaller
numbers, so bottom-up computations visit the nodes in order.

The order in a heap is total (see `precedes`), so the first of its sets, and what ANY and LIMIT choose, does not depend
on runs that have left the window, nor on when they did.

Nodes refer to events by the numbers of their marks, each a position and a label set, so a match is a list of numbers.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import halves, state_at


@inlined
def add_mark(marks, counters, position, label):
    """The number of the mark of an event with a label set; marks of the latest event are reused."""
    m = counters[layout.N_MARKS] - 1
    # Position -1 belongs to the empty mark.
    while marks[m, layout.M_POSITION] == position:
        if marks[m, layout.M_LABEL] == label:
            return m
        m -= 1
    m = counters[layout.N_MARKS]
    counters[layout.N_MARKS] = m + 1
    marks[m, layout.M_POSITION] = position
    marks[m, layout.M_LABEL] = label
    return m


@inlined
def add_node(nodes, small, counters, mark, measure, child):
    """A new set of one event before all complex events of ``child``; ``small`` views ``nodes`` as int32."""
    n = counters[layout.N_NODES]
    counters[layout.N_NODES] = n + 1
    start = nodes[child, layout.W_MEASURE]
    nodes[n, layout.W_MEASURE] = start if start < measure else measure
    small[n, layout.I_CHILD] = child
    small[n, layout.I_LEFT] = -1
    small[n, layout.I_RIGHT] = -1
    small[n, layout.I_MARK] = mark
    small[n, layout.I_RANK] = 1
    small[n, layout.I_REST] = layout.BOTTOM
    return n


@part
def precedes(nodes, small, marks, a, b):
    """Whether node ``a`` comes before ``b``: it starts later or, among equals, its event or those before are later."""
    while a != b:
        if nodes[a, layout.W_MEASURE] != nodes[b, layout.W_MEASURE]:
            return nodes[a, layout.W_MEASURE] > nodes[b, layout.W_MEASURE]
        mark, other = small[a, layout.I_MARK], small[b, layout.I_MARK]
        if mark != other:
            # Marks of one event are in the order in which they were made.
            if marks[mark, layout.M_POSITION] != marks[other, layout.M_POSITION]:
                return mark > other
            return marks[mark, layout.M_LABEL] > marks[other, layout.M_LABEL]
        a, b = small[a, layout.I_CHILD], small[b, layout.I_CHILD]
        if a <= layout.BOTTOM or b <= layout.BOTTOM:
            return a > b
    return False


@kernel
def meld(nodes, small, marks, counters, path, limit, a, b, bound):
    """The union of two disjoint sets ``a`` and ``b``; parts that start at or before ``bound`` may be left out.

    Ranks bound the number of new nodes, except in a graph from a forged snapshot, whose sets may overlap: there a set
    is left out rather than a node made beyond ``limit``.
    """
    length = 0
    while a >= 0 and b >= 0 and length < path.shape[0]:
        if nodes[a, layout.W_MEASURE] <= bound:
            a = -1
            break
        if nodes[b, layout.W_MEASURE] <= bound:
            b = -1
            break
        if precedes(nodes, small, marks, b, a):
            a, b = b, a
        path[length] = a
        length += 1
        a = small[a, layout.I_RIGHT]
    rest = a if a >= 0 else b
    if length > 0 and counters[layout.N_NODES] + length > limit:
        return path[0]
    for k in range(length - 1, -1, -1):
        old = path[k]
        n = counters[layout.N_NODES]
        counters[layout.N_NODES] = n + 1
        left = small[old, layout.I_LEFT]
        nodes[n, layout.W_MEASURE] = nodes[old, layout.W_MEASURE]
        small[n, layout.I_CHILD] = small[old, layout.I_CHILD]
        small[n, layout.I_MARK] = small[old, layout.I_MARK]
        left_rank = small[left, layout.I_RANK] if left >= 0 else 0
        rest_rank = small[rest, layout.I_RANK] if rest >= 0 else 0
        if left_rank < rest_rank:
            left, rest = rest, left
            left_rank, rest_rank = rest_rank, left_rank
        small[n, layout.I_LEFT] = left
        small[n, layout.I_RIGHT] = rest
        small[n, layout.I_RANK] = rest_rank + 1
        small[n, layout.I_REST] = layout.BOTTOM
        if rest_rank + 1 > counters[layout.N_RANK]:
            counters[layout.N_RANK] = rest_rank + 1
        rest = n
    return rest


@inlined
def add_to_set(nodes, small, marks, counters, path, limit, mark, measure, child, old, bound):
    """The union of ``old`` (or -1) with one event before all complex events of ``child``."""
    n = add_node(nodes, small, counters, mark, measure, child)
    if old < 0:
        return n
    if nodes[n, layout.W_MEASURE] > nodes[old, layout.W_MEASURE] or precedes(nodes, small, marks, n, old):
        # Usually the new event begins no earlier, so it goes on top without a copy.
        small[n, layout.I_LEFT] = old
        return n
    return meld(nodes, small, marks, counters, path, limit, n, old, bound)


@kernel
def collect(address, bound, new, new_marks, forward, used, stack):
    """Copy all nodes that configurations need to a new arena; returns the numbers of nodes and marks there.

    Nodes that have left the window of their partition, or with ``bound`` that of all, are dropped; the order stays.
    The arena is ``new``, with ``new_marks``. ``forward`` (int32, -1 for each node) gets the new numbers of nodes,
    ``used`` (int32, 0 for each mark) those of marks.
    """
    state = state_at(address)
    nodes, marks, counters = state.nodes, state.marks, state.counters
    small, new_small = halves(nodes), halves(new)
    last = state.partition_long.shape[1] - 1
    forward[layout.BOTTOM] = 0
    for c in range(counters[layout.N_CONFIGS]):
        root = np.int64(state.config[c, layout.C_ROOT])
        if root < 0 or forward[root] >= 0:
            continue
        # Roots that share nodes are of one partition.
        least = max(bound, state.partition_long[state.config[c, layout.C_PARTITION], last])
        forward[root] = 0
        stack[0] = root
        depth = 1
        # A node gets on the stack once, when it is forwarded.
        while depth > 0:
            depth -= 1
            n = stack[depth]
            used[small[n, layout.I_MARK]] = 1
            # The last field of a node that is not a list leads to the bottom node.
            for field in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT, layout.I_REST):
                target = small[n, field]
                if target >= 0 and forward[target] < 0 and nodes[target, layout.W_MEASURE] > least:
                    forward[target] = 0
                    stack[depth] = target
                    depth += 1
    mark_count = 0
    used[layout.NO_MARK] = 1
    for m in range(used.shape[0]):
        if used[m] == 1:
            new_marks[mark_count, layout.M_POSITION] = marks[m, layout.M_POSITION]
            new_marks[mark_count, layout.M_LABEL] = marks[m, layout.M_LABEL]
            used[m] = mark_count
            mark_count += 1
    count = 0
    for n in range(forward.shape[0]):
        if forward[n] < 0:
            continue
        forward[n] = count
        for word in range(nodes.shape[1]):
            new[count, word] = nodes[n, word]
        new_small[count, layout.I_MARK] = used[small[n, layout.I_MARK]]
        for field in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT, layout.I_REST):
            target = small[n, field]
            new_small[count, field] = forward[target] if target >= 0 else -1
        count += 1
    return count, mark_count
