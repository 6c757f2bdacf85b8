"""Determinisation on outputs: the members of a configuration after an event with one label set, in canonical order."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import part
from cerflow.engine.kernels.base.shared_arrays import (
    events_at,
    pointer_to,
    scratch_at,
    state_at,
    tables_at,
    too_much_work,
)
from cerflow.engine.kernels.step.transitions import fire


@part
def insert_member(q, registers, states, values, first, count, slots, dominated):
    """Add state q with registers to the sorted members ``[first, first + count)``; returns their new number.

    ``states`` are int32 and ``values`` int64 arrays of members, ``slots[q]`` is the number of registers of a state.
    ``dominated[q]`` is a slot whose greatest value alone matters, or -1: of members that differ only there one is kept.
    """
    width = slots[q]
    free = dominated[q]
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
    events, tables, state, scratch = events_at(address), tables_at(address), state_at(address), scratch_at(address)
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
        # Copy the member's registers from wherever they are stored.
        if c < 0:
            q = m
            if tables.initial[q] == 0:
                continue
        elif single:
            q = state.config[c, layout.C_GROUP]
            for s in range(tables.slots[q]):
                registers[s] = state.values[c, s]
        else:
            q = state.members[base + m]
            for s in range(tables.slots[q]):
                registers[s] = state.member_values[base + m, s]
        skips = tables.skips[q] == 1
        r = tables.signature_state[signature, q]
        gone = c >= 0 and not skips and state.config_long[c, layout.L_LAST] != place - 1
        for e in range(tables.expiring_start[q], tables.expiring_start[q + 1]):
            if (
                registers[tables.expiring[e, layout.EXPIRING_SLOT]]
                <= events.columns[k, tables.expiring[e, layout.EXPIRING_BOUND]]
            ):
                gone = True
        if gone:
            changed = True
            continue
        if r >= 0:
            leaves = tables.signature_rows[r, layout.ROW_LEAVES]
            fired = results
            results = fire(
                tables.signature_rows[r, layout.ROW_FIRST],
                tables.signature_rows[r, layout.ROW_END],
                k,
                registers,
                scratch.results,
                scratch.result_values,
                results,
                address,
                events,
                tables,
            )
            if results < 0:
                return results
            if leaves == layout.LEAVES or (leaves == layout.LEAVES_FIRED and results > fired):
                skips = False
        if skips:
            if first + stays + 1 >= scratch.members.shape[0]:
                return np.int64(-1)
            stays = insert_member(
                q, registers, scratch.members, scratch.member_values, first, stays, tables.slots, tables.dominated
            )
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
                count = insert_member(
                    np.int64(scratch.results[j, layout.U_STATE]),
                    pointer_to(scratch.result_values, j),
                    scratch.members,
                    scratch.member_values,
                    members,
                    count,
                    tables.slots,
                    tables.dominated,
                )
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
