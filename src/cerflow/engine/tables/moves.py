"""The moves of a transducer: the transitions that kernels know, the tests of each, and the effect of an event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from cerflow.automata.model.clock import TICK, has_ticks, reads_tick
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.base import limits
from cerflow.base.graphs import gathered, grouped, reached_along
from cerflow.engine.evaluate.precomputed_conditions import Precomputed
from cerflow.language.condition import Condition, Not
from cerflow.language.node import Node, transform, walk
from cerflow.logic.conditions.connectives import FALSE, TRUE, conjuncts, with_atoms
from cerflow.logic.conditions.guards import InWindow, Satisfied, TypeTest

#: The moves that an event allows, and the states that runs cannot keep over it.
Effect = tuple[tuple[int, ...], tuple[int, ...]]


def _opposite(condition: Condition) -> Condition:
    """The condition that holds exactly where a condition on a passed window fails."""
    match condition:
        case Not(Satisfied(operand)) | Not(operand):
            return operand
    return Not(condition)


def _failures(condition: Condition) -> list[Condition]:
    """Conditions of which one holds where this one does: a conjunction is not satisfied if a part of it is not."""
    match condition:
        case Not(Satisfied(operand)):
            return [Not(Satisfied(part)) for part in conjuncts(operand)] or [condition]
    return [condition]


def _with_fewer_types(loops: Sequence[tuple[Condition, ...]]) -> list[dict[Condition, None]]:
    """Conjunctions of which one holds where one of ``loops`` does.

    Where what holds for events of other types holds for those of some types as well, these types are not asked for.
    """
    found = [dict.fromkeys(loop) for loop in loops]
    for loop in found:
        for part in list(loop):
            if isinstance(part, Not) and isinstance(part.operand, TypeTest):
                same = {**loop, part.operand: None}
                del same[part]
                if any(other.keys() <= same.keys() for other in found):
                    del loop[part]

    def implied(loop: dict[Condition, None], by: dict[Condition, None]) -> bool:
        types = [part.type for part in loop if isinstance(part, TypeTest) and part.stream is None]
        others = (part for part in by if part not in loop)
        return all(
            isinstance(part, Not) and isinstance(part.operand, TypeTest) and types and part.operand.type not in types
            for part in others
        )

    kept: list[dict[Condition, None]] = []
    for k, loop in enumerate(found):
        if not any(implied(loop, other) for other in (*kept, *found[k + 1 :])):
            kept.append(loop)
    return kept


@dataclass
class Move:
    """The effect of one row of the transition table."""

    transition: Transition
    target: int
    final: bool
    number: int = -1
    #: The tests that an event must satisfy.
    needs: frozenset[int] = frozenset()


class Moves:
    """The moves of a transducer; in ``measured`` states labels do not matter.

    ``precomputed`` are conditions that were evaluated before. Tests get their numbers here.
    """

    def __init__(self, transducer: Transducer, measured: frozenset[int], precomputed: Sequence[Condition]) -> None:
        self._transducer = transducer
        self._measured = measured
        self._precomputed: dict[Node, Node] = {known: Precomputed(number) for number, known in enumerate(precomputed)}
        self._test_numbers: dict[Condition, int] = {}
        self.tests: list[Condition] = []
        #: The states in which every event is looked at: the initial ones, and with ticks all.
        self._met = transducer.initial
        if has_ticks(transducer):
            self._met |= {t.source for t in transducer.transitions}
        #: For each state the tests of its loops that change nothing: where one holds, a run may stay.
        self.loops = self._loops()
        self.rows = self._rows()
        #: The states in which runs may be.
        self.reached = frozenset(range(transducer.states))
        self._effects: dict[frozenset[int], Effect] = {}
        #: States that a run keeps only from a tick to the next thing: any event there acts like a pause.
        self.momentary = self._states_after_ticks()

    def marks(self, t: Transition) -> frozenset[str]:
        """The labels of a transition that matter."""
        return frozenset() if t.source in self._measured else t.labels

    @property
    def waiting(self) -> Sequence[Sequence[frozenset[int]]]:
        """For each state whose waiting an event may end, the tests of its loops: waiting continues while one holds."""
        initial = self._transducer.initial
        return [loops for q, loops in enumerate(self.loops) if loops or q in initial]

    def lacking(self, types: frozenset[str]) -> Moves:
        """The moves of runs that meet no event of some types; moves and tests have the numbers that they have here."""

        def known(atom: Condition) -> Condition:
            return FALSE if isinstance(atom, TypeTest) and atom.type in types else atom

        truths = [with_atoms(test, known) for test in self.tests]
        held = {number for number, truth in enumerate(truths) if truth == TRUE}
        failed = {number for number, truth in enumerate(truths) if truth == FALSE}
        rows = [replace(move, needs=move.needs - held) for move in self.rows if failed.isdisjoint(move.needs)]
        met = reached_along(((move.transition.source, move.target) for move in rows), self._transducer.initial)
        other = copy(self)
        other.reached = self.reached & met.keys()
        other.rows = [move for move in rows if move.transition.source in met]
        other.loops = [
            [needs - held for needs in loops if failed.isdisjoint(needs)] if q in met else []
            for q, loops in enumerate(self.loops)
        ]
        return other

    def other_tests(self, test: int) -> list[frozenset[int]]:
        """The tests besides this one, for each move and loop that has it."""
        together = [*(move.needs for move in self.rows), *(needs for loops in self.loops for needs in loops)]
        return [needs - {test} for needs in together if test in needs]

    def may_be_relevant(self, satisfied: frozenset[int], unknown: frozenset[int]) -> bool:
        """Whether an event may fire a transition or end some waiting, if any of the unknown tests may also hold."""
        possible = (move.number for move in self.rows if move.needs <= satisfied | unknown)
        # With fewer tests known to hold, at least as many states are left.
        return self.matters((possible, self._leaves(satisfied)))

    def matters(self, effect: tuple[Iterable[int], Iterable[int]]) -> bool:
        """Whether an event with this effect, see `effect`, does more than a pause."""
        moves, left = effect
        sources = (self.rows[number].transition.source for number in moves)
        return any(q not in self.momentary for states in (sources, left) for q in states)

    def effect(self, satisfied: frozenset[int]) -> Effect:
        """The moves that a set of satisfied tests allows, and the states in which it ends all waiting."""
        effect = self._effects.get(satisfied)
        if effect is None:
            moves = tuple(move.number for move in self.rows if move.needs <= satisfied)
            effect = (moves, self._leaves(satisfied))
            if len(self._effects) < limits.SIGNATURES:
                self._effects[satisfied] = effect
        return effect

    def unless_staying(self, numbers: Sequence[int]) -> list[int] | None:
        """The moves without the one by which a run stays unchanged; None if others may fire or fail together with it.

        All are moves of one state. Then a run stays exactly if none of the others fires.
        """
        staying: list[int] = []
        others: list[int] = []
        for number in numbers:
            t = self.rows[number].transition
            loop = t.source == t.target and not (t.labels or t.writes or self.rows[number].final)
            (staying if loop else others).append(number)
        if len(staying) != 1:
            return None
        (held, *more) = self.rows[staying[0]].transition.atoms or (None,)
        atoms = [self.rows[number].transition.atoms for number in others]
        if held is None or more or not any(isinstance(node, InWindow) for node in walk(held)):
            return None
        if not all(_opposite(held) in some for some in atoms):
            return None
        return others if any(len(some) == 1 for some in atoms) else None

    def _states_after_ticks(self) -> frozenset[int]:
        entered = {t.target for t in self._transducer.transitions if t.source != t.target and reads_tick(t)}
        others = [t for t in self._transducer.transitions if not reads_tick(t)]
        kept = {t.target for t in others} | {t.source for t in others if (t.test, t.atoms) != (Not(TICK), ())}
        return frozenset(entered - kept - self._transducer.initial)

    def _loops(self) -> list[list[frozenset[int]]]:
        # A loop on a final state detects again.
        staying = (t for t in self._transducer.transitions if t.stays and t.source not in self._transducer.final)
        loops = ((t.source, tests) for t in staying for tests in self._alternatives(t.test))
        return [[*map(self._numbers, _with_fewer_types(some))] for some in grouped(self._transducer.states, loops)]

    def _alternatives(self, test: Condition) -> list[tuple[Condition, ...]]:
        """Conjunctions of which one holds where a test does.

        For an event that must not be both of a type and of a name, another type alone is enough.
        """
        parts = conjuncts(test)
        if self._precomputed:
            return [tuple(parts)]
        choices = [_failures(part) for part in parts]
        many = prod(map(len, choices)) > limits.LOOP_ALTERNATIVES
        return [tuple(parts)] if many else list(product(*choices))

    def _leaves(self, satisfied: frozenset[int]) -> tuple[int, ...]:
        """The states that runs cannot keep over an event that satisfies these tests, but can over others.

        States without any such loop are left out (except some): for them every event in between counts.
        """
        return tuple(
            q
            for q, loops in enumerate(self.loops)
            if (loops or q in self._met) and not any(needs <= satisfied for needs in loops)
        )

    def _rows(self) -> list[Move]:
        going_on = {t.source for t in self._transducer.transitions}
        final = self._transducer.final
        moves: list[Move] = []
        moving = (t for t in self._transducer.transitions if not t.stays or t.source in final)
        for group in gathered(((t.source, t.test, t.atoms, self.marks(t)), t) for t in moving).values():
            rows = [Move(t, t.target, False) for t in group if t.target in going_on] or [Move(group[0], -1, False)]
            # Only one of the rows ends a match, or it would be found twice.
            rows[0].final = any(t.target in final for t in group)
            moves.extend(rows)
        for number, move in enumerate(moves):
            move.number, move.needs = number, self._numbers(conjuncts(move.transition.test))
        return moves

    def _numbers(self, conditions: Iterable[Condition]) -> frozenset[int]:
        found = set()
        for own in conditions:
            test = own
            if self._precomputed:
                test = transform(own, lambda current: self._precomputed.get(current, current))
            if test not in self._test_numbers:
                self._test_numbers[test] = len(self.tests)
                self.tests.append(test)
            found.add(self._test_numbers[test])
        return frozenset(found)
