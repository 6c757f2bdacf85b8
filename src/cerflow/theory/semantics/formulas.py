"""The meaning of formulas: ``⟦φ⟧(i, j)`` for every operator (spec §2), one rule per row of its table.

Each rule below is a generator. It *yields* the question ``⟦ψ⟧(i', j')`` about a part ψ, is sent the answer, and
returns the set of its own complex events. A loop answers each question once, so formulas may be deep.

Every complex event comes with the moment when it is known: at event j, or later where it depends on a deadline
(spec §10). A strategy chooses among those that are known at the same moment. An excluded complex event counts only if
it is known by then.

A label that a filter reads but its operand does not assign stands for one event of an enclosing formula, the binder
(found by `cerflow.logic.analysis.scopes.resolve`). The binder guesses that event: for each position p it evaluates the
formula with the label standing for p, and keeps the complex events that give the label to p alone.

Automata have the meaning that their runs give them (P1 §6, P2 §5.1, 003 Definitions 6 to 8, 004 Definitions 23 to 26).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import product

from cerflow.base.events import ComplexEvent, Event, StreamGiven, as_stream, support
from cerflow.base.graphs import answered, gathered
from cerflow.language import formula as f
from cerflow.language.automaton import AutomatonFormula, Satisfied, State, StreamTest, TypeTest, closed
from cerflow.language.builder.given import FormulaGiven, formula_tree
from cerflow.language.condition import Condition, Constant
from cerflow.language.node import Node, transform
from cerflow.language.sremo import Regular
from cerflow.logic.analysis.scopes import occurrences, of_operands, resolve
from cerflow.theory.semantics.complex_events import Clock, Moment, at_event, deadline_of, kept_by, within
from cerflow.theory.semantics.conditions import check_conditions, names_event, satisfies, satisfies_with_registers
from cerflow.theory.semantics.sremo import SremoDenotation

#: Complex events, each with the moment when it is known.
Known = frozenset[tuple[ComplexEvent, Moment]]
_NOTHING: Known = frozenset()
_NEVER = Moment(math.inf, math.inf)

#: Positions of labels bound further out: ((occurrence of the binder, label), position), sorted.
_Environment = tuple[tuple[tuple[int, str], int], ...]
#: An occurrence of a formula, the two positions, the environment, and how many repetitions came before, if that counts.
_Question = tuple[int, int, int, _Environment, int]
_Rule = Generator[_Question, Known, Known]
#: The question about a part between two positions.
_Asking = Callable[[int, int], _Question]


def formula_matches(formula: FormulaGiven, events: StreamGiven) -> frozenset[tuple[int, ComplexEvent]]:
    """All (n, C) with ``C ∈ ⟦φ⟧_n(S)``, C as pairs of label and position (P2 Table 1; spec §2)."""
    tree, stream = formula_tree(formula), as_stream(events)
    check_conditions(tree)
    denotation = Denotation(tree, stream)
    return frozenset((n, c) for n in range(len(stream)) for c in denotation(0, n))


class Denotation:
    """``⟦φ⟧`` over one stream: call it with i and j; answers are remembered from call to call.

    ``clock`` shows which deadlines have passed; without one the events do.
    """

    def __init__(self, formula: f.Formula, events: Sequence[Event], clock: Clock | None = None) -> None:
        self._events = events
        self._clock = Clock(events) if clock is None else clock
        self._places = occurrences(formula)
        self._root = max(self._places)
        self._known: dict[_Question, Known] = {}
        #: The expressions of SREMO among them.
        self._expressions: dict[int, SremoDenotation] = {}
        outer = resolve(formula).outer
        #: The labels that filters at an occurrence, and those at or below it, need from above, with their binders.
        own = self._own_needs = {k: {(b, label) for label, b in outer.get(k, {}).items()} for k in self._places}
        self._needs: dict[int, set[tuple[int, str]]] = of_operands(
            self._places, lambda k, _, below: {need for need in own[k].union(*below) if need[0] != k}
        )
        #: The labels that each occurrence binds for filters below it, if any.
        self._binds = gathered(set[tuple[int, str]]().union(*own.values()))

    def __call__(self, i: int, j: int) -> frozenset[ComplexEvent]:
        """``⟦φ⟧(i, j)``."""
        return frozenset(c for c, _ in self.known(i, j))

    def known(self, i: int, j: int) -> Known:
        """``⟦φ⟧(i, j)``, every complex event with the moments when it is known."""
        return answered((self._root, i, j, (), 0), self._rule, self._known)

    def _rule(self, question: _Question) -> _Rule:
        """The rule for an occurrence; if it binds labels, for every guess of their positions."""
        k, i, j, environment, before = question
        labels = sorted(self._binds.get(k, ()))
        found: set[tuple[ComplexEvent, Moment]] = set()
        for guess in product(range(i, j + 1), repeat=len(labels)):
            guessed = dict(zip(labels, guess))
            inner = (*environment, *(((k, label), p) for label, p in guessed.items()))
            matches = yield from self._operator(k, i, j, inner, before)
            found.update(m for m in matches if all(_positions(m[0], label) == [p] for label, p in guessed.items()))
        return frozenset(found)

    def _operator(self, k: int, i: int, j: int, environment: _Environment, before: int) -> _Rule:
        formula, parts = self._places[k].formula, self._places[k].operands

        def asking(part: int, before: int = 0) -> _Asking:
            needed = tuple(b for b in environment if b[0] in self._needs[part])
            return lambda start, end: (part, start, end, needed, before)

        # The questions about the operands, of which there are two at most.
        first, second = map(asking, (*parts, k, k)[:2])

        now = at_event(self._events[j])

        def one(label: str) -> Known:
            return frozenset(((frozenset(((label, j),)), now),))

        match formula:
            case f.EventType() | f.AnyEvent():
                name = formula.name if isinstance(formula, f.EventType) else self._name(formula, j)
                return one(name) if names_event(formula, self._events[j]) else _NOTHING
            case f.NotEvent():
                if names_event(formula.event, self._events[j]) and (
                    formula.condition is None
                    or self._satisfied(k, formula.condition, frozenset(((formula.event.name, j),)), environment)
                ):
                    return _NOTHING
                return one(self._name(formula, j))
            case f.As():
                return frozenset((c | {(formula.label, p) for p in support(c)}, m) for c, m in (yield first(i, j)))
            case f.Rename():
                new = {formula.old: formula.new}
                return frozenset((frozenset((new.get(a, a), p) for a, p in c), m) for c, m in (yield first(i, j)))
            case f.Filter():
                matches = yield first(i, j)
                return frozenset(m for m in matches if self._satisfied(k, formula.condition, m[0], environment))
            case f.Disjunction():
                return (yield first(i, j)) | (yield second(i, j))
            case f.Join():
                all_ = isinstance(formula, f.All)
                both = self._all(i, j, first, second) if all_ else _sequence(i, j, first, second, formula.gapless)
                return (yield from both) | (yield from self._with_one_absent(formula, i, j, first, second))
            case f.Repeating():
                # φ{n, m} is φ, if n ≤ 1, and if m > 1 φ followed by φ{n-1, m-1}; φ+ is φ{1,}.
                least, most = formula.times
                once = (yield first(i, j)) if before + 1 >= least else _NOTHING
                if before + 1 == most:
                    return once
                fewer = asking(k, before + (most < math.inf or before + 1 < least))
                return once | (yield from _sequence(i, j, first, fewer, formula.gapless))
            case f.Conjunction():
                left = yield first(i, j)
                right = yield second(i, j)
                return frozenset((c, max(m, n)) for c, m in left for d, n in right if c == d)
            case f.Unless():
                matches = yield first(i, j)
                if not matches:
                    return matches
                excluded = yield from _first(i, j, second)
                return frozenset((c, m) for c, m in matches if m < excluded)
            case f.Without():
                return (yield from self._without((yield first(i, j)), second))
            case f.NotFollowedBy():
                return (yield from self._not_followed(i, j, formula.window, first, second))
            case f.Project():
                labels = formula.labels
                return frozenset((frozenset(p for p in c if p[0] in labels), m) for c, m in (yield first(i, j)))
            case f.Start():
                return frozenset((c, m) for c, m in (yield first(i, j)) if c and min(support(c)) == i)
            case f.Selection():
                matches = yield first(i, j)
                by = [str(reference.label) for reference in formula.by]
                together = {n: frozenset(c for c, m in matches if m == n) for n in {m for _, m in matches}}
                return frozenset((c, n) for n, cs in together.items() for c in kept_by(formula.strategy, cs, by))
            case Regular():
                if k not in self._expressions:
                    self._expressions[k] = SremoDenotation(formula.expression, self._events)
                return frozenset((marks, now) for marks in self._expressions[k].ending(i, j))
            case AutomatonFormula():
                return automaton_matches(formula, self._events, i, j)
            case f.Within():
                return frozenset(m for m in (yield first(i, j)) if within(m[0], formula.window, self._events))
        raise TypeError(f"{type(formula).__name__} is not a formula")

    def _name(self, wanted: f.OfAnyType, j: int) -> str:
        """The label that EVENT and NOT give: the type, unless an event kind has that name."""
        return f.UNNAMED if self._events[j].type in wanted.hidden else self._events[j].type

    def _satisfied(self, k: int, condition: Condition, c: ComplexEvent, environment: _Environment) -> bool:
        bound = {label: p for (binder, label), p in environment if (binder, label) in self._own_needs[k]}

        def events_of(label: str) -> list[Event]:
            positions = [bound[label]] if label in bound else _positions(c, label)
            return [self._events[p] for p in positions]

        return satisfies(condition, events_of)

    def _all(self, i: int, j: int, left: _Asking, right: _Asking) -> _Rule:
        found: Known = _NOTHING
        spans = [(a, b) for a in range(i, j + 1) for b in range(a, j + 1)]
        for (i1, j1), (i2, j2) in product(spans, repeat=2):
            if min(i1, i2) == i and max(j1, j2) == j:
                first = yield left(i1, j1)
                second = yield right(i2, j2)
                found |= _unions(first, second)
        return found

    def _with_one_absent(self, formula: f.Join, i: int, j: int, left: _Asking, right: _Asking) -> _Rule:
        """The complex events of one operand alone, where the other may be absent (spec §10)."""
        found = _NOTHING
        for part, absent in ((left, formula.right), (right, formula.left)):
            if f.can_be_absent(absent):
                found |= yield part(i, j)
        return found

    def _without(self, matches: Known, unwanted: _Asking) -> _Rule:
        kept = set()
        for c, m in matches:
            positions = support(c)
            if positions:
                first = yield from _first(min(positions), max(positions), unwanted)
                if first <= at_event(self._events[max(positions)]):
                    continue
            kept.add((c, m))
        return frozenset(kept)

    def _not_followed(self, i: int, k: int, window: f.Window, followed: _Asking, unwanted: _Asking) -> _Rule:
        """The complex events of φ detected at some j whose deadline lies directly after k, without ψ in between."""
        found: set[tuple[ComplexEvent, Moment]] = set()
        for j in range(i, k + 1):
            matches = yield followed(i, j)
            deadline = deadline_of(window, j, self._events, self._clock) if matches else None
            if deadline is not None and deadline.last == k:
                first = yield from _first(j + 1, k, unwanted)
                if deadline.moment < first:
                    found.update((c, max(m, deadline.moment)) for c, m in matches)
        return frozenset(found)


def _first(i: int, j: int, unwanted: _Asking) -> Generator[_Question, Known, Moment]:
    """The first moment when a match between two positions is known, `_NEVER` if there is none."""
    first = _NEVER
    for start in range(i, j + 1):
        for end in range(start, j + 1):
            first = min([first, *(m for _, m in (yield unwanted(start, end)))])
    return first


def _sequence(i: int, j: int, left: _Asking, right: _Asking, strict: bool) -> _Rule:
    """The unions of two complex events; with ``strict`` of those that end at some k and begin directly after it."""
    found = _NOTHING
    for k in range(i, j):
        first = yield left(i, k)
        if strict:
            first = frozenset((c, m) for c, m in first if c and max(support(c)) == k)
        if first:
            second = yield right(k + 1, j)
            if strict:
                second = frozenset((c, m) for c, m in second if c and min(support(c)) == k + 1)
            found |= _unions(first, second)
    return found


def _unions(first: Known, second: Known) -> Known:
    return frozenset((c1 | c2, max(m1, m2)) for c1, m1 in first for c2, m2 in second)


def _positions(complex_event: ComplexEvent, label: str) -> list[int]:
    return sorted(p for a, p in complex_event if a == label)


#: The positions of the events in the registers that are not empty, by name.
_Contents = frozenset[tuple[str, int]]
#: A state, the registers, the events labelled so far, and whether the last event read was labelled.
_Run = tuple[State, _Contents, ComplexEvent, bool]


def automaton_matches(
    automaton: AutomatonFormula, events: Sequence[Event], i: int, j: int
) -> frozenset[tuple[ComplexEvent, Moment]]:
    """The complex events of the runs that read S[i…j], or a suffix of it, and end in a final state."""
    leaving = automaton.leaving()
    begun: set[_Run] = {(state, frozenset(), frozenset(), False) for state in closed(automaton.starts, leaving)}
    runs = begun
    for position in range(i, j + 1):
        if automaton.anywhere:
            runs = runs | begun
        after: set[_Run] = set()
        for state, contents, labelled, _ in runs:
            held = {register: events[place] for register, place in contents}
            for step in leaving.get(state, ()):
                condition = step.applied
                if condition is None or not _holds(condition, events[position], held):
                    continue
                kept = frozenset(pair for pair in contents if pair[0] not in step.writes)
                written = kept | {(register, position) for register in step.writes}
                given = labelled | {(label, position) for label in step.output}
                after.update((q, written, given, bool(step.output)) for q in closed((step.target,), leaving))
        runs = after
    now = at_event(events[j])
    return frozenset(
        (labelled, now)
        for state, _, labelled, marked in runs
        if state in automaton.finals and (marked or not automaton.ends_marked)
    )


def _holds(condition: Condition, event: Event, held: Mapping[str, Event]) -> bool:
    def visit(current: Node) -> Node:
        match current:
            case TypeTest(name, stream):
                return Constant(event.type == name and (stream is None or event.stream in (None, stream)))
            case StreamTest(stream):
                return Constant(event.stream in (None, stream))
            case Satisfied(inner):
                return Constant(satisfies_with_registers(inner, event, held))
        return current

    simplified = transform(condition, visit)
    return satisfies_with_registers(simplified, event, held)
