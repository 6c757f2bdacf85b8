"""The second pass over a batch, for patterns without gaps: which of the noted events may be part of a match."""

from __future__ import annotations

import math

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.base.shared_arrays import address_of, as_float, pointer_to
from cerflow.engine.kernels.scan.arrays import scan_at
from cerflow.engine.kernels.scan.blocks import compute_block, mark_block
from cerflow.engine.kernels.scan.scan import collected, formed, is_missing, write_event
from cerflow.engine.kernels.scan.texts import SHIFT, entry_of, mixed
from cerflow.engine.kernels.scan.values import (
    ONES,
    load_byte,
    load_word,
    locate,
    ones,
    packed,
    store_byte,
    store_word,
    word_of,
)
from cerflow.engine.kernels.step.guards import words_compare
from cerflow.engine.layout import EQ, FLOAT, NULL, PROGRAM
from cerflow.engine.scan.layout import (
    AS_IT_IS,
    AS_TEXT,
    B_KEY,
    B_LEFT_OUT,
    B_PLACES,
    B_ROW,
    B_SIGNATURE,
    BEHIND_OTHERS,
    BLOCK,
    CARRIED,
    F_DISTANCE,
    F_PLACES,
    FIRST,
    FOUND,
    G_PLACES,
    G_ROW,
    G_ROWS,
    GROUPS,
    HASHED_KEYS,
    KEPT,
    L_BEFORE,
    L_DISTANCE,
    L_KIND,
    L_MASK,
    L_NOW,
    L_OPERATOR,
    NO_KEYS,
    NO_ROOM,
    NOTED,
    O_COLUMN,
    O_FORM,
    OF_TEXT,
    PLACES,
    RELATED,
    RELEVANT,
    ROW,
    SCANNED,
    STRETCH,
    TEXT,
    WRITTEN,
)

__all__ = ["find_rows", "narrow", "write_noted"]

#: All places.
_ANY = (1 << PLACES) - 1


@kernel
def narrow(address, first, last, key, count):
    """Say in `B_LEFT_OUT` which of the noted rows of a batch of ``count`` rows may be part of a match.

    Matches begin at the places ``first`` and end at the places ``last``, as bits. ``key`` is the number of the text
    that is the key, or `NO_KEYS` or `HASHED_KEYS`. Matches may begin before the batch and go on behind it.
    """
    s = scan_at(address)
    if key == NO_KEYS:
        kept = _in_a_row(s, first, last, count)
    else:
        if not _placed_by_key(s, first, key):
            return NO_ROOM
        kept = _kept_by_key(s, last)
    s.control[RELEVANT], s.control[KEPT] = s.control[NOTED], kept
    return SCANNED


@part
def _in_a_row(s, first, last, count):
    noted = s.control[NOTED]
    places, before = _ANY, -1
    for k in range(noted):
        row = s.noted[k, B_ROW]
        if row != before + 1:
            places = 0
        places = _placed(s, k, places, before, first)
        s.noted[k, B_PLACES] = places
        before = row
    kept = 0
    going_on, behind = _ANY, count
    for k in range(noted - 1, -1, -1):
        row = s.noted[k, B_ROW]
        if row != behind - 1:
            going_on = 0
        useful = s.noted[k, B_PLACES] & (last | going_on)
        s.noted[k, B_LEFT_OUT] = 0 if useful else -1
        kept += useful != 0
        going_on, behind = _moved(s, useful, -1), row
    return kept


@part
def _placed_by_key(s, first, key):
    """Note keys and places; returns False if there is no room for a key."""
    for g in range(s.groups.shape[0]):
        s.groups[g, G_ROW], s.groups[g, G_PLACES] = -1, _ANY
    for k in range(s.control[NOTED]):
        row = s.noted[k, B_ROW]
        if key == HASHED_KEYS:
            g = _group_of(s, row)
        else:
            g = entry_of(s.texts, key, row)
            s.control[TEXT] = key
        if g < 0 or g >= s.groups.shape[0]:
            return False
        s.noted[k, B_KEY] = g
        if g > 0:
            places = _placed(s, k, s.groups[g, G_PLACES], s.groups[g, G_ROW], first)
            s.noted[k, B_PLACES] = places
            s.groups[g, G_ROW], s.groups[g, G_PLACES] = row, places
    return True


