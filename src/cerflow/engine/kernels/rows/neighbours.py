"""Matches of consecutive events, of the stream or of a key, found in the rows of a batch without the automaton."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel, part
from cerflow.engine.kernels.rows.consecutive import (
    compute_columns,
    hit,
    keep_kinds,
    keep_linked,
    pack_ends,
    step_of_all,
)
from cerflow.engine.kernels.rows.key_rows import choose_rows, number_keys
from cerflow.engine.kernels.rows.sorted_rows import find_sorted, remember
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.blocks import compute_link, mark_block
from cerflow.engine.kernels.scan.scan import collected
from cerflow.engine.scan import layout


@kernel
def find_rows(address, batch, count, key, begun, ending):
    """Say in ``hits`` where matches of consecutive rows end in a batch of ``count`` rows; see `scan.keys` for ``key``.

    ``hits`` has a bit for each row, lowest first. Returns what stopped it, as ``scan`` does; it goes on from `ROW`. So
    far it has found `FOUND` matches, and the first bytes of ``guards`` are those of the rows before.

    With keys, ``before`` has the row before each. It has to begin again at row 0 if numbers of keys have changed. In
    the end the bytes of ``guards`` say which rows of keys the automaton has to read: where matches may have ``begun``
    before the batch, or go on behind it, which is not ``ending`` the stream.
    """
    s = v.scan_at(address)
    control = s.control
    v.locate(s.columns, s.texts, batch)
    for n in range(s.computing.shape[0]):
        s.columns[s.computing[n, 0], layout.C_DATA] = v.start_of(s.computed[n])
    if key != layout.NO_KEYS:
        return _find_by_key(s, key, begun != 0, ending != 0, count, address)
    before, ends = v.start_of(s.guards), v.start_of(s.ends)
    guards = before + layout.CARRIED
    hits = v.start_of(s.hits)
    steps = s.step_guards.shape[0]
    while control[layout.ROW] < count:
        begin = control[layout.ROW]
        size = min(count - begin, layout.BLOCK)
        reason = mark_block(s, begin, size, guards, np.int64(0), True, address)
        if reason != layout.SCANNED:
            return collected(s, reason, begin, count)
        keep_kinds(s, guards, begin, size)
        for step in range(steps):
            step_of_all(guards + step + 1 - steps, ends, size, s.step_guards[step], step == 0)
        if s.links.shape[0] > 0:
            compute_columns(s, guards, begin, size)
            keep_linked(s, ends, begin, size)
        control[layout.FOUND] += pack_ends(ends, hits + (begin >> 3), size)
        for k in range(0, layout.CARRIED, 8):
            v.store_word(before, k >> 3, v.load_word(before + size + k, 0))
        control[layout.ROW] = begin + size
    return layout.SCANNED


@part
def _find_by_key(s, key, begun, ending, count, address):
    control = s.control
    hits, guards, chosen = (
        v.start_of(s.hits),
        v.start_of(s.ends),
        v.start_of(s.guards),
    )
    last, sorts = s.step_guards.shape[0] - 1, s.sorting.shape[0] > 0
    begin, control[layout.TEXT] = control[layout.ROW], layout.NO_KEYS
    if begin == 0:
        for k in range((count + 7) >> 3):
            v.store_byte(hits, k, 0)
        for k in range((count + 63) >> 3):
            v.store_word(chosen, k, np.int64(0))
        for g in range(s.groups.shape[0]):
            s.groups[g, layout.G_ROW], s.groups[g, layout.G_ROWS], s.key_steps[g] = -1, 0, 0
        control[layout.FOUND] = 0
    while begin < count:
        size = min(count - begin, layout.STRETCH)
        control[layout.ROW] = begin
        reason = mark_block(s, begin, size, guards, np.int64(0), True, address)
        if reason != layout.SCANNED:
            return collected(s, reason, begin, count)
        keep_kinds(s, guards, begin, size)
        # If it stops from here on, keys get new numbers, so all rows are read again.
        control[layout.ROW] = 0
        if not number_keys(s, begin, size, key, chosen, last if begun else 0):
            return layout.NO_ROOM
        compute_columns(s, guards, begin, size)
        if sorts:
            remember(s, guards, begin, size)
            begin += size
            continue
        for k in range(size):
            s.allowed[k] = s.admits[v.load_byte(guards, k)]
        for n in range(s.links.shape[0]):
            relate(s, n, begin, size)
        for k in range(size):
            g = s.numbers[k]
            if g > 0:
                found = (s.key_steps[g] << 1 | 1) & s.allowed[k]
                s.key_steps[g] = found
                if found >> last & 1 == 1:
                    hit(s, begin + k, hits)
        begin += size
    if sorts:
        find_sorted(s, count, hits)
    for g in range(1, s.groups.shape[0]):
        choose_rows(s, g, begun, ending, last, hits, chosen)
    return layout.SCANNED


@part
def relate(s, n, begin, count):
    """Clear the steps of ``count`` rows from row ``begin`` on for which condition ``n`` fails.

    ``s`` are the arrays of the scan.
    """
    mask, some = ~s.links[n, layout.L_MASK], np.int64(0)
    for k in range(count):
        s.chosen[some] = begin + k
        some += np.int64(s.allowed[k] & ~mask != 0)
    if 4 * some > 3 * count:
        some = count
        for k in range(count):
            s.chosen[k] = begin + k
    s.control[layout.WALKED] = 0
    compute_link(s, n, some)
    for k in range(some):
        s.allowed[s.chosen[k] - begin] &= -1 if s.wide[0, k] == 1 else mask
