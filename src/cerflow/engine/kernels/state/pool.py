"""The pool of configurations: one entry per distinct (partition, set of states with registers).

The configurations of a partition and a group (a state, or all sets of several members) form a list, latest first. A
configuration that is alone in its list may stay out of the hash table, which may be far away in memory, unless a
strategy chooses.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.arithmetic import wrapped_product, wrapped_sum
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import beyond, pointer_to
from cerflow.engine.kernels.state.classes import release
from cerflow.engine.kernels.state.collections import hash_words, leave_chain, same_words
from cerflow.engine.kernels.state.index import enter_index, leave_index

#: In C_CHAIN of a configuration that is not in the hash table.
_APART = -2


# -- hashes -----------------------------------------------------------------------------------------------------------


@inlined
def seed(p, cls, tables):
    """The start of all hashes of a partition and a class.

    If configurations have one member, the class is left out, so all with the same member share a chain.
    """
    return np.int64(p) + np.int64(cls) * 0x9E3779B1 * tables.options[layout.O_GROUPED]


@inlined
def hash_one(begin, q, registers, tables):
    """A hash of a `seed` (``begin``) and one member with the registers at a pointer."""
    return hash_words(registers, np.int64(tables.telling[q]), wrapped_sum(wrapped_product(begin, 31), q))


@part
def hash_several(begin, states, values, count, state, tables):
    """A hash of a `seed` (``begin``) and ``count`` members with their registers, at pointers."""
    h = wrapped_sum(wrapped_product(begin, 31), tables.options[layout.O_STATES])
    width = state.member_values.shape[1]
    for m in range(count):
        q = np.int64(states[m])
        h = hash_words(beyond(values, m * width), np.int64(tables.slots[q]), wrapped_sum(h, q))
    return h


@part
def enter_table(c, state):
    """Enter a configuration into the hash table."""
    at = state.config_long[c, layout.L_HASH] & (state.table.shape[0] - 1)
    state.config[c, layout.C_CHAIN] = state.table[at]
    state.table[at] = c


# -- finding ----------------------------------------------------------------------------------------------------------


@inlined
def _candidate(p, group, h, state):
    """The first configuration that may have hash ``h``, or -1; the others follow in its chain."""
    c = np.int64(state.heads[p, group])
    if c >= 0 and state.config[c, layout.C_NEXT] >= 0:
        c = np.int64(state.table[h & (state.table.shape[0] - 1)])
    return c


@inlined
def _is_live(c, p, group, h, cls, state):
    config = state.config
    return state.config_long[c, layout.L_HASH] == h and (
        config[c, layout.C_DEAD] == 0
        and config[c, layout.C_CLASS] == cls
        and config[c, layout.C_PARTITION] == p
        and config[c, layout.C_GROUP] == group
    )


@part
def find_one(p, q, registers, h, cls, state, tables):
    """The live configuration with exactly this member and this class, or -1."""
    c = _candidate(p, q, h, state)
    while c >= 0:
        if _is_live(c, p, q, h, cls, state) and same_words(pointer_to(state.values, c), registers, tables.telling[q]):
            break
        c = np.int64(state.config[c, layout.C_CHAIN])
    return c


@part
def find_several(p, states, values, count, h, cls, state, tables):
    """The live configuration with exactly these members and this class, or -1."""
    config, group = state.config, tables.options[layout.O_STATES]
    c = _candidate(p, group, h, state)
    while c >= 0:
        alike = _is_live(c, p, group, h, cls, state) and config[c, layout.C_COUNT] == count
        if alike and _same_members(config[c, layout.C_MEMBER], states, values, count, state, tables):
            break
        c = np.int64(config[c, layout.C_CHAIN])
    return c


@inlined
def _same_members(base, states, values, count, state, tables):
    width = state.member_values.shape[1]
    for m in range(count):
        q, own = states[m], pointer_to(state.member_values, base + m)
        if state.members[base + m] != q or not same_words(own, beyond(values, m * width), tables.slots[q]):
            return False
    return True


# -- adding and removing ----------------------------------------------------------------------------------------------


@part
def add_one(p, q, registers, h, cls, root, last, state, tables):
    """A new configuration of one member; there must be room."""
    c = _add(p, q, 1, h, cls, root, last, state, tables)
    for s in range(tables.slots[q]):
        state.values[c, s] = registers[s]
    if tables.indexes[q, layout.X_KIND] != layout.SCAN:
        state.sizes[q] += 1
        if state.indexing[q] == 1:
            enter_index(c, np.int64(q), state, tables)
        elif state.sizes[q] > tables.options[layout.O_MANY]:
            state.counters[layout.N_TO_INDEX] = 1 + q
    return c


@part
def add_several(p, states, values, count, h, cls, root, last, state, tables):
    """A new configuration of several members; there must be room."""
    c = _add(p, tables.options[layout.O_STATES], count, h, cls, root, last, state, tables)
    base = state.counters[layout.N_MEMBERS]
    state.counters[layout.N_MEMBERS] += count
    state.config[c, layout.C_MEMBER] = base
    width = state.member_values.shape[1]
    for m in range(count):
        state.members[base + m] = states[m]
        for s in range(width):
            state.member_values[base + m, s] = values[m * width + s]
    return c


@inlined
def join_configs(p, group, before, after, state):
    """Make the configurations ``before`` and ``after`` neighbours in the list of a ``group``; -1 is its end."""
    if before < 0:
        state.heads[p, group] = after
    else:
        state.config[before, layout.C_NEXT] = after
    if after >= 0:
        state.config[after, layout.C_PREVIOUS] = before


@part
def _add(p, group, count, h, cls, root, last, state, tables):
    counters = state.counters
    config = state.config
    if counters[layout.N_FREE] > 0:
        counters[layout.N_FREE] -= 1
        c = np.int64(state.free[counters[layout.N_FREE]])
    else:
        c = counters[layout.N_CONFIGS]
        counters[layout.N_CONFIGS] += 1
    counters[layout.N_LIVE] += 1
    state.partition[p, layout.R_LIVE] += 1
    config[c, layout.C_GROUP] = group
    config[c, layout.C_PARTITION] = p
    config[c, layout.C_ROOT] = root
    after = np.int64(state.heads[p, group])
    join_configs(p, group, c, after, state)
    join_configs(p, group, -1, c, state)
    if after >= 0 and config[after, layout.C_CHAIN] == _APART and config[after, layout.C_DEAD] == 0:
        enter_table(after, state)
    config[c, layout.C_COUNT] = count
    config[c, layout.C_DEAD] = 0
    config[c, layout.C_CLASS] = cls
    if cls != layout.NO_EVENTS:
        state.classes[cls, layout.K_HELD] += 1
    state.config_long[c, layout.L_LAST] = last
    state.config_long[c, layout.L_HASH] = h
    _set_age(c, state)
    if after < 0 and tables.options[layout.O_STRATEGY] == layout.EVERYTHING:
        config[c, layout.C_CHAIN] = _APART
    else:
        enter_table(c, state)
    return c


@inlined
def _set_age(c, state):
    state.counters[layout.N_AGE] += 1
    state.config_long[c, layout.L_BORN] = state.counters[layout.N_AGE]


@part
def renew(c, state):
    """Put a configuration first in its group, as if it were new, so that runs that came to nothing do not matter."""
    config = state.config
    before, after = np.int64(config[c, layout.C_PREVIOUS]), np.int64(config[c, layout.C_NEXT])
    if before >= 0:
        p, group = np.int64(config[c, layout.C_PARTITION]), np.int64(config[c, layout.C_GROUP])
        join_configs(p, group, before, after, state)
        join_configs(p, group, c, np.int64(state.heads[p, group]), state)
        join_configs(p, group, -1, c, state)
        _set_age(c, state)


@part
def unlink(c, state, tables):
    """Remove a configuration from its group, from the hash table, and from the index of its state."""
    config = state.config
    p = np.int64(config[c, layout.C_PARTITION])
    group = np.int64(config[c, layout.C_GROUP])
    join_configs(p, group, np.int64(config[c, layout.C_PREVIOUS]), np.int64(config[c, layout.C_NEXT]), state)
    if config[c, layout.C_CHAIN] != _APART:
        h = state.config_long[c, layout.L_HASH] & (state.table.shape[0] - 1)
        leave_chain(state.table, h, config, layout.C_CHAIN, c)
    if group < tables.options[layout.O_STATES] and tables.indexes[group, layout.X_KIND] != layout.SCAN:
        state.sizes[group] -= 1
        if state.indexing[group] == 1:
            leave_index(c, group, state, tables)
    counters = state.counters
    state.free[counters[layout.N_FREE]] = c
    counters[layout.N_FREE] += 1
    counters[layout.N_LIVE] -= 1
    state.partition[p, layout.R_LIVE] -= 1
    config[c, layout.C_DEAD] = 1
    config[c, layout.C_ROOT] = -1
    if config[c, layout.C_CLASS] != layout.NO_EVENTS:
        release(p, np.int64(config[c, layout.C_CLASS]), state.classes, state.partition, counters)


@inlined
def expired(q, registers, k, everywhere, events, tables):
    """Whether a window has passed at event ``k`` that every way from state ``q`` to a match still tests.

    The starts of windows are in ``registers``. Only windows that hold for all partitions count if ``everywhere``.
    """
    for e in range(tables.expiring_start[q], tables.expiring_start[q + 1]):
        passed = (
            registers[tables.expiring[e, layout.EXPIRING_SLOT]]
            <= events.columns[k, tables.expiring[e, layout.EXPIRING_BOUND]]
        )
        if passed and (not everywhere or tables.expiring[e, layout.EXPIRING_GLOBAL] == 1):
            return True
    return False


@part
def clear_partition(p, state, tables):
    """Drop all configurations of a partition."""
    for g in range(state.heads.shape[1]):
        c = np.int64(state.heads[p, g])
        while c >= 0:
            after = np.int64(state.config[c, layout.C_NEXT])
            unlink(c, state, tables)
            c = after
    state.partition[p, layout.R_MOVED] = 0
