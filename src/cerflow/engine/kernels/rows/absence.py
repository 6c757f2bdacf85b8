"""Events that no other one of their key follows until a deadline, found in the rows of a batch."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.rows import leads
from cerflow.engine.kernels.rows.keys import fetch_groups, key_number, key_words
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.marks import list_marked
from cerflow.engine.kernels.scan.scan import mark_all
from cerflow.engine.layout import NULL
from cerflow.engine.scan import layout

#: There are too few such rows, or several matches of one event.
NOT_FOUND = -1


@kernel
def absent(address, batch, count, key, opening, ending, carried, found):
    """Find the rows of a batch of ``count`` rows that open a deadline before whose end no row of their key ends.

    Rows open a deadline if one of the guards ``opening`` holds, and end the waiting of their ``key`` (see `scan.keys`)
    if one of the guards ``ending`` holds. `reach` measures the time until the deadline, ``carried`` is the measure of
    the last deadline that is open before the batch (`NULL`: none is).

    Returns what stopped it, as ``scan`` does, to go on from `ROW`; the row that shows the last deadline open before
    (-1: none is); the first row whose deadline is shown behind that; the first row whose deadline is not shown in the
    batch; whether no two matches have the same moment; and how many rows are in ``found`` (int32, four columns), last
    first: the row, the row that shows its deadline, the number of its key, and whether that row has the same key. That
    is `NOT_FOUND` if the automaton has to read all rows.
    """
    s = v.scan_at(address)
    control = s.control
    v.locate(s.columns, s.texts, batch)
    last, begin = np.int64(-1), np.int64(0)
    if carried != NULL:
        last = leads.first_behind(s, leads.BOUND, count, carried - 1)
        begin = np.int64(count)
        if last < count:
            begin = leads.first_behind(s, leads.MEASURE, count, leads.window_value(s, leads.BOUND, last))
    behind = leads.first_behind(s, leads.MEASURE, count, leads.window_value(s, leads.BOUND, count - 1))
    if begin >= behind or 2 * (last + 1 + count - behind) > count:
        return layout.SCANNED, last, begin, behind, np.int64(0), np.int64(NOT_FOUND)
    guards = v.start_of(s.guards)
    reason = mark_all(s, count, address) if control[layout.LOOKED_AHEAD] == 0 else np.int64(layout.SCANNED)
    if reason != layout.SCANNED:
        return reason, last, begin, behind, np.int64(0), np.int64(NOT_FOUND)
    # If it stops from here on, keys get new numbers.
    control[layout.ROW], control[layout.LOOKED_AHEAD], control[layout.TEXT] = 0, 1, layout.NO_KEYS
    single, many = _pass(s, guards, count, key, opening, ending, begin, behind, found)
    reason = layout.NO_ROOM if control[layout.TEXT] != layout.NO_KEYS else layout.SCANNED
    return reason, last, begin, behind, single, many


@part
def _pass(s, guards, count, key, opening, ending, begin, behind, found):
    """Write what is found from the last row back to ``begin``; returns whether moments differ, and how many rows."""
    # By key: the next event that ends it, and the row that shows the next deadline.
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_ROW] = s.groups[g, layout.G_STEPS] = -1
    single = np.int64(1)
    times = leads.window_words(s)
    shown, many, words_at = np.int64(count), np.int64(0), key_words(s, key)
    for first in range((count - 1) & -layout.STRETCH, (begin & -layout.STRETCH) - 1, -layout.STRETCH):
        some = list_marked(s, first, min(first + layout.STRETCH, count), guards)
        fetch_groups(s, some, key, words_at)
        for n in range(some - 1, -1, -1):
            k = s.chosen[n]
            g = key_number(s, k, key, words_at)
            if g < 0:
                return np.int64(0), np.int64(NOT_FOUND)
            s.slot_of[k] = g
            own = v.load_byte(guards, k)
            opens = own & opening
            if g > 0 and opens != 0 and begin <= k < behind:
                if opens & (opens - 1) != 0:
                    return np.int64(0), np.int64(NOT_FOUND)
                measure = leads.window_measure(s, k, times)
                shown = _first_shown(s, k, measure, shown, times)
                next_end = np.int64(s.groups[g, layout.G_ROW])
                if next_end < 0 or next_end >= shown:
                    found[many, 0], found[many, 1], found[many, 2] = k, shown, g
                    found[many, 3] = v.load_byte(guards, shown) != 0 and s.slot_of[shown] == g
                    many += 1
                    single &= np.int64(s.groups[g, layout.G_STEPS] != shown)
                    s.groups[g, layout.G_STEPS] = shown
            if own & ending != 0:
                s.groups[g, layout.G_ROW] = k
    return single, many


@inlined
def _first_shown(s, row, measure, shown, times):
    """The first row behind ``row`` whose bound reaches a ``measure``, at most ``shown``; in steps that grow."""
    low, step = shown - 1, np.int64(1)
    while low > row and leads.window_bound(s, low, times) >= measure:
        shown, low, step = low, max(low - step, row), 2 * step
    while shown - low > 1:
        middle = (low + shown) >> 1
        if leads.window_bound(s, middle, times) >= measure:
            shown = middle
        else:
            low = middle
    return shown
