"""I/O-determinisation: one run for every output (P1 Proposition 1 and App. C.1, P2 §4.2), and what rests on it.

States become sets of states; from a set there is one way on for every letter of the events and every set of labels.
Registers cannot be carried along, with one exception: the start of a window of events is at most as many events ago
as the window is wide, so how long ago it was becomes part of the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cerflow.automata.budget import Budget
from cerflow.automata.guards import InWindow, Measure, Satisfied, Stored, TypeTest, conjunction, conjuncts, is_local
from cerflow.automata.minterms import Minterms
from cerflow.automata.transducer import TYPE_LABEL, Transducer, Transition
from cerflow.automata.worlds import worlds_of
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import Comparison, Condition, Constant, Literal, Not, Operator
from cerflow.language.formula import CountWindow, Window
from cerflow.language.node import Node, transform, walk
from cerflow.language.printer import show

__all__ = [
    "STEPS",
    "Configuration",
    "Labels",
    "Move",
    "Subset",
    "Subsets",
    "complement",
    "determinize",
    "is_deterministic",
]

#: Steps that a construction may take unless told otherwise.
STEPS = 2_000_000

Labels = frozenset[str]
#: A state, and for every register (and the window of the whole) how many events ago it was written.
Configuration = tuple[int, tuple[int | None, ...]]
Subset = frozenset[Configuration]
#: What must hold of the event, its labels, and what is reached.
Move = tuple[Condition, Labels, Configuration]

_NEVER = Comparison(Operator.EQ, Literal(None), Literal(None))


class Subsets:
    """A transducer, determinised as far as it is asked for.

    Raises `UnsupportedQueryError` if it remembers more of the past than starts of windows of events.
    """

    def __init__(self, transducer: Transducer, budget: Budget) -> None:
        _refuse(transducer)
        self.transducer = transducer
        self._budget = budget
        self._leaving: list[list[Transition]] = [[] for _ in range(transducer.states)]
        for t in transducer.transitions:
            self._leaving[t.source].append(t)
        self._live = transducer.live()
        self._window = transducer.window.events if isinstance(transducer.window, CountWindow) else None
        windows = {n.window for t in transducer.transitions for a in t.atoms for n in _windows(a)}
        sizes = [w.events for w in windows if isinstance(w, CountWindow)]
        #: All longer ages are alike.
        self._oldest = max((*sizes, self._window or 0))
        self._moves: dict[Configuration, tuple[Move, ...]] = {}
        none = (None,) * (len(transducer.registers) + 1)
        self.initial: Subset = frozenset((state, none) for state in transducer.initial)

    def accepts(self, subset: Iterable[Configuration]) -> bool:
        """Whether a run that ends there detects its complex event."""
        return any(state in self.transducer.final for state, _ in subset)

    def tests(self, subset: Subset) -> list[Condition]:
        """The tests that decide what follows, each once, in a fixed order."""
        return list(dict.fromkeys(test for c in sorted(subset, key=_order) for test, _, _ in self.moves(c)))

    def step(self, subset: Subset, holds: frozenset[Condition], type: str | None = None) -> dict[Labels, Subset]:
        """What follows on an event of which these tests hold, by the labels that it gets.

        With the ``type`` of the event it takes the place of `TYPE_LABEL`.
        """
        found: dict[Labels, set[Configuration]] = {}
        for configuration in subset:
            moves = self.moves(configuration)
            self._budget.spend(len(moves))
            for test, labels, after in moves:
                if test in holds:
                    if type is not None and TYPE_LABEL in labels:
                        labels = labels - {TYPE_LABEL} | {type}
                    found.setdefault(labels, set()).add(after)
        return {labels: frozenset(after) for labels, after in found.items()}

    def moves(self, configuration: Configuration) -> tuple[Move, ...]:
        """The transitions that may be taken, as far as the windows allow them."""
        known = self._moves.get(configuration)
        if known is None:
            state, ages = configuration
            older = tuple(None if age is None else min(age + 1, self._oldest) for age in ages)
            moves = (self._move(t, older) for t in self._leaving[state])
            known = self._moves[configuration] = tuple(move for move in moves if move is not None)
        return known

    def _move(self, t: Transition, ages: tuple[int | None, ...]) -> Move | None:
        tests = conjuncts(t.test)
        for atom in t.atoms:
            tests += conjuncts(_at(atom, ages))
        if _NEVER in tests or Constant(False) in tests:
            return None
        after = list(ages)
        if t.labels and self._window is not None:
            begun = ages[-1]
            if begun is not None and begun >= self._window:
                return None
            after[-1] = 0 if begun is None else begun
        for write in t.writes:
            value = write.row[0]
            after[write.register] = ages[value.register] if isinstance(value, Stored) else 0
        live = self._live[t.target]
        kept = [age if register in live else None for register, age in enumerate(after[:-1])]
        return conjunction(tests), t.labels, (t.target, (*kept, after[-1]))


def _order(configuration: Configuration) -> tuple[int, tuple[int, ...]]:
    state, ages = configuration
    return state, tuple(-1 if age is None else age for age in ages)


def determinize(transducer: Transducer, *, steps: int = STEPS) -> Transducer:
    """The I/O-deterministic transducer with the same matches; windows of events become states.

    Tests of a state's transitions with equal labels exclude one another. There may be exponentially many states.
    Raises `UnsupportedQueryError` if more than ``steps`` are needed, or if there are registers.
    """
    return _explored(transducer, None, steps)


def complement(transducer: Transducer, alphabet: Iterable[Labels] | None = None, *, steps: int = STEPS) -> Transducer:
    """The I/O-deterministic transducer of all matches (n, C) that are none of this one's (P1 Proposition 1).

    C ranges over the complex events in which every event has one of the label sets of ``alphabet``; those of the
    transitions, and none, unless given. Raises as `determinize` does.
    """
    if alphabet is None:
        alphabet = {frozenset[str](), *(t.labels for t in transducer.transitions)}
    return _explored(transducer, sorted(alphabet, key=sorted), steps)


def is_deterministic(transducer: Transducer, *, steps: int = STEPS) -> bool:
    """Whether at most one run gives each output: one initial state, no two ways on with the same labels (P1 §6).

    Where it is not known whether two tests can hold together, the answer is False.
    """
    spaces = _spaces(transducer, Budget(steps))
    seen: dict[tuple[int, Labels], list[Condition]] = {}
    for t in transducer.transitions:
        others = seen.setdefault((t.source, t.labels), [])
        if any(space.satisfiable((t.test, other)) is not False for other in others for space in spaces):
            return False
        others.append(t.test)
    return len(transducer.initial) <= 1


def _spaces(transducer: Transducer, budget: Budget) -> list[Minterms]:
    tests = [t.test for t in transducer.transitions]
    return [Minterms(world, transducer.mentioned, budget) for world in worlds_of(tests)]


def _explored(transducer: Transducer, alphabet: Sequence[Labels] | None, steps: int) -> Transducer:
    """All reachable sets of states as states, with ``alphabet`` also the empty set, and what was not final is final."""
    budget = Budget(steps)
    subsets = Subsets(transducer, budget)
    spaces = _spaces(transducer, budget)
    numbers: dict[Subset, int] = {subsets.initial: 0}
    pending = [subsets.initial]
    transitions: list[Transition] = []
    nothing: Subset = frozenset()
    while pending:
        subset = pending.pop()
        tests = subsets.tests(subset)
        for holds in dict.fromkeys(letter.holds for space in spaces for letter in space.letters(tests)):
            after = subsets.step(subset, holds)
            if alphabet is not None:
                after = {labels: after.get(labels, nothing) for labels in alphabet}
            guard = conjunction([t if t in holds else _refused(t) for t in tests])
            for labels, target in after.items():
                budget.spend()
                if target not in numbers:
                    numbers[target] = len(numbers)
                    pending.append(target)
                transitions.append(Transition(numbers[subset], numbers[target], guard, labels=labels))
    wanted = alphabet is None
    final = frozenset(number for subset, number in numbers.items() if subsets.accepts(subset) is wanted)
    return Transducer(len(numbers), frozenset((0,)), final, tuple(transitions), mentioned=transducer.mentioned)


def _refused(test: Condition) -> Condition:
    return Not(test if isinstance(test, TypeTest) else Satisfied(test))


# -- windows ------------------------------------------------------------------------------------------------------


def _windows(atom: Node) -> list[InWindow]:
    return [n for n in walk(atom) if isinstance(n, InWindow)]


def _at(atom: Condition, ages: tuple[int | None, ...]) -> Condition:
    """An atom at a time at which it is known how long ago the windows began."""

    def visit(current: Node) -> Node:
        if not isinstance(current, InWindow):
            return current
        age = ages[current.start.register]
        assert isinstance(current.window, CountWindow)
        return _NEVER if age is None else Constant(age < current.window.events)

    whole = transform(atom, visit)
    assert isinstance(whole, Condition)
    return whole


def _refuse(transducer: Transducer) -> None:
    if transducer.window is not None:
        _refuse_window(transducer.window)
    for t in transducer.transitions:
        for window in (n.window for atom in t.atoms for n in _windows(atom)):
            _refuse_window(window)
        for write in t.writes:
            if not (len(write.row) == 1 and isinstance(write.row[0], Measure | Stored)):
                raise _relates(transducer.registers[write.register].meaning)
        for atom in t.atoms:
            if not is_local(_at(atom, (0,) * len(transducer.registers))):
                raise _relates(" and ".join(sorted(transducer.registers[r].meaning for r in t.reads())))


def _refuse_window(window: Window) -> None:
    if not isinstance(window, CountWindow):
        raise UnsupportedQueryError(
            f"a formula with the window {show(window)} cannot be compared with another one",
            span=window.span,
            hint="Only windows of events can: WITHIN n EVENTS.",
        )


def _relates(what: str) -> UnsupportedQueryError:
    return UnsupportedQueryError(
        f"the formula has to remember values of earlier events ({what}); such formulas cannot be compared",
        hint="Only formulas whose conditions read one event at a time can.",
    )
