"""NEXT, LAST, MAX and ANY of a formula: a run ends only if no run that would be preferred ends with it (P1 Theorem 4).

A run is followed by the sets of the others that matter: those with the same marks so far, those that are better, or
all. The paper's A_NEXT and A_LAST order all states into a total preorder T1 … Tk and stand at one state of some Ti;
what decides is Ti and the union of those before it, so these two sets are enough here, as in its A_MAX. Errata E4 and
E5 of the notes do not arise: ends are compared with the event that ends the run, marked or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cerflow.automata.conditions import reguarded
from cerflow.automata.crowd import EMPTY, Crowd, Crowds
from cerflow.automata.fragment import Fragment, track, trimmed
from cerflow.automata.registers import RegisterFile
from cerflow.automata.transducer import Transition, Write
from cerflow.language.formula import Strategy

__all__ = ["preferred"]

_Counts = Callable[[Transition], bool]
_Sources = list[tuple[str, Crowd, _Counts]]

#: The names of the runs that are followed: with the same marks, preferred, all.
_EQUAL, _BETTER, _ALL = "equal", "preferred", "all"


@dataclass(frozen=True)
class _Rivals:
    """The runs beside a run: its equals (of LAST all), and those preferred to it."""

    others: Crowd
    better: Crowd


def preferred(operand: Fragment, strategy: Strategy, registers: RegisterFile) -> Fragment:
    """``NEXT(φ)``, ``LAST(φ)``, ``MAX(φ)``, ``ANY(φ)``: the runs to which no run that ends with them is preferred."""
    crowds = Crowds(operand, registers)
    fragment = crowds.fragment
    going_on = {t.source for t in fragment.transitions}
    name = _ALL if strategy is Strategy.LAST else _EQUAL
    others_counts, better_from_better, better_from_others = _ORDERS[strategy]

    def step(rivals: _Rivals | None, t: Transition) -> Iterator[tuple[_Rivals | None, Transition]]:
        if rivals is None:
            return
        better: _Sources = [
            (_BETTER, rivals.better, better_from_better(t)),
            (name, rivals.others, better_from_others(t)),
        ]
        others: _Sources = [(name, rivals.others, others_counts(t))]
        for situation in crowds.situations(t, [rivals.others, rivals.better]):
            if t.target in fragment.final:
                guards = crowds.none_ends(situation, better)
                if guards is not None:
                    yield None, reguarded(t, [*situation.literals, *guards])
            if t.target not in going_on:
                continue
            ahead, writes = crowds.step(situation, _BETTER, better, rivals.better)
            if t.target in ahead.states:
                continue  # whatever ends this run, ends the preferred one
            beside, more = crowds.step(situation, name, others, rivals.others)
            if strategy is not Strategy.LAST:
                beside = Crowd(beside.states - ahead.states, beside.rows)
            asked = reguarded(t, situation.literals)
            yield _Rivals(beside, ahead), _writing(asked, [*writes, *more])

    start: _Rivals | None = _Rivals(crowds.beginning(), EMPTY)
    return trimmed(track(fragment, start, step, lambda rivals: rivals is None))


def _writing(t: Transition, writes: list[Write]) -> Transition:
    return replace(t, writes=(*t.writes, *writes)) if writes else t


def _every(_: Transition) -> _Counts:
    return lambda u: True


def _none(u: Transition) -> bool:
    return False


def _alike(t: Transition) -> _Counts:
    return lambda u: bool(u.labels) == bool(t.labels)


def _more_marked(t: Transition) -> _Counts:
    """Marked where the run at hand does not mark."""
    return _none if t.labels else lambda u: bool(u.labels)


def _at_least(t: Transition) -> _Counts:
    return (lambda u: bool(u.labels)) if t.labels else lambda u: True


def _same_labels(t: Transition) -> _Counts:
    return lambda u: u.labels == t.labels


def _larger_labels(t: Transition) -> _Counts:
    """Greater in an arbitrary order of label sets in which unmarked is least."""
    return lambda u: (bool(u.labels), sorted(u.labels)) > (bool(t.labels), sorted(t.labels))


#: For each strategy, given the run's own transition: which transitions of the other runs make them go on as others,
#: which keep preferred runs preferred, and which make others preferred.
_ORDERS: dict[Strategy, tuple[Callable[[Transition], _Counts], ...]] = {
    # The first difference decides.
    Strategy.NEXT: (_alike, _every, _more_marked),
    # The last one does: what was before no longer counts.
    Strategy.LAST: (_every, _alike, _more_marked),
    # Marks of a superset are wherever the run has its own.
    Strategy.MAX: (_alike, _at_least, _more_marked),
    # As NEXT, with an order of all outputs.
    Strategy.ANY: (_same_labels, _every, _larger_labels),
}
