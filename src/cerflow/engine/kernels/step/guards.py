"""Conditions that compare the current event with registers."""

from __future__ import annotations

import math

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined
from cerflow.engine.kernels.base.shared_arrays import address_of, as_float, call


@inlined
def words_compare(operator, a, b):
    """Whether ``a operator b`` (neither is null)."""
    if operator == layout.LT:
        return a < b
    if operator == layout.LE:
        return a <= b
    if operator == layout.EQ:
        return a == b
    if operator == layout.NE:
        return a != b
    if operator == layout.GE:
        return a >= b
    return a > b


@inlined
def holds(atom, k, registers, address, events, tables):
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
