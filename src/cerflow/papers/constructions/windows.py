"""A window on the marked events (004 Definition 39), for automata of all models, without unrolling them.

The papers unroll, which bounds the length of strings (erratum 11.6) and makes a tree. To exclude too long matches it is
enough to count the events since the first mark.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.papers.model.automaton import State, Way, sorted_states
from cerflow.papers.model.faults import AutomatonError
from cerflow.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, defined_for

__all__ = ["restrict_to_window"]


@defined_for(CEA, UCEA, SRT, RMA)
def restrict_to_window(automaton: AnyA, window: int) -> AnyA:
    """The matches M with max(M) - min(M) < ``window`` events, and the empty one.

    A state is a pair of a state and the number of events read since the first marked one, inclusive: 0 before it, and
    ``window`` + 1 once no further event may be marked.
    """
    if window < 1:
        raise AutomatonError("a window has at least one event")

    def ways(place: tuple[State, int]) -> Iterator[Way[tuple[State, int]]]:
        state, age = place
        for t in automaton.leaving(state):
            after = age if t.condition is None else min(age + 1, window + 1) if age or t.output else 0
            if not (t.output and after > window):
                yield (t.target, after), *t.effect

    starts = [(state, 0) for state in sorted_states(automaton.starts)]
    return type(automaton).built(starts, ways, lambda place: place[0] in automaton.finals, automaton.registers)
