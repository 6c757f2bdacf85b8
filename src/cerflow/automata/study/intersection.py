"""Intersection (004 Theorem 34, App. A.4), repaired as erratum 11.4 asks for.

Only transitions with the same output are combined: with the printed product an event that one side marks and the other
one skips would be skipped, and the result be no match of the first.
"""

from __future__ import annotations

from cerflow.automata.guards import conjunction, conjuncts
from cerflow.automata.study.closure import set_apart
from cerflow.automata.study.faults import SharedRegistersError
from cerflow.automata.study.model import (
    State,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    check_epsilon_free,
)

__all__ = ["intersect", "product"]


def intersect(left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """``Match(T, S) = Match(T1, S) ∩ Match(T2, S)``; a state is a pair of states, of which only those reached exist.

    The registers of the second are renamed where the first has the same. Raises `EpsilonFreeError` for transducers
    with ε-transitions.
    """
    return product(left, set_apart(left, right))


def product(left: SymbolicRegisterTransducer, right: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The same with registers that both may read; raises `SharedRegistersError` if one writes what the other uses."""
    check_epsilon_free(left, right)
    shared = (left.written & (right.written | right.read)) | (right.written & left.read)
    if shared:
        raise SharedRegistersError(f"one side writes register {min(shared)}, which the other one uses")
    start: tuple[State, State] = (left.start, right.start)
    transitions: list[SymbolicTransition] = []
    found = {start}
    for pair in (frontier := [start]):
        for one in left.leaving(pair[0]):
            for other in right.leaving(pair[1]):
                if one.output != other.output:
                    continue
                assert one.condition is not None
                assert other.condition is not None
                target = (one.target, other.target)
                transitions.append(
                    SymbolicTransition(
                        source=pair,
                        target=target,
                        condition=conjunction([*conjuncts(one.condition), *conjuncts(other.condition)]),
                        output=one.output,
                        writes=one.writes | other.writes,
                    )
                )
                if target not in found:
                    found.add(target)
                    frontier.append(target)
    return SymbolicRegisterTransducer(
        states=frozenset(found),
        start=start,
        finals=frozenset((a, b) for a, b in found if a in left.finals and b in right.finals),
        transitions=tuple(transitions),
        registers=tuple(dict.fromkeys((*left.registers, *right.registers))),
    )
