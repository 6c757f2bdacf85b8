"""Unfolding the match graph: matches one after another.

The delay between two matches is linear in the match that is written (P1 §7.1, P2 Proposition 5.1).
"""

from __future__ import annotations

from cerflow.engine.kernels.base.jit import inlined, kernel
from cerflow.engine.layout import (
    BOTTOM,
    D_BOUND,
    D_MARK,
    D_POSITION,
    D_ROOT,
    I_CHILD,
    I_LEFT,
    I_MARK,
    I_RIGHT,
    NO_MARK,
    W_MEASURE,
)

# The cursor: detection, whether it is open, entries on the stack, matches of the event so far, marks used
K_DETECTION, K_OPEN, K_DEPTH, K_TAKEN, K_USED = range(5)

# Reasons for which `unfold` returns
UNFOLDED, OUTPUT_FULL, STACK_FULL = range(3)

# Columns of the stack: a node, the length of the path above it
S_NODE, S_LENGTH = range(2)

# Columns of the path: marks, and their numbers among those used
P_MARK, P_NUMBER = range(2)


@inlined
def _note(mark, at, path, number, used, cursor):
    """Put a mark on the path, numbered in the order in which marks appear."""
    k = number[mark]
    if k == 0:
        used[cursor[K_USED]] = mark
        cursor[K_USED] += 1
        k = cursor[K_USED]
        number[mark] = k
    path[P_MARK, at] = mark
    path[P_NUMBER, at] = k - 1


@kernel
def unfold(nodes, small, detections, limit, cursor, stack, path, number, used, offsets, events, ends, owner):
    """Write matches of the detections, from the position of ``cursor`` (int64, columns K_…) on, until a buffer is full.

    Match m has the events ``events[offsets[m] : offsets[m + 1]]`` in order. ``ends[0, m]`` is the first of them and
    ``ends[1, m]`` the last (-1 if there are none), and ``owner[m]`` is its detection. An event e is the mark
    ``used[e]``; ``number`` holds e + 1 for every mark used and must be all zeros at first, like ``cursor[K_USED]``. At
    most ``limit`` matches are written per detecting event. Returns (reason, matches).

    ``stack`` is int32 (depth, 2), columns S_…. The ``path`` is int32 (2, length), rows P_…, and written from its end
    backwards, so that a match is one piece of it. All others are int32: ``number`` and ``used`` (marks,), ``offsets``
    (matches + 1,), ``events``, ``ends`` (2, matches), ``owner`` (matches,).
    """
    matches = 0
    top = path.shape[1]
    offsets[0] = 0
    if cursor[K_OPEN] == 1 and cursor[K_DEPTH] > 0:
        # The marks on the path are numbered anew.
        for at in range(top - stack[cursor[K_DEPTH] - 1, S_LENGTH], top):
            _note(path[P_MARK, at], at, path, number, used, cursor)
    while cursor[K_DETECTION] < detections.shape[0]:
        d = cursor[K_DETECTION]
        if cursor[K_OPEN] == 0:
            if d == 0 or detections[d, D_POSITION] != detections[d - 1, D_POSITION]:
                cursor[K_TAKEN] = 0
            cursor[K_DEPTH] = 0
            if cursor[K_TAKEN] < limit:
                stack[0, S_NODE] = detections[d, D_ROOT]
                stack[0, S_LENGTH] = 0
                if detections[d, D_MARK] != NO_MARK:
                    _note(detections[d, D_MARK], top - 1, path, number, used, cursor)
                    stack[0, S_LENGTH] = 1
                cursor[K_DEPTH] = 1
            cursor[K_OPEN] = 1
        bound = detections[d, D_BOUND]
        depth = cursor[K_DEPTH]
        # A node that comes off the stack leads to nodes with smaller numbers only, and stands for at least one match.
        while depth > 0:
            depth -= 1
            n = stack[depth, S_NODE]
            length = stack[depth, S_LENGTH]
            while n >= 0:
                if depth + 2 >= stack.shape[0] or length + 1 >= top:
                    stack[depth, S_NODE] = n
                    stack[depth, S_LENGTH] = length
                    cursor[K_DEPTH] = depth + 1
                    return STACK_FULL, matches
                child = small[n, I_CHILD]
                if child <= BOTTOM:
                    # A complex event is complete. The bottom node itself (or a copy with more beside it) adds nothing.
                    whole = length + 1 if child == BOTTOM else length
                    to = offsets[matches]
                    if matches + 1 >= offsets.shape[0] or to + whole > events.shape[0]:
                        stack[depth, S_NODE] = n
                        stack[depth, S_LENGTH] = length
                        cursor[K_DEPTH] = depth + 1
                        return OUTPUT_FULL, matches
                    if child == BOTTOM:
                        _note(small[n, I_MARK], top - whole, path, number, used, cursor)
                    for i in range(whole):
                        events[to + i] = path[P_NUMBER, top - whole + i]
                    offsets[matches + 1] = to + whole
                    ends[0, matches] = events[to] if whole > 0 else -1
                    ends[1, matches] = path[P_NUMBER, top - 1] if whole > 0 else -1
                    owner[matches] = d
                    matches += 1
                    cursor[K_TAKEN] += 1
                    if cursor[K_TAKEN] >= limit:
                        depth = 0
                        break
                right = small[n, I_RIGHT]
                left = small[n, I_LEFT]
                if right >= 0 and nodes[right, W_MEASURE] <= bound:
                    right = -1
                if left >= 0 and nodes[left, W_MEASURE] <= bound:
                    left = -1
                if child > BOTTOM:
                    if right >= 0:
                        stack[depth, S_NODE] = right
                        stack[depth, S_LENGTH] = length
                        depth += 1
                    if left >= 0:
                        stack[depth, S_NODE] = left
                        stack[depth, S_LENGTH] = length
                        depth += 1
                    length += 1
                    _note(small[n, I_MARK], top - length, path, number, used, cursor)
                    n = child
                elif left >= 0:
                    if right >= 0:
                        stack[depth, S_NODE] = right
                        stack[depth, S_LENGTH] = length
                        depth += 1
                    n = left
                else:
                    n = right
        cursor[K_OPEN] = 0
        cursor[K_DETECTION] = d + 1
    return UNFOLDED, matches
