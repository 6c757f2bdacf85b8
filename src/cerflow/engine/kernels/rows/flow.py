"""The flow of runs through a batch: which rows lie between where a run may be and where it may still end."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.rows import leads
from cerflow.engine.kernels.rows.keys import (
    begin_list,
    end_stretch,
    enter_slot,
    is_entered,
    list_before,
    list_rows,
    shift_of_slots,
)
from cerflow.engine.kernels.rows.leads import BOUND, MEASURE, NOWHERE, window_value, window_words
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.blocks import mark_block
from cerflow.engine.kernels.scan.scan import collected
from cerflow.engine.scan import layout

#: Values are looked at again if at least one row in this many is left.
_MANY = 32
#: Rows whose new texts are read together.
_TOGETHER = 4 * layout.BLOCK
#: Slots for each row of a window, and at least.
_SPREAD, _LEAST = 16, 1 << 12
#: Rows of a long window.
_LONG = 1 << 16
#: A pass that rules out less than these shares of `_TOLD` rows with guards (backwards, forwards, by key) rests for
#: `_REST` rows, then for twice as many. By key the share is smaller, as the automaton takes longer for an event.
_BACK, _ON, _BY_KEY, _TOLD, _REST = 0.25, 0.5, 1 / 6, 1024, 16 * layout.BLOCK


@kernel
def flow(address, batch, count, states, ends):
    """Write the guards of all rows of a batch of ``count`` rows; none for those that no match can need.

    A match ends with an event for which one of the guards `step_guards` may hold, and lies within the window that
    `reach` measures. Runs may be in the ``states``, as bits by columns of `flows`, before the batch, and later events
    may go on with any run, unless the stream ``ends`` with it. Guards may be there already, as `LOOKED_AHEAD` says.
    Returns what stopped it, as ``scan`` does; it begins with ``count`` in `ROW`, and goes on before the row there.
    """
    s = v.scan_at(address)
    control = s.control
    v.locate(s.columns, s.texts, batch)
    guards = v.start_of(s.guards)
    marked = control[layout.LOOKED_AHEAD] == 1
    if control[layout.ROW] == count:
        for k in range(8):
            v.store_word(guards + count, k, np.int64(0))
        control[layout.PAUSE] = _REST
        begin_flow(s, count, ends, address)
        begin_list(s, count)
        if marked:
            control[layout.ROW] = 0
    # Where windows are long, values tell more than whether a key has an event behind.
    rows = rows_in_window(s, count)
    control[layout.SLOTS] = slots_for(s, rows)
    valued = rows >= _LONG
    while control[layout.ROW] > 0:
        end = control[layout.ROW]
        begin = (end - 1) & -layout.BLOCK
        closing = control[layout.BACKWARDS] == 1
        # Behind the windows of all matches only their last events are looked for.
        wanted = s.step_guards[0] if closing and control[layout.PASSED] == 1 else np.int64(0)
        reason = mark_block(s, begin, end - begin, guards + begin, wanted, True, address)
        if reason != layout.SCANNED:
            return collected(s, reason, max(end - _TOGETHER, 0), end)
        if closing:
            _close_block(s, begin, end, guards, True, valued, address)
        control[layout.ROW] = begin
    if marked and control[layout.BACKWARDS] == 1:
        _close_all(s, count, guards, True, valued, address)
    if control[layout.FORWARDS] == 1:
        found, kept = control[layout.RELEVANT], control[layout.KEPT]
        if control[layout.BACKWARDS] == 0:
            found = kept = v.rows_with(guards, count, np.int64(255))
        left = _follow_all(s, count, states, guards, control[layout.BACKWARDS] == 0, address)
        again = 4 * left < 3 * kept or (s.lead_steps.shape[0] > 0 and _MANY * left > count)
        if control[layout.BACKWARDS] == 1 and again:
            # Fewer rows may lead from others now. Values cost more, so behind short windows they waited until here.
            begin_flow(s, count, ends, address)
            _close_all(s, count, guards, False, True, address)
        control[layout.KEPT], control[layout.RELEVANT] = left, found
    return layout.SCANNED


@part
def _close_all(s, count, guards, new, valued, address):
    """Call `_close_block` for all blocks."""
    end = np.int64(count)
    while end > 0:
        begin = (end - 1) & -layout.BLOCK
        _close_block(s, begin, end, guards, new, valued, address)
        end = begin


@part
def _close_block(s, begin, end, guards, new, valued, address):
    """Call `_close` for a block, unless the pass rests: then its rows stay."""
    control, keyed = s.control, s.keyed.shape[0] > 0
    if end > control[layout.RESTS]:
        if new:
            _leave(s, begin, end, guards, address)
        return
    if end == control[layout.RESTS]:
        # The pass knows nothing of the rows that it has left behind.
        overlap, relevant, kept = control[layout.OVERLAP], control[layout.RELEVANT], control[layout.KEPT]
        begin_flow(s, end, 0, address)
        control[layout.OVERLAP], control[layout.RELEVANT], control[layout.KEPT] = overlap, relevant, kept
    # Rows whose windows go on behind the last row of the pass stay anyway, so they do not count.
    if control[layout.SAMPLED] < 0 and end <= control[layout.SETTLED]:
        control[layout.SAMPLED], control[layout.SAMPLE_KEPT] = control[layout.RELEVANT], control[layout.KEPT]
    _close(s, begin, end, guards, new, valued, address)
    seen, left = control[layout.RELEVANT] - control[layout.SAMPLED], control[layout.KEPT] - control[layout.SAMPLE_KEPT]
    if control[layout.SAMPLED] >= 0 and seen >= _TOLD and _is_vain(seen, seen - left, _BY_KEY if keyed else _BACK):
        control[layout.RESTS] = max(begin - control[layout.PAUSE], 0)
        control[layout.PAUSE] *= 2
        control[layout.PASSED] = 0


@inlined
def _is_vain(seen, ruled_out, least):
    """Whether less than a share of the rows ``seen`` was ruled out."""
    return np.float64(ruled_out) < least * np.float64(seen)


@part
def _leave(s, begin, end, guards, address):
    """Leave the rows of a block as they are."""
    useful, masks = v.start_of(s.useful), v.start_of(s.masks)
    some = v.rows_with(guards + begin, end - begin, np.int64(255))
    s.control[layout.RELEVANT] += some
    s.control[layout.KEPT] += some
    for k in range(begin, end):
        v.store_byte(useful, k, v.load_byte(masks, v.load_byte(guards, k)))
    first = np.int64(end)
    while s.keyed.shape[0] > 0 and first > begin:
        last, first = first, (first - 1) & -layout.STRETCH
        for n in range(list_rows(s, first, last, guards, 0, False, False, address) - 1, -1, -1):
            list_before(s, s.chosen[n], s.at[n], s.measures[n])
        end_stretch(s, first)


@part
def _follow_all(s, count, states, guards, new, address):
    """Call `_follow` for all blocks, unless it rests; returns how many rows are left."""
    keyed, left, rests, pause = s.keyed.shape[0] > 0, np.int64(0), np.int64(0), np.int64(_REST)
    begun = seen = ruled_out = np.int64(0)
    for begin in range(0, count, layout.BLOCK):
        end = min(begin + layout.BLOCK, count)
        some = v.rows_with(guards + begin, end - begin, np.int64(255))
        if begin < rests:
            left += some
            continue
        row = max(np.int64(begin) - 1, np.int64(0))
        if begin == rests:
            states = states if begin == 0 else np.int64(-1)
            begun, seen, ruled_out = window_value(s, MEASURE, row), np.int64(0), np.int64(0)
            for k in range(s.entered.shape[0]):
                s.entered[k] = 0
            if not keyed:
                leads.begin_runs(s, v.start_of(s.flows), row, begun, states, address)
        # A key may have runs from before until a window has passed, so rows until then do not count.
        tells = begin > rests and (not keyed or window_value(s, BOUND, begin) > begun)
        kept = _follow(s, begin, end, rests, begun, states, guards, new, address)
        left += kept
        seen += some if tells else 0
        ruled_out += some - kept if tells else 0
        if seen >= _TOLD and _is_vain(seen, ruled_out, _BY_KEY if keyed else _ON):
            rests = end + pause
            pause *= 2
    return left


@part
def rows_in_window(s, count):
    """How many of ``count`` rows a window has on average; all if it measures floats.

    ``s`` are the arrays of the scan.
    """
    if s.reach[BOUND, layout.O_FORM] != layout.AS_BOUND:
        return np.float64(count)
    span = np.float64(window_value(s, MEASURE, count - 1)) - np.float64(window_value(s, MEASURE, 0)) + 1.0
    return np.float64(s.reach[BOUND, layout.O_SIZE]) * np.float64(count) / span


@part
def slots_for(s, rows):
    """How many rows of `flows` suffice for the keys of the ``rows`` in a window, which is all that matters at a time.

    ``s`` are the arrays of the scan.
    """
    slots, wanted = s.flows.shape[0], max(_SPREAD * rows, np.float64(_LEAST))
    while slots > 1 and np.float64(slots >> 1) >= wanted:
        slots >>= 1
    return slots


@part
def begin_flow(s, count, ends, address):
    """Begin at the end of a batch of ``count`` rows, behind which any run may go on, or none if the stream ``ends``.

    ``s`` are the arrays of the scan at ``address``.
    """
    control = s.control
    # Starts at or before a limit are outside of the windows of all events behind with which a match may end.
    edge = np.int64(NOWHERE) if ends != 0 else window_value(s, BOUND, count - 1)
    control[layout.LIMIT], control[layout.EDGE] = edge, leads.begin_cells(s, count, edge, address)
    control[layout.SETTLED] = leads.first_behind(s, MEASURE, count, edge)
    control[layout.OVERLAP] = count - control[layout.SETTLED]
    if s.keyed.shape[0] == 0 and 2 * control[layout.OVERLAP] > count:
        # Too few rows are left to judge by, so all rows count.
        control[layout.SETTLED] = count
    for k in range(s.entered.shape[0]):
        s.entered[k] = 0
    control[layout.TURN], control[layout.TURNED] = window_value(s, BOUND, count - 1), count
    control[layout.PASSED] = np.int64(ends != 0)
    control[layout.RELEVANT] = control[layout.KEPT] = control[layout.LEAD] = 0
    control[layout.SAMPLED], control[layout.RESTS] = -1, count + 1
    for c in range(s.cells.shape[0] if s.keyed.shape[0] == 0 else 0):
        v.store_word(v.start_of(s.flows), c, s.edges[c])


@part
def _close(s, begin, end, guards, new, valued, address):
    """Clear the guards of the rows of a block that no match can need; it is ``new`` to the passes over it.

    See `lead_back` for ``valued``.
    """
    control, keyed = s.control, s.keyed.shape[0] > 0
    useful, masks, last_guards = v.start_of(s.useful), v.start_of(s.masks), s.step_guards[0]
    limit, passed = control[layout.LIMIT], control[layout.PASSED] == 1
    relevant, kept = control[layout.RELEVANT], control[layout.KEPT]
    edge, turn = control[layout.EDGE], control[layout.TURN]
    flows, edges = v.start_of(s.flows), v.start_of(s.edges)
    width = s.flows.shape[1] if valued else s.places.shape[0]
    times, shift, chosen, hashes = window_words(s), shift_of_slots(s), v.start_of(s.chosen), v.start_of(s.at)
    measures, listing = v.start_of(s.measures), keyed and new
    while end > begin:
        first = (end - 1) & -layout.STRETCH
        if passed and v.rows_with(guards + first, end - first, last_guards) == 0:
            relevant += v.rows_with(guards + first, end - first, np.int64(255))
            for k in range(first, end):
                v.store_byte(guards, k, np.int64(0))
            if listing:
                end_stretch(s, first)
            end = first
            continue
        for n in range(list_rows(s, first, end, guards, width, valued, not new, address) - 1, -1, -1):
            k, key, measure = v.load_word(chosen, n), v.load_word(hashes, n), v.load_word(measures, n)
            relevant += 1
            own = v.load_byte(guards, k)
            if own & last_guards != 0:
                limit = leads.bound_of(s, k, measure, times)
            passed = measure <= limit
            allowed = v.load_byte(masks, own) if new else v.load_byte(useful, k)
            found = np.int64(0)
            # No event before has a greater measure.
            if not passed:
                if keyed and measure <= turn:
                    turn = _turned(s, k)
                slot = max(key, np.int64(0)) >> shift
                known = not keyed or is_entered(s, slot)
                # Most keys have no event near enough behind.
                if key >= 0 and (known or measure > edge or own & last_guards != 0):
                    cells = flows + 8 * width * slot
                    of = cells if known else edges
                    found, changed = leads.lead_back(s, of, cells, known, valued, k, allowed, measure, limit, address)
                    if keyed and changed:
                        enter_slot(s, slot)
            if found == 0:
                v.store_byte(guards, k, np.int64(0))
            else:
                v.store_byte(useful, k, found)
                if listing:
                    list_before(s, k, key, measure)
                # With keys, moves that are ruled out tell much to those that look forwards.
                kept += found == allowed or not keyed
        if listing:
            end_stretch(s, first)
        end = first
    control[layout.LIMIT], control[layout.PASSED] = limit, np.int64(passed)
    control[layout.RELEVANT], control[layout.KEPT] = relevant, kept


@part
def _turned(s, row):
    """Forget the keys of rows so far behind ``row`` that no match has both, where that pays; the next `TURN`."""
    words, used = s.entered.shape[0] >> 1, (s.control[layout.SLOTS] >> 6) + 1
    if s.control[layout.TURNED] - row >= 4 * used:
        # Limits of a row are not before its own bound.
        for k in range(used):
            s.entered[words + k], s.entered[k] = s.entered[k], 0
        s.control[layout.TURN], s.control[layout.TURNED] = window_value(s, BOUND, row), row
    return s.control[layout.TURN]


@part
def _follow(s, begin, end, since, begun, states, guards, new, address):
    """Clear the guards of the rows of a block that no run reaches within its window; returns how many are left.

    The rows are ``new`` to the passes. The pass began at row ``since``; see `begin_runs` for ``begun`` and ``states``.
    """
    useful, masks, chosen, hashes = v.start_of(s.useful), v.start_of(s.masks), v.start_of(s.chosen), v.start_of(s.at)
    keyed, times = s.keyed.shape[0] > 0, window_words(s)
    flows, width, shift = v.start_of(s.flows), s.flows.shape[1], shift_of_slots(s)
    cells, kept, measures = flows, np.int64(0), v.start_of(s.measures)
    for first in range(begin, end, layout.STRETCH):
        stop = min(first + layout.STRETCH, end)
        for n in range(list_rows(s, first, stop, guards, width, True, not new, address)):
            k, key, measure = v.load_word(chosen, n), v.load_word(hashes, n), v.load_word(measures, n)
            if keyed:
                slot = max(key, np.int64(0)) >> shift
                cells = flows + 8 * width * slot
                if key >= 0 and not is_entered(s, slot):
                    enter_slot(s, slot)
                    leads.begin_runs(s, cells, max(since - 1, 0), begun, states, address)
            allowed = v.load_byte(masks, v.load_byte(guards, k)) if new else v.load_byte(useful, k)
            found = np.int64(0)
            if key >= 0:
                bound = leads.bound_of(s, k, measure, times)
                found = leads.lead_on(s, cells, cells, k, allowed, measure, bound, address)
            v.store_byte(useful, k, found)
            if found == 0:
                v.store_byte(guards, k, np.int64(0))
            else:
                kept += 1
    return kept
