"""Matches of two events, the first of which waits for the second, found in the rows of a batch."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel, part
from cerflow.engine.kernels.scan import leads
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.blocks import compute_link
from cerflow.engine.kernels.scan.flow import rows_in_window, slots_for
from cerflow.engine.kernels.scan.keys import enter_slot, is_entered, list_rows, shift_of_slots
from cerflow.engine.kernels.scan.leads import BOUND, MEASURE, window_value
from cerflow.engine.kernels.scan.scan import formed, mark_all, value_of
from cerflow.engine.kernels.scan.texts import equal_texts
from cerflow.engine.layout import EARLIEST, EVERYTHING, LATEST
from cerflow.engine.scan import layout

#: The automaton has to read all rows.
NOT_FOUND = -1
#: `pairs` is full.
_FULL = -2
#: Pairs that may be looked at besides some for each row with guards.
_SOME = 1 << 12
#: Pairs that are compared together, at least.
_TOGETHER = 1 << 13
#: The bits of the number of an entry.
_ENTRY = (1 << 32) - 1


@kernel
def find_pairs(address, batch, count, opening, ending, carried, ends, choice, most):
    """Write the matches in a batch of ``count`` rows to ``pairs``: the last row ascending, then the first descending.

    For the first row of a match one of the guards ``opening`` holds, for the last one of the guards ``ending``; both
    agree on the outputs ``keyed``, fulfil the ``links``, and lie within the window that ``reach`` measures. Of the
    matches of a last row there may be a ``choice``: `EARLIEST` and `LATEST` say which first row they have. Runs may be
    ``carried`` from before the batch, and later events may end others unless the stream ``ends`` with it: the matches
    are missing whose rows both lie before a first row or from a second one on.

    Returns what stopped it, as ``scan`` does, to go on from `ROW`, from which on rows have no ``guards`` yet; how many
    matches are found, or `NOT_FOUND` if more than ``most`` pairs have to be looked at for each row with guards; and
    these two rows. Without room for that many `OPENINGS` and for more pairs it stops with `NO_EVENTS`.
    """
    s = v.scan_at(address)
    control, zero = s.control, np.int64(0)
    v.locate(s.columns, s.texts, batch)
    guards = v.start_of(s.guards)
    reason = mark_all(s, count, address)
    if reason != layout.SCANNED:
        return reason, zero, zero, zero
    for k in range(8):
        v.store_word(guards + count, k, zero)
    control[layout.LOOKED_AHEAD] = 1
    first, stop, edge = zero, np.int64(count), window_value(s, BOUND, count - 1)
    if carried != 0:
        first = leads.first_behind(s, BOUND, count, window_value(s, MEASURE, 0) - 1)
    if ends == 0:
        stop = leads.first_behind(s, MEASURE, count, edge)
    found = np.int64(NOT_FOUND)
    control[layout.OPENINGS] = v.rows_with(guards, count, np.int64(opening))
    # No match may join what lies before with what lies behind.
    whole = first == 0 and stop == count
    apart = (
        first == 0
        or stop == count
        or window_value(s, BOUND, min(stop, count - 1)) >= window_value(s, MEASURE, max(first - 1, 0))
    )
    if whole or (choice == EVERYTHING and apart and 4 * (first + count - stop) <= count):
        if control[layout.OPENINGS] > s.opened.shape[0]:
            return layout.NO_EVENTS, found, first, stop
        share = np.float64(v.rows_with(guards, count, np.int64(255))) / count
        control[layout.SLOTS] = slots_for(s, rows_in_window(s, count) * share)
        found = _pass(s, count, guards, opening, ending, first, stop, choice, most, address)
    return layout.NO_EVENTS if found == _FULL else layout.SCANNED, found, first, stop


@part
def _pass(s, count, guards, opening, ending, first, stop, choice, most, address):
    """Write all matches; returns how many there are, or why they are not known.

    An event that opens matches becomes an entry of `opened`, with its row in `slot_of`. The entries of a slot of
    `flows` are a chain, the latest first; 0 ends it, else there is the number of the next one, plus one.
    """
    found = related = relevant = opened = looked = np.int64(0)
    for k in range(s.entered.shape[0]):
        s.entered[k] = 0
    width, shift, times = s.flows.shape[1], shift_of_slots(s), leads.window_words(s)
    chosen, keys, measures = v.start_of(s.numbers), v.start_of(s.at), v.start_of(s.measures)
    heads, entries = v.start_of(s.flows), v.start_of(s.opened)
    rows, pairs, room = v.start_of(s.slot_of), v.start_of(s.pairs), s.pairs.shape[0]
    # One entry of a key is the only one that counts: the latest, or the earliest that is in the window.
    latest, earliest = choice == LATEST and s.links.shape[0] == 0, choice == EARLIEST and s.links.shape[0] == 0
    for begin in range(0, count, layout.STRETCH):
        some = list_rows(s, begin, min(begin + layout.STRETCH, count), guards, width, False, False, address)
        relevant += some
        allowed = most * relevant + _SOME
        for n in range(some):
            v.store_word(chosen, n, s.chosen[n])
            if v.load_word(keys, n) >= 0:
                entry = v.load_word(heads, width * (v.load_word(keys, n) >> shift))
                v.fetch(entries + 16 * (entry & _ENTRY))
        for n in range(some):
            row, key, measure = v.load_word(chosen, n), v.load_word(keys, n), v.load_word(measures, n)
            slot = max(key, np.int64(0)) >> shift
            head, own, known = heads + 8 * width * slot, v.load_byte(guards, row), is_entered(s, slot)
            if earliest:
                if key >= 0 and not known:
                    v.store_word(head, 0, np.int64(0))
                    enter_slot(s, slot)
                if own & ending != 0 and key >= 0:
                    if found >= room:
                        return np.int64(_FULL)
                    bound = leads.bound_of(s, row, measure, times)
                    other, steps = _earliest(s, head, entries, key, row, bound, address)
                    looked += steps
                    if looked > allowed:
                        return np.int64(NOT_FOUND)
                    if other >= 0:
                        v.store_int(pairs, 2 * found, other)
                        v.store_int(pairs, 2 * found + 1, row)
                        found += 1
                if own & opening != 0 and key >= 0:
                    _queue(s, head, entries, opened, key, row, measure)
                    opened += 1
                continue
            entry = v.load_word(head, 0) if known and key >= 0 else np.int64(-1)
            if own & ending != 0 and entry >= 0:
                bound, outside = leads.bound_of(s, row, measure, times), row < first or row >= stop
                before = np.int64(-1)
                while entry >= 0 and v.load_word(entries, 2 * entry + 1) > bound:
                    looked += 1
                    if looked > allowed:
                        return np.int64(NOT_FOUND)
                    word = v.load_word(entries, 2 * entry)
                    before, entry = entry, (word & _ENTRY) - 1
                    if word >> 32 != key:
                        continue
                    other = v.load_int(rows, before)
                    if outside and (other < first or other >= stop):
                        continue
                    if found >= room:
                        found = related = _related(s, related, found, choice, address)
                    if found >= room:
                        return np.int64(_FULL)
                    v.store_int(pairs, 2 * found, other)
                    v.store_int(pairs, 2 * found + 1, row)
                    found += 1
                    if latest and _has_key_of(s, row, other, address):
                        break
                if entry >= 0 and v.load_word(entries, 2 * entry + 1) <= bound:
                    # Later events have no greater window either.
                    if before < 0:
                        v.store_word(head, 0, np.int64(-1))
                    else:
                        v.store_word(entries, 2 * before, v.load_word(entries, 2 * before) >> 32 << 32)
                if found - related >= _TOGETHER:
                    found = related = _related(s, related, found, choice, address)
            if own & opening != 0 and key >= 0:
                next_entry = v.load_word(head, 0) if known else np.int64(-1)
                v.store_word(entries, 2 * opened, key << 32 | (next_entry + 1))
                v.store_word(entries, 2 * opened + 1, measure)
                v.store_int(rows, opened, row)
                v.store_word(head, 0, opened)
                enter_slot(s, slot)
                opened += 1
    return found if earliest else _related(s, related, found, choice, address)


@part
def _earliest(s, head, entries, key, row, bound, address):
    """The row of the earliest entry of a ``key`` within a ``bound``, -1 if there is none; and how many were looked at.

    The word at ``head`` has the numbers of the earliest entry and, above it, of the latest one, plus one; 0: none.
    """
    rows, word, looked = v.start_of(s.slot_of), v.load_word(head, 0), np.int64(0)
    entry = (word & _ENTRY) - 1
    while entry >= 0 and v.load_word(entries, 2 * entry + 1) <= bound:
        entry = (v.load_word(entries, 2 * entry) & _ENTRY) - 1
    v.store_word(head, 0, (word >> 32 << 32 | entry + 1) if entry >= 0 else np.int64(0))
    while entry >= 0:
        looked += 1
        word, other = v.load_word(entries, 2 * entry), np.int64(v.load_int(rows, entry))
        if word >> 32 == key and _has_key_of(s, row, other, address):
            return other, looked
        entry = (word & _ENTRY) - 1
    return np.int64(-1), looked


@part
def _queue(s, head, entries, entry, key, row, measure):
    """Put an ``entry`` behind all others; see `_earliest`."""
    word = v.load_word(head, 0)
    v.store_word(entries, 2 * entry, key << 32)
    v.store_word(entries, 2 * entry + 1, measure)
    v.store_int(v.start_of(s.slot_of), entry, row)
    if word != 0:
        last = (word >> 32) - 1
        v.store_word(entries, 2 * last, v.load_word(entries, 2 * last) | entry + 1)
    v.store_word(head, 0, (entry + 1) << 32 | (word & _ENTRY if word != 0 else entry + 1))


@part
def _related(s, begin, end, choice, address):
    """Keep those of the pairs ``[begin, end)`` that are matches, by ``choice``; returns where they end."""
    chosen, others, kept = s.chosen, s.partners, begin
    for first in range(begin, end, layout.STRETCH):
        some = min(end - first, layout.STRETCH)
        for n in range(some):
            others[n], chosen[n] = s.pairs[first + n, 0], s.pairs[first + n, 1]
        for n in range(s.links.shape[0]):
            compute_link(s, n, some)
            left, some = some, np.int64(0)
            for k in range(left):
                chosen[some], others[some] = chosen[k], others[k]
                some += np.int64(s.wide[0, k] == 1)
        for k in range(some):
            # This takes longer than most conditions.
            if not _has_key_of(s, chosen[k], others[k], address):
                continue
            again = choice != EVERYTHING and kept > 0 and s.pairs[kept - 1, 1] == chosen[k]
            if not again:
                s.pairs[kept, 0], s.pairs[kept, 1] = others[k], chosen[k]
                kept += 1
            elif choice == EARLIEST:
                s.pairs[kept - 1, 0] = others[k]
    return kept


@part
def _has_key_of(s, row, other, address):
    """Whether two rows have the same key of the partition, none of which is null; equal hashes do not show that."""
    same = True
    for k in range(s.keyed.shape[0]):
        form, column = s.keyed[k, layout.O_FORM], s.keyed[k, layout.O_COLUMN]
        if s.keyed[k, layout.O_TO] == layout.TO_KEYS and same:
            if form == layout.AS_TEXT:
                same = equal_texts(s.texts, column, row, other) == 1
            else:
                one = formed(value_of(s, s.keyed[k], row, address), form, 0)
                same = one == formed(value_of(s, s.keyed[k], other, address), form, 0)
    return same
