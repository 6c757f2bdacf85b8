"""Filters with aggregates and tests on sets: accumulators in registers, and a check where the formula ends.

Such an atom is about all events that the filtered formula gives to a label, so it is decided only when the complex
event is complete: on the transitions that enter a final state. There the value of an aggregate is the content of its
register with the current event added. Runs that continue skip the check, in a copy of the final state that is not
final. Only the comparison of neighbouring values in tests on sets is made as soon as both are read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cerflow.automata.compile.aggregates import Accumulator, accumulator, alone, value_of_no_events
from cerflow.automata.compile.conditions import Relating, guarded, own_labels
from cerflow.automata.model.fragment import Fragment, RegisterFile, track, without_dead_states
from cerflow.automata.model.transducer import Accumulation, Register, Transition, Write
from cerflow.base.operators import NEGATED, ORDERS, Operator
from cerflow.language import condition as c
from cerflow.language.node import walk
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.evaluate import constant_value

#: The labels given so far, and the result of each test on a set: true, false or, with None, neither.
_Memory = tuple[frozenset[str], tuple[bool | None, ...]]
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
    gathered = dict.fromkeys(n for atom in atoms for n in walk(atom) if isinstance(n, guards.LabelAggregate))
    asked = dict.fromkeys(n for atom in atoms for n in walk(atom) if isinstance(n, guards.Asked))
    ends = _Ends(
        tuple(Relating.of(atom, own_labels(atom, scope), scope, many, registers) for atom in atoms),
        tuple(_AggregateRegister.of(g, atoms, registers) for g in gathered if g.name not in ORDERS),
        tuple(_OrderRegister.of(g, atoms, registers) for g in gathered if g.name in ORDERS),
        tuple(_SetRegister.of(a, registers) for a in asked),
    )
    names = ends.labels
    going_on = {t.source for t in operand.transitions}

    def step(memory: _Memory | None, t: Transition) -> list[tuple[_Memory | None, Transition]]:
        if memory is None:
            return []  # nothing continues where a run has ended
        seen, truths = memory
        given = t.labels & names
        result: list[tuple[_Memory | None, Transition]] = []
        for after, checks in ends.outcomes(given, seen, truths):
            if t.target in going_on:
                writes = (*t.writes, *ends.writes(given, seen, after))
                result.append(((seen | given, after), replace(guarded(t, checks), writes=writes)))
            last = ends.checks(given, seen, after) if t.target in operand.final else None
            if last is not None:
                result.append((None, guarded(t, [*checks, *last])))
        return result

    start: _Memory | None = (frozenset(), (True,) * len(ends.ordered))
    return without_dead_states(track(operand, start, step, lambda memory: memory is None))


@dataclass(frozen=True)
class _AggregateRegister:
    """An aggregate, and the register for its row."""

    gathered: guards.LabelAggregate
    kept: Accumulator
    register: int

    @classmethod
    def of(
        cls, gathered: guards.LabelAggregate, atoms: Sequence[c.Condition], registers: RegisterFile
    ) -> _AggregateRegister:
        kept = accumulator(gathered, _most(gathered, atoms))
        return cls(gathered, kept, _register(gathered, len(kept.start), registers))

    def value(self, given: bool, seen: bool) -> c.Expression:
        """The aggregate over the events seen so far, and the current event if it is given the label."""
        if not seen:
            return alone(self.gathered.name, self.gathered.value) if given else value_of_no_events(self.gathered.name)
        former = self.former
        return self.kept.finish(self.kept.step(former) if given else former)

    def write(self, seen: bool) -> Write | None:
        """The write at an event with the label."""
        row = self.kept.step(self.former) if seen else self.kept.start
        return None if seen and row == self.former else Write(self.register, row, fresh=True)

    @property
    def former(self) -> tuple[c.Expression, ...]:
        return tuple(guards.Stored(self.register, k) for k in range(len(self.kept.start)))


def _most(count: guards.LabelAggregate, atoms: Sequence[c.Condition]) -> int | None:
    """The least number that all atoms treat like any greater one, if they only compare the count with literals."""
    greatest = 0
    nodes = [n for atom in atoms for n in walk(atom)]
    comparisons = [n for n in nodes if isinstance(n, c.Comparison) and count in (n.left, n.right)]
    for comparison in comparisons:
        other = comparison.right if comparison.left == count else comparison.left
        if not (isinstance(other, c.Literal) and isinstance(other.value, int | float) and abs(other.value) < _MANY):
            return None
        greatest = max(greatest, math.floor(other.value))
    return greatest + 1 if nodes.count(count) == len(comparisons) else None


@dataclass(frozen=True)
class _OrderRegister:
    """A test on a set, and the register for the latest value.

    Only the truth values that matter are distinguished: if the test has to be ``wanted``, only whether it is. A true
    test that is no longer true, and a false one that may become so, are then None, and need not continue.
    """

    gathered: guards.LabelAggregate
    register: int
    wanted: bool | None

    @classmethod
    def of(
        cls, gathered: guards.LabelAggregate, atoms: Sequence[c.Condition], registers: RegisterFile
    ) -> _OrderRegister:
        plain = c.Comparison(Operator.EQ, gathered, _TRUE)
        wanted = True if plain in atoms else False if c.Not(plain) in atoms else None
        return cls(gathered, _register(gathered, 1, registers), wanted)

    def begun(self, truth: bool | None) -> list[tuple[bool | None, list[c.Condition]]]:
        """The results of the test after the first value, each with its condition; a single null is unknown."""
        known = c.IsNull(self.gathered.argument, negated=True)
        if self.wanted is False:
            return [(truth, [])]
        cases: list[tuple[bool | None, list[c.Condition]]] = [(True, [known])]
        return cases if self.wanted else [*cases, (None, [c.Not(guards.Satisfied(known))])]

    def outcomes(self, truth: bool | None) -> list[tuple[bool | None, list[c.Condition]]]:
        """The results of the test after another value, each with its condition."""
        if truth is False:
            return [(False, [])]
        last, value = guards.Stored(self.register, 0), self.gathered.argument
        order = ORDERS[self.gathered.name]
        holds, fails = c.Comparison(order, last, value), c.Comparison(NEGATED[order], last, value)
        if self.wanted is True:
            return [(True, [holds])]
        if self.wanted is False or truth is None:
            return [(False, [fails]), (None, [c.Not(guards.Satisfied(fails))])]
        unknown: list[c.Condition] = [c.Not(guards.Satisfied(holds)), c.Not(guards.Satisfied(fails))]
        return [(truth, [holds]), (False, [fails]), (None, unknown)]


@dataclass(frozen=True)
class _SetRegister:
    """A predicate of sets, and the register for all values that it is called on."""

    asked: guards.Asked
    register: int

    @classmethod
    def of(cls, asked: guards.Asked, registers: RegisterFile) -> _SetRegister:
        names = dict(enumerate(f"{label}." for label in asked.labels))
        shown = (names.get(k, "") + registers.describe(a) for a, k in zip(asked.arguments, asked.sets))
        meaning = f"{asked.name}({', '.join(shown)})"
        return cls(asked, registers.add(Register(Accumulation.SET, len(_row(asked, 0)), meaning)))

    def value(self, given: frozenset[str], seen: frozenset[str]) -> c.Expression:
        """The answer for the events seen so far, and the current event under the labels that it is given."""
        asked = self.asked
        rows = None if seen.isdisjoint(asked.labels) else guards.AllRows(self.register, 0)
        here = self._bits(given)
        return c.TruthValue(guards.SetCall(asked.name, asked.arguments, asked.sets, len(asked.labels), rows, here))

    def write(self, given: frozenset[str], seen: frozenset[str]) -> Write | None:
        """The write at an event with these labels."""
        here = self._bits(given)
        return Write(self.register, _row(self.asked, here), fresh=seen.isdisjoint(self.asked.labels)) if here else None

    def _bits(self, given: frozenset[str]) -> int:
        return sum((label in given) << k for k, label in enumerate(self.asked.labels))


def _row(asked: guards.Asked, here: int) -> tuple[c.Expression, ...]:
    """Positions come first, so that rows are in order, and all events are different."""
    gathered = [a for a, k in zip(asked.arguments, asked.sets) if 0 <= k < len(asked.labels)]
    bits = [c.Literal(here)] if len(asked.labels) > 1 else []
    return (c.Function("position", (c.LabelReference(None),)), *bits, *gathered)


def _register(gathered: guards.LabelAggregate, fields: int, registers: RegisterFile) -> int:
    return registers.value(fields, registers.describe(gathered))


@dataclass(frozen=True)
class _Ends:
    """The values that atoms need from the events of a run, and the checks where it ends."""

    atoms: tuple[Relating, ...]
    collected: tuple[_AggregateRegister, ...]
    ordered: tuple[_OrderRegister, ...]
    kept: tuple[_SetRegister, ...]

    @property
    def labels(self) -> frozenset[str]:
        """The labels that matter."""
        found = {label for atom in self.atoms for label in atom.labels}
        found |= {kept.gathered.label for kept in self.collected}
        found |= {label for kept in self.kept for label in kept.asked.labels}
        return frozenset(found | {test.gathered.label for test in self.ordered})

    def outcomes(
        self, given: frozenset[str], seen: frozenset[str], truths: tuple[bool | None, ...]
    ) -> list[tuple[tuple[bool | None, ...], list[c.Condition]]]:
        """The results of the tests on sets after an event, each with its condition."""
        result: list[tuple[tuple[bool | None, ...], list[c.Condition]]] = [((), [])]
        for test, truth in zip(self.ordered, truths):
            label = test.gathered.label
            cases: list[tuple[bool | None, list[c.Condition]]] = [(truth, [])]
            if label in given:
                cases = test.outcomes(truth) if label in seen else test.begun(truth)
            result = [((*before, after), [*some, *more]) for before, some in result for after, more in cases]
        return result

    def writes(self, given: frozenset[str], seen: frozenset[str], truths: tuple[bool | None, ...]) -> list[Write]:
        """The writes at an event."""
        found = [write for atom in self.atoms for write in atom.writes(given, seen)]
        for kept in self.collected:
            if kept.gathered.label in given:
                write = kept.write(kept.gathered.label in seen)
                found += [] if write is None else [write]
        found += filter(None, (kept.write(given, seen) for kept in self.kept))
        for test, truth in zip(self.ordered, truths):
            if test.gathered.label in given and truth is not False:
                found.append(Write(test.register, (test.gathered.argument,), fresh=True))
        return found

    def checks(
        self, given: frozenset[str], seen: frozenset[str], truths: tuple[bool | None, ...]
    ) -> list[c.Condition] | None:
        """The atoms where a run ends with the current event; None if one of them cannot hold."""
        values: dict[c.Expression, c.Expression] = {
            g.gathered: g.value(g.gathered.label in given, g.gathered.label in seen) for g in self.collected
        }
        values |= {k.asked: k.value(given, seen) for k in self.kept}
        values |= {test.gathered: c.Literal(truth) for test, truth in zip(self.ordered, truths)}
        found: list[c.Condition] = []
        for atom in self.atoms:
            # A label without event makes the atom hold: there is no choice of events.
            gathered = guards.substitute(atom.atom, values)
            for choice in atom.choices(given, seen):
                check = guards.substitute(gathered, choice)
                if not all(isinstance(n, _PLAIN) for n in walk(check)):
                    found.append(check)
                elif constant_value(check) is not True:
                    return None
        return found
