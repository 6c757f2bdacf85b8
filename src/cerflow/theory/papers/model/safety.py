"""Facts about all paths to a state: register safety (003 §4), and "appears on every trail" (003 Algorithm 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import and_
from typing import Protocol, TypeVar

from cerflow.base.graphs import settled_values
from cerflow.theory.papers.model.automaton import Automaton, State, TransitionLike
from cerflow.theory.papers.model.conditions import register_selection


class _Arc(Protocol):
    @property
    def source(self) -> State: ...
    @property
    def target(self) -> State: ...


T = TypeVar("T", bound=_Arc)


def on_every_trail(
    starts: Iterable[State], transitions: Iterable[T], gives: Callable[[T], frozenset[str]]
) -> dict[State, frozenset[str]]:
    """For every reachable state, the items that every path to it gives.

    A trail enters no state twice, but the items of every trail are also those of every walk. So this is the greatest
    solution of the equations of all transitions.
    """
    return settled_values(
        dict.fromkeys(starts, frozenset[str]()),
        ((t.source, t.target, t) for t in transitions),
        lambda t, before: before | gives(t),
        and_,
    )


def unsafe_reads(automaton: Automaton) -> Iterator[tuple[TransitionLike, str]]:
    """Transitions and registers that they read although some path to them does not write these."""
    written = on_every_trail(automaton.starts, automaton.transitions, lambda t: t.writes)
    for t in automaton.transitions:
        if t.condition is not None and t.source in written:
            for register in register_selection(t.condition):
                if register not in written[t.source]:
                    yield t, register


def is_register_safe(automaton: Automaton) -> bool:
    """Whether every register that is read has been written before, on every run."""
    return next(unsafe_reads(automaton), None) is None
