"""The position of marked events: contiguous (STRICT), or from the first event that is read on (START)."""

from __future__ import annotations

from cerflow.automata.model.clock import may_read_events, parted, with_patience
from cerflow.automata.model.fragment import Fragment, track, without_dead_states
from cerflow.automata.model.transducer import Transition

#: The progress of a run of STRICT: nothing marked yet, marking without a gap, or all marked.
_BEFORE, _INSIDE, _AFTER = range(3)


def contiguous(operand: Fragment, *, ticking: bool = False) -> Fragment:
    """``STRICT(φ)``: the runs without an unmarked event between their marked events (A_STRICT, P1 Theorem 4).

    Events that are only read may come before the marked ones and, if φ ends with such events, after them. With
    ``ticking`` there may be ticks and pauses in between.
    """

    def step(place: int, t: Transition) -> list[tuple[int, Transition]]:
        if t.labels:
            return [(_INSIDE, t)] if place != _AFTER else []
        if place == _INSIDE and ticking:
            return [(_AFTER if may_read_events(each) else _INSIDE, each) for each in parted(t)]
        return [(_BEFORE if place == _BEFORE else _AFTER, t)]

    # Most states after the marked events have no successors, and would look like hidden events if they stayed.
    found = without_dead_states(track(operand, _BEFORE, step))
    return with_patience(found) if ticking else found


def begin_at_once(operand: Fragment) -> Fragment:
    """``START(φ)``: the runs that mark the first event they read (P2 Theorem 6.2, which lacks the condition L ≠ ∅)."""

    def step(begun: bool, t: Transition) -> list[tuple[bool, Transition]]:
        return [(True, t)] if begun or t.labels else []

    return without_dead_states(track(operand, False, step, lambda begun: begun))
