"""Selection strategies of complex event automata (P1 Theorem 4, App. C.3): A_STRICT, A_NXT, A_LAST and A_MAX.

NEXT and LAST follow a run together with all others of the same length, in classes T1 … Tk from the best to the worst: a
total preorder of the states. At an event, the classes are followed piece by piece, by • and by ◦, from the best piece
to the worst. A state belongs to the first piece that reaches it, and a run continues only into its own piece. This
implies the conditions of erratum E5; the printed ones of A_LAST do not suffice. As erratum E4 requires, NEXT makes
final states that only • enters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cerflow.language.automaton import State, sorted_states
from cerflow.theory.papers.constructions.determinize import steps_by_minterm
from cerflow.theory.papers.constructions.windows import steps_allowed
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, Effect, Successor
from cerflow.theory.papers.model.models import CEA, ComplexEventTransition, defined_for
from cerflow.theory.papers.translations.conversions import with_marked_ends

_Set = frozenset[State]
_MARKS = (True, False)


@defined_for(CEA)
def select_strict(automaton: CEA) -> CEA:
    """The complex events that are intervals: first only ◦, in states (q, "◦"), then only •, in states (q, "•")."""

    def step(phase: str, t: ComplexEventTransition) -> Iterator[tuple[str, Effect]]:
        if t.marks or phase == "◦":
            yield "•" if t.marks else "◦", t.effect

    return automaton.tracked("◦", step, lambda phase: phase == "•")


@defined_for(CEA)
def select_next(automaton: CEA, *, most: int | None = None) -> CEA:
    """For each last event the complex event that is greatest by ``≤next``: the first difference decides.

    States are pairs of a total preorder and a state in it. Raises `UnsupportedQueryError` if more than ``most``
    minterms would have to be tried.
    """
    return _best(with_marked_ends(automaton), lambda k: [(i, m) for i in range(k) for m in _MARKS], most)


@defined_for(CEA)
def select_last(automaton: CEA, *, most: int | None = None) -> CEA:
    """For each last event the complex event that is greatest by ``≤last``: the last difference decides.

    States and errors are those of `select_next`.
    """
    return _best(automaton, lambda k: [(i, m) for m in _MARKS for i in range(k)], most)


@defined_for(CEA)
def select_max(automaton: CEA, *, most: int | None = None) -> CEA:
    """For each last event, the complex events that no other contains.

    States are pairs (S, T): S holds the states of runs with the same marks, T of runs with more. Errors are those of
    `select_next`.
    """
    budget = steps_allowed(most)

    def successors(pair: tuple[_Set, _Set]) -> Iterator[Successor[tuple[_Set, _Set]]]:
        same, larger = pair
        for condition, taken in steps_by_minterm(automaton, same | larger, budget):
            with_mark = _reached(taken, larger, True)
            without = with_mark | _reached(taken, larger, False) | _reached(taken, same, True)
            for marks, ahead in ((True, with_mark), (False, without)):
                beside = _reached(taken, same, marks) - ahead
                if beside:
                    yield (beside, ahead), condition, MARKED if marks else SKIPPED, SKIPPED

    def is_final(pair: tuple[_Set, _Set]) -> bool:
        return not pair[0].isdisjoint(automaton.finals) and pair[1].isdisjoint(automaton.finals)

    return CEA.built([(automaton.starts, frozenset[State]())], successors, is_final)


def _reached(taken: Iterable[ComplexEventTransition], states: _Set, marks: bool) -> _Set:
    """``Δ(T, P, m)``, where P allows the transitions ``taken``."""
    return frozenset(t.target for t in taken if t.source in states and t.marks == marks)


_Preorder = tuple[_Set, ...]


def _best(automaton: CEA, pieces: Callable[[int], list[tuple[int, bool]]], most: int | None) -> CEA:
    """A_NXT or A_LAST; ``pieces`` is the order in which k classes are followed, by • (True) or ◦."""
    budget = steps_allowed(most)

    def successors(place: tuple[_Preorder, State]) -> Iterator[Successor[tuple[_Preorder, State]]]:
        classes, state = place
        own = next(i for i, members in enumerate(classes) if state in members)
        for condition, taken in steps_by_minterm(automaton, frozenset[State]().union(*classes), budget):
            following: dict[tuple[int, bool], _Set] = {}
            seen: _Set = frozenset()
            for i, marks in pieces(len(classes)):
                reached = _reached(taken, classes[i], marks) - seen
                seen |= reached
                if reached:
                    following[i, marks] = reached
            preorder = tuple(following.values())
            for marks in _MARKS:
                for target in sorted_states(following.get((own, marks), ())):
                    # One of the runs of a class that meet is enough.
                    origins = [q for q in classes[own] if target in _reached(taken, frozenset((q,)), marks)]
                    if sorted_states(origins)[0] == state:
                        yield (preorder, target), condition, MARKED if marks else SKIPPED, SKIPPED

    def is_final(place: tuple[_Preorder, State]) -> bool:
        classes, state = place
        first = next((members for members in classes if not members.isdisjoint(automaton.finals)), frozenset())
        return state in first & automaton.finals

    starts: list[tuple[_Preorder, State]] = [((automaton.starts,), q) for q in sorted_states(automaton.starts)]
    return CEA.built(starts, successors, is_final)
