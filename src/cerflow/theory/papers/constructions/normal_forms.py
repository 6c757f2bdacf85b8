"""Forms of automata that constructions need: within a window, unrolled, without ε, with few writes to registers.

A window bounds the *marked* events (004 Definition 39). The papers unroll an automaton for it, which bounds the length
of strings and makes a tree. The two agree only if every accepted string begins and ends with a marked event (erratum
11.6). To exclude too long matches it is enough to count the events since the first mark.

Of registers it matters whether they are written before they are read (003 §4), and how long they remember. Also the
automata of the literature that a transducer is an instance of (004 §2.1, App. A.7), by what it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from operator import and_, or_
from typing import Any, Generic

from cerflow.base import limits
from cerflow.base.errors import expect
from cerflow.base.graphs import gathered, settled_values
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.automaton import State, rename_registers, sorted_states
from cerflow.language.formula import AttributeWindow, DurationWindow, Window
from cerflow.language.node import walk
from cerflow.logic.conditions.connectives import conjunction, conjuncts
from cerflow.theory.deciding.witnesses import Budget
from cerflow.theory.papers.model.automaton import Automaton, Effect, Successor, TransitionLike, fresh_names
from cerflow.theory.papers.model.conditions import register_selection
from cerflow.theory.papers.model.faults import AutomatonError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, RegisterA, defined_for

__all__ = ["AutomatonKind", "Unrolled", "eliminate_epsilon", "is_register_safe", "kinds", "on_every_trail"]
__all__ += ["restrict_to_window", "to_single_register", "unroll", "unsafe_reads"]


def steps_allowed(most: int | None) -> Budget:
    """The budget of a construction: ``most`` steps, by default `limits.PAPER_STEPS`."""
    return Budget(limits.PAPER_STEPS if most is None else most)


def check_window(window: int, least: int = 1) -> None:
    """Raise `ArgumentError` or `AutomatonError` for what is no window of at least so many events."""
    expect(window, int, "a window must be a whole number of events")
    if window < least:
        few = "has at least one event" if least else "cannot have a negative number of events"
        raise AutomatonError(f"a window {few}")


@defined_for(CEA, UCEA, SRT, RMA)
def restrict_to_window(automaton: AnyA, window: int) -> AnyA:
    """The matches M with max(M) - min(M) < ``window`` events, and the empty one.

    A state is a pair of a state and the number of events read since the first marked one, inclusive: 0 before it, and
    ``window`` + 1 once no further event may be marked.
    """
    check_window(window)

    def step(age: int, t: TransitionLike) -> Iterator[tuple[int, Effect]]:
        after = age if t.condition is None else min(age + 1, window + 1) if age or t.output else 0
        if not (t.output and after > window):
            yield after, t.effect

    return automaton.tracked(0, step, registers=automaton.registers)


@defined_for(SRT)
def restrict_to_extent(transducer: SRT, window: Window, register: str) -> SRT:
    """The matches M whose last event is within a window, of time or of an attribute, of the first; and the empty one.

    The first marked event is kept in ``register``, which must be new. A state is a pair of a state and 0 before the
    first mark, 1 while another one must follow, 2 after the last one, which alone is compared with the first.
    """

    def step(phase: int, t: TransitionLike) -> Iterator[tuple[int, Effect]]:
        condition, output, writes = t.effect
        if condition is None or not output:
            yield phase, t.effect
        elif phase < 2:
            yield 1, (condition, output, writes if phase else writes | {register})
            test = conjunction([*conjuncts(condition), _in_window(window, register if phase else None)])
            yield 2, (test, output, writes)

    return transducer.tracked(0, step, lambda phase: phase != 1)


def _in_window(window: Window, first: str | None) -> c.Condition:
    """Whether the event read lies in the window that begins with the event in a register, or with itself."""
    match window:
        case DurationWindow(microseconds):
            values: list[c.Expression] = [c.Function("time", (c.LabelReference(r),)) for r in (None, first)]
            size = c.Literal(timedelta(microseconds=microseconds))
        case AttributeWindow(bound, attribute):
            values = [c.Attribute(r, attribute) for r in (None, first)]
            size = c.Literal(bound)
        case _:
            raise TypeError(f"{type(window).__name__} measures no values")
    return c.Comparison(Operator.LT, c.Arithmetic("-", *values), size)


@defined_for(SRT, RMA)
def eliminate_epsilon(automaton: RegisterA) -> RegisterA:
    """The automaton without ε-transitions and with the same matches; its states are sets of the original ones.

    004 Algorithm 2 and Lemma 29, repaired according to erratum 11.3: transitions are grouped by condition, output *and*
    writes. The printed algorithm unites the writes of transitions that agree in condition and output, which overwrites
    registers that one of them would have left alone. And only new sets of states are visited, or a cycle would never
    end.
    """

    def successors(place: frozenset[State]) -> Iterator[Successor[frozenset[State]]]:
        leaving = (t for inner in sorted_states(place) for t in automaton.leaving(inner) if t.condition is not None)
        for effect, targets in gathered((t.effect, t.target) for t in leaving).items():
            yield automaton.enclosed(targets), *effect

    start = automaton.enclosed(automaton.starts)
    return automaton.built([start], successors, lambda q: not q.isdisjoint(automaton.finals), automaton.registers)


@dataclass(frozen=True)
class Unrolled(Generic[RegisterA]):
    """An unrolled automaton: ``CopyOfQ`` and ``CopyOfR`` map its states and registers to their originals.

    A copy of a register that replaces writes to several registers is a copy of all of them.
    """

    transducer: RegisterA
    state_of: Mapping[State, State]
    registers_of: Mapping[str, frozenset[str]]

    def walk(self, state: State) -> tuple[State, ...]:
        """The original states on the path to a state, as the papers name it."""
        parent = {t.target: t.source for t in self.transducer.transitions}
        found = [state]
        while found[-1] in parent:
            found.append(parent[found[-1]])
        return tuple(self.state_of[q] for q in reversed(found))


@defined_for(SRT, RMA)
def unroll(automaton: RegisterA, window: int, *, prune: bool = True, most: int | None = None) -> Unrolled[RegisterA]:
    """All walks of at most ``window`` events, as a tree with states 0, 1, … by length; one for each start state.

    One transition enters each state, one transition writes each register, and walks do not meet again (004 Algorithms 3
    to 6, 003 Algorithms 5 to 7). Strings of at most ``window`` events keep their matches; longer ones have none. With
    ``prune`` walks that cannot reach a final state are left out, except the start. A register that a walk has not
    written is read as the register of that name outside the tree, which is empty unless the tree is part of something
    larger. Raises `EpsilonFreeError` for an automaton with ε-transitions, and `UnsupportedQueryError` if there would be
    more than ``most`` states.
    """
    automaton.refuse_epsilon()
    check_window(window, 0)
    budget = steps_allowed(most)
    # The least number of events from a state to a final one.
    useful = settled_values(
        dict.fromkeys(automaton.finals, 0),
        ((t.target, t.source, None) for t in automaton.transitions),
        lambda _, events: events + 1,
        min,
    )
    names = fresh_names(automaton.registers)
    copy_of: dict[State, State] = dict(enumerate(sorted_states(automaton.starts)))
    registers_of: dict[str, frozenset[str]] = {}
    # The number of events to each copy, and `FindLastAppearance`, stored for the whole path to it.
    paths: dict[State, tuple[int, Mapping[str, str]]] = {start: (0, {}) for start in copy_of}

    def successors(state: State) -> Iterator[Successor[State]]:
        events, latest = paths[state]
        for t in automaton.leaving(copy_of[state]) if events < window else ():
            if prune and useful.get(t.target, window) >= window - events:
                continue
            budget.spend()
            new = len(copy_of)
            copy_of[new] = t.target
            after, writes = latest, frozenset[str]()
            if t.writes:
                register = next(names)
                registers_of[register] = t.writes
                writes = frozenset((register,))
                after = {**latest, **dict.fromkeys(t.writes, register)}
            paths[new] = events + 1, after
            yield new, rename_registers(t.guard, latest), t.output, writes

    tree = automaton.built([*copy_of], successors, lambda q: copy_of[q] in automaton.finals)
    outer = sorted(tree.read - registers_of.keys())
    tree = tree.with_transitions(tree.transitions, registers=(*registers_of, *outer))
    return Unrolled(tree, copy_of, registers_of)


class AutomatonKind(StrEnum):
    """Special cases of symbolic register transducers."""

    SYMBOLIC = "symbolic automaton"  # no registers, no output
    SYMBOLIC_REGISTER = "symbolic register automaton"  # no output
    REGISTER = "register automaton"  # no output; registers are only compared with the event by = and ≠
    MATCH = "match automaton"  # no registers


@defined_for(SRT, RMA)
def kinds(transducer: Automaton) -> frozenset[AutomatonKind]:
    """The special cases that a transducer belongs to; a register that is never read does not count."""
    silent = not any(t.output for t in transducer.transitions)
    free = not transducer.read
    compares = all(t.condition is None or _compares_with_registers(t.condition) for t in transducer.transitions)
    found = {
        AutomatonKind.MATCH: free,
        AutomatonKind.SYMBOLIC_REGISTER: silent,
        AutomatonKind.SYMBOLIC: silent and free,
        AutomatonKind.REGISTER: silent and compares,
    }
    return frozenset(kind for kind, belongs in found.items() if belongs)


_COMBINING = (c.And, c.Or, c.Not, c.Constant)


def _compares_with_registers(condition: c.Condition) -> bool:
    """Whether a condition only tests whether the event equals the contents of registers."""
    atoms = (n for n in walk(condition) if isinstance(n, c.Condition) and not isinstance(n, _COMBINING))
    equalities = (Operator.EQ, Operator.NE)
    return all(isinstance(n, c.Comparison) and n.operator in equalities and register_selection(n) for n in atoms)


def on_every_trail(
    starts: Iterable[State], transitions: Iterable[Any], gives: Callable[[Any], frozenset[str]]
) -> dict[State, frozenset[str]]:
    """For every reachable state, the items that every path to it gives (003 Algorithm 3).

    A trail enters no state twice, but the items of every trail are also those of every walk. So this is the greatest
    solution of the equations of all transitions.
    """
    return settled_values(
        dict.fromkeys(starts, frozenset[str]()),
        ((t.source, t.target, t) for t in transitions),
        lambda t, before: before | gives(t),
        and_,
    )


def unsafe_reads(automaton: Automaton) -> Iterator[tuple[TransitionLike, str]]:
    """Transitions and registers that they read although some path to them does not write these."""
    written = on_every_trail(automaton.starts, automaton.transitions, lambda t: t.writes)
    for t in automaton.transitions:
        if t.condition is not None and t.source in written:
            yield from ((t, r) for r in register_selection(t.condition) if r not in written[t.source])


def is_register_safe(automaton: Automaton) -> bool:
    """Whether every register that is read has been written before, on every run."""
    return next(unsafe_reads(automaton), None) is None


def without_idle_writes(automaton: AnyA) -> AnyA:
    """The same without writes that no run reads before the register is written again."""
    live = _live(automaton)
    return automaton.rewritten(lambda t: (t.condition, t.output, t.writes & live[t.target]))


def _live(automaton: Automaton) -> Mapping[State, frozenset[str]]:
    """The registers that are read after each state before they are written again."""
    return settled_values(
        dict.fromkeys(automaton.states, frozenset[str]()),
        ((t.target, t.source, t) for t in automaton.transitions),
        lambda t, after: (after - t.writes).union(t.reads),
        or_,
    )


def events_remembered(transducer: SRT) -> int | None:
    """The most events from a write (exclusive) to a read of what it wrote (inclusive), and at least 1.

    None if there may be any number.
    """
    live = _live(transducer)
    kept = [(t, r) for t in transducer.transitions for r in live[t.target] - t.writes]
    # A longer way enters some state twice with the same event, and may do so again.
    most = len({(t.target, r) for t, r in kept}) + 1
    held = settled_values(
        {(t.target, r): 1 for t in transducer.transitions for r in t.writes & live[t.target]},
        (((t.source, r), (t.target, r), None) for t, r in kept),
        lambda _, events: min(events + 1, most + 1),
        max,
    )
    longest = max(held.values(), default=1)
    return None if longest > most else longest


#: The number of the next register, and that of the register with the event of each own register.
_Held = tuple[int, tuple[tuple[str, int], ...]]


def in_turn(transducer: SRT, registers: Sequence[str]) -> SRT:
    """The same runs, with the n-th event kept in the n-th of these registers, counted round and round.

    Each of them holds the same event in all runs over a string, so a subset construction may share them. There must be
    as many as `events_remembered` says. A register that a run has not written keeps its name.
    """
    live = _live(transducer)

    def step(place: _Held, t: TransitionLike) -> Iterator[tuple[_Held, Effect]]:
        turn, held = place
        condition = rename_registers(t.guard, {own: registers[k] for own, k in held})
        now = {**dict(held), **dict.fromkeys(t.writes, turn)}
        after = tuple(sorted((own, k) for own, k in now.items() if own in live[t.target]))
        writes = frozenset(registers[turn : turn + 1]) if t.writes & live[t.target] else frozenset[str]()
        yield ((turn + 1) % len(registers), after), (condition, t.output, writes)

    begin: _Held = 0, ()
    return transducer.tracked(begin, step)


@defined_for(SRT, RMA)
def to_single_register(automaton: RegisterA) -> RegisterA:
    """The automaton with the same matches in which a transition writes at most one register (004 Algorithm 3, line 3).

    The papers do not show the construction. A state ``(q, (p1, …, pk))`` says that the content of the i-th register is
    stored in ``pi``, or that it is empty: then ``pi`` names a register that is never written. So a write to several
    registers is stored once, moving it costs nothing, and the number of registers stays the same. An automaton that
    already has this form is returned as it is. Raises `EpsilonFreeError` for one with ε-transitions.
    """
    automaton.refuse_epsilon()
    if all(len(t.writes) <= 1 for t in automaton.transitions):
        return automaton
    logical = automaton.registers
    names = fresh_names(logical)
    physical = [next(names) for _ in logical]
    empty = next(names)

    def step(places: tuple[State, ...], t: TransitionLike) -> Iterator[tuple[tuple[State, ...], Effect]]:
        where = {r: str(p) for r, p in zip(logical, places)}
        after = dict(where)
        writes: frozenset[str] = frozenset()
        if t.writes:
            kept = {where[r] for r in logical if r not in t.writes}
            free = next(p for p in physical if p not in kept)
            after.update(dict.fromkeys(t.writes, free))
            writes = frozenset((free,))
        yield tuple(after[r] for r in logical), (rename_registers(t.guard, where), t.output, writes)

    begin: tuple[State, ...] = (empty,) * len(logical)
    return automaton.tracked(begin, step)
