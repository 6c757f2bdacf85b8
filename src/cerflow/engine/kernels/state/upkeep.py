"""Work on all configurations and partitions at once, when room is short or registers change."""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.kernels.base.shared_arrays import events_at, pointer_to, state_at, tables_at
from cerflow.engine.kernels.state import pool
from cerflow.engine.kernels.state.classes import GAP, WORST, link
from cerflow.engine.kernels.state.collections import enter_set
from cerflow.engine.kernels.state.index import index_state
from cerflow.engine.kernels.state.partitions import FREE, drop_partition, enter_partition


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
            pool.clear_partition(p, state, tables)
        for g in range(state.heads.shape[1]):
            c = np.int64(state.heads[p, g])
            while c >= 0:
                after = np.int64(state.config[c, layout.C_NEXT])
                dead = state.config[c, layout.C_DEAD] == 1 or state.config_long[c, layout.L_START] <= bound
                if not dead and g < tables.options[layout.O_STATES]:
                    dead = pool.expired(g, pointer_to(state.values, c), k, True, events, tables)
                if dead:
                    pool.unlink(c, state, tables)
                c = after
        if (
            state.partition[p, layout.R_LIVE] == 0
            and state.partition[p, layout.R_MOVED] == 0
            and tables.options[layout.O_KEY] > 0
        ):
            drop_partition(p, state, tables)


@kernel
def restore_links(address):
    """Compute all that follows from the kept columns of a compact state, whose tables and other arrays are empty."""
    state = state_at(address)
    tables = tables_at(address)
    counters, config, classes = state.counters, state.config, state.classes
    for p in range(counters[layout.N_PARTITIONS]):
        for field in (layout.R_LIVE, layout.R_WORST, layout.R_BEST):
            state.partition[p, field] = 0
        enter_partition(p, state, tables)
    members = np.int64(0)
    classes[layout.NO_EVENTS, layout.K_NUMBER] = WORST
    counters[layout.N_CLASSES] = 1
    for c in range(counters[layout.N_CONFIGS]):
        p, group = np.int64(config[c, layout.C_PARTITION]), np.int64(config[c, layout.C_GROUP])
        # Configurations of one list stand together.
        before = np.int64(c - 1 if state.heads[p, group] >= 0 else -1)
        pool.join_configs(p, group, before, np.int64(c), state)
        config[c, layout.C_NEXT] = -1
        config[c, layout.C_DEAD] = 0
        state.config_long[c, layout.L_BORN] = -c
        state.partition[p, layout.R_LIVE] += 1
        cls = np.int64(config[c, layout.C_CLASS])
        if cls != layout.NO_EVENTS:
            classes[cls, layout.K_HELD] += 1
            # Until it is linked.
            classes[cls, layout.K_WORSE] = p
            counters[layout.N_CLASSES] = max(counters[layout.N_CLASSES], cls + 1)
        start = pool.seed(p, cls, tables)
        if group < tables.options[layout.O_STATES]:
            config[c, layout.C_MEMBER] = 0
            state.config_long[c, layout.L_HASH] = pool.hash_one(start, group, pointer_to(state.values, c), tables)
            if tables.indexes[group, layout.X_KIND] != layout.SCAN:
                state.sizes[group] += 1
        else:
            config[c, layout.C_MEMBER] = members
            count = np.int64(config[c, layout.C_COUNT])
            states, values = pointer_to(state.members, members), pointer_to(state.member_values, members)
            state.config_long[c, layout.L_HASH] = pool.hash_several(start, states, values, count, state, tables)
            members += count
        pool.enter_table(c, state)
    counters[layout.N_LIVE] = counters[layout.N_CONFIGS]
    for cls in range(1, counters[layout.N_CLASSES]):
        p = np.int64(classes[cls, layout.K_WORSE])
        worse = np.int64(state.partition[p, layout.R_BEST])
        classes[cls, layout.K_NUMBER] = GAP if worse == layout.NO_EVENTS else classes[worse, layout.K_NUMBER] + GAP
        link(p, worse, cls, classes, state.partition)
        link(p, cls, layout.NO_EVENTS, classes, state.partition)
    for q in range(state.sizes.shape[0]):
        if state.sizes[q] > tables.options[layout.O_MANY]:
            index_state(q, state, tables)
    begin = np.int64(0)
    for n in range(counters[layout.N_SETS]):
        state.set_index[n, layout.SET_BEGIN] = begin
        begin += state.set_index[n, layout.SET_SIZE]
        if n > 0:
            enter_set(n, state)


@kernel
def list_used(address, order, classes):
    """Write the live configurations by partition and group, in the order of their lists; returns their number.

    ``order`` is int32, with room for all configurations. ``classes`` (int32, 0 for each) get numbers from 1 on, from
    the worst to the best of each partition.
    """
    state = state_at(address)
    n = 0
    numbered = 0
    for p in range(state.counters[layout.N_PARTITIONS]):
        if state.partition[p, layout.R_LIVE] <= 0:
            continue
        for g in range(state.heads.shape[1]):
            c = np.int64(state.heads[p, g])
            while c >= 0:
                order[n] = c
                n += 1
                c = np.int64(state.config[c, layout.C_NEXT])
        cls = np.int64(state.partition[p, layout.R_WORST])
        while cls != layout.NO_EVENTS:
            numbered += 1
            classes[cls] = numbered
            cls = state.classes[cls, layout.K_BETTER]
    return n
