"""The match with a given number, in the order of `cerflow.engine.kernels.matches.unfold`."""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.layout import BOTTOM, I_CHILD, I_LEFT, I_MARK, I_RIGHT, W_MEASURE


@kernel
def unrank(nodes, small, amounts, root, bound, rank, path):
    """Write the marks of complex event number ``rank`` of a set to ``path``, the last one first; returns their number.

    ``path`` is int32. ``amounts`` are the numbers of complex events of sets as of the bound. Returns -1 if the path
    is full.
    """
    n = root
    length = 0
    # The number of the node decreases.
    while True:
        child = small[n, I_CHILD]
        own = amounts[child] if child > BOTTOM else 1
        if rank < own:
            if child < 0:
                return length
            if length >= path.shape[0]:
                return -1
            path[length] = small[n, I_MARK]
            length += 1
            if child == BOTTOM:
                return length
            n = child
            continue
        rank -= own
        left = small[n, I_LEFT]
        if left >= 0 and nodes[left, W_MEASURE] > bound:
            if rank < amounts[left]:
                n = left
                continue
            rank -= amounts[left]
        n = small[n, I_RIGHT]
