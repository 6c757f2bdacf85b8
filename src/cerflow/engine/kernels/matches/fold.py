"""Folding over the complex events of a set, bottom-up along the shared graph, without unfolding them.

These kernels also run as plain Python on arrays of Python integers, for numbers beyond 64 bits.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.layout import BOTTOM, D_BOUND, D_MARK, D_ROOT, I_CHILD, I_LEFT, I_MARK, I_RIGHT, NO_MARK, W_MEASURE

# How `best` combines the values of two events of a complex event
PLUS, LEAST, GREATEST = range(3)


@kernel
def reach(nodes, small, root, bound, known, low, stack, order):
    """The nodes below ``root`` without a value, or without one for ``bound``: children first. Returns their number.

    A value is valid as long as the earliest start below its node, in ``low``, is in the window. ``known`` (zeros at
    first) says which nodes have a value.
    """
    count = 0
    stack[0] = root
    depth = 1
    # Nodes on the stack have decreasing numbers; a node that leaves it is known for the bound.
    while depth > 0:
        n = stack[depth - 1]
        if known[n] == 1 and low[n] > bound:
            depth -= 1
            continue
        ready = True
        child = small[n, I_CHILD]
        lowest = nodes[n, W_MEASURE]
        if child > BOTTOM:
            lowest = low[child]
            if known[child] == 0 or lowest <= bound:
                stack[depth] = child
                depth += 1
                ready = False
        for field in (I_LEFT, I_RIGHT):
            beside = small[n, field]
            if beside < 0 or nodes[beside, W_MEASURE] <= bound:
                continue
            if known[beside] == 0 or low[beside] <= bound:
                stack[depth] = beside
                depth += 1
                ready = False
            else:
                lowest = min(lowest, low[beside])
        if ready:
            known[n] = 1
            low[n] = lowest
            order[count] = n
            count += 1
            depth -= 1
    return count


@kernel
def total(nodes, small, detections, first, last, start, factor, weight, sums, found, known, low, stack, order):
    """Sums over all complex events of each detection ``[first, last)``, in ``found`` (detections, columns).

    Column j of ``sums`` (nodes, columns) adds up a value over all complex events in the set. The value is ``start[j]``
    for the complex event without events. The event of mark m in front multiplies the value by ``factor[m, j]`` and adds
    ``weight[m, j]``. Column 0 must be the number of complex events: start 1, factor 1, weight 0. All numbers are
    float64, or Python numbers; ``factor`` and ``weight`` have a row for each mark.
    """
    columns = start.shape[0]
    for d in range(first, last):
        bound = detections[d, D_BOUND]
        root = detections[d, D_ROOT]
        for i in range(reach(nodes, small, root, bound, known, low, stack, order)):
            n = order[i]
            child = small[n, I_CHILD]
            mark = small[n, I_MARK]
            for j in range(columns):
                if child < 0:
                    value = start[j]
                elif child == BOTTOM:
                    value = start[j] * factor[mark, j] + weight[mark, j]
                else:
                    value = sums[child, j] * factor[mark, j] + weight[mark, j] * sums[child, 0]
                for field in (I_LEFT, I_RIGHT):
                    beside = small[n, field]
                    if beside >= 0 and nodes[beside, W_MEASURE] > bound:
                        value += sums[beside, j]
                sums[n, j] = value
        mark = detections[d, D_MARK]
        for j in range(columns):
            found[d, j] = sums[root, j] * factor[mark, j] + weight[mark, j] * sums[root, 0]


@kernel
def best(
    nodes, small, detections, first, last, operation, weight, least, without, found, lacking, known, low, stack, order
):
    """The least value among the complex events below each detection ``[first, last)``, in ``found``.

    The value of a complex event combines the ``weight`` of its marks, except NaN, by ``operation`` (`PLUS`, `LEAST`,
    `GREATEST`); without other weights it has no value. The least value is NaN if no complex event has a value.
    ``lacking`` tells whether some has none. ``least`` and ``without`` hold the same for each node. The mark of the
    detection itself is left out. Values are float64, or Python numbers; ``lacking`` and ``without`` are int8.
    """
    for d in range(first, last):
        bound = detections[d, D_BOUND]
        root = detections[d, D_ROOT]
        for i in range(reach(nodes, small, root, bound, known, low, stack, order)):
            n = order[i]
            child = small[n, I_CHILD]
            value = weight[NO_MARK]
            empty = 1
            if child >= 0:
                own = weight[small[n, I_MARK]]
                value = own
                if child > BOTTOM:
                    below = least[child]
                    empty = without[child]
                    if own != own:
                        value = below
                    elif below == below:
                        if operation == PLUS:
                            value = own + below
                        elif (operation == LEAST) == (below < own):
                            value = below
                        if empty == 1 and own < value:
                            value = own
                if own == own:
                    empty = 0
            for field in (I_LEFT, I_RIGHT):
                beside = small[n, field]
                if beside >= 0 and nodes[beside, W_MEASURE] > bound:
                    other = least[beside]
                    if value != value or other < value:
                        value = other
                    empty = max(empty, without[beside])
            least[n] = value
            without[n] = empty
        found[d] = least[root]
        lacking[d] = without[root]
