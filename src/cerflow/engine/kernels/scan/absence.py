"""Events that no other one of their key follows for a while."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel
from cerflow.engine.kernels.scan.texts import MIX, SHIFT


@kernel
def not_followed(keys, rows, ends, opening, shown, slots, found):
    """Say in ``found`` (uint8) which ``opening`` events nothing follows until their deadline; returns how many.

    Events have ``keys`` (int64, events × words) and ascending ``rows``, and ``ends`` (uint8) marks those that end the
    waiting of their key. ``opening`` are the numbers of events, ascending; each waits until its row ``shown``.
    ``slots`` (int32, a power of two, more than there are events) holds -1 everywhere.
    """
    left, waiting = opening.shape[0] - 1, np.int64(0)
    for k in range(rows.shape[0] - 1, -1, -1):
        opens = left >= 0 and opening[left] == k
        if opens or ends[k] != 0:
            slot = _slot(keys, slots, k)
            if opens:
                held = np.int64(slots[slot] < 0 or rows[slots[slot]] >= shown[left])
                found[left] = held
                waiting += held
                left -= 1
            if ends[k] != 0:
                slots[slot] = k
    return waiting


@inlined
def _slot(keys, slots, k):
    """The slot of the key of an event, or a free one."""
    h = np.uint64(0)
    for word in range(keys.shape[1]):
        h = (h ^ (h >> SHIFT) ^ np.uint64(keys[k, word])) * MIX
    mask = slots.shape[0] - 1
    slot = np.int64(h >> SHIFT) & mask
    while slots[slot] >= 0:
        same = True
        for word in range(keys.shape[1]):
            same &= keys[slots[slot], word] == keys[k, word]
        if same:
            break
        slot = (slot + 1) & mask
    return slot
