"""Deadlines that have passed, as events: ticks, and pauses where no event of the key stands for the moment."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.ordering import sort_by
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import events_at
from cerflow.engine.layout import FIRST_MOMENT, NO_BOUND, NOT_BEGUN, NULL

#: Columns of deadlines that have passed: the row that shows it, the turn of its key (computed here), its time, the
#: position of the event that opened it; from the last one on the words of its key, then those of `measured` columns.
D_ROW, D_TURN, D_TIME, D_MEMBER, D_KEY = range(5)


@part
def _precedes(rows, one, other, columns):
    for k in range(columns[0], columns[1]):
        if rows[one, k] != rows[other, k]:
            return rows[one, k] < rows[other, k]
    return False


_sort = sort_by(_precedes, "deadlines")


@kernel
def weave(address, other, at_rows, passed, measured, checked, tick, pause, apart, ticked, read, pauses):
    """Write events in their order, with the ticks and pauses of deadlines that have passed before them.

    The events ``at_rows`` are behind ``address``, the result is written behind ``other``. ``passed`` has a row for each
    deadline, see `D_ROW`; ``measured`` are the columns whose words follow the keys there. ``tick`` and ``pause`` are
    signatures. If ``apart``, a clock has shown each time by itself, before the events. If ``ticked``, a tick comes
    directly before each event, without the columns ``checked``.

    Returns how much was written, and how many pauses. ``read`` has two columns: the number of the event (greater ones
    for ticks and pauses), and the row that shows it (less than 0 for those of a clock). ``pauses`` has two columns: the
    row, or if ``apart`` the time, and the position of an event of the key.
    """
    events, woven = events_at(address), events_at(other)
    n, width = at_rows.shape[0], events.keys.shape[1]
    count = _ordered(passed, width, apart)
    at = out = paused = k = np.int64(0)
    while k < count:
        row = passed[k, D_ROW]
        while at < n and at_rows[at] < row:
            out = _write_event(events, at, at_rows[at], n, woven, out, checked, tick, ticked, read)
            at += 1
        end = k + 1
        while end < count and not apart and passed[end, D_ROW] == row:
            end += 1
        if apart:
            row = k - count if k == 0 or passed[k, D_TIME] != passed[k - 1, D_TIME] else read[out - 1, 1]
        has_event = not apart and at < n and at_rows[at] == row
        # The deadlines of the event's own key come last, and it stands for their moment.
        for last in range(2 if has_event else 1):
            first = k
            for j in range(k, end):
                if j > k and not _same_key(passed, j, passed, j - 1, width, D_KEY):
                    first = j
                own = has_event and _same_key(passed, j, events.keys, at, width, 0)
                if own == (last == 1):
                    out = _write_tick(passed, j, row, n, measured, woven, out, tick, np.int64(-1), read)
                    if not own and (j + 1 == end or not _same_key(passed, j, passed, j + 1, width, D_KEY)):
                        place = np.int64(FIRST_MOMENT) - paused
                        out = _write_tick(passed, first, row, n, measured, woven, out, pause, place, read)
                        pauses[paused, 0] = passed[first, D_TIME] if apart else row
                        pauses[paused, 1] = passed[j, D_MEMBER]
                        paused += 1
        k = end
    while at < n:
        out = _write_event(events, at, at_rows[at], n, woven, out, checked, tick, ticked, read)
        at += 1
    return out, paused


@part
def _ordered(passed, width, apart):
    """Order deadlines as they are read, and keep one for each time of a key that a row shows; returns how many.

    Of one row keys come in turn as their last deadlines began: if the deadline of any match is among those of a key,
    so is that of the last one. If ``apart``, deadlines come in the order of time.
    """
    count = passed.shape[0]
    for k in range(1, count):
        if passed[k, D_ROW] < passed[k - 1, D_ROW]:
            _sort(passed, 0, count, (D_ROW, D_TURN))
            break
    begin = kept = np.int64(0)
    while begin < count:
        end = begin + 1
        while end < count and passed[end, D_ROW] == passed[begin, D_ROW]:
            end += 1
        if end > begin + 1:
            _sort(passed, begin, end, (D_KEY, D_KEY + width))
            first, last = begin, passed[begin, D_MEMBER]
            for k in range(begin, end):
                last = max(last, passed[k, D_MEMBER])
                if k + 1 == end or not _same_key(passed, k, passed, k + 1, width, D_KEY):
                    for j in range(first, k + 1):
                        passed[j, D_TURN] = last
                    first, last = k + 1, np.int64(0)
            _sort(passed, begin, end, (D_TURN, D_KEY))
        for k in range(begin, end):
            new = k == begin or passed[k, D_TIME] != passed[kept - 1, D_TIME]
            if new or not _same_key(passed, k, passed, kept - 1, width, D_KEY):
                for column in range(passed.shape[1]):
                    passed[kept, column] = passed[k, column]
                kept += 1
        begin = end
    if apart:
        _sort(passed, 0, kept, (D_TIME, D_KEY))
    return kept


@inlined
def _same_key(passed, k, others, j, width, begin):
    """Whether a deadline has the same key as another row, whose words ``begin`` at a column."""
    same = True
    for word in range(width):
        same &= passed[k, D_KEY + word] == others[j, begin + word]
    return same


@part
def _write_event(events, at, row, beyond, woven, out, checked, tick, ticked, read):
    """Write an event, after a tick if ``ticked``; returns where the next one goes."""
    for second in range(1 if ticked == 0 else 0, 2):
        for word in range(woven.keys.shape[1]):
            woven.keys[out, word] = events.keys[at, word]
        for column in range(woven.columns.shape[1]):
            woven.columns[out, column] = events.columns[at, column]
        woven.moment[out] = events.moment[at]
        read[out, 0], read[out, 1] = at + (second == 0) * beyond, row
        if second == 0:
            for k in range(checked.shape[0]):
                woven.columns[out, checked[k]] = NULL
            _write_thing(woven, out, tick, np.int64(-1))
        else:
            woven.signature[out] = events.signature[at]
            woven.position[out] = events.position[at]
            woven.measure[out], woven.bound[out] = events.measure[at], events.bound[at]
            woven.left_out[out], woven.idle[out] = events.left_out[at], events.idle[at]
        out += 1
    return out


@inlined
def _write_thing(woven, out, signature, position):
    """Write what ticks and pauses have in common."""
    woven.signature[out], woven.position[out] = signature, position
    woven.measure[out], woven.bound[out] = NOT_BEGUN, NO_BOUND
    woven.left_out[out], woven.idle[out] = 0, NO_BOUND


@part
def _write_tick(passed, k, row, beyond, measured, woven, out, signature, position, read):
    """Write the tick or pause of a deadline; returns where the next one goes."""
    _write_thing(woven, out, signature, position)
    woven.moment[out] = passed[k, D_TIME]
    width = woven.keys.shape[1]
    for word in range(width):
        woven.keys[out, word] = passed[k, D_KEY + word]
    for column in range(woven.columns.shape[1]):
        woven.columns[out, column] = NULL
    for n in range(measured.shape[0]):
        woven.columns[out, measured[n]] = passed[k, D_KEY + width + n]
    read[out, 0], read[out, 1] = beyond, row
    return out + 1
