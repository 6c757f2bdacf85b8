"""The effects of an event's updates: its detections, its additions to the match graph, and new configurations.

A query that only detects has no match graph: a configuration keeps the latest start of its partial matches. Whether an
event detects a match depends on the latest start of the ending runs: if it is outside the window, so are all others.
The first mark sets the latest start, later events keep it, and where runs meet the later start is kept. Where
conditions only ask whether values are less or greater, one configuration may satisfy all conditions that another
satisfies, and begin no earlier. Then the other is dropped.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import call, halves, is_stopped, pointer_to
from cerflow.engine.kernels.state import pool
from cerflow.engine.kernels.state.collections import covers
from cerflow.engine.kernels.state.graph import add_mark, add_to_set, meld

#: A new configuration is compared with this many others, the latest first: in a window most of those that a better one
#: makes unnecessary are among them.
_COMPARED = 16


@inlined
def detect(updates, position, bound, detecting, state, scratch):
    """Record the detections among the updates; returns whether there are any.

    If a query only detects (``detecting``), one detection is enough, of a match without events.
    """
    found = False
    for u in range(updates):
        if scratch.updates[u, layout.U_FINAL] == 1:
            d = state.counters[layout.N_DETECTIONS]
            state.counters[layout.N_DETECTIONS] = d + 1
            state.detections[d, layout.D_POSITION] = position
            state.detections[d, layout.D_BOUND] = bound
            mark = layout.NO_MARK
            if scratch.updates[u, layout.U_LABEL] > 0 and not detecting:
                mark = add_mark(state.marks, state.counters, position, scratch.updates[u, layout.U_LABEL])
            state.detections[d, layout.D_MARK] = mark
            state.detections[d, layout.D_ROOT] = scratch.updates[u, layout.U_ROOT]
            if detecting:
                return True
            found = True
    return found


@inlined
def grow(address, updates, p, k, place, measure, bound, events, tables, state, scratch):
    """Apply the updates: grow the match graph, find or make configurations. Returns False if the call was stopped."""
    placed = tables.options[layout.O_STRATEGY] != layout.EVERYTHING and tables.options[layout.O_GROUPED] == 0
    picking = tables.options[layout.O_PICK] != layout.EVERYTHING
    detecting = tables.options[layout.O_DETECTING] == 1
    nodes = state.nodes
    small = halves(nodes)
    # Every update may need a node of its own.
    limit = nodes.shape[0] - updates
    for u in range(updates):
        if is_stopped(address):
            return False
        q = np.int64(scratch.updates[u, layout.U_STATE])
        if q == layout.NOWHERE:
            continue
        child = np.int64(scratch.updates[u, layout.U_ROOT])
        label = np.int64(scratch.updates[u, layout.U_LABEL])
        cls = np.int64(scratch.updates[u, layout.U_CLASS])
        start = np.int64(layout.NOT_BEGUN)
        if detecting:
            start = scratch.starts[u]
            if label > 0:
                start = min(start, measure)
            if start <= bound:
                continue
        from_seed = pool.seed(p, cls, tables)
        registers = pointer_to(scratch.update_values, u)
        if q == layout.SEVERAL:
            first = np.int64(scratch.updates[u, layout.U_MEMBER])
            count = np.int64(scratch.updates[u, layout.U_COUNT])
            states, values = pointer_to(scratch.members, first), pointer_to(scratch.member_values, first)
            h = pool.hash_several(from_seed, states, values, count, state, tables)
            c = pool.find_several(p, states, values, count, h, cls, state, tables)
        else:
            h = pool.hash_one(from_seed, q, registers, tables)
            if placed:
                c = np.int64(scratch.updates[u, layout.U_PLACE])
                if c < -1:
                    c = np.int64(scratch.updates[-2 - c, layout.U_PLACE])
            else:
                c = pool.find_one(p, q, registers, h, cls, state, tables)
                if c < 0 and tables.better[q] >= 0 and _is_covered(p, q, registers, start, place, state, tables):
                    continue
        # In a state without loops, configurations of earlier events end with this one.
        left_behind = c >= 0 and q >= 0 and tables.skips[q] == 0 and state.config_long[c, layout.L_LAST] != place
        old = np.int64(-1)
        if c >= 0 and not left_behind:
            old = np.int64(state.config[c, layout.C_ROOT])
            if old > layout.BOTTOM and nodes[old, layout.W_MEASURE] <= bound:
                old = -1
        if detecting:
            root = np.int64(layout.BOTTOM)
            if old >= 0:
                start = max(start, state.config_long[c, layout.L_START])
        elif label > 0:
            mark = add_mark(state.marks, state.counters, events.position[k], label)
            if picking:
                root = call(tables.options[layout.O_ENTER], (address, mark, measure, child, old))
            else:
                root = add_to_set(
                    nodes, small, state.marks, state.counters, scratch.path, limit, mark, measure, child, old, bound
                )
        elif old < 0:
            root = child
        elif picking:
            root = call(tables.options[layout.O_ENTER], (address, layout.NO_MARK, layout.NOT_BEGUN, child, old))
        else:
            root = meld(nodes, small, state.marks, state.counters, scratch.path, limit, child, old, bound)
        if c < 0:
            if q == layout.SEVERAL:
                c = pool.add_several(p, states, values, count, h, cls, root, place, state, tables)
            else:
                c = pool.add_one(p, q, registers, h, cls, root, place, state, tables)
                scratch.updates[u, layout.U_PLACE] = c
        else:
            state.config[c, layout.C_ROOT] = root
            state.config_long[c, layout.L_LAST] = place
            if not detecting:
                pool.renew(c, state)
            elif q >= 0:
                # Of a window inside the formula, too, only the latest start matters.
                for s in range(tables.telling[q], tables.slots[q]):
                    if left_behind or state.values[c, s] < registers[s]:
                        state.values[c, s] = registers[s]
        state.config_long[c, layout.L_START] = start if detecting else nodes[root, layout.W_MEASURE]
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
                pool.unlink(c, state, tables)
                compared -= 1
        c = after
    return False
