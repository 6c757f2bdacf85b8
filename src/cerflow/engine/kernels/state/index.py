"""Indexes: the configurations of a state that may satisfy a condition on one of its registers.

If all transitions that an event may fire in a state test whether the register equals an attribute, candidates are found
by hash. If they test whether it is less or greater, or both, candidates are found in a treap (Seidel and Aragon 1996),
a search tree by the register and a heap by a hash of the configuration's number. Both exist only for states with many
configurations, and only select candidates: conditions are evaluated as usual.
"""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.arithmetic import wrapped_product, wrapped_sum
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import as_float, bits_of
from cerflow.engine.kernels.state.collections import sort_rows

#: In C_HIGHER: at the top of the tree; not in the tree, as comparisons with null never hold.
_TOP, _ABSENT = -1, -2


@part
def key_of(value, q, tables):
    """The key of a ``value`` in the index of a state: equal for equal values, ordered in trees, or `NULL`.

    Both are int64; floats are given by their bits.
    """
    if tables.indexes[q, layout.X_FLOAT] == 1:
        x = as_float(value)
        if math.isnan(x):
            return np.int64(layout.NULL)
        # Both zeros have one key; negative floats descend by their bits.
        value = bits_of(x + 0.0)
        if tables.indexes[q, layout.X_KIND] != layout.EQUAL:
            value ^= (value >> 63) & 0x7FFFFFFFFFFFFFFF
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
        _insert(c, p, tables.indexes[q, layout.X_NUMBER], state)


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
        _remove(c, config[c, layout.C_PARTITION], tables.indexes[q, layout.X_NUMBER], state)


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
def find_candidates(p, q, k, least, greatest, events, state, tables, found):
    """Write the configurations of a partition and a state whose register may fit event ``k``, as (age, number).

    They must lie between its columns ``least`` and ``greatest`` (-1: no bound), which are one if equality is asked for.
    Returns how many there are, the latest first, or -1 if ``found`` is too short. Their order is that of the list of
    the state.
    """
    config, config_long, n = state.config, state.config_long, 0
    low, high = np.int64(layout.NULL + 1), np.int64(2**63 - 1)
    if least >= 0:
        low = key_of(events.columns[k, least], q, tables)
    if greatest >= 0:
        high = key_of(events.columns[k, greatest], q, tables)
    if low == layout.NULL or high == layout.NULL:
        return 0
    equal = tables.indexes[q, layout.X_KIND] == layout.EQUAL
    if equal:
        c = np.int64(state.index_table[_bucket(p, q, low, state)])
    else:
        c = _first_from(low, np.int64(state.tops[p, tables.indexes[q, layout.X_NUMBER]]), config, config_long)
    while c >= 0 and (equal or config_long[c, layout.L_KEY] <= high):
        own = config[c, layout.C_PARTITION] == p and config[c, layout.C_GROUP] == q
        if not equal or (own and config_long[c, layout.L_KEY] == low):
            if n == found.shape[0]:
                return -1
            found[n, 0], found[n, 1] = config_long[c, layout.L_BORN], c
            n += 1
        c = np.int64(config[c, layout.C_RIGHT]) if equal else _next(c, config)
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


# -- trees ------------------------------------------------------------------------------------------------------------


@inlined
def _priority(c):
    """A hash by which one configuration is above another."""
    return (c * 0x9E3779B1) & 0xFFFFFFFF


@inlined
def _first_from(low, top, config, config_long):
    """The first configuration of a tree with a key of at least ``low``, or -1."""
    found = np.int64(-1)
    while top >= 0:
        if config_long[top, layout.L_KEY] >= low:
            found, top = top, np.int64(config[top, layout.C_LEFT])
        else:
            top = np.int64(config[top, layout.C_RIGHT])
    return found


@inlined
def _next(c, config):
    """The configuration after another one in the order of a tree, or -1."""
    after = np.int64(config[c, layout.C_RIGHT])
    if after >= 0:
        while config[after, layout.C_LEFT] >= 0:
            after = np.int64(config[after, layout.C_LEFT])
        return after
    after = np.int64(config[c, layout.C_HIGHER])
    while after >= 0 and config[after, layout.C_RIGHT] == c:
        c, after = after, np.int64(config[after, layout.C_HIGHER])
    return max(after, np.int64(-1))


@inlined
def _put(c, above, side, p, number, state):
    """Put a configuration (-1: none) below another one, or at the top of a tree if that is `_TOP`."""
    if above >= 0:
        state.config[above, side] = c
    else:
        state.tops[p, number] = c
    if c >= 0:
        state.config[c, layout.C_HIGHER] = above


@part
def _insert(c, p, number, state):
    """Insert a configuration into a tree of a partition."""
    config, keys, key = state.config, state.config_long, state.config_long[c, layout.L_KEY]
    t, above, side = np.int64(state.tops[p, number]), np.int64(_TOP), layout.C_LEFT
    while t >= 0 and _priority(t) >= _priority(c):
        above, side = t, layout.C_LEFT if key < keys[t, layout.L_KEY] else layout.C_RIGHT
        t = np.int64(config[t, side])
    _put(c, above, side, p, number, state)
    # Split the subtree that was there by the key.
    left, right, of_left, of_right = c, c, layout.C_LEFT, layout.C_RIGHT
    while t >= 0:
        if keys[t, layout.L_KEY] <= key:
            _put(t, left, of_left, p, number, state)
            left, of_left = t, layout.C_RIGHT
            t = np.int64(config[t, layout.C_RIGHT])
        else:
            _put(t, right, of_right, p, number, state)
            right, of_right = t, layout.C_LEFT
            t = np.int64(config[t, layout.C_LEFT])
    config[left, of_left] = config[right, of_right] = -1


@part
def _remove(c, p, number, state):
    """Take a configuration out of a tree of a partition."""
    config = state.config
    a, b = np.int64(config[c, layout.C_LEFT]), np.int64(config[c, layout.C_RIGHT])
    above, side = np.int64(config[c, layout.C_HIGHER]), layout.C_LEFT
    if above >= 0 and config[above, layout.C_RIGHT] == c:
        side = layout.C_RIGHT
    while a >= 0 and b >= 0:
        if _priority(a) >= _priority(b):
            _put(a, above, side, p, number, state)
            above, side = a, layout.C_RIGHT
            a = np.int64(config[a, layout.C_RIGHT])
        else:
            _put(b, above, side, p, number, state)
            above, side = b, layout.C_LEFT
            b = np.int64(config[b, layout.C_LEFT])
    _put(a if a >= 0 else b, above, side, p, number, state)
