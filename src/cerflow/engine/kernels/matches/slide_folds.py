"""Folds over the matches of detections in a sliding window, by the pivots of `cerflow.engine.kernels.matches.slide`.

The value of a set of complex events is a pair of floats. Disjoint sets are added; events in front of a set are
multiplied with it, and so are all paths through new nodes to an old set with the complex events of that set.

| operation | pair | sum | product |
|---|---|---|---|
| `SUMS` | sum of the values of the complex events, their number | of both | (x·n' + x'·n, n·n') |
| `FACTORS` | sum of the values, number | of both | of both |
| `PLUS`, `LEAST`, `GREATEST` | least value (NaN for none), 1 if some has none | least, greatest | see `fold.best` |
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.matches.fold import LEAST, PLUS
from cerflow.engine.kernels.matches.slide import (
    G_COUNT,
    G_CUT,
    G_DONE,
    G_EARLIEST,
    G_FLOOR,
    G_PIVOT,
    G_SETS,
    move_window,
    on_frontier,
)
from cerflow.engine.layout import BOTTOM, D_BOUND, D_ROOT, I_CHILD, I_LEFT, I_MARK, I_RIGHT, W_MEASURE

# Operations besides those of `fold.best`
SUMS, FACTORS = 3, 4


@inlined
def _add(operation, into, x, y):
    if operation >= SUMS:
        into[0] += x
        into[1] += y
    else:
        if into[0] != into[0] or x < into[0]:
            into[0] = x
        into[1] = max(into[1], y)


@part
def _add_product(operation, into, one, other):
    x, y = one[0], other[0]
    if operation >= SUMS:
        # A product with an empty set may be NaN.
        if one[1] != 0 and other[1] != 0:
            into[0] += x * y if operation == FACTORS else x * other[1] + y * one[1]
            into[1] += one[1] * other[1]
        return
    if (x != x and one[1] == 0) or (y != y and other[1] == 0):
        return
    if x != x:
        value = y
    elif y != y:
        value = x
    elif operation == PLUS:
        value = x + y
    else:
        value = min(x, y) if operation == LEAST else max(x, y)
    if one[1] == 1 and y < value:
        value = y
    if other[1] == 1 and x < value:
        value = x
    _add(operation, into, value, one[1] * other[1])


@inlined
def _clear(values, first, last, nothing):
    for at in range(first, last):
        values[at, 0], values[at, 1] = nothing[0], nothing[1]


@kernel
def _note_old_fold(nodes, small, floor, root, bound, place, count, operation, units, weights, paths, later):
    """Fill ``later[k]`` with the value of those complex events of an old set that begin at start k or a later one."""
    nothing, empty = units[0], units[1]
    _clear(later, 0, count + 1, nothing)
    _clear(paths, floor, root + 1, nothing)
    paths[root, 0], paths[root, 1] = empty[0], empty[1]
    for n in range(root, floor - 1, -1):
        if (paths[n, 1] == 0 and not (operation < SUMS and paths[n, 0] == paths[n, 0])) or nodes[n, W_MEASURE] <= bound:
            continue
        child = small[n, I_CHILD]
        if child == BOTTOM:
            _add_product(operation, later[place[small[n, I_MARK]] - 1], paths[n], weights[small[n, I_MARK]])
        else:
            _add_product(operation, paths[child], paths[n], weights[small[n, I_MARK]])
        for field in (I_LEFT, I_RIGHT):
            beside = small[n, field]
            if beside == BOTTOM:
                _add(operation, later[count], paths[n, 0], paths[n, 1])
            elif beside >= floor:
                _add(operation, paths[beside], paths[n, 0], paths[n, 1])
    for k in range(count - 1, -1, -1):
        _add(operation, later[k], later[k + 1, 0], later[k + 1, 1])


@part
def _folded_set(nodes, small, root, bound, place, operation, units, weights, paths, later, frontier, progress):
    """The number of an old set on the frontier, -1 if there is no room."""
    at, new = on_frontier(root, nodes.shape[0], frontier, progress)
    if new:
        count, floor = progress[G_COUNT], progress[G_FLOOR]
        _note_old_fold(nodes, small, floor, root, bound, place, count, operation, units, weights, paths, later[at])
    return at


@kernel
def slide_folds(
    nodes,
    small,
    detections,
    operation,
    units,
    weights,
    place,
    starts,
    paths,
    later,
    fresh,
    through,
    frontier,
    progress,
    found,
):
    """The value of the set below each detection in ``found`` (detections, 2); bounds must not decrease.

    ``operation`` is one of the folds above. ``units`` (2, 2) are the values of no complex event and of the one
    without events, ``weights`` (marks, 2) those of single events. ``paths`` and ``fresh`` are (nodes, 2), ``later``
    (sets, marks + 1, 2), ``through`` (nodes, sets, 2), all float64; ``place``, ``starts``, ``frontier`` and
    ``progress`` are those of `cerflow.engine.kernels.matches.slide.slide`. Returns the first detection without a
    value: the frontier is too large, or pivots move too often.
    """
    sets = frontier.shape[0]
    for d in range(detections.shape[0]):
        bound = detections[d, D_BOUND]
        root = detections[d, D_ROOT]
        if root == BOTTOM:
            found[d, 0], found[d, 1] = units[1, 0], units[1, 1]
            continue
        if not move_window(nodes, small, root, bound, place, starts, progress):
            return d
        pivot, cut = progress[G_PIVOT], progress[G_CUT]
        for n in range(progress[G_DONE], root + 1):
            row = n - pivot
            _clear(fresh, row, row + 1, units[0])
            _clear(through[row], 0, sets, units[0])
            if nodes[n, W_MEASURE] <= bound:
                continue
            if small[n, I_CHILD] < 0:
                return d
            if small[n, I_CHILD] == BOTTOM:
                progress[G_EARLIEST] = min(progress[G_EARLIEST], nodes[n, W_MEASURE])
            for field in (I_CHILD, I_LEFT, I_RIGHT):
                below = small[n, field]
                # The event of the node is in front of its child only.
                own = weights[small[n, I_MARK]] if field == I_CHILD else units[1]
                if below == BOTTOM:
                    _add(operation, fresh[row], own[0], own[1])
                elif below >= pivot:
                    _add_product(operation, fresh[row], own, fresh[below - pivot])
                    for s in range(progress[G_SETS]):
                        _add_product(operation, through[row, s], own, through[below - pivot, s])
                elif below > BOTTOM and nodes[below, W_MEASURE] > bound:
                    at = _folded_set(
                        nodes, small, below, bound, place, operation, units, weights, paths, later, frontier, progress
                    )
                    if at < 0:
                        return d
                    _add(operation, through[row, at], own[0], own[1])
        progress[G_DONE] = max(progress[G_DONE], root + 1)
        if root < pivot:
            at = _folded_set(
                nodes, small, root, bound, place, operation, units, weights, paths, later, frontier, progress
            )
            if at < 0:
                return d
            found[d, 0], found[d, 1] = later[at, cut, 0], later[at, cut, 1]
            continue
        found[d, 0], found[d, 1] = fresh[root - pivot, 0], fresh[root - pivot, 1]
        for s in range(progress[G_SETS]):
            _add_product(operation, found[d], through[root - pivot, s], later[s, cut])
    return detections.shape[0]
