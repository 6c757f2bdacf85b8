"""What whole columns of texts say, before a batch is scanned."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.texts import bounds_of, hash_of, head_of, same_rest, slot_for, view_at
from cerflow.engine.scan import layout


@kernel
def mark_equal(letters, size, data, kind, count, text, length, out):
    """Set the bytes ``out`` (uint8) of those of ``count`` texts that are the one at address ``text``.

    That one has a ``length``, and zeros up to eight bytes. ``data`` is the address of bounds or views, by the ``kind``
    of `layout`; ``letters`` is that of ``size`` bytes, or of the addresses of the letters of views.
    """
    word, wide = v.load_word(text, 0), kind == layout.TEXT64
    mask = np.int64(-1) if length >= 8 else (np.int64(1) << 8 * length) - 1
    for k in range(count):
        if kind == layout.TEXT_VIEW:
            begin, own = view_at(data, letters, np.int64(k))
            head = v.load_word(begin, 0) & mask if own == length else ~word
        else:
            start, own = bounds_of(data, wide, np.int64(k))
            begin = letters + start
            # A branch for each length would be mispredicted.
            head = v.load_word(begin, 0) & mask if start + 8 <= size else head_of(letters, size, start, own)
        same = (own == length) & (head == word)
        if same and length > 8:
            same = same_rest(begin, text, length)
        out[k] |= np.uint8(same)
    return 0


@kernel
def has_twice(letters, size, offsets, wide, count, slots):
    """Whether one of ``count`` texts comes twice.

    ``letters`` is the address of their bytes, ``size`` how many these are, ``offsets`` the address of their bounds, of
    64 bits if ``wide``. ``slots`` (int32) are a hash table, a power of two and twice as many as texts, filled with -1.
    """
    mask = np.int64(slots.shape[0] - 1)
    for k in range(count):
        start, length = bounds_of(offsets, wide, k)
        head = head_of(letters, size, start, length)
        place = slot_for(hash_of(letters + start, length, head), mask)
        while slots[place] >= 0:
            begin, other = bounds_of(offsets, wide, np.int64(slots[place]))
            same = other == length and head_of(letters, size, begin, length) == head
            if same and same_rest(letters + start, letters + begin, length):
                return 1
            place = (place + 1) & mask
        slots[place] = k
    return 0
