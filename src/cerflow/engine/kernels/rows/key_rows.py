"""The rows of each key of a batch: their numbers, those before them, and which the automaton has to read."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.rows.keys import key_number, key_words
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.texts import entries_of, fetch_entries
from cerflow.engine.scan import layout


@part
def number_keys(s, begin, count, key, chosen, first):
    """Number the keys of ``count`` rows (0: none) from row ``begin`` on, and find the rows before them.

    ``s`` are the arrays of the scan, ``key`` is as in `scan.keys`. The ``first`` rows of a key are ``chosen``. Returns
    False if there is no room for a key.
    """
    words_at = key_words(s, key)
    if key >= 0:
        for k in range(count):
            s.chosen[k] = begin + k
        fetch_entries(s, key, count)
        has_room = entries_of(s.texts, key, begin, count, s.numbers)
        if not has_room or s.texts[key, layout.T_COUNT] > s.groups.shape[0]:
            s.control[layout.TEXT] = key
            return False
    for k in range(count if key < 0 else 0):
        g = key_number(s, begin + k, key, words_at)
        if g < 0:
            return False
        s.numbers[k] = g
    for k in range(count):
        row, g = begin + k, s.numbers[k]
        if g > 0:
            s.before[row] = s.groups[g, layout.G_ROW]
            if s.groups[g, layout.G_ROWS] < first:
                v.store_byte(chosen, row, 1)
                s.slot_of[row] = 0
            s.groups[g, layout.G_ROW] = row
            s.groups[g, layout.G_ROWS] += 1
    return True


@inlined
def choose_rows(s, g, begun, ending, last, hits, chosen):
    """Choose the rows of key ``g`` that the automaton has to read at the end of a batch.

    The first ones are ``chosen``, as matches may have ``begun`` before. All are, if they are few, and then it finds
    their matches, which ``hits`` has no more. Otherwise it reads the rows of partial matches, with others left out
    before them, unless the stream is ``ending``. A match has ``last`` rows and one more; ``s`` are the arrays of the
    scan.
    """
    row = s.groups[g, layout.G_ROW]
    if begun and s.groups[g, layout.G_ROWS] <= 2 * last:
        while row >= 0:
            bit = v.load_byte(hits, row >> 3) >> (row & 7) & 1
            v.store_byte(hits, row >> 3, v.load_byte(hits, row >> 3) ^ bit << (row & 7))
            s.control[layout.FOUND] -= bit
            v.store_byte(chosen, row, 1)
            s.slot_of[row] = 0
            row = np.int64(s.before[row])
        return
    # The first of the steps that go on began longest ago. The last row ends what began in the first ones.
    going_on = np.int64(0) if ending else s.key_steps[g] & ((1 << last) - 1)
    if begun and row >= 0 and not ending:
        going_on |= 1
    while going_on != 0:
        going_on >>= 1
        v.store_byte(chosen, row, 1)
        s.slot_of[row] = going_on == 0
        row = np.int64(s.before[row])


@kernel
def number_events(address, batch, count, key):
    """Write the `ordinals` of a batch of ``count`` rows by ``key`` (as in `scan.keys`), for `join_events`.

    Returns what stopped it, as ``scan`` does; it begins with 0 in `ROW`, and has to begin there again.
    """
    s = v.scan_at(address)
    v.locate(s.columns, s.texts, batch)
    for g in range(s.groups.shape[0]):
        s.groups[g, layout.G_ROW], s.groups[g, layout.G_ROWS] = -1, 0
    for begin in range(0, count, layout.STRETCH):
        size = min(count - begin, layout.STRETCH)
        if not number_keys(s, begin, size, key, np.int64(0), 0):
            return layout.NO_ROOM
        for k in range(size):
            row, g = begin + k, s.numbers[k]
            before = np.int64(s.before[row])
            first = g << 32 if g > 0 else np.int64(-1)
            s.ordinals[row] = s.ordinals[before] + 1 if g > 0 and before >= 0 else first
    return layout.SCANNED
