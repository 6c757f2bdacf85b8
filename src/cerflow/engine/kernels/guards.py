"""Conditions that relate the event at hand to registers, and small programs for those that are no comparison."""

from __future__ import annotations

import math

import numpy as np

from cerflow.automata.values import WORD
from cerflow.engine.kernels.calls import ask_predicate
from cerflow.engine.kernels.jit import inlined, kernel
from cerflow.engine.layout import (
    A_KIND,
    A_LEFT,
    A_OPERATOR,
    A_RANGE,
    A_RANGE_END,
    A_RIGHT,
    EQ,
    FLOAT,
    GE,
    LE,
    LT,
    NE,
    NULL,
    PROGRAM,
    RANK,
)
from cerflow.engine.opcodes import (
    ABS_F,
    ABS_I,
    ADD_F,
    ADD_I,
    AND,
    CALL,
    CEIL,
    COLUMN,
    COMPARE_F,
    COMPARE_I,
    CONSTANT,
    DIVIDE,
    FLOOR,
    IS_NULL_F,
    IS_NULL_I,
    JOIN_F,
    JOIN_I,
    MULTIPLY_F,
    MULTIPLY_I,
    NEGATE_F,
    NEGATE_I,
    NOT,
    OR,
    RANKED,
    REMAINDER_F,
    ROUND,
    SELECT,
    SET_FIELD,
    SLOT,
    SQUARE_ROOT,
    SUBTRACT_F,
    SUBTRACT_I,
    TO_FLOAT,
    TRUE_ONLY,
)

#: What the high words of integers within 64 bits are less than.
HALF = 2**31


@inlined
def compare(operator, a, b):
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
def holds(atom, tables, columns, columns_f, ranks, k, values, values_f, row, sets, words, stack, stack_f, odometer):
    """Whether an atom holds for event ``k`` and the registers in ``values[row]``."""
    operator = tables.atoms[atom, A_OPERATOR]
    if operator == PROGRAM:
        return _for_all(atom, tables, columns, ranks, k, values, row, sets, words, stack, stack_f, odometer)
    left = tables.atoms[atom, A_LEFT]
    right = tables.atoms[atom, A_RIGHT]
    kind = tables.atoms[atom, A_KIND]
    if kind == FLOAT:
        x = columns_f[k, left]
        y = values_f[row, right]
        if math.isnan(x) or math.isnan(y):
            return False
        return compare(operator, x, y)
    i = columns[k, left]
    j = values[row, right]
    if i == NULL or j == NULL:
        return False
    if kind == RANK:
        i = ranks[i]
        j = ranks[j]
    return compare(operator, i, j)


@kernel
def _for_all(atom, tables, columns, ranks, k, values, row, sets, words, stack, stack_f, odometer):
    """Run a program for every choice of one row from each collection it reads."""
    first = tables.atoms[atom, A_RANGE]
    last = tables.atoms[atom, A_RANGE_END]
    if not first_choice(first, last, tables, values, row, sets, odometer):
        return True
    start = tables.atoms[atom, A_LEFT]
    stop = tables.atoms[atom, A_RIGHT]
    while True:
        run(start, stop, first, tables, columns, ranks, k, values, row, sets, words, stack, stack_f, odometer)
        if stack[0] != 1:
            return False
        if not next_choice(first, last, tables, values, row, sets, odometer):
            return True


@kernel
def first_choice(first, last, tables, values, row, sets, odometer):
    """Choose the first row of each collection; False if one has none."""
    for r in range(first, last):
        odometer[r - first] = 0
        if sets[values[row, tables.ranges[r, 0]], 1] == 0:
            return False
    return True


@kernel
def next_choice(first, last, tables, values, row, sets, odometer):
    """Go on to the next choice of rows; False after the last."""
    for r in range(first, last):
        odometer[r - first] += 1
        if odometer[r - first] * tables.ranges[r, 1] < sets[values[row, tables.ranges[r, 0]], 1]:
            return True
        odometer[r - first] = 0
    return False


@kernel
def run(start, stop, first, tables, columns, ranks, k, values, row, sets, words, stack, stack_f, odometer):
    """Run the instructions ``[start, stop)`` for event ``k`` and the registers in ``values[row]``.

    Leaves the result in ``stack[0]``; ``first`` is the first of the collections that `SET_FIELD` speaks of.
    """
    top = 0
    for at in range(start, stop):
        opcode = tables.code[at, 0]
        argument = tables.code[at, 1]
        if opcode == COLUMN:
            stack[top] = columns[k, argument]
            top += 1
        elif opcode == SLOT:
            stack[top] = values[row, argument]
            top += 1
        elif opcode == CONSTANT:
            stack[top] = tables.constants[argument]
            top += 1
        elif opcode == SET_FIELD:
            which = argument >> 16
            r = first + which
            begin = sets[values[row, tables.ranges[r, 0]], 0]
            stack[top] = words[begin + odometer[which] * tables.ranges[r, 1] + (argument & 0xFFFF)]
            top += 1
        elif opcode == CALL:
            top -= tables.constants[argument + 1]
            stack[top] = ask_predicate(tables, argument, stack, top)
            top += 1
        elif opcode == SELECT:
            top -= 2
            stack[top - 1] = stack[top] if stack[top - 1] == 1 else stack[top + 1]
        elif opcode < NOT:
            top -= 1
            _binary(opcode, argument, stack, stack_f, top)
        else:
            _unary(opcode, stack, stack_f, top - 1, ranks)


