"""The scan of a batch: what is asked of each row, and what is written of those that are relevant."""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import as_float, bits_of, call, events_at
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.blocks import mark_block, mark_by, satisfies
from cerflow.engine.kernels.scan.effects import follow, take_effect
from cerflow.engine.kernels.scan.marks import fill_guards, mark_by_others
from cerflow.engine.kernels.scan.texts import entry_of, fetch_letters, pass_of_text
from cerflow.engine.layout import NO_BOUND, NOT_BEGUN, NULL
from cerflow.engine.scan import layout

#: Candidates whose values are under way while others are written.
_AHEAD = 16


@kernel
def scan(address, batch, end):
    """Read the rows of a batch up to ``end``, from `ROW` on; returns what stopped it (see the layout).

    Where it stops it has done nothing for the row yet, and goes on from there.
    """
    s = v.scan_at(address)
    control = s.control
    v.locate(s.columns, s.texts, batch)
    begin = control[layout.ROW]
    # A stretch is read again if something is unknown in it.
    while begin < end:
        count = min(end - begin, layout.STRETCH)
        control[layout.OPEN] = 1
        if control[layout.MARKS] != layout.NOT_MARKED:
            count = _marked(s, begin, count, address)
        else:
            for k in range(count):
                s.chosen[k], s.at[k] = begin + k, control[layout.ROOT]
        for t in range(s.texts.shape[0]):
            if count > 0 and control[layout.OPEN] == 1:
                count = pass_of_text(s, t, count)
        if count < 0:
            control[layout.ROW] = begin
            return collected(s, -count, begin, end)
        if control[layout.COUNT] + count > events_at(address).signature.shape[0]:
            control[layout.ROW] = begin
            return layout.NO_EVENTS
        k = np.int64(-1)
        while True:
            k += 1
            # Where guards decide, the questions below find out what they lead to.
            if control[layout.COUNTS] == 1 and (control[layout.MARKS] != layout.DECIDED or control[layout.OPEN] == 0):
                k = follow(s, k, count, address)
            if k >= count:
                break
            row = s.chosen[k]
            to = _led_to(s, row, s.at[k], address)
            reason = layout.NO_OUTCOME if to == layout.UNKNOWN else layout.SCANNED
            if control[layout.MARKS] == layout.DECIDED:
                s.led[s.guards[row if control[layout.LOOKED_AHEAD] == 1 else row - begin]] = to
            if to <= layout.SIGNATURE:
                if control[layout.NARROWS] == 1:
                    found = control[layout.CANDIDATES]
                    s.candidates[found, layout.B_ROW], s.candidates[found, layout.B_SIGNATURE] = (
                        row,
                        layout.SIGNATURE - to,
                    )
                    control[layout.CANDIDATES] = found + 1
                elif control[layout.FOLLOWS] == 0:
                    reason = write_event(s, row, layout.SIGNATURE - to, 0, address)
                elif s.effects[layout.SIGNATURE - to, layout.E_MATTERS] & control[layout.OCCUPIED] != 0:
                    reason = write_event(s, row, layout.SIGNATURE - to, 0, address)
                    if reason == layout.SCANNED:
                        take_effect(s, layout.SIGNATURE - to)
            if reason != layout.SCANNED:
                control[layout.ROW] = row
                return reason
        begin = min(begin + layout.STRETCH, end)
    control[layout.ROW] = end
    return layout.SCANNED


@part
def _marked(s, begin, count, address):
    """Choose of ``count`` rows those for which a guard may hold; returns as `pass_of_text`."""
    guards = v.start_of(s.guards)
    looked_ahead = s.control[layout.LOOKED_AHEAD] == 1
    if not looked_ahead:
        reason = mark_block(s, begin, count, guards, np.int64(0), False, address)
        if reason != layout.SCANNED:
            return np.int64(-reason)
        guards -= begin
    chosen, at, root, led = v.start_of(s.chosen), v.start_of(s.at), s.control[layout.ROOT], v.start_of(s.led)
    # Elsewhere the bytes may only say which rows are chosen.
    decided = s.control[layout.MARKS] == layout.DECIDED
    kept = unknown = np.int64(0)
    for first in range(begin, begin + count, 64):
        left = v.marked_rows(guards + first, begin + count - first)
        while left != 0:
            row = first + v.trailing_zeros(left)
            left = v.without_lowest(left)
            to = v.load_word(led, v.load_byte(guards, row)) if decided else np.int64(layout.UNKNOWN)
            v.store_word(chosen, kept, row)
            v.store_word(at, kept, root if to == layout.UNKNOWN else to)
            unknown |= np.int64(to == layout.UNKNOWN)
            kept += 1
    for n in range(kept if looked_ahead else 0):
        _fetch_values(s, s.chosen[n])
    for o in range(s.outputs.shape[0] if looked_ahead else 0):
        if s.outputs[o, layout.O_FORM] == layout.AS_TEXT:
            fetch_letters(s, s.outputs[o, layout.O_COLUMN], kept)
    s.control[layout.OPEN] = unknown
    if 2 * kept > count and s.control[layout.MARKS] == layout.MARKED and not looked_ahead:
        # Where most rows are chosen, it does not pay.
        s.control[layout.MARKS] = layout.NOT_MARKED
    return kept


