"""What automata do with registers: register safety (003 §4), how long they remember, and fewer writes.

Also the automata of the literature that a transducer is an instance of (004 §2.1, App. A.7), by what it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from operator import and_, or_
from typing import Any

from cerflow.base.graphs import settled_values
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.automaton import State, rename_registers
from cerflow.language.node import walk
from cerflow.theory.papers.model.automaton import Automaton, Effect, TransitionLike, fresh_names
from cerflow.theory.papers.model.conditions import register_selection
from cerflow.theory.papers.model.models import RMA, SRT, AnyA, RegisterA, defined_for


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
