"""How one event leads runs on: forwards what runs may have behind it, backwards what they must have before it.

Each state has cells: the latest start of its runs, and for values that later events are compared with the greatest one
(turned around where the least counts). Forwards a cell has what some run may have at most; backwards it has a limit,
and a run is of use only if it is beyond the limits of all cells.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.scan import formed, output_words, value_of
from cerflow.engine.layout import NO_BOUND, NULL
from cerflow.engine.scan import layout

#: Rows of `ScanArrays.reach`: what a window measures, and the greatest start outside of it.
MEASURE, BOUND = 0, 1
#: A limit behind all values.
NOWHERE = 2**63 - 1


@part
def value_at(s, value, row, address):
    """The ``value`` of this number in `ScanArrays.values` for a ``row``, as cells have it; `NULL` where there is none.

    ``s`` are the arrays of the scan at ``address``.
    """
    read = s.values[value]
    turn, data = read[layout.VALUE_TURN], read[layout.VALUE_DATA]
    word = v.load_word(data, row) if data != 0 else value_of(s, read, row, address)
    word = formed(word, read[layout.O_FORM], read[layout.O_SIZE])
    if word == NULL:
        return word
    word = ~word if turn & layout.TURNED_AROUND else word
    if turn & layout.A_LIMIT == 0 or turn & layout.INCLUSIVE != 0:
        # Extreme values become one another, which rules out less.
        word = max(word, np.int64(layout.NOTHING + 1))
        return word - 1 if turn & layout.INCLUSIVE else word
    return max(word, np.int64(layout.NOTHING))


@part
def begin_cells(s, count, edge, address):
    """Write to ``edges`` what runs must have to go on behind a batch of ``count`` rows, later than a start ``edge``.

    Finds the words of values, too. ``s`` are the arrays of the scan at ``address``. Returns a measure up to which no
    event leads to one behind.
    """
    for value in range(s.values.shape[0]):
        column = s.values[value, layout.O_COLUMN]
        s.values[value, layout.VALUE_DATA] = v.words_at_once(s.columns, column) if column >= 0 else 0
    states, least, measured = s.places.shape[0], np.int64(NOWHERE), s.reach[0, layout.O_COLUMN]
    for c in range(s.cells.shape[0]):
        which = s.cells[c, layout.CELL_EDGE]
        # Deadlines may pass also where no event follows.
        s.edges[c] = edge if c < states and s.places[c, layout.PLACE_MET] < 0 else np.int64(NO_BOUND)
        if which >= 0 and count > 0:
            s.edges[c] = max(value_at(s, which, count - 1, address), np.int64(NO_BOUND))
    for q in range(states):
        # No run holds a time later than the event at hand; but positions and times are not compared.
        latest = np.int64(NO_BOUND)
        for c in range(s.cells.shape[0]):
            which = s.cells[c, layout.CELL_EDGE]
            same = c < states or (which >= 0 and s.values[which, layout.O_COLUMN] == measured)
            latest = max(latest, s.edges[c]) if same and s.cells[c, layout.CELL_STATE] == q else latest
        least = min(least, latest)
    return least


@part
def begin_runs(s, cells, row, begun, states, address):
    """Write to the ``cells`` of a key what runs may have that began at ``begun`` at the latest, before or at a ``row``.

    They may be in the ``states``, as bits. ``s`` are the arrays of the scan at ``address``.
    """
    for c in range(s.cells.shape[0]):
        which = s.cells[c, layout.CELL_BEFORE]
        most = begun if c < s.places.shape[0] else np.int64(NOWHERE)
        if which >= 0:
            most = value_at(s, which, row, address)
        v.store_word(cells, c, most if states >> s.cells[c, layout.CELL_STATE] & 1 else np.int64(NO_BOUND))


@inlined
def lead_back(s, of, to, known, valued, row, allowed, measure, bound, address):
    """The moves of those ``allowed`` that may lead to the end of a match, and whether the cells before it are others.

    The cells ``of`` a key behind the event say which runs are of use; those in ``to`` become those before it, and are
    made if the key is not ``known``. Unless it is ``valued`` only starts are looked at, and a key has cells for nothing
    else. Its own ``bound`` is the limit of matches that it ends; ``measure`` is what a window measures. ``s`` are the
    arrays of the scan at ``address``.
    """
    steps, leads, bits = (
        v.start_of(s.lead_steps),
        v.start_of(s.leads),
        v.start_of(s.bit_leads),
    )
    limits, found, changed = v.start_of(s.limits), np.int64(0), False
    for q in range(s.places.shape[0] if allowed & layout.WAITS else 0):
        if s.places[q, layout.PLACE_WAITS] == 1 and v.load_word(of, q) < measure:
            found = np.int64(layout.WAITS)
    moves = allowed & (layout.WAITS - 1)
    while moves != 0:
        bit = v.trailing_zeros(moves)
        moves &= moves - 1
        for n in range(v.load_word(bits, bit), v.load_word(bits, bit + 1)):
            lead = leads + 8 * layout.LEAD_WORDS * n
            source, target = v.load_word(lead, layout.LEADS_SOURCE), v.load_word(lead, layout.LEADS_TARGET)
            ends = v.load_word(lead, layout.LEADS_FINAL) == 1
            limit = bound if ends else np.int64(NOWHERE)
            if target >= 0:
                limit = min(limit, v.load_word(of, target))
            if measure <= limit:
                continue
            begin, end = v.load_word(lead, layout.LEADS_STEP), v.load_word(lead, layout.LEADS_STEP_END)
            end = end if valued else begin
            if begin < end and not _is_useful(s, of, steps, limits, begin, end, ends, row, address):
                continue
            found |= np.int64(1) << bit
            if source < 0:
                continue
            changed = True
            if not known:
                for c in range(s.cells.shape[0] if valued else s.places.shape[0]):
                    v.store_word(to, c, s.edges[c])
                known = True
            # Before this event no run is late enough for what the limits were found for.
            stale = v.load_word(to, source) >= measure
            v.store_word(to, source, limit if stale else min(limit, v.load_word(to, source)))
            if begin < end:
                _require(of, to, steps, limits, begin, end, ends, stale)
    return found, changed


@part
def _is_useful(s, of, steps, limits, begin, end, ends, row, address):
    """Whether an event may lead some run on by these steps; notes the ``limits`` of their checks."""
    for k in range(begin, end):
        step = steps + 8 * layout.STEP_WORDS * k
        does, cell = v.load_word(step, layout.STEP_DOES), v.load_word(step, layout.STEP_CELL)
        if does == layout.CHECKS:
            limit = value_at(s, v.load_word(step, layout.STEP_WITH), row, address)
            if limit == NULL:
                return False
            v.store_word(limits, k - begin, limit)
        elif does == layout.WRITES and not ends:
            limit = v.load_word(of, cell)
            if limit != NO_BOUND:
                # Where nothing is written, no later check holds.
                written = value_at(s, v.load_word(step, layout.STEP_WITH), row, address)
                if max(written, np.int64(layout.NOTHING)) <= limit:
                    return False
    return True


@part
def _require(of, to, steps, limits, begin, end, ends, stale):
    """Lower the limits of the state before an event to what these steps need; what they were may be ``stale``."""
    for k in range(begin, end):
        step = steps + 8 * layout.STEP_WORDS * k
        does, cell = v.load_word(step, layout.STEP_DOES), v.load_word(step, layout.STEP_CELL)
        limit = np.int64(NO_BOUND)
        if does == layout.CHECKS:
            limit = v.load_word(limits, k - begin)
        elif does == layout.COPIES:
            limit = np.int64(NO_BOUND) if ends else v.load_word(of, cell)
            cell = v.load_word(step, layout.STEP_WITH)
        elif does != layout.FREES:
            cell = np.int64(-1)
        if cell >= 0:
            v.store_word(to, cell, limit if stale else min(limit, v.load_word(to, cell)))


@inlined
def lead_on(s, of, to, row, allowed, measure, bound, address):
    """The moves of those ``allowed`` that some run may take.

    The cells ``of`` a key before the event say what runs there may be; those in ``to`` become those behind it. Starts
    up to ``bound`` are outside of the window; ``measure`` is what it measures. ``s`` are the arrays of the scan at
    ``address``.
    """
    steps, leads, bits = v.start_of(s.lead_steps), v.start_of(s.leads), v.start_of(s.bit_leads)
    found = np.int64(0)
    for q in range(s.places.shape[0] if allowed & layout.WAITS else 0):
        waits = s.places[q, layout.PLACE_WAITS] == 1 and s.places[q, layout.PLACE_OPEN] < 0
        if waits and v.load_word(of, q) > bound:
            found = np.int64(layout.WAITS)
    moves = allowed & (layout.WAITS - 1)
    while moves != 0:
        bit = 63 - v.leading_zeros(moves)
        moves ^= np.int64(1) << bit
        for n in range(v.load_word(bits, bit + 1) - 1, v.load_word(bits, bit) - 1, -1):
            lead = leads + 8 * layout.LEAD_WORDS * n
            begins = v.load_word(lead, layout.LEADS_BEGINS) == 1
            start = measure if begins else v.load_word(of, v.load_word(lead, layout.LEADS_SOURCE))
            if start <= bound:
                continue
            begin, end = v.load_word(lead, layout.LEADS_STEP), v.load_word(lead, layout.LEADS_STEP_END)
            if begin < end and not begins and not _is_possible(s, of, steps, begin, end, row, address):
                continue
            found |= np.int64(1) << bit
            target = v.load_word(lead, layout.LEADS_TARGET)
            if target >= 0:
                fresh = v.load_word(to, target) <= bound
                if begin < end:
                    _widen(s, of, to, steps, begin, end, row, fresh, address)
                v.store_word(to, target, start if fresh else max(start, v.load_word(to, target)))
    return found


@part
def _is_possible(s, of, steps, begin, end, row, address):
    """Whether some run may be beyond the limits that an event sets by these steps."""
    for k in range(begin, end):
        step = steps + 8 * layout.STEP_WORDS * k
        if v.load_word(step, layout.STEP_DOES) == layout.CHECKS:
            limit = value_at(s, v.load_word(step, layout.STEP_WITH), row, address)
            if limit == NULL or v.load_word(of, v.load_word(step, layout.STEP_CELL)) <= limit:
                return False
    return True


@part
def _widen(s, of, to, steps, begin, end, row, fresh, address):
    """Let the state behind an event have what these steps give it; ``fresh`` if no run is in it yet."""
    for k in range(begin, end):
        step = steps + 8 * layout.STEP_WORDS * k
        does, cell = v.load_word(step, layout.STEP_DOES), v.load_word(step, layout.STEP_CELL)
        given = v.load_word(step, layout.STEP_WITH)
        if does == layout.WRITES:
            most = max(value_at(s, given, row, address), np.int64(layout.NOTHING))
        elif does in (layout.COPIES, layout.CARRIES):
            most = v.load_word(of, given) if given >= 0 else np.int64(NOWHERE)
        else:
            continue
        v.store_word(to, cell, most if fresh else max(most, v.load_word(to, cell)))


# -- windows ----------------------------------------------------------------------------------------------------------


@inlined
def window_words(s):
    """Where the words are that the window measures, if these are 64-bit integers as they are; or else 0.

    It is that in `reach`, or `WITHIN`. ``s`` are the arrays of the scan.
    """
    if s.control[layout.WITHIN] > 0:
        return v.start_of(s.ordinals)
    measured, bound = s.reach[MEASURE], s.reach[BOUND]
    same = bound[layout.O_COLUMN] == measured[layout.O_COLUMN] and bound[layout.O_FORM] == layout.AS_BOUND
    return output_words(s, measured) if same else np.int64(0)


@inlined
def window_measure(s, row, times):
    """What the window measures for a ``row``; ``s`` are the arrays of the scan, ``times`` is from `window_words`."""
    return v.load_word(times, row) if times != 0 else window_value(s, MEASURE, row)


@inlined
def window_bound(s, row, times):
    """The greatest start outside of the window of a ``row``; see `window_measure` for ``s`` and ``times``."""
    return bound_of(s, row, v.load_word(times, row) if times != 0 else np.int64(0), times)


@inlined
def bound_of(s, row, measure, times):
    """The same for a ``row`` of which the ``measure`` is known; see `window_measure` for ``s`` and ``times``."""
    size = s.control[layout.WITHIN] if s.control[layout.WITHIN] > 0 else s.reach[BOUND, layout.O_SIZE]
    return max(measure, NO_BOUND + size) - size if times != 0 else window_value(s, BOUND, row)


@inlined
def first_behind(s, which, count, limit):
    """The first of ``count`` rows whose value of row ``which`` of `reach` is beyond a ``limit``; ``count`` if none is.

    ``s`` are the arrays of the scan. The values do not decrease.
    """
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) >> 1
        if window_value(s, which, middle) > limit:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def window_value(s, which, row):
    """Row ``which`` of `reach`, `MEASURE` or `BOUND`, for a ``row``; ``s`` are the arrays of the scan."""
    word = v.word_of(s.columns, s.reach[which, layout.O_COLUMN], row, s.control[layout.FIRST])
    return formed(word, s.reach[which, layout.O_FORM], s.reach[which, layout.O_SIZE])
