"""Unrolling for a window (004 Algorithms 3 to 6, 003 Algorithms 5 to 7).

The walks of at most w events from the start become a tree: one transition enters each state, one transition writes each
register, and walks do not meet again. Strings of at most w events keep their matches; longer ones have none. A window
bounds the *marked* events instead (Definition 39). The two agree only if every accepted string begins and ends with a
marked event (erratum 11.6); `restrict_to_window` is correct without this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

from cerflow.base import limits
from cerflow.base.errors import expect
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.papers.model.automaton import (
    Automaton,
    State,
    TransitionLike,
    check_epsilon_free,
    fresh_names,
    sorted_states,
)
from cerflow.theory.papers.model.conditions import rename_registers
from cerflow.theory.papers.model.faults import AutomatonError
from cerflow.theory.papers.model.models import RMA, SRT, RegisterA, defined_for


@dataclass(frozen=True)
class Unrolled(Generic[RegisterA]):
    """An unrolled automaton: ``CopyOfQ`` and ``CopyOfR`` map its states and registers to their originals.

    A copy of a register that replaces writes to several registers is a copy of all of them.
    """

    transducer: RegisterA
    state_of: Mapping[State, State]
    registers_of: Mapping[str, frozenset[str]]

    def walk(self, state: State) -> tuple[State, ...]:
        """The original states on the path to a state, as the papers name it."""
        parent = {t.target: t.source for t in self.transducer.transitions}
        found = [state]
        while found[-1] in parent:
            found.append(parent[found[-1]])
        return tuple(self.state_of[q] for q in reversed(found))


@defined_for(SRT, RMA)
def unroll(automaton: RegisterA, window: int, *, prune: bool = True, most: int | None = None) -> Unrolled[RegisterA]:
    """All walks of at most ``window`` events, as a tree with states 0, 1, … by length; one for each start state.

    With ``prune`` walks that cannot reach a final state are left out, except the start. A register that a walk has not
    written is read as the register of that name outside the tree, which is empty unless the tree is part of something
    larger. Raises `EpsilonFreeError` for an automaton with ε-transitions, and `UnsupportedQueryError` if there would be
    more than ``most`` states.
    """
    check_epsilon_free(automaton)
    expect(window, int, "a window must be a whole number of events")
    if window < 0:
        raise AutomatonError("a window cannot have a negative number of events")
    budget = Budget(limits.PAPER_STEPS if most is None else most)
    useful = _steps_to_final(automaton)
    names = fresh_names(automaton.registers)
    copy_of: dict[State, State] = dict(enumerate(sorted_states(automaton.starts)))
    starts = list(copy_of)
    registers_of: dict[str, frozenset[str]] = {}
    transitions: list[TransitionLike] = []
    # `FindLastAppearance`, stored for the whole path to each state of the frontier.
    frontier: list[tuple[State, Mapping[str, str]]] = [(start, {}) for start in starts]
    for depth in range(1, window + 1):
        following: list[tuple[State, Mapping[str, str]]] = []
        for state, latest in frontier:
            for t in automaton.leaving(copy_of[state]):
                if prune and useful.get(t.target, window + 1) > window - depth:
                    continue
                budget.spend()
                new = len(copy_of)
                copy_of[new] = t.target
                after, writes = latest, frozenset[str]()
                if t.writes:
                    register = next(names)
                    registers_of[register] = t.writes
                    writes = frozenset((register,))
                    after = {**latest, **dict.fromkeys(t.writes, register)}
                condition = rename_registers(t.guard, latest)
                transitions.append(automaton.transition(state, new, condition, t.output, writes))
                following.append((new, after))
        frontier = following
    outer = {r for t in transitions for r in t.reads if r not in registers_of}
    tree = type(automaton).made(
        transitions,
        starts=starts,
        finals=(q for q, original in copy_of.items() if original in automaton.finals),
        registers=(*registers_of, *sorted(outer)),
        states=copy_of,
    )
    return Unrolled(tree, copy_of, registers_of)


def _steps_to_final(automaton: Automaton) -> dict[State, int]:
    """For each state that leads to a final one, the least number of events on a path to it."""
    steps = dict.fromkeys(automaton.finals, 0)
    into: dict[State, list[State]] = {}
    for t in automaton.transitions:
        into.setdefault(t.target, []).append(t.source)
    for state in (frontier := list(steps)):
        for source in into.get(state, ()):
            if source not in steps:
                steps[source] = steps[state] + 1
                frontier.append(source)
    return steps
