"""Firing transitions: which of them an event allows, and the registers they leave behind."""

from __future__ import annotations

import math

from cerflow.engine.kernels.collections import with_product
from cerflow.engine.kernels.guards import holds
from cerflow.engine.kernels.jit import inlined, kernel
from cerflow.engine.layout import (
    EXPIRED,
    FLOAT,
    FROM_COLUMN,
    GREATEST,
    LEAST,
    NEW_SET,
    NULL,
    P_BOUND,
    P_SOURCE,
    P_TARGET,
    RANK,
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
    WRITE,
)


@inlined
def fire(
    first, last, tables, events, columns_f, k, values, values_f, at, state, scratch, stack_f, out, out_values, out_f, n
):
    """Append what every enabled transition of ``signature_transitions[first:last]`` leads to, from entry ``n`` on.

    Reads the registers ``values[at]``. Returns the new number of entries, -1 if ``out`` is full, -2 if the
    collections are.
    """
    for e in range(first, last):
        t = tables.signature_transitions[e]
        enabled = True
        for atom in range(tables.transitions[t, T_ATOM], tables.transitions[t, T_ATOM_END]):
            if not holds(
                atom,
                tables,
                events.columns,
                columns_f,
                events.ranks,
                k,
                values,
                values_f,
                at,
                state.set_index,
                state.set_words,
                scratch.stack,
                stack_f,
                scratch.odometer,
            ):
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
            value = values[at, tables.copies[c, P_SOURCE]]
            bound = tables.copies[c, P_BOUND]
            if bound >= 0 and value <= events.columns[k, bound]:
                # All starts of a window that has passed are alike.
                value = EXPIRED
            out_values[n, tables.copies[c, P_TARGET]] = value
        for step in range(tables.transitions[t, T_STEP], tables.transitions[t, T_STEP_END]):
            if not _store(step, tables, events, columns_f, k, values, at, state, scratch, out_values, out_f, n):
                return -2
        n += 1
    return n


@kernel
def _store(step, tables, events, columns_f, k, values, at, state, scratch, out_values, out_f, n):
    """Apply one step to the registers of entry ``n``; False if the collections are full."""
    operation = tables.steps[step, S_OPERATION]
    slot = tables.steps[step, S_SLOT]
    source = tables.steps[step, S_INDEX]
    if operation == WRITE:
        if tables.steps[step, S_SOURCE] == FROM_COLUMN:
            out_values[n, slot] = events.columns[k, source]
        else:
            out_values[n, slot] = values[at, source]
    elif operation == SAME:
        if out_values[n, slot] != events.columns[k, source]:
            if tables.steps[step, S_KIND] == FLOAT:
                out_f[n, slot] = math.nan
            else:
                out_values[n, slot] = NULL
    elif operation in (LEAST, GREATEST):
        kind = tables.steps[step, S_KIND]
        if kind == FLOAT:
            x = columns_f[k, source]
            y = out_f[n, slot]
            # One null among the values decides: no comparison with all of them holds.
            if math.isnan(x) or math.isnan(y):
                out_f[n, slot] = math.nan
            elif (x < y) == (operation == LEAST):
                out_f[n, slot] = x
        else:
            i = events.columns[k, source]
            j = out_values[n, slot]
            if i == NULL or j == NULL:
                out_values[n, slot] = NULL
            elif kind == RANK:
                if (events.ranks[i] < events.ranks[j]) == (operation == LEAST):
                    out_values[n, slot] = i
            elif (i < j) == (operation == LEAST):
                out_values[n, slot] = i
    else:
        number = 0 if operation == NEW_SET else out_values[n, slot]
        number = with_product(
            number,
            step,
            tables,
            events.columns,
            k,
            values,
            at,
            state.set_index,
            state.set_words,
            state.set_table,
            state.counters,
            scratch.row,
            scratch.odometer,
        )
        if number < 0:
            return False
        out_values[n, slot] = number
    return True
