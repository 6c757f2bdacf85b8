"""Folding in a sliding window, at a cost per detection that does not grow with the window.

A *pivot* divides the nodes into old and new ones, such that no start at a new node has left the window. A set at a new
node then has a fixed value for the complex events that begin at new nodes. For all others, only the value of the paths
from it to each old set on the *frontier* matters: the old sets that new nodes point to. The value of an old set depends
on the window. One walk through the old nodes gives it for all later windows: sums over the starts from the latest one
down. When a new start leaves the window, all nodes become old, and the former old nodes are dropped, so every node is
old once. (Two stacks make a queue in the same way.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.matches.semiring import COUNT, add, add_behind, add_product, is_nothing, put, row_of

#: How often a node may be visited, on average.
WORK = 64

# Columns of the progress: sets on the frontier, nodes visited, different starts at old nodes,
# the first of these in the window, the first old node in use, the first new node, the first new node without a value,
# the earliest start at a new node
G_SETS, G_WORK, G_COUNT, G_CUT, G_FLOOR, G_PIVOT, G_DONE, G_EARLIEST = range(8)
PROGRESS_WORDS = 8


class SlidingFold(NamedTuple):
    """A graph, the fold, and its state; the old nodes are ``[floor, pivot)``.

    ``operation``, ``units`` and ``weights`` are those of `cerflow.engine.kernels.matches.fold.PlainFold`. The complex
    events of a set at new node n that begin at new nodes have the value ``fresh[n - pivot]``, the paths from it to old
    set s the value ``through[n - pivot, s]``. ``later[s, k]`` is the value of those complex events of old set s that
    begin at start k or a later one. ``place`` has the number of the start at each mark plus one, ``starts`` the starts.
    """

    nodes: Any
    small: Any
    operation: Any
    units: Any
    weights: Any
    place: Any  # int32 (marks,), zeros at first
    starts: Any  # int64 (marks,)
    paths: Any  # (nodes, width)
    later: Any  # (sets, marks + 1, width)
    fresh: Any  # (nodes, width)
    through: Any  # (nodes, sets, width)
    value: Any  # (width,)
    frontier: Any  # int32 (sets,)
    progress: Any  # int64, columns G_…, zeros at first


@part
def _note_starts(f, floor, pivot, bound):
    """Number the marks at which complex events of old nodes begin, in their order; returns their number.

    Returns -1 if there are complex events without events, which never leave the window.
    """
    least = f.place.shape[0]
    most = -1
    for n in range(floor, pivot):
        if f.small[n, layout.I_CHILD] < 0:
            return -1
        if f.small[n, layout.I_CHILD] == layout.BOTTOM and f.nodes[n, layout.W_MEASURE] > bound:
            mark = f.small[n, layout.I_MARK]
            f.place[mark] = 1
            least = min(least, mark)
            most = max(most, mark)
    count = 0
    for mark in range(least, most + 1):
        if f.place[mark] != 0:
            count += 1
            f.place[mark] = count
    for n in range(floor, pivot):
        if f.small[n, layout.I_CHILD] == layout.BOTTOM and f.nodes[n, layout.W_MEASURE] > bound:
            f.starts[f.place[f.small[n, layout.I_MARK]] - 1] = f.nodes[n, layout.W_MEASURE]
    return count


@part
def _note_old_set(f, root, bound, later):
    """Fill ``later[k]`` with the value of those complex events of an old set that begin at start k or a later one.

    Returns whether the digits suffice.
    """
    operation, paths, small, floor, count = f.operation, f.paths, f.small, f.progress[G_FLOOR], f.progress[G_COUNT]
    for k in range(count + 1):
        put(later[k], f.units[0])
    for n in range(floor, root):
        put(paths[n], f.units[0])
    put(paths[root], f.units[1])
    for n in range(root, floor - 1, -1):
        if is_nothing(operation, paths[n]) or f.nodes[n, layout.W_MEASURE] <= bound:
            continue
        child, mark = small[n, layout.I_CHILD], small[n, layout.I_MARK]
        into = later[f.place[mark] - 1] if child == layout.BOTTOM else paths[child]
        fits = add_behind(operation, into, f.weights[row_of(mark, operation)], paths[n])
        for field in (layout.I_LEFT, layout.I_RIGHT):
            beside = small[n, field]
            if beside == layout.BOTTOM:
                fits = add(operation, later[count], paths[n]) and fits
            elif beside >= floor:
                fits = add(operation, paths[beside], paths[n]) and fits
        if not fits:
            return False
    for k in range(count - 1, -1, -1):
        if not add(operation, later[k], later[k + 1]):
            return False
    return True


@inlined
def _move_window(f, root, bound):
    """Leave out the starts outside the window, and move the pivot if one of them is at a new node.

    Returns whether all complex events have events.
    """
    progress, starts = f.progress, f.starts
    if progress[G_EARLIEST] <= bound or progress[G_PIVOT] <= 1:
        for n in range(progress[G_FLOOR], progress[G_PIVOT]):
            f.place[f.small[n, layout.I_MARK]] = 0
        count = progress[G_COUNT]
        if count == 0 or starts[count - 1] <= bound:
            # All starts at old nodes have left the window.
            progress[G_FLOOR] = max(1, progress[G_PIVOT])
        pivot = max(1, progress[G_DONE], root + 1)
        progress[G_PIVOT] = pivot
        progress[G_DONE] = pivot
        progress[G_EARLIEST] = layout.NOT_BEGUN
        progress[G_COUNT] = _note_starts(f, progress[G_FLOOR], pivot, bound)
        progress[G_CUT] = 0
        progress[G_SETS] = 0
        progress[G_WORK] += pivot - progress[G_FLOOR]
    # Starts ascend.
    while progress[G_CUT] < progress[G_COUNT] and starts[progress[G_CUT]] <= bound:
        progress[G_CUT] += 1
    return progress[G_COUNT] >= 0


@part
def _old_set(f, root, bound, rows):
    """The number of an old set on the frontier, to which it is added if necessary.

    New nodes have that many ``rows`` of values. The number is -1 if there is no room, the nodes have been visited too
    often, or the digits do not suffice.
    """
    sets = f.progress[G_SETS]
    for at in range(sets):
        if f.frontier[at] == root:
            return at
    f.progress[G_WORK] += root + 1 - f.progress[G_FLOOR]
    if sets == f.frontier.shape[0] or f.progress[G_WORK] > WORK * f.nodes.shape[0]:
        return np.int64(-1)
    f.frontier[sets] = root
    for row in range(rows):
        put(f.through[row, sets], f.units[0])
    f.progress[G_SETS] = sets + 1
    return sets if _note_old_set(f, root, bound, f.later[sets]) else np.int64(-1)


def _slide(counts):
    """The value of the matches of each detection in ``found``, with a `SlidingFold`; bounds must not decrease.

    Returns the first detection without a value: the digits do not suffice, the frontier is too large, or pivots move so
    often that `cerflow.engine.kernels.matches.fold.fold_values` is faster.

    It ``counts``, or combines other values.
    """

    def run(detections, found, *given):
        f = SlidingFold(*given)
        operation = COUNT if counts else f.operation
        units, progress = f.units, f.progress
        for d in range(detections.shape[0]):
            bound = detections[d, layout.D_BOUND]
            root = detections[d, layout.D_ROOT]
            last = f.weights[row_of(detections[d, layout.D_MARK], operation)]
            if root == layout.BOTTOM:
                put(found[d], last)
                continue
            if not _move_window(f, root, bound):
                return d
            pivot, cut = progress[G_PIVOT], progress[G_CUT]
            for n in range(progress[G_DONE], root + 1):
                row = n - pivot
                put(f.fresh[row], units[0])
                for s in range(progress[G_SETS]):
                    put(f.through[row, s], units[0])
                if f.nodes[n, layout.W_MEASURE] <= bound:
                    continue
                if f.small[n, layout.I_CHILD] < 0:
                    return d
                if f.small[n, layout.I_CHILD] == layout.BOTTOM:
                    progress[G_EARLIEST] = min(progress[G_EARLIEST], f.nodes[n, layout.W_MEASURE])
                for field in (layout.I_CHILD, layout.I_LEFT, layout.I_RIGHT):
                    below = f.small[n, field]
                    # The event of the node is in front of its child only.
                    own = (
                        f.weights[row_of(f.small[n, layout.I_MARK], operation)] if field == layout.I_CHILD else units[1]
                    )
                    fits = True
                    if below == layout.BOTTOM:
                        fits = add(operation, f.fresh[row], own)
                    elif below >= pivot:
                        fits = add_behind(operation, f.fresh[row], own, f.fresh[below - pivot])
                        for s in range(progress[G_SETS]):
                            fits = add_behind(operation, f.through[row, s], own, f.through[below - pivot, s]) and fits
                    elif below > layout.BOTTOM and f.nodes[below, layout.W_MEASURE] > bound:
                        at = _old_set(f, below, bound, row + 1)
                        fits = at >= 0 and add(operation, f.through[row, at], own)
                    if not fits:
                        return d
            progress[G_DONE] = max(progress[G_DONE], root + 1)
            if root < pivot:
                at = _old_set(f, root, bound, progress[G_DONE] - pivot)
                if at < 0:
                    return d
                put(f.value, f.later[at, cut])
            else:
                put(f.value, f.fresh[root - pivot])
                for s in range(progress[G_SETS]):
                    if not add_product(operation, f.value, f.through[root - pivot, s], f.later[s, cut]):
                        return d
            put(found[d], units[0])
            add_behind(operation, found[d], last, f.value)
        return detections.shape[0]

    run.__qualname__ = run.__name__ = "slide_counts" if counts else "slide_values"
    return kernel(run)


slide_counts, slide_values = _slide(True), _slide(False)
