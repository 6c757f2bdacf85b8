"""Instructions on the values of many rows at once; the compiler makes vectors of most."""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine import opcodes as o
from cerflow.engine.kernels.base.arithmetic import wrapped_difference, wrapped_sum
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import as_float, bits_of
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.step.bytecode import binary, unary
from cerflow.engine.layout import EQ, GE, GT, LE, LT, NE, NULL


@part
def fill(to, word, count):
    """Write a ``word`` ``count`` times at the address ``to``."""
    for k in range(count):
        v.store_word(to, k, word)


@part
def copy(to, words, count):
    """Copy ``count`` ``words`` from one address ``to`` another."""
    for k in range(count):
        v.store_word(to, k, v.load_word(words, k))


@part
def select_words(conditions, ones, others, count):
    """Write over ``count`` words at ``conditions``: where they are 1 those at ``ones``, elsewhere those at ``others``.

    All three are addresses.
    """
    for k in range(count):
        one, other = v.load_word(ones, k), v.load_word(others, k)
        v.store_word(conditions, k, one if v.load_word(conditions, k) == 1 else other)


def _pairs(name, function):
    """Combines the words at two addresses, and writes over the first."""

    def run(left, right, count):
        for k in range(count):
            v.store_word(left, k, function(v.load_word(left, k), v.load_word(right, k)))

    run.__qualname__ = run.__name__ = name
    return part(run)


def _singles(name, function):
    """Changes the words at an address."""

    def run(words, count):
        for k in range(count):
            v.store_word(words, k, function(v.load_word(words, k)))

    run.__qualname__ = run.__name__ = name
    return part(run)


@inlined
def _quotient(a, b):
    x, y = as_float(a), as_float(b)
    return np.int64(v.NAN) if y == 0.0 else bits_of(x / y)


@inlined
def _difference(a, b):
    found = wrapped_difference(a, b)
    return NULL if (a == NULL) | (b == NULL) | ((a ^ b) & (a ^ found) < 0) else found


@inlined
def _sum(a, b):
    found = wrapped_sum(a, b)
    return NULL if (a == NULL) | (b == NULL) | ((a ^ found) & (b ^ found) < 0) else found


@inlined
def _both(a, b):
    unknown = NULL if (a == NULL) | (b == NULL) else np.int64(1)
    return np.int64(0) if (a == 0) | (b == 0) else unknown


@inlined
def _either(a, b):
    unknown = NULL if (a == NULL) | (b == NULL) else np.int64(0)
    return np.int64(1) if (a == 1) | (b == 1) else unknown


@inlined
def _maximum(a, b):
    x, y = as_float(a), as_float(b)
    return b if (y > x) | (x != x) else a


@inlined
def _minimum(a, b):
    x, y = as_float(a), as_float(b)
    return b if (y < x) | (x != x) else a


@inlined
def _known(a, b):
    x = as_float(a)
    return b if x != x else a


@inlined
def _missing(a):
    x = as_float(a)
    return np.int64(x != x)


_maximum_f, _minimum_f = _pairs("_maximum_f", _maximum), _pairs("_minimum_f", _minimum)
_maximum_i = _pairs("_maximum_i", inlined(lambda a, b: b if (b > a) & (b != NULL) | (a == NULL) else a))
_minimum_i = _pairs("_minimum_i", inlined(lambda a, b: b if (b < a) & (b != NULL) | (a == NULL) else a))
_coalesce_f = _pairs("_coalesce_f", _known)
_coalesce_i = _pairs("_coalesce_i", inlined(lambda a, b: b if a == NULL else a))
_add_f = _pairs("_add_f", inlined(lambda a, b: bits_of(as_float(a) + as_float(b))))
_subtract_f = _pairs("_subtract_f", inlined(lambda a, b: bits_of(as_float(a) - as_float(b))))
_multiply_f = _pairs("_multiply_f", inlined(lambda a, b: bits_of(as_float(a) * as_float(b))))
_add_i, _subtract_i = _pairs("_add_i", _sum), _pairs("_subtract_i", _difference)
_divide = _pairs("_divide", _quotient)
_and, _or = _pairs("_and", _both), _pairs("_or", _either)
_not = _singles("_not", inlined(lambda a: a if a == NULL else 1 - a))
_is_null_f = _singles("_is_null_f", _missing)
_is_null_i = _singles("_is_null_i", inlined(lambda a: np.int64(a == NULL)))
_to_float = _singles("_to_float", inlined(lambda a: np.int64(v.NAN) if a == NULL else bits_of(np.float64(a))))
_negate_f = _singles("_negate_f", inlined(lambda a: bits_of(-as_float(a))))
_absolute_f = _singles("_absolute_f", inlined(lambda a: bits_of(abs(as_float(a)))))
_root = _singles("_root", inlined(lambda a: bits_of(math.sqrt(as_float(a)))))


