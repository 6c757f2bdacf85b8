"""From transitions that write several registers to transitions that write one (004 Algorithm 3, line 3).

The papers do not show the construction; this is one solution. A state also records the register in which each content
is stored. So a write to several registers is stored once, and moving it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.theory.papers.model.automaton import Effect, State, TransitionLike, check_epsilon_free, fresh_names
from cerflow.theory.papers.model.conditions import rename_registers
from cerflow.theory.papers.model.models import RMA, SRT, RegisterA, defined_for


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
