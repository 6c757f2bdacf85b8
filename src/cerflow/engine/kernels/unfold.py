"""Unfolding the match graph: matches one after the other, or only their number.

The delay between two matches is linear in the match that is written (P1 §7.1, P2 Proposition 5.1).
"""

from __future__ import annotations

from cerflow.engine.kernels.jit import kernel
from cerflow.engine.layout import (
    BOTTOM,
    D_BOUND,
    D_LABEL,
    D_POSITION,
    D_ROOT,
    I_CHILD,
    I_LABEL,
    I_LEFT,
    I_RIGHT,
    W_MEASURE,
    W_POSITION,
)

# The cursor: detection, whether it is open, entries on the stack, matches of the event so far
K_DETECTION, K_OPEN, K_DEPTH, K_TAKEN = range(4)

# Why `unfold` returns
UNFOLDED, OUTPUT_FULL, STACK_FULL = range(3)


@kernel
def unfold(nodes, small, detections, last, limit, cursor, stack, path, offsets, positions, labels, owner):
    """Write matches of the detections up to ``last``, from where ``cursor`` stands, until a buffer is full.

    Match m has the events ``positions[offsets[m] : offsets[m + 1]]`` in order, with label sets ``labels``, and was
    detected as ``owner[m]``. At most ``limit`` matches are written per detecting event. Returns (reason, matches).
    ``stack`` holds (node, length of the path above it); ``path`` the events chosen so far, last one first.
    """
    matches = 0
    offsets[0] = 0
    while cursor[K_DETECTION] < last:
        d = cursor[K_DETECTION]
        if cursor[K_OPEN] == 0:
            if d == 0 or detections[d, D_POSITION] != detections[d - 1, D_POSITION]:
                cursor[K_TAKEN] = 0
            length = 0
            if detections[d, D_LABEL] > 0:
                path[0, 0] = detections[d, D_POSITION]
                path[0, 1] = detections[d, D_LABEL]
                length = 1
            stack[0, 0] = detections[d, D_ROOT]
            stack[0, 1] = length
            cursor[K_DEPTH] = 1
            cursor[K_OPEN] = 1
        bound = detections[d, D_BOUND]
        depth = cursor[K_DEPTH]
        while depth > 0 and cursor[K_TAKEN] < limit:
            n = stack[depth - 1, 0]
            length = stack[depth - 1, 1]
            if depth + 2 >= stack.shape[0] or length + 1 >= path.shape[0]:
                cursor[K_DEPTH] = depth
                return STACK_FULL, matches
            depth -= 1
            if n == BOTTOM or small[n, I_CHILD] < 0:
                # The complex event is complete. A copy of the bottom node may have further sets beside it.
                if matches + 1 >= offsets.shape[0] or offsets[matches] + length > positions.shape[0]:
                    cursor[K_DEPTH] = depth + 1
                    return OUTPUT_FULL, matches
                to = offsets[matches]
                for i in range(length):
                    positions[to + i] = path[length - 1 - i, 0]
                    labels[to + i] = path[length - 1 - i, 1]
                offsets[matches + 1] = to + length
                owner[matches] = d
                matches += 1
                cursor[K_TAKEN] += 1
                if n == BOTTOM:
                    continue
            for field in (I_RIGHT, I_LEFT):
                beside = small[n, field]
                if beside >= 0 and nodes[beside, W_MEASURE] > bound:
                    stack[depth, 0] = beside
                    stack[depth, 1] = length
                    depth += 1
            if small[n, I_CHILD] >= 0:
                path[length, 0] = nodes[n, W_POSITION]
                path[length, 1] = small[n, I_LABEL]
                stack[depth, 0] = small[n, I_CHILD]
                stack[depth, 1] = length + 1
                depth += 1
        cursor[K_OPEN] = 0
        cursor[K_DETECTION] = d + 1
    return UNFOLDED, matches


@kernel
def count(nodes, small, detections, first, last, stamp, known, amounts, stack, found):
    """The number of matches of each detection ``[first, last)`` in ``found``, without unfolding them.

    ``amounts`` and ``known`` (both as long as the arena) remember what was counted for the detection ``stamp``.
    Returns (first detection not counted, last stamp); a count beyond 63 bits stops before its detection.
    """
    for d in range(first, last):
        bound = detections[d, D_BOUND]
        root = detections[d, D_ROOT]
        if d == first or bound != detections[d - 1, D_BOUND]:
            # Counts stay valid as long as the window does.
            stamp += 1
        depth = 1
        stack[0] = root
        while depth > 0:
            n = stack[depth - 1]
            if known[n] == stamp:
                depth -= 1
                continue
            total = 0
            ready = True
            if n == BOTTOM or small[n, I_CHILD] < 0:
                total = 1
            for field in (I_CHILD, I_LEFT, I_RIGHT):
                below = small[n, field]
                if below < 0 or (field != I_CHILD and nodes[below, W_MEASURE] <= bound):
                    continue
                if known[below] != stamp:
                    stack[depth] = below
                    depth += 1
                    ready = False
                else:
                    total += amounts[below]
                    if total < 0:
                        return d, stamp
            if ready:
                known[n] = stamp
                amounts[n] = total
                depth -= 1
        found[d] = amounts[root]
    return last, stamp
