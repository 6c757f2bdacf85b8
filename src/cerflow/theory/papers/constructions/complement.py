"""Completion and complement of a deterministic automaton (004 Algorithm 8, Corollary 43), disregarding output.

Erratum 11.11: the dead state is final in the complement. The automaton must be deterministic: otherwise some run of an
accepted string may end in a state that is not final.
"""

from __future__ import annotations

from cerflow.logic.conditions.connectives import TRUE, conjunction
from cerflow.theory.papers.constructions.determinism import is_deterministic
from cerflow.theory.papers.constructions.determinize import determinize_windowed
from cerflow.theory.papers.constructions.minterms import exhaustive
from cerflow.theory.papers.model.automaton import SKIPPED, State, check_epsilon_free, fresh_names, sorted_states
from cerflow.theory.papers.model.conditions import not_satisfied
from cerflow.theory.papers.model.faults import NotDeterministicError
from cerflow.theory.papers.model.models import CEA, RMA, SRT, UCEA, AnyA, RegisterA, defined_for


@defined_for(CEA, UCEA, SRT, RMA)
def complete(automaton: AnyA) -> AnyA:
    """The same with a state "dead" for all events that no transition reads; unchanged if there are none."""
    check_epsilon_free(automaton)
    dead: State = "dead" if "dead" not in automaton.states else next(fresh_names(automaton.states, "dead"))
    added = []
    for state in sorted_states(automaton.states):
        conditions = [t.guard for t in automaton.leaving(state)]
        if not exhaustive(conditions):
            left = conjunction([not_satisfied(condition) for condition in conditions])
            added.append(automaton.transition(state, dead, left, SKIPPED))
    if not added:
        return automaton
    added.append(automaton.transition(dead, dead, TRUE, SKIPPED))
    return automaton.with_transitions((*automaton.transitions, *added))


@defined_for(CEA, UCEA, SRT, RMA)
def complement(automaton: AnyA) -> AnyA:
    """The automaton that accepts exactly the other strings, marking nothing; `io_complement` has the other matches.

    Raises `NotDeterministicError` unless the automaton is certain to be deterministic.
    """
    if not is_deterministic(automaton):
        raise NotDeterministicError(
            "only a deterministic automaton can be complemented by exchanging its final states; "
            "io_complement(…) and complement_windowed(…) make it deterministic first"
        )
    whole = complete(automaton).without_output()
    return whole.with_transitions(whole.transitions, finals=whole.states - whole.finals)


@defined_for(SRT, RMA)
def complement_windowed(automaton: RegisterA, window: int) -> RegisterA:
    """The automaton that accepts what ``T`` does not, and every string of more than ``window`` events."""
    return complement(determinize_windowed(automaton, window))
