"""Matches of consecutive rows of a batch, or of rows that lie in a row once they are sorted by key."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.blocks import compute_block, compute_link
from cerflow.engine.kernels.scan.marks import list_marked
from cerflow.engine.scan import layout


@inlined
def keep_kinds(s, guards, begin, count):
    """Keep the ``guards`` of ``count`` rows from row ``begin`` on if labels depend on them.

    ``s`` are the arrays of the scan.
    """
    kinds = v.start_of(s.kinds) + begin
    for k in range(count if s.kinds.shape[0] > 0 else 0):
        v.store_byte(kinds, k, v.load_byte(guards, k))


@part
def compute_columns(s, guards, begin, count):
    """Compute the columns that conditions read, for those of ``count`` rows from ``begin`` on that have ``guards``.

    ``s`` are the arrays of the scan.
    """
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
def step_of_all(guards, hits, size, wanted, first):
    """Write whether each of ``size`` rows has some of the ``guards`` ``wanted``, 1 or 0, to ``hits``.

    But for the ``first`` step, those before must have held, too.
    """
    # The compiler makes vectors of these loops.
    mask = wrapped_product(wanted, v.ONES)
    if first:
        for k in range((size + 7) >> 3):
            v.store_word(hits, k, v.ones(v.load_word(guards, k) & mask))
    else:
        for k in range((size + 7) >> 3):
            v.store_word(hits, k, v.load_word(hits, k) & v.ones(v.load_word(guards, k) & mask))


@part
def keep_linked(s, ends, begin, count):
    """Clear those of the ``ends`` of matches in ``count`` rows, from row ``begin`` on, where links fail.

    ``s`` are the arrays of the scan.
    """
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
def pack_ends(ends, hits, count):
    """Write a bit of ``hits`` for each of ``count`` bytes ``ends``, lowest first, and return how many are 1."""
    for k in range(count, (count + 7) & ~7):
        v.store_byte(ends, k, 0)
    found = np.int64(0)
    for k in range((count + 7) >> 3):
        eight = v.load_word(ends, k)
        found += v.sum_of_bytes(eight)
        v.store_byte(hits, k, v.packed(eight))
    return found


@inlined
def hit(s, row, hits):
    """Note in ``hits`` that a match ends with a ``row``; ``s`` are the arrays of the scan."""
    v.store_byte(hits, row >> 3, v.load_byte(hits, row >> 3) | 1 << (row & 7))
    s.control[layout.FOUND] += 1
