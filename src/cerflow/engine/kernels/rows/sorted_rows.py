"""Matches of consecutive events of a key, found in rows sorted by key, so that the events before lie next to a row."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.rows.consecutive import hit, keep_linked, step_of_all
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.kernels.scan.marks import list_marked
from cerflow.engine.scan import layout

#: The bits of the guards of a row, below the number of its key.
_GUARDS = 8


@inlined
def remember(s, guards, begin, count):
    """Keep the keys and the ``guards`` of ``count`` rows from row ``begin`` on; ``s`` are the arrays of the scan."""
    for k in range(count):
        s.key_of[begin + k] = s.numbers[k] << _GUARDS | v.load_byte(guards, k)


@part
def find_sorted(s, count, hits):
    """Note where matches end, once all ``count`` rows are `remember`\\ ed; see `find_rows` for ``hits``.

    In the end `key_steps` has the steps that the last row of each key may be. ``s`` are the arrays of the scan.
    """
    end = _places(s)
    _sort(s, count)
    for n in range(s.sorting.shape[0]):
        s.columns[s.sorting[n, 0], layout.C_DATA] = v.start_of(s.sorted[n])
    ends, guards = v.start_of(s.ends), v.start_of(s.sorted_guards) + layout.CARRIED
    steps, g, found = s.step_guards.shape[0], np.int64(1), v.start_of(s.numbers)
    s.control[layout.SORTED] = 1
    for begin in range(0, end, layout.BLOCK):
        size = min(end - begin, layout.BLOCK)
        for step in range(steps):
            step_of_all(guards + begin + step + 1 - steps, ends, size, s.step_guards[step], step == 0)
        # The first rows of a key have too few before them.
        while g < s.groups.shape[0]:
            start = _start(s, g)
            if start >= begin + size:
                break
            stop = min(start + steps - 1, s.key_steps[g])
            for place in range(max(start, begin), min(stop, begin + size)):
                v.store_byte(ends, place - begin, 0)
            if stop > begin + size:
                break
            g += 1
        if s.links.shape[0] > 0:
            keep_linked(s, ends, begin, size)
        for first in range(0, size, layout.STRETCH):
            some = list_marked(s, first, min(first + layout.STRETCH, size), ends)
            for k in range(some):
                v.store_word(found, k, np.int64(s.order[begin + s.chosen[k]]))
            for k in range(some):
                hit(s, v.load_word(found, k), hits)
    s.control[layout.SORTED] = 0
    _keep_steps(s, guards, steps - 1)


@inlined
def _start(s, g):
    """Where the rows of key ``g`` begin, which end where `key_steps` says."""
    return s.key_steps[g - 1] if g > 1 else np.int64(0)


@inlined
def _places(s):
    """Find out where the rows of each key begin, those without a key behind all others; returns where these begin."""
    end = np.int64(0)
    for g in range(1, s.groups.shape[0]):
        s.key_steps[g] = end
        end += s.groups[g, layout.G_ROWS]
    s.key_steps[0] = end
    return end


@inlined
def _sort(s, count):
    """Sort ``count`` rows by key: their numbers, guards and the columns that conditions read."""
    places, words, guards = v.start_of(s.at), v.start_of(s.measures), v.start_of(s.sorted_guards)
    for k in range(layout.CARRIED):
        v.store_byte(guards, k, 0)
    for begin in range(0, count, layout.STRETCH):
        size = min(count - begin, layout.STRETCH)
        for k in range(size):
            word = s.key_of[begin + k]
            place = s.key_steps[word >> _GUARDS]
            s.key_steps[word >> _GUARDS] = place + 1
            v.store_word(places, k, place)
            v.store_byte(guards, layout.CARRIED + place, word & (1 << _GUARDS) - 1)
            s.order[place] = begin + k
        for n in range(s.sorting.shape[0]):
            v.write_words(s.columns, s.sorting[n, 1], begin, size, s.control[layout.FIRST], words)
            to = v.start_of(s.sorted[n])
            for k in range(size):
                v.store_word(to, v.load_word(places, k), v.load_word(words, k))


@inlined
def _keep_steps(s, guards, last):
    """Leave in `key_steps` the steps, but of the ``last`` one, that the last row of a key may be, by its ``guards``."""
    start = np.int64(0)
    for g in range(1, s.groups.shape[0]):
        end, found = s.key_steps[g], np.int64(0)
        for place in range(max(start, end - last), end):
            found = (found << 1 | 1) & s.admits[v.load_byte(guards, place)]
        s.key_steps[g] = found
        start = end
