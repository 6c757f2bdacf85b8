"""The ways that the texts of rows leave open (see `cerflow.engine.scan.ways`), column by column.

``out`` is the address of a byte for each row, from row ``begin`` on.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.jit import part
from cerflow.engine.kernels.scan.texts import MIX, SHIFT, entry_of
from cerflow.engine.kernels.scan.values import (
    load_byte,
    load_int,
    load_small,
    load_unsigned,
    load_word,
    store_byte,
)
from cerflow.engine.scan.layout import (
    INT8,
    INT32,
    NO_CLASS,
    NO_ROOM,
    S_ENTRY,
    S_HEAD,
    S_LENGTH,
    SCANNED,
    SLOT_WORDS,
    T_BYTES,
    T_DATA,
    T_JUDGED,
    T_LAYOUT,
    T_MASK,
    T_OFFSET,
    T_ROOM,
    T_SIZE,
    T_SLOTS,
    T_VALID,
    T_WAYS,
    TEXT,
    TEXT32,
    UINT32,
)

__all__ = ["mark"]


@part
def mark(s, begin, count, out):
    """Write the ways that are open to ``count`` rows; returns what stopped it, as ``scan`` does."""
    texts = s.texts
    first = True
    for t in range(texts.shape[0]):
        ways = texts[t, T_WAYS]
        if ways == 0:
            continue
        layout = texts[t, T_LAYOUT]
        data, at, room = texts[t, T_DATA], texts[t, T_OFFSET] + begin, texts[t, T_ROOM]
        reason = SCANNED
        indexed = texts[t, T_VALID] == 0 and layout in (INT32, UINT32, INT8)
        if first and not indexed:
            _fill(out, count)
        if texts[t, T_VALID] == 0 and layout == INT32:
            _by_index32(data, at, count, room, ways, out, first)
        elif texts[t, T_VALID] == 0 and layout == UINT32:
            _by_unsigned32(data, at, count, room, ways, out, first)
        elif texts[t, T_VALID] == 0 and layout == INT8:
            _by_index8(data, at, count, room, ways, out, first)
        elif texts[t, T_VALID] == 0 and layout == TEXT32:
            reason = _by_text(texts, t, begin, count, ways, out)
        else:
            reason = _by_entry(texts, t, begin, count, ways, out)
        if reason != SCANNED:
            s.control[TEXT] = t
            return reason
        first = False
    if first:
        _fill(out, count)
    return SCANNED


@part
def _fill(out, count):
    for k in range(count):
        store_byte(out, k, 255)


def _by_index(load, name):
    """Reads indices of a dictionary by a function."""

    def run(data, at, count, room, ways, out, first):
        for k in range(count):
            entry = 1 + load(data, at + k)
            if np.uint64(entry) >= np.uint64(room):
                entry = np.int64(0)
            left = load_byte(ways, entry)
            store_byte(out, k, left if first else load_byte(out, k) & left)

    run.__qualname__ = name
    return part(run)


_by_index32 = _by_index(load_int, "_by_index32")
_by_unsigned32 = _by_index(load_unsigned, "_by_unsigned32")
_by_index8 = _by_index(load_small, "_by_index8")


@part
def _by_text(texts, t, begin, count, ways, out):
    """Texts of at most eight bytes are looked for in one place; where that fails, `_by_entry` looks on."""
    data, at = texts[t, T_DATA], texts[t, T_OFFSET] + begin
    letters, size, slots, mask = texts[t, T_BYTES], texts[t, T_SIZE], texts[t, T_SLOTS], texts[t, T_MASK]
    judged = texts[t, T_JUDGED]
    start = load_int(data, at)
    for k in range(count):
        end = load_int(data, at + k + 1)
        length = end - start
        if length <= 8 and start + 8 <= size:
            head = load_word(letters + start, 0)
            if length < 8:
                head &= (np.int64(1) << 8 * length) - 1
            h = (np.uint64(head) ^ np.uint64(length)) * MIX
            slot = slots + 8 * SLOT_WORDS * (np.int64(h >> SHIFT) & mask)
            entry = load_word(slot, S_ENTRY)
            if load_word(slot, S_HEAD) == head and load_word(slot, S_LENGTH) == length and 0 < entry < judged:
                store_byte(out, k, load_byte(out, k) & load_byte(ways, entry))
                start = end
                continue
        start = end
        if load_byte(out, k) != 0:
            reason = _by_entry(texts, t, begin + k, 1, ways, out + k)
            if reason != SCANNED:
                return reason
    return SCANNED


@part
def _by_entry(texts, t, begin, count, ways, out):
    """Only texts of rows to which a way is open get an entry."""
    for k in range(count):
        is_open = load_byte(out, k)
        if is_open != 0:
            entry = entry_of(texts, t, begin + k)
            if entry < 0:
                return NO_ROOM
            if entry >= texts[t, T_JUDGED]:
                return NO_CLASS
            store_byte(out, k, is_open & load_byte(ways, entry))
    return SCANNED
