"""Transducers whose registers hold finitely many values, and their I/O-determinisation.

Memory can become part of the state if only truth values of conditions on one event are stored, and the starts of
windows of events, which lie at most one window back. Every other value may be one of infinitely many. Then states
become sets of configurations, with one run for every output (P1 Proposition 1 and App. C.1, P2 §4.2): from a set there
is one transition for every minterm of the tests and every set of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product

from cerflow.automata.compile.windows import window_in_register
from cerflow.automata.model.fragment import explored
from cerflow.automata.model.runs import Content, Memory, choices, kept
from cerflow.automata.model.transducer import TYPE_LABEL, Transducer, Transition, Write, registers_read
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Value
from cerflow.language import condition as c
from cerflow.language.formula import CountWindow
from cerflow.language.node import N, Node, fold, rebuild, transform, walk, walk_into, with_children
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import FALSE, TRUE, conjunction, conjuncts, constant, normal, not_true
from cerflow.logic.conditions.evaluate import constant_value
from cerflow.logic.conditions.guards import InWindow, Measure, NoRow, Satisfied, Stored
from cerflow.theory.deciding.minterms import EventMinterms
from cerflow.theory.deciding.witnesses import Budget, event_spaces_of, expressions_of

Labels = frozenset[str]
#: A state, and what the registers hold.
Configuration = tuple[int, Memory]
#: A condition on the event, its labels, and the next configuration.
Move = tuple[c.Condition, Labels, Configuration]
Subset = frozenset[Configuration]

_Row = tuple[Value, ...]


class UnboundedMemoryError(UnsupportedQueryError):
    """Registers may hold infinitely many values."""


class _EventsAgo(int):
    """Where a window of events began: how many events ago, less than zero."""


class FiniteMemory:
    """A transducer, determinised as far as it is asked for.

    Raises `UnboundedMemoryError` if it stores other values than truth values and starts of windows of events.
    """

    def __init__(self, transducer: Transducer, budget: Budget) -> None:
        transducer = window_in_register(transducer)
        windows = _windows_of_events(transducer)
        _refuse_unbounded(transducer)
        self.transducer = transducer
        self._budget = budget
        self._leaving = transducer.leaving()
        self._live = transducer.live()
        #: Starts that are longer ago are all alike.
        self._oldest = max((window.events for window in windows), default=0)
        empty: Memory = (None,) * len(transducer.registers)
        self.initial: Subset = frozenset((state, empty) for state in transducer.initial)
        #: The transitions that may be taken in a configuration, each once for every combination of the truth values
        #: that it stores.
        self.moves = cache(self._moves)
        self._place = cache(_place)

    def accepts(self, subset: Iterable[Configuration]) -> bool:
        """Whether a run that ends there detects its complex event."""
        return any(configuration[0] in self.transducer.final for configuration in subset)

    def tests(self, subset: Subset) -> list[c.Condition]:
        """The tests that decide what follows, each once, in a fixed order."""
        ordered = sorted(subset, key=self._place)
        return list(dict.fromkeys(test for configuration in ordered for test, _, _ in self.moves(configuration)))

    def step(self, subset: Subset, holds: frozenset[c.Condition], type: str | None = None) -> dict[Labels, Subset]:
        """The next subsets after an event on which these tests hold, by the labels that it gets.

        ``type``, if given, takes the place of `TYPE_LABEL`.
        """
        found: dict[Labels, set[Configuration]] = {}
        for configuration in sorted(subset, key=self._place):
            moves = self.moves(configuration)
            self._budget.spend(len(moves))
            for test, labels, after in moves:
                if test in holds:
                    if type is not None and TYPE_LABEL in labels:
                        labels = labels - {TYPE_LABEL} | {type}
                    found.setdefault(labels, set()).add(after)
        return {labels: frozenset(after) for labels, after in found.items()}

    def _moves(self, configuration: Configuration) -> tuple[Move, ...]:
        state, memory = configuration
        aged = tuple(map(self._older, memory))
        return tuple(dict.fromkeys(move for t in self._leaving[state] for move in self._taken(t, aged)))

    def _older(self, content: Content) -> Content:
        """The content of a register one event later."""
        if isinstance(content, frozenset):
            return frozenset(map(self._older_row, content))
        return None if content is None else self._older_row(content)

    def _older_row(self, row: _Row) -> _Row:
        return tuple(_EventsAgo(max(v - 1, -self._oldest)) if isinstance(v, _EventsAgo) else v for v in row)

    def _taken(self, t: Transition, memory: Memory) -> Iterator[Move]:
        tests = conjuncts(t.test)
        for atom in t.atoms:
            for rows in choices(sorted(registers_read([atom])), memory):
                tests += conjuncts(normal(_read(atom, rows)))
        if FALSE in tests or constant(None) in tests:
            return
        live = self._live[t.target]
        for decided, after in self._written(t, memory):
            left = tuple(content if register in live else None for register, content in enumerate(after))
            yield conjunction([*tests, *decided]), t.labels, (t.target, left)

    def _written(self, t: Transition, memory: Memory) -> Iterator[tuple[list[c.Condition], Memory]]:
        """The memory after a transition, for all outcomes of the conditions whose truth values are stored."""
        rows = [list(self._rows(write, memory)) for write in t.writes]
        parts = (part for choice in rows for row, where in choice for part in (*row, *where))
        undecided = dict.fromkeys(one for part in parts for one in _undecided(part))
        self._budget.spend(3 ** len(undecided))
        for outcome in product((True, False, None), repeat=len(undecided)):
            truths = dict(zip(undecided, outcome))
            after = list(memory)
            for write, choice in zip(t.writes, rows):
                keeps = self.transducer.registers[write.register].keeps
                former = None if write.fresh else after[write.register]
                values = [
                    tuple(_value(e, truths) for e in row)
                    for row, where in choice
                    if all(one == TRUE or truths.get(one) for one in where)
                ]
                after[write.register] = kept(keeps, former, values)
            yield [_comes_out(one, truth) for one, truth in truths.items()], tuple(after)

    def _rows(self, write: Write, memory: Memory) -> Iterator[tuple[list[c.Expression], list[c.Condition]]]:
        """The rows that are written, as far as memory decides, with their conditions on the event."""
        for rows in choices(sorted(registers_read([*write.row, *write.where])), memory):
            where = [normal(_read(condition, rows)) for condition in write.where]
            if FALSE not in where:
                yield [_read(expression, rows) for expression in write.row], where


def _place(configuration: Configuration) -> tuple[int, str]:
    """A sort key for configurations that does not change from process to process."""
    state, memory = configuration
    return state, str([sorted(map(repr, c)) if isinstance(c, frozenset) else repr(c) for c in memory])


def determinize(transducer: Transducer, *, steps: int | None = None) -> Transducer:
    """The I/O-deterministic transducer with the same matches; the contents of registers become part of the state.

    Tests of a state's transitions with equal labels exclude one another. There may be exponentially many states.
    Raises `UnsupportedQueryError` if more than ``steps`` are needed, or if there are registers.
    """
    budget = Budget(steps)
    runs = FiniteMemory(transducer, budget)
    spaces = event_spaces_of(expressions_of(transducer))
    algebras = [EventMinterms(event_space, transducer.mentioned, budget) for event_space in spaces]

    def following(subset: Subset) -> Iterator[tuple[Subset, Transition]]:
        tests = runs.tests(subset)
        for holds in dict.fromkeys(minterm.holds for algebra in algebras for minterm in algebra.minterms((*tests,))):
            guard = conjunction([t if t in holds else not_true(t) for t in tests])
            for labels, target in runs.step(subset, holds).items():
                budget.spend()
                yield target, Transition(0, 0, guard, labels=labels)

    # The budget alone says how many states there may be.
    whole = explored([runs.initial], following, runs.accepts, lambda _, result: result.add_state())
    return whole.finished((), mentioned=transducer.mentioned)


# -- conditions on memory and event -------------------------------------------------------------------------------


def _read(part: N, rows: dict[int, _Row | None]) -> N:
    """A condition or expression for one choice of rows; it reads only the current event."""

    def known(current: Node) -> Node:
        match current:
            case Stored():
                row = rows[current.register]
                return c.Literal(None if row is None else row[current.field])  # type: ignore[arg-type]
            case NoRow():
                return FALSE
            case Measure():
                return c.Literal(_EventsAgo(0))
            case InWindow(c.Literal(None), CountWindow()):
                return constant(None)
            case InWindow(c.Literal(_EventsAgo() as start), CountWindow(events)):
                return c.Constant(-start < events)
        return current

    return transform(part, known)


def _undecided(part: Node) -> Iterator[c.Condition]:
    """The conditions on the event that decide a value written, or whether it is."""
    if not isinstance(part, c.Constant):
        found = walk_into(part, lambda current: not isinstance(current, c.Condition))
        yield from (current for current in found if isinstance(current, c.Condition))


def _comes_out(condition: c.Condition, truth: bool | None) -> c.Condition:
    """The test that a condition has this truth value."""
    negated = c.Not(condition)
    if truth is None:
        return c.And(c.Not(Satisfied(condition)), c.Not(Satisfied(negated)))
    return condition if truth else negated


def _value(expression: c.Expression, truths: dict[c.Condition, bool | None]) -> Value:
    def visit(current: Node, children: Sequence[Node]) -> Node:
        # A condition may hold truth values itself: the whole is looked up, as it was found.
        if isinstance(current, c.Condition) and current in truths:
            return constant(truths[current])
        return with_children(current, children)

    return constant_value(rebuild(expression, visit))


# -- what registers hold ------------------------------------------------------------------------------------------


def _windows_of_events(transducer: Transducer) -> list[CountWindow]:
    """The windows of a transducer; raises `UnboundedMemoryError` for one that is not of events."""
    found: list[CountWindow] = []
    for window in (n.window for tree in expressions_of(transducer) for n in walk(tree) if isinstance(n, InWindow)):
        if not isinstance(window, CountWindow):
            raise UnboundedMemoryError(
                f"a formula with the window {show(window)} cannot be compared with another one",
                span=window.span,
                hint="Only windows of events can: WITHIN n EVENTS.",
            )
        found.append(window)
    return found


#: Expressions that may be stored besides truth values and measures: they have finitely many values.
_FINITE = (Stored, c.Literal, c.If, c.Comparison, c.And, c.Or, c.Not, Satisfied, c.Constant, c.IsNull)


def _refuse_unbounded(transducer: Transducer) -> None:
    for write in (write for t in transducer.transitions for write in t.writes):
        if not all(fold(e, _is_finite) for e in write.row):
            raise UnboundedMemoryError(
                "the formula has to remember values of earlier events "
                f"({transducer.registers[write.register].meaning}), of which there may be any number",
                hint="Only formulas whose conditions read one event at a time can be compared.",
            )


def _is_finite(current: Node, below: Sequence[bool]) -> bool:
    """Whether an expression that is stored has finitely many values."""
    if isinstance(current, Measure):
        return isinstance(current.window, CountWindow)
    return isinstance(current, c.TruthValue) or (isinstance(current, _FINITE) and all(below))
