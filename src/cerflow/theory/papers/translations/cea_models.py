"""Conversions between the two models without memory, and from transducers to both."""

from __future__ import annotations

from cerflow.theory.papers.constructions.epsilon import eliminate_epsilon
from cerflow.theory.papers.model.automaton import Automaton, State
from cerflow.theory.papers.model.cea import ComplexEventAutomaton, UnaryComplexEventAutomaton
from cerflow.theory.papers.model.faults import NotMemorylessError
from cerflow.theory.papers.model.models import CEA, defined_for
from cerflow.theory.papers.model.srt import as_transducer


def as_unary_automaton(automaton: Automaton) -> UnaryComplexEventAutomaton:
    """The UCEA with the same complex events.

    In a `ComplexEventAutomaton`, • becomes the label "event", and only • enters final states. For a transducer or a
    register match automaton, C is in ``⟦A⟧_n`` if it is among the `matches` of the events 0 … n. Raises
    `NotMemorylessError` if a condition reads a register; registers that are only written are left out.
    """
    if isinstance(automaton, ComplexEventAutomaton):
        automaton = with_marked_ends(automaton)
    return _without_registers(automaton).as_model(UnaryComplexEventAutomaton)


def as_complex_event_automaton(automaton: Automaton) -> ComplexEventAutomaton:
    """The CEA that marks the events that the other automaton labels: its complex events are the supports of the others.

    As the model requires, only complex events that end with the last event read count. Raises `NotMemorylessError` if a
    condition reads a register.
    """
    return _without_registers(automaton).as_model(ComplexEventAutomaton)


@defined_for(CEA)
def with_marked_ends(automaton: ComplexEventAutomaton) -> ComplexEventAutomaton:
    """The same complex events, with final states that only • enters, as erratum E4 requires.

    Automata compiled from formulas already have this form. Otherwise there are new final states without outgoing
    transitions: the pairs (q, "•").
    """
    ends = [t for t in automaton.transitions if t.target in automaton.finals]
    if all(t.marks for t in ends):
        return automaton
    copies: dict[State, State] = {q: (q, "•") for q in automaton.finals}
    marked = (t.between(t.source, copies[t.target]) for t in ends if t.marks)
    return automaton.with_transitions((*automaton.transitions, *marked), finals=copies.values())


def _without_registers(automaton: Automaton) -> Automaton:
    if not automaton.model.anywhere:
        return automaton
    transducer = eliminate_epsilon(as_transducer(automaton)).renumbered()
    for register in sorted(transducer.read):
        raise NotMemorylessError(f"a condition reads register {register}; only automata without memory have none")
    return transducer
