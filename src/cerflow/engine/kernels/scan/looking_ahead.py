"""The ways of all rows of a batch, and which rows the window of a query makes unnecessary.

An event matters only if one of the next events, within the window, may be the last of a match.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.jit import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import address_of, pointer_to, scan_at
from cerflow.engine.kernels.scan.marks import mark
from cerflow.engine.kernels.scan.scan import collected, formed, satisfies
from cerflow.engine.kernels.scan.values import load_byte, load_word, locate, store_byte, store_word, word_of
from cerflow.engine.scan.layout import (
    BLOCK,
    D_FAILED,
    D_HELD,
    D_TEST,
    FIRST,
    KEPT,
    O_COLUMN,
    O_FORM,
    O_SIZE,
    ROW,
    SCANNED,
)

__all__ = ["look_ahead", "mark_all"]

#: Rows of `ScanArrays.reach`.
_MEASURE, _BOUND = 0, 1


@kernel
def look_ahead(address, batch, count):
    """Write the ways of all rows of a batch of ``count`` rows; none for those that no match can need.

    A match ends with an event to which one of the first of `steps` is open, and lies within the window that `reach`
    measures. Events that come after the batch may end matches, too. Returns what stopped it, as ``scan`` does; it goes
    on from `ROW`.
    """
    s = scan_at(address)
    locate(s.columns, s.texts, batch)
    ways = address_of(pointer_to(s.ways, 0))
    reason = mark_all(s, count, ways, address)
    if reason != SCANNED:
        return reason
    store_word(ways + count, 0, np.int64(0))
    wanted = s.steps[0]
    ends = wanted * np.int64(0x0101010101010101)
    # Starts at or before the limit are outside of the windows of all events behind that may end a match.
    limit = _value(s, _BOUND, count - 1)
    passed = False
    kept = 0
    for first in range((count - 1) & ~7, -1, -8):
        eight = load_word(ways + first, 0)
        if passed and eight & ends == 0:
            store_word(ways + first, 0, np.int64(0))
            continue
        if eight == 0:
            continue
        for k in range(first + 7, first - 1, -1):
            is_open = load_byte(ways, k)
            if is_open & wanted:
                limit = _value(s, _BOUND, k)
                passed = False
                kept += 1
            elif is_open:
                # No event before has a greater measure.
                passed = passed or _value(s, _MEASURE, k) <= limit
                if passed:
                    store_byte(ways, k, 0)
                else:
                    kept += 1
    s.control[KEPT] = kept
    return SCANNED


@inlined
def _value(s, which, row):
    word = word_of(s.columns, s.reach[which, O_COLUMN], row, s.control[FIRST])
    return formed(word, s.reach[which, O_FORM], s.reach[which, O_SIZE])


@part
def mark_all(s, count, ways, address):
    """Write the ways of ``count`` rows, decided by texts and tests, at the address ``ways``; returns as ``look_ahead``.

    ``s`` are the arrays of the scan at ``address``.
    """
    begin = s.control[ROW]
    while begin < count:
        size = min(count - begin, BLOCK)
        reason = mark(s, begin, size, ways + begin)
        if reason != SCANNED:
            s.control[ROW] = begin
            return collected(s, reason, begin, count)
        for n in range(s.decided.shape[0]):
            _decide(s, n, begin, size, ways + begin, address)
        begin += size
    return np.int64(SCANNED)


@part
def _decide(s, n, begin, size, ways, address):
    """Close the ways that a test rules out, in the rows where it matters."""
    test, held, failed = s.decided[n, D_TEST], s.decided[n, D_HELD], s.decided[n, D_FAILED]
    matters = ~(held & failed)
    for k in range(size):
        is_open = load_byte(ways, k)
        if is_open & matters:
            store_byte(ways, k, is_open & (held if satisfies(s, test, begin + k, address) else failed))