@part
def _compare(floating, left, right, count, less, same, more):
    """Compare words; the result is 1 where ``less``, ``same`` or ``more`` is."""
    if floating:
        for k in range(count):
            x, y = as_float(v.load_word(left, k)), as_float(v.load_word(right, k))
            holds = np.int64(x < y) & less | np.int64(x == y) & same | np.int64(x > y) & more
            v.store_word(left, k, holds if (x == x) & (y == y) else NULL)
    else:
        for k in range(count):
            a, b = v.load_word(left, k), v.load_word(right, k)
            holds = np.int64(a < b) & less | np.int64(a == b) & same | np.int64(a > b) & more
            v.store_word(left, k, holds if (a != NULL) & (b != NULL) else NULL)


@part
def combine(s, opcode, argument, count, top):
    """Do the instruction ``opcode`` with its ``argument`` on the rows of `wide` at ``top - 1`` and ``top``.

    ``s`` are the arrays of the scan; the first ``count`` values count.
    """
    wide = s.wide
    left, right = v.start_of(wide[top - 1]), v.start_of(wide[top])
    if opcode in (o.COMPARE_F, o.COMPARE_I):
        less = np.int64(argument in (LT, LE, NE))
        same = np.int64(argument in (LE, EQ, GE))
        more = np.int64(argument in (GT, GE, NE))
        _compare(opcode == o.COMPARE_F, left, right, count, less, same, more)
    elif opcode == o.ADD_F:
        _add_f(left, right, count)
    elif opcode == o.SUBTRACT_F:
        _subtract_f(left, right, count)
    elif opcode == o.MULTIPLY_F:
        _multiply_f(left, right, count)
    elif opcode == o.DIVIDE:
        _divide(left, right, count)
    elif opcode == o.ADD_I:
        _add_i(left, right, count)
    elif opcode == o.SUBTRACT_I:
        _subtract_i(left, right, count)
    elif opcode == o.AND:
        _and(left, right, count)
    elif opcode == o.OR:
        _or(left, right, count)
    elif opcode == o.COALESCE_F:
        _coalesce_f(left, right, count)
    elif opcode == o.COALESCE_I:
        _coalesce_i(left, right, count)
    elif opcode == o.BEST_F and argument == GT:
        _maximum_f(left, right, count)
    elif opcode == o.BEST_F and argument == LT:
        _minimum_f(left, right, count)
    elif opcode == o.BEST_I and argument == GT:
        _maximum_i(left, right, count)
    elif opcode == o.BEST_I and argument == LT:
        _minimum_i(left, right, count)
    else:
        for k in range(count):
            s.stack[0], s.stack[1] = wide[top - 1, k], wide[top, k]
            binary(opcode, argument, s.stack, 1)
            wide[top - 1, k] = s.stack[0]


@part
def change(s, opcode, count, top):
    """Do the instruction ``opcode`` on the row of `wide` at ``top``.

    ``s`` are the arrays of the scan; the first ``count`` values count.
    """
    words = v.start_of(s.wide[top])
    if opcode == o.NOT:
        _not(words, count)
    elif opcode == o.IS_NULL_F:
        _is_null_f(words, count)
    elif opcode == o.IS_NULL_I:
        _is_null_i(words, count)
    elif opcode == o.TO_FLOAT:
        _to_float(words, count)
    elif opcode == o.NEGATE_F:
        _negate_f(words, count)
    elif opcode == o.ABS_F:
        _absolute_f(words, count)
    elif opcode == o.SQUARE_ROOT:
        _root(words, count)
    else:
        for k in range(count):
            s.stack[0] = s.wide[top, k]
            unary(opcode, s.stack, 0, s.constants)
            s.wide[top, k] = s.stack[0]
