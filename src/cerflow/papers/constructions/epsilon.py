"""Elimination of ε-transitions (004 Algorithm 2, Lemma 29), repaired according to erratum 11.3.

Transitions are grouped by condition, output *and* writes. The printed algorithm unites the writes of transitions that
agree in condition and output, which overwrites registers that one of them would have left alone. And only new sets of
states are visited, or a cycle would never end.
"""

from __future__ import annotations

from cerflow.language.condition import Condition
from cerflow.papers.model.models import SRT, defined_for
from cerflow.papers.model.srt import State, SymbolicRegisterTransducer, SymbolicTransition, sorted_states

__all__ = ["eliminate_epsilon"]

_Label = tuple[Condition, frozenset[str], frozenset[str]]


@defined_for(SRT)
def eliminate_epsilon(transducer: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The transducer without ε-transitions and with the same matches; its states are sets of the original ones."""
    start = _enclosed(transducer, {transducer.start})
    transitions: list[SymbolicTransition] = []
    found = {start}
    for state in (frontier := [start]):
        targets: dict[_Label, set[State]] = {}
        for inner in sorted_states(state):
            for t in transducer.leaving(inner):
                if t.condition is not None:
                    targets.setdefault((t.condition, t.output, t.writes), set()).add(t.target)
        for (condition, output, writes), reached in targets.items():
            target = _enclosed(transducer, reached)
            transitions.append(
                SymbolicTransition(source=state, target=target, condition=condition, output=output, writes=writes)
            )
            if target not in found:
                found.add(target)
                frontier.append(target)
    return SymbolicRegisterTransducer(
        states=frozenset(found),
        start=start,
        finals=frozenset(state for state in found if state & transducer.finals),
        transitions=tuple(transitions),
        registers=transducer.registers,
    )


def _enclosed(transducer: SymbolicRegisterTransducer, states: set[State]) -> frozenset[State]:
    """``Enclose``: the states reached by ε-transitions alone."""
    found = set(states)
    pending = list(states)
    while pending:
        for t in transducer.leaving(pending.pop()):
            if t.condition is None and t.target not in found:
                found.add(t.target)
                pending.append(t.target)
    return frozenset(found)
