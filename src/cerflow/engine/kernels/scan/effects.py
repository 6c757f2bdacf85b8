"""The effect of events on the states that may be occupied, and on the number of runs in each.

Counting begins where no run is open. Then runs are numbers by state, and each move adds those of a state to those of
another.
"""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import inlined, part
from cerflow.engine.kernels.base.shared_arrays import events_at
from cerflow.engine.kernels.scan.values import load_word, start_of, store_word, trailing_zeros
from cerflow.engine.scan import layout


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
        if control[layout.BEGUN] >= 0 and control[layout.COUNTS] == 1:
            k = _follow_moves(s, k, count, address)
            if k == count:
                break
        to = s.at[k]
        if to >= layout.UNKNOWN or control[layout.COUNTS] == 0:
            break
        if (
            to <= layout.SIGNATURE
            and s.effects[layout.SIGNATURE - to, layout.E_MATTERS] & control[layout.OCCUPIED] != 0
        ):
            n = control[layout.COUNT]
            events.signature[n] = layout.SIGNATURE - to
            events.position[n] = control[layout.FIRST] + s.chosen[k]
            control[layout.COUNT] = n + 1
            take_effect(s, layout.SIGNATURE - to)
        k += 1
    return k


@part
def _follow_moves(s, first, count, address):
    """Write events that have at most one move each, and count the runs; returns as ``follow``.

    There are no branches that the processor would often guess wrongly.
    """
    events = events_at(address)
    control = s.control
    chosen, at = start_of(s.chosen), start_of(s.at)
    effects, runs = start_of(s.effects), start_of(s.runs)
    matches = layout.RUNS_WORDS * (s.runs.shape[0] - 1) + layout.RUNS
    position, opened = control[layout.FIRST], control[layout.OPENED]
    n, occupied = control[layout.COUNT], control[layout.OCCUPIED]
    ended, found = control[layout.ENDED], control[layout.FOUND]
    k = first
    while k < count:
        to = load_word(at, k)
        if to > layout.SIGNATURE:
            if to >= layout.UNKNOWN:
                break
            k += 1
            continue
        effect = layout.EFFECT_WORDS * (layout.SIGNATURE - to)
        source = load_word(effects, effect + layout.E_SOURCE)
        if source < 0:
            break
        # The next event overwrites this one if it has no effect.
        events.signature[np.uint64(n)] = layout.SIGNATURE - to
        events.position[np.uint64(n)] = position + load_word(chosen, k)
        moves = occupied >> source & 1
        n += moves
        # If no run is there, their number is zero.
        amount = load_word(runs, layout.RUNS_WORDS * source + layout.RUNS)
        target = layout.RUNS_WORDS * load_word(effects, effect + layout.E_TARGET) + layout.RUNS
        there = load_word(runs, target) + amount
        store_word(runs, target, there)
        stays = load_word(effects, effect + layout.E_STAYING)
        store_word(runs, layout.RUNS_WORDS * source + layout.RUNS, amount & stays)
        occupied &= ~load_word(effects, effect + layout.E_LEAVES)
        occupied |= load_word(effects, effect + layout.E_ENTERS) & -moves
        k += 1
        if there > layout.COUNTABLE:
            control[layout.COUNTS] = 0
            break
        closed = occupied & opened == 0
        ended = n if closed else ended
        found = load_word(runs, matches) if closed else found
    control[layout.COUNT], control[layout.OCCUPIED] = n, occupied
    control[layout.ENDED], control[layout.FOUND] = ended, found
    return k


@inlined
def take_effect(s, signature):
    """Note the effect of the event that was written last, which has this ``signature``."""
    control = s.control
    before = control[layout.OCCUPIED]
    if control[layout.COUNTS] == 1 and control[layout.BEGUN] >= 0:
        _count(s, signature, before)
    after = before & ~s.effects[signature, layout.E_LEAVES]
    for k in range(s.effects[signature, layout.E_LEAD], s.effects[signature, layout.E_LEAD_END]):
        if s.moves[k, layout.LEADS_TARGET] >= 0 and before >> s.moves[k, layout.LEADS_SOURCE] & 1 != 0:
            after |= np.int64(1) << s.moves[k, layout.LEADS_TARGET]
    control[layout.OCCUPIED] = after
    if after & control[layout.OPENED] == 0 and control[layout.COUNTS] == 1:
        if control[layout.BEGUN] < 0:
            control[layout.BEGUN] = control[layout.COUNT]
        control[layout.ENDED], control[layout.FOUND] = control[layout.COUNT], s.runs[s.runs.shape[0] - 1, layout.RUNS]


@part
def _count(s, signature, occupied):
    """Count the runs behind an event; where there are too many, nothing is counted any more."""
    runs = s.runs
    begin, end = s.effects[signature, layout.E_LEAD], s.effects[signature, layout.E_LEAD_END]
    most = np.int64(0)
    # An event does not see its own effects.
    for k in range(begin, end):
        amount, to = runs[s.moves[k, layout.LEADS_SOURCE], layout.RUNS], s.moves[k, layout.LEADS_TARGET]
        if s.moves[k, layout.LEADS_FINAL] == 1:
            runs[runs.shape[0] - 1, layout.RUNS] += amount
            most = max(most, runs[runs.shape[0] - 1, layout.RUNS])
        if to >= 0:
            runs[to, layout.ADDED] += amount
            most = max(most, runs[to, layout.ADDED])
    left = s.effects[signature, layout.E_LEAVES] & occupied
    while left != 0:
        runs[trailing_zeros(left), layout.RUNS] = 0
        left &= left - 1
    for k in range(begin, end):
        to = s.moves[k, layout.LEADS_TARGET]
        if to >= 0:
            runs[to, layout.RUNS] += runs[to, layout.ADDED]
            runs[to, layout.ADDED] = 0
            most = max(most, runs[to, layout.RUNS])
    if most > layout.COUNTABLE:
        s.control[layout.COUNTS] = 0
