"""Counting the matches of detections on the shared graph."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import checked_sum
from cerflow.engine.kernels.base.parts import inlined, kernel
from cerflow.engine.layout import BOTTOM, D_BOUND, D_ROOT, I_CHILD, I_LEFT, I_RIGHT, W_MEASURE


@kernel
def add_counts(nodes, small, detections, first, last, amounts, low, stack, found):
    """The number of matches of each detection ``[first, last)`` in ``found`` (int64).

    ``amounts`` (zeros at first) caches the number of complex events of each set at the bound of its count, and ``low``
    the earliest start among them: as long as that is in the window, the number remains valid. Returns the first
    detection not counted: one whose number needs more than 63 bits.
    """
    for d in range(first, last):
        bound = detections[d, D_BOUND]
        root = detections[d, D_ROOT]
        stack[0] = root
        depth = 1
        # Nodes on the stack have decreasing numbers. A node that leaves it is counted for the bound, without starts
        # before it, and does not come back.
        while depth > 0:
            n = stack[depth - 1]
            if amounts[n] != 0 and low[n] > bound:
                depth -= 1
                continue
            ready = True
            child = small[n, I_CHILD]
            if child <= BOTTOM:
                # One complete complex event.
                total = 1
                lowest = nodes[n, W_MEASURE]
            else:
                total = amounts[child]
                lowest = low[child]
                if total == 0 or lowest <= bound:
                    stack[depth] = child
                    depth += 1
                    ready = False
            for field in (I_LEFT, I_RIGHT):
                beside = small[n, field]
                if beside < 0 or nodes[beside, W_MEASURE] <= bound:
                    continue
                if amounts[beside] == 0 or low[beside] <= bound:
                    stack[depth] = beside
                    depth += 1
                    ready = False
                elif ready:
                    total = checked_sum(total, amounts[beside])
                    lowest = min(lowest, low[beside])
                    if total < 0:
                        return d
            if ready:
                amounts[n] = total
                low[n] = lowest
                depth -= 1
        found[d] = amounts[root]
    return last


@kernel
def add_long_counts(nodes, small, detections, first, last, amounts, low, stack, found):
    """`add_counts` for numbers of several words, the lowest first.

    ``amounts`` (nodes, words) and ``found`` (detections, words) are uint64. At first ``low`` is less than every bound.
    The number of detection d is ``found[d - first]``. Returns the first detection not counted: one whose number needs
    more words.
    """
    words = amounts.shape[1]
    for d in range(first, last):
        bound = detections[d, D_BOUND]
        root = detections[d, D_ROOT]
        stack[0] = root
        depth = 1
        while depth > 0:
            n = stack[depth - 1]
            if low[n] > bound:
                depth -= 1
                continue
            known = depth
            child = small[n, I_CHILD]
            if child > BOTTOM and low[child] <= bound:
                stack[depth] = child
                depth += 1
            for field in (I_LEFT, I_RIGHT):
                beside = small[n, field]
                if beside >= 0 and nodes[beside, W_MEASURE] > bound and low[beside] <= bound:
                    stack[depth] = beside
                    depth += 1
            if depth > known:
                continue
            lowest = nodes[n, W_MEASURE] if child <= BOTTOM else low[child]
            for w in range(words):
                amounts[n, w] = amounts[child, w] if child > BOTTOM else np.uint64(w == 0)
            for field in (I_LEFT, I_RIGHT):
                beside = small[n, field]
                if beside >= 0 and nodes[beside, W_MEASURE] > bound:
                    if _add(amounts, n, beside):
                        return d
                    lowest = min(lowest, low[beside])
            low[n] = lowest
            depth -= 1
        for w in range(words):
            found[d - first, w] = amounts[root, w]
    return last


@inlined
def _add(amounts, n, other):
    """Add a number to another one; returns whether the sum needs more words."""
    carry = np.uint64(0)
    for w in range(amounts.shape[1]):
        part = amounts[n, w] + carry
        carry = np.uint64(part < carry)
        total = part + amounts[other, w]
        carry += np.uint64(total < part)
        amounts[n, w] = total
    return carry > 0