@part
def _led_to(s, row, node, address):
    """Where the answers to all tests lead; if that is unknown, `NODE` and `OUTCOME` say from where."""
    # Every answer leads further down, as no node asks what was asked above it.
    while node >= 0:
        asked = node
        what = s.nodes[node, layout.N_WHAT]
        if s.nodes[node, layout.N_ASKS] == layout.ASK_TEST:
            outcome = np.int64(satisfies(s, what, row, address))
            node = s.next[s.nodes[node, layout.N_NEXT] + outcome]
        else:
            outcome = np.int64(0)
            for k in range(s.nodes[node, layout.N_WIDTH]):
                outcome |= np.int64(satisfies(s, s.together[what + k], row, address)) << k
            node = s.outcomes[slot_of(s.outcomes, node, outcome), layout.H_NEXT]
        if node == layout.UNKNOWN:
            s.control[layout.NODE], s.control[layout.OUTCOME] = asked, outcome
    return node


@part
def collected(s, reason, row, end):
    """The ``reason`` to stop; where a class is unknown, first collect many further rows that may matter.

    So new texts are judged together. They are entered, or their rows noted where they hardly repeat.
    """
    t, guards = s.control[layout.TEXT], v.start_of(s.measures)
    if reason != layout.NO_CLASS or s.texts[t, layout.T_LAYOUT] < layout.TEXT32:
        return reason
    aside, asked = s.texts[t, layout.T_ASIDE], np.int64(0)
    stop = min(end, row + (layout.COLLECTED if aside == 0 else layout.SET_ASIDE))
    for begin in range(row, stop, layout.STRETCH):
        size = min(stop - begin, layout.STRETCH)
        # Nothing else is in the measures while rows are marked.
        guards = guards if aside == 0 else aside + begin - row
        fill_guards(guards, size, 255)
        if mark_by(s, begin, size, guards, np.int64(0), False, False) != layout.SCANNED:
            break
        for k in range(size if aside == 0 else 0):
            if v.load_byte(guards, k) != 0:
                asked += 1
                if entry_of(s.texts, t, begin + k) < 0:
                    return reason
        if aside != 0:
            mark_by_others(s, t, begin, size, guards)
            s.texts[t, layout.T_FROM], s.texts[t, layout.T_WAITING] = row, begin + size - row
    s.texts[t, layout.T_ASKED] = asked
    return reason


@part
def mark_all(s, count, address):
    """Write the `guards` of the rows from `ROW` up to ``count``; returns what stopped it, to go on from `ROW`.

    ``s`` are the arrays of the scan at ``address``.
    """
    control, guards = s.control, v.start_of(s.guards)
    while control[layout.ROW] < count:
        begin = control[layout.ROW]
        size = min(count - begin, layout.BLOCK)
        reason = mark_block(s, begin, size, guards + begin, np.int64(0), True, address)
        if reason != layout.SCANNED:
            return collected(s, reason, begin, count)
        control[layout.ROW] = begin + size
    return layout.SCANNED


@kernel
def slot_of(outcomes, node, outcome):
    """The slot of a hash table where an outcome of a node is, or a free one."""
    mask = outcomes.shape[0] - 1
    mixed = (np.uint64(outcome) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(node) * np.uint64(0xC2B2AE3D27D4EB4F))
    slot = np.int64(mixed >> np.uint64(32)) & mask
    # Half of the table is free.
    while outcomes[slot, layout.H_NEXT] != layout.UNKNOWN:
        if outcomes[slot, layout.H_NODE] == node and outcomes[slot, layout.H_OUTCOME] == outcome:
            break
        slot = (slot + 1) & mask
    return slot


# -- what is written --------------------------------------------------------------------------------------------------


