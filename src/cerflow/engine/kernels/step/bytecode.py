"""Small programs: conditions other than comparisons, computed values, and rows for collections.

Only some queries have them, so the step calls `call_predicate` by its address.
"""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine import layout, opcodes
from cerflow.engine.kernels.base import shared_arrays as shared
from cerflow.engine.kernels.base.arithmetic import checked_difference, checked_product, checked_sum
from cerflow.engine.kernels.base.calls import ask_predicate
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import as_float, bits_of, pointer_to, too_much_work
from cerflow.engine.kernels.state.collections import with_row, with_rows
from cerflow.logic.conditions.register_values import FIRST_MOMENT, LAST_MOMENT, WORD

#: The high word of a 64-bit integer is in ``[-HALF, HALF)``.
HALF = 2**31
#: Floats of this size or more exceed 64-bit integers.
BEYOND = 2.0**63


def call_predicate(address, what, at, k, registers, number):
    """The result of a program for event ``k`` and the registers at an address.

    ``what`` is `TEST` (whether atom ``at`` holds), `VALUE` (the value of step ``at``) or `ROWS` (the number of the
    collection that step ``at`` makes of collection ``number``, -1 if there is too little room).
    """
    row = shared.words_at(registers)
    tables = shared.tables_at(address)
    if what == layout.TEST:
        return 1 if _for_all(at, k, row, address) else 0
    if what == layout.VALUE:
        first, last = tables.steps[at, layout.S_INDEX], tables.steps[at, layout.S_FIELDS_END]
        return _computed(np.int64(first), np.int64(last), np.int64(0), k, row, address)
    return _with_rows(number, at, k, row, address)


@part
def _for_all(atom, k, row, address):
    """Whether a program is true for every choice of one row from each collection it reads."""
    tables, state, scratch = shared.tables_at(address), shared.state_at(address), shared.scratch_at(address)
    first = np.int64(tables.atoms[atom, layout.A_RANGE])
    last = np.int64(tables.atoms[atom, layout.A_RANGE_END])
    if not _first_choice(first, last, row, tables, state, scratch):
        return True
    start = np.int64(tables.atoms[atom, layout.A_LEFT])
    stop = np.int64(tables.atoms[atom, layout.A_RIGHT])
    # `_next_choice` counts through finitely many choices.
    while True:
        # After too much work the event is not applied.
        if _computed(start, stop, first, k, row, address) != 1 or too_much_work(address, 1):
            return False
        if not _next_choice(first, last, row, tables, state, scratch):
            return True


# -- collections ------------------------------------------------------------------------------------------------------


@part
def _first_choice(first, last, row, tables, state, scratch):
    """Choose the first row of each collection; False if one is empty."""
    for r in range(first, last):
        scratch.odometer[r - first] = 0
        if state.set_index[row[tables.ranges[r, layout.RANGE_SLOT]], layout.SET_SIZE] == 0:
            return False
    return True


@part
def _next_choice(first, last, row, tables, state, scratch):
    """Go on to the next choice of rows; False after the last."""
    odometer = scratch.odometer
    for r in range(first, last):
        odometer[r - first] += 1
        if (
            odometer[r - first] * tables.ranges[r, layout.RANGE_WIDTH]
            < state.set_index[row[tables.ranges[r, layout.RANGE_SLOT]], layout.SET_SIZE]
        ):
            return True
        odometer[r - first] = 0
    return False


@part
def _with_rows(number, step, k, row, address):
    """Add a row to a collection for every accepted choice of the rows that a step reads; -1 if the arrays are full."""
    tables, state, scratch = shared.tables_at(address), shared.state_at(address), shared.scratch_at(address)
    product = tables.steps[step, layout.S_SOURCE]
    first = np.int64(tables.products[product, layout.Q_RANGE])
    last = np.int64(tables.products[product, layout.Q_RANGE_END])
    start = np.int64(tables.products[product, layout.Q_FILTER])
    stop = np.int64(tables.products[product, layout.Q_FILTER_END])
    begin = tables.steps[step, layout.S_INDEX]
    width = np.int64(tables.steps[step, layout.S_FIELDS_END] - begin)
    if not _first_choice(first, last, row, tables, state, scratch):
        return number
    # Where rows do not make others unnecessary, the rows of collections are added in one go.
    together = first < last
    # Rows whose window has passed are left out.
    ending, bound = np.int64(0), np.int64(layout.NO_BOUND)
    for f in range(width):
        together = together and tables.fields[begin + f, layout.FIELD_COMPARES] == layout.SAME_BITS
        column = np.int64(tables.fields[begin + f, layout.FIELD_BOUND])
        if column >= 0:
            ending, bound = np.int64(f), shared.events_at(address).columns[k, column]
    count = np.int64(0)
    while True:
        if start == stop or _computed(start, stop, first, k, row, address) == 1:
            for f in range(width):
                scratch.row[f] = _field(begin + f, first, k, row, address)
            if together:
                to = state.counters[layout.N_SET_WORDS] + count * width
                if to + width > state.set_words.shape[0]:
                    return np.int64(-1)
                for f in range(width):
                    state.set_words[to + f] = scratch.row[f]
                count += 1
            else:
                number = with_row(number, scratch.row, np.int64(begin), width, ending, bound, state, tables)
                if number < 0:
                    return np.int64(-1)
        if too_much_work(address, 1) or not _next_choice(first, last, row, tables, state, scratch):
            return with_rows(number, count, width, state) if count > 0 else number


