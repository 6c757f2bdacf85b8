"""Collections in registers: sorted sets of rows. Equal sets are stored once, under one number."""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.arithmetic import wrapped_product, wrapped_sum
from cerflow.engine.kernels.base.ordering import sort_by
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import as_float, pointer_to


@part
def hash_words(words, count, seed):
    """A 63-bit hash of ``count`` int64 words at the pointer ``words``, beginning with ``seed``."""
    h = wrapped_sum(wrapped_product(seed, 0x9E3779B97F4A7C1), 0x7F4A7C15)
    for i in range(count):
        h = wrapped_product(h ^ words[i], 0x2545F4914F6CDD1D)
        h ^= (h >> 29) & 0x7FFFFFFFF
    return h & 0x7FFFFFFFFFFFFFFF


@inlined
def same_words(one, other, count):
    """Whether ``count`` words at the pointers ``one`` and ``other`` are equal."""
    for i in range(count):
        if one[i] != other[i]:
            return False
    return True


@inlined
def _comes_first(rows, one, other, given):
    column, falling = given
    here, before = rows[one, column], rows[other, column]
    return here != before and (here > before) == falling


_sort_by_column = sort_by(_comes_first, "by column")


@part
def sort_rows(rows, first, last, column, falling):
    """Sort ``rows[first:last]`` by a ``column``, the greatest first if ``falling``."""
    _sort_by_column(rows, first, last, (column, falling))


@inlined
def leave_chain(table, slot, rows, column, entry):
    """Take an ``entry`` out of the chain from a ``slot`` of a hash ``table`` on, along a ``column`` of ``rows``."""
    before = table[slot]
    if before == entry:
        table[slot] = rows[entry, column]
        return
    while rows[before, column] != entry:
        before = rows[before, column]
    rows[before, column] = rows[entry, column]


@inlined
def covers(words, at, other, begin, width, tables):
    """Whether a row makes another unnecessary: the ``width`` words from ``words[at]`` on, and those of ``other``.

    ``begin`` is the first of the fields that say how they compare.
    """
    for f in range(width):
        how = tables.fields[begin + f, layout.FIELD_COMPARES]
        a, b = words[at + f], other[f]
        if how in (layout.LEAST_INT, layout.GREATEST_INT):
            if b != layout.NULL and (a == layout.NULL or (a > b if how == layout.LEAST_INT else a < b)):
                return False
        elif how in (layout.LEAST_FLOAT, layout.GREATEST_FLOAT):
            x, y = as_float(a), as_float(b)
            if not (math.isnan(y) or (x <= y if how == layout.LEAST_FLOAT else x >= y)):
                return False
        elif how == layout.SAME_BITS and a != b:
            return False
    return True


@inlined
def _is_less(row, other, width):
    for f in range(width):
        if row[f] != other[f]:
            return row[f] < other[f]
    return False


@part
def with_row(number, row, begin, width, ending, bound, state, tables):
    """The number of the set with one more row, without rows that it makes unnecessary; -1 if the arrays are full.

    ``number`` is the number of the set so far. The row has ``width`` words; ``begin`` is its first field in the tables.
    Rows whose field ``ending`` is at or below ``bound`` are left out, too.
    """
    index, words, counters = state.set_index, state.set_words, state.counters
    start = index[number, layout.SET_BEGIN]
    count = index[number, layout.SET_SIZE]
    for at in range(start, start + count, width):
        if covers(words, at, row, begin, width, tables):
            return number
    first = counters[layout.N_SET_WORDS]
    full = counters[layout.N_SETS] >= index.shape[0] or 2 * (counters[layout.N_SETS] + 1) > state.set_table.shape[0]
    if full or first + count + width > words.shape[0]:
        return -1
    to = first
    entered = False
    for at in range(start, start + count + width, width):
        if not entered and (at == start + count or _is_less(row, pointer_to(words, at), width)):
            for f in range(width):
                words[to + f] = row[f]
            to += width
            entered = True
        passed = at < start + count and bound != layout.NO_BOUND and words[at + ending] <= bound
        if at < start + count and not passed and not covers(row, 0, pointer_to(words, at), begin, width, tables):
            for f in range(width):
                words[to + f] = words[at + f]
            to += width
    return _number_of(first, to, state)


@part
def with_rows(number, count, width, state):
    """The set ``number`` with ``count`` more rows of ``width`` words, stored after all sets; -1 if the arrays are full.

    Only for rows that make none but equal ones unnecessary. Adding many rows one by one would take quadratic time.
    """
    index, words, counters = state.set_index, state.set_words, state.counters
    first = counters[layout.N_SET_WORDS]
    start = index[number, layout.SET_BEGIN]
    old = start + index[number, layout.SET_SIZE]
    size = count * width
    if (
        counters[layout.N_SETS] >= index.shape[0]
        or first + 3 * size + old - start > words.shape[0]
        or 2 * (counters[layout.N_SETS] + 1) > state.set_table.shape[0]
    ):
        return np.int64(-1)
    at = _sorted(first, first + size, size, width, words)
    end = at + size
    begin = to = first + 2 * size
    while start < old or at < end:
        if at == end or (start < old and not _is_less(pointer_to(words, at), pointer_to(words, start), width)):
            source = start
            start += width
        else:
            source = at
            at += width
        if to == begin or _is_less(pointer_to(words, to - width), pointer_to(words, source), width):
            for f in range(width):
                words[to + f] = words[source + f]
            to += width
    if to - begin == index[number, layout.SET_SIZE]:
        return np.int64(number)
    for i in range(to - begin):
        words[first + i] = words[begin + i]
    return _number_of(first, first + to - begin, state)


@part
def _sorted(first, other, size, width, words):
    """Sort rows of ``size`` words at ``first``, with as much room at ``other``; returns where the result is."""
    run = width
    while run < size:
        for low in range(0, size, 2 * run):
            middle, high = min(low + run, size), min(low + 2 * run, size)
            a, b = low, middle
            for to in range(low, high, width):
                if b == high or (
                    a < middle and not _is_less(pointer_to(words, first + b), pointer_to(words, first + a), width)
                ):
                    source = first + a
                    a += width
                else:
                    source = first + b
                    b += width
                for f in range(width):
                    words[other + to + f] = words[source + f]
        first, other = other, first
        run *= 2
    return first


@inlined
def _number_of(first, to, state):
    """The number of the set whose sorted rows are the last words, from ``first`` to ``to``."""
    index, counters = state.set_index, state.counters
    new = counters[layout.N_SETS]
    index[new, layout.SET_BEGIN] = first
    index[new, layout.SET_SIZE] = to - first
    number = enter_set(new, state)
    if number == new:
        counters[layout.N_SETS] = new + 1
        counters[layout.N_SET_WORDS] = to
    return number


@part
def enter_set(new, state):
    """Enter the set number ``new`` into the hash table, unless an equal one is there; returns the number of that."""
    index, words, table = state.set_index, state.set_words, state.set_table
    first, size = index[new, layout.SET_BEGIN], index[new, layout.SET_SIZE]
    h = hash_words(pointer_to(words, first), size, 1)
    mask = table.shape[0] - 1
    slot = h & mask
    while table[slot] >= 0:
        other = np.int64(table[slot])
        alike = index[other, layout.SET_HASH] == h and index[other, layout.SET_SIZE] == size
        if alike and same_words(pointer_to(words, index[other, layout.SET_BEGIN]), pointer_to(words, first), size):
            return other
        slot = (slot + 1) & mask
    table[slot] = new
    index[new, layout.SET_HASH] = h
    return np.int64(new)
