"""Counting in a sliding window, at a cost per detection that does not grow with the window.

A *pivot* divides the nodes into old and new ones, such that no start at a new node has left the window. A set at a new
node then has a fixed number of complex events that begin at new nodes. For all others, only the number of paths from it
to each old set on the *frontier* matters: the old sets that new nodes point to. The number of complex events of an old
set depends on the window. One walk through the old nodes gives it for all later windows: sums over the starts from the
latest one down. When a new start leaves the window, all nodes become old, and the former old nodes are dropped, so
every node is old once. (Two stacks make a queue in the same way.)

The kernels share these arguments: the old nodes are ``[floor, pivot)``, with ``count`` different starts. ``place`` is
int32 (marks,), ``starts`` int64 (marks,), ``paths`` int64 (nodes,), ``later`` int64 (`FRONTIER`, marks + 1), ``fresh``
int64 (nodes,), ``through`` int64 (nodes, `FRONTIER`), ``frontier`` int32 (`FRONTIER`,). ``progress`` is int64, columns
G_…, zeros at first.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import checked_product, checked_sum
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.layout import BOTTOM, D_BOUND, D_ROOT, I_CHILD, I_LEFT, I_MARK, I_RIGHT, NOT_BEGUN, W_MEASURE

#: The greatest number of sets on the frontier; with more of them other counts are faster.
FRONTIER = 8
#: How often a node may be visited, on average.
WORK = 64

# Columns of the progress that the kernels share: sets on the frontier, nodes visited, different starts at old nodes,
# the first of these in the window, the first old node in use, the first new node, the first new node without a value,
# the earliest start at a new node
G_SETS, G_WORK, G_COUNT, G_CUT, G_FLOOR, G_PIVOT, G_DONE, G_EARLIEST = range(8)
PROGRESS_WORDS = 8


@kernel
def note_starts(nodes, small, floor, pivot, bound, place, starts):
    """Number the marks at which complex events of old nodes begin, in their order; returns their number.

    ``place`` (zeros at first) gets the number of each plus one, ``starts`` its start. Returns -1 if there are complex
    events without events, which never leave the window.
    """
    least = place.shape[0]
    most = -1
    for n in range(floor, pivot):
        if small[n, I_CHILD] < 0:
            return -1
        if small[n, I_CHILD] == BOTTOM and nodes[n, W_MEASURE] > bound:
            mark = small[n, I_MARK]
            place[mark] = 1
            least = min(least, mark)
            most = max(most, mark)
    count = 0
    for mark in range(least, most + 1):
        if place[mark] != 0:
            count += 1
            place[mark] = count
    for n in range(floor, pivot):
        if small[n, I_CHILD] == BOTTOM and nodes[n, W_MEASURE] > bound:
            starts[place[small[n, I_MARK]] - 1] = nodes[n, W_MEASURE]
    return count


@kernel
def note_old_set(nodes, small, floor, root, bound, place, count, paths, later):
    """Fill ``later[k]`` with the number of complex events of an old set that begin at start k or later.

    ``paths`` has room for a number per node. Returns whether all numbers fit 63 bits.
    """
    for k in range(count + 1):
        later[k] = 0
    for n in range(floor, root + 1):
        paths[n] = 0
    paths[root] = 1
    for n in range(root, floor - 1, -1):
        if paths[n] == 0 or nodes[n, W_MEASURE] <= bound:
            continue
        child = small[n, I_CHILD]
        if child == BOTTOM:
            fits = _add(later, place[small[n, I_MARK]] - 1, paths[n])
        else:
            fits = _add(paths, child, paths[n])
        for field in (I_LEFT, I_RIGHT):
            beside = small[n, field]
            if beside == BOTTOM:
                fits = _add(later, count, paths[n]) and fits
            elif beside >= floor:
                fits = _add(paths, beside, paths[n]) and fits
        if not fits:
            return False
    for k in range(count - 1, -1, -1):
        if not _add(later, k, later[k + 1]):
            return False
    return True


@inlined
def _add(numbers, at, amount):
    """Add to a non-negative number; returns whether the sum fits 63 bits."""
    numbers[at] = checked_sum(numbers[at], amount)
    return numbers[at] >= 0


@part
def move_window(nodes, small, root, bound, place, starts, progress):
    """Leave out the starts outside the window, and move the pivot if one of them is at a new node.

    Returns whether all complex events have events.
    """
    if progress[G_EARLIEST] <= bound or progress[G_PIVOT] <= 1:
        for n in range(progress[G_FLOOR], progress[G_PIVOT]):
            place[small[n, I_MARK]] = 0
        count = progress[G_COUNT]
        if count == 0 or starts[count - 1] <= bound:
            # All starts at old nodes have left the window.
            progress[G_FLOOR] = max(1, progress[G_PIVOT])
        pivot = max(1, progress[G_DONE], root + 1)
        progress[G_PIVOT] = pivot
        progress[G_DONE] = pivot
        progress[G_EARLIEST] = NOT_BEGUN
        progress[G_COUNT] = note_starts(nodes, small, progress[G_FLOOR], pivot, bound, place, starts)
        progress[G_CUT] = 0
        progress[G_SETS] = 0
        progress[G_WORK] += pivot - progress[G_FLOOR]
    # Starts ascend.
    while progress[G_CUT] < progress[G_COUNT] and starts[progress[G_CUT]] <= bound:
        progress[G_CUT] += 1
    return progress[G_COUNT] >= 0


@part
def on_frontier(root, top, frontier, progress):
    """The number of an old set on the frontier, to which it is added if necessary, and whether it is new.

    The number is -1 if there is no room, or ``top`` nodes have been visited too often.
    """
    sets = progress[G_SETS]
    for at in range(sets):
        if frontier[at] == root:
            return at, False
    progress[G_WORK] += root + 1 - progress[G_FLOOR]
    if sets == frontier.shape[0] or progress[G_WORK] > WORK * top:
        return np.int64(-1), False
    frontier[sets] = root
    progress[G_SETS] = sets + 1
    return sets, True


@part
def _counted_set(nodes, small, root, bound, place, paths, later, frontier, progress):
    """The number of an old set on the frontier; -1 if there is no room, or numbers need more than 63 bits."""
    at, new = on_frontier(root, nodes.shape[0], frontier, progress)
    count, floor = progress[G_COUNT], progress[G_FLOOR]
    if new and not note_old_set(nodes, small, floor, root, bound, place, count, paths, later[at]):
        return np.int64(-1)
    return at


@kernel
def slide(nodes, small, detections, place, starts, paths, later, fresh, through, frontier, progress, found):
    """The number of matches of each detection in ``found``; their bounds must not decrease.

    A set at new node n has ``fresh[n - pivot]`` complex events that begin at new nodes, and ``through[n - pivot, s]``
    paths to the old set s. Returns the first detection not counted: its number exceeds 63 bits, its frontier is too
    large, or pivots move so often that other counts are faster.
    """
    for d in range(detections.shape[0]):
        bound = detections[d, D_BOUND]
        root = detections[d, D_ROOT]
        if root == BOTTOM:
            found[d] = 1
            continue
        if not move_window(nodes, small, root, bound, place, starts, progress):
            return d
        pivot, cut = progress[G_PIVOT], progress[G_CUT]
        if root < pivot:
            at = _counted_set(nodes, small, root, bound, place, paths, later, frontier, progress)
            if at < 0:
                return d
            found[d] = later[at, cut]
            continue
        for n in range(progress[G_DONE], root + 1):
            row = n - pivot
            fresh[row] = 0
            for s in range(FRONTIER):
                through[row, s] = 0
            if nodes[n, W_MEASURE] <= bound:
                continue
            if small[n, I_CHILD] < 0:
                return d
            if small[n, I_CHILD] == BOTTOM:
                progress[G_EARLIEST] = min(progress[G_EARLIEST], nodes[n, W_MEASURE])
            for field in (I_CHILD, I_LEFT, I_RIGHT):
                below = small[n, field]
                fits = True
                if below == BOTTOM:
                    fits = _add(fresh, row, 1)
                elif below >= pivot:
                    fits = _add(fresh, row, fresh[below - pivot])
                    for s in range(progress[G_SETS]):
                        through[row, s] = checked_sum(through[row, s], through[below - pivot, s])
                        if through[row, s] < 0:
                            return d
                elif below > BOTTOM and nodes[below, W_MEASURE] > bound:
                    at = _counted_set(nodes, small, below, bound, place, paths, later, frontier, progress)
                    if at < 0:
                        return d
                    through[row, at] = checked_sum(through[row, at], 1)
                    fits = through[row, at] >= 0
                if not fits:
                    return d
        progress[G_DONE] = max(progress[G_DONE], root + 1)
        total = fresh[root - pivot]
        for s in range(progress[G_SETS]):
            factor, amount = through[root - pivot, s], later[s, cut]
            amount = checked_product(factor, amount)
            if amount < 0:
                return d
            total = checked_sum(total, amount)
            if total < 0:
                return d
        found[d] = total
    return detections.shape[0]
