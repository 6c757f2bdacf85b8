"""Filters with aggregates and tests on sets: accumulators in registers, and a check where the formula ends.

Such an atom is about all events that the filtered formula gives to a label, so it is decided only when the complex
event is complete: on the transitions that enter a final state. There the value of an aggregate is the content of its
register with the current event added. Runs that continue skip the check, in a copy of the final state that is not
final. Only the comparison of neighbouring values in tests on sets is made as soon as both are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import add
from typing import TypeVar

from cerflow.automata.compile.aggregates import accumulator, alone
from cerflow.automata.compile.conditions import Relating, own_labels
from cerflow.automata.model.fragment import Fragment, RegisterFile, track
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.base.graphs import settled_values
from cerflow.base.operators import MIRRORED, NEGATED, ORDERS, Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, walk
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.evaluate import constant_value

#: The labels given so far, and the result of each test on a set: true, false or, with None, neither.
_Truths = tuple[bool | None, ...]
_Memory = tuple[frozenset[str], _Truths]
_Labels = frozenset[str]
T = TypeVar("T")
#: A result, and the conditions under which it comes about.
_Outcome = tuple[T, list[c.Condition]]
#: Nodes that are evaluated at once if nothing below them reads an event.
_PLAIN = (c.And, c.Arithmetic, c.Between, c.Comparison, c.Constant, c.In, c.IsNull, c.Literal, c.Negative, c.Not, c.Or)
_TRUE = c.Literal(True)
#: More than the number of events in any run.
_MANY = 2**62


def apply_set_atoms(
    operand: Fragment, atoms: Sequence[c.Condition], many: frozenset[str], scope: int, registers: RegisterFile
) -> Fragment:
    """Keep the runs that satisfy all atoms, in which `LabelAggregate` leaves stand for aggregates and tests on sets.

    `Asked` leaves stand for predicates of sets, which are called on a collection of the events. Other labels of an atom
    stand for every choice of one event each, as in `cerflow.automata.compile.conditions`; registers keep the values of
    their events.
    """
    ends = _Ends(atoms, many, scope, registers, operand)
    going_on = {t.source for t in operand.transitions}

    def step(memory: _Memory | None, t: Transition) -> Iterator[tuple[_Memory | None, Transition]]:
        if memory is None:
            return  # nothing continues where a run has ended
        seen, truths = memory
        given = t.labels & ends.labels
        for after, checks in ends.outcomes(given, seen, truths):
            ahead = ends.ahead(given, seen, t.target) if t.target in going_on else None
            if ahead is not None:
                yield (seen | given, after), t.guarded([*checks, *ahead]).writing(*ends.writes(given, seen, after))
            last = ends.checks(given, seen, after) if t.target in operand.final else None
            if last is not None:
                yield None, t.guarded([*checks, *last])

    start: _Memory | None = (frozenset(), (True,) * len(ends.tests))
    return track(operand, start, step, lambda memory: memory is None).trimmed()


class _AggregateRegister:
    """An aggregate, and the register for its row."""

    def __init__(
        self,
        gathered: guards.LabelAggregate,
        atoms: Sequence[c.Condition],
        registers: RegisterFile,
        operand: Fragment,
    ) -> None:
        self.node = gathered
        self.labels = (gathered.label,)
        counts = gathered.name == "count"
        #: What it is at most where a run goes on, None if that is not known: counts never fall.
        self._limit = _limit(gathered, atoms) if counts else None
        #: How many more events are counted at least from each state on.
        self._more = [0] * operand.states
        if self._limit is not None and alone("count", gathered.argument) == c.Literal(1):
            self._more = _still_given(operand, gathered.label)
        self._kept = accumulator(gathered, _most(gathered, atoms) if self._limit is None else None)
        self._register = registers.value(len(self._kept.start), registers.describe(gathered))
        self._former = tuple(guards.Stored(self._register, k) for k in range(len(self._kept.start)))

    def value(self, given: _Labels, seen: _Labels) -> c.Expression:
        """The aggregate over the events seen so far, and the current event if it is given the label."""
        if seen.isdisjoint(self.labels):
            if given.isdisjoint(self.labels):
                return c.Literal(0 if self.node.name == "count" else None)
            return alone(self.node.name, self.node.value)
        return self._kept.finish(self._former if given.isdisjoint(self.labels) else self._kept.step(self._former))

    def ahead(self, given: _Labels, seen: _Labels, state: int) -> c.Condition | None:
        """What must hold so that the run may still end after an event with these labels that leads to a state."""
        if self._limit is None or given.isdisjoint(self.labels):
            return None
        most = self._limit - self._more[state]
        one = seen.isdisjoint(self.labels) and most > 0
        return None if one else c.Comparison(Operator.LE, self.value(given, seen), c.Literal(most))

    def write(self, given: _Labels, seen: _Labels) -> Write | None:
        """The write at an event with these labels."""
        row = self._kept.start if seen.isdisjoint(self.labels) else self._kept.step(self._former)
        if given.isdisjoint(self.labels) or row == self._former:
            return None
        return Write(self._register, row, fresh=True)


def _still_given(operand: Fragment, label: str) -> list[int]:
    """How many more events at least are given a label from each state on until a run ends."""
    edges = ((t.target, t.source, int(label in t.labels)) for t in operand.transitions)
    found = settled_values(dict.fromkeys(operand.final, 0), edges, add, min)
    return [found.get(state, _MANY) for state in range(operand.states)]


def _compared(count: guards.LabelAggregate, nodes: Iterable[Node]) -> list[tuple[Operator, int | float | None]]:
    """How comparisons among some nodes compare a count, and with which number; None for anything but a literal."""
    sides = [(n.operator, n.left, n.right) for n in nodes if isinstance(n, c.Comparison)]
    sides += [(MIRRORED[operator], right, left) for operator, left, right in sides]
    return [(operator, _number(right)) for operator, left, right in sides if left == count]


def _number(side: c.Expression) -> int | float | None:
    value = side.value if isinstance(side, c.Literal) else None
    return value if isinstance(value, int | float) and abs(value) < _MANY else None


def _limit(count: guards.LabelAggregate, atoms: Sequence[c.Condition]) -> int | None:
    """The greatest count with which all atoms may hold, if some of them say so by literals."""
    plain = (a for a in atoms if isinstance(a, c.Comparison) or (isinstance(a, c.Between) and not a.negated))
    bounds = _compared(count, (comparison for atom in plain for comparison in c.comparisons(atom)))
    found = [math.ceil(most) - 1 for sign, most in bounds if sign is Operator.LT and most is not None]
    found += [math.floor(most) for sign, most in bounds if sign in (Operator.EQ, Operator.LE) and most is not None]
    return min(found, default=None)


def _most(count: guards.LabelAggregate, atoms: Sequence[c.Condition]) -> int | None:
    """The least number that all atoms treat like any greater one, if they only compare the count with literals."""
    nodes = [n for atom in atoms for n in walk(atom)]
    numbers = [number for _, number in _compared(count, nodes) if number is not None]
    return max([0, *map(math.floor, numbers)]) + 1 if nodes.count(count) == len(numbers) else None


class _OrderRegister:
    """A test on a set, and the register for the latest value.

    Only the truth values that matter are distinguished: if the test has to be ``wanted``, only whether it is. A true
    test that is no longer true, and a false one that may become so, are then None, and need not continue.
    """

    def __init__(self, gathered: guards.LabelAggregate, atoms: Sequence[c.Condition], registers: RegisterFile) -> None:
        self.node = gathered
        self.labels = (gathered.label,)
        self.register = registers.value(1, registers.describe(gathered))
        plain = c.Comparison(Operator.EQ, gathered, _TRUE)
        self._wanted = True if plain in atoms else False if c.Not(plain) in atoms else None

    def outcomes(self, truth: bool | None, given: _Labels, seen: _Labels) -> list[_Outcome[bool | None]]:
        """The results of the test after an event, each with its condition; a single null is unknown."""
        value, begun = self.node.argument, not seen.isdisjoint(self.labels)
        if given.isdisjoint(self.labels) or truth is False or (self._wanted is False and not begun):
            return [(truth, [])]
        if not begun:
            known = c.IsNull(value, negated=True)
            cases: list[_Outcome[bool | None]] = [(True, [known]), (None, [c.Not(guards.Satisfied(known))])]
            return cases[:1] if self._wanted else cases
        last, order = guards.Stored(self.register, 0), ORDERS[self.node.name]
        holds, fails = c.Comparison(order, last, value), c.Comparison(NEGATED[order], last, value)
        if self._wanted is True:
            return [(True, [holds])]
        if self._wanted is False or truth is None:
            return [(False, [fails]), (None, [c.Not(guards.Satisfied(fails))])]
        unknown: list[c.Condition] = [c.Not(guards.Satisfied(holds)), c.Not(guards.Satisfied(fails))]
        return [(truth, [holds]), (False, [fails]), (None, unknown)]


class _SetRegister:
    """A predicate of sets, and the register for all values that it is called on."""

    def __init__(self, asked: guards.Asked, registers: RegisterFile) -> None:
        self.node = asked
        self.labels = asked.labels
        names = dict(enumerate(f"{label}." for label in asked.labels))
        shown = (names.get(k, "") + registers.describe(a) for a, k in zip(asked.arguments, asked.sets))
        meaning = f"{asked.name}({', '.join(shown)})"
        self._register = registers.add(Register(Accumulation.SET, len(self._row(0)), meaning))

    def value(self, given: _Labels, seen: _Labels) -> c.Expression:
        """The answer for the events seen so far, and the current event under the labels that it is given."""
        asked = self.node
        rows = None if seen.isdisjoint(asked.labels) else guards.AllRows(self._register, 0)
        here = self._bits(given)
        return c.TruthValue(guards.SetCall(asked.name, asked.arguments, asked.sets, len(asked.labels), rows, here))

    def write(self, given: _Labels, seen: _Labels) -> Write | None:
        """The write at an event with these labels."""
        here = self._bits(given)
        return Write(self._register, self._row(here), fresh=seen.isdisjoint(self.labels)) if here else None

    def _bits(self, given: _Labels) -> int:
        return sum((label in given) << k for k, label in enumerate(self.labels))

    def _row(self, here: int) -> tuple[c.Expression, ...]:
        """Positions come first, so that rows are in order, and all events are different."""
        gathered = [a for a, k in zip(self.node.arguments, self.node.sets) if 0 <= k < len(self.labels)]
        bits = [c.Literal(here)] if len(self.labels) > 1 else []
        return (c.Function("position", (c.LabelReference(None),)), *bits, *gathered)


class _Ends:
    """The values that atoms need from the events of a run, and the checks where it ends."""

    def __init__(
        self, atoms: Sequence[c.Condition], many: _Labels, scope: int, registers: RegisterFile, operand: Fragment
    ) -> None:
        nodes = dict.fromkeys(n for atom in atoms for n in walk(atom))
        gathered = [n for n in nodes if isinstance(n, guards.LabelAggregate)]
        self._atoms = [Relating(atom, own_labels(atom, scope), scope, many, registers) for atom in atoms]
        collected = [_AggregateRegister(g, atoms, registers, operand) for g in gathered if g.name not in ORDERS]
        self.tests = [_OrderRegister(g, atoms, registers) for g in gathered if g.name in ORDERS]
        sets = [_SetRegister(n, registers) for n in nodes if isinstance(n, guards.Asked)]
        self._kept: list[_AggregateRegister | _SetRegister] = [*collected, *sets]
        #: The labels that matter.
        self.labels = frozenset(label for one in (*self._atoms, *self._kept, *self.tests) for label in one.labels)

    def outcomes(self, given: _Labels, seen: _Labels, truths: _Truths) -> list[_Outcome[_Truths]]:
        """The results of the tests on sets after an event, each with its condition."""
        result: list[_Outcome[_Truths]] = [((), [])]
        for test, truth in zip(self.tests, truths):
            cases = test.outcomes(truth, given, seen)
            result = [((*before, after), [*some, *more]) for before, some in result for after, more in cases]
        return result

    def writes(self, given: _Labels, seen: _Labels, truths: _Truths) -> Iterator[Write]:
        """The writes at an event."""
        for atom in self._atoms:
            yield from atom.writes(given, seen)
        yield from filter(None, (kept.write(given, seen) for kept in self._kept))
        for test, truth in zip(self.tests, truths):
            if truth is not False and not given.isdisjoint(test.labels):
                yield Write(test.register, (test.node.argument,), fresh=True)

    def ahead(self, given: _Labels, seen: _Labels, state: int) -> list[c.Condition] | None:
        """The conditions under which a run may go on to a state after an event; None if it cannot."""
        found = (k.ahead(given, seen, state) for k in self._kept if isinstance(k, _AggregateRegister))
        return _unsettled(condition for condition in found if condition is not None)

    def checks(self, given: _Labels, seen: _Labels, truths: _Truths) -> list[c.Condition] | None:
        """The atoms where a run ends with the current event; None if one of them cannot hold."""
        values: dict[c.Expression, c.Expression] = {kept.node: kept.value(given, seen) for kept in self._kept}
        values |= {test.node: c.Literal(truth) for test, truth in zip(self.tests, truths)}
        found: list[c.Condition] = []
        for atom in self._atoms:
            # A label without event makes the atom hold: there is no choice of events.
            gathered = guards.substitute(atom.atom, values)
            for choice in atom.choices(given, seen):
                found.append(guards.substitute(gathered, choice))
        return _unsettled(found)


def _unsettled(conditions: Iterable[c.Condition]) -> list[c.Condition] | None:
    """Those that depend on an event; None if one of the others does not hold."""
    found: list[c.Condition] = []
    for condition in conditions:
        if not all(isinstance(n, _PLAIN) for n in walk(condition)):
            found.append(condition)
        elif constant_value(condition) is not True:
            return None
    return found
