"""Single runs of transducers, by definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cerflow.automata.model.runs import RunReader
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.base.events import ComplexEvent, Event, support


@dataclass(frozen=True)
class TransducerRun:
    """A run over the events 0 … ``end``: a transition for each, and the complex event of their labels."""

    transitions: tuple[Transition, ...]
    complex_event: ComplexEvent

    @property
    def end(self) -> int:
        """The position of the last event read."""
        return len(self.transitions) - 1


def accepting_runs(transducer: Transducer, events: Sequence[Event]) -> Iterator[TransducerRun]:
    """All runs that enter a final state with their last event, by length; there may be exponentially many."""
    reader = RunReader(transducer, events)
    current = [(TransducerRun((), frozenset()), state, reader.empty) for state in sorted(transducer.initial)]
    for position in range(len(events)):
        current = [
            (
                TransducerRun((*run.transitions, t), run.complex_event | reader.labelled(t, position)),
                t.target,
                after,
            )
            for run, state, memory in current
            for t, after in reader.steps(state, memory, position)
        ]
        yield from (run for run, state, _ in current if reader.accepts(state, support(run.complex_event)))
