"""The sets of the match graph for a strategy that chooses among the matches of a window when they are read.

A set is an immutable list of parts, the latest first. A part is a mark before all complex events of another set, or
another set as it is (without a mark). Lists are skew-binary (Okasaki, Purely Functional Data Structures, 9.3): adding a
part takes one node, and `left`, `right` and `rest` lead to any part in logarithmically many steps. To join two lists,
the lighter becomes a part of the heavier, so parts without marks are nested to logarithmic depth.

Every node holds the latest start and the least value of its tree, and of its tree and the rest of the list. The value
of a part tells how good it may be, the less the better: for NEXT its earliest start, for LAST the negative position of
its mark (of parts without events `NOTHING`). So the best part in a window is found without visiting the others. Starts
that have left the window may still count in values, which is why these are bounds; those in the window are exact.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import inlined
from cerflow.engine.kernels.base.shared_arrays import halves, state_at, tables_at
from cerflow.engine.layout import (
    BOTTOM,
    EARLIEST,
    I_CHILD,
    I_LEFT,
    I_MARK,
    I_RANK,
    I_REST,
    I_RIGHT,
    I_WEIGHT,
    M_POSITION,
    N_NODES,
    NO_MARK,
    NOT_BEGUN,
    O_PICK,
    W_BEST,
    W_LATEST,
    W_LEAST,
    W_MEASURE,
    W_START,
    W_VALUE,
)

__all__ = ["NOTHING", "enter"]

#: For LAST, the value of the complex event without events.
NOTHING = 1
_HEAVY = 2**30


def enter(address, mark, measure, child, old, bound):
    """The union of the list ``old`` (or -1) with a mark (or `NO_MARK`) before all complex events of ``child``.

    Takes one node. Parts that begin at or before ``bound`` may be left out.
    """
    tables, state = tables_at(address), state_at(address)
    nodes, counters = state.nodes, state.counters
    small = halves(nodes)
    earliest = tables.options[O_PICK] == EARLIEST
    if mark == NO_MARK and child > BOTTOM and old > BOTTOM and small[child, I_WEIGHT] > small[old, I_WEIGHT]:
        old, child = child, old
    if old == BOTTOM:
        old = _add(nodes, small, counters, NO_MARK, NOT_BEGUN, NOT_BEGUN if earliest else NOTHING, -1, -1, bound)
    start = min(measure, nodes[child, W_MEASURE])
    if mark != NO_MARK and not earliest:
        value = -state.marks[mark, M_POSITION]
    elif child > BOTTOM:
        value = nodes[child, W_LEAST]
    else:
        value = start if earliest else NOTHING
    if mark == NO_MARK and child == BOTTOM:
        child = -1
    return _add(nodes, small, counters, mark, start, value, child, old, bound)


@inlined
def _add(nodes, small, counters, mark, start, value, child, old, bound):
    n = counters[N_NODES]
    counters[N_NODES] = n + 1
    weight = small[child, I_WEIGHT] if mark == NO_MARK and child > BOTTOM else 1
    left, right, rest, rank = -1, -1, old, 1
    latest, best, least, whole = start, value, value, start
    if old >= 0:
        weight = min(weight + small[old, I_WEIGHT], _HEAVY)
        least = min(least, nodes[old, W_LEAST])
        whole = max(whole, nodes[old, W_MEASURE])
        second = small[old, I_REST]
        if second >= 0 and small[second, I_RANK] == small[old, I_RANK]:
            left, right, rest, rank = old, second, small[second, I_REST], small[old, I_RANK] + 1
            latest = max(latest, max(nodes[left, W_LATEST], nodes[right, W_LATEST]))
            best = min(best, min(nodes[left, W_BEST], nodes[right, W_BEST]))
    nodes[n, W_MEASURE] = whole
    nodes[n, W_START] = start
    nodes[n, W_VALUE] = value
    nodes[n, W_LATEST] = latest
    nodes[n, W_BEST] = best
    nodes[n, W_LEAST] = least
    small[n, I_CHILD] = child
    small[n, I_LEFT] = left
    small[n, I_RIGHT] = right
    small[n, I_REST] = rest
    small[n, I_MARK] = mark
    small[n, I_RANK] = rank
    small[n, I_WEIGHT] = weight
    return n
