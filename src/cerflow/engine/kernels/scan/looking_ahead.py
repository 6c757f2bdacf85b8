"""The ways of all rows of a batch, and which rows the window of a query makes unnecessary.

An event matters only if one of the next events, within the window, may be the last of a match.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product, wrapped_sum
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import address_of, pointer_to, scan_at
from cerflow.engine.kernels.scan.marks import mark
from cerflow.engine.kernels.scan.scan import collected, formed, satisfies
from cerflow.engine.kernels.scan.values import (
    ONES,
    leading_zeros,
    load_byte,
    load_word,
    locate,
    store_byte,
    store_word,
    trailing_zeros,
    word_of,
)
from cerflow.engine.layout import NO_BOUND
from cerflow.engine.scan.layout import (
    AS_BOUND,
    AS_INT,
    BLOCK,
    C_DATA,
    C_FACTOR,
    C_LAYOUT,
    C_OFFSET,
    C_VALID,
    D_FAILED,
    D_HELD,
    D_TEST,
    FIRST,
    INT64,
    KEPT,
    LEAD,
    LEADS_FINAL,
    LEADS_SOURCE,
    LEADS_TARGET,
    LIMIT,
    O_COLUMN,
    O_FORM,
    O_SIZE,
    PASSED,
    RELEVANT,
    ROW,
    SCANNED,
    STAYS,
)

__all__ = ["look_ahead", "mark_block"]

#: Rows of `ScanArrays.reach`.
_MEASURE, _BOUND = 0, 1
#: Relevant rows after which it is clear whether many go.
_TRIAL = 1024
#: Rows whose new texts are read together.
_TOGETHER = 4 * BLOCK
#: In each byte of a word all bits but the highest, and the highest.
_LOW, _HIGH = np.int64(0x7F7F7F7F7F7F7F7F), np.int64(-0x7F7F7F7F7F7F7F80)
#: A limit behind all starts.
_NOWHERE = 2**63 - 1


@kernel
def look_ahead(address, batch, count):
    """Write the ways of all rows of a batch of ``count`` rows; none for those that no match can need.

    A match ends with an event to which a way of the first of `steps` is open, and lies within the window that `reach`
    measures; the `leads` say which ways are open to the events before. Of events with a way of the second of `steps`
    only the window decides. Events that come after the batch may go on with any partial match. Returns what stopped it,
    as ``scan`` does; it begins with ``count`` in `ROW`, and goes on before the row there.
    """
    s = scan_at(address)
    control = s.control
    locate(s.columns, s.texts, batch)
    ways = address_of(pointer_to(s.ways, 0))
    if control[ROW] == count:
        for k in range(8):
            store_word(ways + count, k, np.int64(0))
        # Starts at or before a limit are outside of the windows of all events behind with which a match may end; each
        # state has the limit of those that a run may reach from there.
        control[LIMIT] = _value(s, _BOUND, count - 1)
        for q in range(s.limits.shape[0]):
            s.limits[q] = control[LIMIT]
        control[PASSED] = control[STAYS] = control[RELEVANT] = control[KEPT] = control[LEAD] = 0
    while control[ROW] > 0:
        end = control[ROW]
        begin = (end - 1) & -BLOCK
        closing = control[STAYS] == 0
        # Behind the windows of all matches only their last events are looked for.
        wanted = s.steps[0] if closing and control[PASSED] == 1 else np.int64(0)
        reason = mark_block(s, begin, end - begin, ways + begin, wanted, address)
        if reason != SCANNED:
            return collected(s, reason, max(end - _TOGETHER, 0), end)
        if closing:
            _close(s, begin, end, ways)
        control[ROW] = begin
    if control[STAYS] == 1:
        control[KEPT] = count
    return SCANNED


@part
def _close(s, begin, end, ways):
    """Close the ways to the rows of a block that no match can need."""
    control = s.control
    ends = wrapped_product(s.steps[0], ONES)
    limit, passed = control[LIMIT], control[PASSED] == 1
    relevant, kept = control[RELEVANT], control[KEPT]
    plain, size = _is_plain(s), s.reach[_BOUND, O_SIZE]
    column = s.reach[_MEASURE, O_COLUMN]
    times = s.columns[column, C_DATA] + 8 * s.columns[column, C_OFFSET]
    for first in range((end - 1) & ~7, begin - 1, -8):
        eight = load_word(ways + first, 0)
        if eight == 0:
            continue
        if passed and eight & ends == 0:
            relevant += 1
            store_word(ways + first, 0, np.int64(0))
            continue
        if relevant >= _TRIAL and 4 * kept > 3 * relevant:
            # Too few go; the rows that are not looked at stay.
            control[STAYS] = 1
            break
        # The highest bit of each byte that is not zero.
        left = (wrapped_sum(eight & _LOW, _LOW) | eight) & _HIGH
        while left != 0:
            j = 7 - (leading_zeros(left) >> 3)
            left &= (np.int64(1) << 8 * j) - 1
            k = first + j
            is_open = eight >> 8 * j & 255
            relevant += 1
            measure = load_word(times, k) if plain else _value(s, _MEASURE, k)
            if is_open & s.steps[0] != 0:
                limit = max(measure, NO_BOUND + size) - size if plain else _value(s, _BOUND, k)
            passed = measure <= limit
            # No event before has a greater measure.
            if not passed and (_leads(s, is_open, measure, limit) or is_open & s.steps[1]):
                kept += 1
            else:
                store_byte(ways, k, 0)
    control[LIMIT], control[PASSED] = limit, np.int64(passed)
    control[RELEVANT], control[KEPT] = relevant, kept


@inlined
def _leads(s, is_open, measure, bound):
    """Whether an event may be part of a match; the limits become those before it.

    Its own ``bound`` is the limit of matches that it ends.
    """
    leads = False
    while is_open != 0:
        way = trailing_zeros(is_open)
        is_open &= is_open - 1
        for n in range(s.ways_lead[way], s.ways_lead[way + 1]):
            limit = bound if s.leads[n, LEADS_FINAL] == 1 else np.int64(_NOWHERE)
            if s.leads[n, LEADS_TARGET] >= 0:
                limit = min(limit, s.limits[s.leads[n, LEADS_TARGET]])
            if measure > limit:
                leads = True
                s.limits[s.leads[n, LEADS_SOURCE]] = min(limit, s.limits[s.leads[n, LEADS_SOURCE]])
    return leads


@inlined
def _is_plain(s):
    """Whether the window measures a column of 64-bit integers without nulls, as they are."""
    measured, bound = s.reach[_MEASURE], s.reach[_BOUND]
    c = measured[O_COLUMN]
    if c < 0 or bound[O_COLUMN] != c or measured[O_FORM] != AS_INT or bound[O_FORM] != AS_BOUND:
        return False
    column = s.columns[c]
    return column[C_LAYOUT] == INT64 and column[C_VALID] == 0 and column[C_FACTOR] == 1


@inlined
def _value(s, which, row):
    word = word_of(s.columns, s.reach[which, O_COLUMN], row, s.control[FIRST])
    return formed(word, s.reach[which, O_FORM], s.reach[which, O_SIZE])


@part
def mark_block(s, begin, count, ways, wanted, address):
    """Write the ``ways`` of ``count`` rows from row ``begin`` on, by texts and tests; returns as ``look_ahead``.

    See `mark` for the ways ``wanted``. ``s`` are the arrays of the scan at ``address``.
    """
    reason = mark(s, begin, count, ways, wanted)
    if reason == SCANNED:
        for n in range(s.decided.shape[0]):
            _decide(s, n, begin, count, ways, address)
    return reason


@part
def _decide(s, n, begin, size, ways, address):
    """Close the ways that a test rules out, in the rows where it matters."""
    test, held, failed = s.decided[n, D_TEST], s.decided[n, D_HELD], s.decided[n, D_FAILED]
    matters = ~(held & failed)
    for k in range(size):
        is_open = load_byte(ways, k)
        if is_open & matters:
            store_byte(ways, k, is_open & (held if satisfies(s, test, begin + k, address) else failed))