@part
def _kept_by_key(s, last):
    """Say which rows are left out; the last one of each key tells how many are left out before it."""
    for g in range(s.groups.shape[0]):
        s.groups[g, G_ROW], s.groups[g, G_PLACES] = -1, _ANY
    kept = 0
    for k in range(s.control[NOTED] - 1, -1, -1):
        g = s.noted[k, B_KEY]
        s.noted[k, B_LEFT_OUT] = -1
        if g == 0:
            continue  # without a key
        useful = s.noted[k, B_PLACES] & (last | s.groups[g, G_PLACES])
        behind = s.groups[g, G_ROW]
        if useful or behind < 0:
            s.noted[k, B_LEFT_OUT] = 0
            s.groups[g, G_ROW] = k
            kept += 1
        else:
            s.noted[behind, B_LEFT_OUT] += 1
        s.groups[g, G_PLACES] = _moved(s, useful, -1)
    return kept


@part
def _group_of(s, row):
    """The number of a row's key, 0 if it has none; -1 if there is no room for a text."""
    h = np.uint64(0)
    words = s.members.shape[1]
    for k in range(words):
        form, column = s.outputs[k, O_FORM], s.outputs[k, O_COLUMN]
        if form == AS_TEXT:
            word = entry_of(s.texts, column, row)
            if word < 0:
                s.control[TEXT] = column
                return np.int64(-1)
            if word == 0:
                return np.int64(0)
        else:
            word = formed(word_of(s.columns, column, row, s.control[FIRST]), form, 0)
            if is_missing(word, form):
                return np.int64(0)
        s.members[0, k] = word
        h = mixed(h, word)
    mask = s.slots.shape[0] - 1
    slot = np.int64(h >> SHIFT) & mask
    # Half of the table is free.
    while s.slots[slot] != 0:
        g = s.slots[slot]
        same = True
        for k in range(words):
            same &= s.members[g, k] == s.members[0, k]
        if same:
            return g
        slot = (slot + 1) & mask
    g = s.control[GROUPS] + 1
    if g >= s.members.shape[0]:
        s.control[TEXT] = HASHED_KEYS
        return np.int64(-1)
    s.control[GROUPS] = s.slots[slot] = g
    for k in range(words):
        s.members[g, k] = s.members[0, k]
    return g


@inlined
def _placed(s, k, places, before, first):
    """The places that event ``k`` may have behind an event with ``places``, in the row ``before`` (-1: not known)."""
    found = (_moved(s, places, 1) | first) & s.places[s.noted[k, B_SIGNATURE]]
    if before >= 0:
        for n in range(s.links.shape[0]):
            mask = s.links[n, L_MASK]
            # Only the event directly before is known here.
            if found & mask and s.links[n, L_DISTANCE] == 1 and not _linked(s, n, s.noted[k, B_ROW], before):
                found &= ~mask
    return found


@inlined
def _moved(s, places, way):
    """The places directly behind these (``way`` is 1), or directly before them (-1)."""
    found = 0
    for n in range(s.follows.shape[0] if places else 0):
        distance, own = s.follows[n, F_DISTANCE], s.follows[n, F_PLACES]
        if way > 0:
            found |= _shifted(places & own, distance)
        else:
            found |= _shifted(places, -distance) & own
    return found


@inlined
def _shifted(bits, distance):
    return bits << distance if distance >= 0 else bits >> -distance


@part
def _linked(s, n, row, before):
    """Whether a comparison of two rows holds; also if there is no room for a text, which `TEXT` names then."""
    if s.links[n, L_KIND] == OF_TEXT:
        column = s.links[n, L_NOW]
        one, other = entry_of(s.texts, column, row), entry_of(s.texts, column, before)
        if one < 0 or other < 0:
            s.control[TEXT] = column
            return True
        return one > 0 and other > 0 and (one == other) == (s.links[n, L_OPERATOR] == EQ)
    now = word_of(s.columns, s.links[n, L_NOW], row, s.control[FIRST])
    other = word_of(s.columns, s.links[n, L_BEFORE], before, s.control[FIRST])
    if s.links[n, L_KIND] == FLOAT:
        x, y = as_float(now), as_float(other)
        return not math.isnan(x) and not math.isnan(y) and words_compare(s.links[n, L_OPERATOR], x, y)
    return now != NULL and other != NULL and words_compare(s.links[n, L_OPERATOR], now, other)


