"""The symbolic register transducer (SRT; 004 Definition 21), and the reading of other automata as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from cerflow.language.automaton import Model
from cerflow.language.condition import Condition
from cerflow.theory.papers.model.automaton import (
    SKIPPED,
    Automaton,
    Effect,
    RegisterAutomaton,
    State,
    TransitionLike,
    fresh_names,
    sorted_states,
)
from cerflow.theory.papers.model.conditions import settle_condition


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicTransition(TransitionLike):
    """``source, condition ↑ output ↓ writes → target``; the condition, which may be given as text, None is ε."""

    source: State
    target: State
    condition: Condition | None = None
    output: frozenset[str] = SKIPPED
    writes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        settle_condition(self)

    @classmethod
    def of_effect(cls, source: State, target: State, effect: Effect) -> Self:
        """A transition of this model."""
        condition, output, writes = effect
        return cls(source=source, target=target, condition=condition, output=output, writes=writes)


@dataclass(frozen=True, kw_only=True)
class SymbolicRegisterTransducer(RegisterAutomaton):
    """``T = (Q, q_s, Q_f, R, Δ)``; also the SRA, by ignoring outputs.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    starts: frozenset[State] = field(init=False, repr=False, compare=False)
    start: State
    transitions: tuple[SymbolicTransition, ...] = ()

    model: ClassVar[Model] = Model.SRT
    _KIND: ClassVar[type[TransitionLike]] = SymbolicTransition

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", frozenset((self.start,)))
        super().__post_init__()

    @classmethod
    def of(  # type: ignore[override]
        cls,
        transitions: Iterable[SymbolicTransition],
        *,
        start: State,
        finals: Iterable[State],
        registers: Iterable[str] | None = None,
    ) -> Self:
        """The transducer with these transitions (once each), the states they name, and the registers they use."""
        return cls._with(transitions, (start,), finals, registers)

    @classmethod
    def of_parts(cls, **parts: Any) -> Self:
        """The automaton of these parts; unless there is one start, a new one has ε-transitions to them."""
        starts = parts.pop("starts")
        if len(starts) == 1:
            return cls(start=next(iter(starts)), **parts)
        start = next(fresh_names(parts["states"], "start"))
        parts["states"] |= {start}
        parts["transitions"] += tuple(SymbolicTransition(source=start, target=q) for q in sorted_states(starts))
        return cls(start=start, **parts)


def as_transducer(automaton: Automaton) -> SymbolicRegisterTransducer:
    """The SRT with the same runs as an automaton; several start states become one new state with ε to each."""
    return automaton.as_model(SymbolicRegisterTransducer)
