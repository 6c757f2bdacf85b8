"""The step of the engine: collects the effects of one event on all configurations, then applies them.

An event does not see its own effects. The step makes sure of all room before it applies anything, so an event that does
not fit can be tried again.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base import shared_arrays as shared
from cerflow.engine.kernels.base.parts import inlined, kernel
from cerflow.engine.kernels.base.shared_arrays import call, pointer_to, too_much_work
from cerflow.engine.kernels.state.index import find_candidates, index_state
from cerflow.engine.kernels.state.partitions import add_partition, drop_partition, find_partition, foresee
from cerflow.engine.kernels.state.pool import clear_partition, expired, unlink
from cerflow.engine.kernels.step.grow import detect, grow
from cerflow.engine.kernels.step.transitions import fire

#: With more partitions than this, their state does not fit into the processor's inner caches.
_FAR = 1 << 14


@kernel
def advance(address, start, stop):
    """Process the events ``[start, stop)`` of the shared arrays at an address.

    Returns (the reason to stop, the first event not processed).
    """
    events, tables = shared.events_at(address), shared.tables_at(address)
    state, scratch = shared.state_at(address), shared.scratch_at(address)
    partitioned = tables.options[layout.O_PARTITIONED] == 1
    counted = tables.options[layout.O_COUNTED] == 1
    local_window = tables.options[layout.O_LOCAL_WINDOW]
    strategy = tables.options[layout.O_STRATEGY]
    detecting = tables.options[layout.O_DETECTING] == 1
    forgetting = tables.options[layout.O_FORGET] == 1
    last_word = state.partition_long.shape[1] - 1
    shared.begin_work(address)
    for k in range(start, stop):
        if shared.enough_work(address):
            return layout.PAUSED, k
        p = np.int64(0)
        place = events.position[k]
        if partitioned:
            if state.counters[layout.N_PARTITIONS] > _FAR:
                foresee(k, stop, events, state, tables)
            p = find_partition(pointer_to(events.keys, k), state, tables)
        if forgetting and p >= 0 and state.partition_long[p, last_word - 1] <= events.idle[k]:
            clear_partition(p, state, tables)
            if partitioned:
                drop_partition(p, state, tables)
                p = np.int64(-1)
            else:
                for w in range(last_word + 1):
                    state.partition_long[p, w] = layout.NULL
        if partitioned and counted:
            place = events.left_out[k] + (state.partition_long[p, layout.PARTITION_EVENTS] + 1 if p >= 0 else 1)
            if events.position[k] < 0:
                # A tick or a pause does not count.
                place -= 1
        measure = events.measure[k]
        bound = events.bound[k]
        if local_window > 0:
            measure = place
            bound = place - local_window
        for c in range(tables.local.shape[0]):
            events.columns[k, tables.local[c, layout.LOCAL_COLUMN]] = place - tables.local[c, layout.LOCAL_LESS]

        if p >= 0 and _decreased(p, k, events, tables, state):
            return layout.DECREASED, k
        updates, members, removed, moved = _gather(k, p, place, bound, address, events, tables, state, scratch)
        if too_much_work(address, 0):
            return layout.PAUSED, k
        if tables.failure[0] != 0:
            return layout.CALL_FAILED, k
        if updates == -1:
            return layout.FULL_SCRATCH, k
        if updates == -2:
            return layout.FULL_SETS, k
        if updates > 0 and strategy != layout.EVERYTHING:
            updates = call(tables.options[layout.O_CHOOSE], (address, updates, members, removed, p, bound))
            if updates < 0:
                return layout.FULL_SCRATCH, k
            members = scratch.answers[0]
            removed = scratch.answers[1]
        if updates > 0 or moved:
            lacking = _lacks_room(p, updates, members, detecting, state)
            if lacking != layout.DONE:
                return lacking, k
            if p < 0:
                p = add_partition(pointer_to(events.keys, k), state, tables)
        if p < 0:
            continue
        if counted and partitioned:
            state.partition_long[p, layout.PARTITION_EVENTS] = place
        if forgetting:
            state.partition_long[p, last_word - 1] = events.moment[k]
        if bound > state.partition_long[p, last_word]:
            state.partition_long[p, last_word] = bound
        for c in range(tables.checked.shape[0]):
            if events.columns[k, tables.checked[c]] != layout.NULL:
                state.partition_long[p, 1 + tables.options[layout.O_KEY] + c] = events.columns[k, tables.checked[c]]
        if moved:
            state.partition[p, layout.R_MOVED] = 1
        for r in range(removed):
            state.config[scratch.removed[r], layout.C_DEAD] = 1
        if updates > 0:
            found = detect(updates, events.position[k], bound, detecting, state, scratch)
            if found and tables.options[layout.O_CONSUME] > 0:
                if tables.options[layout.O_CONSUME] == 1:
                    _clear_others(p, state, tables)
                clear_partition(p, state, tables)
            else:
                if strategy != layout.EVERYTHING:
                    call(tables.options[layout.O_SETTLE], (address, updates, scratch.answers[2], p))
                if not grow(address, updates, p, k, place, measure, bound, events, tables, state, scratch):
                    return layout.PAUSED, k
                if strategy != layout.EVERYTHING:
                    call(tables.options[layout.O_LET_GO], (address, updates, p))
                if state.counters[layout.N_TO_INDEX] > 0:
                    index_state(state.counters[layout.N_TO_INDEX] - 1, state, tables)
                    state.counters[layout.N_TO_INDEX] = 0
        # Strategies have compared with these until now. Those that consumption has dropped do not have a root.
        for r in range(removed):
            c = np.int64(scratch.removed[r])
            if state.config[c, layout.C_DEAD] == 1 and state.config[c, layout.C_ROOT] >= 0:
                unlink(c, state, tables)
        if partitioned and state.partition[p, layout.R_LIVE] == 0 and state.partition[p, layout.R_MOVED] == 0:
            drop_partition(p, state, tables)
    return layout.DONE, stop


@inlined
def _decreased(p, k, events, tables, state):
    for c in range(tables.checked.shape[0]):
        value = events.columns[k, tables.checked[c]]
        if value != layout.NULL and value < state.partition_long[p, 1 + tables.options[layout.O_KEY] + c]:
            return True
    return False


@inlined
def _clear_others(p, state, tables):
    for q in range(state.counters[layout.N_PARTITIONS]):
        # Slots on the free list do not have configurations, and are not freed twice.
        if q != p and (
            state.partition[q, layout.R_LIVE] > 0
            or (state.partition[q, layout.R_MOVED] == 1 and state.partition[q, layout.R_LIVE] == 0)
        ):
            clear_partition(q, state, tables)
            drop_partition(q, state, tables)


@inlined
def _lacks_room(p, updates, members, detecting, state):
    counters = state.counters
    if not detecting:
        if counters[layout.N_NODES] + updates * (2 * counters[layout.N_RANK] + 6) > state.nodes.shape[0]:
            return layout.FULL_NODES
        if counters[layout.N_MARKS] + updates > state.marks.shape[0]:
            return layout.FULL_NODES
    if counters[layout.N_CONFIGS] - counters[layout.N_FREE] + updates > state.config.shape[0]:
        return layout.FULL_CONFIGS
    if counters[layout.N_MEMBERS] + members > state.members.shape[0]:
        return layout.FULL_MEMBERS
    if counters[layout.N_DETECTIONS] + updates > state.detections.shape[0]:
        return layout.FULL_DETECTIONS
    if p < 0 and counters[layout.N_FREE_PARTITIONS] == 0 and counters[layout.N_PARTITIONS] >= state.partition.shape[0]:
        return layout.FULL_PARTITIONS
    return layout.DONE


@inlined
def _gather(k, p, place, bound, address, events, tables, state, scratch):
    """Collect the effects of event ``k``.

    Returns the numbers of updates, of their members and of configurations to drop, and whether the initial set has
    changed. The first is -1 if there is too little room, -2 if the collections are full. The results are invalid if the
    call has done too much work.
    """
    grouped = tables.options[layout.O_GROUPED] == 1
    strategy = tables.options[layout.O_STRATEGY]
    detecting = tables.options[layout.O_DETECTING] == 1
    states = tables.options[layout.O_STATES]
    # Typed zeros: a literal would make Numba compile everything below again.
    n = np.int64(0)
    members = np.int64(0)
    removed = np.int64(0)
    moved = False
    signature = events.signature[k]
    # First the states with transitions for the event, then the sets of several members, decided later.
    row = tables.signature_start[signature]
    last_row = tables.signature_start[signature + 1]
    initial = grouped and (p < 0 or state.partition[p, layout.R_MOVED] == 0)
    ended = False
    # ``row`` only grows, and the list of a group only shrinks.
    while row <= last_row:
        ends = row < last_row and tables.signature_rows[row, layout.ROW_ENOUGH] == 1
        if ends and ended:
            row += 1
            continue
        group = np.int64(tables.signature_rows[row, layout.ROW_STATE]) if row < last_row else states
        c = np.int64(-1)
        # With an index: the number of candidates, and the next one.
        candidates, next_one = -1, 0
        if p >= 0 and (group < states or grouped):
            least = greatest = np.int32(-1)
            if row < last_row and state.indexing[group] == 1:
                least = tables.signature_rows[row, layout.ROW_LEAST]
                greatest = tables.signature_rows[row, layout.ROW_GREATEST]
            if max(least, greatest) >= 0:
                candidates = find_candidates(p, group, k, least, greatest, events, state, tables, scratch.candidates)
                if candidates == -1:
                    return -1, 0, 0, False
                c = _candidate(0, candidates, scratch)
            else:
                c = np.int64(state.heads[p, group])
        # The initial configuration is not stored; it comes before all others, as configuration -1.
        begin = initial if grouped else group < states and tables.initial[group] == 1
        initial = False
        while begin or c >= 0:
            at = -1 if begin else c
            root = layout.BOTTOM
            start = np.int64(layout.NOT_BEGUN)
            after = c
            if not begin:
                state.counters[layout.N_VISITED] += 1
                if too_much_work(address, 1):
                    return 0, 0, 0, False
                gone = _gone(c, group, k, place, bound, events, tables, state)
                if candidates < 0:
                    after = np.int64(state.config[c, layout.C_NEXT])
                else:
                    next_one += 1
                    after = _candidate(next_one, candidates, scratch)
                if gone:
                    unlink(c, state, tables)
                    c = after
                    continue
                root = state.config[c, layout.C_ROOT]
                if detecting:
                    start = state.config_long[c, layout.L_START]
            if removed >= scratch.removed.shape[0]:
                return -1, 0, 0, False
            first = n
            if grouped:
                n = call(tables.options[layout.O_SETS], (address, k, at, place, root, n, members))
                if n < 0:
                    return n, 0, 0, False
                members = scratch.answers[0]
                if scratch.answers[1] == 1:
                    if begin:
                        moved = True
                    else:
                        scratch.removed[removed] = c
                        removed += 1
            else:
                registers = pointer_to(state.values, max(at, 0))
                n = fire(row, k, registers, scratch.updates, scratch.update_values, n, address, events, tables)
                if n < 0:
                    return n, 0, 0, False
                for u in range(first, n):
                    scratch.updates[u, layout.U_ROOT] = root
                leaves = tables.signature_rows[row, layout.ROW_LEAVES]
                if not begin and (leaves == layout.LEAVES or (leaves == layout.LEAVES_FIRED and n > first)):
                    scratch.removed[removed] = c
                    removed += 1
            if detecting:
                for u in range(first, n):
                    scratch.starts[u] = start
            if strategy != layout.EVERYTHING:
                for u in range(first, n):
                    scratch.updates[u, layout.U_CLASS] = layout.NO_EVENTS if begin else state.config[c, layout.C_CLASS]
            if ends and n > first:
                ended = True
                break
            begin = False
            c = after
        row += 1
    return n, members, removed, moved


@inlined
def _candidate(which, count, scratch):
    return scratch.candidates[which, 1] if which < count else np.int64(-1)


@inlined
def _gone(c, group, k, place, bound, events, tables, state):
    """Whether a configuration can no longer take part in a match."""
    if state.config[c, layout.C_DEAD] == 1:
        return True
    if state.config_long[c, layout.L_START] <= bound:
        return True
    if group < tables.options[layout.O_STATES]:
        if tables.skips[group] == 0 and state.config_long[c, layout.L_LAST] != place - 1:
            return True
        return expired(group, pointer_to(state.values, c), k, False, events, tables)
    return False
