"""The flow of runs through a batch by key, where events of a key end its runs in some states."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.rows import leads
from cerflow.engine.kernels.rows.flow import begin_flow
from cerflow.engine.kernels.rows.key_rows import number_keys
from cerflow.engine.kernels.rows.keys import fetch_groups, key_number, key_words
from cerflow.engine.kernels.rows.leads import NOWHERE, begin_runs, lead_back, lead_on, value_at
from cerflow.engine.kernels.rows.neighbours import relate
from cerflow.engine.kernels.scan.blocks import mark_block
from cerflow.engine.kernels.scan.marks import list_marked
from cerflow.engine.kernels.scan.scan import collected
from cerflow.engine.kernels.scan.values import (
    load_byte,
    load_int,
    load_word,
    locate,
    scan_at,
    start_of,
    store_byte,
    store_int,
    store_word,
)
from cerflow.engine.layout import NO_BOUND
from cerflow.engine.scan import layout


@kernel
def flow_by_key(address, batch, count, key, counted, states, ends):
    """Choose the rows of a batch of ``count`` rows that a match may need, where events end runs of their key.

    Matches, ``states``, whether the stream ``ends`` are as for `flow`, ``key`` as in `scan.keys`. In the end the bytes
    of `guards` say which rows are chosen, as those of `find_rows` do, and `slot_of` what ``counted`` asks of the events
    of a key that are left out directly before each. Returns what stopped it, as ``scan`` does; it begins with 0 in
    `ROW`, and has to begin there again if numbers of keys have changed.
    """
    s = scan_at(address)
    control = s.control
    locate(s.columns, s.texts, batch)
    guards, useful = start_of(s.guards), start_of(s.useful)
    words_at = key_words(s, key)
    # Every event of a key may end some states. Without keys positions tell which events are neighbours.
    numbered = counted != layout.NEITHER or (s.kills[0] != 0 and key != layout.NO_KEYS)
    begin, control[layout.TEXT], distance = control[layout.ROW], layout.NO_KEYS, np.int64(0)
    for n in range(s.links.shape[0]):
        distance = max(distance, s.links[n, layout.L_DISTANCE])
    for g in range(s.groups.shape[0] if begin == 0 else 0):
        s.groups[g, layout.G_ROW], s.groups[g, layout.G_STEPS], s.groups[g, layout.G_ROWS] = -1, 0, 0
    while begin < count:
        size = min(count - begin, layout.STRETCH)
        control[layout.ROW] = begin
        reason = mark_block(s, begin, size, guards + begin, np.int64(0), True, address)
        if reason != layout.SCANNED:
            return collected(s, reason, begin, count)
        control[layout.ROW] = 0
        for k in range(size):
            s.allowed[k] = np.int64(s.masks[load_byte(guards, begin + k)])
        if key == layout.NO_KEYS:
            for k in range(begin, begin + size):
                s.slot_of[k] = 1
            for k in range(begin, begin + size if distance > 0 else begin):
                s.before[k] = k - 1
        elif numbered:
            if not number_keys(s, begin, size, key, guards, 0):
                return layout.NO_ROOM
            for k in range(size):
                s.slot_of[begin + k] = s.numbers[k]
                s.allowed[k] = s.allowed[k] if s.numbers[k] > 0 else 0
        else:
            fetch_groups(s, list_marked(s, begin, begin + size, guards), key, words_at)
            for k in range(size):
                g = key_number(s, begin + k, key, words_at) if s.allowed[k] != 0 else np.int64(0)
                if g < 0:
                    return layout.NO_ROOM
                s.slot_of[begin + k] = g
        for n in range(s.links.shape[0]):
            relate(s, n, begin, size)
        for k in range(size if distance == 0 else 0):
            store_byte(useful, begin + k, s.allowed[k])
        for k in range(size if distance > 0 else 0):
            # Conditions on an event before those of the batch rule out nothing.
            known = s.slot_of[begin + k] == 0 or _before(s, begin + k, distance) >= 0
            allowed = s.allowed[k] if known else np.int64(s.masks[load_byte(guards, begin + k)])
            store_byte(useful, begin + k, allowed)
        begin += size
    _lead_back(s, count, key, ends, guards, useful, address)
    # Where runs wait for a deadline, the events of their key there decide in which order matches are found.
    waits = _waits(s)
    if waits or 4 * control[layout.KEPT] > count:
        _lead_on(s, count, states, waits, guards, useful, address)
        if not waits:
            _lead_back(s, count, key, ends, guards, useful, address)
    for k in range(8):
        store_word(guards + count, k, np.int64(0))
    for k in range(count):
        store_byte(guards, k, load_byte(useful, k) != 0)
    if numbered:
        _count_left_out(s, count, counted, ends == 0, guards)
    return layout.SCANNED


@part
def _count_left_out(s, count, counted, goes_on, guards):
    """Write to `slot_of` what ``counted`` asks of the rows of a key that are left out directly before each chosen one.

    If the stream ``goes_on`` the last row of each key is chosen, too, so that none is left out before the next batch.
    """
    for g in range(s.groups.shape[0]):
        if goes_on and g > 0 and s.groups[g, layout.G_ROW] >= 0:
            store_byte(guards, s.groups[g, layout.G_ROW], 1)
        s.groups[g, layout.G_ROWS] = 0
    for k in range(count if counted == layout.WHETHER else 0):
        if load_byte(guards, k) != 0:
            before = np.int64(s.before[k])
            s.slot_of[k] = before >= 0 and load_byte(guards, before) == 0
    for k in range(count if counted == layout.HOW_MANY else 0):
        g = np.int64(s.slot_of[k])
        if g > 0:
            if load_byte(guards, k) != 0:
                s.slot_of[k], s.groups[g, layout.G_ROWS] = s.groups[g, layout.G_ROWS], 0
            else:
                s.groups[g, layout.G_ROWS] += 1


@inlined
def _before(s, row, distance):
    """The row of the event this far before that of a ``row``, among those of its key; -1 if it is not known."""
    before = np.int64(row)
    for _ in range(distance):
        before = np.int64(s.before[before]) if before >= 0 else before
    return before


@inlined
def _waits(s):
    """Whether runs wait for deadlines."""
    for q in range(s.places.shape[0]):
        if s.places[q, layout.PLACE_OPEN] >= 0:
            return True
    return False


@part
def _lead_back(s, count, key, ends, guards, useful, address):
    """Clear the ``useful`` moves of rows that do not lead to the end of a match, from the last row on."""
    begin_flow(s, count, ends, address)
    control, times, last, waits = s.control, leads.window_words(s), np.int64(0), _waits(s)
    if waits:
        control[layout.LIMIT] = NO_BOUND
    for bit in range(layout.MOVES):
        for n in range(s.bit_leads[bit], s.bit_leads[bit + 1]):
            last |= s.leads[n, layout.LEADS_FINAL] << bit
    flows, edges, width = start_of(s.flows), start_of(s.edges), s.flows.shape[1]
    numbers, kills, cell_rows = start_of(s.slot_of), start_of(s.kills), start_of(s.cells)
    limit = control[layout.LIMIT]
    relevant = kept = np.int64(0)
    # By key: whether it has cells, and the states that the row behind has ended if it does nothing else.
    groups = start_of(s.groups)
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_STEPS] = s.groups[g, layout.G_ROWS] = 0
    k = np.int64(count)
    while k > 0:
        k -= 1
        dead = key == layout.NO_KEYS and not waits and s.groups[1, layout.G_ROWS] == s.kills[0]
        if dead and k & 7 == 7 and load_word(useful, k >> 3) == 0:
            k -= 7
            relevant += 8
            continue
        g, found = load_int(numbers, k), np.int64(0)
        group = groups + 4 * layout.GROUP_WORDS * g
        allowed = load_byte(useful, k) if g > 0 else np.int64(0)
        killed = load_word(kills, load_byte(guards, k))
        relevant += g > 0
        if allowed == 0 and load_int(group, layout.G_ROWS) == killed and not waits:
            store_byte(useful, k, 0)
            continue
        measure = leads.window_measure(s, k, times)
        if allowed & last != 0:
            limit = leads.window_bound(s, k, times)
        if g > 0 and measure > limit and allowed | killed != 0:
            store_int(group, layout.G_ROWS, killed if allowed == 0 else np.int64(0))
            known, cells = load_int(group, layout.G_STEPS) == 1, flows + 8 * width * g
            of = cells if known else edges
            if killed != 0:
                # Row 0 keeps what is behind the event.
                for c in range(width):
                    word = load_word(of, c)
                    store_word(flows, c, word)
                    ended = killed >> load_word(cell_rows, layout.CELL_WORDS * c + layout.CELL_STATE) & 1
                    store_word(cells, c, np.int64(NOWHERE) if ended else word)
                of, known = flows, True
                if waits:
                    _leave_back(s, cells, killed, k, address)
            found, changed = lead_back(s, of, cells, known, True, k, allowed, measure, limit, address)
            store_int(group, layout.G_STEPS, np.int64(known or changed))
            kept += found != 0
        store_byte(useful, k, found)
    control[layout.LIMIT], control[layout.RELEVANT], control[layout.KEPT] = limit, relevant, kept


@part
def _leave_back(s, cells, killed, row, address):
    """Let runs in the states ``killed`` by a row be of use before it if they have met their deadline by then."""
    for c in range(s.cells.shape[0]):
        q = s.cells[c, layout.CELL_STATE]
        met = s.places[q, layout.PLACE_MET]
        if killed >> q & 1 and met >= 0:
            limit = np.int64(NO_BOUND)
            if c == met:
                limit = max(value_at(s, s.places[q, layout.PLACE_MET_LIMIT], row, address), limit)
            store_word(cells, c, limit)


@part
def _lead_on(s, count, states, waits, guards, useful, address):
    """Clear the ``useful`` moves of rows that no run reaches.

    Before the batch runs may be in the ``states``. If some of them ``waits`` for a deadline, rows stay where one is
    open.
    """
    times, begun = leads.window_words(s), leads.window_value(s, leads.MEASURE, 0)
    flows, width, groups, numbers = start_of(s.flows), s.flows.shape[1], start_of(s.groups), start_of(s.slot_of)
    kills, masks, cell_rows = start_of(s.kills), start_of(s.masks), start_of(s.cells)
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_STEPS] = 0
    for k in range(count):
        g, own = load_int(numbers, k), load_byte(guards, k)
        killed, group = load_word(kills, own), groups + 4 * layout.GROUP_WORDS * g
        if g == 0 or load_byte(masks, own) | killed == 0:
            continue
        cells = flows + 8 * width * g
        if load_int(group, layout.G_STEPS) == 0:
            store_int(group, layout.G_STEPS, np.int64(1))
            begin_runs(s, cells, np.int64(0), begun, states, address)
        of, moves = cells, load_byte(useful, k)
        near = waits and _is_open(s, cells, k, address)
        if killed != 0:
            of = flows
            for c in range(width):
                word = load_word(cells, c)
                store_word(flows, c, word)
                ended = killed >> load_word(cell_rows, layout.CELL_WORDS * c + layout.CELL_STATE) & 1
                store_word(cells, c, np.int64(NO_BOUND) if ended else word)
        bound, measure = leads.window_bound(s, k, times), leads.window_measure(s, k, times)
        if waits:
            # A row that is kept makes all of its moves, also those that later events will end.
            found = lead_on(s, of, start_of(s.edges), k, moves, measure, bound, address)
            found |= layout.WAITS if near else 0
            moves = load_byte(masks, own) if found != 0 else np.int64(0)
            lead_on(s, of, cells, k, moves, measure, bound, address)
        else:
            found = lead_on(s, of, cells, k, moves, measure, bound, address)
        store_byte(useful, k, found)


@inlined
def _is_open(s, cells, row, address):
    """Whether a deadline of some run of a key may be open at a ``row``, or be shown to have passed by it."""
    for q in range(s.places.shape[0]):
        cell = s.places[q, layout.PLACE_OPEN]
        if cell >= 0:
            limit = np.int64(NO_BOUND)
            if row > 0:
                limit = value_at(s, s.places[q, layout.PLACE_OPEN_LIMIT], row - 1, address)
            if load_word(cells, cell) > limit:
                return True
    return False
