"""Completion and complement of a deterministic automaton (004 Algorithm 8, Corollary 43), disregarding output.

Erratum 11.11: the dead state is final in the complement. The automaton must be deterministic: otherwise some run of an
accepted string may end in a state that is not final.
"""

from __future__ import annotations

from dataclasses import replace

from cerflow.conditions.connectives import TRUE, conjunction
from cerflow.papers.constructions.determinism import is_deterministic
from cerflow.papers.constructions.determinize import determinize_windowed
from cerflow.papers.constructions.minterms import exhaustive
from cerflow.papers.model.conditions import not_satisfied
from cerflow.papers.model.faults import NotDeterministicError
from cerflow.papers.model.models import CEA, SRT, UCEA, defined_for
from cerflow.papers.model.srt import (
    State,
    SymbolicRegisterTransducer,
    SymbolicTransition,
    check_epsilon_free,
    fresh_names,
    sorted_states,
)

__all__ = ["complement", "complement_windowed", "complete"]


@defined_for(SRT)
def complete(transducer: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The same with a state "dead" for all events that no transition reads; unchanged if there are none."""
    check_epsilon_free(transducer)
    dead: State = "dead"
    if dead in transducer.states:
        dead = next(fresh_names((q for q in transducer.states if isinstance(q, str)), "dead"))
    added: list[SymbolicTransition] = []
    for state in sorted_states(transducer.states):
        conditions = [t.condition for t in transducer.leaving(state) if t.condition is not None]
        if not exhaustive(conditions):
            left = conjunction([not_satisfied(condition) for condition in conditions])
            added.append(SymbolicTransition(source=state, target=dead, condition=left))
    if not added:
        return transducer
    added.append(SymbolicTransition(source=dead, target=dead, condition=TRUE))
    return replace(transducer, states=transducer.states | {dead}, transitions=(*transducer.transitions, *added))


@defined_for(CEA, UCEA, SRT)
def complement(transducer: SymbolicRegisterTransducer) -> SymbolicRegisterTransducer:
    """The automaton that accepts exactly the other strings, marking nothing.

    Raises `NotDeterministicError` unless the transducer is certain to be deterministic.
    """
    if not is_deterministic(transducer):
        raise NotDeterministicError("only a deterministic automaton can be complemented by exchanging its final states")
    whole = complete(transducer).without_output()
    return replace(whole, finals=whole.states - whole.finals)


@defined_for(SRT)
def complement_windowed(transducer: SymbolicRegisterTransducer, window: int) -> SymbolicRegisterTransducer:
    """The automaton that accepts what ``T`` does not, and every string of more than ``window`` events."""
    return complement(determinize_windowed(transducer, window))
