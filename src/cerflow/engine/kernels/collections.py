"""Collections in registers: sorted sets of rows, each distinct set stored once, so that equal ones have one number."""

from __future__ import annotations

from cerflow.engine.kernels.blocks import pointer_to
from cerflow.engine.kernels.jit import part
from cerflow.engine.layout import N_SET_WORDS, N_SETS


@part
def hash_words(words, count, seed):
    """A 63-bit hash of the words that a pointer leads to."""
    h = seed * 0x9E3779B97F4A7C1 + 0x7F4A7C15
    for i in range(count):
        h = (h ^ words[i]) * 0x2545F4914F6CDD1D
        h ^= (h >> 29) & 0x7FFFFFFFF
    return h & 0x7FFFFFFFFFFFFFFF


@part
def with_row(number, row, width, state):
    """The number of the set that has one more row; -1 if the arrays are full."""
    index, words, table, counters = state.set_index, state.set_words, state.set_table, state.counters
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
    h = hash_words(pointer_to(words, first), to - first, width)
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
