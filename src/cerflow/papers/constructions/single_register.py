"""From transitions that write several registers to transitions that write one (004 Algorithm 3, line 3).

The papers do not show the construction; this is one solution. A state also records the register in which each content
is stored. So a write to several registers is stored once, and moving it costs nothing.
"""

from __future__ import annotations

from cerflow.papers.model.conditions import rename_registers
from cerflow.papers.model.models import SRT, defined_for
from cerflow.papers.model.srt import (
    State,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    check_epsilon_free,
    fresh_names,
)

__all__ = ["to_single_register"]


@defined_for(SRT)
def to_single_register(transducer: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The transducer with the same matches in which a transition writes at most one register.

    A state ``(q, (p1, …, pk))`` says that the content of the i-th register is stored in ``pi``, or that it is empty:
    then ``pi`` names a register that is never written. The number of registers stays the same. A transducer that
    already has this form is returned as it is. Raises `EpsilonFreeError` for one with ε-transitions.
    """
    check_epsilon_free(transducer)
    if all(len(t.writes) <= 1 for t in transducer.transitions):
        return transducer
    logical = transducer.registers
    names = fresh_names(logical)
    physical = [next(names) for _ in logical]
    empty = next(names)
    start: tuple[State, tuple[State, ...]] = (transducer.start, (empty,) * len(logical))
    transitions: list[SymbolicTransition] = []
    found = {start}
    for here in (frontier := [start]):
        state, places = here
        where = {r: str(p) for r, p in zip(logical, places)}
        for t in transducer.leaving(state):
            assert t.condition is not None
            after = dict(where)
            writes: frozenset[str] = frozenset()
            if t.writes:
                kept = {where[r] for r in logical if r not in t.writes}
                free = next(p for p in physical if p not in kept)
                after.update(dict.fromkeys(t.writes, free))
                writes = frozenset((free,))
            target: tuple[State, tuple[State, ...]] = (t.target, tuple(after[r] for r in logical))
            transitions.append(
                SymbolicTransition(
                    source=here,
                    target=target,
                    condition=rename_registers(t.condition, where),
                    output=t.output,
                    writes=writes,
                )
            )
            if target not in found:
                found.add(target)
                frontier.append(target)
    return SymbolicRegisterTransducer.of(
        transitions,
        start=start,
        finals=(here for here in found if here[0] in transducer.finals),
    )
