"""Merging transitions that agree except for their target (as 004, Algorithm 2 groups them; §11.3).

This is a subset construction on transitions. Two with the same test, atoms, labels *and* writes are taken at the same
events and leave the same registers, so one run in a set of states replaces one run in each of them.
"""

from __future__ import annotations

from cerflow.automata.model.fragment import Fragment
from cerflow.automata.model.transducer import Transition


def merge_transitions(operand: Fragment) -> Fragment:
    """The same runs, without two transitions from one state that differ only in their target.

    Returns the operand itself if there would be more than twice as many sets as states.
    """
    leaving = operand.leaving()
    start = frozenset(operand.initial)
    result = Fragment(1, {0})
    numbers: dict[frozenset[int], int] = {start: 0}
    pending = [start]
    while pending:
        states = pending.pop()
        here = numbers[states]
        if states & operand.final:
            result.final.add(here)
        targets: dict[Transition, set[int]] = {}
        for state in sorted(states):
            for t in leaving[state]:
                targets.setdefault(t.moved(0, 0), set()).add(t.target)
        for t, together in targets.items():
            target = frozenset(together)
            if target not in numbers:
                numbers[target] = result.add_state()
                pending.append(target)
                if result.states > 2 * operand.states:
                    return operand
            result.transitions.append(t.moved(here, numbers[target]))
    return result
