"""The events that matches wait in, each an entry of `ScanArrays.opened`: a chain for each slot of keys."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import part
from cerflow.engine.kernels.rows.keys import tied_words
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.scan import formed, value_of
from cerflow.engine.kernels.scan.texts import equal_texts
from cerflow.engine.scan import layout

#: The bits of the number of an entry.
ENTRY = (1 << 32) - 1


@part
def of_other_key(s, row, key, entry, address):
    """The first entry from an ``entry`` on that does not have the ``key`` of a ``row``; -1 if there is none."""
    entries, rows = v.start_of(s.opened), v.start_of(s.slot_of)
    while entry >= 0 and v.load_word(entries, 2 * entry) >> 32 == key:
        if not has_key_of(s, row, np.int64(v.load_int(rows, entry)), address):
            break
        entry = (v.load_word(entries, 2 * entry) & ENTRY) - 1
    return entry


@part
def earliest_entry(s, head, entries, key, row, bound, address):
    """The earliest entry of a ``key`` within a ``bound``, -1 if there is none; and how many were looked at.

    The word at ``head`` has the numbers of the earliest entry and, above it, of the latest one, plus one; 0: none.
    """
    rows, word, looked = v.start_of(s.slot_of), v.load_word(head, 0), np.int64(0)
    entry = (word & ENTRY) - 1
    while entry >= 0 and v.load_word(entries, 2 * entry + 1) <= bound:
        entry = (v.load_word(entries, 2 * entry) & ENTRY) - 1
    v.store_word(head, 0, (word >> 32 << 32 | entry + 1) if entry >= 0 else np.int64(0))
    while entry >= 0:
        looked += 1
        word, other = v.load_word(entries, 2 * entry), np.int64(v.load_int(rows, entry))
        if word >> 32 == key and has_key_of(s, row, other, address):
            return entry, looked
        entry = (word & ENTRY) - 1
    return np.int64(-1), looked


@part
def queue(s, head, entries, entry, key, row, measure):
    """Put an ``entry`` behind all others of the slot at ``head``; see `earliest_entry`."""
    word = v.load_word(head, 0)
    v.store_word(entries, 2 * entry, key << 32)
    v.store_word(entries, 2 * entry + 1, measure)
    v.store_int(v.start_of(s.slot_of), entry, row)
    if word != 0:
        last = (word >> 32) - 1
        v.store_word(entries, 2 * last, v.load_word(entries, 2 * last) | entry + 1)
    v.store_word(head, 0, (entry + 1) << 32 | (word & ENTRY if word != 0 else entry + 1))


@part
def has_key_of(s, row, other, address):
    """Whether two rows have the same key of the partition, none of which is null; equal hashes do not show that."""
    words_at = tied_words(s)
    if s.control[layout.WITHIN] > 0:
        return True
    if words_at != 0:
        return v.load_word(words_at, row) == v.load_word(words_at, other)
    same = True
    for k in range(s.keyed.shape[0]):
        form, column = s.keyed[k, layout.O_FORM], s.keyed[k, layout.O_COLUMN]
        if s.keyed[k, layout.O_TO] == layout.TO_KEYS and same:
            if form == layout.AS_TEXT:
                same = equal_texts(s.texts, column, row, column, other) == 1
            else:
                one = formed(value_of(s, s.keyed[k], row, address), form, 0)
                same = one == formed(value_of(s, s.keyed[k], other, address), form, 0)
    return same
