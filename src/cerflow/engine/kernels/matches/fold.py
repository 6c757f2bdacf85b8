"""Folding over the complex events of a set, bottom-up along the shared graph, without unfolding them."""

from __future__ import annotations

from typing import Any, NamedTuple

from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.kernels.matches.semiring import COUNT, add, add_behind, put, row_of
from cerflow.engine.layout import BOTTOM, D_BOUND, D_MARK, D_ROOT, I_CHILD, I_LEFT, I_MARK, I_RIGHT, W_MEASURE


class PlainFold(NamedTuple):
    """A graph, an operation of `cerflow.engine.kernels.matches.semiring`, and the value of each set.

    ``units`` are the values of no complex event and of the one without events, ``weights`` those of marks (`COUNT` does
    without them). ``low`` is the earliest start below each node, less than every bound at first. ``credit`` has the
    number of nodes that may still be visited, and how many each detection adds; without any left, none is looked at.
    """

    nodes: Any
    small: Any
    operation: Any
    units: Any  # (2, width)
    weights: Any  # (marks, width)
    values: Any  # (nodes, width)
    low: Any  # int64 (nodes,)
    stack: Any  # int32, three per node and four more
    credit: Any  # int64 (2,)


def _fold(counts):
    """The value of the matches of each detection in ``found``; those of the sets on the way are noted in a `PlainFold`.

    A set's bounds must not decrease. Returns the first detection without a value: too many nodes have been visited, or
    its digits do not suffice, and the values of the `PlainFold` are lost.

    It ``counts``, or combines other values.
    """

    def run(detections, found, *given):
        f = PlainFold(*given)
        operation = COUNT if counts else f.operation
        nodes, small, stack, low = f.nodes, f.small, f.stack, f.low
        for d in range(detections.shape[0]):
            if f.credit[0] <= 0:
                return d
            visited = 0
            bound = detections[d, D_BOUND]
            root = detections[d, D_ROOT]
            stack[0] = root
            depth = 1
            # Nodes on the stack have decreasing numbers. A value holds as long as the earliest start is in the window.
            while depth > 0:
                n = stack[depth - 1]
                visited += 1
                if low[n] > bound:
                    depth -= 1
                    continue
                waiting = depth
                child = small[n, I_CHILD]
                lowest = nodes[n, W_MEASURE]
                if child > BOTTOM:
                    # With the empty set in the child, a match begins here.
                    lowest = min(lowest, low[child])
                    if low[child] <= bound:
                        stack[depth] = child
                        depth += 1
                for field in (I_LEFT, I_RIGHT):
                    beside = small[n, field]
                    if beside >= 0 and nodes[beside, W_MEASURE] > bound:
                        lowest = min(lowest, low[beside])
                        if low[beside] <= bound:
                            stack[depth] = beside
                            depth += 1
                if depth > waiting:
                    continue
                low[n] = lowest
                value = f.values[n]
                own = f.units[1] if child < 0 else f.weights[row_of(small[n, I_MARK], operation)]
                fits = True
                if child <= BOTTOM:
                    put(value, own)
                elif operation == COUNT:
                    put(value, f.values[child])
                else:
                    put(value, f.units[0])
                    fits = add_behind(operation, value, own, f.values[child])
                for field in (I_LEFT, I_RIGHT):
                    beside = small[n, field]
                    if beside >= 0 and nodes[beside, W_MEASURE] > bound:
                        fits = add(operation, value, f.values[beside]) and fits
                if not fits:
                    return d
            f.credit[0] += f.credit[1] - visited
            put(found[d], f.units[0])
            add_behind(operation, found[d], f.weights[row_of(detections[d, D_MARK], operation)], f.values[root])
        return detections.shape[0]

    run.__qualname__ = run.__name__ = "fold_counts" if counts else "fold_values"
    return kernel(run)


fold_counts, fold_values = _fold(True), _fold(False)
