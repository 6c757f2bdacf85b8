"""Matches whose events wait for each other, found in the rows of a batch by joining these."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.rows import leads
from cerflow.engine.kernels.rows.flow import rows_in_window, slots_for
from cerflow.engine.kernels.rows.keys import (
    enter_slot,
    hash_of_values,
    is_entered,
    list_rows,
    shift_of_slots,
)
from cerflow.engine.kernels.rows.leads import BOUND, MEASURE, window_value
from cerflow.engine.kernels.rows.waiting import ENTRY, earliest_entry, has_key_of, of_other_key, queue
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.blocks import compute_link
from cerflow.engine.kernels.scan.scan import mark_all, output_words
from cerflow.engine.layout import EARLIEST, EVERYTHING, LATEST, PROGRAM
from cerflow.engine.scan import layout

#: The automaton has to read all rows.
NOT_FOUND = -1
#: `partials` is full.
_FULL = -2
#: Pairs that may be looked at besides some for each row with guards.
_SOME = 1 << 12
#: Pairs that are compared together, at least.
_TOGETHER = 1 << 13
#: Three or more events are not joined if one row in ``_OFTEN`` opens matches, and but for keys at most one in ``_MANY``
#: of these ends some, among the ``_FIRST`` rows or among all.
_OFTEN, _MANY, _FIRST = 3, 8, 1 << 16


@kernel
def join_events(address, batch, count, carried, ends, choice, most):
    """Write the matches in a batch of ``count`` rows to ``partials``, in the order of their last rows.

    For each event of a match one of the guards holds that ``join_guards`` has for its step, and none of ``join_kills``
    for an event before the next one; all agree on the outputs ``keyed``, fulfil the ``links``, and lie within the
    window that ``reach`` measures. Of the matches of a last row there may be a ``choice``, if they have two events:
    `EARLIEST` and `LATEST` say which first row they have. Runs may be ``carried`` from before the batch, and later
    events may end others unless the stream ``ends`` with it: the matches are missing whose rows all lie before a first
    row or from a second one on.

    Returns what stopped it, as ``scan`` does, to go on from `ROW`, from which on rows have no ``guards`` yet; where the
    matches begin and end in ``partials``, or `NOT_FOUND` if more than ``most`` events have to be looked at for each row
    with guards, or if matches have more than two events and many rows open some; and these two rows. Without room for
    that many `OPENINGS` and for more partial matches it stops with `NO_EVENTS`.
    """
    s = v.scan_at(address)
    control, zero = s.control, np.int64(0)
    v.locate(s.columns, s.texts, batch)
    guards = v.start_of(s.guards)
    steps, opening = s.join_guards.shape[0], zero
    for step in range(steps - 1):
        opening |= s.join_guards[step] | s.join_kills[step]
    # Where many rows open matches that few end or no key ties, passes rule out most in less time; the first rows tell.
    tied = s.keyed.shape[0] > 0 or s.join_keys.shape[0] > 0
    for some in (min(count, _FIRST), count):
        reason = mark_all(s, some, address)
        if reason != layout.SCANNED:
            return reason, zero, zero, zero, zero
        opened = v.rows_with(guards, some & ~7, opening)
        ended = v.rows_with(guards, some & ~7, np.int64(s.join_guards[steps - 1]))
        often = _OFTEN * opened > some and (not tied or _MANY * ended < opened)
        if steps > 2 and control[layout.WITHIN] == 0 and often:
            return reason, zero, np.int64(NOT_FOUND), zero, zero
    for k in range(8):
        v.store_word(guards + count, k, zero)
    control[layout.LOOKED_AHEAD] = 1
    first, stop, edge = zero, np.int64(count), window_value(s, BOUND, count - 1)
    if carried != 0:
        first = leads.first_behind(s, BOUND, count, window_value(s, MEASURE, 0) - 1)
    if ends == 0:
        stop = leads.first_behind(s, MEASURE, count, edge)
    begin, end = np.int64(NOT_FOUND), np.int64(NOT_FOUND)
    control[layout.OPENINGS] = v.rows_with(guards, count, opening)
    # No match may join what lies before with what lies behind.
    whole = first == 0 and stop == count
    apart = (
        first == 0
        or stop == count
        or window_value(s, BOUND, min(stop, count - 1)) >= window_value(s, MEASURE, max(first - 1, 0))
    )
    apart = choice == EVERYTHING and apart and 4 * (first + count - stop) <= count
    if (whole or apart) and _can_compare(s):
        ending = v.rows_with(guards, count, np.int64(s.join_guards[steps - 1]))
        if ending == 0 or control[layout.OPENINGS] == 0:
            return layout.SCANNED, zero, zero, first, stop
        if control[layout.OPENINGS] > s.opened.shape[0]:
            return layout.NO_EVENTS, begin, end, first, stop
        relevant = v.rows_with(guards, count, np.int64(255))
        control[layout.SLOTS] = s.flows.shape[0]
        if control[layout.WITHIN] == 0:
            control[layout.SLOTS] = slots_for(s, rows_in_window(s, count) * (np.float64(relevant) / count))
        begin = zero
        end, looked = _pass(s, count, guards, opening, first, stop, choice, most, address)
        for step in range(steps - 3, -1, -1):
            if end >= 0:
                middle, (end, more) = end, _extend(s, begin, end, step, stop, most * relevant - looked, address)
                begin, looked = middle, looked + more
    return layout.NO_EVENTS if end == _FULL else layout.SCANNED, begin, end, first, stop


@inlined
def _can_compare(s):
    """Whether no two columns of text are compared of which one is a dictionary."""
    can = True
    for n in range(s.links.shape[0]):
        t, u = s.links[n, layout.L_READ], s.links[n, layout.L_STOP]
        if s.links[n, layout.L_OPERATOR] != PROGRAM and t != u:
            can &= min(s.texts[t, layout.T_LAYOUT], s.texts[u, layout.T_LAYOUT]) >= layout.TEXT32
    return can


@part
def _pass(s, count, guards, opening, first, stop, choice, most, address):
    """Write the last two events of all matches; returns where these end, or why they are not known, and the work.

    An event that is not the last of a match, or ends waiting, becomes an entry of `opened`, with its row in `slot_of`.
    The entries of a slot of `flows` are a chain, the latest first; 0 ends it, else there is the number of the next one,
    plus one.
    """
    step, last = s.join_guards.shape[0] - 2, s.join_guards.shape[0] - 1
    before_last, ending = s.join_guards[step], s.join_guards[last]
    kills, clears, middle = s.join_kills[step], np.int64(255), np.int64(0)
    for k in range(last):
        clears &= s.join_kills[k]
        middle |= s.join_guards[k] if k > 0 else np.int64(0)
    found = related = relevant = opened = looked = allowed = np.int64(0)
    more = np.float64(0)
    for k in range(s.entered.shape[0]):
        s.entered[k] = 0
    width, shift, times = s.flows.shape[1], shift_of_slots(s), leads.window_words(s)
    chosen, keys, measures = v.start_of(s.numbers), v.start_of(s.at), v.start_of(s.measures)
    heads, entries = v.start_of(s.flows), v.start_of(s.opened)
    rows, partials, room = v.start_of(s.slot_of), v.start_of(s.partials), s.partials.shape[0]
    any_kills, mixed = kills != 0, step > 0 or kills != 0
    handing, handed, equal = np.int64(s.join_keys.shape[0] >> 1), np.int64(0), np.int64(0)
    if handing > 0:
        handed, equal = output_words(s, s.join_keys[0]), output_words(s, s.join_keys[handing])
    # One entry of a key is the only one that counts: the latest, or the earliest that is in the window.
    latest = choice == LATEST and s.links.shape[0] == 0
    earliest = choice == EARLIEST and s.links.shape[0] == 0 and kills == 0
    for begin in range(0, count, layout.STRETCH):
        some = list_rows(s, begin, min(begin + layout.STRETCH, count), guards, width, False, False, address)
        relevant += some
        allowed = most * relevant + _SOME
        for n in range(some):
            v.store_word(chosen, n, s.chosen[n])
            if handed != 0 and equal != 0:
                v.fetch(handed + 8 * s.chosen[n])
                v.fetch(equal + 8 * s.chosen[n])
            if v.load_word(keys, n) >= 0:
                entry = v.load_word(heads, width * (v.load_word(keys, n) >> shift))
                v.fetch(entries + 16 * (entry & ENTRY))
        for n in range(some):
            row, key, measure = v.load_word(chosen, n), v.load_word(keys, n), v.load_word(measures, n)
            wanted = key
            if handing > 0:
                key = hash_of_values(s, np.int64(0), handing, row, address)
                wanted = hash_of_values(s, handing, 2 * handing, row, address)
            slot = max(key, np.int64(0)) >> shift
            head, own, known = heads + 8 * width * slot, v.load_byte(guards, row), is_entered(s, slot)
            there, latest_there = head, v.load_word(head, 0) if known and key >= 0 else np.int64(-1)
            if handing > 0:
                slot_there = max(wanted, np.int64(0)) >> shift
                there = heads + 8 * width * slot_there
                latest_there = v.load_word(there, 0) if wanted >= 0 and is_entered(s, slot_there) else np.int64(-1)
            if earliest:
                if key >= 0 and not known:
                    v.store_word(head, 0, np.int64(0))
                    enter_slot(s, slot)
                if own & ending != 0 and key >= 0:
                    if found >= room:
                        return np.int64(_FULL), looked
                    bound = leads.bound_of(s, row, measure, times)
                    other, steps = earliest_entry(s, head, entries, key, row, bound, address)
                    looked += steps
                    if looked > allowed:
                        return np.int64(NOT_FOUND), looked
                    if other >= 0:
                        v.store_int(partials, 2 * found, v.load_int(rows, other))
                        v.store_int(partials, 2 * found + 1, row)
                        found += 1
                if own & opening != 0 and key >= 0:
                    queue(s, head, entries, opened, key, row, measure)
                    opened += 1
                continue
            entry = latest_there
            if own & ending != 0 and entry >= 0 and row >= first:
                bound = leads.bound_of(s, row, measure, times)
                before, looked_before = np.int64(-1), looked
                while entry >= 0 and v.load_word(entries, 2 * entry + 1) > bound:
                    looked += 1
                    if looked > allowed:
                        return np.int64(NOT_FOUND), looked
                    word = v.load_word(entries, 2 * entry)
                    before, entry = entry, (word & ENTRY) - 1
                    if word >> 32 != wanted:
                        continue
                    other = v.load_int(rows, before)
                    if any_kills and v.load_byte(guards, other) & kills != 0 and has_key_of(s, row, other, address):
                        entry = np.int64(-1)
                    if mixed and v.load_byte(guards, other) & before_last == 0:
                        continue
                    if step == 0 and row >= stop and other >= stop:
                        continue
                    if found >= room:
                        found = related = _related(s, related, found, step, choice, address)
                    if found >= room:
                        return np.int64(_FULL), looked
                    v.store_int(partials, 2 * found, before)
                    v.store_int(partials, 2 * found + 1, row)
                    found += 1
                    if latest and has_key_of(s, row, other, address):
                        break
                more += _combinations(looked - looked_before, step)
                if step == 0 and entry >= 0 and v.load_word(entries, 2 * entry + 1) <= bound:
                    # Later events have no greater window either.
                    if before < 0:
                        v.store_word(there, 0, np.int64(-1))
                    else:
                        v.store_word(entries, 2 * before, v.load_word(entries, 2 * before) >> 32 << 32)
                if found - related >= _TOGETHER:
                    found = related = _related(s, related, found, step, choice, address)
            if own & opening != 0 and key >= 0:
                entry = v.load_word(head, 0) if known else np.int64(-1)
                cleared = own & clears != 0 and own & middle == 0
                if cleared and entry >= 0:
                    entry = of_other_key(s, row, key, entry, address)
                if entry >= 0 or not cleared or own & s.join_guards[0] != 0:
                    v.store_word(entries, 2 * opened, key << 32 | (entry + 1))
                    v.store_word(entries, 2 * opened + 1, measure)
                    v.store_int(rows, opened, row)
                    if handing > 0:
                        s.looked_up[opened] = wanted << 32 | (latest_there + 1)
                    entry = opened
                    opened += 1
                v.store_word(head, 0, entry)
                enter_slot(s, slot)
        if step > 0:
            found = related = _related(s, related, found, step, choice, address)
            if looked + more * found / max(looked, 1) > allowed:
                return np.int64(NOT_FOUND), looked
    return found if earliest else _related(s, related, found, step, choice, address), looked


@part
def _extend(s, begin, end, step, stop, allowed, address):
    """Extend the partial matches ``[begin, end)`` by an event of this ``step``; returns as `_pass`.

    They are written behind those. No more than ``allowed`` entries are looked at, and some.
    """
    found = related = end
    looked, wanted, kills, times = np.int64(0), s.join_guards[step], s.join_kills[step], leads.window_words(s)
    guards, entries, rows = v.start_of(s.guards), v.start_of(s.opened), v.start_of(s.slot_of)
    for k in range(begin, end):
        row, word = _last_row(s, k, step + 1), v.load_word(entries, 2 * s.partials[k, 0])
        if s.join_keys.shape[0] > 0:
            word = s.looked_up[s.partials[k, 0]]
        key, bound = word >> 32, leads.window_bound(s, row, times)
        entry = (word & ENTRY) - 1
        while entry >= 0 and v.load_word(entries, 2 * entry + 1) > bound:
            looked += 1
            if looked > allowed + _SOME:
                return np.int64(NOT_FOUND), looked
            word, other = v.load_word(entries, 2 * entry), np.int64(v.load_int(rows, entry))
            inside = step > 0 or row < stop or other < stop
            killed = word >> 32 == key and v.load_byte(guards, other) & kills != 0
            killed = killed and has_key_of(s, row, other, address)
            if word >> 32 == key and inside and v.load_byte(guards, other) & wanted != 0:
                if found >= s.partials.shape[0]:
                    found = related = _related(s, related, found, step, EVERYTHING, address)
                if found >= s.partials.shape[0]:
                    return np.int64(_FULL), looked
                s.partials[found, 0], s.partials[found, 1] = entry, k
                found += 1
            entry = np.int64(-1) if killed else (word & ENTRY) - 1
        if found - related >= _TOGETHER:
            found = related = _related(s, related, found, step, EVERYTHING, address)
    return _related(s, related, found, step, EVERYTHING, address), looked


@inlined
def _combinations(events, steps):
    """How many combinations of two up to ``steps`` and one more of some ``events`` there are."""
    some, total = np.float64(events), np.float64(0)
    for k in range(steps):
        some *= max(events - 1 - k, 0) / np.float64(k + 2)
        total += some
    return total


@inlined
def _last_row(s, partial, step):
    """The row of the last event of a ``partial`` match that begins at a ``step``."""
    for _ in range(s.join_guards.shape[0] - 2 - step):
        partial = np.int64(s.partials[partial, 1])
    return np.int64(s.partials[partial, 1])


@part
def _related(s, begin, end, step, choice, address):
    """Keep those of the partial matches ``[begin, end)`` that may become matches, by ``choice``; returns their end.

    They begin at this ``step``: at 0 they are matches, and have the row of the first event in place of its entry.
    """
    rows, kept, some = v.start_of(s.slot_of), begin, s.allowed
    for first in range(begin, end, layout.STRETCH):
        count = min(end - first, layout.STRETCH)
        for k in range(count):
            some[k] = first + k
        for n in range(s.links.shape[0]):
            later = step + max(s.links[n, layout.L_DISTANCE], 1)
            if s.links[n, layout.L_MASK] >> later & 1 == 1:
                left, count = count, np.int64(0)
                _find_partners(s, left, step, later)
                s.control[layout.WALKED] = -1
                compute_link(s, n, left)
                s.control[layout.WALKED] = 0
                for k in range(left):
                    some[count] = some[k]
                    count += np.int64(s.wide[0, k] == 1)
        for k in range(count):
            row, entry, before = _last_row(s, some[k], step), s.partials[some[k], 0], s.partials[some[k], 1]
            other = v.load_int(rows, np.int64(entry))
            # This takes longer than most conditions.
            if not has_key_of(s, row, other, address):
                continue
            if step == 0:
                entry = np.int32(other)
            again = choice != EVERYTHING and kept > 0 and s.partials[kept - 1, 1] == row
            if not again:
                s.partials[kept, 0], s.partials[kept, 1] = entry, before
                kept += 1
            elif choice == EARLIEST:
                s.partials[kept - 1, 0] = entry
    return kept


@inlined
def _find_partners(s, count, step, later):
    """Leave the events of ``count`` partial matches from a ``step`` on as `partners` of those of a ``later`` one."""
    rows, last = v.start_of(s.slot_of), s.join_guards.shape[0] - 1
    for k in range(count):
        partial = s.allowed[k]
        for at in range(step, later):
            s.partners[later - at, k] = v.load_int(rows, np.int64(s.partials[partial, 0]))
            partial = np.int64(s.partials[partial, 1])
        s.chosen[k] = partial if later == last else v.load_int(rows, np.int64(s.partials[partial, 0]))
