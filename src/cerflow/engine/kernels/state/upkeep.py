"""Work on all configurations and partitions at once, when room is short or registers change."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.kernels.base.shared_arrays import events_at, pointer_to, state_at, tables_at
from cerflow.engine.kernels.state.collections import hash_words
from cerflow.engine.kernels.state.index import index_state
from cerflow.engine.kernels.state.partitions import FREE, drop_partition, enter_partition
from cerflow.engine.kernels.state.pool import clear_partition, enter_table, hash_one, hash_several, seed, unlink


@kernel
def sweep(address, bound, k):
    """Drop configurations that have left the window at event ``k``, in every partition, and free idle partitions.

    ``bound`` must hold for all partitions. Of the windows inside formulas, it tests those that hold for all partitions.
    """
    state = state_at(address)
    tables = tables_at(address)
    events = events_at(address)
    forgetting = tables.options[layout.O_FORGET] == 1
    for p in range(state.counters[layout.N_PARTITIONS]):
        if state.partition[p, layout.R_LIVE] == FREE:
            continue
        if forgetting and state.partition_long[p, state.partition_long.shape[1] - 2] <= events.idle[k]:
            # The partition would start again at its next event.
            clear_partition(p, state, tables)
        for g in range(state.heads.shape[1]):
            c = np.int64(state.heads[p, g])
            while c >= 0:
                after = np.int64(state.config[c, layout.C_NEXT])
                dead = state.config[c, layout.C_DEAD] == 1 or state.config_long[c, layout.L_START] <= bound
                if not dead and g < tables.options[layout.O_STATES]:
                    for e in range(tables.expiring_start[g], tables.expiring_start[g + 1]):
                        value = state.values[c, tables.expiring[e, layout.EXPIRING_SLOT]]
                        if (
                            tables.expiring[e, layout.EXPIRING_GLOBAL] == 1
                            and value <= events.columns[k, tables.expiring[e, layout.EXPIRING_BOUND]]
                        ):
                            dead = True
                if dead:
                    unlink(c, state, tables)
                c = after
        if (
            state.partition[p, layout.R_LIVE] == 0
            and state.partition[p, layout.R_MOVED] == 0
            and tables.options[layout.O_KEY] > 0
        ):
            drop_partition(p, state, tables)


@kernel
def rebuild_tables(address):
    """Fill empty hash tables and indexes from the configurations and partitions."""
    state = state_at(address)
    tables = tables_at(address)
    for c in range(state.counters[layout.N_CONFIGS]):
        if state.config[c, layout.C_ROOT] >= 0:
            enter_table(c, state)
    for p in range(state.counters[layout.N_PARTITIONS]):
        if state.partition[p, layout.R_LIVE] != FREE:
            enter_partition(p, state, tables)
    for q in range(state.sizes.shape[0]):
        state.indexing[q] = 0
        if state.sizes[q] > tables.options[layout.O_MANY]:
            index_state(q, state, tables)


@kernel
def compact_members(address, members, member_values):
    """Copy the members of live configurations to new arrays like those of the state; returns their number.

    ``members`` are int32 (capacity,), ``member_values`` int64 (capacity, slots).
    """
    state = state_at(address)
    n = 0
    several = state.heads.shape[1] - 1
    for c in range(state.counters[layout.N_CONFIGS]):
        if state.config[c, layout.C_ROOT] >= 0 and state.config[c, layout.C_GROUP] == several:
            base = state.config[c, layout.C_MEMBER]
            state.config[c, layout.C_MEMBER] = n
            for m in range(state.config[c, layout.C_COUNT]):
                members[n] = state.members[base + m]
                for s in range(member_values.shape[1]):
                    member_values[n, s] = state.member_values[base + m, s]
                n += 1
    return n


@kernel
def rehash(address):
    """Compute the hashes of configurations from their registers."""
    state = state_at(address)
    tables = tables_at(address)
    for c in range(state.counters[layout.N_CONFIGS]):
        if state.config[c, layout.C_ROOT] < 0:
            continue
        group = np.int64(state.config[c, layout.C_GROUP])
        begin = seed(state.config[c, layout.C_PARTITION], state.config[c, layout.C_CLASS], tables)
        if group < tables.options[layout.O_STATES]:
            state.config_long[c, layout.L_HASH] = hash_one(begin, group, pointer_to(state.values, c), tables)
        else:
            first = np.int64(state.config[c, layout.C_MEMBER])
            states, values = pointer_to(state.members, first), pointer_to(state.member_values, first)
            count = np.int64(state.config[c, layout.C_COUNT])
            state.config_long[c, layout.L_HASH] = hash_several(begin, states, values, count, state, tables)


@kernel
def list_configurations(address, order):
    """Write the live configurations by partition and group, in the order of their lists; returns their number.

    ``order`` is int32, with room for all configurations.
    """
    state = state_at(address)
    n = 0
    for p in range(state.counters[layout.N_PARTITIONS]):
        if state.partition[p, layout.R_LIVE] <= 0:
            continue
        for g in range(state.heads.shape[1]):
            c = np.int64(state.heads[p, g])
            while c >= 0:
                if state.config[c, layout.C_DEAD] == 0:
                    order[n] = c
                    n += 1
                c = np.int64(state.config[c, layout.C_NEXT])
    return n


@kernel
def enter_sets(address, widths):
    """Fill an empty hash table from the collections, whose rows have ``widths`` (int64) words."""
    state = state_at(address)
    mask = state.set_table.shape[0] - 1
    for n in range(1, state.counters[layout.N_SETS]):
        words = pointer_to(state.set_words, state.set_index[n, layout.SET_BEGIN])
        h = hash_words(words, state.set_index[n, layout.SET_SIZE], widths[n])
        state.set_index[n, layout.SET_HASH] = h
        slot = h & mask
        while state.set_table[slot] >= 0:
            slot = (slot + 1) & mask
        state.set_table[slot] = n
