"""Firing transitions: which of them an event allows, and the registers they leave behind."""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine.kernels.collections import with_row
from cerflow.engine.kernels.guards import first_choice, holds, next_choice, run
from cerflow.engine.kernels.jit import inlined, kernel
from cerflow.engine.layout import (
    ADD_ROW,
    EXPIRED,
    FLOAT,
    FROM_COLUMN,
    FROM_SLOT,
    LEAST,
    NEW_SET,
    NULL,
    P_BOUND,
    P_SOURCE,
    P_TARGET,
    Q_FILTER,
    Q_FILTER_END,
    Q_RANGE,
    Q_RANGE_END,
    RANK,
    S_FIELDS_END,
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
            if not _store(step, tables, events, k, values, at, state, scratch, stack_f, out_values, out_f, n):
                return -2
        n += 1
    return n


@kernel
def _store(step, tables, events, k, values, at, state, scratch, stack_f, out_values, out_f, n):
    """Apply one step to the registers of entry ``n``; False if the collections are full."""
    operation = tables.steps[step, S_OPERATION]
    slot = tables.steps[step, S_SLOT]
    if operation in (NEW_SET, ADD_ROW):
        number = 0 if operation == NEW_SET else out_values[n, slot]
        number = _with_rows(number, step, tables, events, k, values, at, state, scratch, stack_f)
        if number < 0:
            return False
        out_values[n, slot] = number
        return True
    source = tables.steps[step, S_SOURCE]
    index = tables.steps[step, S_INDEX]
    if source == FROM_COLUMN:
        new = events.columns[k, index]
    elif source == FROM_SLOT:
        new = values[at, index]
    else:
        stop = tables.steps[step, S_FIELDS_END]
        new = _computed(index, stop, np.int32(0), tables, events, k, values, at, state, scratch, stack_f)
    kind = tables.steps[step, S_KIND]
    if operation == WRITE:
        out_values[n, slot] = new
    elif operation == SAME:
        if out_values[n, slot] != new:
            if kind == FLOAT:
                out_f[n, slot] = math.nan
            else:
                out_values[n, slot] = NULL
    elif kind == FLOAT:
        scratch.stack[0] = new
        x = stack_f[0]
        y = out_f[n, slot]
        # One null among the values decides: no comparison with all of them holds.
        if math.isnan(x) or math.isnan(y):
            out_f[n, slot] = math.nan
        elif (x < y) == (operation == LEAST):
            out_f[n, slot] = x
    else:
        old = out_values[n, slot]
        if new == NULL or old == NULL:
            out_values[n, slot] = NULL
        elif kind == RANK:
            if (events.ranks[new] < events.ranks[old]) == (operation == LEAST):
                out_values[n, slot] = new
        elif (new < old) == (operation == LEAST):
            out_values[n, slot] = new
    return True


@kernel
def _computed(start, stop, first, tables, events, k, values, at, state, scratch, stack_f):
    """The value of a program; ``first`` is the first of the collections of which it reads the chosen rows."""
    run(
        start,
        stop,
        first,
        tables,
        events.columns,
        events.ranks,
        k,
        values,
        at,
        state.set_index,
        state.set_words,
        scratch.stack,
        stack_f,
        scratch.odometer,
    )
    return scratch.stack[0]


@kernel
def _with_rows(number, step, tables, events, k, values, at, state, scratch, stack_f):
    """Add a row to a collection for every choice of rows that a step reads and accepts; -1 if the arrays are full."""
    product = tables.steps[step, S_SOURCE]
    first = tables.products[product, Q_RANGE]
    last = tables.products[product, Q_RANGE_END]
    begin = tables.steps[step, S_INDEX]
    width = tables.steps[step, S_FIELDS_END] - begin
    if not first_choice(first, last, tables, values, at, state.set_index, scratch.odometer):
        return number
    while True:
        if _accepted(product, first, tables, events, k, values, at, state, scratch, stack_f):
            for f in range(width):
                scratch.row[f] = _field(begin + f, first, tables, events, k, values, at, state, scratch, stack_f)
            number = with_row(
                number, scratch.row, width, state.set_index, state.set_words, state.set_table, state.counters
            )
            if number < 0:
                return -1
        if not next_choice(first, last, tables, values, at, state.set_index, scratch.odometer):
            return number


@kernel
def _accepted(product, first, tables, events, k, values, at, state, scratch, stack_f):
    """Whether the choice of rows at hand satisfies the condition of a product."""
    start = tables.products[product, Q_FILTER]
    stop = tables.products[product, Q_FILTER_END]
    return start == stop or (_computed(start, stop, first, tables, events, k, values, at, state, scratch, stack_f) == 1)


@kernel
def _field(f, first, tables, events, k, values, at, state, scratch, stack_f):
    """A field of a new row."""
    source = tables.fields[f, 0]
    where = tables.fields[f, 1]
    if source == FROM_COLUMN:
        return events.columns[k, where]
    if source == FROM_SLOT:
        return values[at, where]
    return _computed(where, tables.fields[f, 2], first, tables, events, k, values, at, state, scratch, stack_f)
