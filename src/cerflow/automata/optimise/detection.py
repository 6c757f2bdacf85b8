"""Detection only: a transducer that detects at the same events, without the events of matches.

Only the end of a run matters then, and its beginning for the window. Marks between the first and the last event go, and
so do transitions that differ only in marks: a transition is dropped if another one of its state may fire whenever it
does and leads to a state that simulates its own (a "little brother": D. Bustan and O. Grumberg, Simulation-based
minimization, 2003). So iterations often become single steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, permutations

from cerflow.automata.model.transducer import HIDDEN_LABEL, Accumulation, Transducer, Transition, Write, registers_read
from cerflow.automata.optimise.covering import Field, Relation, covering_relations
from cerflow.automata.optimise.simplify import with_other_transitions
from cerflow.base import limits
from cerflow.base.graphs import reached_along, visited
from cerflow.base.operators import Operator
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.conditions.guards import InWindow, Stored

_MARK = frozenset((HIDDEN_LABEL,))


def for_detection(transducer: Transducer) -> Transducer:
    """A transducer that detects at the same events, and keeps the first and the last event of each complex event."""
    known = begun(transducer)
    marked = []
    for t in transducer.transitions:
        is_end = t.source not in known or t.target in transducer.final
        marked.append(replace(t, labels=_MARK if t.labels and is_end else frozenset()))
    return _without_little_brothers(with_other_transitions(transducer, marked))


def begun(transducer: Transducer) -> frozenset[int]:
    """The states in which further marks do not change where a run began: it has begun, or there is no window."""
    if transducer.window is None:
        return frozenset(range(transducer.states))
    unmarked = ((t.source, t.target) for t in transducer.transitions if not t.labels)
    waiting = reached_along(unmarked, transducer.initial)
    return frozenset(range(transducer.states)) - waiting.keys()


def latest_starts(transducer: Transducer) -> tuple[int | None, ...]:
    """For each state, the register whose latest content suffices: all else equal, it allows at least as much.

    This is the start of a window that is only tested for having passed. None if there is none, or if two starts would
    have to be compared at once.
    """
    windows = {r for r, kept in enumerate(transducer.registers) if kept.window is not None}
    if transducer.window is not None or not windows:
        return (None,) * transducer.states
    for t in transducer.transitions:
        for write in t.writes:
            windows -= write.reads()
        for atom in t.atoms:
            if not (isinstance(atom, InWindow) and type(atom.start) is Stored):
                windows -= registers_read([atom])
    kept = [[r for r in live if transducer.registers[r].window is not None] for live in transducer.live()]
    return tuple(starts[0] if len(starts) == 1 and starts[0] in windows else None for starts in kept)


def best_values(transducer: Transducer) -> tuple[Mapping[Field, Relation], ...]:
    """For each state, how the fields of its registers compare with those of a run that a better one makes unnecessary.

    Empty for a state where some field must be equal, or without registers: runs seldom cover each other there.
    """
    live = transducer.live()
    registers = transducer.registers
    if any(registers[r].keeps is Accumulation.SET for found in live for r in found):
        return ({},) * transducer.states
    relations = covering_relations(transducer.transitions, live, registers)
    return tuple({} if Operator.EQ in found.values() else found for found in relations)


def _without_little_brothers(transducer: Transducer) -> Transducer:
    """The transducer without transitions and initial states that another one makes unnecessary."""
    simulation = Simulation(transducer)
    kept: list[Transition] = []
    for leaving in simulation.leaving:
        chosen = list(leaving)
        for t in leaving:
            # A run that may stay costs nothing, so its replacement must not cost more.
            others = (u for u in chosen if u is not t and (u.stays or not t.stays))
            if any(simulation.covers(u, t) for u in others):
                chosen.remove(t)
        kept += chosen
    initial = sorted(transducer.initial)
    for p in list(initial):
        if any(q != p and simulation.holds(q, p) for q in initial):
            initial.remove(p)
    return with_other_transitions(transducer, kept, initial)


class Simulation:
    """Which states can do all that others can, with the same registers and starts that are not earlier."""

    def __init__(self, transducer: Transducer, pairs: Iterable[tuple[int, int]] = ()) -> None:
        """``pairs`` are the pairs of states in question, beside targets of transitions of one state."""
        self._final = transducer.final
        self._live = transducer.live()
        self.leaving = transducer.leaving()
        self._guards = {id(t): frozenset((*conjuncts(t.test), *t.atoms)) for t in transducer.transitions}
        self._pairs = self._greatest(transducer.initial, pairs)

    def holds(self, p: int, q: int) -> bool:
        """Whether p simulates q."""
        return p == q or (p, q) in self._pairs

    def covers(self, u: Transition, t: Transition) -> bool:
        """Whether u may fire whenever t does, and leads to a state that simulates t's target."""
        return self._fires(u, t) and self.holds(u.target, t.target)

    def _greatest(self, initial: frozenset[int], asked: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """The greatest simulation on the pairs in question; empty if that is too expensive."""

        def following(pair: tuple[int, int]) -> Iterable[tuple[int, int]]:
            pairs = ((u.target, t.target) for t in self.leaving[pair[1]] for u in self._firing(pair[0], t))
            return filter(self._comparable, pairs)

        targets = ((u.target, t.target) for leaving in self.leaving for t in leaving for u in leaving if u is not t)
        start = filter(self._comparable, chain(asked, permutations(initial, 2), targets))
        pairs = set(islice(visited(start, following), limits.SIMULATION_PAIRS + 1))
        if len(pairs) > limits.SIMULATION_PAIRS:
            return set()
        while True:
            failing = {(p, q) for p, q in pairs if not self._simulates(p, q, pairs)}
            if not failing:
                return pairs
            pairs -= failing

    def _comparable(self, pair: tuple[int, int]) -> bool:
        p, q = pair
        return p != q and (p in self._final or q not in self._final) and self._live[p] <= self._live[q]

    def _simulates(self, p: int, q: int, pairs: set[tuple[int, int]]) -> bool:
        return all(
            any(u.target == t.target or (u.target, t.target) in pairs for u in self._firing(p, t))
            for t in self.leaving[q]
        )

    def _firing(self, p: int, t: Transition) -> Iterator[Transition]:
        return (u for u in self.leaving[p] if self._fires(u, t))

    def _fires(self, u: Transition, t: Transition) -> bool:
        """Whether u may fire whenever t does, begins no earlier, and writes the same values for later reads."""
        return (
            self._guards[id(u)] <= self._guards[id(t)]
            and (not u.labels or bool(t.labels))
            and self._written(u, u.target) == self._written(t, u.target)
        )

    def _written(self, t: Transition, state: int) -> list[Write]:
        return [write for write in t.writes if write.register in self._live[state]]
