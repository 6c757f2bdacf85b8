"""Determinisation on outputs: the members of a configuration that goes on with one label set, in canonical order."""

from __future__ import annotations

from cerflow.engine.kernels.jit import kernel


@kernel
def insert_member(q, source, at, states, values, first, count, slots, dominated):
    """Add (q, source[at]) to the sorted members ``[first, first + count)``; returns their new number.

    ``dominated[q]`` is a slot of which only the greatest value matters, or -1: of members that differ only there
    one is kept.
    """
    width = slots[q]
    free = dominated[q]
    lo = first
    hi = first + count
    while lo < hi:
        middle = (lo + hi) >> 1
        order = 0
        if states[middle] != q:
            order = -1 if states[middle] < q else 1
        else:
            for s in range(width):
                if s != free and values[middle, s] != source[at, s]:
                    order = -1 if values[middle, s] < source[at, s] else 1
                    break
        if order == 0:
            if free >= 0 and values[middle, free] < source[at, free]:
                values[middle, free] = source[at, free]
            return count
        if order < 0:
            lo = middle + 1
        else:
            hi = middle
    for m in range(first + count, lo, -1):
        states[m] = states[m - 1]
        for s in range(values.shape[1]):
            values[m, s] = values[m - 1, s]
    states[lo] = q
    for s in range(width):
        values[lo, s] = source[at, s]
    for s in range(width, values.shape[1]):
        values[lo, s] = 0
    return count + 1
