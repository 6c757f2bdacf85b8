"""The flow of runs through a batch by key, where the next event of a key ends some states."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import address_of, pointer_to
from cerflow.engine.kernels.scan.arrays import scan_at
from cerflow.engine.kernels.scan.blocks import mark_block
from cerflow.engine.kernels.scan.flow import NOWHERE, begin_flow, window_bound, window_measure, window_words
from cerflow.engine.kernels.scan.neighbours import number_keys, relate
from cerflow.engine.kernels.scan.scan import collected
from cerflow.engine.kernels.scan.values import load_byte, locate, store_byte, store_word, trailing_zeros
from cerflow.engine.scan import layout


@kernel
def flow_by_key(address, batch, count, key, ends):
    """Choose the rows of a batch of ``count`` rows that a match may need, if the next event of a key ends some states.

    Matches, and whether the stream ``ends``, are as for `flow`, and ``key`` as for `narrow`. In the end the bytes of
    `guards` say which rows the automaton has to read, as those of `find_rows` do. Returns what stopped it, as ``scan``
    does; it begins with 0 in `ROW`, and has to begin there again if numbers of keys have changed.
    """
    s = scan_at(address)
    control = s.control
    locate(s.columns, s.texts, batch)
    guards, useful = address_of(pointer_to(s.guards, 0)), address_of(pointer_to(s.useful, 0))
    begin, control[layout.TEXT] = control[layout.ROW], layout.NO_KEYS
    for g in range(s.groups.shape[0] if begin == 0 else 0):
        s.groups[g, layout.G_ROW], s.groups[g, layout.G_STEPS], s.groups[g, layout.G_ROWS] = -1, 0, 0
    while begin < count:
        size = min(count - begin, layout.STRETCH)
        control[layout.ROW] = begin
        reason = mark_block(s, begin, size, guards + begin, np.int64(0), True, address)
        if reason != layout.SCANNED:
            return collected(s, reason, begin, count)
        control[layout.ROW] = 0
        if not number_keys(s, begin, size, key, guards, 0):
            return layout.NO_ROOM
        for k in range(size):
            s.slot_of[begin + k] = s.numbers[k]
            s.allowed[k] = np.int64(s.masks[load_byte(guards, begin + k)]) if s.numbers[k] > 0 else 0
            store_byte(useful, begin + k, s.allowed[k])
        for n in range(s.links.shape[0]):
            if not relate(s, n, begin, size):
                return layout.NO_ROOM
        for k in range(size):
            # The event before the first one of a key is not known.
            if s.numbers[k] > 0 and s.before[begin + k] >= 0:
                store_byte(useful, begin + k, s.allowed[k])
        begin += size
    for k in range(8):
        store_word(guards + count, k, np.int64(0))
    _lead_back(s, count, ends, guards, useful)
    if 4 * control[layout.KEPT] > count and s.strict.shape[0] < 32:
        _lead_on(s, count, useful)
        _lead_back(s, count, ends, guards, useful)
    # Of each key the last row ends what the next event does not continue.
    for g in range(1, s.groups.shape[0] if ends == 0 else 0):
        if s.groups[g, layout.G_ROW] >= 0:
            store_byte(guards, s.groups[g, layout.G_ROW], layout.AS_IT_IS)
    for k in range(count):
        if load_byte(guards, k) != 0 and s.before[k] >= 0 and load_byte(guards, np.int64(s.before[k])) == 0:
            store_byte(guards, k, layout.BEHIND_OTHERS)
    return layout.SCANNED


@part
def _lead_back(s, count, ends, guards, useful):
    """Write to ``guards`` which rows may lead to the end of a match, from the last row on."""
    begin_flow(s, count, ends)
    times, last = window_words(s), np.int64(0)
    for bit in range(layout.MOVES):
        for n in range(s.bit_leads[bit], s.bit_leads[bit + 1]):
            last |= s.leads[n, layout.LEADS_FINAL] << bit
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_STEPS] = 0
    for k in range(count - 1, -1, -1):
        g = np.int64(s.slot_of[k])
        is_needed = g > 0 and _needed(s, k, g, load_byte(useful, k), last, times)
        store_byte(guards, k, np.int64(is_needed))


@part
def _lead_on(s, count, useful):
    """Clear the moves of rows to which no run of their key leads; before the batch runs may be anywhere."""
    ended = np.int64(0)
    for q in range(s.strict.shape[0]):
        ended |= np.int64(s.strict[q]) << q
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_STEPS] = -1
    for k in range(count):
        g = np.int64(s.slot_of[k])
        if g == 0:
            continue
        moves, entered, occupied = load_byte(useful, k), np.int64(0), np.int64(s.groups[g, layout.G_STEPS])
        found = moves & layout.WAITS
        moves ^= found
        while moves != 0:
            bit = trailing_zeros(moves)
            moves &= moves - 1
            for n in range(s.bit_leads[bit], s.bit_leads[bit + 1]):
                source, target = s.leads[n, layout.LEADS_SOURCE], s.leads[n, layout.LEADS_TARGET]
                if s.leads[n, layout.LEADS_BEGINS] == 1 or occupied >> source & 1 == 1:
                    found |= np.int64(1) << bit
                    entered |= np.int64(1) << target if target >= 0 else np.int64(0)
        store_byte(useful, k, found)
        s.groups[g, layout.G_STEPS] = occupied & ~ended | entered


@inlined
def _needed(s, row, g, allowed, last, times):
    """Whether a match may need a row of a key; the limits of the key become those before the row."""
    control, flows = s.control, s.flows
    measure = window_measure(s, row, times)
    if allowed & last != 0:
        control[layout.LIMIT] = window_bound(s, row, times)
    control[layout.RELEVANT] += 1
    if measure <= control[layout.LIMIT]:
        return False
    states, edge = flows.shape[1], control[layout.EDGE]
    if s.groups[g, layout.G_STEPS] == 0:
        s.groups[g, layout.G_STEPS] = 1
        for q in range(states):
            flows[g, q] = edge
    found = np.int64(0)
    for q in range(states):
        flows[0, q] = NOWHERE
        found |= allowed & layout.WAITS if flows[g, q] < measure else 0
    moves = allowed & (layout.WAITS - 1)
    while moves != 0:
        bit = trailing_zeros(moves)
        moves &= moves - 1
        for n in range(s.bit_leads[bit], s.bit_leads[bit + 1]):
            limit = control[layout.LIMIT] if s.leads[n, layout.LEADS_FINAL] == 1 else np.int64(NOWHERE)
            source, target = s.leads[n, layout.LEADS_SOURCE], s.leads[n, layout.LEADS_TARGET]
            if target >= 0:
                limit = min(limit, flows[g, target])
            if measure > limit:
                found |= np.int64(1) << bit
                if source >= 0:
                    flows[0, source] = min(limit, flows[0, source])
    for q in range(states):
        flows[g, q] = flows[0, q] if s.strict[q] == 1 else min(flows[0, q], flows[g, q])
    control[layout.KEPT] += found != 0
    return found != 0
