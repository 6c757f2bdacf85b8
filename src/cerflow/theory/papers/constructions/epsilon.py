"""Elimination of ε-transitions (004 Algorithm 2, Lemma 29), repaired according to erratum 11.3.

Transitions are grouped by condition, output *and* writes. The printed algorithm unites the writes of transitions that
agree in condition and output, which overwrites registers that one of them would have left alone. And only new sets of
states are visited, or a cycle would never end.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.theory.papers.model.automaton import Effect, State, Successor, enclosed, sorted_states
from cerflow.theory.papers.model.models import RMA, SRT, RegisterA, defined_for


@defined_for(SRT, RMA)
def eliminate_epsilon(automaton: RegisterA) -> RegisterA:
    """The automaton without ε-transitions and with the same matches; its states are sets of the original ones."""

    def successors(place: frozenset[State]) -> Iterator[Successor[frozenset[State]]]:
        targets: dict[Effect, set[State]] = {}
        for inner in sorted_states(place):
            for t in automaton.leaving(inner):
                if t.condition is not None:
                    targets.setdefault(t.effect, set()).add(t.target)
        for effect, reached in targets.items():
            yield enclosed(automaton, reached), *effect

    start = enclosed(automaton, automaton.starts)
    return type(automaton).built(
        [start], successors, lambda place: not place.isdisjoint(automaton.finals), automaton.registers
    )
