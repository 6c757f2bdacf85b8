"""Strategies: which of the updates of an event are worth applying, and which configurations they make worthless.

With a strategy every configuration has a class (see `kernels.classes`), so all its complex events have one support.
A member (a state with registers) of a configuration is dominated if a configuration of a better class has the same
member and stays in the window at least as long: whatever continues the worse one continues the better one, which
stays the better one. Without dominated members there is, for each state with registers, at most one class for every
distinct start in the window, and without a window one in all (cf. the lists of P1, Algorithms 5 and 6).

That no configuration dominates another holds before an event, so only the members that it brings are compared. Each
has a *cover*, which the updates and configurations with that member come to from the best class to the worst.
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
    E_COVER,
    E_RANK,
    E_SPARE,
    E_START,
    E_WHAT,
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
    V_BETTER,
    V_PLACE,
    V_RANK,
    V_SPARE,
    V_START,
    V_STATE,
    W_MEASURE,
)

__all__ = ["choose", "note_classes", "place_of", "settle"]


@inlined
def note_classes(first, n, c, config, updates):
    """Note for the updates ``[first, n)`` that they come from configuration ``c`` (-1: nothing has begun)."""
    for u in range(first, n):
        updates[u, U_CLASS] = config[c, C_CLASS] if c >= 0 else NO_EVENTS


@kernel
def choose(n, members, removed, p, bound, tables, state, scratch, ranking):
    """Keep of ``n`` updates what is not dominated, and as final ones those of the best class.

    Returns the numbers of updates, of their members, of configurations to drop and of entries in order; the first is
    -1 if there is too little room. Changes nothing but the scratch.
    """
    strategy = tables.options[O_STRATEGY]
    updates = scratch.updates
    best = np.int64(NULL)
    for u in range(n):
        if updates[u, U_FINAL] == 1:
            best = max(best, rank(updates[u, U_CLASS], updates[u, U_LABEL] > 0, strategy, state.classes))
    for u in range(n):
        if (
            updates[u, U_FINAL] == 1
            and rank(updates[u, U_CLASS], updates[u, U_LABEL] > 0, strategy, state.classes) < best
        ):
            updates[u, U_FINAL] = 0

    # Configurations that the event replaces do not count; they are dropped for good when there is room for all.
    for r in range(removed):
        state.config[scratch.removed[r], C_DEAD] = 1
    entries, covers = _enter(n, p, bound, tables, state, scratch, ranking)
    for r in range(removed):
        state.config[scratch.removed[r], C_DEAD] = 0
    if entries >= 0:
        _sort(entries, ranking)
        if tables.options[O_GROUPED] == 1:
            n, members, removed = _reduce(entries, n, members, removed, tables, state, scratch, ranking)
        else:
            removed = _place(entries, covers, removed, updates, scratch.removed, ranking)
            n = n if removed >= 0 else np.int64(-1)
    else:
        n = np.int64(-1)
    _forget_covers(covers, tables.slots, ranking)
    return n, members, removed, entries


# -- what is compared -------------------------------------------------------------------------------------------------


@kernel
def _enter(n, p, bound, tables, state, scratch, ranking):
    """List the updates and the configurations that have a member in common with them.

    Returns the numbers of entries and of covers, the first -1 if there is too little room.
    """
    strategy = tables.options[O_STRATEGY]
    grouped = tables.options[O_GROUPED] == 1
    several = tables.options[O_STATES]
    windowed = tables.options[O_WINDOWED] == 1
    updates, config, measures = scratch.updates, state.config, state.nodes
    entries = np.int64(0)
    covers = np.int64(0)
    for u in range(n):
        q = np.int64(updates[u, U_STATE])
        updates[u, U_PLACE] = -1
        if q == NOWHERE:
            continue
        known = covers
        cover = np.int64(-1)
        if q == SEVERAL:
            first = np.int64(updates[u, U_MEMBER])
            for m in range(first, first + updates[u, U_COUNT]):
                q = np.int64(scratch.members[m])
                cover = _cover(q, scratch.member_values, m, tables.slots[q], covers, ranking)
                if cover < 0:
                    return np.int64(-1), covers
                covers = max(covers, cover + 1)
        else:
            cover = _cover(q, scratch.update_values, np.int64(u), tables.slots[q], covers, ranking)
            if cover < 0:
                return np.int64(-1), covers
            covers = max(covers, cover + 1)
        class_rank = rank(updates[u, U_CLASS], updates[u, U_LABEL] > 0, strategy, state.classes)
        # Without a window nothing begins too early.
        start = measures[updates[u, U_ROOT], W_MEASURE] if windowed else np.int64(0)
        entries = _entry(entries, class_rank, np.int64(u), start, cover, ranking.entries)
        if entries < 0:
            return entries, covers
        if grouped or p < 0 or covers == known:
            continue
        # The configurations of one member are in one chain if it is the same.
        h = hash_one(p, q, scratch.update_values, np.int64(u), tables)
        c = state.table[h & (state.table.shape[0] - 1)]
        while c >= 0:
            same = state.config_long[c, L_HASH] == h and config[c, C_PARTITION] == p and config[c, C_GROUP] == q
            for s in range(tables.slots[q]):
                same = same and state.values[c, s] == scratch.update_values[u, s]
            if same and config[c, C_DEAD] == 0:
                class_rank = rank(config[c, C_CLASS], False, strategy, state.classes)
                start = measures[config[c, C_ROOT], W_MEASURE] if windowed else np.int64(0)
                entries = _entry(entries, class_rank, np.int64(-1 - c), start, cover, ranking.entries)
                if entries < 0:
                    return entries, covers
                if tables.skips[q] == 0:
                    # It does not outlive the event.
                    _spare(entries - 1, cover, ranking)
            c = config[c, C_CHAIN]

    for g in range(several + 1 if grouped and p >= 0 else 0):
        if g < several and tables.skips[g] == 0:
            continue
        c = state.heads[p, g]
        while c >= 0:
            start = measures[config[c, C_ROOT], W_MEASURE] if windowed else np.int64(0)
            if config[c, C_DEAD] == 0 and not (windowed and start <= bound):
                cover = np.int64(-1)
                if g < several:
                    cover = _find_cover(np.int64(g), state.values, np.int64(c), tables.slots[g], ranking)
                else:
                    first = np.int64(config[c, C_MEMBER])
                    for m in range(first, first + config[c, C_COUNT]):
                        q = np.int64(state.members[m])
                        cover = _find_cover(q, state.member_values, m, tables.slots[q], ranking)
                        if cover >= 0:
                            break
                if cover >= 0:
                    class_rank = rank(config[c, C_CLASS], False, strategy, state.classes)
                    entries = _entry(entries, class_rank, np.int64(-1 - c), start, cover, ranking.entries)
                    if entries < 0:
                        return entries, covers
            c = config[c, C_NEXT]
    return entries, covers


@kernel
def _entry(e, class_rank, what, start, cover, entries):
    """Write entry ``e``; returns the number of entries, or -1 if there is too little room."""
    if e >= entries.shape[0]:
        return np.int64(-1)
    entries[e, E_RANK] = class_rank
    entries[e, E_WHAT] = what
    entries[e, E_START] = start
    entries[e, E_COVER] = cover
    return e + 1


@kernel
def _sort(count, ranking):
    """Put the entries in order: the best class first, of one class first the configurations."""
    entries, order = ranking.entries, ranking.order
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


# -- covers -----------------------------------------------------------------------------------------------------------


@kernel
def _find_cover(q, values, row, width, ranking):
    """The cover of a member with ``width`` registers, or -1."""
    table = ranking.cover_table
    at = hash_words(values[row], np.int64(0), np.int64(width), q) & (table.shape[0] - 1)
    while table[at] >= 0:
        v = np.int64(table[at])
        same = ranking.covers[v, V_STATE] == q
        for s in range(width):
            same = same and ranking.cover_values[v, s] == values[row, s]
        if same:
            return v
        at = (at + 1) & (table.shape[0] - 1)
    return np.int64(-1)


@kernel
def _cover(q, values, row, width, covers, ranking):
    """The cover of a member, which becomes number ``covers`` if there is none yet; -1 if there is too little room."""
    v = _find_cover(q, values, row, width, ranking)
    if v >= 0:
        return v
    if covers >= ranking.covers.shape[0]:
        return np.int64(-1)
    table = ranking.cover_table
    at = hash_words(values[row], np.int64(0), np.int64(width), q) & (table.shape[0] - 1)
    while table[at] >= 0:
        at = (at + 1) & (table.shape[0] - 1)
    table[at] = covers
    ranking.covers[covers, V_STATE] = q
    ranking.covers[covers, V_BETTER] = NULL
    ranking.covers[covers, V_RANK] = NULL
    ranking.covers[covers, V_START] = NULL
    ranking.covers[covers, V_PLACE] = -1
    ranking.covers[covers, V_SPARE] = -1
    for s in range(width):
        ranking.cover_values[covers, s] = values[row, s]
    return covers


@kernel
def _forget_covers(covers, slots, ranking):
    """Empty the table of covers."""
    table = ranking.cover_table
    for v in range(covers):
        q = ranking.covers[v, V_STATE]
        # Whatever is in the way of a cover is a cover, too.
        at = hash_words(ranking.cover_values[v], np.int64(0), np.int64(slots[q]), q) & (table.shape[0] - 1)
        while table[at] >= 0:
            table[at] = -1
            at = (at + 1) & (table.shape[0] - 1)


@kernel
def _dominated(v, class_rank, start, covers):
    """Whether a member with cover ``v`` is dominated; those of better classes have been asked about before it."""
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
def _spare(e, v, ranking):
    """Let the configuration of entry ``e`` be overwritten by one with the same member."""
    ranking.entries[e, E_RANK] = NULL
    ranking.entries[e, E_SPARE] = ranking.covers[v, V_SPARE]
    ranking.covers[v, V_SPARE] = e


# -- comparing --------------------------------------------------------------------------------------------------------


@kernel
def _place(count, cover_count, n, updates, removed, ranking):
    """Where every configuration has one member: take dominated entries away, and find places for the others.

    Updates of one class with the same member share a place; a new one overwrites a configuration that is not needed
    any more. Returns the number of configurations to drop, of which there were ``n``; -1 if there is too little room.
    """
    entries, covers, order = ranking.entries, ranking.covers, ranking.order
    for i in range(count):
        e = order[i]
        if entries[e, E_RANK] == NULL:
            break
        v = entries[e, E_COVER]
        what = entries[e, E_WHAT]
        if _dominated(v, entries[e, E_RANK], entries[e, E_START], covers):
            if what >= 0:
                updates[what, U_STATE] = NOWHERE
            else:
                _spare(e, v, ranking)
        elif covers[v, V_PLACE] != -1:
            updates[what, U_PLACE] = covers[v, V_PLACE]
        else:
            covers[v, V_PLACE] = -2 - what if what >= 0 else -1 - what
    for i in range(count):
        e = order[i]
        u = entries[e, E_WHAT]
        if u >= 0 and updates[u, U_STATE] != NOWHERE and updates[u, U_PLACE] == -1:
            v = entries[e, E_COVER]
            spare = covers[v, V_SPARE]
            if spare >= 0:
                updates[u, U_PLACE] = -1 - entries[spare, E_WHAT]
                covers[v, V_SPARE] = entries[spare, E_SPARE]
    for v in range(cover_count):
        e = covers[v, V_SPARE]
        while e >= 0:
            if n >= removed.shape[0]:
                return np.int64(-1)
            removed[n] = -1 - entries[e, E_WHAT]
            n += 1
            e = entries[e, E_SPARE]
    return n


@kernel
def _reduce(count, n, members, removed, tables, state, scratch, ranking):
    """Where configurations have several members: take dominated ones away.

    What is left of a configuration becomes an update. Returns the numbers of updates (-1: too little room), members
    and configurations to drop.
    """
    several = tables.options[O_STATES]
    updates = scratch.updates
    for i in range(count):
        e = ranking.order[i]
        class_rank = ranking.entries[e, E_RANK]
        start = ranking.entries[e, E_START]
        what = ranking.entries[e, E_WHAT]
        kept = np.int64(0)
        c = -1 - what
        if updates[what, U_STATE] != SEVERAL if what >= 0 else state.config[c, C_GROUP] < several:
            if not _dominated(ranking.entries[e, E_COVER], class_rank, start, ranking.covers):
                continue
            if what >= 0:
                updates[what, U_STATE] = NOWHERE
                continue
        elif what >= 0:
            first = np.int64(updates[what, U_MEMBER])
            many = np.int64(updates[what, U_COUNT])
            kept = _undominated(
                first, many, scratch.members, scratch.member_values, class_rank, start, first, tables, scratch, ranking
            )
            if kept < many:
                label = np.int64(updates[what, U_LABEL])
                root = np.int64(updates[what, U_ROOT])
                close_update(what, label, root, np.int64(updates[what, U_FINAL]), first, kept, scratch)
            continue
        else:
            first = np.int64(state.config[c, C_MEMBER])
            many = np.int64(state.config[c, C_COUNT])
            if members + many > scratch.members.shape[0]:
                return np.int64(-1), members, removed
            kept = _undominated(
                first, many, state.members, state.member_values, class_rank, start, members, tables, scratch, ranking
            )
            if kept == many:
                continue
        if removed >= scratch.removed.shape[0] or n >= updates.shape[0]:
            return np.int64(-1), members, removed
        scratch.removed[removed] = c
        removed += 1
        if kept > 0:
            updates[n, U_CLASS] = state.config[c, C_CLASS]
            root = np.int64(state.config[c, C_ROOT])
            n, members = close_update(n, np.int64(0), root, np.int64(0), members, kept, scratch)
    return n, members, removed


@kernel
def _undominated(first, count, states, values, class_rank, start, to, tables, scratch, ranking):
    """Copy the members ``[first, first + count)`` that are not dominated to ``to`` on; returns their number."""
    kept = np.int64(0)
    for m in range(first, first + count):
        q = np.int64(states[m])
        v = _find_cover(q, values, m, tables.slots[q], ranking)
        if v < 0 or not _dominated(v, class_rank, start, ranking.covers):
            scratch.members[to + kept] = q
            for s in range(values.shape[1]):
                scratch.member_values[to + kept, s] = values[m, s]
            kept += 1
    return kept


# -- applying ---------------------------------------------------------------------------------------------------------


@kernel
def settle(count, p, strategy, updates, classes, partition, counters, ranking):
    """Give the updates that have the event at hand their classes, one for each class that they come from."""
    last = np.int64(NULL)
    cls = np.int64(NO_EVENTS)
    for i in range(count - 1, -1, -1):
        e = ranking.order[i]
        u = ranking.entries[e, E_WHAT]
        if u < 0 or updates[u, U_STATE] == NOWHERE or updates[u, U_LABEL] <= 0:
            continue
        if ranking.entries[e, E_RANK] != last:
            last = ranking.entries[e, E_RANK]
            cls = new_class(p, np.int64(updates[u, U_CLASS]), strategy, classes, partition, counters)
        updates[u, U_CLASS] = cls


@kernel
def place_of(u, p, config, updates, classes, partition, counters):
    """Where update ``u`` of one member goes, -1 for a new configuration; one that is overwritten has the root -1."""
    c = np.int64(updates[u, U_PLACE])
    if c < -1:
        c = np.int64(updates[-2 - c, U_PLACE])
    if c >= 0:
        old = np.int64(config[c, C_CLASS])
        cls = np.int64(updates[u, U_CLASS])
        if old != cls:
            config[c, C_ROOT] = -1
            config[c, C_CLASS] = cls
            if cls != NO_EVENTS:
                classes[cls, K_HELD] += 1
            if old != NO_EVENTS:
                release(p, old, classes, partition, counters)
    return c
