"""Writes a match graph and its detections for a strategy: every complex event once, without a window."""

from __future__ import annotations

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined


@inlined
def write_part(new, small, n, mark, child, beside):
    """Write node ``n`` of the graph ``new``, in int32 ``small``: a child and then a mark, or the set ``beside``.

    Returns ``n``.
    """
    new[n, layout.W_MEASURE] = layout.NOT_BEGUN
    small[n, layout.I_CHILD] = child
    small[n, layout.I_LEFT] = beside
    small[n, layout.I_RIGHT] = -1
    small[n, layout.I_MARK] = mark
    small[n, layout.I_RANK] = 1
    return n


@inlined
def write_detection(found, written, detections, d, root):
    """Append detection ``d`` to the ``written`` ones of ``found``, with the ``root`` of what is left of it.

    Returns the number of written ones.
    """
    found[written, layout.D_POSITION] = detections[d, layout.D_POSITION]
    found[written, layout.D_BOUND] = layout.NO_BOUND
    found[written, layout.D_MARK] = detections[d, layout.D_MARK]
    found[written, layout.D_ROOT] = root
    return written + 1
