"""Complex event automata (CEA; P1 §6), which mark events, and unary ones (UCEA; P2 §5.1), which label them.

Both have several start states, and conditions on the current event alone. They differ in the output of a transition (•
or ◦ in a CEA, a set of labels in a UCEA), and in the end of runs: an accepting run of a CEA has marked the last event
it read (so nothing depends on the future), a run of a UCEA need not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, Self, TypeVar

from cerflow.conditions.connectives import TRUE
from cerflow.language.condition import Condition
from cerflow.papers.model.conditions import settle_condition
from cerflow.papers.model.drawable import Drawable
from cerflow.papers.model.faults import EpsilonTransitionError, LabelSetError, TransitionKindError
from cerflow.papers.model.srt import (
    MARKED,
    SKIPPED,
    State,
    check_parts,
    explored,
    numbered_states,
    useful_states,
)

__all__ = [
    "ComplexEventAutomaton",
    "ComplexEventTransition",
    "MemorylessAutomaton",
    "UnaryComplexEventAutomaton",
    "UnaryComplexEventTransition",
]

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComplexEventTransition:
    """``(source, P, m, target)``: an event that satisfies the condition is marked (•), or only read (◦)."""

    source: State
    target: State
    condition: Condition = TRUE
    marks: bool = False

    def __post_init__(self) -> None:
        settle_condition(self)
        _check_reads(self.condition)

    @property
    def output(self) -> frozenset[str]:
        """The label "event" for •, none for ◦."""
        return MARKED if self.marks else SKIPPED

    @property
    def writes(self) -> frozenset[str]:
        """Nothing: there are no registers."""
        return _NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryComplexEventTransition:
    """``(source, P, L, target)``: an event that satisfies the condition gets the labels L, possibly none."""

    source: State
    target: State
    condition: Condition = TRUE
    labels: frozenset[str] = _NOTHING

    def __post_init__(self) -> None:
        settle_condition(self)
        _check_reads(self.condition)
        if not isinstance(self.labels, frozenset) or not all(isinstance(label, str) for label in self.labels):
            raise LabelSetError(f"the labels of a transition are a frozenset of names, not {self.labels!r}")

    @property
    def output(self) -> frozenset[str]:
        """The labels."""
        return self.labels

    @property
    def writes(self) -> frozenset[str]:
        """Nothing: there are no registers."""
        return _NOTHING


Q = TypeVar("Q", bound=State)
T = TypeVar("T", ComplexEventTransition, UnaryComplexEventTransition)


@dataclass(frozen=True, kw_only=True)
class MemorylessAutomaton(Drawable, Generic[T]):
    """The common part of both automata: ``A = (Q, Δ, I, F)``.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    states: frozenset[State]
    starts: frozenset[State]
    finals: frozenset[State]
    transitions: tuple[T, ...] = ()
    _leaving: Mapping[State, tuple[T, ...]] = field(init=False, compare=False, repr=False)

    #: The short names of the model and of its transitions.
    _NAME: ClassVar[str]
    _KIND: ClassVar[type]

    def __post_init__(self) -> None:
        for t in self.transitions:
            if not isinstance(t, self._KIND):
                raise TransitionKindError(
                    f"the transitions of a {self._NAME} are of class {self._KIND.__name__}, not {type(t).__name__}"
                )
        check_parts(self)
        leaving: dict[State, list[T]] = {}
        for t in self.transitions:
            leaving.setdefault(t.source, []).append(t)
        object.__setattr__(self, "_leaving", {state: tuple(found) for state, found in leaving.items()})

    @classmethod
    def of(cls, transitions: Iterable[T], *, starts: Iterable[State], finals: Iterable[State]) -> Self:
        """The automaton with these transitions (once each) and the states they name."""
        distinct = tuple(dict.fromkeys(transitions))
        first, last = frozenset(starts), frozenset(finals)
        states = first | last | {q for t in distinct for q in (t.source, t.target)}
        return cls(states=states, starts=first, finals=last, transitions=distinct)

    @classmethod
    def built(
        cls,
        starts: Iterable[Q],
        ways: Callable[[Q], Iterable[tuple[Condition, frozenset[str], Q]]],
        is_final: Callable[[Q], bool],
    ) -> Self:
        """The automaton that a construction reaches; ``ways`` returns the condition, output and target of each step."""

        def leaving(state: Q) -> Iterator[T]:
            for condition, output, target in ways(state):
                yield cls.transition(state, target, condition, output)

        first = list(starts)
        states, transitions = explored(first, leaving)
        return cls(
            states=frozenset(states),
            starts=frozenset(first),
            finals=frozenset(state for state in states if is_final(state)),
            transitions=transitions,
        )

    @staticmethod
    @abstractmethod
    def transition(source: State, target: State, condition: Condition, output: frozenset[str]) -> T:
        """A transition of this model that outputs a set of labels."""

    @property
    def registers(self) -> tuple[str, ...]:
        """None."""
        return ()

    def leaving(self, state: State) -> tuple[T, ...]:
        """The transitions out of a state."""
        return self._leaving.get(state, ())

    def relocated(self, names: Mapping[State, State]) -> Self:
        """The same with renamed states; states that share a name become one."""
        return type(self)(
            states=frozenset(names[q] for q in self.states),
            starts=frozenset(names[q] for q in self.starts),
            finals=frozenset(names[q] for q in self.finals),
            transitions=tuple(
                dict.fromkeys(
                    self.transition(names[t.source], names[t.target], t.condition, t.output) for t in self.transitions
                )
            ),
        )

    def renumbered(self) -> Self:
        """The same with states 0, 1, …, in the order in which they are reached from the start states."""
        return self.relocated(numbered_states(self))

    def trimmed(self) -> Self:
        """Without states that no run reaches, or from which no run reaches a final state."""
        useful = useful_states(self)
        return replace(
            self,
            states=useful,
            starts=self.starts & useful,
            finals=self.finals & useful,
            transitions=tuple(t for t in self.transitions if t.source in useful and t.target in useful),
        )

    def __str__(self) -> str:
        return f"{self._NAME}: {len(self.states)} states, {len(self.transitions)} transitions"


