"""The match graph: sets of complex events, shared and never changed.

A node is an event with its labels, in front of every complex event of the set ``child``, together with the two
further sets ``left`` and ``right``. Nodes form leftist heaps by the latest start among the complex events that go
through the event: no set below begins later, so enumeration under a window stops early and never meets a dead end
(cf. tECS of CORE). Melding copies the few nodes on its way and leaves its operands as they are.
"""

from __future__ import annotations

from cerflow.engine.kernels.jit import inlined, kernel
from cerflow.engine.layout import (
    BOTTOM,
    I_CHILD,
    I_LABEL,
    I_LEFT,
    I_RANK,
    I_RIGHT,
    N_NODES,
    N_RANK,
    W_MEASURE,
    W_POSITION,
)


@inlined
def add_node(nodes, small, counters, position, measure, label, child):
    """A new set of one event before all complex events of ``child``; ``small`` views ``nodes`` as int32."""
    n = counters[N_NODES]
    counters[N_NODES] = n + 1
    start = nodes[child, W_MEASURE]
    nodes[n, W_POSITION] = position
    nodes[n, W_MEASURE] = start if start < measure else measure
    small[n, I_CHILD] = child
    small[n, I_LEFT] = -1
    small[n, I_RIGHT] = -1
    small[n, I_LABEL] = label
    small[n, I_RANK] = 1
    return n


@kernel
def meld(nodes, small, counters, path, a, b, bound):
    """The union of two disjoint sets; parts that start at or before ``bound`` may be left out."""
    length = 0
    while a >= 0 and b >= 0:
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
    for k in range(length - 1, -1, -1):
        old = path[k]
        n = counters[N_NODES]
        counters[N_NODES] = n + 1
        left = small[old, I_LEFT]
        nodes[n, W_POSITION] = nodes[old, W_POSITION]
        nodes[n, W_MEASURE] = nodes[old, W_MEASURE]
        small[n, I_CHILD] = small[old, I_CHILD]
        small[n, I_LABEL] = small[old, I_LABEL]
        left_rank = small[left, I_RANK] if left >= 0 else 0
        rest_rank = small[rest, I_RANK] if rest >= 0 else 0
        if left_rank < rest_rank:
            left, rest = rest, left
            left_rank, rest_rank = rest_rank, left_rank
        small[n, I_LEFT] = left
        small[n, I_RIGHT] = rest
        small[n, I_RANK] = rest_rank + 1
        if rest_rank + 1 > counters[N_RANK]:
            counters[N_RANK] = rest_rank + 1
        rest = n
    return rest


@inlined
def add_to_set(nodes, small, counters, path, position, measure, label, child, old, bound):
    """The union of ``old`` (or -1) with one event before all complex events of ``child``."""
    n = add_node(nodes, small, counters, position, measure, label, child)
    if old < 0:
        return n
    if nodes[n, W_MEASURE] >= nodes[old, W_MEASURE]:
        # The usual case: the new event begins no earlier, so it goes on top without any copy.
        small[n, I_LEFT] = old
        return n
    return meld(nodes, small, counters, path, n, old, bound)


@kernel
def collect(old, old_small, top, roots, bounds, new, new_small, forward, stack):
    """Copy what can be reached from ``roots`` (each with its bound) to a new arena and point the roots there.

    ``forward`` (top entries of -1) tells where nodes went. Returns the number of nodes. Roots that share nodes must
    have the same bound.
    """
    for word in range(old.shape[1]):
        new[BOTTOM, word] = old[BOTTOM, word]
    forward[BOTTOM] = BOTTOM
    count = 1
    for r in range(roots.shape[0]):
        bound = bounds[r]
        root = roots[r]
        if root < 0:
            continue
        if forward[root] >= 0:
            roots[r] = forward[root]
            continue
        for word in range(old.shape[1]):
            new[count, word] = old[root, word]
        forward[root] = count
        roots[r] = count
        stack[0] = count
        depth = 1
        count += 1
        # A node on the stack is copied but still points into the old arena.
        while depth > 0:
            depth -= 1
            n = stack[depth]
            for field in (I_CHILD, I_LEFT, I_RIGHT):
                target = new_small[n, field]
                if target < 0:
                    continue
                if forward[target] < 0:
                    if old[target, W_MEASURE] <= bound:
                        new_small[n, field] = -1
                        continue
                    for word in range(old.shape[1]):
                        new[count, word] = old[target, word]
                    forward[target] = count
                    stack[depth] = count
                    depth += 1
                    count += 1
                new_small[n, field] = forward[target]
    return count
