"""From transitions that write several registers to transitions that write one (004 Algorithm 3, line 3).

The papers do not show the construction; this is one solution. A state also records the register in which each content
is stored. So a write to several registers is stored once, and moving it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.papers.model.automaton import State, Successor, check_epsilon_free, fresh_names, sorted_states
from cerflow.papers.model.conditions import rename_registers
from cerflow.papers.model.models import RMA, SRT, RegisterA, defined_for

#: A state, and the register in which the content of each register is stored.
_Place = tuple[State, tuple[State, ...]]


@defined_for(SRT, RMA)
def to_single_register(automaton: RegisterA) -> RegisterA:
    """The automaton with the same matches in which a transition writes at most one register.

    A state ``(q, (p1, …, pk))`` says that the content of the i-th register is stored in ``pi``, or that it is empty:
    then ``pi`` names a register that is never written. The number of registers stays the same. An automaton that
    already has this form is returned as it is. Raises `EpsilonFreeError` for one with ε-transitions.
    """
    check_epsilon_free(automaton)
    if all(len(t.writes) <= 1 for t in automaton.transitions):
        return automaton
    logical = automaton.registers
    names = fresh_names(logical)
    physical = [next(names) for _ in logical]
    empty = next(names)

    def successors(place: _Place) -> Iterator[Successor[_Place]]:
        state, places = place
        where = {r: str(p) for r, p in zip(logical, places)}
        for t in automaton.leaving(state):
            after = dict(where)
            writes: frozenset[str] = frozenset()
            if t.writes:
                kept = {where[r] for r in logical if r not in t.writes}
                free = next(p for p in physical if p not in kept)
                after.update(dict.fromkeys(t.writes, free))
                writes = frozenset((free,))
            target: _Place = (t.target, tuple(after[r] for r in logical))
            yield target, rename_registers(t.guard, where), t.output, writes

    starts: list[_Place] = [(state, (empty,) * len(logical)) for state in sorted_states(automaton.starts)]
    return type(automaton).built(starts, successors, lambda place: place[0] in automaton.finals, None)
