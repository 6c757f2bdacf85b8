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

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined
from cerflow.engine.kernels.base.shared_arrays import halves, state_at, tables_at

#: For LAST, the value of the complex event without events.
NOTHING = 1
_HEAVY = 2**30


def enter(address, mark, measure, child, old):
    """The union of the list ``old`` (or -1) with a mark (or `NO_MARK`) before all complex events of ``child``.

    Takes one node.
    """
    tables, state = tables_at(address), state_at(address)
    nodes, counters = state.nodes, state.counters
    small = halves(nodes)
    earliest = tables.options[layout.O_PICK] == layout.EARLIEST
    both = mark == layout.NO_MARK and min(child, old) > layout.BOTTOM
    if both and small[child, layout.I_WEIGHT] > small[old, layout.I_WEIGHT]:
        old, child = child, old
    if old == layout.BOTTOM:
        value = layout.NOT_BEGUN if earliest else NOTHING
        old = _add(nodes, small, counters, layout.NO_MARK, layout.NOT_BEGUN, value, -1, -1)
    start = min(measure, nodes[child, layout.W_MEASURE])
    if mark != layout.NO_MARK and not earliest:
        value = -state.marks[mark, layout.M_POSITION]
    elif child > layout.BOTTOM:
        value = nodes[child, layout.W_LEAST]
    else:
        value = start if earliest else NOTHING
    if mark == layout.NO_MARK and child == layout.BOTTOM:
        child = -1
    return _add(nodes, small, counters, mark, start, value, child, old)


@inlined
def _add(nodes, small, counters, mark, start, value, child, old):
    n = counters[layout.N_NODES]
    counters[layout.N_NODES] = n + 1
    weight = small[child, layout.I_WEIGHT] if mark == layout.NO_MARK and child > layout.BOTTOM else 1
    left, right, rest, rank = -1, -1, old, 1
    latest, best, least, whole = start, value, value, start
    if old >= 0:
        weight = min(weight + small[old, layout.I_WEIGHT], _HEAVY)
        least = min(least, nodes[old, layout.W_LEAST])
        whole = max(whole, nodes[old, layout.W_MEASURE])
        second = small[old, layout.I_REST]
        if second >= 0 and small[second, layout.I_RANK] == small[old, layout.I_RANK]:
            left, right, rest, rank = old, second, small[second, layout.I_REST], small[old, layout.I_RANK] + 1
            latest = max(latest, max(nodes[left, layout.W_LATEST], nodes[right, layout.W_LATEST]))
            best = min(best, min(nodes[left, layout.W_BEST], nodes[right, layout.W_BEST]))
    nodes[n, layout.W_MEASURE] = whole
    nodes[n, layout.W_START] = start
    nodes[n, layout.W_VALUE] = value
    nodes[n, layout.W_LATEST] = latest
    nodes[n, layout.W_BEST] = best
    nodes[n, layout.W_LEAST] = least
    small[n, layout.I_CHILD] = child
    small[n, layout.I_LEFT] = left
    small[n, layout.I_RIGHT] = right
    small[n, layout.I_REST] = rest
    small[n, layout.I_MARK] = mark
    small[n, layout.I_RANK] = rank
    small[n, layout.I_WEIGHT] = weight
    return n
