"""The guards that the texts of rows leave possible (see `cerflow.engine.scan.program.guards`), column by column.

``out`` is the address of a byte for each row, from row ``begin`` on.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.texts import MIX, entry_of, same_bytes, short_entry, text_at, view_at
from cerflow.engine.scan import layout

MORE = np.uint64(layout.MORE)
#: The last of the lengths that bits tell apart.
_LONGEST = np.int64(63)
#: Visits rows one by one if fewer than one in so many is left.
_FEW = 8
#: The room of dictionaries whose indices are bytes, none of which is that of -1.
_BYTES = 255


@part
def mark(s, begin, count, out, wanted, searched):
    """Close the guards of ``count`` rows that texts rule out; returns what stopped it, as ``scan`` does.

    ``searched`` says whether the columns are asked whose texts are looked for in a table, or all others. If ``wanted``
    are not 0 and none of these guards may hold for any row, all are closed.
    """
    texts = s.texts
    lead = s.control[layout.LEAD] if wanted != 0 else np.int64(0)
    for j in range(texts.shape[0]):
        t = lead + j
        if t >= texts.shape[0]:
            t -= texts.shape[0]
        guards, kind = texts[t, layout.T_GUARDS], texts[t, layout.T_LAYOUT]
        single = texts[t, layout.T_SINGLES] >= 0
        if guards == 0 or searched != (kind >= layout.TEXT32 and not single):
            continue
        if wanted != 0 and not _may_open(texts, t, begin, count, wanted):
            fill_guards(out, count, 0)
            s.control[layout.LEAD] = t
            return layout.SCANNED
        data, at, room = texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin, texts[t, layout.T_ROOM]
        reason = layout.SCANNED
        plain = texts[t, layout.T_VALID] == 0
        indexed = kind in (layout.INT32, layout.UINT32, layout.INT8)
        if texts[t, layout.T_FROM] <= begin and begin + count <= texts[t, layout.T_TO]:
            _by_row(texts[t, layout.T_ASIDE] + begin - texts[t, layout.T_FROM], count, out)
        elif single and (indexed or kind in (layout.TEXT32, layout.TEXT64, layout.TEXT_VIEW)):
            reason = _by_single(s, t, begin, count, out)
        elif plain and kind == layout.INT32:
            _by_index32(data, at, count, room, guards, out)
        elif plain and kind == layout.UINT32:
            _by_unsigned32(data, at, count, room, guards, out)
        elif plain and kind == layout.INT8:
            _by_index8(data, at, count, room, guards, out)
        elif plain and kind == layout.TEXT32 and _FEW * v.rows_with(out, count & ~7, 255) > count:
            reason = _by_text(texts, t, begin, count, guards, out)
        else:
            reason = _by_entry(texts, t, begin, count, guards, out)
        if reason != layout.SCANNED:
            s.control[layout.TEXT] = t
            return reason
        if wanted != 0 and not _any_open(out, count, wanted):
            fill_guards(out, count, 0)
            s.control[layout.LEAD] = t
            return layout.SCANNED
    return layout.SCANNED


@part
def list_marked(s, begin, end, guards):
    """List the rows ``[begin, end)`` that have ``guards`` in `chosen`; they are at most a stretch.

    ``s`` are the arrays of the scan. Returns how many rows there are.
    """
    chosen, some = v.start_of(s.chosen), np.int64(0)
    for first in range(begin, end, 64):
        left = v.marked_rows(guards + first, end - first)
        while left != 0:
            v.store_word(chosen, some, first + v.trailing_zeros(left))
            left = v.without_lowest(left)
            some += 1
    return some


@part
def fill_guards(out, count, guards):
    """Write the same ``guards`` for ``count`` rows."""
    for k in range(count):
        v.store_byte(out, k, guards)


@part
def _may_open(texts, t, begin, count, wanted):
    """Whether some row may have a text with any of the guards ``wanted``, by the dictionary or by lengths alone."""
    if texts[t, layout.T_OPEN] & wanted == 0:
        return False
    lengths = texts[t, layout.T_LENGTHS]
    views = texts[t, layout.T_LAYOUT] == layout.TEXT_VIEW
    if lengths == -1 or texts[t, layout.T_VALID] != 0 or (texts[t, layout.T_LAYOUT] != layout.TEXT32 and not views):
        return True
    seen, at = np.int64(0), texts[t, layout.T_DATA] + 16 * (texts[t, layout.T_OFFSET] + begin)
    for k in range(count if views else 0):
        seen |= np.int64(1) << min(v.load_int(at, 4 * k), _LONGEST)
    offsets = texts[t, layout.T_DATA] + 4 * (texts[t, layout.T_OFFSET] + begin)
    # The compiler makes vectors of this loop.
    for k in range(0 if views else count):
        seen |= np.int64(1) << min(v.load_int(offsets, k + 1) - v.load_int(offsets, k), _LONGEST)
    return seen & lengths != 0


@part
def _any_open(guards, count, wanted):
    """Whether any of the guards ``wanted`` may hold for some row."""
    found = np.int64(0)
    for k in range(count >> 3):
        found |= v.load_word(guards, k)
    for k in range(count & ~7, count):
        found |= v.load_byte(guards, k)
    return found & wrapped_product(wanted, v.ONES) != 0


@inlined
def _single(singles, j, what):
    return v.load_word(singles, layout.SINGLE_WORDS * j + what)


def _comparing(name, load, store, number):
    """Compares a column with single words, each a ``number``; the compiler makes vectors of these loops."""

    @inlined
    def single(singles, j):
        return number(_single(singles, j, layout.ST_KEY)), number(_single(singles, j, layout.ST_GUARDS))

    def run(texts, t, data, count, left, out):
        singles, others = texts[t, layout.T_SINGLED], texts[t, layout.T_OTHERS]
        for k in range(count):
            store(left, k, others)
        # Four at a time, so that a column is read once for most queries. Null comes behind all texts.
        for j in range(0, texts[t, layout.T_SINGLES] + np.int64(texts[t, layout.T_VALID] != 0), 4):
            word0, ways0 = single(singles, j)
            word1, ways1 = single(singles, j + 1)
            word2, ways2 = single(singles, j + 2)
            word3, ways3 = single(singles, j + 3)
            for k in range(count):
                word = number(load(data, k))
                guards = number(load(left, k))
                guards = ways0 if word == word0 else guards
                guards = ways1 if word == word1 else guards
                guards = ways2 if word == word2 else guards
                guards = ways3 if word == word3 else guards
                store(left, k, np.int64(guards))
        for k in range(count):
            v.store_byte(out, k, v.load_byte(out, k) & load(left, k))

    run.__qualname__ = run.__name__ = name
    return part(run)


# Unsigned indices beyond 31 bits would be those of a dictionary that no memory has room for.
# Guards are as wide as what is compared, so that vectors hold as many of both.
_compare32 = _comparing("_compare32", v.load_int, v.store_int, np.int32)
_compare8 = _comparing("_compare8", v.load_small, v.store_byte, np.int8)
_compare_keys = _comparing("_compare_keys", v.load_word, v.store_word, np.int64)


def _closing(load, store, name):
    """Gives rows without a text the key of null, -1."""

    def run(valid, at, count, keys):
        for k in range(count):
            store(keys, k, load(keys, k) | (np.int64(v.has_bit(valid, at + k)) - 1))

    run.__qualname__ = name
    return part(run)


_close_missing32 = _closing(v.load_int, v.store_int, "_close_missing32")
_close_missing = _closing(v.load_word, v.store_word, "_close_missing")


@part
def _by_single(s, t, begin, count, out):
    """Each of a few texts leaves guards of its own possible, all others the same."""
    texts = s.texts
    kind, data, at = texts[t, layout.T_LAYOUT], texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin
    # Nothing else is in these while rows are marked.
    keys, left, valid = v.start_of(s.chosen), v.start_of(s.at), texts[t, layout.T_VALID]
    for start in range(0, count, layout.STRETCH):
        size = min(count - start, layout.STRETCH)
        if valid != 0 and kind < layout.TEXT32:
            for k in range(size):
                v.store_int(keys, k, v.integer(kind, data, at + start + k))
            _close_missing32(valid, at + start, size, keys)
            _compare32(texts, t, keys, size, left, out + start)
        elif kind in (layout.INT32, layout.UINT32):
            indices = data + 4 * (at + start)
            if texts[t, layout.T_ROOM] <= _BYTES and _as_bytes(indices, size, keys):
                _compare8(texts, t, keys, size, left, out + start)
            else:
                _compare32(texts, t, indices, size, left, out + start)
        elif kind == layout.INT8:
            _compare8(texts, t, data + at + start, size, left, out + start)
        elif kind == layout.TEXT_VIEW or v.text_offset(texts, t, at + start + size) + 8 <= texts[t, layout.T_SIZE]:
            lengths = _lengths_of(texts[t, layout.T_SINGLED], texts[t, layout.T_SINGLES])
            if kind == layout.TEXT_VIEW:
                _write_keys_of_views(texts[t, layout.T_BYTES], data + 16 * (at + start), size, lengths, left, keys)
            elif kind == layout.TEXT32:
                _write_keys(texts[t, layout.T_BYTES], data + 4 * (at + start), size, lengths, left, keys)
            else:
                _write_wide_keys(texts[t, layout.T_BYTES], data + 8 * (at + start), size, lengths, left, keys)
            _confirm(texts, t, begin + start, size, left, keys)
            if valid != 0:
                _close_missing(valid, at + start, size, keys)
            _compare_keys(texts, t, keys, size, left, out + start)
        else:
            # Eight bytes from the last texts on would be too many.
            guards = texts[t, layout.T_GUARDS]
            if kind == layout.TEXT32 and valid == 0:
                reason = _by_text(texts, t, begin + start, size, guards, out + start)
            else:
                reason = _by_entry(texts, t, begin + start, size, guards, out + start)
            if reason != layout.SCANNED:
                return reason
    return layout.SCANNED


@part
def _as_bytes(indices, count, out):
    """Write indices of 32 bits as bytes, of which more are compared at once; returns whether none is larger."""
    seen = np.int32(0)
    # The compiler makes vectors of this loop.
    for k in range(count):
        index = np.int32(v.load_int(indices, k))
        seen |= index
        v.store_byte(out, k, np.int64(index))
    return np.uint32(seen) < np.uint32(256)


def _writing(load, name):
    """Writes the keys of texts with certain ``lengths``, as bits, and 0 for all others; a function reads bounds.

    Here as below, rows are listed first, as a branch for each would be mispredicted.
    """

    def run(letters, offsets, count, lengths, rows, keys):
        if lengths >> layout.SHORT == 0:
            for k in range(count):
                start = load(offsets, k)
                length = load(offsets, k + 1) - start
                key = _short_key(v.load_word(letters + start, 0), length)
                v.store_word(keys, k, key if 0 < length < layout.SHORT else np.int64(0))
            return
        some = np.int64(0)
        for k in range(count):
            v.store_word(keys, k, np.int64(0))
        for k in range(count):
            length = load(offsets, k + 1) - load(offsets, k)
            v.store_word(rows, some, np.int64(k))
            some += lengths >> min(length, _LONGEST) & 1
        for n in range(some):
            row = v.load_word(rows, n)
            start = load(offsets, row)
            length = load(offsets, row + 1) - start
            head = v.load_word(letters + start, 0)
            tail = v.load_word(letters + start + max(length - 8, 0), 0)
            v.store_word(keys, row, _any_key(head, tail, length))

    run.__qualname__ = name
    return part(run)


@inlined
def _short_key(head, length):
    return head << (64 - 8 * length & 63) | length


@inlined
def _long_key(head, tail, length):
    mixed = np.uint64(head) * MIX + (np.uint64(tail) + np.uint64(length)) * MORE
    return np.int64(mixed & np.uint64(~0xFF & (1 << 64) - 1) | np.uint64(layout.SHORT))


@inlined
def _any_key(head, tail, length):
    # Where lengths are mixed, a branch would take longer than to compute both.
    short = np.int64(0) - np.int64(length < layout.SHORT)
    return _short_key(head, length) & short | _long_key(head, tail, length) & ~short


@part
def _write_keys_of_views(buffers, views, count, lengths, rows, keys):
    """The same of ``views``, see `view_at`."""
    some = np.int64(0)
    for k in range(count if lengths >> layout.SHORT == 0 else 0):
        length = v.load_int(views, 4 * k)
        key = _short_key(v.load_word(views + 4, 2 * k), length)
        v.store_word(keys, k, key if 0 < length < layout.SHORT else np.int64(0))
    for k in range(0 if lengths >> layout.SHORT == 0 else count):
        v.store_word(keys, k, np.int64(0))
        v.store_word(rows, some, np.int64(k))
        some += lengths >> min(v.load_int(views, 4 * k), _LONGEST) & 1
    for n in range(some):
        begin, length = view_at(views, buffers, v.load_word(rows, n))
        tail = v.load_word(begin + max(length - 8, 0), 0)
        v.store_word(keys, v.load_word(rows, n), _any_key(v.load_word(begin, 0), tail, length))


@part
def _lengths_of(singles, count):
    """The lengths of a few texts as bits, of which the last is for all longer ones."""
    lengths = np.int64(0)
    for j in range(count):
        lengths |= np.int64(1) << min(_single(singles, j, layout.ST_LENGTH), _LONGEST)
    return lengths


_write_keys = _writing(v.load_int, "_write_keys")
_write_wide_keys = _writing(v.load_word, "_write_wide_keys")


@part
def _confirm(texts, t, begin, count, rows, keys):
    """Take the key from each text, from row ``begin`` on, that only shares it with a long one of a few texts."""
    singles = texts[t, layout.T_SINGLED]
    for j in range(texts[t, layout.T_SINGLES]):
        key, length = _single(singles, j, layout.ST_KEY), _single(singles, j, layout.ST_LENGTH)
        if length < layout.SHORT or not _any_has(keys, count, key):
            continue
        other, some = _single(singles, j, layout.ST_BYTES), np.int64(0)
        for k in range(count):
            v.store_word(rows, some, np.int64(k))
            some += v.load_word(keys, k) == key
        for n in range(some):
            row = v.load_word(rows, n)
            at, size, _ = text_at(texts, t, begin + row)
            if not (size == length and same_bytes(at, other, length)):
                v.store_word(keys, row, np.int64(0))


@part
def _any_has(keys, count, key):
    found = np.int64(0)
    # The compiler makes vectors of this loop.
    for k in range(count):
        found |= np.int64(v.load_word(keys, k) == key)
    return found != 0


def _by_index(load, name):
    """Reads indices of a dictionary by a function."""

    def run(data, at, count, room, guards, out):
        for k in range(count):
            entry = 1 + load(data, at + k)
            if np.uint64(entry) >= np.uint64(room):
                entry = np.int64(0)
            v.store_byte(out, k, v.load_byte(out, k) & v.load_byte(guards, entry))

    run.__qualname__ = name
    return part(run)


_by_index32 = _by_index(v.load_int, "_by_index32")
_by_unsigned32 = _by_index(v.load_unsigned, "_by_unsigned32")
_by_index8 = _by_index(v.load_small, "_by_index8")


@part
def _by_text(texts, t, begin, count, guards, out):
    """Texts of at most eight bytes are looked for in one place; where that fails, `_by_entry` looks on."""
    data, at = texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin
    letters, size, judged = texts[t, layout.T_BYTES], texts[t, layout.T_SIZE], texts[t, layout.T_JUDGED]
    table = texts[t, layout.T_SLOTS], texts[t, layout.T_MASK]
    start = v.load_int(data, at)
    for k in range(count):
        end = v.load_int(data, at + k + 1)
        entry = short_entry(letters, size, table, start, end - start)
        start = end
        if 0 < entry < judged:
            v.store_byte(out, k, v.load_byte(out, k) & v.load_byte(guards, entry))
        elif v.load_byte(out, k) != 0:
            reason = _by_entry_of(texts, t, begin + k, guards, out + k)
            if reason != layout.SCANNED:
                return reason
    return layout.SCANNED


@part
def _by_row(guards, count, out):
    """The guards of each row are known."""
    for k in range(count):
        v.store_byte(out, k, v.load_byte(out, k) & v.load_byte(guards, k))


@part
def _by_entry(texts, t, begin, count, guards, out):
    """Only texts of rows for which a guard may hold get an entry."""
    for first in range(0, count, 64):
        left = v.marked_rows(out + first, count - first)
        while left != 0:
            k = first + v.trailing_zeros(left)
            left = v.without_lowest(left)
            reason = _by_entry_of(texts, t, begin + k, guards, out + k)
            if reason != layout.SCANNED:
                return reason
    return layout.SCANNED


@inlined
def _by_entry_of(texts, t, row, guards, out):
    """The same of one row; ``out`` is where its guards are."""
    entry = entry_of(texts, t, row)
    if entry < 0:
        return layout.NO_ROOM
    if entry >= texts[t, layout.T_JUDGED]:
        return layout.NO_CLASS
    v.store_byte(out, 0, v.load_byte(out, 0) & v.load_byte(guards, entry))
    return layout.SCANNED
