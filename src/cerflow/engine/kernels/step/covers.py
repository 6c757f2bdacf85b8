"""Covers: the entries of better classes with one member (a state with registers).

Updates and configurations with that member are added to its cover from the best class to the worst.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import pointer_to
from cerflow.engine.kernels.state.collections import hash_words, same_words
from cerflow.engine.layout import E_RANK, E_SPARE, NULL, V_BETTER, V_PLACE, V_RANK, V_SPARE, V_START, V_STATE


@part
def find_cover(q, registers, width, new, ranking):
    """The cover of a member with the ``width`` registers at a pointer.

    A missing one is made with number ``new``. Returns -1 if ``new`` is negative, or if there is too little room.
    """
    table = ranking.cover_table
    at = hash_words(registers, width, q) & (table.shape[0] - 1)
    while table[at] >= 0:
        v = np.int64(table[at])
        if ranking.covers[v, V_STATE] == q and same_words(pointer_to(ranking.cover_values, v), registers, width):
            return v
        at = (at + 1) & (table.shape[0] - 1)
    if new < 0 or new >= ranking.covers.shape[0]:
        return np.int64(-1)
    table[at] = new
    ranking.covers[new, V_STATE] = q
    ranking.covers[new, V_BETTER] = NULL
    ranking.covers[new, V_RANK] = NULL
    ranking.covers[new, V_START] = NULL
    ranking.covers[new, V_PLACE] = -1
    ranking.covers[new, V_SPARE] = -1
    for s in range(width):
        ranking.cover_values[new, s] = registers[s]
    return new


@part
def forget_covers(covers, slots, ranking):
    """Empty the table of the first ``covers``, given the ``slots`` of each state."""
    table = ranking.cover_table
    for v in range(covers):
        q = ranking.covers[v, V_STATE]
        # Only covers block the slot of a cover.
        at = hash_words(pointer_to(ranking.cover_values, v), np.int64(slots[q]), q) & (table.shape[0] - 1)
        while table[at] >= 0:
            table[at] = -1
            at = (at + 1) & (table.shape[0] - 1)


@inlined
def dominated(v, class_rank, start, covers):
    """Whether a member with cover ``v``, of a class with ``class_rank`` and with a latest ``start``, is dominated.

    Call it from the best class to the worst.
    """
    if covers[v, V_RANK] != class_rank:
        covers[v, V_BETTER] = max(covers[v, V_BETTER], covers[v, V_START])
        covers[v, V_RANK] = class_rank
        covers[v, V_START] = NULL
        covers[v, V_PLACE] = -1
    if start <= covers[v, V_BETTER]:
        return True
    covers[v, V_START] = max(covers[v, V_START], start)
    return False


@inlined
def spare(e, v, ranking):
    """Let an entry with the same member, whose cover is ``v``, overwrite the configuration of entry ``e``."""
    ranking.entries[e, E_RANK] = NULL
    ranking.entries[e, E_SPARE] = ranking.covers[v, V_SPARE]
    ranking.covers[v, V_SPARE] = e
