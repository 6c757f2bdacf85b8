"""Complex event automata (CEA; P1 §6), which mark events, and unary ones (UCEA; P2 §5.1), which label them.

Both have several start states, and conditions on the current event alone. They differ in the output of a transition (•
or ◦ in a CEA, a set of labels in a UCEA), and in the end of runs: an accepting run of a CEA has marked the last event
it read (so nothing depends on the future), a run of a UCEA need not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

from cerflow.language.automaton import Model
from cerflow.language.condition import Condition
from cerflow.logic.conditions.connectives import TRUE
from cerflow.theory.papers.model.automaton import MARKED, SKIPPED, Automaton, Effect, State, TransitionLike
from cerflow.theory.papers.model.conditions import settle_condition
from cerflow.theory.papers.model.faults import EpsilonTransitionError, LabelSetError


class _MemorylessTransition(TransitionLike):
    """What the transitions of both automata have."""

    __slots__ = ()

    def __post_init__(self) -> None:
        settle_condition(self)
        if self.condition is None:
            raise EpsilonTransitionError("every transition needs a condition here; TRUE always holds")

    @property
    def writes(self) -> frozenset[str]:
        """Nothing: there are no registers."""
        return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplexEventTransition(_MemorylessTransition):
    """``(source, P, m, target)``: an event that satisfies the condition is marked (•), or only read (◦)."""

    source: State
    target: State
    condition: Condition = TRUE
    marks: bool = False

    @classmethod
    def of_effect(cls, source: State, target: State, effect: Effect) -> Self:
        """A transition that marks its event if there is any output; what it writes is left out."""
        return cls(source=source, target=target, condition=cast(Condition, effect[0]), marks=bool(effect[1]))

    @property
    def output(self) -> frozenset[str]:
        """The label "event" for •, none for ◦."""
        return MARKED if self.marks else SKIPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryComplexEventTransition(_MemorylessTransition):
    """``(source, P, L, target)``: an event that satisfies the condition gets the labels L, possibly none."""

    source: State
    target: State
    condition: Condition = TRUE
    labels: frozenset[str] = SKIPPED

    def __post_init__(self) -> None:
        _MemorylessTransition.__post_init__(self)
        if not isinstance(self.labels, frozenset) or not all(isinstance(label, str) for label in self.labels):
            raise LabelSetError(f"the labels of a transition are a frozenset of names, not {self.labels!r}")

    @classmethod
    def of_effect(cls, source: State, target: State, effect: Effect) -> Self:
        """A transition that gives its event the labels of the output; what it writes is left out."""
        return cls(source=source, target=target, condition=cast(Condition, effect[0]), labels=effect[1])

    @property
    def output(self) -> frozenset[str]:
        """The labels."""
        return self.labels


@dataclass(frozen=True, kw_only=True)
class MemorylessAutomaton(Automaton):
    """The common part of both automata: ``A = (Q, Δ, I, F)``.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    registers: tuple[str, ...] = field(default=(), init=False, repr=False)

    @classmethod
    def of_parts(cls, **parts: Any) -> Self:
        """The automaton of these parts, without registers."""
        del parts["registers"]
        return cls(**parts)

    @property
    def label_sets(self) -> frozenset[frozenset[str]]:
        """The sets of labels that transitions give, and the empty one."""
        return frozenset((SKIPPED, *(t.output for t in self.transitions)))


@dataclass(frozen=True, kw_only=True)
class ComplexEventAutomaton(MemorylessAutomaton):
    """A complex event automaton: C is in ``⟦A⟧_n`` if a run over the events 0 … n ends in F and marks C, with n in C.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    transitions: tuple[ComplexEventTransition, ...] = ()

    model: ClassVar[Model] = Model.CEA
    _KIND: ClassVar[type[TransitionLike]] = ComplexEventTransition


@dataclass(frozen=True, kw_only=True)
class UnaryComplexEventAutomaton(MemorylessAutomaton):
    """A unary complex event automaton: C is in ``⟦A⟧_n`` if a run over the events 0 … n ends in F and labels as C does.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    transitions: tuple[UnaryComplexEventTransition, ...] = ()

    model: ClassVar[Model] = Model.UCEA
    _KIND: ClassVar[type[TransitionLike]] = UnaryComplexEventTransition
