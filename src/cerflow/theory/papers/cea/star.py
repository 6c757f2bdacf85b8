"""*-semantics: runs that jump over all events they do not label (P2 §5.2, Propositions 5.3 to 5.5)."""

from __future__ import annotations

from collections.abc import Iterator

from cerflow.automata.model.transducer import Transducer
from cerflow.base.complex_events import ComplexEvent
from cerflow.base.events import StreamGiven, as_stream
from cerflow.base.schema import Schema
from cerflow.logic.conditions.connectives import TRUE
from cerflow.theory.deciding.witnesses import Answer
from cerflow.theory.from_automata.star_semantics import matches_of_star_runs
from cerflow.theory.papers.model.automaton import SKIPPED, State, Successor, sorted_states
from cerflow.theory.papers.model.models import CEA, UCEA, FreeA, defined_for
from cerflow.theory.papers.model.runs import reported_matches
from cerflow.theory.papers.translations.equivalence import difference


def delete_unlabelled(automaton: FreeA) -> FreeA:
    """The automaton without the transitions that label nothing, which *-runs do not take (Proposition 5.4)."""
    return automaton.with_transitions(t for t in automaton.transitions if t.output)


@defined_for(CEA, UCEA)
def with_star_runs(automaton: FreeA) -> FreeA:
    """The automaton whose ordinary complex events are the complex events of the given one under *-semantics.

    Its states are pairs: (q, "◦") passes over any event, and final states (q, "•") are entered with a label.
    """
    kept = delete_unlabelled(automaton)

    def successors(place: tuple[State, str]) -> Iterator[Successor[tuple[State, str]]]:
        state, phase = place
        if phase == "•":
            return
        yield place, TRUE, SKIPPED, SKIPPED
        for t in kept.leaving(state):
            yield (t.target, "◦"), *t.effect
            if t.target in kept.finals:
                yield (t.target, "•"), *t.effect

    starts = [(q, "◦") for q in sorted_states(kept.starts)]
    return type(automaton).built(starts, successors, lambda place: place[1] == "•")


def star_matches(automaton: FreeA | Transducer, events: StreamGiven) -> frozenset[tuple[int, ComplexEvent]]:
    """``⟦A⟧*_n`` for all n: a *-run takes a labelling transition at each of some events, and the last of these is n.

    Raises `UnsupportedQueryError` for a transducer with registers.
    """
    if isinstance(automaton, Transducer):
        return frozenset(matches_of_star_runs(automaton, as_stream(events)))
    return reported_matches(with_star_runs(automaton), events)


@defined_for(CEA, UCEA)
def star_difference(automaton: FreeA, *, schema: Schema | None = None, steps: int | None = None) -> Answer:
    """Whether the automaton lacks the *-property, with a shortest stream that shows it (Prop. 5.4, Cor. 5.5).

    It has the property if it finds each complex event at its last event, and if complex events depend only on their own
    events. Exactly then it has the same ones under *-semantics, and some formula with ``;``, OR and ``+`` has them too.
    Options and errors are those of `difference`.
    """
    return difference(automaton, with_star_runs(automaton), schema=schema, steps=steps)
