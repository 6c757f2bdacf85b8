"""Columns of text that are compared with a few texts, one by one: each is a word, and columns become such words."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.texts import MIX, same_bytes, text_at, view_at
from cerflow.engine.scan import layout

MORE = np.uint64(layout.MORE)
#: The last of the lengths that bits tell apart.
LONGEST = np.int64(63)
#: The room of dictionaries whose indices are bytes, none of which is that of -1.
_BYTES = 255


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
def by_single(s, t, begin, count, out):
    """Close the guards that texts rule out of which a few leave guards of their own possible, all others the same.

    ``out`` is the address of the guards of the rows from ``begin`` on. Returns the number of rows that were read.
    """
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
            return start
    return count


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
            some += lengths >> min(length, LONGEST) & 1
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
        some += lengths >> min(v.load_int(views, 4 * k), LONGEST) & 1
    for n in range(some):
        begin, length = view_at(views, buffers, v.load_word(rows, n))
        tail = v.load_word(begin + max(length - 8, 0), 0)
        v.store_word(keys, v.load_word(rows, n), _any_key(v.load_word(begin, 0), tail, length))


@part
def _lengths_of(singles, count):
    """The lengths of a few texts as bits, of which the last is for all longer ones."""
    lengths = np.int64(0)
    for j in range(count):
        lengths |= np.int64(1) << min(_single(singles, j, layout.ST_LENGTH), LONGEST)
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
