"""Texts as entries: indices of a dictionary, or numbers in a hash table that keeps the texts seen so far."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.scan import layout

MIX = np.uint64(layout.MIX)
#: A hash of 31 bits is a longer one without its lowest bits.
SHORTER = np.uint64(33)
#: Slots of a hash table that the caches hold.
IN_CACHES = 1 << 12


@part
def eight_bytes(data, left):
    """The first eight bytes at an address, or as many as are ``left``, then zeros."""
    if left >= 8:
        return v.load_word(data, 0)
    word = np.uint64(0)
    for k in range(left):
        word |= np.uint64(v.load_byte(data, k)) << np.uint64(8 * k)
    return np.int64(word)


@inlined
def head_of(letters, size, start, length):
    """The first eight bytes of the text of a ``length`` from ``start`` on, with zeros behind a shorter one.

    ``letters`` has ``size`` bytes.
    """
    if length < 8 and start + 8 <= size:
        return v.load_word(letters + start, 0) & ((np.int64(1) << 8 * length) - 1)
    return eight_bytes(letters + start, length)


@inlined
def view_at(views, buffers, k):
    """Where the text of number ``k`` of some ``views`` begins, and its length; ``buffers`` are addresses of letters.

    Eight bytes can be read from there, and if the text is short the others are zero.
    """
    view = views + 16 * k
    length, begin = v.load_int(view, 0), view + 4
    if length > layout.IN_VIEW:
        begin = v.load_word(buffers, v.load_int(view, 2)) + v.load_int(view, 3)
    return begin, length


@inlined
def text_at(texts, t, row):
    """Where the text of a ``row`` begins, its length, and its first eight bytes, with zeros behind a shorter one."""
    at, letters = texts[t, layout.T_OFFSET] + row, texts[t, layout.T_BYTES]
    if texts[t, layout.T_LAYOUT] == layout.TEXT_VIEW:
        begin, length = view_at(texts[t, layout.T_DATA], letters, at)
        return begin, length, v.load_word(begin, 0)
    start = v.text_offset(texts, t, at)
    length = v.text_offset(texts, t, at + 1) - start
    return letters + start, length, head_of(letters, texts[t, layout.T_SIZE], start, length)


@inlined
def mixed(h, word):
    """A hash ``h`` with another ``word``, of which both halves count: the lower half of a float may be zero."""
    word = np.uint64(word)
    half = np.uint64(32)
    return (h ^ (h >> half) ^ word ^ (word >> half)) * MIX


@inlined
def slot_for(h, mask):
    """Where a hash is first looked for in a table with a ``mask``: its highest bits spread numbers in a row evenly."""
    return np.int64(h >> np.uint64(v.leading_zeros(mask)))


@inlined
def hash_of(begin, length, head):
    """The hash of the text of a ``length`` at address ``begin``, whose first eight bytes are ``head``."""
    h = mixed(np.uint64(length), head)
    for k in range(8, length, 8):
        # The last eight bytes may have been read in part.
        h = mixed(h, v.load_word(begin + min(k, length - 8), 0))
    return h


@inlined
def _known(texts, t, row):
    """The entry of null or of an index of a dictionary; -1 for other texts."""
    at = texts[t, layout.T_OFFSET] + row
    if texts[t, layout.T_VALID] != 0 and not v.has_bit(texts[t, layout.T_VALID], at):
        return np.int64(0)
    if texts[t, layout.T_LAYOUT] >= layout.TEXT32:
        return np.int64(-1)
    entry = 1 + v.integer(texts[t, layout.T_LAYOUT], texts[t, layout.T_DATA], at)
    # Nothing promises that indices are in their dictionary.
    return entry if np.uint64(entry) < np.uint64(texts[t, layout.T_ROOM]) else np.int64(0)


@inlined
def short_entry(letters, size, table, start, length):
    """The entry of a text of at most eight bytes, if it is where it is first looked for; or else 0.

    ``letters`` are the bytes of a column, ``size`` of them, and ``table`` are its slots and their mask. The text begins
    at ``start`` and has this ``length``.
    """
    if length > 8 or start + 8 > size:
        return np.int64(0)
    head = v.load_word(letters + start, 0)
    if length < 8:
        head &= (np.int64(1) << 8 * length) - 1
    slots, mask = table
    slot = slots + 8 * layout.SLOT_WORDS * slot_for(mixed(np.uint64(length), head), mask)
    same = v.load_word(slot, layout.S_WORD) == head and v.load_word(slot, layout.S_LENGTH) == length
    return v.load_word(slot, layout.S_ENTRY) if same else np.int64(0)


@part
def hash_of_text(texts, t, row):
    """A number of a text, the same for equal ones within a batch; 0 for null."""
    entry = _known(texts, t, row)
    if entry >= 0:
        return entry
    begin, length, head = text_at(texts, t, row)
    return np.int64(hash_of(begin, length, head) | np.uint64(1))


@part
def equal_texts(texts, t, row, u, other):
    """Whether column ``t`` of ``texts`` has in a ``row`` the text of column ``u`` in an ``other``; -1 if one has none.

    If ``t`` and ``u`` differ, neither column may be a dictionary.
    """
    one, two = _known(texts, t, row), _known(texts, u, other)
    if one == 0 or two == 0:
        return np.int64(-1)
    if one > 0:
        return np.int64(one == two)
    begin, length, head = text_at(texts, t, row)
    start, size, first = text_at(texts, u, other)
    return np.int64(length == size and head == first and same_rest(begin, start, length))


@inlined
def same_rest(one, other, length):
    """Whether the texts of a ``length`` at ``one`` and at the ``other`` address are the same behind eight bytes."""
    at = np.int64(8)
    while at < length and _same_bytes(one, other, min(at, length - 8)):
        at += 8
    return at >= length


@inlined
def same_bytes(one, other, length):
    """Whether the texts at ``one`` and the ``other`` address, of a ``length`` of eight bytes or more, are the same."""
    return _same_bytes(one, other, 0) and same_rest(one, other, length)


@inlined
def bounds_of(offsets, wide, k):
    """Where text ``k`` begins, and its length; ``offsets`` is the address of bounds, of 64 bits if ``wide``."""
    start = v.load_word(offsets, k) if wide else v.load_int(offsets, k)
    return start, (v.load_word(offsets, k + 1) if wide else v.load_int(offsets, k + 1)) - start


@part
def entry_of(texts, t, row):
    """The entry of a text; -1 if it is new and there is no room for it."""
    entry = _known(texts, t, row)
    if entry >= 0:
        return entry
    begin, length, head = text_at(texts, t, row)
    word, slot = _searched(begin, length, head, _table(texts, t))
    entry = v.load_word(slot, layout.S_ENTRY)
    return entry if entry > 0 else _new_entry(texts, t, row, begin, length, word, slot)


@part
def entries_of(texts, t, begin, count, entries):
    """Find the texts of ``count`` rows from row ``begin`` on, and write their ``entries``.

    Returns False where the table has no room for a new text.
    ``texts`` are those of the scan, and ``t`` is the number of a column.
    """
    data, at = texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin
    letters, size, table = texts[t, layout.T_BYTES], texts[t, layout.T_SIZE], _table(texts, t)
    plain = _is_plain(texts, t)
    for k in range(count):
        entry = np.int64(0)
        start = v.load_int(data, at + k) if plain else size
        if start + 8 <= size:
            length = v.load_int(data, at + k + 1) - start
            head = v.load_word(letters + start, 0)
            if length < 8:
                head &= (np.int64(1) << 8 * length) - 1
            _, slot = _searched(letters + start, length, head, table)
            entry = v.load_word(slot, layout.S_ENTRY)
        if entry == 0:
            entry = entry_of(texts, t, begin + k)
            if entry < 0:
                return False
        entries[k] = entry
    return True


@inlined
def _is_plain(texts, t):
    """Whether the texts of a column lie one after another, and none is null."""
    return texts[t, layout.T_VALID] == 0 and texts[t, layout.T_LAYOUT] == layout.TEXT32


@part
def fetch_letters(s, t, count):
    """Have the texts of ``count`` `chosen` rows under way, or their indices in a dictionary.

    ``s`` are the arrays of the scan, and ``t`` is the number of a column.
    """
    plain = _is_plain(s.texts, t)
    indices = s.texts[t, layout.T_LAYOUT] == layout.INT32
    data = s.texts[t, layout.T_DATA] + 4 * s.texts[t, layout.T_OFFSET]
    for n in range(count if plain or indices else 0):
        v.fetch(s.texts[t, layout.T_BYTES] + v.load_int(data, s.chosen[n]) if plain else data + 4 * s.chosen[n])
    views = s.texts[t, layout.T_DATA] + 16 * s.texts[t, layout.T_OFFSET]
    for n in range(count if s.texts[t, layout.T_LAYOUT] == layout.TEXT_VIEW else 0):
        v.fetch(views + 16 * s.chosen[n])


@part
def fetch_entries(s, t, count):
    """Have the entries of the texts of ``count`` `chosen` rows under way, and what is kept by key for these.

    ``s`` are the arrays of the scan, and ``t`` is the number of a column. Where the table is in the caches, or texts
    lie otherwise, nothing is done.
    """
    texts, chosen, at = s.texts, v.start_of(s.chosen), v.start_of(s.at)
    slots, mask, kept, places = _table(texts, t)
    letters, size, groups = texts[t, layout.T_BYTES], texts[t, layout.T_SIZE], v.start_of(s.groups)
    data = texts[t, layout.T_DATA] + 4 * texts[t, layout.T_OFFSET]
    plain, views = _is_plain(texts, t), texts[t, layout.T_LAYOUT] == layout.TEXT_VIEW and texts[t, layout.T_VALID] == 0
    some = count if (plain or views) and mask >= IN_CACHES else np.int64(0)
    fetch_letters(s, t, some)
    for n in range(some if views else 0):
        begin, length, head = text_at(texts, t, v.load_word(chosen, n))
        slot = slots + 8 * layout.SLOT_WORDS * slot_for(hash_of(begin, length, head), mask)
        v.store_word(at, n, slot)
        v.fetch(slot)
    for n in range(some if plain else 0):
        row = v.load_word(chosen, n)
        start = v.load_int(data, row)
        slot, length = slots, v.load_int(data, row + 1) - start
        if start + 8 <= size:
            number = slot_for(
                hash_of(
                    letters + start, length, head_of(texts[t, layout.T_BYTES], texts[t, layout.T_SIZE], start, length)
                ),
                mask,
            )
            slot = slots + 8 * layout.SLOT_WORDS * number
        v.store_word(at, n, slot)
        v.fetch(slot)
    for n in range(some):
        entry = v.load_word(v.load_word(at, n), layout.S_ENTRY)
        v.store_word(at, n, entry)
        v.fetch(places + 16 * entry)
        v.fetch(groups + 4 * layout.GROUP_WORDS * entry)
    for n in range(some):
        v.fetch(kept + v.load_word(places, 2 * v.load_word(at, n)))


@inlined
def _table(texts, t):
    """The hash table of a column: its slots, the mask, the bytes of entries, and where these begin among them."""
    row = texts[t]
    return row[layout.T_SLOTS], row[layout.T_MASK], row[layout.T_KEPT], row[layout.T_ENTRIES]


@inlined
def _searched(begin, length, head, table):
    """The first word of the slot for a text of this ``length``, and where the slot is, which may be free."""
    slots, mask, kept, places = table
    h = hash_of(begin, length, head)
    # Long texts often begin alike.
    word = head if length <= 8 else np.int64(h)
    number = slot_for(h, mask)
    # Half of the table is free.
    while True:
        slot = slots + 8 * layout.SLOT_WORDS * number
        entry = v.load_word(slot, layout.S_ENTRY)
        if entry == 0:
            return word, slot
        if v.load_word(slot, layout.S_WORD) == word and v.load_word(slot, layout.S_LENGTH) == length:
            other = kept + v.load_word(places, 2 * entry)
            k = np.int64(0 if length > 8 else 8)
            while k < length and _same_bytes(begin, other, min(k, length - 8)):
                k += 8
            if k >= length:
                return word, slot
        number = (number + 1) & mask


@inlined
def _same_bytes(one, other, at):
    return v.load_word(one + at, 0) == v.load_word(other + at, 0)


@part
def _new_entry(texts, t, row, begin, length, word, slot):
    entry = texts[t, layout.T_COUNT]
    kept = texts[t, layout.T_USED]
    if (
        2 * entry > texts[t, layout.T_MASK]
        or entry >= texts[t, layout.T_ROOM]
        or kept + length > texts[t, layout.T_LIMIT]
    ):
        return np.int64(-1)
    v.store_word(slot, layout.S_WORD, word)
    v.store_word(slot, layout.S_LENGTH, length)
    v.store_word(slot, layout.S_ENTRY, entry)
    for k in range(length):
        v.store_byte(texts[t, layout.T_KEPT], kept + k, v.load_byte(begin, k))
    v.store_word(texts[t, layout.T_ENTRIES], 2 * entry, kept)
    v.store_word(texts[t, layout.T_ENTRIES], 2 * entry + 1, np.int64(row))
    texts[t, layout.T_COUNT] += 1
    texts[t, layout.T_USED] += length
    return entry


# -- passes over a stretch of rows that ask for the class of a text, before all else is asked -------------------------
# `chosen` are the rows that may be relevant, `at` is where the answers so far have led.


@part
def pass_of_text(s, t, count):
    """Ask the first ``count`` chosen rows for text ``t``; returns how many are left.

    If it stops, it returns less than 0: a reason of the kind, negated. What is unknown then, `TEXT`, `NODE` and
    `OUTCOME` say.
    """
    texts, control = s.texts, s.control
    # Read before anything is written.
    nodes, following = v.start_of(s.nodes), v.start_of(s.next)
    chosen, at = v.start_of(s.chosen), v.start_of(s.at)
    classes = texts[t, layout.T_CLASSES]
    kept = np.int64(0)
    for k in range(count):
        row, node = v.load_word(chosen, k), v.load_word(at, k)
        fields = nodes + 8 * layout.NODE_WORDS * node
        if node >= 0 and v.load_word(fields, layout.N_ASKS) == t:
            entry = entry_of(texts, t, row)
            cls = np.int64(-1) if entry < 0 else v.load_word(classes, entry)
            to = np.int64(layout.UNKNOWN)
            if 0 <= cls < v.load_word(fields, layout.N_WIDTH):
                to = v.load_word(following, v.load_word(fields, layout.N_NEXT) + cls)
            if to == layout.UNKNOWN:
                control[layout.TEXT], control[layout.NODE], control[layout.OUTCOME] = t, node, cls
                return np.int64(-layout.NO_ROOM if entry < 0 else -layout.NO_CLASS if cls < 0 else -layout.NO_OUTCOME)
            node = to
        v.store_word(chosen, kept, row)
        v.store_word(at, kept, node)
        kept += node != layout.IRRELEVANT
    return kept
