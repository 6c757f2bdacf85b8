"""For queries that report matches: an event's detections, and its additions to the match graph."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined
from cerflow.engine.kernels.base.shared_arrays import call, halves, is_stopped, pointer_to
from cerflow.engine.kernels.state.graph import add_mark, add_to_set, meld
from cerflow.engine.kernels.state.pool import (
    add_one,
    add_several,
    find_one,
    find_several,
    hash_one,
    hash_several,
    renew,
    seed,
)


@inlined
def detect(updates, position, bound, state, scratch):
    """Record the detections among the updates; returns whether there are any."""
    found = False
    for u in range(updates):
        if scratch.updates[u, layout.U_FINAL] == 1:
            d = state.counters[layout.N_DETECTIONS]
            state.counters[layout.N_DETECTIONS] = d + 1
            state.detections[d, layout.D_POSITION] = position
            state.detections[d, layout.D_BOUND] = bound
            mark = layout.NO_MARK
            if scratch.updates[u, layout.U_LABEL] > 0:
                mark = add_mark(state.marks, state.counters, position, scratch.updates[u, layout.U_LABEL])
            state.detections[d, layout.D_MARK] = mark
            state.detections[d, layout.D_ROOT] = scratch.updates[u, layout.U_ROOT]
            found = True
    return found


@inlined
def grow(address, updates, p, k, place, measure, bound, events, tables, state, scratch):
    """Apply the updates: grow the match graph, find or make configurations. Returns False if the call was stopped."""
    placed = tables.options[layout.O_STRATEGY] != layout.EVERYTHING and tables.options[layout.O_GROUPED] == 0
    picking = tables.options[layout.O_PICK] != layout.EVERYTHING
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
        from_seed = seed(p, cls, tables)
        registers = pointer_to(scratch.update_values, u)
        if q == layout.SEVERAL:
            first = np.int64(scratch.updates[u, layout.U_MEMBER])
            count = np.int64(scratch.updates[u, layout.U_COUNT])
            states, values = pointer_to(scratch.members, first), pointer_to(scratch.member_values, first)
            h = hash_several(from_seed, states, values, count, state, tables)
            c = find_several(p, states, values, count, h, cls, state, tables)
        else:
            h = hash_one(from_seed, q, registers, tables)
            if placed:
                c = np.int64(scratch.updates[u, layout.U_PLACE])
                if c < -1:
                    c = np.int64(scratch.updates[-2 - c, layout.U_PLACE])
            else:
                c = find_one(p, q, registers, h, cls, state, tables)
        old = np.int64(-1)
        if c >= 0:
            old = np.int64(state.config[c, layout.C_ROOT])
            left_behind = q >= 0 and tables.skips[q] == 0 and state.config_long[c, layout.L_LAST] != place
            if left_behind or (old > layout.BOTTOM and nodes[old, layout.W_MEASURE] <= bound):
                old = -1
        if label > 0:
            mark = add_mark(state.marks, state.counters, events.position[k], label)
            if picking:
                root = call(tables.options[layout.O_ENTER], (address, mark, measure, child, old, bound))
            else:
                root = add_to_set(nodes, small, state.counters, scratch.path, limit, mark, measure, child, old, bound)
        elif old < 0:
            root = child
        elif picking:
            root = call(tables.options[layout.O_ENTER], (address, layout.NO_MARK, layout.NOT_BEGUN, child, old, bound))
        else:
            root = meld(nodes, small, state.counters, scratch.path, limit, child, old, bound)
        if c >= 0:
            state.config[c, layout.C_ROOT] = root
            state.config_long[c, layout.L_LAST] = place
            renew(c, state)
        elif q == layout.SEVERAL:
            c = add_several(p, states, values, count, h, cls, root, place, state, tables)
        else:
            c = add_one(p, q, registers, h, cls, root, place, state, tables)
            scratch.updates[u, layout.U_PLACE] = c
        state.config_long[c, layout.L_START] = nodes[root, layout.W_MEASURE]
    return True
