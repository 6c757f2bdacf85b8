"""Matches of consecutive events, of the stream or of a key, found in the rows of a batch without the automaton."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import inlined, kernel, part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.blocks import compute_block, compute_link, mark_block
from cerflow.engine.kernels.scan.keys import key_number, key_words
from cerflow.engine.kernels.scan.marks import list_marked
from cerflow.engine.kernels.scan.scan import collected
from cerflow.engine.kernels.scan.texts import entries_of, fetch_entries
from cerflow.engine.scan import layout


@kernel
def find_rows(address, batch, count, key, begun):
    """Say in ``hits`` where matches of consecutive rows end in a batch of ``count`` rows; see `scan.keys` for ``key``.

    ``hits`` has a bit for each row, lowest first. Returns what stopped it, as ``scan`` does; it goes on from `ROW`. So
    far it has found `FOUND` matches, and the first bytes of ``guards`` are those of the rows before.

    With keys, ``before`` has the row before each. It has to begin again at row 0 if numbers of keys have changed. In
    the end the bytes of ``guards`` say which rows of keys the automaton has to read, where matches may have ``begun``
    before the batch.
    """
    s = v.scan_at(address)
    control = s.control
    v.locate(s.columns, s.texts, batch)
    for n in range(s.computing.shape[0]):
        s.columns[s.computing[n, 0], layout.C_DATA] = v.start_of(s.computed[n])
    if key != layout.NO_KEYS:
        return _find_by_key(s, key, begun != 0, count, address)
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
        _keep_kinds(s, guards, begin, size)
        for step in range(steps):
            _step(guards + step + 1 - steps, ends, size, s.step_guards[step], step == 0)
        if s.links.shape[0] > 0:
            _compute_columns(s, guards, begin, size)
            _keep_linked(s, ends, begin, size)
        control[layout.FOUND] += _packed(ends, hits + (begin >> 3), size)
        for k in range(0, layout.CARRIED, 8):
            v.store_word(before, k >> 3, v.load_word(before + size + k, 0))
        control[layout.ROW] = begin + size
    return layout.SCANNED


@inlined
def _keep_kinds(s, guards, begin, count):
    """Keep the ``guards`` of ``count`` rows if labels depend on them."""
    kinds = v.start_of(s.kinds) + begin
    for k in range(count if s.kinds.shape[0] > 0 else 0):
        v.store_byte(kinds, k, v.load_byte(guards, k))


@part
def _compute_columns(s, guards, begin, count):
    """Compute the columns that conditions read, for those of ``count`` rows that have ``guards``."""
    for first in range(0, count if s.computing.shape[0] > 0 else 0, layout.STRETCH):
        size, some = min(count - first, layout.STRETCH), np.int64(0)
        for k in range(first, first + size):
            s.chosen[some] = begin + k
            some += np.int64(v.load_byte(guards, k) != 0)
        if 4 * some > 3 * size:
            some = size
            for k in range(size):
                s.chosen[k] = begin + first + k
        s.control[layout.WALKED] = 0
        for n in range(s.computing.shape[0]):
            compute_block(s, s.computing[n, 1], s.computing[n, 2], some)
            for k in range(some):
                s.computed[n, s.chosen[k]] = s.wide[0, k]


@part
def _keep_linked(s, ends, begin, count):
    """Clear those of the ``ends`` of matches in ``count`` rows where conditions on events before fail."""
    last, rows = s.step_guards.shape[0] - 1, s.allowed
    for first in range(0, count, layout.STRETCH - layout.CARRIED):
        stop = min(first + layout.STRETCH - layout.CARRIED, count)
        n = np.int64(0)
        while n < s.links.shape[0] and 8 * v.rows_with(ends + first, stop - first, 1) > stop - first:
            _clear(s, n, ends, begin, first, stop)
            n += 1
        if n == s.links.shape[0]:
            continue
        some = list_marked(s, first, stop, ends)
        for k in range(some):
            rows[k] = begin + s.chosen[k]
        for k in range(first, stop):
            v.store_byte(ends, k, 0)
        while n < s.links.shape[0]:
            for step in range(last + 1):
                if s.links[n, layout.L_MASK] >> step & 1 == 1:
                    some = _keep(s, n, rows, some, last - step)
            n += 1
        for k in range(some):
            v.store_byte(ends, rows[k] - begin, 1)


@inlined
def _clear(s, n, ends, begin, first, stop):
    """Clear those of the ``ends`` from ``first`` to ``stop`` whose events do not fulfil link ``n``."""
    last = s.step_guards.shape[0] - 1
    asked = max(first - last, -begin)
    for k in range(stop - asked):
        s.chosen[k] = begin + asked + k
    s.control[layout.WALKED] = 0
    compute_link(s, n, stop - asked)
    held = v.start_of(s.chosen)
    for k in range(stop - asked):
        v.store_byte(held, k, s.wide[0, k] == 1)
    for step in range(last + 1):
        if s.links[n, layout.L_MASK] >> step & 1 == 1:
            back = last - step
            for k in range(max(first, asked + back), stop):
                v.store_byte(ends, k, v.load_byte(ends, k) & v.load_byte(held, k - asked - back))


@inlined
def _keep(s, n, rows, count, back):
    """Keep those of ``count`` rows for which condition ``n`` holds, ``back`` rows before; returns how many."""
    for k in range(count):
        s.chosen[k] = rows[k] - back
    s.control[layout.WALKED] = 0
    compute_link(s, n, count)
    kept = np.int64(0)
    for k in range(count):
        rows[kept] = rows[k]
        kept += np.int64(s.wide[0, k] == 1)
    return kept


@part
def _find_by_key(s, key, begun, count, address):
    control = s.control
    hits, guards, chosen = (
        v.start_of(s.hits),
        v.start_of(s.ends),
        v.start_of(s.guards),
    )
    last = s.step_guards.shape[0] - 1
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
        _keep_kinds(s, guards, begin, size)
        # If it stops from here on, keys get new numbers, so all rows are read again.
        control[layout.ROW] = 0
        if not number_keys(s, begin, size, key, chosen, last if begun else 0):
            return layout.NO_ROOM
        _compute_columns(s, guards, begin, size)
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
                    _hit(s, begin + k, hits)
        begin += size
    for g in range(1, s.groups.shape[0]):
        _choose(s, g, begun, last, hits, chosen)
    return layout.SCANNED


@inlined
def _hit(s, row, hits):
    """Note that a match ends with a row."""
    v.store_byte(hits, row >> 3, v.load_byte(hits, row >> 3) | 1 << (row & 7))
    s.control[layout.FOUND] += 1


@inlined
def _choose(s, g, begun, last, hits, chosen):
    """Choose the rows of a key that the automaton has to read at the end of a batch.

    The first ones are chosen, as matches may have `begun` before. All are, if they are few, and then their matches are
    left to it. Otherwise it reads the rows of partial matches, with others left out before them.
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
    going_on = s.key_steps[g] & ((1 << last) - 1)
    if begun and row >= 0:
        going_on |= 1
    while going_on != 0:
        going_on >>= 1
        v.store_byte(chosen, row, 1)
        s.slot_of[row] = going_on == 0
        row = np.int64(s.before[row])


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


@part
def _packed(ends, hits, count):
    """Write a bit for each byte that is 0 or 1, lowest first, and return how many are 1."""
    for k in range(count, (count + 7) & ~7):
        v.store_byte(ends, k, 0)
    found = np.int64(0)
    for k in range((count + 7) >> 3):
        eight = v.load_word(ends, k)
        found += v.sum_of_bytes(eight)
        v.store_byte(hits, k, v.packed(eight))
    return found


@part
def _step(guards, hits, size, wanted, first):
    # The compiler makes vectors of these loops.
    mask = wrapped_product(wanted, v.ONES)
    if first:
        for k in range((size + 7) >> 3):
            v.store_word(hits, k, v.ones(v.load_word(guards, k) & mask))
    else:
        for k in range((size + 7) >> 3):
            v.store_word(hits, k, v.load_word(hits, k) & v.ones(v.load_word(guards, k) & mask))
