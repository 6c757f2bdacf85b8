"""Covers: the entries of better classes with one member (a state with registers).

Updates and configurations with that member are added to its cover from the best class to the worst.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine import layout
from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import pointer_to
from cerflow.engine.kernels.state.collections import hash_words, same_words


@part
def find_cover(q, registers, width, new, ranking):
    """The cover of a member with the ``width`` registers at a pointer.

    A missing one is made with number ``new``. Returns -1 if ``new`` is negative, or if there is too little room.
    """
    table = ranking.cover_table
    at = hash_words(registers, width, q) & (table.shape[0] - 1)
    while table[at] >= 0:
        v = np.int64(table[at])
        if ranking.covers[v, layout.V_STATE] == q and same_words(pointer_to(ranking.cover_values, v), registers, width):
            return v
        at = (at + 1) & (table.shape[0] - 1)
    if new < 0 or new >= ranking.covers.shape[0]:
        return np.int64(-1)
    table[at] = new
    ranking.covers[new, layout.V_STATE] = q
    for field in (layout.V_BETTER, layout.V_RANK, layout.V_START):
        ranking.covers[new, field] = layout.NULL
    ranking.covers[new, layout.V_PLACE] = -1
    ranking.covers[new, layout.V_SPARE] = -1
    for s in range(width):
        ranking.cover_values[new, s] = registers[s]
    return new


@part
def forget_covers(covers, slots, ranking):
    """Empty the table of the first ``covers``, given the ``slots`` of each state."""
    table = ranking.cover_table
    for v in range(covers):
        q = ranking.covers[v, layout.V_STATE]
        # Only covers block the slot of a cover.
        at = hash_words(pointer_to(ranking.cover_values, v), np.int64(slots[q]), q) & (table.shape[0] - 1)
        while table[at] >= 0:
            table[at] = -1
            at = (at + 1) & (table.shape[0] - 1)


@inlined
def dominated(v, e, ranking):
    """Whether a member of entry ``e``, with cover ``v``, is dominated; call it from the best class to the worst."""
    covers, class_rank = ranking.covers, ranking.entries[e, layout.E_RANK]
    start = ranking.entries[e, layout.E_START]
    if covers[v, layout.V_RANK] != class_rank:
        covers[v, layout.V_BETTER] = max(covers[v, layout.V_BETTER], covers[v, layout.V_START])
        covers[v, layout.V_RANK] = class_rank
        covers[v, layout.V_START] = layout.NULL
        covers[v, layout.V_PLACE] = -1
    if start <= covers[v, layout.V_BETTER]:
        return True
    covers[v, layout.V_START] = max(covers[v, layout.V_START], start)
    return False


@inlined
def spare(e, v, ranking):
    """Let an entry with the same member, whose cover is ``v``, overwrite the configuration of entry ``e``."""
    ranking.entries[e, layout.E_RANK] = layout.NULL
    ranking.entries[e, layout.E_SPARE] = ranking.covers[v, layout.V_SPARE]
    ranking.covers[v, layout.V_SPARE] = e
