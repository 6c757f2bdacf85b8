"""The effect of events on the states that may be occupied, and on the number of runs in each.

Counting begins where no run is open. Then runs are numbers by state, and each move adds those of a state to those of
another.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import address_of, events_at, pointer_to
from cerflow.engine.kernels.scan.values import load_word, store_word, trailing_zeros
from cerflow.engine.scan.layout import (
    ADDED,
    BEGUN,
    COUNT,
    COUNTABLE,
    COUNTS,
    E_ENTERS,
    E_LEAD,
    E_LEAD_END,
    E_LEAVES,
    E_MATTERS,
    E_SOURCE,
    E_STAYING,
    E_TARGET,
    EFFECT_WORDS,
    ENDED,
    FIRST,
    FOUND,
    LEADS_FINAL,
    LEADS_SOURCE,
    LEADS_TARGET,
    OCCUPIED,
    OPENED,
    RUNS,
    RUNS_WORDS,
    SIGNATURE,
    UNKNOWN,
)

__all__ = ["follow", "take_effect"]


@part
def follow(s, first, count, address):
    """Write events of chosen rows, from number ``first`` on, while nothing has to be asked of them.

    Only for events without values. Returns the number of the first row of which something has to be asked, or
    ``count``.
    """
    events = events_at(address)
    control = s.control
    k = first
    while k < count:
        if control[BEGUN] >= 0 and control[COUNTS] == 1:
            k = _follow_moves(s, k, count, address)
            if k == count:
                break
        to = s.at[k]
        if to >= UNKNOWN or control[COUNTS] == 0:
            break
        if to <= SIGNATURE and s.effects[SIGNATURE - to, E_MATTERS] & control[OCCUPIED] != 0:
            n = control[COUNT]
            events.signature[n] = SIGNATURE - to
            events.position[n] = control[FIRST] + s.chosen[k]
            control[COUNT] = n + 1
            take_effect(s, SIGNATURE - to)
        k += 1
    return k


@part
def _follow_moves(s, first, count, address):
    """Write events that have at most one move each, and count the runs; returns as ``follow``.

    There are no branches that the processor would often guess wrongly.
    """
    events = events_at(address)
    control = s.control
    # Addresses, as array accesses look for negative indices.
    chosen, at = address_of(pointer_to(s.chosen, 0)), address_of(pointer_to(s.at, 0))
    effects, runs = address_of(pointer_to(s.effects, 0)), address_of(pointer_to(s.runs, 0))
    matches = RUNS_WORDS * (s.runs.shape[0] - 1) + RUNS
    position, opened = control[FIRST], control[OPENED]
    n, occupied, ended, found = control[COUNT], control[OCCUPIED], control[ENDED], control[FOUND]
    k = first
    while k < count:
        to = load_word(at, k)
        if to > SIGNATURE:
            if to >= UNKNOWN:
                break
            k += 1
            continue
        effect = EFFECT_WORDS * (SIGNATURE - to)
        source = load_word(effects, effect + E_SOURCE)
        if source < 0:
            break
        # The next event overwrites this one if it has no effect.
        events.signature[np.uint64(n)] = SIGNATURE - to
        events.position[np.uint64(n)] = position + load_word(chosen, k)
        moves = occupied >> source & 1
        n += moves
        # If no run is there, their number is zero.
        amount = load_word(runs, RUNS_WORDS * source + RUNS)
        target = RUNS_WORDS * load_word(effects, effect + E_TARGET) + RUNS
        there = load_word(runs, target) + amount
        store_word(runs, target, there)
        store_word(runs, RUNS_WORDS * source + RUNS, amount & load_word(effects, effect + E_STAYING))
        occupied = occupied & ~load_word(effects, effect + E_LEAVES) | load_word(effects, effect + E_ENTERS) & -moves
        k += 1
        if there > COUNTABLE:
            control[COUNTS] = 0
            break
        closed = occupied & opened == 0
        ended = n if closed else ended
        found = load_word(runs, matches) if closed else found
    control[COUNT], control[OCCUPIED], control[ENDED], control[FOUND] = n, occupied, ended, found
    return k


@inlined
def take_effect(s, signature):
    """Note the effect of the event that was written last, which has this ``signature``."""
    control = s.control
    before = control[OCCUPIED]
    if control[COUNTS] == 1 and control[BEGUN] >= 0:
        _count(s, signature, before)
    after = before & ~s.effects[signature, E_LEAVES]
    for k in range(s.effects[signature, E_LEAD], s.effects[signature, E_LEAD_END]):
        if s.moves[k, LEADS_TARGET] >= 0 and before >> s.moves[k, LEADS_SOURCE] & 1 != 0:
            after |= np.int64(1) << s.moves[k, LEADS_TARGET]
    control[OCCUPIED] = after
    if after & control[OPENED] == 0 and control[COUNTS] == 1:
        if control[BEGUN] < 0:
            control[BEGUN] = control[COUNT]
        control[ENDED], control[FOUND] = control[COUNT], s.runs[s.runs.shape[0] - 1, RUNS]


@part
def _count(s, signature, occupied):
    """Count the runs behind an event; where there are too many, nothing is counted any more."""
    runs = s.runs
    begin, end = s.effects[signature, E_LEAD], s.effects[signature, E_LEAD_END]
    most = np.int64(0)
    # An event does not see its own effects.
    for k in range(begin, end):
        amount, to = runs[s.moves[k, LEADS_SOURCE], RUNS], s.moves[k, LEADS_TARGET]
        if s.moves[k, LEADS_FINAL] == 1:
            runs[runs.shape[0] - 1, RUNS] += amount
            most = max(most, runs[runs.shape[0] - 1, RUNS])
        if to >= 0:
            runs[to, ADDED] += amount
            most = max(most, runs[to, ADDED])
    left = s.effects[signature, E_LEAVES] & occupied
    while left != 0:
        runs[trailing_zeros(left), RUNS] = 0
        left &= left - 1
    for k in range(begin, end):
        to = s.moves[k, LEADS_TARGET]
        if to >= 0:
            runs[to, RUNS] += runs[to, ADDED]
            runs[to, ADDED] = 0
            most = max(most, runs[to, RUNS])
    if most > COUNTABLE:
        s.control[COUNTS] = 0
