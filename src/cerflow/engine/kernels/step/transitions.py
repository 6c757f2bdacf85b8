"""Firing transitions: which of them an event allows, and the registers after them."""

from __future__ import annotations

import math

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import address_of, as_float, bits_of, call, pointer_to
from cerflow.engine.kernels.step.guards import holds
from cerflow.engine.layout import (
    ADD_ROW,
    EXPIRED,
    FLOAT,
    FROM_COLUMN,
    FROM_SLOT,
    LEAST,
    NEW_SET,
    NULL,
    O_PROGRAMS,
    P_BOUND,
    P_SOURCE,
    P_TARGET,
    RANK,
    ROWS,
    S_INDEX,
    S_KIND,
    S_OPERATION,
    S_SLOT,
    S_SOURCE,
    SAME,
    T_ATOM,
    T_ATOM_END,
    T_COPY,
    T_COPY_END,
    T_FINAL,
    T_LABEL,
    T_STEP,
    T_STEP_END,
    T_TARGET,
    U_FINAL,
    U_LABEL,
    U_STATE,
    VALUE,
    WRITE,
)


@inlined
def fire(first, last, k, registers, out, out_values, n, address, events, tables):
    """Append the targets of all enabled transitions in ``signature_transitions[first:last]``, from entry ``n`` on.

    ``out`` is int32 with columns U_…, ``out_values`` int64, the registers of each entry. Reads the registers at a
    pointer.
    Returns the new number of entries, -1 if ``out`` is full, -2 if the collections are.
    """
    for e in range(first, last):
        t = tables.signature_transitions[e]
        enabled = True
        for atom in range(tables.transitions[t, T_ATOM], tables.transitions[t, T_ATOM_END]):
            if not holds(atom, k, registers, address, events, tables):
                enabled = False
                break
        if not enabled:
            continue
        if n >= out.shape[0]:
            return -1
        out[n, U_STATE] = tables.transitions[t, T_TARGET]
        out[n, U_LABEL] = tables.transitions[t, T_LABEL]
        out[n, U_FINAL] = tables.transitions[t, T_FINAL]
        for c in range(tables.transitions[t, T_COPY], tables.transitions[t, T_COPY_END]):
            value = registers[tables.copies[c, P_SOURCE]]
            bound = tables.copies[c, P_BOUND]
            if bound >= 0 and value <= events.columns[k, bound]:
                # All starts of a window that has passed are equivalent.
                value = EXPIRED
            out_values[n, tables.copies[c, P_TARGET]] = value
        for step in range(tables.transitions[t, T_STEP], tables.transitions[t, T_STEP_END]):
            if not _store(step, k, registers, pointer_to(out_values, n), address, events, tables):
                return -2
        n += 1
    return n


@part
def _store(step, k, registers, out, address, events, tables):
    """Apply one step to the registers ``out``; False if the collections are full."""
    operation = tables.steps[step, S_OPERATION]
    slot = tables.steps[step, S_SLOT]
    if operation in (NEW_SET, ADD_ROW):
        number = 0 if operation == NEW_SET else out[slot]
        number = call(tables.options[O_PROGRAMS], (address, ROWS, step, k, address_of(registers), number))
        if number < 0:
            return False
        out[slot] = number
        return True
    source = tables.steps[step, S_SOURCE]
    index = tables.steps[step, S_INDEX]
    if source == FROM_COLUMN:
        new = events.columns[k, index]
    elif source == FROM_SLOT:
        new = registers[index]
    else:
        new = call(tables.options[O_PROGRAMS], (address, VALUE, step, k, address_of(registers), 0))
    old = out[slot]
    kind = tables.steps[step, S_KIND]
    if operation == WRITE:
        out[slot] = new
    elif operation == SAME:
        if old != new:
            out[slot] = bits_of(math.nan) if kind == FLOAT else NULL
    elif kind == FLOAT:
        x = as_float(new)
        y = as_float(old)
        # One null among the values decides: no comparison with all of them holds.
        if math.isnan(x) or math.isnan(y):
            out[slot] = bits_of(math.nan)
        elif (x < y) == (operation == LEAST):
            out[slot] = new
    elif new == NULL or old == NULL:
        out[slot] = NULL
    elif kind == RANK:
        if (events.ranks[new] < events.ranks[old]) == (operation == LEAST):
            out[slot] = new
    elif (new < old) == (operation == LEAST):
        out[slot] = new
    return True
