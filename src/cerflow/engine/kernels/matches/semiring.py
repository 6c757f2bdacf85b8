"""Semirings: values of sets of complex events, so that one walk along the match graph counts, adds or compares them.

Disjoint sets are added; events in front of a set are multiplied with it. A value is a row of numbers:

| operation | row | sum | product |
|---|---|---|---|
| `PLUS`, `LEAST`, `GREATEST` | least value (NaN for none), 1 if a complex event has none | least, greatest | combined |
| `SUMS` | sum of the values of the complex events, their number | of both | (x·n' + x'·n, n·n') |
| `FACTORS` | sum of the values, number | of both | of both |
| `COUNT` | digits of the number, the lowest first | of numbers | of numbers of one digit |

Numbers are floats, with `COUNT` int64. Parts add a ``value`` to the value ``into``, by an ``operation``. They also run
as plain Python on arrays of Python's numbers.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import checked_product, checked_sum
from cerflow.engine.kernels.base.parts import inlined, part

PLUS, LEAST, GREATEST, SUMS, FACTORS, COUNT = range(6)
#: Bits of a digit: the sum of two digits and a carry fits 63 bits.
DIGIT = 62
_MOST = (1 << DIGIT) - 1


@inlined
def put(into, value):
    """Set ``into`` to a ``value``."""
    into[0] = value[0]
    # Most values are short, and a loop costs more than both.
    if into.shape[0] > 1:
        into[1] = value[1]
        for k in range(2, into.shape[0]):
            into[k] = value[k]


@inlined
def row_of(mark, operation):
    """The row of the weights that has the value of a ``mark``: to numbers, all marks are alike."""
    return 0 if operation == COUNT else mark


@inlined
def is_nothing(operation, value):
    """Whether a ``value`` is that of the empty set; with `COUNT` numbers have one digit."""
    return value[value.shape[0] - 1] == 0 and (operation >= SUMS or value[0] != value[0])


@part
def joined_values(operation, value, other):
    """The value of two parts of a complex event, ``value`` and ``other``, NaN for none."""
    if value != value:
        return other
    if other != other:
        return value
    if operation == PLUS:
        return value + other
    return min(value, other) if operation == LEAST else max(value, other)


@inlined
def _least(into, value, lacking):
    if into[0] != into[0] or value < into[0]:
        into[0] = value
    into[1] = max(into[1], lacking)


@inlined
def add(operation, into, value):
    """Add the value of a disjoint set; returns whether the digits suffice."""
    if operation == COUNT:
        if into.shape[0] == 1:
            into[0] += value[0]
            return into[0] <= _MOST
        carry = np.int64(0)
        for k in range(into.shape[0]):
            digit = np.int64(into[k]) + np.int64(value[k]) + carry
            into[k] = digit & _MOST
            carry = digit >> DIGIT
        return carry == 0
    if operation >= SUMS:
        into[0] += value[0]
        into[1] += value[1]
    else:
        _least(into, value[0], value[1])
    return True


@inlined
def add_product(operation, into, one, other):
    """Add the product of the values ``one`` and ``other``, of one digit each; returns whether the digits suffice."""
    if operation == COUNT:
        into[0] = checked_sum(into[0], checked_product(one[0], other[0]))
        return 0 <= into[0] <= _MOST
    if operation >= SUMS:
        # A product with an empty set may be NaN.
        if one[1] != 0 and other[1] != 0:
            into[0] += one[0] * other[0] if operation == FACTORS else one[0] * other[1] + other[0] * one[1]
            into[1] += one[1] * other[1]
    elif not (is_nothing(operation, one) or is_nothing(operation, other)):
        value = joined_values(operation, one[0], other[0])
        if one[1] == 1 and other[0] < value:
            value = other[0]
        if other[1] == 1 and one[0] < value:
            value = one[0]
        _least(into, value, one[1] * other[1])
    return True


@inlined
def add_behind(operation, into, event, value):
    """Add the ``value`` of a set behind an ``event``; returns whether the digits suffice."""
    # To a number, the event does nothing.
    return add(operation, into, value) if operation == COUNT else add_product(operation, into, event, value)
