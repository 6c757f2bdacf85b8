"""Strategies: which of the updates of an event are worth applying, and which configurations they make worthless.

With a strategy every configuration has a class (see `kernels.classes`), so all its complex events have one support.
A member (a state with registers) of a configuration is dominated if a configuration of a better class has the same
member and stays in the window at least as long: whatever continues the worse one continues the better one, which
stays the better one. Without dominated members there is, for each state with registers, at most one class for every
distinct start in the window, and without a window one in all (cf. the lists of P1, Algorithms 5 and 6).

That no configuration dominates another holds before an event, so only the members that it brings are compared.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.classes import new_class, rank, release
from cerflow.engine.kernels.collections import hash_words
from cerflow.engine.kernels.jit import inlined, kernel
from cerflow.engine.kernels.pool import hash_one
from cerflow.engine.kernels.sets import close_update
from cerflow.engine.layout import (
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
    NO_EVENTS,
    NOWHERE,
    NULL,
    O_GROUPED,
    O_STATES,
    O_STRATEGY,
    O_WINDOWED,
    SEVERAL,
    U_CLASS,
    U_COUNT,
    U_FINAL,
    U_LABEL,
    U_MEMBER,
    U_PLACE,
    U_ROOT,
    U_STATE,
    W_MEASURE,
)

__all__ = ["choose", "note_classes", "place_of", "settle"]

# Columns of Scratch.entries: rank of the class, an update or -1 - a configuration, start, cover, next spare entry
E_RANK, E_WHAT, E_START, E_COVER, E_SPARE = range(5)
# Columns of Scratch.covers, one for each member that the event brings: its state, the latest start of better classes
# than that at hand, the rank of the class at hand and the latest start of it, where its configuration is (U_PLACE),
# first entry of a configuration that may be overwritten
V_STATE, V_BETTER, V_RANK, V_START, V_PLACE, V_SPARE = range(6)


@inlined
def note_classes(first, n, c, state, scratch):
    """Note for the updates ``[first, n)`` that they come from configuration ``c`` (-1: nothing has begun)."""
    for u in range(first, n):
        scratch.updates[u, U_CLASS] = state.config[c, C_CLASS] if c >= 0 else NO_EVENTS


@kernel
def choose(n, members, removed, p, bound, tables, state, scratch):
    """Keep of ``n`` updates what is not dominated, and as final ones those of the best class.

    Returns the numbers of updates, of their members, of configurations to drop and of entries in order; the first is
    -1 if there is too little room. Changes nothing but the scratch.
    """
    best = np.int64(NULL)
    strategy = tables.options[O_STRATEGY]
    for u in range(n):
        if scratch.updates[u, U_FINAL] == 1:
            best = max(best, _rank(u, strategy, state, scratch))
    for u in range(n):
        if scratch.updates[u, U_FINAL] == 1 and _rank(u, strategy, state, scratch) < best:
            scratch.updates[u, U_FINAL] = 0

    # Configurations that the event replaces do not count; advance drops them for good when there is room for all.
    for r in range(removed):
        state.config[scratch.removed[r], C_DEAD] = 1
    entries, covers = _enter(n, p, bound, tables, state, scratch)
    for r in range(removed):
        state.config[scratch.removed[r], C_DEAD] = 0
    if entries >= 0:
        _sort(entries, scratch)
        n, members, removed = _compare(entries, covers, n, members, removed, tables, state, scratch)
    else:
        n = np.int64(-1)
    _forget_covers(covers, tables, scratch)
    return n, members, removed, entries


@inlined
def _rank(u, strategy, state, scratch):
    return rank(scratch.updates[u, U_CLASS], scratch.updates[u, U_LABEL] > 0, strategy, state)


# -- what is compared -------------------------------------------------------------------------------------------------


@kernel
def _enter(n, p, bound, tables, state, scratch):
    """List the updates and the configurations that have a member in common with them.

    Returns the numbers of entries and of covers, the first -1 if there is too little room.
    """
    strategy = tables.options[O_STRATEGY]
    grouped = tables.options[O_GROUPED] == 1
    entries = np.int64(0)
    covers = np.int64(0)
    for u in range(n):
        q = np.int64(scratch.updates[u, U_STATE])
        scratch.updates[u, U_PLACE] = -1
        if q == NOWHERE:
            continue
        cover = np.int64(-1)
        known = covers
        if q == SEVERAL:
            first = np.int64(scratch.updates[u, U_MEMBER])
            for m in range(first, first + scratch.updates[u, U_COUNT]):
                q = np.int64(scratch.members[m])
                cover = _cover(q, scratch.member_values, m, covers, tables, scratch)
                if cover < 0:
                    return np.int64(-1), covers
                covers = max(covers, cover + 1)
        else:
            cover = _cover(q, scratch.update_values, u, covers, tables, scratch)
            if cover < 0:
                return np.int64(-1), covers
            covers = max(covers, cover + 1)
        if entries >= scratch.entries.shape[0]:
            return np.int64(-1), covers
        scratch.entries[entries, E_RANK] = _rank(u, strategy, state, scratch)
        scratch.entries[entries, E_WHAT] = u
        scratch.entries[entries, E_START] = _start(scratch.updates[u, U_ROOT], tables, state)
        scratch.entries[entries, E_COVER] = cover
        entries += 1
        if not grouped and p >= 0 and covers > known:
            entries = _enter_chain(entries, u, q, p, cover, tables, state, scratch)
            if entries < 0:
                return entries, covers
    if grouped and p >= 0:
        entries = _enter_sets(entries, p, bound, tables, state, scratch)
    return entries, covers


@inlined
def _start(root, tables, state):
    """The start of a complex event as far as it matters: without a window none begins too early."""
    return state.nodes[root, W_MEASURE] if tables.options[O_WINDOWED] == 1 else np.int64(0)


@kernel
def _enter_chain(entries, u, q, p, cover, tables, state, scratch):
    """List the configurations of one member, the same as that of update ``u``; returns the number of entries or -1."""
    h = hash_one(p, q, scratch.update_values, u, tables)
    c = np.int64(state.table[h & (state.table.shape[0] - 1)])
    while c >= 0:
        if (
            state.config_long[c, L_HASH] == h
            and state.config[c, C_DEAD] == 0
            and state.config[c, C_PARTITION] == p
            and state.config[c, C_GROUP] == q
            and _same_registers(q, c, u, tables, state, scratch)
        ):
            if entries >= scratch.entries.shape[0]:
                return np.int64(-1)
            _enter_config(entries, c, cover, tables, state, scratch)
            if tables.skips[q] == 0:
                # It does not outlive the event.
                scratch.entries[entries, E_WHAT] = -1 - c
                _spare(entries, cover, scratch)
            entries += 1
        c = np.int64(state.config[c, C_CHAIN])
    return entries


@inlined
def _same_registers(q, c, u, tables, state, scratch):
    for s in range(tables.slots[q]):
        if state.values[c, s] != scratch.update_values[u, s]:
            return False
    return True


@kernel
def _enter_sets(entries, p, bound, tables, state, scratch):
    """List the configurations of a partition that have a member with a cover; returns the number of entries or -1."""
    several = tables.options[O_STATES]
    for g in range(several + 1):
        c = np.int64(state.heads[p, g])
        while c >= 0:
            root = state.config[c, C_ROOT]
            gone = tables.options[O_WINDOWED] == 1 and state.nodes[root, W_MEASURE] <= bound
            if state.config[c, C_DEAD] == 0 and not gone and (g == several or tables.skips[g] == 1):
                first = np.int64(state.config[c, C_MEMBER])
                last = first + state.config[c, C_COUNT]
                touched = False
                if g < several:
                    touched = _find_cover(np.int64(g), state.values, c, tables, scratch) >= 0
                else:
                    while first < last and not touched:
                        q = np.int64(state.members[first])
                        touched = _find_cover(q, state.member_values, first, tables, scratch) >= 0
                        first += 1
                if touched:
                    if entries >= scratch.entries.shape[0]:
                        return np.int64(-1)
                    _enter_config(entries, c, np.int64(-1), tables, state, scratch)
                    entries += 1
            c = np.int64(state.config[c, C_NEXT])
    return entries


@inlined
def _enter_config(e, c, cover, tables, state, scratch):
    scratch.entries[e, E_RANK] = rank(state.config[c, C_CLASS], False, tables.options[O_STRATEGY], state)
    scratch.entries[e, E_WHAT] = -1 - c
    scratch.entries[e, E_START] = _start(state.config[c, C_ROOT], tables, state)
    scratch.entries[e, E_COVER] = cover


# -- covers -----------------------------------------------------------------------------------------------------------


@kernel
def _find_cover(q, values, row, tables, scratch):
    """The cover of a member, or -1."""
    table = scratch.cover_table
    width = tables.slots[q]
    at = hash_words(values[row], 0, width, q) & (table.shape[0] - 1)
    while table[at] >= 0:
        v = np.int64(table[at])
        same = scratch.covers[v, V_STATE] == q
        for s in range(width):
            if same and scratch.cover_values[v, s] != values[row, s]:
                same = False
        if same:
            return v
        at = (at + 1) & (table.shape[0] - 1)
    return np.int64(-1)


@kernel
def _cover(q, values, row, covers, tables, scratch):
    """The cover of a member, which becomes number ``covers`` if there is none yet; -1 if there is too little room."""
    v = _find_cover(q, values, row, tables, scratch)
    if v >= 0:
        return v
    if covers >= scratch.covers.shape[0]:
        return np.int64(-1)
    table = scratch.cover_table
    width = tables.slots[q]
    at = hash_words(values[row], 0, width, q) & (table.shape[0] - 1)
    while table[at] >= 0:
        at = (at + 1) & (table.shape[0] - 1)
    table[at] = covers
    scratch.covers[covers, V_STATE] = q
    scratch.covers[covers, V_BETTER] = NULL
    scratch.covers[covers, V_RANK] = NULL
    scratch.covers[covers, V_START] = NULL
    scratch.covers[covers, V_PLACE] = -1
    scratch.covers[covers, V_SPARE] = -1
    for s in range(width):
        scratch.cover_values[covers, s] = values[row, s]
    return covers


@inlined
def _forget_covers(covers, tables, scratch):
    """Empty the table of covers."""
    table = scratch.cover_table
    for v in range(covers):
        q = np.int64(scratch.covers[v, V_STATE])
        # Whatever is in the way of a cover is a cover, too.
        at = hash_words(scratch.cover_values[v], 0, tables.slots[q], q) & (table.shape[0] - 1)
        while table[at] >= 0:
            table[at] = -1
            at = (at + 1) & (table.shape[0] - 1)


@inlined
def _dominated(v, class_rank, start, scratch):
    """Whether a member with cover ``v`` is dominated; those of better classes have been asked about before it."""
    covers = scratch.covers
    if covers[v, V_RANK] != class_rank:
        covers[v, V_BETTER] = max(covers[v, V_BETTER], covers[v, V_START])
        covers[v, V_RANK] = class_rank
        covers[v, V_START] = NULL
        covers[v, V_PLACE] = -1
    if start <= covers[v, V_BETTER]:
        return True
    covers[v, V_START] = max(covers[v, V_START], start)
    return False


@inlined
def _spare(e, v, scratch):
    """Let the configuration of entry ``e`` be overwritten by one with the same member."""
    scratch.entries[e, E_RANK] = NULL
    scratch.entries[e, E_SPARE] = scratch.covers[v, V_SPARE]
    scratch.covers[v, V_SPARE] = e


# -- comparing --------------------------------------------------------------------------------------------------------


@kernel
def _sort(count, scratch):
    """Put the entries in order: the best class first, of one class first the configurations."""
    order = scratch.order
    entries = scratch.entries
    gap = 1
    while 3 * gap + 1 < count:
        gap = 3 * gap + 1
    for i in range(count):
        order[i] = i
    while gap > 0:
        for i in range(gap, count):
            e = order[i]
            j = i
            while j >= gap:
                before = order[j - gap]
                if entries[before, E_RANK] > entries[e, E_RANK] or (
                    entries[before, E_RANK] == entries[e, E_RANK] and entries[before, E_WHAT] < entries[e, E_WHAT]
                ):
                    break
                order[j] = before
                j -= gap
            order[j] = e
        gap //= 3


@kernel
def _compare(entries, covers, n, members, removed, tables, state, scratch):
    """Take dominated members away; returns the numbers of updates (-1: too little room), members and dropped ones."""
    grouped = tables.options[O_GROUPED] == 1
    for i in range(entries):
        e = scratch.order[i]
        if scratch.entries[e, E_RANK] == NULL:
            break
        if grouped:
            n, members, removed = _reduce(e, n, members, removed, tables, state, scratch)
            if n < 0:
                return n, members, removed
        else:
            _place(e, scratch)
    if not grouped:
        for i in range(entries):
            _overwrite(scratch.order[i], scratch)
        for v in range(covers):
            e = scratch.covers[v, V_SPARE]
            while e >= 0:
                if removed >= scratch.removed.shape[0]:
                    return np.int64(-1), members, removed
                scratch.removed[removed] = -1 - scratch.entries[e, E_WHAT]
                removed += 1
                e = scratch.entries[e, E_SPARE]
    return n, members, removed


@inlined
def _place(e, scratch):
    """Find out whether an entry of one member is dominated, and if not, which one of its class has the same member."""
    v = scratch.entries[e, E_COVER]
    what = scratch.entries[e, E_WHAT]
    if _dominated(v, scratch.entries[e, E_RANK], scratch.entries[e, E_START], scratch):
        if what >= 0:
            scratch.updates[what, U_STATE] = NOWHERE
        else:
            _spare(e, v, scratch)
    elif scratch.covers[v, V_PLACE] != -1:
        scratch.updates[what, U_PLACE] = scratch.covers[v, V_PLACE]
    else:
        scratch.covers[v, V_PLACE] = -2 - what if what >= 0 else -1 - what


@inlined
def _overwrite(e, scratch):
    """Let an update that would need a new configuration have one that is not needed any more."""
    u = scratch.entries[e, E_WHAT]
    if u >= 0 and scratch.updates[u, U_STATE] != NOWHERE and scratch.updates[u, U_PLACE] == -1:
        v = scratch.entries[e, E_COVER]
        spare = scratch.covers[v, V_SPARE]
        if spare >= 0:
            scratch.updates[u, U_PLACE] = -1 - scratch.entries[spare, E_WHAT]
            scratch.covers[v, V_SPARE] = scratch.entries[spare, E_SPARE]


@kernel
def _reduce(e, n, members, removed, tables, state, scratch):
    """Take the dominated members of an entry away; what is left of a configuration becomes an update.

    Returns the numbers of updates (-1: too little room), members and configurations to drop.
    """
    class_rank = scratch.entries[e, E_RANK]
    start = scratch.entries[e, E_START]
    what = scratch.entries[e, E_WHAT]
    kept = np.int64(0)
    if what >= 0:
        if scratch.updates[what, U_STATE] != SEVERAL:
            if _dominated(scratch.entries[e, E_COVER], class_rank, start, scratch):
                scratch.updates[what, U_STATE] = NOWHERE
            return n, members, removed
        first = np.int64(scratch.updates[what, U_MEMBER])
        count = np.int64(scratch.updates[what, U_COUNT])
        for m in range(first, first + count):
            v = _find_cover(np.int64(scratch.members[m]), scratch.member_values, m, tables, scratch)
            if not _dominated(v, class_rank, start, scratch):
                _copy_member(scratch.members, scratch.member_values, m, first + kept, scratch)
                kept += 1
        if kept < count:
            label = np.int64(scratch.updates[what, U_LABEL])
            root = np.int64(scratch.updates[what, U_ROOT])
            close_update(what, label, root, np.int64(scratch.updates[what, U_FINAL]), first, kept, scratch)
        return n, members, removed

    c = -1 - what
    q = np.int64(state.config[c, C_GROUP])
    count = np.int64(1)
    if q < tables.options[O_STATES]:
        v = _find_cover(q, state.values, c, tables, scratch)
        kept = np.int64(0 if _dominated(v, class_rank, start, scratch) else 1)
    else:
        first = np.int64(state.config[c, C_MEMBER])
        count = np.int64(state.config[c, C_COUNT])
        if members + count > scratch.members.shape[0]:
            return np.int64(-1), members, removed
        for m in range(first, first + count):
            v = _find_cover(np.int64(state.members[m]), state.member_values, m, tables, scratch)
            if v < 0 or not _dominated(v, class_rank, start, scratch):
                _copy_member(state.members, state.member_values, m, members + kept, scratch)
                kept += 1
    if kept == count:
        return n, members, removed
    if removed >= scratch.removed.shape[0] or n >= scratch.updates.shape[0]:
        return np.int64(-1), members, removed
    scratch.removed[removed] = c
    removed += 1
    if kept > 0:
        root = np.int64(state.config[c, C_ROOT])
        scratch.updates[n, U_CLASS] = state.config[c, C_CLASS]
        n, members = close_update(n, np.int64(0), root, np.int64(0), members, kept, scratch)
    return n, members, removed


@inlined
def _copy_member(states, values, row, to, scratch):
    scratch.members[to] = states[row]
    for s in range(scratch.member_values.shape[1]):
        scratch.member_values[to, s] = values[row, s]


# -- applying ---------------------------------------------------------------------------------------------------------


@kernel
def settle(entries, p, tables, state, scratch):
    """Give the updates that have the event at hand their classes, one for each class that they come from."""
    strategy = tables.options[O_STRATEGY]
    last = np.int64(NULL)
    cls = np.int64(NO_EVENTS)
    for i in range(entries - 1, -1, -1):
        e = scratch.order[i]
        u = scratch.entries[e, E_WHAT]
        if u < 0 or scratch.updates[u, U_STATE] == NOWHERE or scratch.updates[u, U_LABEL] <= 0:
            continue
        if scratch.entries[e, E_RANK] != last:
            last = scratch.entries[e, E_RANK]
            cls = new_class(p, np.int64(scratch.updates[u, U_CLASS]), strategy, state)
        scratch.updates[u, U_CLASS] = cls


@kernel
def place_of(u, p, state, scratch):
    """Where update ``u`` of one member goes, -1 for a new configuration; one that is overwritten has the root -1."""
    c = np.int64(scratch.updates[u, U_PLACE])
    if c < -1:
        c = np.int64(scratch.updates[-2 - c, U_PLACE])
    if c >= 0:
        old = np.int64(state.config[c, C_CLASS])
        cls = np.int64(scratch.updates[u, U_CLASS])
        if old != cls:
            state.config[c, C_ROOT] = -1
            state.config[c, C_CLASS] = cls
            if cls != NO_EVENTS:
                state.classes[cls, K_HELD] += 1
            if old != NO_EVENTS:
                release(p, old, state)
    return c