@kernel
def find_rows(address, batch, count, key, begun):
    """Say in ``hits`` where matches of consecutive rows end in a batch of ``count`` rows; see `narrow` for ``key``.

    ``hits`` has a bit for each row, lowest first. Returns what stopped it, as ``scan`` does; it goes on from `ROW`. So
    far it has found `FOUND` matches, and the first bytes of ``ways`` are those of the rows before.

    If matches are `RELATED`, ``before`` has the row before each. It has to begin again at row 0 if entries of texts
    that are compared, or numbers of keys, have changed. In the end the bytes of ``ways`` say which rows of keys the
    automaton has to read, where matches may have ``begun`` before the batch.
    """
    s = scan_at(address)
    control = s.control
    locate(s.columns, s.texts, batch)
    if control[RELATED] == 1:
        return _find_related(s, key, begun != 0, count, address)
    before, ends = address_of(pointer_to(s.ways, 0)), address_of(pointer_to(s.ends, 0))
    ways = before + CARRIED
    hits = address_of(pointer_to(s.hits, 0))
    places = s.steps.shape[0]
    while control[ROW] < count:
        begin = control[ROW]
        size = min(count - begin, BLOCK)
        reason = mark_block(s, begin, size, ways, np.int64(0), True, address)
        if reason != SCANNED:
            return collected(s, reason, begin, count)
        for place in range(places):
            _step(ways + place + 1 - places, ends, size, s.steps[place], place == 0)
        control[FOUND] += _packed(ends, hits + (begin >> 3), size)
        for k in range(0, CARRIED, 8):
            store_word(before, k >> 3, load_word(before + size + k, 0))
        control[ROW] = begin + size
    return SCANNED


@part
def _find_related(s, key, begun, count, address):
    control = s.control
    hits, ways, chosen = (
        address_of(pointer_to(s.hits, 0)),
        address_of(pointer_to(s.ends, 0)),
        address_of(pointer_to(s.ways, 0)),
    )
    last = s.steps.shape[0] - 1
    begin, control[TEXT] = control[ROW], NO_KEYS
    if begin == 0:
        for k in range((count + 7) >> 3):
            store_byte(hits, k, 0)
        for k in range((count + 63) >> 3):
            store_word(chosen, k, np.int64(0))
        for g in range(s.groups.shape[0]):
            s.groups[g, G_ROW], s.groups[g, G_PLACES], s.groups[g, G_ROWS] = -1, 0, 0
        control[FOUND] = 0
    while begin < count:
        size = min(count - begin, STRETCH)
        control[ROW] = begin
        reason = mark_block(s, begin, size, ways, np.int64(0), True, address)
        if reason != SCANNED:
            return collected(s, reason, begin, count)
        # What stops it from here on gives keys other numbers.
        control[ROW] = 0
        if not _number_rows(s, begin, size, key, chosen, last if begun else 0):
            return NO_ROOM
        for k in range(size):
            s.allowed[k] = s.admits[load_byte(ways, k)]
        if key == NO_KEYS:
            # Others are asked for nothing.
            places = s.groups[1, G_PLACES]
            for k in range(size):
                s.allowed[k] = places = (places << 1 | 1) & s.allowed[k]
        for n in range(s.links.shape[0]):
            if not _relate(s, n, begin, size):
                return NO_ROOM
        for k in range(size):
            g = s.numbers[k]
            if g > 0:
                found = (s.groups[g, G_PLACES] << 1 | 1) & s.allowed[k]
                s.groups[g, G_PLACES] = found
                if found >> last & 1 == 1:
                    row = begin + k
                    store_byte(hits, row >> 3, load_byte(hits, row >> 3) | 1 << (row & 7))
                    control[FOUND] += 1
        begin += size
    for g in range(1, s.groups.shape[0] if key != NO_KEYS else 0):
        _choose(s, g, begun, last, hits, chosen)
    return SCANNED


