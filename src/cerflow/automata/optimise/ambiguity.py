"""Whether two runs can give the same output, so that a match would be reported twice (cf. P1 §6), or one a part of the
output of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product

from cerflow.automata.model.fragment import Fragment
from cerflow.automata.model.transducer import HIDDEN_LABEL, Transducer, Transition, asks_all_rows
from cerflow.base import limits
from cerflow.base.graphs import gathered, visited
from cerflow.language.condition import Condition
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import conjuncts

#: The states of two runs, and what is known of them.
_Place = tuple[int, ...]
#: The place that a search looks for.
_FOUND: _Place = ()


@lru_cache(maxsize=8)  # a transducer is asked about by one part of the engine after the other
def ambiguous(transducer: Transducer) -> bool:
    """False only if on every stream every complex event is given by at most one run.

    The product of the transducer with itself is searched for two different runs with equal labels at every event that
    end together. Where they part, both have the same registers, so atoms may contradict each other there, unless they
    are about all rows of a collection. Later, atoms count as satisfiable.
    """
    leaving = [gathered((t.labels, t) for t in transitions) for transitions in transducer.leaving()]
    register = transducer.registers.__getitem__
    exclusive = {
        t: [*conjuncts(t.test), *(c for c in t.atoms if not asks_all_rows(c, register))] for t in transducer.transitions
    }

    @cache
    def part(a: Transition, b: Transition) -> bool:
        return not contradicts([*exclusive[a], *exclusive[b]])

    def following(place: _Place) -> Iterator[_Place]:
        p, q, differ = place
        for labels, firsts in leaving[p].items():
            for a, b in product(firsts, leaving[q].get(labels, ())):
                if _together(a.test, b.test) and (differ or part(a, b)):
                    low, high = sorted((a.target, b.target))
                    apart = differ or a is not b
                    yield _FOUND if apart and {low, high} <= transducer.final else (low, high, apart)

    return _found(((p, q, p != q) for p, q in product(transducer.initial, repeat=2) if p <= q), following)


@lru_cache(maxsize=4096)  # many transitions have the same test
def _together(one: Condition, other: Condition) -> bool:
    """Whether an event may satisfy two tests."""
    return not contradicts([*conjuncts(one), *conjuncts(other)])


def _found(starts: Iterable[_Place], following: Callable[[_Place], Iterable[_Place]]) -> bool:
    """Whether a search comes to `_FOUND`, or to more than `limits.AMBIGUITY_PAIRS` places."""
    return any(place == _FOUND or k >= limits.AMBIGUITY_PAIRS for k, place in enumerate(visited(starts, following)))


def one_run_each(transducer: Transducer) -> bool:
    """True only if on every stream every set of events is the support of at most one complex event, of one run."""
    mark = frozenset((HIDDEN_LABEL,))
    marked = tuple(replace(t, labels=mark) if t.labels else t for t in transducer.transitions)
    return not ambiguous(replace(transducer, transitions=marked))


def enlarged(automaton: Transducer | Fragment, by: frozenset[str], *, before: bool = False) -> bool:
    """False only if on every stream no complex event is detected together with one that has all its marks and more.

    With labels ``by`` only marks with one of these labels count. With ``before`` it is about larger complex events that
    begin before the other. Atoms count as satisfiable.
    """
    leaving = automaton.leaving()

    #: The states of a run and of a larger one, whether it is larger already, and whether the run may begin to mark.
    def following(place: _Place) -> Iterator[_Place]:
        p, q, larger, may_begin = place
        for t, u in product((t for t in leaving[p] if may_begin or not t.labels), leaving[q]):
            more = _counts(u, by) - _counts(t, by)
            if more >= 0 and _together(t.test, u.test):
                now = larger or more > 0
                both_end = now and {t.target, u.target} <= automaton.final
                yield _FOUND if both_end else (t.target, u.target, now, may_begin or bool(u.labels))

    return _found(((p, q, False, not before) for p, q in product(automaton.initial, repeat=2)), following)


def _counts(t: Transition, by: frozenset[str]) -> int:
    return int(not by.isdisjoint(t.labels) if by else bool(t.labels))
