"""Writes a match graph and its detections for a strategy: every complex event once, without a window.

The functions take a ``room`` with ``new``, the graph to write, ``new_small``, the same as int32, and ``found``, its
detections; a kernel writes what is left of the ``detections`` from number ``at`` on until there is too little room, and
returns (the first detection not done, nodes, detections written).
"""

from __future__ import annotations

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined


@inlined
def event_end(detections, at):
    """The end of the ``detections`` of the event that has number ``at``."""
    end = at
    while end < detections.shape[0] and detections[end, layout.D_POSITION] == detections[at, layout.D_POSITION]:
        end += 1
    return end


@inlined
def write_part(room, n, mark, child, beside):
    """Write node ``n`` of the new graph: a child and then a mark, or the set ``beside``; returns ``n``."""
    room.new[n, layout.W_MEASURE] = layout.NOT_BEGUN
    room.new_small[n, layout.I_CHILD] = child
    room.new_small[n, layout.I_LEFT] = beside
    room.new_small[n, layout.I_RIGHT] = -1
    room.new_small[n, layout.I_MARK] = mark
    room.new_small[n, layout.I_RANK] = 1
    return n


@inlined
def write_detection(room, written, detections, d, root):
    """Append detection ``d`` to the ``written`` ones, with the ``root`` of what is left of it.

    Returns the number of written ones.
    """
    room.found[written, layout.D_POSITION] = detections[d, layout.D_POSITION]
    room.found[written, layout.D_BOUND] = layout.NO_BOUND
    room.found[written, layout.D_MARK] = detections[d, layout.D_MARK]
    room.found[written, layout.D_ROOT] = root
    return written + 1
