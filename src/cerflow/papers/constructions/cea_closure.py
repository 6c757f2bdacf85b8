"""Union, intersection, I/O-determinisation and complement of automata without memory (P1 Proposition 1, App. C.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product
from typing import Any, TypeVar

from cerflow import limits
from cerflow.conditions.connectives import conjunction, conjuncts
from cerflow.deciding.budget import Budget
from cerflow.language.condition import Condition
from cerflow.papers.constructions.determinize import transitions_by_minterm
from cerflow.papers.constructions.minterms import contradictory
from cerflow.papers.model.cea import (
    ComplexEventAutomaton,
    ComplexEventTransition,
    MemorylessAutomaton,
    UnaryComplexEventAutomaton,
    UnaryComplexEventTransition,
)
from cerflow.papers.model.models import CEA, UCEA, defined_for
from cerflow.papers.model.srt import MARKED, SKIPPED, State, sorted_states

__all__ = ["intersected", "io_complement", "io_determinize", "is_io_deterministic", "united"]

A = TypeVar("A", ComplexEventAutomaton, UnaryComplexEventAutomaton)

_Transition = ComplexEventTransition | UnaryComplexEventTransition
_Subset = frozenset[State]
#: A continuation: a condition, an output, and a subset or a pair.
_Way = tuple[Condition, frozenset[str], _Subset]
_PairWay = tuple[Condition, frozenset[str], tuple[State, State]]


def united(left: A, right: A) -> A:
    """``⟦A⟧(S) = ⟦A1⟧(S) ∪ ⟦A2⟧(S)``: both side by side, with states (0, q) and (1, q)."""
    return _side_by_side(
        left.relocated({q: (0, q) for q in left.states}), right.relocated({q: (1, q) for q in right.states})
    )


def intersected(left: A, right: A) -> A:
    """``⟦A⟧(S) = ⟦A1⟧(S) ∩ ⟦A2⟧(S)``: pairs of states, and pairs of transitions with the same output."""

    def ways(pair: tuple[State, State]) -> Iterator[_PairWay]:
        return _together(left.leaving(pair[0]), right.leaving(pair[1]))

    starts = [(p, q) for p in sorted_states(left.starts) for q in sorted_states(right.starts)]
    return type(left).built(starts, ways, lambda pair: pair[0] in left.finals and pair[1] in right.finals)


@defined_for(CEA, UCEA)
def io_determinize(automaton: A, *, most: int | None = None) -> A:
    """The reachable subsets of states: at most one run for every stream and every complex event.

    Raises `UnsupportedQueryError` if more than ``most`` minterms would have to be tried.
    """
    return type(automaton).built(
        [automaton.starts], _subsets(automaton, None, most), lambda subset: not subset.isdisjoint(automaton.finals)
    )


@defined_for(CEA, UCEA)
def io_complement(automaton: A, alphabet: Iterable[frozenset[str]] | None = None, *, most: int | None = None) -> A:
    """The I/O-deterministic automaton of all other complex events: C is in ``⟦A⟧_n`` iff the given automaton lacks it.

    For a CEA, C ranges over the sets of positions that contain n. For a UCEA it ranges over the complex events in which
    every event has one of the label sets of ``alphabet``, by default those of the transitions and ∅. Raises as
    `io_determinize`.
    """
    if isinstance(automaton, ComplexEventAutomaton):
        outputs = frozenset((SKIPPED, MARKED))
    else:
        outputs = automaton.label_sets if alphabet is None else frozenset(alphabet)
    return type(automaton).built(
        [automaton.starts], _subsets(automaton, outputs, most), lambda subset: subset.isdisjoint(automaton.finals)
    )


@defined_for(CEA, UCEA)
def is_io_deterministic(automaton: MemorylessAutomaton[Any]) -> bool:
    """Whether it is certain that at most one run gives each complex event.

    There must be one start state, and the conditions of two transitions from one state with the same output must
    exclude each other (P1 §6). Only a cheap test decides this.
    """
    ways = [(t.source, t.output, t.condition) for t in automaton.transitions]
    return len(automaton.starts) == 1 and all(
        one[:2] != other[:2] or contradictory((one[2], other[2])) for one, other in combinations(ways, 2)
    )


def _subsets(
    automaton: A, outputs: frozenset[frozenset[str]] | None, most: int | None
) -> Callable[[_Subset], Iterator[_Way]]:
    """The steps from a subset: to non-empty subsets or, with each of ``outputs``, to any subset."""
    budget = Budget(limits.PAPER_STEPS if most is None else most)

    def ways(subset: _Subset) -> Iterator[_Way]:
        leaving = [t for state in sorted_states(subset) for t in automaton.leaving(state)]
        for minterm, taken in transitions_by_minterm(leaving, budget):
            targets: dict[frozenset[str], set[State]] = {output: set() for output in sorted(outputs or (), key=sorted)}
            for t in taken:
                if outputs is None or t.output in outputs:
                    targets.setdefault(t.output, set()).add(t.target)
            for output, target in targets.items():
                yield minterm.condition, output, frozenset(target)

    return ways


def _together(left: Iterable[_Transition], right: Iterable[_Transition]) -> Iterator[_PairWay]:
    for one, other in product(left, right):
        conditions = [*conjuncts(one.condition), *conjuncts(other.condition)]
        if one.output == other.output and not contradictory(conditions):
            yield conjunction(conditions), one.output, (one.target, other.target)


def _side_by_side(left: A, right: A) -> A:
    return type(left)(
        states=left.states | right.states,
        starts=left.starts | right.starts,
        finals=left.finals | right.finals,
        transitions=(*left.transitions, *right.transitions),
    )