@dataclass(frozen=True, kw_only=True)
class ComplexEventAutomaton(MemorylessAutomaton[ComplexEventTransition]):
    """A complex event automaton: C is in ``⟦A⟧_n`` if a run over the events 0 … n ends in F and marks C, with n in C.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    _NAME: ClassVar[str] = "CEA"
    _KIND: ClassVar[type] = ComplexEventTransition

    @staticmethod
    def transition(
        source: State, target: State, condition: Condition, output: frozenset[str]
    ) -> ComplexEventTransition:
        """A transition that marks its event if there is any output."""
        return ComplexEventTransition(source=source, target=target, condition=condition, marks=bool(output))


@dataclass(frozen=True, kw_only=True)
class UnaryComplexEventAutomaton(MemorylessAutomaton[UnaryComplexEventTransition]):
    """A unary complex event automaton: C is in ``⟦A⟧_n`` if a run over the events 0 … n ends in F and labels as C does.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    _NAME: ClassVar[str] = "UCEA"
    _KIND: ClassVar[type] = UnaryComplexEventTransition

    @staticmethod
    def transition(
        source: State, target: State, condition: Condition, output: frozenset[str]
    ) -> UnaryComplexEventTransition:
        """A transition that gives its event the labels of the output."""
        return UnaryComplexEventTransition(source=source, target=target, condition=condition, labels=output)

    @property
    def label_sets(self) -> frozenset[frozenset[str]]:
        """The sets of labels that transitions give, and the empty one."""
        return frozenset((_NOTHING, *(t.labels for t in self.transitions)))


def _check_reads(condition: Condition | None) -> None:
    if condition is None:
        raise EpsilonTransitionError("every transition needs a condition here; TRUE always holds")
