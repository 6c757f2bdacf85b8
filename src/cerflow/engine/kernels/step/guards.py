"""Conditions that compare the current event with registers."""

from __future__ import annotations

import math

from cerflow.engine.kernels.base.parts import inlined
from cerflow.engine.kernels.base.shared_arrays import address_of, as_float, call
from cerflow.engine.layout import (
    A_KIND,
    A_LEFT,
    A_OPERATOR,
    A_RIGHT,
    EQ,
    FLOAT,
    GE,
    LE,
    LT,
    NE,
    NULL,
    O_PROGRAMS,
    PROGRAM,
    RANK,
    TEST,
)


@inlined
def words_compare(operator, a, b):
    """Whether ``a operator b`` (neither is null)."""
    if operator == LT:
        return a < b
    if operator == LE:
        return a <= b
    if operator == EQ:
        return a == b
    if operator == NE:
        return a != b
    if operator == GE:
        return a >= b
    return a > b


@inlined
def holds(atom, k, registers, address, events, tables):
    """Whether atom number ``atom`` holds for event ``k`` and the registers at a pointer."""
    operator = tables.atoms[atom, A_OPERATOR]
    if operator == PROGRAM:
        return call(tables.options[O_PROGRAMS], (address, TEST, atom, k, address_of(registers), 0)) == 1
    kind = tables.atoms[atom, A_KIND]
    i = events.columns[k, tables.atoms[atom, A_LEFT]]
    j = registers[tables.atoms[atom, A_RIGHT]]
    if kind == FLOAT:
        x = as_float(i)
        y = as_float(j)
        if math.isnan(x) or math.isnan(y):
            return False
        return words_compare(operator, x, y)
    if i == NULL or j == NULL:
        return False
    if kind == RANK:
        i = events.ranks[i]
        j = events.ranks[j]
    return words_compare(operator, i, j)
