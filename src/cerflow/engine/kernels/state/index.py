"""Indexes: the configurations of a state that may satisfy a condition on one of its registers.

If all transitions that an event may fire in a state test whether the register equals an attribute, candidates are found
by hash. If they test whether it is less (or greater), candidates are found in a skew heap (Sleator and Tarjan 1986),
from the top: below a register that is too great, all are too great. Both exist only for states with many
configurations, and only select candidates: conditions are evaluated as usual.
"""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.arithmetic import wrapped_product, wrapped_sum
from cerflow.engine.kernels.base.parts import part
from cerflow.engine.kernels.base.shared_arrays import as_float, bits_of
from cerflow.engine.kernels.state.collections import sort_rows

#: In C_HIGHER: at the top of the heap; not in the heap, as comparisons with null never hold.
_TOP, _ABSENT = -1, -2


@part
def key_of(value, q, tables):
    """The key of a ``value`` in the index of a state: equal for equal values, ordered in heaps, or `NULL`.

    Both are int64; floats are given by their bits.
    """
    kind = tables.indexes[q, layout.X_KIND]
    if tables.indexes[q, layout.X_FLOAT] == 1:
        x = as_float(value)
        if math.isnan(x):
            return np.int64(layout.NULL)
        # Both zeros have one key; negative floats descend by their bits.
        value = bits_of(x + 0.0)
        if kind != layout.EQUAL:
            value ^= (value >> 63) & 0x7FFFFFFFFFFFFFFF
    if kind == layout.GREATEST_FIRST and value != layout.NULL:
        return ~value
    return value


@part
def enter_index(c, q, state, tables):
    """Enter a configuration into the index by its register."""
    config = state.config
    key = key_of(state.values[c, tables.indexes[q, layout.X_SLOT]], q, tables)
    state.config_long[c, layout.L_KEY] = key
    p = np.int64(config[c, layout.C_PARTITION])
    if tables.indexes[q, layout.X_KIND] == layout.EQUAL:
        at = _bucket(p, q, key, state)
        after = state.index_table[at]
        config[c, layout.C_LEFT] = -1
        config[c, layout.C_RIGHT] = after
        if after >= 0:
            config[after, layout.C_LEFT] = c
        state.index_table[at] = c
    elif key == layout.NULL:
        config[c, layout.C_HIGHER] = _ABSENT
    else:
        config[c, layout.C_LEFT] = -1
        config[c, layout.C_RIGHT] = -1
        number = tables.indexes[q, layout.X_NUMBER]
        top = _meld(np.int64(state.tops[p, number]), c, config, state.config_long)
        config[top, layout.C_HIGHER] = _TOP
        state.tops[p, number] = top


@part
def leave_index(c, q, state, tables):
    """Take a configuration out of the index of its state."""
    config = state.config
    if tables.indexes[q, layout.X_KIND] == layout.EQUAL:
        before, after = config[c, layout.C_LEFT], config[c, layout.C_RIGHT]
        if before >= 0:
            config[before, layout.C_RIGHT] = after
        else:
            p = np.int64(config[c, layout.C_PARTITION])
            state.index_table[_bucket(p, q, state.config_long[c, layout.L_KEY], state)] = after
        if after >= 0:
            config[after, layout.C_LEFT] = before
    elif config[c, layout.C_HIGHER] != _ABSENT:
        _replace(c, q, state, tables)


@part
def index_state(q, state, tables):
    """Enter all configurations of a state into its index, in their order."""
    state.indexing[q] = 1
    for p in range(state.counters[layout.N_PARTITIONS]):
        if state.partition[p, layout.R_LIVE] <= 0:
            continue
        c = np.int64(state.heads[p, q])
        last = c
        while c >= 0:
            last = c
            c = np.int64(state.config[c, layout.C_NEXT])
        while last >= 0:
            enter_index(last, q, state, tables)
            last = np.int64(state.config[last, layout.C_PREVIOUS])


# -- finding candidates -----------------------------------------------------------------------------------------------


@part
def find_candidates(p, q, key, state, tables, found):
    """Write the configurations of a partition and a state whose register may fit ``key``: (age, number), latest first.

    Returns how many there are, or -1 if ``found`` is too short. Their order is that of the list of the state.
    """
    config, n = state.config, 0
    if key == layout.NULL:
        return 0
    if tables.indexes[q, layout.X_KIND] == layout.EQUAL:
        c = np.int64(state.index_table[_bucket(p, q, key, state)])
        while c >= 0:
            if state.config_long[c, layout.L_KEY] == key and (
                config[c, layout.C_PARTITION] == p and config[c, layout.C_GROUP] == q
            ):
                if n == found.shape[0]:
                    return -1
                found[n, 0], found[n, 1] = state.config_long[c, layout.L_BORN], c
                n += 1
            c = np.int64(config[c, layout.C_RIGHT])
    else:
        c, at = np.int64(state.tops[p, tables.indexes[q, layout.X_NUMBER]]), 0
        if c >= 0 and state.config_long[c, layout.L_KEY] <= key:
            found[0, 0], found[0, 1] = state.config_long[c, layout.L_BORN], c
            n = 1
        while at < n:
            if n + 2 > found.shape[0]:
                return -1
            for side in (layout.C_LEFT, layout.C_RIGHT):
                c = np.int64(config[found[at, 1], side])
                if c >= 0 and state.config_long[c, layout.L_KEY] <= key:
                    found[n, 0], found[n, 1] = state.config_long[c, layout.L_BORN], c
                    n += 1
            at += 1
    sort_rows(found, 0, n, 0, True)
    return n


# -- by hash ----------------------------------------------------------------------------------------------------------


@part
def _bucket(p, q, key, state):
    # The low half of short floats is zero, and a product does not bring the high half down.
    key ^= (key >> 32) & 0x7FFFFFFF
    h = wrapped_product(wrapped_sum(wrapped_product(key ^ (p << 20), 31), q), 0x9E3779B97F4A7C1)
    h ^= (h >> 32) & 0x7FFFFFFF
    return h & (state.index_table.shape[0] - 1)


# -- heaps ------------------------------------------------------------------------------------------------------------


@part
def _meld(a, b, config, config_long):
    """Merge two heaps (-1: empty); returns the top, of which only C_HIGHER is left to set."""
    top = np.int64(-1)
    last = np.int64(-1)
    while a >= 0 and b >= 0:
        if config_long[b, layout.L_KEY] < config_long[a, layout.L_KEY]:
            a, b = b, a
        if last >= 0:
            config[last, layout.C_LEFT] = a
            config[a, layout.C_HIGHER] = last
        else:
            top = a
        last = a
        rest = np.int64(config[a, layout.C_RIGHT])
        config[a, layout.C_RIGHT] = config[a, layout.C_LEFT]
        a = rest
    rest = a if a >= 0 else b
    if last < 0:
        return rest
    config[last, layout.C_LEFT] = rest
    if rest >= 0:
        config[rest, layout.C_HIGHER] = last
    return top


@part
def _replace(c, q, state, tables):
    """Replace ``c`` by the heap below it."""
    config = state.config
    higher = np.int64(config[c, layout.C_HIGHER])
    other = _meld(np.int64(config[c, layout.C_LEFT]), np.int64(config[c, layout.C_RIGHT]), config, state.config_long)
    if other >= 0:
        config[other, layout.C_HIGHER] = higher
    if higher < 0:
        state.tops[config[c, layout.C_PARTITION], tables.indexes[q, layout.X_NUMBER]] = other
    elif config[higher, layout.C_LEFT] == c:
        config[higher, layout.C_LEFT] = other
    else:
        config[higher, layout.C_RIGHT] = other
