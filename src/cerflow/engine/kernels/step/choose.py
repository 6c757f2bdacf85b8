"""Strategies: which updates of an event to apply, and which configurations they make worthless.

This serves queries without a window whose automaton does not choose, and NEXT in a window without an automaton of
`next_of_each_start`. Other queries choose when matches are read (see `kernels.pick`).

With a strategy every configuration has a class (see `kernels.classes`), so all its complex events have one support. A
member (a state with registers) of a configuration is dominated if a configuration of a better class has the same member
and stays in the window at least as long: every continuation of the worse one also continues the better one, which stays
better. Without dominated members there is, for each state with registers, at most one class for every distinct start in
the window, and one class without a window (cf. the lists of P1, Algorithms 5 and 6).

Before an event no configuration dominates another, so only the members of its updates are compared. Each has a *cover*,
to which the updates and configurations with that member come from the best class to the worst.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import pointer_to, ranking_at, scratch_at, state_at, tables_at
from cerflow.engine.kernels.state.classes import new_class, rank, release
from cerflow.engine.kernels.state.collections import same_words
from cerflow.engine.kernels.state.pool import hash_one
from cerflow.engine.kernels.step.covers import dominated, find_cover, forget_covers, spare
from cerflow.engine.kernels.step.sets import close_update


def choose(address, n, members, removed, p, bound):
    """Keep those of ``n`` updates that are not dominated, and among final ones those of the best class.

    Returns the number of updates, -1 if there is too little room, and in ``scratch.answers`` the numbers of their
    members, of configurations to drop and of entries in order. Changes only the scratch.
    """
    tables, state, scratch, ranking = tables_at(address), state_at(address), scratch_at(address), ranking_at(address)
    strategy = tables.options[layout.O_STRATEGY]
    updates = scratch.updates
    best = np.int64(layout.NULL)
    for u in range(n):
        if updates[u, layout.U_FINAL] == 1:
            best = max(best, _rank(u, updates, strategy, state.classes))
    for u in range(n):
        if _rank(u, updates, strategy, state.classes) < best:
            updates[u, layout.U_FINAL] = 0

    # Configurations that the event replaces do not count; they are dropped for good once there is room for all.
    for r in range(removed):
        state.config[scratch.removed[r], layout.C_DEAD] = 1
    entries, covers = _enter(n, p, bound, tables, state, scratch, ranking)
    for r in range(removed):
        state.config[scratch.removed[r], layout.C_DEAD] = 0
    if entries >= 0:
        _sort(entries, ranking)
        if tables.options[layout.O_GROUPED] == 1:
            n, members, removed = _reduce(entries, n, members, removed, tables, state, scratch, ranking)
        else:
            removed = _place(entries, covers, removed, updates, scratch.removed, ranking)
            n = n if removed >= 0 else np.int64(-1)
    else:
        n = np.int64(-1)
    forget_covers(covers, tables.slots, ranking)
    scratch.answers[0] = members
    scratch.answers[1] = removed
    scratch.answers[2] = entries
    return n


# -- the entries to compare -------------------------------------------------------------------------------------------


@inlined
def _rank(u, updates, strategy, classes):
    """The rank of the class that update ``u`` leads to."""
    return rank(updates[u, layout.U_CLASS], updates[u, layout.U_LABEL] > 0, strategy, classes)


@inlined
def _enter(n, p, bound, tables, state, scratch, ranking):
    """List the updates and the configurations that have a member in common with them.

    Returns the numbers of entries and of covers, the first -1 if there is too little room.
    """
    grouped = tables.options[layout.O_GROUPED] == 1
    several = tables.options[layout.O_STATES]
    windowed = tables.options[layout.O_WINDOWED] == 1
    updates, config = scratch.updates, state.config
    entries, covers = np.int64(0), np.int64(0)
    for u in range(n):
        q = np.int64(updates[u, layout.U_STATE])
        updates[u, layout.U_PLACE] = -1
        if q == layout.NOWHERE:
            continue
        first, count, values = np.int64(u), np.int64(1), scratch.update_values
        if q == layout.SEVERAL:
            first, count = np.int64(updates[u, layout.U_MEMBER]), np.int64(updates[u, layout.U_COUNT])
            values = scratch.member_values
        known = covers
        cover = np.int64(-1)
        for m in range(first, first + count):
            if updates[u, layout.U_STATE] == layout.SEVERAL:
                q = np.int64(scratch.members[m])
            cover = find_cover(q, pointer_to(values, m), np.int64(tables.slots[q]), covers, ranking)
            if cover < 0:
                return np.int64(-1), covers
            covers = max(covers, cover + 1)
        entries = _add_entry(entries, u, cover, tables, state, updates, ranking)
        if grouped or p < 0 or covers == known:
            continue
        # Configurations of the same single member share a chain.
        registers = pointer_to(scratch.update_values, u)
        h = hash_one(p, q, registers, tables)
        c = state.table[h & (state.table.shape[0] - 1)]
        while c >= 0:
            alike = state.config_long[c, layout.L_HASH] == h and config[c, layout.C_DEAD] == 0
            alike = alike and config[c, layout.C_PARTITION] == p and config[c, layout.C_GROUP] == q
            if alike and same_words(pointer_to(state.values, c), registers, tables.slots[q]):
                entries = _add_entry(entries, -1 - c, cover, tables, state, updates, ranking)
                if entries > 0 and tables.skips[q] == 0:
                    # It ends with the event.
                    ranking.entries[entries - 1, layout.E_RANK] = layout.NULL
            c = config[c, layout.C_CHAIN]

    for g in range(several + 1 if grouped and p >= 0 else 0):
        if g < several and tables.skips[g] == 0:
            continue
        c = state.heads[p, g]
        while c >= 0:
            passed = windowed and state.nodes[config[c, layout.C_ROOT], layout.W_MEASURE] <= bound
            if config[c, layout.C_DEAD] == 0 and not passed:
                q, first, count, values = np.int64(g), np.int64(c), np.int64(1), state.values
                if g == several:
                    first, count = np.int64(config[c, layout.C_MEMBER]), np.int64(config[c, layout.C_COUNT])
                    values = state.member_values
                cover = np.int64(-1)
                m = first
                while cover < 0 and m < first + count:
                    if g == several:
                        q = np.int64(state.members[m])
                    cover = find_cover(q, pointer_to(values, m), np.int64(tables.slots[q]), np.int64(-1), ranking)
                    m += 1
                if cover >= 0:
                    entries = _add_entry(entries, -1 - c, cover, tables, state, updates, ranking)
            c = config[c, layout.C_NEXT]
    return entries, covers


@part
def _add_entry(count, what, cover, tables, state, updates, ranking):
    """Add an entry after ``count`` others; returns their number, -1 if there is too little room, or was before."""
    entries = ranking.entries
    if not 0 <= count < entries.shape[0]:
        return np.int64(-1)
    strategy = tables.options[layout.O_STRATEGY]
    if what >= 0:
        root, class_rank = updates[what, layout.U_ROOT], _rank(what, updates, strategy, state.classes)
    else:
        root = state.config[-1 - what, layout.C_ROOT]
        class_rank = rank(state.config[-1 - what, layout.C_CLASS], False, strategy, state.classes)
    entries[count, layout.E_RANK] = class_rank
    entries[count, layout.E_WHAT] = what
    # Without a window every start is inside.
    windowed = tables.options[layout.O_WINDOWED] == 1
    entries[count, layout.E_START] = state.nodes[root, layout.W_MEASURE] if windowed else 0
    entries[count, layout.E_COVER] = cover
    return count + 1


@part
def _sort(count, ranking):
    """Order the entries: the best class first, within a class configurations first (Shell's sort)."""
    entries, order = ranking.entries, ranking.order
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    for i in range(count):
        order[i] = i
    # The gap ends at 1, and then at 0.
    while gap > 0:
        for i in range(gap, count):
            e, at = order[i], i
            while at >= gap and _is_before(e, order[at - gap], entries):
                order[at] = order[at - gap]
                at -= gap
            order[at] = e
        gap //= 3


@inlined
def _is_before(e, other, entries):
    one, two = entries[e, layout.E_RANK], entries[other, layout.E_RANK]
    return one > two or (one == two and entries[e, layout.E_WHAT] <= entries[other, layout.E_WHAT])


# -- comparing --------------------------------------------------------------------------------------------------------


@part
def _place(count, cover_count, n, updates, removed, ranking):
    """If every configuration has one member: remove dominated entries, and find places for the others.

    Updates of one class with the same member share a place. A new one overwrites a configuration that is no longer
    needed.
    Returns the number of configurations to drop, initially ``n``; -1 if there is too little room.
    """
    entries, covers, order = ranking.entries, ranking.covers, ranking.order
    for i in range(count):
        e = order[i]
        v = entries[e, layout.E_COVER]
        what = entries[e, layout.E_WHAT]
        if entries[e, layout.E_RANK] == layout.NULL:
            spare(e, v, ranking)
        elif dominated(v, e, ranking):
            if what >= 0:
                updates[what, layout.U_STATE] = layout.NOWHERE
            else:
                spare(e, v, ranking)
        elif covers[v, layout.V_PLACE] != -1:
            updates[what, layout.U_PLACE] = covers[v, layout.V_PLACE]
        else:
            covers[v, layout.V_PLACE] = -2 - what if what >= 0 else -1 - what
    for i in range(count):
        e = order[i]
        u = entries[e, layout.E_WHAT]
        if u >= 0 and updates[u, layout.U_STATE] != layout.NOWHERE and updates[u, layout.U_PLACE] == -1:
            v = entries[e, layout.E_COVER]
            other = covers[v, layout.V_SPARE]
            if other >= 0:
                updates[u, layout.U_PLACE] = -1 - entries[other, layout.E_WHAT]
                covers[v, layout.V_SPARE] = entries[other, layout.E_SPARE]
    for v in range(cover_count):
        e = covers[v, layout.V_SPARE]
        while e >= 0:
            if n >= removed.shape[0]:
                return np.int64(-1)
            removed[n] = -1 - entries[e, layout.E_WHAT]
            n += 1
            e = entries[e, layout.E_SPARE]
    return n


@inlined
def _reduce(entries, n, members, removed, tables, state, scratch, ranking):
    """If configurations have several members: remove dominated ones.

    The rest of a configuration becomes an update. Returns the numbers of updates (-1: too little room), members and
    configurations to drop.
    """
    updates, config = scratch.updates, state.config
    for i in range(entries):
        e = ranking.order[i]
        what = ranking.entries[e, layout.E_WHAT]
        cover = np.int64(-1)
        if what >= 0:
            at, to = what, np.int64(updates[what, layout.U_MEMBER])
            first, count = to, np.int64(updates[what, layout.U_COUNT])
            states, values = scratch.members, scratch.member_values
            label, final = np.int64(updates[what, layout.U_LABEL]), np.int64(updates[what, layout.U_FINAL])
            root = np.int64(updates[what, layout.U_ROOT])
            single = updates[what, layout.U_STATE] != layout.SEVERAL
        else:
            c = -1 - what
            at, to = n, members
            first, count = np.int64(config[c, layout.C_MEMBER]), np.int64(config[c, layout.C_COUNT])
            states, values = state.members, state.member_values
            label, final = np.int64(0), np.int64(0)
            root = np.int64(config[c, layout.C_ROOT])
            single = config[c, layout.C_GROUP] < tables.options[layout.O_STATES]
        if single:
            first, count = np.int64(0), np.int64(1)
            cover = ranking.entries[e, layout.E_COVER]
        elif to + count > scratch.members.shape[0]:
            return np.int64(-1), members, removed
        kept = np.int64(0)
        for m in range(first, first + count):
            v = cover
            if not single:
                q = np.int64(states[m])
                v = find_cover(q, pointer_to(values, m), np.int64(tables.slots[q]), np.int64(-1), ranking)
            if v >= 0 and dominated(v, e, ranking):
                continue
            if not single:
                scratch.members[to + kept] = states[m]
                for s in range(values.shape[1]):
                    scratch.member_values[to + kept, s] = values[m, s]
            kept += 1
        if kept == count:
            continue
        if what < 0:
            if removed >= scratch.removed.shape[0] or n >= updates.shape[0]:
                return np.int64(-1), members, removed
            scratch.removed[removed] = c
            removed += 1
            if kept == 0:
                continue
            updates[n, layout.U_CLASS] = config[c, layout.C_CLASS]
        after, end = close_update(at, label, root, final, to, kept, scratch)
        if what < 0:
            n, members = after, end
    return n, members, removed


# -- applying ---------------------------------------------------------------------------------------------------------


def settle(address, n, count, p):
    """Give the updates with the current event their classes, one for each class that they come from.

    Overwritten configurations get the class of their update, and no root. Until `let_go` the updates hold their
    classes: an update may come from an overwritten configuration that was the last with its class.
    """
    state, updates, ranking = state_at(address), scratch_at(address).updates, ranking_at(address)
    config, classes, partition, counters = state.config, state.classes, state.partition, state.counters
    strategy = tables_at(address).options[layout.O_STRATEGY]
    last = np.int64(layout.NULL)
    cls = np.int64(layout.NO_EVENTS)
    for i in range(count - 1, -1, -1):
        e = ranking.order[i]
        u = ranking.entries[e, layout.E_WHAT]
        if u < 0 or updates[u, layout.U_STATE] == layout.NOWHERE or updates[u, layout.U_LABEL] <= 0:
            continue
        if ranking.entries[e, layout.E_RANK] != last:
            last = ranking.entries[e, layout.E_RANK]
            cls = new_class(p, np.int64(updates[u, layout.U_CLASS]), strategy, classes, partition, counters)
        updates[u, layout.U_CLASS] = cls
    for u in range(n):
        if updates[u, layout.U_STATE] != layout.NOWHERE and updates[u, layout.U_CLASS] != layout.NO_EVENTS:
            classes[updates[u, layout.U_CLASS], layout.K_HELD] += 1
    for i in range(count):
        u = ranking.entries[i, layout.E_WHAT]
        if u < 0 or updates[u, layout.U_STATE] == layout.NOWHERE or updates[u, layout.U_PLACE] < 0:
            continue
        c = updates[u, layout.U_PLACE]
        old = np.int64(config[c, layout.C_CLASS])
        cls = np.int64(updates[u, layout.U_CLASS])
        if old != cls:
            config[c, layout.C_ROOT] = -1
            config[c, layout.C_CLASS] = cls
            if cls != layout.NO_EVENTS:
                classes[cls, layout.K_HELD] += 1
            if old != layout.NO_EVENTS:
                release(p, old, classes, partition, counters)
    return np.int64(0)


def let_go(address, n, p):
    """Once ``n`` updates are in effect, only configurations hold classes."""
    state, updates = state_at(address), scratch_at(address).updates
    for u in range(n):
        cls = np.int64(updates[u, layout.U_CLASS])
        if updates[u, layout.U_STATE] != layout.NOWHERE and cls != layout.NO_EVENTS:
            release(p, cls, state.classes, state.partition, state.counters)
    return np.int64(0)