@inlined
def _field(f, first, k, row, address):
    tables = shared.tables_at(address)
    source = tables.fields[f, layout.FIELD_SOURCE]
    where = np.int64(tables.fields[f, layout.FIELD_INDEX])
    if source == layout.FROM_COLUMN:
        return shared.events_at(address).columns[k, where]
    if source == layout.FROM_SLOT:
        return row[where]
    return _computed(where, np.int64(tables.fields[f, layout.FIELD_END]), first, k, row, address)


# -- the machine ------------------------------------------------------------------------------------------------------


@part
def _computed(start, stop, first, k, row, address):
    """The result of the instructions ``[start, stop)`` for event ``k`` and the registers in ``row``.

    ``first`` is the first of the collections that `SET_FIELD` refers to.
    """
    tables, events = shared.tables_at(address), shared.events_at(address)
    state, scratch = shared.state_at(address), shared.scratch_at(address)
    stack = scratch.stack
    top = 0
    for at in range(start, stop):
        opcode = tables.code[at, layout.CODE_OPCODE]
        argument = tables.code[at, layout.CODE_ARGUMENT]
        if opcode == opcodes.COLUMN:
            stack[top] = events.columns[k, argument]
            top += 1
        elif opcode == opcodes.SLOT:
            stack[top] = row[argument]
            top += 1
        elif opcode == opcodes.CONSTANT:
            stack[top] = tables.constants[argument]
            top += 1
        elif opcode == opcodes.SET_FIELD:
            which = argument >> 16
            r = first + which
            begin = state.set_index[row[tables.ranges[r, layout.RANGE_SLOT]], layout.SET_BEGIN]
            stack[top] = state.set_words[
                begin + scratch.odometer[which] * tables.ranges[r, layout.RANGE_WIDTH] + (argument & 0xFFFF)
            ]
            top += 1
        elif opcode == opcodes.ROWS:
            number = row[argument]
            stack[top] = shared.address_of(pointer_to(state.set_words, state.set_index[number, layout.SET_BEGIN]))
            stack[top + 1] = state.set_index[number, layout.SET_SIZE]
            top += 2
        elif opcode == opcodes.CALL:
            top -= tables.constants[argument + 1]
            stack[top] = ask_predicate(tables, argument, stack, top)
            top += 1
        elif opcode == opcodes.SELECT:
            top -= 2
            stack[top - 1] = stack[top] if stack[top - 1] == 1 else stack[top + 1]
        elif opcode < opcodes.NOT:
            top -= 1
            binary(opcode, argument, stack, top)
        else:
            unary(opcode, stack, top - 1, events.ranks)
    return stack[0]


@part
def _truth(known, value):
    if not known:
        return layout.NULL
    return 1 if value else 0


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


