"""Collections in registers: sorted sets of rows, each distinct set stored once, so that equal ones have one number."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.jit import kernel
from cerflow.engine.layout import FROM_COLUMN, FROM_SET, FROM_SLOT, N_SET_WORDS, N_SETS, S_FIELDS_END, S_INDEX


@kernel
def hash_words(words, start, stop, seed):
    """A 63-bit hash of some words."""
    h = seed * 0x9E3779B97F4A7C1 + 0x7F4A7C15
    for i in range(start, stop):
        h = (h ^ words[i]) * 0x2545F4914F6CDD1D
        h ^= (h >> 29) & 0x7FFFFFFFF
    return h & 0x7FFFFFFFFFFFFFFF


@kernel
def with_row(number, row, width, index, words, table, counters):
    """The number of the set that has one more row; -1 if the arrays are full."""
    start = index[number, 0]
    count = index[number, 1]
    at = start
    while at < start + count:
        order = 0
        for f in range(width):
            if words[at + f] != row[f]:
                order = -1 if words[at + f] < row[f] else 1
                break
        if order == 0:
            return number
        if order > 0:
            break
        at += width
    new = counters[N_SETS]
    first = counters[N_SET_WORDS]
    if new >= index.shape[0] or first + count + width > words.shape[0] or 2 * (new + 1) > table.shape[0]:
        return -1
    to = first
    for i in range(start, at):
        words[to] = words[i]
        to += 1
    for f in range(width):
        words[to] = row[f]
        to += 1
    for i in range(at, start + count):
        words[to] = words[i]
        to += 1
    h = hash_words(words, first, to, width)
    mask = table.shape[0] - 1
    slot = h & mask
    while table[slot] >= 0:
        other = table[slot]
        if index[other, 2] == h and index[other, 1] == to - first:
            equal = True
            for i in range(to - first):
                if words[index[other, 0] + i] != words[first + i]:
                    equal = False
                    break
            if equal:
                return other
        slot = (slot + 1) & mask
    table[slot] = new
    index[new, 0] = first
    index[new, 1] = to - first
    index[new, 2] = h
    counters[N_SETS] = new + 1
    counters[N_SET_WORDS] = to
    return new


@kernel
def with_product(number, step, tables, columns, k, values, at, index, words, table, counters, row, odometer):
    """Add every row that the fields of a step describe: a field of a collection stands for each of its rows.

    Fields of one collection move together. Returns the number of the set, or -1 if the arrays are full.
    """
    first = tables.steps[step, S_INDEX]
    last = tables.steps[step, S_FIELDS_END]
    width = last - first
    for f in range(width):
        odometer[f] = 0
        if tables.fields[first + f, 0] == FROM_SET and index[values[at, tables.fields[first + f, 1]], 1] == 0:
            return number
    while True:
        for f in range(width):
            source = tables.fields[first + f, 0]
            where = tables.fields[first + f, 1]
            if source == FROM_COLUMN:
                row[f] = columns[k, where]
            elif source == FROM_SLOT:
                row[f] = values[at, where]
            else:
                leader = _leader(tables, first, f)
                begin = index[values[at, where], 0]
                row[f] = words[begin + odometer[leader] * tables.fields[first + f, 3] + tables.fields[first + f, 2]]
        number = with_row(number, row, width, index, words, table, counters)
        if number < 0:
            return -1
        f = 0
        while f < width:
            if tables.fields[first + f, 0] == FROM_SET and _leader(tables, first, np.int64(f)) == f:
                odometer[f] += 1
                where = tables.fields[first + f, 1]
                if odometer[f] * tables.fields[first + f, 3] < index[values[at, where], 1]:
                    break
                odometer[f] = 0
            f += 1
        if f >= width:
            return number


@kernel
def _leader(tables, first, f):
    """The first field of the row that reads the same collection."""
    for g in range(f):
        if tables.fields[first + g, 0] == FROM_SET and tables.fields[first + g, 1] == tables.fields[first + f, 1]:
            return g
    return f
