"""The meaning of formulas: ``⟦φ⟧(i, j)`` for every operator (spec §2), one rule per row of its table.

Each rule below is a generator. It *yields* the question ``⟦ψ⟧(i', j')`` about a part ψ, is sent the answer, and
returns the set of its own complex events. A loop answers each question once, so formulas may be deep.

A label that a filter reads but its operand does not assign stands for one event of an enclosing formula, the binder
(found by `cerflow.analysis.scopes.resolve`). The binder guesses that event: for each position p it evaluates the
formula with the label standing for p, and keeps the complex events that give the label to p alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from itertools import product

from cerflow.analysis.scopes import resolve
from cerflow.language.condition import Condition
from cerflow.language.formula import (
    All,
    AnyEvent,
    As,
    Conjunction,
    Disjunction,
    EventType,
    Filter,
    Formula,
    Iteration,
    NotEvent,
    Project,
    Rename,
    Repetition,
    Selection,
    Start,
    Strategy,
    StrictIteration,
    StrictSequence,
    Unless,
    Within,
    Without,
    can_be_absent,
)
from cerflow.language.formula import Sequence as SequenceFormula
from cerflow.language.node import walk
from cerflow.language.sremo import Regular
from cerflow.semantics.complex_events import within
from cerflow.semantics.conditions import satisfies
from cerflow.semantics.sremo import SremoDenotation
from cerflow.values.complex_events import ComplexEvent, support
from cerflow.values.events import Event

__all__ = ["ComplexEvent", "Denotation", "denotation", "select", "support", "within"]

Matches = frozenset[ComplexEvent]

#: Positions of labels bound further out: ((occurrence of the binder, label), position), sorted.
_Environment = tuple[tuple[tuple[int, str], int], ...]
#: An occurrence of a formula, the two positions, the environment.
_Question = tuple[int, int, int, _Environment]
_Rule = Generator[_Question, Matches, Matches]


def denotation(formula: Formula, events: Sequence[Event], i: int, j: int) -> Matches:
    """``⟦formula⟧(i, j)`` over ``events``; positions of the complex events are indices into ``events``.

    Raises `QueryError` for a label that no formula binds, and for a duration window without times.
    """
    return Denotation(formula, events)(i, j)


def select(strategy: Strategy, matches: Iterable[ComplexEvent], by: Collection[str] = ()) -> Matches:
    """The complex events that a selection strategy keeps (spec §2, P1 §4 with errata E1 and E2).

    NEXT, LAST and MAX compare supports. With labels ``by`` they compare the positions that carry one of these labels,
    so complex events that agree on those positions stay or go together.
    """
    kept = frozenset(matches)
    if not kept:
        return kept
    supports = {c: frozenset(p for label, p in c if label in by) if by else support(c) for c in kept}
    match strategy:
        case Strategy.ALL:
            return kept
        case Strategy.ANY:
            return frozenset((min(kept, key=sorted),))
        case Strategy.STRICT:
            return frozenset(c for c in kept if not supports[c] or _is_interval(supports[c]))
        case Strategy.NEXT:
            return frozenset(c for c in kept if all(next_at_most(s, supports[c]) for s in supports.values()))
        case Strategy.LAST:
            return frozenset(c for c in kept if all(last_at_most(s, supports[c]) for s in supports.values()))
        case Strategy.MAX:
            return frozenset(c for c in kept if not any(supports[c] < s for s in supports.values()))


def next_at_most(first: frozenset[int], second: frozenset[int]) -> bool:
    """``first ≤next second``: they are equal, or the least position at which they differ is in the second."""
    return first == second or min(first ^ second) in second


def last_at_most(first: frozenset[int], second: frozenset[int]) -> bool:
    """``first ≤last second``: they are equal, or the greatest position at which they differ is in the second."""
    return first == second or max(first ^ second) in second


def _is_interval(positions: frozenset[int]) -> bool:
    return len(positions) == max(positions) - min(positions) + 1


class Denotation:
    """``⟦φ⟧`` over one stream: call it with i and j; answers are remembered from call to call."""

    def __init__(self, formula: Formula, events: Sequence[Event]) -> None:
        self._events = events
        self._formulas = list(walk(formula))
        self._root = len(self._formulas) - 1
        self._known: dict[_Question, Matches] = {}
        #: The expressions of SREMO among them.
        self._expressions: dict[int, SremoDenotation] = {}
        self._below: list[tuple[int, ...]] = []
        open_: list[int] = []
        for k, current in enumerate(self._formulas):
            count = len(current.children)
            parts = open_[len(open_) - count :]
            del open_[len(open_) - count :]
            open_.append(k)
            self._below.append(tuple(p for p in parts if isinstance(self._formulas[p], Formula)))
        self._outer = resolve(formula).outer
        #: The labels that each occurrence binds for filters below it, and the labels that filters at or below it need
        #: from above.
        self._binds: list[tuple[str, ...]] = [()] * len(self._formulas)
        for bindings in self._outer.values():
            for label, binder in bindings.items():
                self._binds[binder] = tuple(sorted({*self._binds[binder], label}))
        self._needs: list[frozenset[tuple[int, str]]] = []
        for k in range(len(self._formulas)):
            needed = {(binder, label) for label, binder in self._outer.get(k, {}).items()}
            needed.update(*(self._needs[part] for part in self._below[k]))
            self._needs.append(frozenset(n for n in needed if n[0] != k))
        self._own_needs = [
            frozenset((binder, label) for label, binder in self._outer.get(k, {}).items())
            for k in range(len(self._formulas))
        ]

    def __call__(self, i: int, j: int) -> Matches:
        """``⟦φ⟧(i, j)``."""
        question: _Question = (self._root, i, j, ())
        stack: list[tuple[_Question, _Rule]] = [(question, self._rule(question))]
        answer: Matches | None = None
        while stack:
            question, rule = stack[-1]
            try:
                asked = next(rule) if answer is None else rule.send(answer)
            except StopIteration as end:
                answer = self._known[question] = end.value
                stack.pop()
                continue
            answer = self._known.get(asked)
            if answer is None:
                stack.append((asked, self._rule(asked)))
        assert answer is not None
        return answer

    def _ask(self, k: int, i: int, j: int, environment: _Environment) -> _Question:
        return (k, i, j, tuple(b for b in environment if b[0] in self._needs[k]))

    def _rule(self, question: _Question) -> _Rule:
        """The rule for an occurrence; if it binds labels, for every guess of their positions."""
        k, i, j, environment = question
        labels = self._binds[k]
        if not labels:
            return self._operator(k, i, j, environment)
        return self._binding(k, i, j, environment, labels)

    def _binding(self, k: int, i: int, j: int, environment: _Environment, labels: tuple[str, ...]) -> _Rule:
        found: set[ComplexEvent] = set()
        for guess in product(range(i, j + 1), repeat=len(labels)):
            guessed = dict(zip(labels, guess))
            inner = (*environment, *(((k, label), p) for label, p in guessed.items()))
            matches = yield from self._operator(k, i, j, inner)
            found.update(c for c in matches if all(_positions(c, label) == [p] for label, p in guessed.items()))
        return frozenset(found)

    def _operator(self, k: int, i: int, j: int, environment: _Environment) -> _Rule:
        formula, parts = self._formulas[k], self._below[k]

        def ask(part: int, start: int, end: int) -> _Question:
            return self._ask(part, start, end, environment)

        match formula:
            case EventType():
                return frozenset((frozenset(((formula.name, j),)),)) if self._is(formula, j) else frozenset()
            case AnyEvent():
                return frozenset((frozenset(((self._events[j].type, j),)),))
            case NotEvent():
                if self._is(formula.event, j) and (
                    formula.condition is None
                    or self._satisfied(k, formula.condition, frozenset(((formula.event.name, j),)), environment)
                ):
                    return frozenset()
                return frozenset((frozenset(((self._events[j].type, j),)),))
            case As():
                matches = yield ask(parts[0], i, j)
                return frozenset(c | {(formula.label, p) for p in support(c)} for c in matches)
            case Rename():
                matches = yield ask(parts[0], i, j)
                renamed = {formula.old: formula.new}
                return frozenset(frozenset((renamed.get(a, a), p) for a, p in c) for c in matches)
            case Filter():
                matches = yield ask(parts[0], i, j)
                return frozenset(c for c in matches if self._satisfied(k, formula.condition, c, environment))
            case Disjunction():
                left = yield ask(parts[0], i, j)
                right = yield ask(parts[1], i, j)
                return left | right
            case SequenceFormula():
                both = yield from _sequence(i, j, lambda n: ask(parts[0], i, n), lambda n: ask(parts[1], n, j))
                return both | (yield from self._with_one_absent(parts, i, j, ask))
            case Iteration():
                once = yield ask(parts[0], i, j)
                more = yield from _sequence(i, j, lambda n: ask(parts[0], i, n), lambda n: ask(k, n, j))
                return once | more
            case StrictSequence():
                both = yield from _sequence(
                    i, j, lambda n: ask(parts[0], i, n), lambda n: ask(parts[1], n, j), strict=True
                )
                return both | (yield from self._with_one_absent(parts, i, j, ask))
            case StrictIteration():
                once = yield ask(parts[0], i, j)
                more = yield from _sequence(i, j, lambda n: ask(parts[0], i, n), lambda n: ask(k, n, j), strict=True)
                return once | more
            case Repetition():
                return (yield from _repeated(formula, i, j, lambda a, b: ask(parts[0], a, b)))
            case Conjunction():
                left = yield ask(parts[0], i, j)
                right = yield ask(parts[1], i, j)
                return left & right
            case All():
                both = yield from self._all(i, j, lambda a, b: ask(parts[0], a, b), lambda a, b: ask(parts[1], a, b))
                return both | (yield from self._with_one_absent(parts, i, j, ask))
            case Unless():
                matches = yield ask(parts[0], i, j)
                for start in range(i, j + 1):
                    for end in range(start, j + 1):
                        if matches and (yield ask(parts[1], start, end)):
                            matches = frozenset()
                return matches
            case Without():
                matches = yield ask(parts[0], i, j)
                return (yield from self._without(matches, lambda a, b: ask(parts[1], a, b)))
            case Project():
                matches = yield ask(parts[0], i, j)
                return frozenset(frozenset(pair for pair in c if pair[0] in formula.labels) for c in matches)
            case Start():
                matches = yield ask(parts[0], i, j)
                return frozenset(c for c in matches if c and min(support(c)) == i)
            case Selection():
                matches = yield ask(parts[0], i, j)
                return select(formula.strategy, matches, [str(reference.label) for reference in formula.by])
            case Regular():
                return self._regular(k, formula, i, j)
            case Within():
                matches = yield ask(parts[0], i, j)
                return frozenset(c for c in matches if within(c, formula.window, self._events))
        raise TypeError(f"{type(formula).__name__} is no formula")

    def _regular(self, k: int, formula: Regular, i: int, j: int) -> Matches:
        if k not in self._expressions:
            self._expressions[k] = SremoDenotation(formula.expression, self._events)
        denotation = self._expressions[k]
        return frozenset(
            marks for m in range(i, j + 1) for marks, _ in denotation(m, j + 1) if marks and max(support(marks)) == j
        )

    def _is(self, wanted: EventType, j: int) -> bool:
        event = self._events[j]
        return event.type == wanted.name and (wanted.stream is None or event.stream in (None, wanted.stream))

    def _satisfied(self, k: int, condition: Condition, c: ComplexEvent, environment: _Environment) -> bool:
        bound = {label: p for (binder, label), p in environment if (binder, label) in self._own_needs[k]}

        def events_of(label: str) -> list[Event]:
            positions = [bound[label]] if label in bound else _positions(c, label)
            return [self._events[p] for p in positions]

        return satisfies(condition, events_of)

    def _all(
        self, i: int, j: int, left: Callable[[int, int], _Question], right: Callable[[int, int], _Question]
    ) -> _Rule:
        found: set[ComplexEvent] = set()
        spans = [(a, b) for a in range(i, j + 1) for b in range(a, j + 1)]
        for (i1, j1), (i2, j2) in product(spans, repeat=2):
            if min(i1, i2) == i and max(j1, j2) == j:
                first = yield left(i1, j1)
                second = yield right(i2, j2)
                found.update(c1 | c2 for c1 in first for c2 in second)
        return frozenset(found)

    def _with_one_absent(
        self, parts: Sequence[int], i: int, j: int, ask: Callable[[int, int, int], _Question]
    ) -> _Rule:
        """The complex events of one operand alone, where the other may be absent (spec §10)."""
        found: Matches = frozenset()
        for part, other in (parts, parts[::-1]):
            absent = self._formulas[other]
            if isinstance(absent, Formula) and can_be_absent(absent):
                found |= yield ask(part, i, j)
        return found

    def _without(self, matches: Matches, unwanted: Callable[[int, int], _Question]) -> _Rule:
        kept: set[ComplexEvent] = set()
        for c in matches:
            positions = support(c)
            free = True
            if positions:
                for start in range(min(positions), max(positions) + 1):
                    for end in range(start, max(positions) + 1):
                        if free and (yield unwanted(start, end)):
                            free = False
            if free:
                kept.add(c)
        return frozenset(kept)


def _sequence(
    i: int, j: int, left: Callable[[int], _Question], right: Callable[[int], _Question], *, strict: bool = False
) -> _Rule:
    found: Matches = frozenset()
    for k in range(i, j):
        first = yield left(k)
        if first:
            second = yield right(k + 1)
            found |= _joined(first, second, k, strict)
    return found


def _joined(first: Matches, second: Matches, k: int, strict: bool) -> Matches:
    """The unions of two complex events; with ``strict`` of those that end at k and begin directly behind it."""
    if strict:
        first = frozenset(c for c in first if c and max(support(c)) == k)
        second = frozenset(c for c in second if c and min(support(c)) == k + 1)
    return frozenset(c1 | c2 for c1 in first for c2 in second)


def _repeated(formula: Repetition, i: int, j: int, once: Callable[[int, int], _Question]) -> _Rule:
    """The union of φ{n} for all n between the bounds; φ{n} is φ{n-1} followed by φ.

    Every repetition reads an event at least, so there are no more of them than positions.
    """
    found: Matches = frozenset()
    so_often: dict[int, Matches] = {}
    for n in range(1, j - i + 2):
        longer: dict[int, Matches] = {}
        for end in range(i, j + 1):
            matches = (yield once(i, end)) if n == 1 else frozenset()
            for k, before in so_often.items():
                if before and k < end:
                    matches |= _joined(before, (yield once(k + 1, end)), k, formula.strict)
            longer[end] = matches
        so_often = longer
        if formula.least <= n and (formula.most is None or n <= formula.most):
            found |= so_often[j]
    return found


def _positions(complex_event: ComplexEvent, label: str) -> list[int]:
    return sorted(p for a, p in complex_event if a == label)
