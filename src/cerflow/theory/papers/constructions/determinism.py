"""Determinism of automata (004 Definition 36, 003 Definition 10).

Erratum 11.13: two transitions into the same state are different runs, too, if their writes or outputs differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from cerflow.theory.papers.constructions.minterms import contradictory
from cerflow.theory.papers.model.automaton import Automaton, TransitionLike
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, defined_for


@defined_for(CEA, UCEA, SRT, RMA)
def overlaps(automaton: Automaton) -> Iterator[tuple[TransitionLike, TransitionLike]]:
    """Pairs of transitions of one state that have different effects and may not exclude each other.

    An ε-transition overlaps with everything. Exclusion is decided by a cheap test, so a pair may be harmless after all.
    An automaton with one start state and without such pairs is certain to be deterministic.
    """
    for state in automaton.states:
        for one, other in combinations(automaton.leaving(state), 2):
            if one.condition is None or other.condition is None:
                yield one, other
                continue
            same = (one.target, one.writes, one.output) == (other.target, other.writes, other.output)
            if not same and not contradictory((one.condition, other.condition)):
                yield one, other


@defined_for(CEA, UCEA, SRT, RMA)
def is_deterministic(automaton: Automaton) -> bool:
    """Whether it is certain that there is at most one run over every string."""
    return len(automaton.starts) <= 1 and next(overlaps(automaton), None) is None
