"""Runs of transducers with registers over unknown events, together with the conditions on these events.

The searches go breadth first, so what they find is shortest. They end without anything once no further runs can be told
apart, as is so below a window of events. Otherwise `with_registers` may prove that there is nothing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any

import z3

from cerflow.automata.compile.windows import window_in_register
from cerflow.automata.model.run_windows import windows_needed
from cerflow.automata.model.transducer import Accumulation, Transducer, Transition
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.events import Value, moment_at
from cerflow.base.graphs import gathered
from cerflow.language.formula import CountWindow
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import walk
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.conditions.guards import Measure
from cerflow.theory.deciding.finite_memory import Labels
from cerflow.theory.deciding.samples import floats, fresh_word, integers, place_of, strings_between
from cerflow.theory.deciding.solver.symbolic_conditions import RegisterTerms, SymbolicConditions
from cerflow.theory.deciding.solver.symbolic_values import NO, NULL, YES, SymbolicEvent, SymbolicValues, Term, ValueSort
from cerflow.theory.deciding.witnesses import Budget, expressions_of


@dataclass(frozen=True)
class SymbolicConfiguration:
    """A state, and the contents of the registers; equal configurations are the same whatever the events are."""

    state: int
    memory: tuple[RegisterTerms, ...]

    @property
    def remembers(self) -> bool:
        """Whether anything of earlier events matters."""
        return not all(z3.is_true(content.empty) for content in self.memory)


@dataclass(frozen=True)
class SymbolicWitness:
    """The labels of events, a model of Z3 with the events, and the formula that they satisfy.

    ``side`` is 0 if the first transducer detects, 1 if the second.
    """

    labels: tuple[Labels, ...]
    model: Any
    formula: Any
    side: int


class Solver:
    """Asks Z3 whether there are events for a formula, within a budget and within the domains of some events."""

    def __init__(self, values: SymbolicValues, budget: Budget) -> None:
        self._values = values
        self._budget = budget
        self._read: list[SymbolicEvent] = []
        self.asked = 0

    def event(self, position: int) -> SymbolicEvent:
        """The event at a position of the stream."""
        while len(self._read) <= position:
            self._read.append(self._values.event(z3.IntVal(len(self._read)), len(self._read)))
        return self._read[position]

    def model(self, formula: Any, share: int = 1) -> Any | None:
        """Events that satisfy a formula, None if there are none.

        Raises `UnsupportedQueryError` if Z3 gives up, after a ``share`` of the resources for a question.
        """
        self.asked += 1
        self._budget.spend(limits.SOLVER_STEPS)
        if z3.is_false(formula):
            return None
        solver = z3.Solver()
        solver.set("rlimit", limits.SOLVER_RESOURCES // share)
        solver.add(formula, *(event.domain for event in self._read))
        outcome = solver.check()
        if outcome == z3.sat:
            return solver.model()
        if outcome == z3.unsat:
            return None
        raise UnsupportedQueryError("too large to decide: the solver gave up", hint="Ask about smaller formulas.")

    def examples(self, candidate: SymbolicWitness) -> list[dict[str, Value]]:
        """The events of a candidate, by column."""
        events = self._read[: len(candidate.labels)]
        model = candidate.model
        if self._values.floating:
            with suppress(UnsupportedQueryError):
                model = self.model(z3.And(candidate.formula, _plain_numbers(events)), 20) or model
        return _plain_events(self._values, events, model)


class Runs:
    """The runs of one transducer over events of one event space."""

    def __init__(self, transducer: Transducer, conditions: SymbolicConditions) -> None:
        self.transducer = transducer = window_in_register(transducer)
        self.conditions = conditions
        self._leaving = transducer.leaving()
        self.live = transducer.live()
        self._needed = windows_needed(transducer)
        nodes = (n for root in expressions_of(transducer) for n in walk(root))
        #: Whether it matters when an event comes.
        self.measures = any(isinstance(n, Measure) and isinstance(n.window, CountWindow) for n in nodes)
        #: The registers that nothing was written to.
        self.empty = tuple(
            RegisterTerms(YES, (None if r.keeps is Accumulation.SET else NULL,) * r.fields)
            for r in transducer.registers
        )

    def begin(self) -> list[SymbolicConfiguration]:
        """The configurations before any event."""
        return [SymbolicConfiguration(state, self.empty) for state in sorted(self.transducer.initial)]

    def detects(self, configuration: SymbolicConfiguration) -> bool:
        """Whether a run that ends there detects its complex event."""
        return configuration.state in self.transducer.final

    def moves(
        self, configuration: SymbolicConfiguration, event: SymbolicEvent
    ) -> Iterator[tuple[Labels, Any, SymbolicConfiguration]]:
        """The labels, the guard and the target of each transition that may be taken."""
        for t in self._leaving[configuration.state]:
            memory = configuration.memory
            guard = [self.conditions.truth(part, event, memory)[0] for part in (*conjuncts(t.test), *t.atoms)]
            after = SymbolicConfiguration(t.target, self._written(t, event, memory))
            if t.target not in self.transducer.final:
                guard += self._in_time(after, event.position + 1)
            holds = z3.simplify(z3.And(*guard))
            if not z3.is_false(holds):
                yield t.labels, holds, after

    def _in_time(self, configuration: SymbolicConfiguration, position: Any) -> Iterator[Any]:
        """Conditions without which a run meets no window of events any more that it must still meet."""
        for register in self._needed[configuration.state]:
            window = self.transducer.registers[register].window
            begun = configuration.memory[register].fields[0]
            if isinstance(window, CountWindow) and begun is not None:
                yield z3.And(z3.Not(begun.null), position - begun.number < window.events)

    def _written(
        self, t: Transition, event: SymbolicEvent, memory: tuple[RegisterTerms, ...]
    ) -> tuple[RegisterTerms, ...]:
        live = self.live[t.target]
        after = list(memory)
        for write in t.writes:
            former = self.empty[write.register] if write.fresh else after[write.register]
            row = [self.conditions.term(e, event, memory) for e in write.row]
            keeps = self.transducer.registers[write.register].keeps
            after[write.register] = self.conditions.written(keeps, former, row)
        return tuple(c if register in live else self.empty[register] for register, c in enumerate(after))


@dataclass
class _Reached:
    """A configuration, the condition under which it is reachable, and the transitions to it."""

    configuration: SymbolicConfiguration
    holds: Any
    incoming: list[tuple[_Reached, Labels, Any]] = field(default_factory=list)

    def labels(self, model: Any) -> tuple[Labels, ...]:
        """The labels of a run that a model allows."""
        found: list[Labels] = []
        current = self
        while current.incoming:
            # A model satisfies a path to each configuration.
            current, labels = next(
                (before, labels)
                for before, labels, guard in current.incoming
                if z3.is_true(model.eval(z3.And(before.holds, guard), model_completion=True))
            )
            found.append(labels)
        return tuple(reversed(found))


def shortest_runs(runs: Runs, solver: Solver) -> Iterator[SymbolicWitness | None]:
    """Matches by their lengths, and None after each length; ends if there are no longer runs."""
    layer = [_Reached(c, YES) for c in runs.begin()]
    #: The conditions under which each configuration was there before, at the same position if that matters.
    seen: dict[object, list[Any]] = {(None, r.configuration): [r.holds] for r in layer}
    position = 0
    while layer:
        event = solver.event(position)
        position += 1
        following: dict[SymbolicConfiguration, _Reached] = {}
        for earlier in layer:
            for labels, guard, target in runs.moves(earlier.configuration, event):
                entry = following.setdefault(target, _Reached(target, NO))
                entry.holds = z3.simplify(z3.Or(entry.holds, z3.And(earlier.holds, guard)))
                entry.incoming.append((earlier, labels, guard))
        layer = []
        for target, entry in following.items():
            timed = runs.measures and target.remembers
            known = seen.setdefault((position if timed else None, target), [])
            # A run that was there before under weaker conditions has all that follows.
            model = solver.model(z3.simplify(z3.And(entry.holds, *map(z3.Not, known))))
            if model is None:
                continue
            known.append(entry.holds)
            layer.append(entry)
            if runs.detects(target):
                yield SymbolicWitness(entry.labels(model), model, entry.holds, 0)
        yield None


#: The configurations of each of two transducers after the same labels, with their conditions.
_Sides = tuple[dict[SymbolicConfiguration, Any], ...]


def differences(both: Sequence[Runs], one_sided: bool, solver: Solver) -> Iterator[SymbolicWitness | None]:
    """Matches of one transducer that the other lacks, by their lengths, and None after each length."""
    begin: _Sides = tuple(dict.fromkeys(runs.begin(), YES) for runs in both)
    layer: list[tuple[tuple[Labels, ...], _Sides]] = [((), begin)]
    seen: set[object] = {(None, *_as_sets(begin))}
    measures = any(runs.measures for runs in both)
    asked = (0,) if one_sided else (0, 1)
    position = 0
    while layer:
        event = solver.event(position)
        position += 1
        following = []
        for before, sides in layer:
            for given, after in _extended(both, sides, event):
                labels = (*before, given)
                timed = measures and any(configuration.remembers for side in after for configuration in side)
                key = (position if timed else None, *_as_sets(after))
                if key in seen:
                    continue
                seen.add(key)
                detects = [
                    z3.Or(*(holds for c, holds in side.items() if runs.detects(c))) for runs, side in zip(both, after)
                ]
                for side in asked:
                    only = z3.simplify(z3.And(detects[side], z3.Not(detects[1 - side])))
                    if not z3.is_false(only) and (model := solver.model(only)) is not None:
                        yield SymbolicWitness(labels, model, only, side)
                exist = z3.Or(*(holds for side in asked for holds in after[side].values()))
                if z3.is_true(z3.simplify(exist)) or solver.model(exist) is not None:
                    following.append((labels, after))
        layer = following
        yield None


def _as_sets(sides: _Sides) -> list[frozenset[tuple[SymbolicConfiguration, Any]]]:
    return [frozenset(side.items()) for side in sides]


def _extended(both: Sequence[Runs], sides: _Sides, event: SymbolicEvent) -> list[tuple[Labels, _Sides]]:
    """What follows on an event, for each set of labels that it may get."""
    found: dict[Labels, _Sides] = {}
    for number, (runs, side) in enumerate(zip(both, sides)):
        for configuration, holds in side.items():
            for labels, guard, target in runs.moves(configuration, event):
                own = found.setdefault(labels, ({}, {}))[number]
                own[target] = z3.simplify(z3.Or(own.get(target, NO), z3.And(holds, guard)))
    return sorted(found.items(), key=lambda item: sorted(item[0]))


# -- events of a model: values that are only compared are replaced by plainer ones in the same order ------------------


def _plain_numbers(events: Sequence[SymbolicEvent]) -> Any:
    """The formula that floats that are computed with are small whole numbers."""
    numbers = [t.number for e in events for t in e.values.values() if t.sort is ValueSort.FLOAT]
    limit = z3.FPVal(100.0, z3.Float64())
    return z3.And(
        *(z3.fpLEQ(z3.fpAbs(n), limit) for n in numbers),
        *(z3.fpEQ(z3.fpRoundToIntegral(z3.RNE(), n), n) for n in numbers),
    )


def _plain_events(values: SymbolicValues, events: Sequence[SymbolicEvent], model: Any) -> list[dict[str, Value]]:
    """The events of a model, by column."""
    space, many = values.event_space, len(events) * len(values.columns())
    found: list[dict[str, Value]] = [{} for _ in events]
    terms = ((k, column, term) for k, event in enumerate(events) for column, term in event.values.items())
    for sort, places in gathered((term.sort, (k, column, _number(term, model))) for k, column, term in terms).items():
        plain = _plain(values, sort, sorted({number for _, _, number in places if number is not None}), many)
        for k, column, number in places:
            found[k][column] = None if number is None else plain[number]
    read = set(map(space.column, space.kinds))
    for name in (c for c in (space.type, space.stream) if c is not None and c not in read):
        for row in found:
            # Where only some texts are distinguished, any other one will do.
            if row[name] == "" or row[name] not in values.texts:
                row[name] = fresh_word({*values.texts, *values.mentioned})
    return found


def _number(term: Term, model: Any) -> int | float | None:
    """The number of a term in a model; null where the model leaves open what it is."""
    null, number = model.eval(term.null), model.eval(term.number)
    if not z3.is_false(term.null) and (
        z3.is_true(null) or not (z3.is_false(null) or z3.is_int_value(number) or z3.is_fp_value(number))
    ):
        return None
    number = model.eval(term.number, model_completion=True)
    if term.sort is not ValueSort.FLOAT:
        return int(number.as_long())
    # Zero has no sign.
    return 0.0 + float(struct.unpack(">d", z3.simplify(z3.fpToIEEEBV(number)).as_long().to_bytes(8, "big"))[0])


def _plain(values: SymbolicValues, sort: ValueSort, used: Sequence[Any], many: int) -> dict[Any, Value]:
    """For each number of a sort a value, in the same order, and the same beside the constants of the query."""
    numeric = [c for c in values.constants if isinstance(c, int | float) and not isinstance(c, bool)]
    limited = values.computing or values.event_space.columns or any(isinstance(c, float) for c in numeric)
    match sort:
        case ValueSort.TEXT:
            words: dict[int, Value] = {}
            place = 0
            # Words that follow a text of the query take the places after its own, of which there are enough.
            for word in sorted(strings_between(values.texts, many)):
                place = values.text_places.get(word, place + 1)
                words[place] = word
            return _respaced(used, words, {*values.text_places.values()})
        case ValueSort.PLACE:
            found: dict[int, Value] = {place_of(f): f for f in floats(numeric, many)}
            return _respaced(used, found, {place_of(float(c)) for c in numeric})
        case ValueSort.INTEGER if not limited:
            whole = integers(numeric, many, -LARGEST_INTEGER, LARGEST_INTEGER)
            return _respaced(used, {i: i for i in whole}, {int(c) for c in numeric})
    return {number: _READ[sort](number) for number in used}


#: How a number is read where it cannot be replaced.
_READ: dict[ValueSort, Callable[[Any], Value]] = {
    ValueSort.INTEGER: int,
    ValueSort.FLOAT: float,
    ValueSort.TRUTH: bool,
    ValueSort.MOMENT: moment_at,
    ValueSort.DURATION: lambda number: timedelta(microseconds=number),
}


def _respaced(used: Sequence[int], candidates: dict[int, Value], fixed: set[int]) -> dict[Any, Value]:
    """The candidates that lie between the same fixed numbers as the used ones, in order."""
    found: dict[Any, Value] = {n: candidates[n] for n in used if n in fixed}
    for low, high in pairwise([-math.inf, *sorted(fixed), math.inf]):
        inside = [n for n in used if low < n < high]
        between = sorted(place for place in candidates if low < place < high)
        # Below all of them, those beside the least one are the plainest.
        chosen = between[-len(inside) :] if low == -math.inf and fixed else between
        found.update((n, candidates[place]) for n, place in zip(inside, chosen))
    return found
