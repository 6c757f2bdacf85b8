"""A window on the marked events (004 Definition 39), for any transducer, without unrolling it.

The papers unroll, which bounds the length of strings (erratum 11.6) and makes a tree. To exclude too long matches it is
enough to count the events since the first mark.
"""

from __future__ import annotations

from dataclasses import replace

from cerflow.papers.model.faults import AutomatonError
from cerflow.papers.model.models import SRT, defined_for
from cerflow.papers.model.srt import State, SymbolicRegisterTransducer, SymbolicTransition

__all__ = ["restrict_to_window"]


@defined_for(SRT)
def restrict_to_window(transducer: SymbolicRegisterTransducer, window: int) -> SymbolicRegisterTransducer:
    """The matches M with max(M) - min(M) < ``window`` events, and the empty one.

    A state is a pair of a state and the number of events read since the first marked one, inclusive: 0 before it, and
    ``window`` + 1 once no further event may be marked.
    """
    if window < 1:
        raise AutomatonError("a window has at least one event")
    start: tuple[State, int] = (transducer.start, 0)
    transitions: list[SymbolicTransition] = []
    found = {start}
    for here in (frontier := [start]):
        state, age = here
        for t in transducer.leaving(state):
            after = age if t.condition is None else min(age + 1, window + 1) if age or t.output else 0
            if t.output and after > window:
                continue
            target = (t.target, after)
            transitions.append(replace(t, source=here, target=target))
            if target not in found:
                found.add(target)
                frontier.append(target)
    return SymbolicRegisterTransducer(
        states=frozenset(found),
        start=start,
        finals=frozenset(here for here in found if here[0] in transducer.finals),
        transitions=tuple(transitions),
        registers=transducer.registers,
    )
