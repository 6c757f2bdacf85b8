"""The keys of rows: their numbers, by which the events of each key are a stream of their own.

A ``key`` is the number of the column of text that is the key, or `NO_KEYS` or `HASHED_KEYS`.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.rows.leads import window_measure, window_words
from cerflow.engine.kernels.scan import texts
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.marks import list_marked
from cerflow.engine.kernels.scan.scan import formed, is_missing, output_words, value_of
from cerflow.engine.kernels.scan.texts import IN_CACHES, SHORTER, mixed, slot_for
from cerflow.engine.layout import NULL
from cerflow.engine.scan import layout

#: The bits of a row in `ScanArrays.listed`.
_ROWS = (1 << 32) - 1


@inlined
def key_words(s, key):
    """Where the words of a ``key`` are, if it is one column of integers as they are; or else 0.

    ``s`` are the arrays of the scan.
    """
    single = key == layout.HASHED_KEYS and s.members.shape[1] == 1
    return output_words(s, s.outputs[0]) if single else np.int64(0)


@part
def group_of(s, row, words_at):
    """The number of the key of a ``row``, 0 if it has none; -1 if there is no room for it, as `TEXT` says.

    ``s`` are the arrays of the scan; see `key_words` for ``words_at``.
    """
    h = np.uint64(0)
    words = s.members.shape[1]
    if words_at != 0:
        s.members[0, 0] = v.load_word(words_at, row)
        h = mixed(h, s.members[0, 0])
    for k in range(words if words_at == 0 else 0):
        form, column = s.outputs[k, layout.O_FORM], s.outputs[k, layout.O_COLUMN]
        if form == layout.AS_TEXT:
            word = texts.entry_of(s.texts, column, row)
            if word < 0:
                s.control[layout.TEXT] = column
                return np.int64(-1)
            if word == 0:
                return np.int64(0)
        else:
            word = formed(v.word_of(s.columns, column, row, s.control[layout.FIRST]), form, 0)
            if is_missing(word, form):
                return np.int64(0)
        s.members[0, k] = word
        h = mixed(h, word)
    mask = s.slots.shape[0] - 1
    slot = slot_for(h, mask)
    # Half of the table is free.
    while s.slots[slot] != 0:
        g = np.int64(s.slots[slot])
        same = True
        for k in range(words):
            same &= s.members[g, k] == s.members[0, k]
        if same:
            return g
        slot = (slot + 1) & mask
    g = s.control[layout.GROUPS] + 1
    if g >= s.members.shape[0]:
        s.control[layout.TEXT] = layout.HASHED_KEYS
        return np.int64(-1)
    s.control[layout.GROUPS] = s.slots[slot] = g
    for k in range(words):
        s.members[g, k] = s.members[0, k]
    return g


@inlined
def key_number(s, row, key, words_at):
    """The number of the key of a ``row``, 0 if it has none; -1 if there is no room for it, as `TEXT` says.

    ``s`` are the arrays of the scan, ``key`` is as above; see `key_words` for ``words_at``.
    """
    if key == layout.NO_KEYS:
        return np.int64(1)
    if key == layout.HASHED_KEYS:
        if words_at != 0:
            # Most keys have been seen, and are in their first slot.
            word = v.load_word(words_at, row)
            slot = slot_for(mixed(np.uint64(0), word), s.slots.shape[0] - 1)
            g = v.load_int(v.start_of(s.slots), slot)
            if g != 0 and v.load_word(v.start_of(s.members), g) == word:
                return g
        return group_of(s, row, words_at)
    g = texts.entry_of(s.texts, key, row)
    if g < 0 or g >= s.groups.shape[0]:
        s.control[layout.TEXT] = key
        return np.int64(-1)
    return g


@part
def fetch_groups(s, count, key, words_at):
    """Have what is kept by ``key`` under way for ``count`` `chosen` rows, if there are many keys.

    ``s`` are the arrays of the scan; see `key_words` for ``words_at``.
    """
    if key >= 0:
        texts.fetch_entries(s, key, count)
        return
    mask, chosen, at = s.slots.shape[0] - 1, v.start_of(s.chosen), v.start_of(s.at)
    slots, members, groups = v.start_of(s.slots), v.start_of(s.members), v.start_of(s.groups)
    some = count if words_at != 0 and mask >= IN_CACHES else np.int64(0)
    for n in range(some):
        slot = slot_for(mixed(np.uint64(0), v.load_word(words_at, v.load_word(chosen, n))), mask)
        v.store_word(at, n, slot)
        v.fetch(slots + 4 * slot)
    for n in range(some):
        g = v.load_int(slots, v.load_word(at, n))
        v.fetch(members + 8 * g)
        v.fetch(groups + 4 * layout.GROUP_WORDS * g)


@inlined
def tied_words(s):
    """Where the words are on which matches agree, if these are one column of integers as they are; or else 0.

    ``s`` are the arrays of the scan.
    """
    return output_words(s, s.keyed[0]) if s.keyed.shape[0] == 1 else np.int64(0)


@inlined
def _hash_of_key(s, row, words_at, address):
    """A hash of what all events of a match agree on, of 31 bits; -1 if the event of a ``row`` has no such value.

    See `tied_words` for ``words_at``.
    """
    word = v.load_word(words_at, row) if words_at != 0 else np.int64(NULL)
    return np.int64(mixed(np.uint64(0), word) >> SHORTER) if word != NULL else _hash(s, row, address)


@part
def _hash_codes(s, count, out):
    """Write these hashes of ``count`` `chosen` rows, if they are of codes of one dictionary; returns whether.

    Where keys have numbers, each becomes a hash of its own.
    """
    shift, ordinals = shift_of_slots(s), v.start_of(s.ordinals)
    for n in range(count if s.control[layout.WITHIN] > 0 else 0):
        v.store_word(out, n, v.load_word(ordinals, s.chosen[n]) >> 32 << shift)
    if s.control[layout.WITHIN] > 0:
        return True
    if s.keyed.shape[0] != 1 or s.keyed[0, layout.O_FORM] != layout.AS_TEXT:
        return False
    words = s.texts[s.keyed[0, layout.O_COLUMN]]
    codes, size = words[layout.T_DATA] + 4 * words[layout.T_OFFSET], words[layout.T_ROOM] - 1
    if words[layout.T_LAYOUT] != layout.INT32 or words[layout.T_VALID] != 0:
        return False
    for n in range(count):
        code = v.load_int(codes, s.chosen[n])
        key = np.int64(mixed(np.uint64(0), 1 + code) >> SHORTER)
        # Nothing promises that codes are in their dictionary.
        v.store_word(out, n, key if np.uint64(code) < np.uint64(size) else np.int64(-1))
    return True


@part
def _hash(s, row, address):
    h = np.uint64(0)
    place = np.int64(-1)
    known = True
    for k in range(s.keyed.shape[0]):
        of_partition = s.keyed[k, layout.O_TO] == layout.TO_KEYS
        alternative = of_partition and s.keyed[k, layout.O_PLACE] == place
        if alternative and known:
            continue  # another column has the key already
        if not alternative and not known:
            return np.int64(-1)
        place = s.keyed[k, layout.O_PLACE] if of_partition else np.int64(-1)
        word, missing = _word_for_hash(s, s.keyed[k], row, address)
        known = not missing or not of_partition
        if known:
            h = mixed(h, word)
    return np.int64(h >> SHORTER) if known else np.int64(-1)


@inlined
def _word_for_hash(s, output, row, address):
    """A word for the value of an ``output``, the same for equal values; and whether the value is null."""
    form = output[layout.O_FORM]
    if form == layout.AS_TEXT:
        word = texts.hash_of_text(s.texts, output[layout.O_COLUMN], row)
        return word, word == 0
    word = formed(value_of(s, output, row, address), form, output[layout.O_SIZE])
    return word, is_missing(word, form)


@part
def hash_of_values(s, begin, end, row, address):
    """A hash of 31 bits of the values ``[begin, end)`` of `join_keys` for a ``row``; -1 if one of them is null.

    ``s`` are the arrays of the scan at ``address``.
    """
    h = np.uint64(0)
    for k in range(begin, end):
        word, missing = _word_for_hash(s, s.join_keys[k], row, address)
        if missing:
            return np.int64(-1)
        h = mixed(h, word)
    return np.int64(h >> SHORTER)


@inlined
def shift_of_slots(s):
    """How far hashes of keys are shifted to give a slot of `ScanArrays.flows`; ``s`` are the arrays of the scan."""
    return np.int64(31) - v.trailing_zeros(s.control[layout.SLOTS])


@inlined
def is_entered(s, slot):
    """Whether some row has entered a ``slot`` of `ScanArrays.flows`; ``s`` are the arrays of the scan."""
    words = s.entered.shape[0] >> 1
    return (s.entered[slot >> 6] | s.entered[words + (slot >> 6)]) >> (slot & 63) & 1 == 1


@inlined
def enter_slot(s, slot):
    """Note that a row has entered a ``slot``; see `is_entered`."""
    s.entered[slot >> 6] |= np.int64(1) << (slot & 63)


@part
def _fetch_words(s, count, words):
    """Have the ``words`` of a column under way for ``count`` `chosen` rows; ``s`` are the arrays of the scan."""
    for n in range(count if words != 0 else 0):
        v.fetch(words + 8 * s.chosen[n])


@inlined
def begin_list(s, count):
    """Empty `listed`, which `list_before` fills from its end; ``count`` is the number of rows of the batch.

    ``s`` are the arrays of the scan.
    """
    s.control[layout.LISTED] = at = np.int64(s.listed.shape[0])
    if s.keyed.shape[0] > 0:
        s.list_begins[(count + layout.STRETCH - 1) // layout.STRETCH] = at


@inlined
def list_before(s, row, key, measure):
    """Put a row before all others of `listed`; ``s`` are the arrays of the scan."""
    s.control[layout.LISTED] -= 1
    s.listed[s.control[layout.LISTED]] = key << 32 | row
    s.list_measures[s.control[layout.LISTED]] = measure


@inlined
def end_stretch(s, begin):
    """Note that `listed` now begins with the stretch of rows from ``begin`` on; ``s`` are the arrays of the scan."""
    s.list_begins[begin // layout.STRETCH] = s.control[layout.LISTED]


@part
def list_rows(s, begin, end, guards, width, valued, known, address):
    """List the rows ``[begin, end)`` that have ``guards`` in `chosen`, with their keys in `at`, and `measures`.

    They are a stretch, or what is left of the last one. They are ``known`` if `listed` has them. What `_close` and
    `_follow` read of them is under way afterwards: cells of this ``width``, and values if they are ``valued``. ``s``
    are the arrays of the scan at ``address``. Returns how many rows there are.
    """
    keyed, shift, times = s.keyed.shape[0] > 0, shift_of_slots(s), window_words(s)
    chosen, hashes, flows = v.start_of(s.chosen), v.start_of(s.at), v.start_of(s.flows)
    measures, listed, list_measures = v.start_of(s.measures), v.start_of(s.listed), v.start_of(s.list_measures)
    stretch, some = begin // layout.STRETCH, np.int64(0)
    if keyed and known:
        for n in range(s.list_begins[stretch], s.list_begins[stretch + 1]):
            word = v.load_word(listed, n)
            row = word & _ROWS
            v.store_word(chosen, some, row)
            v.store_word(hashes, some, word >> 32)
            v.store_word(measures, some, v.load_word(list_measures, n))
            some += np.int64(v.load_byte(guards, row) != 0)
        for n in range(some if width > 0 else 0):
            v.fetch(flows + 8 * width * (v.load_word(hashes, n) >> shift))
    else:
        words_at, some = tied_words(s), list_marked(s, begin, end, guards)
        _fetch_words(s, some, words_at)
        _fetch_words(s, some, times)
        for k in range(s.keyed.shape[0] if s.control[layout.WITHIN] == 0 else 0):
            if s.keyed[k, layout.O_FORM] == layout.AS_TEXT:
                texts.fetch_letters(s, s.keyed[k, layout.O_COLUMN], some)
        hashed = _hash_codes(s, some, hashes)
        for n in range(some):
            row, key = v.load_word(chosen, n), np.int64(0)
            measure = window_measure(s, row, times)
            if keyed:
                key = v.load_word(hashes, n) if hashed else _hash_of_key(s, row, words_at, address)
                v.fetch(flows + 8 * width * (key >> shift))
            v.store_word(hashes, n, key)
            v.store_word(measures, n, measure)
    for value in range(s.values.shape[0] if valued else 0):
        _fetch_words(s, some, s.values[value, layout.VALUE_DATA])
    return some
