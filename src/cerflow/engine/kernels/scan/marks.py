"""The guards that the texts of rows leave possible (see `cerflow.engine.scan.program.guards`), column by column.

``out`` is the address of a byte for each row, from row ``begin`` on.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.texts import entry_of, short_entry
from cerflow.engine.scan import layout

#: The room of dictionaries whose indices are bytes, none of which is that of -1.
_BYTES = 255


@part
def mark(s, begin, count, out, wanted):
    """Write the guards that may hold for ``count`` rows; returns what stopped it, as ``scan`` does.

    If ``wanted`` are not 0 and none of these guards may hold for any row, none is written.
    """
    texts = s.texts
    _fill(out, count, 255)
    lead = s.control[layout.LEAD] if wanted != 0 else np.int64(0)
    for j in range(texts.shape[0]):
        t = lead + j
        if t >= texts.shape[0]:
            t -= texts.shape[0]
        guards = texts[t, layout.T_GUARDS]
        if guards == 0:
            continue
        if wanted != 0 and not _may_open(texts, t, begin, count, wanted):
            _fill(out, count, 0)
            s.control[layout.LEAD] = t
            return layout.SCANNED
        kind = texts[t, layout.T_LAYOUT]
        data, at, room = texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin, texts[t, layout.T_ROOM]
        reason = layout.SCANNED
        plain = texts[t, layout.T_VALID] == 0
        single = plain and texts[t, layout.T_SINGLES] >= 0
        indexed = plain and kind in (layout.INT32, layout.UINT32, layout.INT8)
        if single and (indexed or kind == layout.TEXT32):
            reason = _by_single(s, t, begin, count, out)
        elif plain and kind == layout.INT32:
            _by_index32(data, at, count, room, guards, out)
        elif plain and kind == layout.UINT32:
            _by_unsigned32(data, at, count, room, guards, out)
        elif plain and kind == layout.INT8:
            _by_index8(data, at, count, room, guards, out)
        elif plain and kind == layout.TEXT32:
            reason = _by_text(texts, t, begin, count, guards, out)
        else:
            reason = _by_entry(texts, t, begin, count, guards, out)
        if reason != layout.SCANNED:
            s.control[layout.TEXT] = t
            return reason
        if wanted != 0 and not _any_open(out, count, wanted):
            _fill(out, count, 0)
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
def _fill(out, count, guards):
    for k in range(count):
        v.store_byte(out, k, guards)


@part
def _may_open(texts, t, begin, count, wanted):
    """Whether some row may have a text with any of the guards ``wanted``, by the dictionary or by lengths alone."""
    if texts[t, layout.T_OPEN] & wanted == 0:
        return False
    lengths = texts[t, layout.T_LENGTHS]
    if lengths == -1 or texts[t, layout.T_VALID] != 0 or texts[t, layout.T_LAYOUT] != layout.TEXT32:
        return True
    offsets = texts[t, layout.T_DATA] + 4 * (texts[t, layout.T_OFFSET] + begin)
    seen = np.int64(0)
    # The compiler makes vectors of this loop.
    for k in range(count):
        seen |= np.int64(1) << min(v.load_int(offsets, k + 1) - v.load_int(offsets, k), np.int64(63))
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


def _comparing(name, load, store, number):
    """Compares a column with single words, each a ``number``; the compiler makes vectors of these loops."""

    def run(texts, t, data, count, left, out):
        singles, others = texts[t, layout.T_SINGLED], texts[t, layout.T_OTHERS]
        for k in range(count):
            store(left, k, others)
        # Four at a time, so that a column is read once for most queries.
        for j in range(0, 2 * texts[t, layout.T_SINGLES], 8):
            word0, ways0 = number(v.load_word(singles, j)), number(v.load_word(singles, j + 1))
            word1, ways1 = number(v.load_word(singles, j + 2)), number(v.load_word(singles, j + 3))
            word2, ways2 = number(v.load_word(singles, j + 4)), number(v.load_word(singles, j + 5))
            word3, ways3 = number(v.load_word(singles, j + 6)), number(v.load_word(singles, j + 7))
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


@part
def _by_single(s, t, begin, count, out):
    """Each of a few texts leaves guards of its own possible, all others the same."""
    texts = s.texts
    kind, data, at = texts[t, layout.T_LAYOUT], texts[t, layout.T_DATA], texts[t, layout.T_OFFSET] + begin
    # Nothing else is in these while rows are marked.
    keys, left = v.start_of(s.chosen), v.start_of(s.at)
    for start in range(0, count, layout.STRETCH):
        size = min(count - start, layout.STRETCH)
        if kind in (layout.INT32, layout.UINT32):
            indices = data + 4 * (at + start)
            if texts[t, layout.T_ROOM] <= _BYTES and _as_bytes(indices, size, keys):
                _compare8(texts, t, keys, size, left, out + start)
            else:
                _compare32(texts, t, indices, size, left, out + start)
        elif kind == layout.INT8:
            _compare8(texts, t, data + at + start, size, left, out + start)
        elif v.load_int(data, at + start + size) + 8 <= texts[t, layout.T_SIZE]:
            _write_keys(texts[t, layout.T_BYTES], data + 4 * (at + start), size, keys)
            _compare_keys(texts, t, keys, size, left, out + start)
        else:
            # Eight bytes from the last texts on would be too many.
            reason = _by_text(texts, t, begin + start, size, texts[t, layout.T_GUARDS], out + start)
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


@part
def _write_keys(letters, offsets, count, keys):
    """The keys of short texts: their bytes, highest last, and their lengths; 0 for all but 1 to 7 bytes."""
    for k in range(count):
        start = v.load_int(offsets, k)
        length = v.load_int(offsets, k + 1) - start
        key = v.load_word(letters + start, 0) << (64 - 8 * length & 63) | length
        v.store_word(keys, k, key if 0 < length < 8 else np.int64(0))


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
            reason = _by_entry(texts, t, begin + k, 1, guards, out + k)
            if reason != layout.SCANNED:
                return reason
    return layout.SCANNED


@part
def _by_entry(texts, t, begin, count, guards, out):
    """Only texts of rows for which a guard may hold get an entry."""
    for k in range(count):
        is_open = v.load_byte(out, k)
        if is_open != 0:
            entry = entry_of(texts, t, begin + k)
            if entry < 0:
                return layout.NO_ROOM
            if entry >= texts[t, layout.T_JUDGED]:
                return layout.NO_CLASS
            v.store_byte(out, k, is_open & v.load_byte(guards, entry))
    return layout.SCANNED