@kernel
def _truth(known, value):
    if not known:
        return NULL
    return 1 if value else 0


@kernel
def _binary(opcode, argument, stack, stack_f, top):
    """Combine the entries at ``top - 1`` and ``top``."""
    at = top - 1
    if opcode == AND:
        a, b = stack[at], stack[top]
        if a == 0 or b == 0:
            stack[at] = 0
        elif a == NULL or b == NULL:
            stack[at] = NULL
        else:
            stack[at] = 1
    elif opcode == OR:
        a, b = stack[at], stack[top]
        if a == 1 or b == 1:
            stack[at] = 1
        elif a == NULL or b == NULL:
            stack[at] = NULL
        else:
            stack[at] = 0
    elif opcode == COMPARE_F:
        x, y = stack_f[at], stack_f[top]
        stack[at] = _truth(not (math.isnan(x) or math.isnan(y)), compare(argument, x, y))
    elif opcode == COMPARE_I:
        a, b = stack[at], stack[top]
        stack[at] = _truth(a != NULL and b != NULL, compare(argument, a, b))
    elif opcode == ADD_F:
        stack_f[at] = stack_f[at] + stack_f[top]
    elif opcode == SUBTRACT_F:
        stack_f[at] = stack_f[at] - stack_f[top]
    elif opcode == MULTIPLY_F:
        stack_f[at] = stack_f[at] * stack_f[top]
    elif opcode == DIVIDE:
        stack_f[at] = math.nan if stack_f[top] == 0.0 else stack_f[at] / stack_f[top]
    elif opcode == REMAINDER_F:
        x, y = stack_f[at], stack_f[top]
        stack_f[at] = math.nan if y == 0.0 or math.isinf(x) else np.fmod(x, y)
    elif opcode in (JOIN_I, JOIN_F):
        # First what the low words have carried over; then both parts are small enough to be exact as floats.
        high = stack[at] + stack[top] // WORD
        low = stack[top] % WORD
        if opcode == JOIN_F:
            stack_f[at] = float(high) * float(WORD) + float(low)
        else:
            stack[at] = high * WORD + low if -HALF <= high < HALF else NULL
    else:
        _integers(opcode, stack, at, stack[at], stack[top])


@kernel
def _integers(opcode, stack, at, a, b):
    """Arithmetic on 64-bit integers; null where the result leaves them."""
    if a == NULL or b == NULL:
        stack[at] = NULL
    elif opcode == ADD_I:
        c = a + b
        stack[at] = NULL if ((a ^ c) & (b ^ c)) < 0 else c
    elif opcode == SUBTRACT_I:
        c = a - b
        stack[at] = NULL if ((a ^ b) & (a ^ c)) < 0 else c
    elif opcode == MULTIPLY_I:
        c = a * b
        stack[at] = NULL if a != 0 and (c // a != b or c % a != 0) else c
    elif b == 0:
        stack[at] = NULL
    else:
        # REMAINDER_I: the sign of the dividend
        c = abs(a) % abs(b)
        stack[at] = -c if a < 0 else c


@kernel
def _unary(opcode, stack, stack_f, at, ranks):
    if opcode == NOT:
        if stack[at] != NULL:
            stack[at] = 1 - stack[at]
    elif opcode == TRUE_ONLY:
        stack[at] = 1 if stack[at] == 1 else 0
    elif opcode == RANKED:
        if stack[at] != NULL:
            stack[at] = ranks[stack[at]]
    elif opcode == TO_FLOAT:
        stack_f[at] = math.nan if stack[at] == NULL else float(stack[at])
    elif opcode == IS_NULL_I:
        stack[at] = 1 if stack[at] == NULL else 0
    elif opcode == IS_NULL_F:
        stack[at] = 1 if math.isnan(stack_f[at]) else 0
    elif opcode == NEGATE_I:
        if stack[at] != NULL:
            stack[at] = -stack[at]
    elif opcode == NEGATE_F:
        stack_f[at] = -stack_f[at]
    elif opcode == ABS_I:
        if stack[at] != NULL:
            stack[at] = abs(stack[at])
    elif opcode == ABS_F:
        stack_f[at] = abs(stack_f[at])
    elif opcode == SQUARE_ROOT:
        stack_f[at] = math.sqrt(stack_f[at])
    elif opcode == FLOOR:
        stack_f[at] = math.floor(stack_f[at]) if math.isfinite(stack_f[at]) else stack_f[at]
    elif opcode == CEIL:
        stack_f[at] = math.ceil(stack_f[at]) if math.isfinite(stack_f[at]) else stack_f[at]
    elif opcode == ROUND and math.isfinite(stack_f[at]):
        x = stack_f[at]
        whole = math.trunc(x)
        stack_f[at] = whole + math.copysign(1.0, x) if abs(x - whole) >= 0.5 else whole
