"""Determinisation on outputs: the members of a configuration after an event with one label set, in canonical order."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base import shared_arrays as shared
from cerflow.engine.kernels.base.parts import part
from cerflow.engine.kernels.base.shared_arrays import pointer_to, too_much_work
from cerflow.engine.kernels.state.pool import expired
from cerflow.engine.kernels.step.transitions import fire


@part
def _insert_member(q, registers, first, count, tables, scratch):
    """Add state ``q`` with registers to the sorted members ``[first, first + count)``; returns their new number.

    Of members that differ only in a slot whose greatest value alone matters one is kept.
    """
    states, values = scratch.members, scratch.member_values
    width = tables.slots[q]
    free = tables.dominated[q]
    lo = first
    hi = first + count
    while lo < hi:
        middle = (lo + hi) >> 1
        order = 0
        if states[middle] != q:
            order = -1 if states[middle] < q else 1
        else:
            for s in range(width):
                if s != free and values[middle, s] != registers[s]:
                    order = -1 if values[middle, s] < registers[s] else 1
                    break
        if order == 0:
            if free >= 0 and values[middle, free] < registers[free]:
                values[middle, free] = registers[free]
            return count
        if order < 0:
            lo = middle + 1
        else:
            hi = middle
    for m in range(first + count, lo, -1):
        states[m] = states[m - 1]
        for s in range(values.shape[1]):
            values[m, s] = values[m - 1, s]
    states[lo] = q
    for s in range(width):
        values[lo, s] = registers[s]
    for s in range(width, values.shape[1]):
        values[lo, s] = 0
    return count + 1


def group_by_labels(address, k, c, place, root, n, members):
    """Collect the successors of a configuration (-1: the initial set), one update for each label set.

    Returns the number of updates (-1 or -2 as `fire`). Writes the number of members to ``scratch.answers``, and whether
    the configuration itself is replaced or dropped.
    """
    events, tables = shared.events_at(address), shared.tables_at(address)
    state, scratch = shared.state_at(address), shared.scratch_at(address)
    states = tables.options[layout.O_STATES]
    signature = events.signature[k]
    results = np.int64(0)
    stays = np.int64(0)
    changed = False
    first = members
    single = c >= 0 and state.config[c, layout.C_GROUP] < states
    count = states if c < 0 else state.config[c, layout.C_COUNT]
    base = 0 if c < 0 or single else state.config[c, layout.C_MEMBER]
    registers = pointer_to(scratch.registers, 0)
    for m in range(count):
        if too_much_work(address, 1):
            return n
        if c < 0:
            q = m
            if tables.initial[q] == 0:
                continue
        elif single:
            q = state.config[c, layout.C_GROUP]
            registers = pointer_to(state.values, c)
        else:
            q = state.members[base + m]
            registers = pointer_to(state.member_values, base + m)
        skips = tables.skips[q] == 1
        r = tables.signature_state[signature, q]
        gone = c >= 0 and not skips and state.config_long[c, layout.L_LAST] != place - 1
        if gone or expired(q, registers, k, False, events, tables):
            changed = True
            continue
        if r >= 0:
            leaves = tables.signature_rows[r, layout.ROW_LEAVES]
            fired = results
            results = fire(r, k, registers, scratch.results, scratch.result_values, results, address, events, tables)
            if results < 0:
                return results
            if leaves == layout.LEAVES or (leaves == layout.LEAVES_FIRED and results > fired):
                skips = False
        if skips:
            if first + stays + 1 >= scratch.members.shape[0]:
                return np.int64(-1)
            stays = _insert_member(q, registers, first, stays, tables, scratch)
        else:
            changed = True
    # One update for each label set: first the empty one, which includes the skipping members, then the others. Label -1
    # marks a result that has been used.
    for i in range(-1, results):
        if too_much_work(address, 0):
            return n
        label = np.int64(0)
        count = stays
        if i >= 0:
            label = np.int64(scratch.results[i, layout.U_LABEL])
            count = np.int64(0)
            if label <= 0:
                continue
        final = np.int64(0)
        fired = False
        for j in range(max(i, 0), results):
            if scratch.results[j, layout.U_LABEL] != label:
                continue
            fired = True
            scratch.results[j, layout.U_LABEL] = -1
            if scratch.results[j, layout.U_FINAL] == 1:
                final = np.int64(1)
            if scratch.results[j, layout.U_STATE] >= 0:
                if members + count + 1 >= scratch.members.shape[0]:
                    return np.int64(-1)
                q = np.int64(scratch.results[j, layout.U_STATE])
                count = _insert_member(q, pointer_to(scratch.result_values, j), members, count, tables, scratch)
        if i < 0:
            changed = changed or fired
            if not changed:
                continue
        if count > 0 or final == 1:
            if n >= scratch.updates.shape[0]:
                return np.int64(-1)
            n, members = close_update(n, label, root, final, members, count, scratch)
    scratch.answers[0] = members
    scratch.answers[1] = 1 if changed else 0
    return n


@part
def close_update(n, label, root, final, first, count, scratch):
    """Write the update for members ``[first, first + count)``; returns the numbers of updates and members.

    It is number ``n``; ``final`` is 1 or 0.
    """
    scratch.updates[n, layout.U_LABEL] = label
    scratch.updates[n, layout.U_ROOT] = root
    scratch.updates[n, layout.U_FINAL] = final
    scratch.updates[n, layout.U_MEMBER] = first
    scratch.updates[n, layout.U_COUNT] = count
    if count == 0:
        scratch.updates[n, layout.U_STATE] = layout.NOWHERE
    elif count == 1:
        scratch.updates[n, layout.U_STATE] = scratch.members[first]
        for s in range(scratch.update_values.shape[1]):
            scratch.update_values[n, s] = scratch.member_values[first, s]
    else:
        scratch.updates[n, layout.U_STATE] = layout.SEVERAL
    return n + 1, first + count
