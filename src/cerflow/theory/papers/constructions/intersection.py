"""Intersection (004 Theorem 34, App. A.4; P1 Proposition 1; AND of P2 §5.2), repaired according to erratum 11.4.

Only transitions with the same output are combined. With the printed product, an event that one side marks and the other
skips would be skipped, and the result would not be a match of the first side.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as pairs

from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.theory.papers.constructions.closure import set_apart
from cerflow.theory.papers.constructions.minterms import contradictory
from cerflow.theory.papers.model.automaton import State, Successor, check_epsilon_free, sorted_states
from cerflow.theory.papers.model.faults import SharedRegistersError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, defined_for


@defined_for(CEA, UCEA, SRT, RMA)
def intersect(left: AnyA, right: AnyA) -> AnyA:
    """``Match(T, S) = Match(T1, S) ∩ Match(T2, S)``; states are the reachable pairs of states.

    Registers of the second that the first has too are renamed. Raises `EpsilonFreeError` for automata with
    ε-transitions.
    """
    return product(left, set_apart(left, right))


def product(left: AnyA, right: AnyA) -> AnyA:
    """The same with registers that both may read; raises `SharedRegistersError` if one writes what the other uses."""
    check_epsilon_free(left, right)
    shared = (left.written & (right.written | right.read)) | (right.written & left.read)
    if shared:
        raise SharedRegistersError(f"one side writes register {min(shared)}, which the other one uses")

    def successors(place: tuple[State, State]) -> Iterator[Successor[tuple[State, State]]]:
        for one, other in pairs(left.leaving(place[0]), right.leaving(place[1])):
            conditions = [*conjuncts(one.guard), *conjuncts(other.guard)]
            if one.output == other.output and not contradictory(conditions):
                yield (one.target, other.target), conjunction(conditions), one.output, one.writes | other.writes

    return type(left).built(
        pairs(sorted_states(left.starts), sorted_states(right.starts)),
        successors,
        lambda place: place[0] in left.finals and place[1] in right.finals,
        dict.fromkeys((*left.registers, *right.registers)),
    )
