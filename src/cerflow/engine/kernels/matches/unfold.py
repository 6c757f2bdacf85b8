"""Unfolding the match graph: matches one after another.

The delay between two matches is linear in the match that is written (P1 §7.1, P2 Proposition 5.1).
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.ordering import heap_by, sort_by
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.state.graph import precedes

# The cursor: detection, whether it is open, entries on the stack, matches of the event so far, marks used, marks listed
K_DETECTION, K_OPEN, K_DEPTH, K_TAKEN, K_USED, K_LISTED = range(6)
CURSOR_WORDS = 6

# Reasons for which `unfold` returns
UNFOLDED, OUTPUT_FULL, STACK_FULL = range(3)

# Columns of the stack: a node, the length of the path above it, with a limit where the entries of its heap begin
S_NODE, S_LENGTH, S_BEGIN = range(3)
STACK_COLUMNS = 3

# Columns of the path: marks, and their numbers among those used
P_MARK, P_NUMBER = range(2)

# Columns of the sets: the node (0 if none), its first mark, the number of marks (0: not listed), the least measure
# of these events, and the greatest of those left out
L_NODE, L_BEGIN, L_COUNT, L_LEAST, L_OUTSIDE = range(5)
SET_WORDS = 5


@inlined
def _numbered(mark, number, used, cursor):
    """The number of a mark, in the order in which marks appear."""
    k = number[mark]
    if k == 0:
        used[cursor[K_USED]] = mark
        cursor[K_USED] += 1
        k = cursor[K_USED]
        number[mark] = k
    return k - 1


@inlined
def _note(mark, at, path, number, used, cursor):
    path[P_MARK, at] = mark
    path[P_NUMBER, at] = _numbered(mark, number, used, cursor)


@inlined
def _beside(nodes, small, n, field, bound):
    """The set on one side of a node, -1 if there is none in the window."""
    at = small[n, field]
    return at if at >= 0 and nodes[at, layout.W_MEASURE] > bound else -1


@inlined
def _put(stack, depth, n, length):
    """Put a node on the stack, with the length of the path above it; returns the new depth."""
    stack[depth, S_NODE] = n
    stack[depth, S_LENGTH] = length
    return depth + 1


@inlined
def _comes_before(one, other, given):
    nodes, small, marks = given
    return precedes(nodes, small, marks, one, other)


_put_first, _take_first = heap_by(_comes_before, "node")


@inlined
def _is_first(detections, d, e, given):
    nodes, small, marks = given
    mark, other = detections[d, layout.D_MARK], detections[e, layout.D_MARK]
    root, beside = detections[d, layout.D_ROOT], detections[e, layout.D_ROOT]
    if mark != other and nodes[root, layout.W_MEASURE] == nodes[beside, layout.W_MEASURE]:
        return marks[mark, layout.M_LABEL] > marks[other, layout.M_LABEL]
    return precedes(nodes, small, marks, root, beside)


_sort_detections = sort_by(_is_first, "detections")


@kernel
def order_detections(nodes, small, marks, detections):
    """Sort the detections of each event: those with the first match come first."""
    first = np.int64(0)
    for last in range(1, detections.shape[0] + 1):
        if last < detections.shape[0] and detections[last, layout.D_POSITION] == detections[first, layout.D_POSITION]:
            continue
        _sort_detections(detections, first, last, (nodes, small, marks))
        first = np.int64(last)


@inlined
def _put_back(stack, begin, depth, n, length, limited, given):
    """Put a node back on the stack; if ``limited``, into the heap of the entries from ``begin`` on."""
    if limited:
        _put_first(stack[:, S_NODE], begin, depth, n, given)
        stack[depth, S_LENGTH] = length
        stack[depth, S_BEGIN] = begin
        return depth + 1
    return _put(stack, depth, n, length)


@part
def _list(n, bound, nodes, small, stack, depth, sets, marks, cursor):
    """The row of ``sets`` for the set below node ``n``, if it is one of single events.

    Then ``marks`` has their marks in the order of unfolding. Many matches of one set come one after the other, and
    many detections have the same sets. The stack is used from ``depth`` on.
    """
    row = n & (sets.shape[0] - 1)
    again = sets[row, L_COUNT] == 0 or sets[row, L_OUTSIDE] <= bound < sets[row, L_LEAST]
    if sets[row, L_NODE] == n and again:
        return row
    if 2 * cursor[K_LISTED] > marks.shape[0]:
        sets[:, L_NODE] = 0
        cursor[K_LISTED] = 0
    begin = cursor[K_LISTED]
    sets[row, L_NODE] = n
    sets[row, L_BEGIN] = begin
    sets[row, L_COUNT] = 0
    least, outside = nodes[n, layout.W_MEASURE], layout.NO_BOUND
    lowest = depth
    at = begin
    stack[depth, S_NODE] = n
    depth += 1
    while depth > lowest:
        depth -= 1
        n = stack[depth, S_NODE]
        while n >= 0:
            if small[n, layout.I_CHILD] != layout.BOTTOM or at == marks.shape[0] or depth == stack.shape[0]:
                return row
            marks[at] = small[n, layout.I_MARK]
            at += 1
            least = min(least, nodes[n, layout.W_MEASURE])
            right = small[n, layout.I_RIGHT]
            left = small[n, layout.I_LEFT]
            if right >= 0 and nodes[right, layout.W_MEASURE] <= bound:
                outside = max(outside, nodes[right, layout.W_MEASURE])
                right = -1
            if left >= 0 and nodes[left, layout.W_MEASURE] <= bound:
                outside = max(outside, nodes[left, layout.W_MEASURE])
                left = -1
            if left >= 0 and right >= 0:
                stack[depth, S_NODE] = right
                depth += 1
            n = left if left >= 0 else right
    sets[row, L_COUNT] = at - begin
    sets[row, L_LEAST] = least
    sets[row, L_OUTSIDE] = outside
    cursor[K_LISTED] = at
    return row


@kernel
def unfold(
    nodes,
    small,
    marks,
    detections,
    limit,
    cursor,
    stack,
    path,
    number,
    used,
    sets,
    listed,
    offsets,
    events,
    ends,
    owner,
):
    """Write matches of the detections, from the position of ``cursor`` (int64, columns K_…) on, until a buffer is full.

    Match m has the events ``events[offsets[m] : offsets[m + 1]]`` in order. ``ends[0, m]`` is the first of them and
    ``ends[1, m]`` the last (-1 if there are none), and ``owner[m]`` is its detection. An event e is the mark
    ``used[e]``; ``number`` holds e + 1 for every mark used and must be all zeros at first, like ``cursor[K_USED]``. At
    most ``limit`` matches are written per detecting event (-1: all). Then they come in the order of `precedes`, which
    the detections must have (`order_detections`), so that the choice depends on the matches alone. Returns (reason,
    matches).

    ``stack`` is int32 (depth, 3), columns S_…. The ``path`` is int32 (2, length), rows P_…, and written from its end
    backwards, so that a match is one piece of it. ``sets`` (int64, columns L_…, rows a power of two, zeros at first)
    and ``listed`` remember sets. All others are int32: ``number`` and ``used`` (marks,), ``listed``, ``offsets``
    (matches + 1,), ``events``, ``ends`` (2, matches), ``owner`` (matches,).
    """
    matches = 0
    top = path.shape[1]
    limited, given = limit >= 0, (nodes, small, marks)
    offsets[0] = 0
    if cursor[K_OPEN] == 1 and cursor[K_DEPTH] > 0:
        # Number the marks on the path again.
        for at in range(top - stack[cursor[K_DEPTH] - 1, S_LENGTH], top):
            _note(path[P_MARK, at], at, path, number, used, cursor)
    while cursor[K_DETECTION] < detections.shape[0]:
        d = cursor[K_DETECTION]
        if cursor[K_OPEN] == 0:
            if d == 0 or detections[d, layout.D_POSITION] != detections[d - 1, layout.D_POSITION]:
                cursor[K_TAKEN] = 0
            cursor[K_DEPTH] = 0
            if not limited or cursor[K_TAKEN] < limit:
                marked = detections[d, layout.D_MARK] != layout.NO_MARK
                if marked:
                    _note(detections[d, layout.D_MARK], top - 1, path, number, used, cursor)
                cursor[K_DEPTH] = _put(stack, 0, detections[d, layout.D_ROOT], 1 if marked else 0)
                stack[0, S_BEGIN] = 0
            cursor[K_OPEN] = 1
        bound = detections[d, layout.D_BOUND]
        depth = cursor[K_DEPTH]
        # A node that comes off the stack leads to nodes with smaller numbers only, and stands for at least one match.
        while depth > 0:
            n, length, begin = stack[depth - 1, S_NODE], stack[depth - 1, S_LENGTH], depth - 1
            if limited:
                begin = stack[depth - 1, S_BEGIN]
                n = _take_first(stack[:, S_NODE], begin, depth, given)
            depth -= 1
            while n >= 0:
                if depth + 2 >= stack.shape[0] or length + 1 >= top:
                    cursor[K_DEPTH] = _put_back(stack, begin, depth, n, length, limited, given)
                    return STACK_FULL, matches
                child = small[n, layout.I_CHILD]
                if child <= layout.BOTTOM:
                    # A complex event is complete. The bottom node (or a copy with more beside it) adds nothing.
                    whole = length + 1 if child == layout.BOTTOM else length
                    to = offsets[matches]
                    if matches + 1 >= offsets.shape[0] or to + whole > events.shape[0]:
                        cursor[K_DEPTH] = _put_back(stack, begin, depth, n, length, limited, given)
                        return OUTPUT_FULL, matches
                    if child == layout.BOTTOM:
                        _note(small[n, layout.I_MARK], top - whole, path, number, used, cursor)
                    for i in range(whole):
                        events[to + i] = path[P_NUMBER, top - whole + i]
                    offsets[matches + 1] = to + whole
                    ends[0, matches] = events[to] if whole > 0 else -1
                    ends[1, matches] = path[P_NUMBER, top - 1] if whole > 0 else -1
                    owner[matches] = d
                    matches += 1
                    cursor[K_TAKEN] += 1
                    if limited and cursor[K_TAKEN] >= limit:
                        depth = 0
                        break
                right = _beside(nodes, small, n, layout.I_RIGHT, bound)
                left = _beside(nodes, small, n, layout.I_LEFT, bound)
                if child > layout.BOTTOM or limited:
                    if right >= 0:
                        depth = _put_back(stack, begin, depth, right, length, limited, given)
                    if left >= 0:
                        depth = _put_back(stack, begin, depth, left, length, limited, given)
                    if child <= layout.BOTTOM:
                        break
                    begin = depth
                    length += 1
                    _note(small[n, layout.I_MARK], top - length, path, number, used, cursor)
                    n = child
                    if small[n, layout.I_LEFT] < 0 and small[n, layout.I_RIGHT] < 0:
                        continue
                    row = _list(n, bound, nodes, small, stack, depth, sets, listed, cursor)
                    count = sets[row, L_COUNT]
                    whole = length + 1
                    to = offsets[matches]
                    fits = matches + count < offsets.shape[0] and to + count * whole <= events.shape[0]
                    if count > 0 and fits and (not limited or cursor[K_TAKEN] + count < limit):
                        # Each event of the set completes a match.
                        at = sets[row, L_BEGIN]
                        for i in range(count):
                            e = _numbered(listed[at + i], number, used, cursor)
                            events[to + i * whole] = e
                            ends[0, matches + i] = e
                            ends[1, matches + i] = path[P_NUMBER, top - 1]
                            owner[matches + i] = d
                            offsets[matches + i + 1] = to + (i + 1) * whole
                        for k in range(1, whole):
                            e = path[P_NUMBER, top - whole + k]
                            for i in range(count):
                                events[to + i * whole + k] = e
                        matches += count
                        cursor[K_TAKEN] += count
                        break
                elif left >= 0:
                    if right >= 0:
                        depth = _put(stack, depth, right, length)
                    n = left
                else:
                    n = right
        cursor[K_OPEN] = 0
        cursor[K_DETECTION] = d + 1
    return UNFOLDED, matches