@part
def binary(opcode, argument, stack, top):
    """Do the instruction ``opcode`` with its ``argument`` on the entries of ``stack`` at ``top - 1`` and ``top``."""
    at = top - 1
    if opcode == opcodes.AND:
        a, b = stack[at], stack[top]
        if a == 0 or b == 0:
            stack[at] = 0
        elif a == layout.NULL or b == layout.NULL:
            stack[at] = layout.NULL
        else:
            stack[at] = 1
    elif opcode == opcodes.OR:
        a, b = stack[at], stack[top]
        if a == 1 or b == 1:
            stack[at] = 1
        elif a == layout.NULL or b == layout.NULL:
            stack[at] = layout.NULL
        else:
            stack[at] = 0
    elif opcode == opcodes.COMPARE_F:
        x, y = as_float(stack[at]), as_float(stack[top])
        stack[at] = _truth(not (math.isnan(x) or math.isnan(y)), words_compare(argument, x, y))
    elif opcode == opcodes.COMPARE_I:
        a, b = stack[at], stack[top]
        stack[at] = _truth(a != layout.NULL and b != layout.NULL, words_compare(argument, a, b))
    elif opcode == opcodes.ADD_F:
        stack[at] = bits_of(as_float(stack[at]) + as_float(stack[top]))
    elif opcode == opcodes.SUBTRACT_F:
        stack[at] = bits_of(as_float(stack[at]) - as_float(stack[top]))
    elif opcode == opcodes.MULTIPLY_F:
        stack[at] = bits_of(as_float(stack[at]) * as_float(stack[top]))
    elif opcode == opcodes.DIVIDE:
        x, y = as_float(stack[at]), as_float(stack[top])
        stack[at] = bits_of(math.nan if y == 0.0 else x / y)
    elif opcode == opcodes.REMAINDER_F:
        x, y = as_float(stack[at]), as_float(stack[top])
        stack[at] = bits_of(math.nan if y == 0.0 or math.isinf(x) else np.fmod(x, y))
    elif opcode == opcodes.BEST_I:
        a, b = stack[at], stack[top]
        if a == layout.NULL or (b != layout.NULL and words_compare(argument, b, a)):
            stack[at] = b
    elif opcode == opcodes.BEST_F:
        x, y = as_float(stack[at]), as_float(stack[top])
        if math.isnan(x) or words_compare(argument, y, x):
            stack[at] = stack[top]
    elif opcode == opcodes.COALESCE_F:
        if math.isnan(as_float(stack[at])):
            stack[at] = stack[top]
    elif opcode == opcodes.COALESCE_I:
        if stack[at] == layout.NULL:
            stack[at] = stack[top]
    elif opcode in (opcodes.JOIN_I, opcodes.JOIN_F):
        # First the carry of the low words; then both parts are small enough to be exact as floats.
        high = stack[at] + stack[top] // WORD
        low = stack[top] % WORD
        if opcode == opcodes.JOIN_F:
            stack[at] = bits_of(float(high) * float(WORD) + float(low))
        else:
            stack[at] = high * WORD + low if -HALF <= high < HALF else layout.NULL
    else:
        _integers(opcode, stack, at, stack[at], stack[top])


@part
def _integers(opcode, stack, at, a, b):
    """Arithmetic on 64-bit integers; null if the result exceeds them."""
    if a == layout.NULL or b == layout.NULL:
        stack[at] = layout.NULL
    elif opcode == opcodes.ADD_I:
        stack[at] = checked_sum(a, b)
    elif opcode == opcodes.SUBTRACT_I:
        stack[at] = checked_difference(a, b)
    elif opcode == opcodes.MULTIPLY_I:
        stack[at] = checked_product(a, b)
    elif b == 0:
        stack[at] = layout.NULL
    elif opcode == opcodes.QUOTIENT_I:
        stack[at] = a // b
    else:
        # REMAINDER_I: the sign of the dividend
        c = abs(a) % abs(b)
        stack[at] = -c if a < 0 else c


@part
def unary(opcode, stack, at, ranks):
    """Do the instruction ``opcode`` on the entry of ``stack`` at ``at``; ``ranks`` are those of strings."""
    value = stack[at]
    if opcode == opcodes.NOT:
        if value != layout.NULL:
            stack[at] = 1 - value
    elif opcode == opcodes.TRUE_ONLY:
        stack[at] = 1 if value == 1 else 0
    elif opcode == opcodes.RANKED:
        if value != layout.NULL:
            stack[at] = ranks[value]
    elif opcode == opcodes.TO_FLOAT:
        stack[at] = bits_of(math.nan if value == layout.NULL else float(value))
    elif opcode == opcodes.IS_NULL_I:
        stack[at] = 1 if value == layout.NULL else 0
    elif opcode == opcodes.NEGATE_I:
        if value != layout.NULL:
            stack[at] = -value
    elif opcode == opcodes.ABS_I:
        if value != layout.NULL:
            stack[at] = abs(value)
    elif opcode == opcodes.DATED:
        if value < FIRST_MOMENT or value > LAST_MOMENT:
            stack[at] = layout.NULL
    elif opcode == opcodes.WHOLE:
        x = as_float(value)
        # Rounding changes no float that is so large; NaN is not less.
        stack[at] = np.int64(_rounded(x)) if abs(x) < BEYOND else layout.NULL
    else:
        _unary_float(opcode, stack, at, as_float(value))


@part
def _unary_float(opcode, stack, at, x):
    if opcode == opcodes.IS_NULL_F:
        stack[at] = 1 if math.isnan(x) else 0
    elif opcode == opcodes.NEGATE_F:
        stack[at] = bits_of(-x)
    elif opcode == opcodes.ABS_F:
        stack[at] = bits_of(abs(x))
    elif opcode == opcodes.SQUARE_ROOT:
        stack[at] = bits_of(math.sqrt(x))
    elif math.isfinite(x):
        if opcode == opcodes.FLOOR:
            stack[at] = bits_of(np.floor(x))
        elif opcode == opcodes.CEIL:
            stack[at] = bits_of(np.ceil(x))
        elif opcode == opcodes.ROUND:
            stack[at] = bits_of(_rounded(x))


@inlined
def _rounded(x):
    whole = np.trunc(x)
    return whole + math.copysign(1.0, x) if abs(x - whole) >= 0.5 else whole