@part
def write_event(s, row, signature, left_out, address):
    """Write the event of a ``row`` with a ``signature``, unless it has no key; returns as ``scan``.

    ``s`` are the arrays of the scan at ``address``; this many events of its key are ``left_out`` directly before it.
    """
    control = s.control
    events = events_at(address)
    n = control[layout.COUNT]
    fixes = control[layout.FIXES]
    if fixes + s.outputs.shape[0] > s.fixes.shape[0]:
        return layout.NO_FIXES
    for t in range(s.texts.shape[0]):
        if s.texts[t, layout.T_WIDTH] > 0:
            # Values may ask what a condition says of the text.
            entry = entry_of(s.texts, t, row)
            if entry < 0 or v.load_word(s.texts[t, layout.T_CLASSES], entry) < 0:
                control[layout.TEXT] = t
                return layout.NO_ROOM if entry < 0 else layout.NO_CLASS
    begun = np.int64(0)
    keyed = control[layout.KEYED]
    for o in range(s.outputs.shape[0]):
        to = s.outputs[o, layout.O_TO]
        place = s.outputs[o, layout.O_PLACE]
        if to == layout.TO_KEYS and place < begun:
            continue  # another column has the key already
        form = s.outputs[o, layout.O_FORM]
        column = s.outputs[o, layout.O_COLUMN]
        if form == layout.AS_TEXT:
            entry = entry_of(s.texts, column, row)
            if entry < 0:
                control[layout.TEXT] = column
                return layout.NO_ROOM
            word = v.load_word(s.texts[column, layout.T_CODES], entry)
            if word == -1:
                s.fixes[fixes, layout.X_TEXT] = column
                s.fixes[fixes, layout.X_ENTRY] = entry
                s.fixes[fixes, layout.X_PLACE] = place if to == layout.TO_COLUMNS else -1 - place
                s.fixes[fixes, layout.X_EVENT] = n
                fixes += 1
        else:
            word = formed(value_of(s, s.outputs[o], row, address), form, s.outputs[o, layout.O_SIZE])
        if to == layout.TO_COLUMNS:
            events.columns[n, place] = word
        elif to == layout.TO_MEASURE:
            # Without a measure an event can neither begin nor end a complex event, and makes none expire.
            events.measure[n] = NOT_BEGUN if word == NULL else word
        elif to == layout.TO_BOUND:
            events.bound[n] = NO_BOUND if word == NULL else word
        else:
            if not is_missing(word, form):
                events.keys[n, place] = word
                begun = place + 1
            elif o + 1 == keyed or s.outputs[o + 1, layout.O_PLACE] != place:
                return layout.SCANNED
    events.signature[n] = signature
    events.position[n] = control[layout.FIRST] + row
    events.left_out[n] = left_out
    control[layout.COUNT] = n + 1
    control[layout.FIXES] = fixes
    return layout.SCANNED


@kernel
def write_candidates(address):
    """Write the candidate events; returns what stopped it, as ``scan`` does."""
    s = v.scan_at(address)
    end = s.control[layout.CANDIDATES]
    for k in range(s.control[layout.WRITTEN], end):
        _fetch_values(s, s.candidates[min(k + _AHEAD, end - 1), layout.B_ROW])
        row, signature, left_out = s.candidates[k]
        reason = write_event(s, row, signature, left_out, address)
        if reason != layout.SCANNED:
            s.control[layout.WRITTEN] = k
            return reason
    return layout.SCANNED


@inlined
def _fetch_values(s, row):
    """Have what `write_event` reads of a ``row`` under way."""
    for o in range(s.outputs.shape[0]):
        column = s.outputs[o, layout.O_COLUMN]
        if column >= 0 and s.outputs[o, layout.O_FORM] != layout.AS_TEXT:
            v.fetch(v.words_at_once(s.columns, column) + 8 * row)


@inlined
def output_words(s, output):
    """Where the words of an ``output`` are, if it is a column of integers as they are; or else 0.

    ``s`` are the arrays of the scan.
    """
    plain = output[layout.O_FORM] == layout.AS_INT and output[layout.O_COLUMN] >= 0
    return v.words_at_once(s.columns, output[layout.O_COLUMN]) if plain else np.int64(0)


@inlined
def value_of(s, output, row, address):
    """The value of an ``output`` that is not a text, for a ``row``; ``s`` are the arrays of the scan at ``address``."""
    start, stop = output[layout.O_CODE], output[layout.O_CODE_END]
    if output[layout.O_COLUMN] >= 0:
        return v.word_of(s.columns, output[layout.O_COLUMN], row, s.control[layout.FIRST])
    return call(s.control[layout.PROGRAMS], (address, start, stop, row)) if start < stop else np.int64(NULL)


@inlined
def is_missing(word, form):
    """Whether a ``word`` in the ``form`` of its column is null."""
    return word == v.NAN if form == layout.AS_FLOAT else word == NULL


@part
def formed(word, form, size):
    """The ``word`` of a value in the ``form`` that kernels read; ``size`` is that of the window."""
    if form in (layout.AS_INT, layout.AS_NULL):
        return word
    if form == layout.AS_BOUND:
        return word if word == NULL else max(word, NO_BOUND + size) - size
    x = as_float(word)
    if form == layout.AS_FLOAT:
        # One bit pattern for zero, and one for null.
        return np.int64(v.NAN) if math.isnan(x) else bits_of(x + 0.0)
    if math.isnan(x):
        return np.int64(NULL)
    return _order(x) if form == layout.AS_ORDER else _edge(x, as_float(size))


@inlined
def _order(x):
    """An integer in the order of the floats."""
    bits = bits_of(x + 0.0)
    return np.int64(NULL) - bits - 1 if bits < 0 else bits


@inlined
def _of_order(order):
    return as_float(np.int64(NULL) - order - 1 if order < 0 else order)


@part
def _edge(now, width):
    """The greatest start with ``now - start >= width``, rounded like the condition itself; see `measures`."""
    guess = now - width
    edge = _order(guess)
    if now - guess < width or now - _of_order(edge + 1) >= width:
        # Near zero floats are so dense that the edge can be many float steps from the guess.
        low, high = _order(-math.inf), _order(math.inf)
        while high - 1 > low:
            middle = (low & high) + ((low ^ high) >> 1)
            if now - _of_order(middle) >= width:
                low = middle
            else:
                high = middle
        edge = low
    return edge
