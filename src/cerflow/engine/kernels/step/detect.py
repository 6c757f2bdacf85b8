"""Detection alone: a configuration keeps only the latest start of its partial matches, without a match graph.

Where conditions only ask whether values are less or greater, one configuration may satisfy all conditions that another
satisfies, and begin no earlier. Then the other is dropped.

Whether an event detects a match depends on the latest start of the ending runs: if it is outside the window, so are all
others. The first mark sets the latest start, later events keep it, and where runs meet the later start is kept.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import is_stopped, pointer_to
from cerflow.engine.kernels.state.collections import covers
from cerflow.engine.kernels.state.pool import (
    add_one,
    add_several,
    find_one,
    find_several,
    hash_one,
    hash_several,
    seed,
    unlink,
)

#: A new configuration is compared with this many others, the latest first: in a window most of those that a better one
#: makes unnecessary are among them.
_COMPARED = 16


@inlined
def detects(updates, position, bound, state, scratch):
    """Record one detection, of a match without events, if any update ends a match; returns whether one does."""
    for u in range(updates):
        if scratch.updates[u, layout.U_FINAL] == 1:
            d = state.counters[layout.N_DETECTIONS]
            state.counters[layout.N_DETECTIONS] = d + 1
            state.detections[d, layout.D_POSITION] = position
            state.detections[d, layout.D_BOUND] = bound
            state.detections[d, layout.D_MARK] = layout.NO_MARK
            state.detections[d, layout.D_ROOT] = layout.BOTTOM
            return True
    return False


@inlined
def keep_starts(address, updates, p, place, measure, bound, tables, state, scratch):
    """Apply the updates: find or make the configurations, each of which keeps its latest start.

    Returns False if the call was stopped.
    """
    from_seed = seed(p, layout.NO_EVENTS, tables)
    for u in range(updates):
        if is_stopped(address):
            return False
        q = np.int64(scratch.updates[u, layout.U_STATE])
        if q == layout.NOWHERE:
            continue
        start = scratch.starts[u]
        if scratch.updates[u, layout.U_LABEL] > 0 and measure < start:
            start = measure
        if start <= bound:
            continue
        if q == layout.SEVERAL:
            first = np.int64(scratch.updates[u, layout.U_MEMBER])
            count = np.int64(scratch.updates[u, layout.U_COUNT])
            states, values = pointer_to(scratch.members, first), pointer_to(scratch.member_values, first)
            h = hash_several(from_seed, states, values, count, state, tables)
            c = find_several(p, states, values, count, h, layout.NO_EVENTS, state, tables)
            if c < 0:
                c = add_several(p, states, values, count, h, layout.NO_EVENTS, layout.BOTTOM, place, state, tables)
                state.config_long[c, layout.L_START] = start
        else:
            registers = pointer_to(scratch.update_values, u)
            h = hash_one(from_seed, q, registers, tables)
            c = find_one(p, q, registers, h, layout.NO_EVENTS, state, tables)
            if c < 0:
                if tables.better[q] >= 0 and _is_covered(p, q, registers, start, place, state, tables):
                    continue
                c = add_one(p, q, registers, h, layout.NO_EVENTS, layout.BOTTOM, place, state, tables)
                state.config_long[c, layout.L_START] = start
            # In a state without loops, configurations of earlier events end with this one.
            over = tables.skips[q] == 0 and state.config_long[c, layout.L_LAST] != place
            if over:
                state.config_long[c, layout.L_START] = start
            # Of a window inside the formula, too, only the latest start matters.
            for s in range(tables.telling[q], tables.slots[q]):
                if over or state.values[c, s] < registers[s]:
                    state.values[c, s] = registers[s]
        if state.config_long[c, layout.L_START] < start:
            state.config_long[c, layout.L_START] = start
        state.config_long[c, layout.L_LAST] = place
    return True


@part
def _is_covered(p, q, registers, start, place, state, tables):
    """Whether a configuration is at least as good as a new one; if not, drops those that the new one covers."""
    begin, width = np.int64(tables.better[q]), np.int64(tables.slots[q])
    windowed = tables.options[layout.O_WINDOWED] == 1
    compared = 0
    c = np.int64(state.heads[p, q])
    while c >= 0 and compared < _COMPARED:
        after = np.int64(state.config[c, layout.C_NEXT])
        compared += 1
        # Some have ended with this event, or with an earlier one.
        ended = state.config[c, layout.C_DEAD] == 1 or (
            tables.skips[q] == 0 and state.config_long[c, layout.L_LAST] != place
        )
        if not ended:
            own = pointer_to(state.values, c)
            other = state.config_long[c, layout.L_START]
            if (other >= start or not windowed) and covers(own, 0, registers, begin, width, tables):
                return True
            if (start >= other or not windowed) and covers(registers, 0, own, begin, width, tables):
                unlink(c, state, tables)
                compared -= 1
        c = after
    return False
