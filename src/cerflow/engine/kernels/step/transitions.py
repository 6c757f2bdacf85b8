"""Firing transitions: which of them an event and the registers allow, and the registers after them."""

from __future__ import annotations

import math

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import address_of, as_float, bits_of, call, pointer_to
from cerflow.engine.kernels.step.bytecode import words_compare


@inlined
def _holds(atom, k, registers, address, events, tables):
    """Whether atom number ``atom`` holds for event ``k`` and the registers at a pointer."""
    operator = tables.atoms[atom, layout.A_OPERATOR]
    if operator == layout.PROGRAM:
        return call(tables.options[layout.O_PROGRAMS], (address, layout.TEST, atom, k, address_of(registers), 0)) == 1
    kind = tables.atoms[atom, layout.A_KIND]
    i = events.columns[k, tables.atoms[atom, layout.A_LEFT]]
    j = registers[tables.atoms[atom, layout.A_RIGHT]]
    if kind == layout.FLOAT:
        x = as_float(i)
        y = as_float(j)
        if math.isnan(x) or math.isnan(y):
            return False
        return words_compare(operator, x, y)
    if i == layout.NULL or j == layout.NULL:
        return False
    if kind == layout.RANK:
        i = events.ranks[i]
        j = events.ranks[j]
    return words_compare(operator, i, j)


@inlined
def fire(row, k, registers, out, out_values, n, address, events, tables):
    """Append the targets of all enabled transitions of a ``row`` of ``signature_rows``, from entry ``n`` on.

    ``out`` is int32 with columns U_…, ``out_values`` int64, the registers of each entry. Returns the new number of
    entries, -1 if ``out`` is full, -2 if the collections are.
    """
    for e in range(tables.signature_rows[row, layout.ROW_FIRST], tables.signature_rows[row, layout.ROW_END]):
        t = tables.signature_transitions[e]
        enabled = True
        for atom in range(tables.transitions[t, layout.T_ATOM], tables.transitions[t, layout.T_ATOM_END]):
            if not _holds(atom, k, registers, address, events, tables):
                enabled = False
                break
        if not enabled:
            continue
        if n >= out.shape[0]:
            return -1
        out[n, layout.U_STATE] = tables.transitions[t, layout.T_TARGET]
        out[n, layout.U_LABEL] = tables.transitions[t, layout.T_LABEL]
        out[n, layout.U_FINAL] = tables.transitions[t, layout.T_FINAL]
        for c in range(tables.transitions[t, layout.T_COPY], tables.transitions[t, layout.T_COPY_END]):
            value = registers[tables.copies[c, layout.P_SOURCE]]
            bound = tables.copies[c, layout.P_BOUND]
            if bound >= 0 and value <= events.columns[k, bound]:
                # Starts whose window has passed are equivalent.
                value = layout.EXPIRED
            out_values[n, tables.copies[c, layout.P_TARGET]] = value
        for step in range(tables.transitions[t, layout.T_STEP], tables.transitions[t, layout.T_STEP_END]):
            if not _store(step, k, registers, pointer_to(out_values, n), address, events, tables):
                return -2
        n += 1
    return n


@part
def _store(step, k, registers, out, address, events, tables):
    """Apply one step to the registers ``out``; False if the collections are full."""
    operation = tables.steps[step, layout.S_OPERATION]
    slot = tables.steps[step, layout.S_SLOT]
    if operation in (layout.NEW_SET, layout.ADD_ROW):
        number = 0 if operation == layout.NEW_SET else out[slot]
        number = call(tables.options[layout.O_PROGRAMS], (address, layout.ROWS, step, k, address_of(registers), number))
        if number < 0:
            return False
        out[slot] = number
        return True
    source = tables.steps[step, layout.S_SOURCE]
    index = tables.steps[step, layout.S_INDEX]
    if source == layout.FROM_COLUMN:
        new = events.columns[k, index]
    elif source == layout.FROM_SLOT:
        new = registers[index]
    else:
        new = call(tables.options[layout.O_PROGRAMS], (address, layout.VALUE, step, k, address_of(registers), 0))
    old = out[slot]
    kind = tables.steps[step, layout.S_KIND]
    if operation == layout.WRITE:
        out[slot] = new
    elif operation == layout.SAME:
        if old != new:
            out[slot] = bits_of(math.nan) if kind == layout.FLOAT else layout.NULL
    elif kind == layout.FLOAT:
        x = as_float(new)
        y = as_float(old)
        # One null decides: no comparison with all values can hold.
        if math.isnan(x) or math.isnan(y):
            out[slot] = bits_of(math.nan)
        elif (x < y) == (operation == layout.LEAST):
            out[slot] = new
    elif new == layout.NULL or old == layout.NULL:
        out[slot] = layout.NULL
    elif kind == layout.RANK:
        if (events.ranks[new] < events.ranks[old]) == (operation == layout.LEAST):
            out[slot] = new
    elif (new < old) == (operation == layout.LEAST):
        out[slot] = new
    return True
