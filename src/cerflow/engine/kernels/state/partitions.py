"""Partitions: a slot for each active key, found by hash."""

from __future__ import annotations

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import part
from cerflow.engine.kernels.base.shared_arrays import beyond, pointer_to, prefetch
from cerflow.engine.kernels.state.collections import hash_words, leave_chain, same_words

#: In R_LIVE of a slot without partition.
FREE = -1
#: How many events lie between the steps of `foresee`.
_STEP = 4


@part
def find_partition(key, state, tables):
    """The slot of the partition with the key at a pointer, or -1."""
    width = tables.options[layout.O_KEY]
    p = state.partition_table[hash_words(key, width, 1) & (state.partition_table.shape[0] - 1)]
    # The key follows the first word.
    while p >= 0 and not same_words(beyond(pointer_to(state.partition_long, p), 1), key, width):
        p = state.partition[p, layout.R_CHAIN]
    return p


@part
def foresee(k, stop, events, state, tables):
    """Fetch into the cache what the events after event ``k`` (and before ``stop``) need of their partitions.

    With many partitions most of it is far from the processor, and each read depends on the one before, so this takes
    three steps.
    """
    mask = state.partition_table.shape[0] - 1
    width = tables.options[layout.O_KEY]
    if k + 3 * _STEP < stop:
        h = hash_words(pointer_to(events.keys, k + 3 * _STEP), width, 1)
        prefetch(pointer_to(state.partition_table, h & mask))
    if k + 2 * _STEP < stop:
        # Longer chains are rare.
        p = state.partition_table[hash_words(pointer_to(events.keys, k + 2 * _STEP), width, 1) & mask]
        if p >= 0:
            prefetch(pointer_to(state.partition, p))
            prefetch(pointer_to(state.partition_long, p))
            prefetch(pointer_to(state.heads, p))
            prefetch(pointer_to(state.tops, p))
    if k + _STEP < stop:
        p = state.partition_table[hash_words(pointer_to(events.keys, k + _STEP), width, 1) & mask]
        if p >= 0:
            for g in range(state.heads.shape[1]):
                c = state.heads[p, g]
                if c >= 0:
                    prefetch(pointer_to(state.config, c))
                    prefetch(pointer_to(state.config_long, c))
                    prefetch(pointer_to(state.values, c))


@part
def enter_partition(p, state, tables):
    """Enter a slot into the hash table by its key."""
    h = _place(p, state, tables)
    state.partition[p, layout.R_CHAIN] = state.partition_table[h]
    state.partition_table[h] = p


@part
def _place(p, state, tables):
    key = beyond(pointer_to(state.partition_long, p), 1)
    return hash_words(key, tables.options[layout.O_KEY], 1) & (state.partition_table.shape[0] - 1)


@part
def add_partition(key, state, tables):
    """A new slot for the partition with the key at a pointer; there must be room."""
    counters = state.counters
    if counters[layout.N_FREE_PARTITIONS] > 0:
        counters[layout.N_FREE_PARTITIONS] -= 1
        p = int(state.free_partitions[counters[layout.N_FREE_PARTITIONS]])
    else:
        p = counters[layout.N_PARTITIONS]
        counters[layout.N_PARTITIONS] += 1
    words = state.partition_long.shape[1]
    state.partition_long[p, layout.PARTITION_EVENTS] = 0
    for w in range(1, words):
        state.partition_long[p, w] = layout.NULL
    for w in range(tables.options[layout.O_KEY]):
        state.partition_long[p, 1 + w] = key[w]
    enter_partition(p, state, tables)
    state.partition[p, layout.R_LIVE] = 0
    state.partition[p, layout.R_MOVED] = 0
    for g in range(state.heads.shape[1]):
        state.heads[p, g] = -1
    for g in range(state.tops.shape[1]):
        state.tops[p, g] = -1
    return p


@part
def drop_partition(p, state, tables):
    """Free a slot that has no configurations."""
    leave_chain(state.partition_table, _place(p, state, tables), state.partition, layout.R_CHAIN, p)
    state.partition[p, layout.R_LIVE] = FREE
    state.free_partitions[state.counters[layout.N_FREE_PARTITIONS]] = p
    state.counters[layout.N_FREE_PARTITIONS] += 1
