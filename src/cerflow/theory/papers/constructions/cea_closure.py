"""I/O-determinisation and complement of automata without memory (P1 Proposition 1, App. C.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from cerflow.base import limits
from cerflow.theory.deciding.budget import Budget
from cerflow.theory.papers.constructions.determinize import steps_by_minterm
from cerflow.theory.papers.constructions.minterms import contradictory
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, Automaton, State, Successor
from cerflow.theory.papers.model.models import CEA, UCEA, FreeA, defined_for

_Subset = frozenset[State]


@defined_for(CEA, UCEA)
def io_determinize(automaton: FreeA, *, most: int | None = None) -> FreeA:
    """The reachable subsets of states: at most one run for every stream and every complex event.

    Raises `UnsupportedQueryError` if more than ``most`` minterms would have to be tried.
    """
    return type(automaton).built(
        [automaton.starts], _subsets(automaton, None, most), lambda subset: not subset.isdisjoint(automaton.finals)
    )


@defined_for(CEA, UCEA)
def io_complement(
    automaton: FreeA, alphabet: Iterable[frozenset[str]] | None = None, *, most: int | None = None
) -> FreeA:
    """The I/O-deterministic automaton of all other complex events: C is in ``⟦A⟧_n`` iff the given automaton lacks it.

    For a CEA, C ranges over the sets of positions that contain n. For a UCEA it ranges over the complex events in which
    every event has one of the label sets of ``alphabet``, by default those of the transitions and ∅. Raises as
    `io_determinize`.
    """
    if isinstance(automaton, CEA):
        outputs = frozenset((SKIPPED, MARKED))
    else:
        outputs = automaton.label_sets if alphabet is None else frozenset(alphabet)
    return type(automaton).built(
        [automaton.starts], _subsets(automaton, outputs, most), lambda subset: subset.isdisjoint(automaton.finals)
    )


@defined_for(CEA, UCEA)
def is_io_deterministic(automaton: Automaton) -> bool:
    """Whether it is certain that at most one run gives each complex event.

    There must be one start state, and the conditions of two transitions from one state with the same output must
    exclude each other (P1 §6). Only a cheap test decides this.
    """
    transitions = [(t.source, t.output, t.guard) for t in automaton.transitions]
    return len(automaton.starts) == 1 and all(
        one[:2] != other[:2] or contradictory((one[2], other[2])) for one, other in combinations(transitions, 2)
    )


def _subsets(
    automaton: FreeA, outputs: frozenset[frozenset[str]] | None, most: int | None
) -> Callable[[_Subset], Iterator[Successor[_Subset]]]:
    """The steps from a subset: to non-empty subsets or, with each of ``outputs``, to any subset."""
    budget = Budget(limits.PAPER_STEPS if most is None else most)

    def successors(subset: _Subset) -> Iterator[Successor[_Subset]]:
        for condition, taken in steps_by_minterm(automaton, subset, budget):
            targets: dict[frozenset[str], set[State]] = {output: set() for output in sorted(outputs or (), key=sorted)}
            for t in taken:
                if outputs is None or t.output in outputs:
                    targets.setdefault(t.output, set()).add(t.target)
            for output, target in targets.items():
                yield frozenset(target), condition, output, SKIPPED

    return successors
