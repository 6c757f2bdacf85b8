"""How long automata with registers remember an event: idle writes, and registers that the runs of a set can share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from operator import or_

from cerflow.base.graphs import settled_values
from cerflow.language.automaton import rename_registers
from cerflow.theory.papers.model.automaton import Effect, State, TransitionLike
from cerflow.theory.papers.model.models import AnyA
from cerflow.theory.papers.model.srt import SymbolicRegisterTransducer

#: The number of the next register, and that of the register with the event of each own register.
_Held = tuple[int, tuple[tuple[str, int], ...]]


def without_idle_writes(automaton: AnyA) -> AnyA:
    """The same without writes that no run reads before the register is written again."""
    live = _live(automaton)
    return automaton.rewritten(lambda t: (t.condition, t.output, t.writes & live[t.target]))


def _live(automaton: AnyA) -> Mapping[State, frozenset[str]]:
    """The registers that are read after each state before they are written again."""
    return settled_values(
        dict.fromkeys(automaton.states, frozenset[str]()),
        ((t.target, t.source, t) for t in automaton.transitions),
        lambda t, after: (after - t.writes).union(t.reads),
        or_,
    )


def events_remembered(transducer: SymbolicRegisterTransducer) -> int | None:
    """The most events from a write (exclusive) to a read of what it wrote (inclusive), and at least 1.

    None if there may be any number.
    """
    live = _live(transducer)
    held = {(t.target, r): 1 for t in transducer.transitions for r in t.writes & live[t.target]}
    order: TopologicalSorter[tuple[State, str]] = TopologicalSorter()
    for state, register in (frontier := list(held)):
        for t in transducer.leaving(state):
            after = (t.target, register)
            if register in live[t.target] - t.writes:
                order.add(after, (state, register))
                if after not in held:
                    held[after] = 1
                    frontier.append(after)
    try:
        for state, register in order.static_order():
            for t in transducer.leaving(state):
                if register in live[t.target] - t.writes:
                    held[t.target, register] = max(held[t.target, register], held[state, register] + 1)
    except CycleError:
        return None
    return max(held.values(), default=1)


def in_turn(transducer: SymbolicRegisterTransducer, registers: Sequence[str]) -> SymbolicRegisterTransducer:
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
