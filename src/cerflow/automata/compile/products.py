"""Two formulas at once: AND and ALL as products (P2 §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product

from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.automata.model.fragment import Fragment, explored
from cerflow.automata.model.transducer import Transition
from cerflow.logic.conditions.cases import contradicts
from cerflow.logic.conditions.connectives import conjunction, conjuncts

#: Joins the labels of two transitions; None if they are incompatible.
_Join = Callable[[frozenset[str], frozenset[str]], frozenset[str] | None]


def both(left: Fragment, right: Fragment) -> Fragment:
    """``φ AND ψ``: the complex events of both, so both give every event the same labels."""
    starts = [(p, q) for p in left.initial for q in right.initial]
    return _product(
        left, right, starts, lambda a, b: a if a == b else None, lambda p, q: p in left.final and q in right.final
    )


def both_in_time(left: Fragment, right: Fragment) -> Fragment:
    """The same where an operand may end with a tick: the other one may have ended before, with no event in between."""
    (first, *over), (second, *done) = _held(left), _held(right)

    def ends(p: int, q: int) -> bool:
        return (p == over[0] and q in done) or (q == done[0] and p in over)

    starts = [(p, q) for p in left.initial for q in right.initial]
    return _product(first, second, starts, lambda a, b: a if a == b else None, ends)


def _held(operand: Fragment) -> tuple[Fragment, int, int]:
    """A fragment, its state for a run that has just ended, and that for one that did, but for ticks and pauses."""
    endings = list(operand.endings())
    ended, waits = operand.add_state(), operand.add_state()
    added = [t.moved(t.source, ended) for t in endings]
    added += [Transition(q, waits, thing) for q in (ended, waits) for thing in (TICK, PAUSE)]
    return operand.with_transitions([*operand.transitions, *added]), ended, waits


def product_all(left: Fragment, right: Fragment) -> Fragment:
    """``φ ALL ψ``: unions of a complex event of each; one of them begins at the start, one ends at the end.

    Each side may wait before it begins, and rest once it is done.
    """
    (first, waits, done), (second, others_wait, rests) = _patient(left), _patient(right)

    def ends(p: int, q: int) -> bool:
        one, other = p in first.final, q in second.final
        return (one and (other or q == rests)) or (p == done and other)

    pairs = product(first.initial | waits, second.initial | others_wait)
    starts = [(p, q) for p, q in pairs if not (p in waits and q in others_wait)]
    return _product(first, second, starts, lambda a, b: a | b, ends)


def _patient(operand: Fragment) -> tuple[Fragment, set[int], int]:
    """A fragment, its states to wait in before it begins, and one to rest in once it is done.

    An initial state that can skip any event is its own waiting state.
    """
    beginning, ending = operand.beginnings(), list(operand.endings())
    skipping = {t.source for t in operand.transitions if t.skips}
    done = operand.add_state()
    added = [Transition(done, done), *(replace(t, target=done) for t in ending)]
    waits: set[int] = set()
    if not operand.initial <= skipping:
        waiting = operand.add_state()
        waits.add(waiting)
        added.append(Transition(waiting, waiting))
        added += [replace(t, source=waiting) for t in beginning]
        # Transitions that begin and end with the same event.
        added += [replace(t, source=waiting, target=done) for t in beginning if t.target in operand.final]
    return operand.with_transitions([*operand.transitions, *added]), waits, done


def _product(
    left: Fragment, right: Fragment, starts: Iterable[tuple[int, int]], join: _Join, final: Callable[[int, int], bool]
) -> Fragment:
    """Reachable pairs of states, with the transitions that read the same event."""
    one, other = left.leaving(), right.leaving()

    def following(pair: tuple[int, int]) -> Iterator[tuple[tuple[int, int], Transition]]:
        for a, b in product(one[pair[0]], other[pair[1]]):
            labels = join(a.labels, b.labels)
            tests = conjuncts(a.test) + conjuncts(b.test)
            if labels is not None and not contradicts(tests):
                atoms = tuple(dict.fromkeys((*a.atoms, *b.atoms)))
                yield (a.target, b.target), Transition(0, 0, conjunction(tests), atoms, labels, a.writes + b.writes)

    return explored(sorted(starts), following, lambda pair: final(*pair)).trimmed()
