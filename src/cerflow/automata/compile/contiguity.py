"""Where the marked events of a run may lie: together (STRICT), or from the first event that is read (START)."""

from __future__ import annotations

from cerflow.automata.model.fragment import Fragment, track, without_dead_states
from cerflow.automata.model.transducer import Transition

__all__ = ["begin_at_once", "contiguous"]

#: Where a run of STRICT stands: nothing marked yet, marking without a gap, marked all it will.
_BEFORE, _INSIDE, _AFTER = range(3)


def contiguous(operand: Fragment) -> Fragment:
    """``STRICT(φ)``: the runs whose marked events have no other event between them (A_STRICT, P1 Theorem 4).

    Events that are read without being marked may come before and, where φ ends with such, after them.
    """

    def step(place: int, t: Transition) -> list[tuple[int, Transition]]:
        if t.labels:
            return [(_INSIDE, t)] if place != _AFTER else []
        return [(_BEFORE if place == _BEFORE else _AFTER, t)]

    # Most states after the marked events lead nowhere; left in place they would look like hidden events.
    return without_dead_states(track(operand, _BEFORE, step))


def begin_at_once(operand: Fragment) -> Fragment:
    """``START(φ)``: the runs that mark the first event they read (P2 Theorem 6.2; the paper forgets L ≠ ∅)."""

    def step(begun: bool, t: Transition) -> list[tuple[bool, Transition]]:
        return [(True, t)] if begun or t.labels else []

    return without_dead_states(track(operand, False, step, lambda begun: begun))
