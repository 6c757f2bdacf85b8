"""A match graph and its detections as a strategy writes them: every complex event once, without a window."""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import inlined
from cerflow.engine.layout import (
    D_BOUND,
    D_MARK,
    D_POSITION,
    D_ROOT,
    I_CHILD,
    I_LEFT,
    I_MARK,
    I_RANK,
    I_RIGHT,
    NO_BOUND,
    NOT_BEGUN,
    W_MEASURE,
)

__all__ = ["write_detection", "write_part"]


@inlined
def write_part(new, small, n, mark, child, beside):
    """Write node ``n`` of the graph ``new``, in int32 ``small``: a child and then a mark, or what is in ``beside``.

    Returns ``n``.
    """
    new[n, W_MEASURE] = NOT_BEGUN
    small[n, I_CHILD] = child
    small[n, I_LEFT] = beside
    small[n, I_RIGHT] = -1
    small[n, I_MARK] = mark
    small[n, I_RANK] = 1
    return n


@inlined
def write_detection(found, written, detections, d, root):
    """Write detection ``d`` behind the ``written`` ones of ``found``, with the ``root`` of what is left of it.

    Returns how many are written.
    """
    found[written, D_POSITION] = detections[d, D_POSITION]
    found[written, D_BOUND] = NO_BOUND
    found[written, D_MARK] = detections[d, D_MARK]
    found[written, D_ROOT] = root
    return written + 1