@inlined
def _choose(s, g, begun, last, hits, chosen):
    """Choose the rows of a key that the automaton has to read at the end of a batch.

    The first ones are chosen, as matches may have `begun` before. All are, if they are few, and then their matches are
    left to it. Otherwise it reads the rows of partial matches, with others left out before them.
    """
    row = s.groups[g, G_ROW]
    if begun and s.groups[g, G_ROWS] <= 2 * last:
        while row >= 0:
            bit = load_byte(hits, row >> 3) >> (row & 7) & 1
            store_byte(hits, row >> 3, load_byte(hits, row >> 3) ^ bit << (row & 7))
            s.control[FOUND] -= bit
            store_byte(chosen, row, AS_IT_IS)
            row = np.int64(s.before[row])
        return
    # The first of the places that go on began longest ago. The last row ends what began in the first ones.
    going_on = s.groups[g, G_PLACES] & ((1 << last) - 1)
    if begun and row >= 0:
        going_on |= 1
    while going_on != 0:
        going_on >>= 1
        store_byte(chosen, row, AS_IT_IS if going_on != 0 else BEHIND_OTHERS)
        row = np.int64(s.before[row])


@part
def _number_rows(s, begin, count, key, chosen, first):
    """Number the keys of rows (0: none), and find the rows before them; False if there is no room for a key.

    The ``first`` rows of each key are ``chosen``.
    """
    for k in range(count):
        row = begin + k
        g = np.int64(1)
        if key == HASHED_KEYS:
            g = _group_of(s, row)
        elif key != NO_KEYS:
            g = entry_of(s.texts, key, row)
            if g >= s.groups.shape[0]:
                g = np.int64(-1)
            if g < 0:
                s.control[TEXT] = key
        if g < 0:
            return False
        s.numbers[k] = g
        if g > 0:
            s.before[row] = s.groups[g, G_ROW]
            if s.groups[g, G_ROWS] < first:
                store_byte(chosen, row, AS_IT_IS)
            s.groups[g, G_ROW] = row
            s.groups[g, G_ROWS] += 1
    return True


@part
def _relate(s, n, begin, count):
    """Take places from rows for which a condition does not hold; False if there is no room for a text."""
    mask = ~s.links[n, L_MASK]
    if s.links[n, L_OPERATOR] == PROGRAM:
        compute_block(s, s.links[n, L_NOW], s.links[n, L_BEFORE], begin, count)
        for k in range(count):
            s.allowed[k] &= -1 if s.wide[0, k] == 1 else mask
        return True
    for k in range(count):
        if s.allowed[k] & ~mask != 0:
            before = begin + k
            for _ in range(s.links[n, L_DISTANCE]):
                before = max(np.int64(s.before[before]), 0)
            if not _linked(s, n, begin + k, before):
                s.allowed[k] &= mask
    return s.control[TEXT] == NO_KEYS


@part
def _packed(ends, hits, count):
    """Write a bit for each byte that is 0 or 1, lowest first, and return how many are 1."""
    for k in range(count, (count + 7) & ~7):
        store_byte(ends, k, 0)
    found = np.int64(0)
    for k in range((count + 7) >> 3):
        eight = load_word(ends, k)
        found += np.int64((np.uint64(eight) * np.uint64(ONES)) >> np.uint64(56))
        store_byte(hits, k, packed(eight))
    return found


@part
def _step(ways, hits, size, wanted, first):
    # The compiler makes vectors of these loops.
    mask = wrapped_product(wanted, ONES)
    if first:
        for k in range((size + 7) >> 3):
            store_word(hits, k, ones(load_word(ways, k) & mask))
    else:
        for k in range((size + 7) >> 3):
            store_word(hits, k, load_word(hits, k) & ones(load_word(ways, k) & mask))


@kernel
def write_noted(address):
    """Write the noted events that are not left out; returns what stopped it, as ``scan`` does."""
    s = scan_at(address)
    for k in range(s.control[WRITTEN], s.control[NOTED]):
        left_out = s.noted[k, B_LEFT_OUT]
        if left_out >= 0:
            reason = write_event(s, s.noted[k, B_ROW], s.noted[k, B_SIGNATURE], left_out, address)
            if reason != SCANNED:
                s.control[WRITTEN] = k
                return reason
    return SCANNED
