"""The pool of configurations: one entry per distinct (partition, set of states with registers)."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.classes import release
from cerflow.engine.kernels.collections import hash_words
from cerflow.engine.kernels.jit import allocating, inlined, kernel
from cerflow.engine.layout import (
    BOTTOM,
    C_CHAIN,
    C_CLASS,
    C_COUNT,
    C_DEAD,
    C_GROUP,
    C_MEMBER,
    C_NEXT,
    C_PARTITION,
    C_ROOT,
    K_HELD,
    L_HASH,
    L_LAST,
    N_CONFIGS,
    N_FREE,
    N_FREE_PARTITIONS,
    N_LIVE,
    N_MEMBERS,
    N_PARTITIONS,
    NO_EVENTS,
    NULL,
    O_GROUPED,
    O_KEY,
    O_STATES,
    R_CHAIN,
    R_LIVE,
    R_MOVED,
    W_MEASURE,
)


@inlined
def find_partition(keys, k, state, tables):
    """The slot of the partition of event ``k``, or -1."""
    width = tables.options[O_KEY]
    h = np.int64(1)
    for w in range(width):
        h = hash_words(keys[k], w, w + 1, h)
    p = state.partition_table[h & (state.partition_table.shape[0] - 1)]
    while p >= 0:
        same = True
        for w in range(width):
            if state.partition_long[p, 1 + w] != keys[k, w]:
                same = False
                break
        if same:
            return p
        p = state.partition[p, R_CHAIN]
    return -1


@kernel
def add_partition(keys, k, state, tables):
    """A new slot for the partition of event ``k``; there must be room."""
    counters = state.counters
    if counters[N_FREE_PARTITIONS] > 0:
        counters[N_FREE_PARTITIONS] -= 1
        p = state.free_partitions[counters[N_FREE_PARTITIONS]]
    else:
        p = counters[N_PARTITIONS]
        counters[N_PARTITIONS] += 1
    width = tables.options[O_KEY]
    h = np.int64(1)
    for w in range(width):
        state.partition_long[p, 1 + w] = keys[k, w]
        h = hash_words(keys[k], w, w + 1, h)
    h &= state.partition_table.shape[0] - 1
    state.partition[p, R_CHAIN] = state.partition_table[h]
    state.partition_table[h] = p
    state.partition[p, R_LIVE] = 0
    state.partition[p, R_MOVED] = 0
    state.partition_long[p, 0] = 0
    for c in range(tables.checked.shape[0]):
        state.partition_long[p, 1 + width + c] = NULL
    state.partition_long[p, state.partition_long.shape[1] - 1] = NULL
    for g in range(state.heads.shape[1]):
        state.heads[p, g] = -1
    return p


@kernel
def drop_partition(p, state, tables):
    """Free a slot that has no configurations."""
    h = np.int64(1)
    for w in range(tables.options[O_KEY]):
        h = hash_words(state.partition_long[p], 1 + w, 2 + w, h)
    h &= state.partition_table.shape[0] - 1
    q = state.partition_table[h]
    if q == p:
        state.partition_table[h] = state.partition[p, R_CHAIN]
    else:
        while state.partition[q, R_CHAIN] != p:
            q = state.partition[q, R_CHAIN]
        state.partition[q, R_CHAIN] = state.partition[p, R_CHAIN]
    state.free_partitions[state.counters[N_FREE_PARTITIONS]] = p
    state.counters[N_FREE_PARTITIONS] += 1


@kernel
def unlink(c, before, state):
    """Take a configuration out of its group (``before`` precedes it there, or -1) and out of the hash table."""
    group = state.config[c, C_GROUP]
    p = state.config[c, C_PARTITION]
    after = state.config[c, C_NEXT]
    if before < 0:
        state.heads[p, group] = after
    else:
        state.config[before, C_NEXT] = after
    h = state.config_long[c, L_HASH] & (state.table.shape[0] - 1)
    q = state.table[h]
    if q == c:
        state.table[h] = state.config[c, C_CHAIN]
    else:
        while state.config[q, C_CHAIN] != c:
            q = state.config[q, C_CHAIN]
        state.config[q, C_CHAIN] = state.config[c, C_CHAIN]
    counters = state.counters
    state.free[counters[N_FREE]] = c
    counters[N_FREE] += 1
    counters[N_LIVE] -= 1
    state.partition[p, R_LIVE] -= 1
    state.config[c, C_DEAD] = 1
    state.config[c, C_ROOT] = -1
    if state.config[c, C_CLASS] != NO_EVENTS:
        release(np.int64(p), np.int64(state.config[c, C_CLASS]), state.classes, state.partition, counters)


@inlined
def seed(p, cls, tables):
    """What hashes of a partition and a class begin with.

    Where configurations have one member the class is left out: all with the same member are then in one chain.
    """
    return np.int64(p) + np.int64(cls) * 0x9E3779B1 * tables.options[O_GROUPED]


@kernel
def hash_members(p, group, states, values, first, count, slots):
    """A hash of a `seed`, a group, and members with their registers."""
    h = p * 31 + group
    for m in range(first, first + count):
        h = hash_words(values[m], np.int64(0), np.int64(slots[states[m]]), h + states[m])
    return h


@kernel
def find(p, group, states, values, first, count, h, cls, state, tables):
    """The living configuration with just these members and this class, or -1."""
    c = state.table[h & (state.table.shape[0] - 1)]
    while c >= 0:
        if (
            state.config_long[c, L_HASH] == h
            and state.config[c, C_DEAD] == 0
            and state.config[c, C_CLASS] == cls
            and state.config[c, C_PARTITION] == p
            and state.config[c, C_GROUP] == group
            and state.config[c, C_COUNT] == count
            and _same(c, group, states, values, first, count, state, tables)
        ):
            return c
        c = state.config[c, C_CHAIN]
    return -1


@kernel
def _same(c, group, states, values, first, count, state, tables):
    if group < tables.options[O_STATES]:
        for s in range(tables.slots[group]):
            if state.values[c, s] != values[first, s]:
                return False
        return True
    base = state.config[c, C_MEMBER]
    for m in range(count):
        q = states[first + m]
        if state.members[base + m] != q:
            return False
        for s in range(tables.slots[q]):
            if state.member_values[base + m, s] != values[first + m, s]:
                return False
    return True


@kernel
def add(p, group, states, values, first, count, h, cls, root, last, state, tables):
    """A new configuration; there must be room."""
    counters = state.counters
    if counters[N_FREE] > 0:
        counters[N_FREE] -= 1
        c = state.free[counters[N_FREE]]
    else:
        c = counters[N_CONFIGS]
        counters[N_CONFIGS] += 1
    counters[N_LIVE] += 1
    state.partition[p, R_LIVE] += 1
    state.config[c, C_GROUP] = group
    state.config[c, C_PARTITION] = p
    state.config[c, C_ROOT] = root
    state.config[c, C_NEXT] = state.heads[p, group]
    state.heads[p, group] = c
    at = h & (state.table.shape[0] - 1)
    state.config[c, C_CHAIN] = state.table[at]
    state.table[at] = c
    state.config[c, C_COUNT] = count
    state.config[c, C_DEAD] = 0
    state.config[c, C_CLASS] = cls
    if cls != NO_EVENTS:
        state.classes[cls, K_HELD] += 1
    state.config_long[c, L_LAST] = last
    state.config_long[c, L_HASH] = h
    if group < tables.options[O_STATES]:
        for s in range(tables.slots[group]):
            state.values[c, s] = values[first, s]
    else:
        base = counters[N_MEMBERS]
        counters[N_MEMBERS] += count
        state.config[c, C_MEMBER] = base
        for m in range(count):
            state.members[base + m] = states[first + m]
            for s in range(state.member_values.shape[1]):
                state.member_values[base + m, s] = values[first + m, s]
    return c


@kernel
def clear_partition(p, state):
    """Forget everything begun in a partition."""
    for g in range(state.heads.shape[1]):
        c = np.int64(state.heads[p, g])
        while c >= 0:
            after = np.int64(state.config[c, C_NEXT])
            unlink(c, np.int64(-1), state)
            c = after
    state.partition[p, R_MOVED] = 0


@kernel
def sweep(bound, columns, k, state, tables):
    """Drop what has left the window, in every partition; idle partitions free their slots.

    ``bound`` must hold for all partitions; of the windows inside formulas only those that do are looked at.
    """
    several = tables.options[O_STATES]
    for p in range(state.counters[N_PARTITIONS]):
        if state.partition[p, R_LIVE] == 0:
            continue
        for g in range(state.heads.shape[1]):
            before = np.int64(-1)
            c = np.int64(state.heads[p, g])
            while c >= 0:
                after = np.int64(state.config[c, C_NEXT])
                root = state.config[c, C_ROOT]
                dead = state.config[c, C_DEAD] == 1 or (root != BOTTOM and state.nodes[root, W_MEASURE] <= bound)
                if not dead and g < several:
                    for e in range(tables.expiring_start[g], tables.expiring_start[g + 1]):
                        everywhere = tables.expiring[e, 2] == 1
                        if everywhere and state.values[c, tables.expiring[e, 0]] <= columns[k, tables.expiring[e, 1]]:
                            dead = True
                if dead:
                    unlink(c, before, state)
                else:
                    before = c
                c = after
        if state.partition[p, R_LIVE] == 0 and state.partition[p, R_MOVED] == 0 and tables.options[O_KEY] > 0:
            drop_partition(p, state, tables)


@allocating
def rebuild_tables(state, tables):
    """Fill empty hash tables anew from the configurations and partitions."""
    for c in range(state.counters[N_CONFIGS]):
        if state.config[c, C_ROOT] >= 0:
            at = state.config_long[c, L_HASH] & (state.table.shape[0] - 1)
            state.config[c, C_CHAIN] = state.table[at]
            state.table[at] = c
    free = {-1}
    for i in range(state.counters[N_FREE_PARTITIONS]):
        free.add(state.free_partitions[i])
    for p in range(state.counters[N_PARTITIONS]):
        if p in free:
            continue
        h = np.int64(1)
        for w in range(tables.options[O_KEY]):
            h = hash_words(state.partition_long[p], 1 + w, 2 + w, h)
        h &= state.partition_table.shape[0] - 1
        state.partition[p, R_CHAIN] = state.partition_table[h]
        state.partition_table[h] = p


@kernel
def compact_members(state, members, member_values):
    """Copy the members of living configurations to new arrays; returns their number."""
    n = 0
    several = state.heads.shape[1] - 1
    for c in range(state.counters[N_CONFIGS]):
        if state.config[c, C_ROOT] >= 0 and state.config[c, C_GROUP] == several:
            base = state.config[c, C_MEMBER]
            state.config[c, C_MEMBER] = n
            for m in range(state.config[c, C_COUNT]):
                members[n] = state.members[base + m]
                for s in range(member_values.shape[1]):
                    member_values[n, s] = state.member_values[base + m, s]
                n += 1
    return n


@kernel
def rehash(state, tables):
    """Compute the hashes of configurations from their registers."""
    states = tables.options[O_STATES]
    for c in range(state.counters[N_CONFIGS]):
        if state.config[c, C_ROOT] < 0:
            continue
        group = np.int64(state.config[c, C_GROUP])
        p = seed(state.config[c, C_PARTITION], state.config[c, C_CLASS], tables)
        if group < states:
            state.config_long[c, L_HASH] = hash_one(p, group, state.values, np.int64(c), tables)
        else:
            state.config_long[c, L_HASH] = hash_members(
                p,
                group,
                state.members,
                state.member_values,
                np.int64(state.config[c, C_MEMBER]),
                np.int64(state.config[c, C_COUNT]),
                tables.slots,
            )


@inlined
def hash_one(p, q, values, row, tables):
    """A hash of a `seed` and one member with its registers."""
    return hash_words(values[row], np.int64(0), np.int64(tables.slots[q]), p * 31 + q)
