"""Intersection (004 Theorem 34, App. A.4), repaired according to erratum 11.4.

Only transitions with the same output are combined. With the printed product, an event that one side marks and the other
skips would be skipped, and the result would not be a match of the first side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

from cerflow.conditions.connectives import conjunction, conjuncts
from cerflow.papers.constructions.cea_closure import intersected
from cerflow.papers.constructions.closure import set_apart
from cerflow.papers.model.cea import (
    ComplexEventAutomaton,
    MemorylessAutomaton,
    UnaryComplexEventAutomaton,
)
from cerflow.papers.model.faults import SharedRegistersError
from cerflow.papers.model.models import CEA, SRT, UCEA, defined_for
from cerflow.papers.model.srt import (
    State,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    check_epsilon_free,
    explored,
)

__all__ = ["intersect", "product"]


@overload
def intersect(left: ComplexEventAutomaton, right: ComplexEventAutomaton) -> ComplexEventAutomaton: ...
@overload
def intersect(left: UnaryComplexEventAutomaton, right: UnaryComplexEventAutomaton) -> UnaryComplexEventAutomaton: ...
@overload
def intersect(left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer: ...
@defined_for(CEA, UCEA, SRT)
def intersect(left: Any, right: Any) -> Any:
    """``Match(T, S) = Match(T1, S) ∩ Match(T2, S)``; states are the reachable pairs of states.

    Two automata without memory are intersected in the same way (P1 Proposition 1); for UCEA that is AND (P2 §5.2).

    Registers of the second that the first has too are renamed. Raises `EpsilonFreeError` for transducers with
    ε-transitions.
    """
    if isinstance(left, MemorylessAutomaton):
        return intersected(left, right)
    return product(left, set_apart(left, right))


def product(left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The same with registers that both may read; raises `SharedRegistersError` if one writes what the other uses."""
    check_epsilon_free(left, right)
    shared = (left.written & (right.written | right.read)) | (right.written & left.read)
    if shared:
        raise SharedRegistersError(f"one side writes register {min(shared)}, which the other one uses")

    def leaving(pair: tuple[State, State]) -> Iterator[SymbolicTransition]:
        for one in left.leaving(pair[0]):
            for other in right.leaving(pair[1]):
                if one.output == other.output:
                    assert one.condition is not None
                    assert other.condition is not None
                    yield SymbolicTransition(
                        source=pair,
                        target=(one.target, other.target),
                        condition=conjunction([*conjuncts(one.condition), *conjuncts(other.condition)]),
                        output=one.output,
                        writes=one.writes | other.writes,
                    )

    start: tuple[State, State] = (left.start, right.start)
    found, transitions = explored([start], leaving)
    return SymbolicRegisterTransducer(
        states=found,
        start=start,
        finals=frozenset((a, b) for a, b in found if a in left.finals and b in right.finals),
        transitions=transitions,
        registers=tuple(dict.fromkeys((*left.registers, *right.registers))),
    )
