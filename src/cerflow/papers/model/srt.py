"""The common part of both automata, and the symbolic register transducer (SRT; 004 Definition 21).

States are values that show how a construction made them: numbers and names, pairs in a product, sets in a subset
construction. An output is the set of labels that the event gets: ``∅`` is the papers' ⊗, ``{event}`` their •. Further
labels serve SREMO's ``AS`` and the labels of formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Protocol, TypeVar, cast

from cerflow.language.automaton import State, show_state, sorted_states
from cerflow.language.condition import Condition
from cerflow.language.sremo import MARK
from cerflow.papers.model.conditions import register_selection, rename_registers, settle_condition
from cerflow.papers.model.drawable import Drawable
from cerflow.papers.model.faults import (
    EpsilonFreeError,
    EpsilonTransitionError,
    MissingRegisterError,
    MissingStateError,
)

__all__ = [
    "MARKED",
    "SKIPPED",
    "Automaton",
    "State",
    "SymbolicRegisterTransducer",
    "SymbolicTransition",
    "TransitionLike",
    "check_epsilon_free",
    "check_parts",
    "explored",
    "fresh_names",
    "numbered_states",
    "show_state",
    "sorted_states",
    "useful_states",
]

#: The outputs ⊗ and •.
SKIPPED: frozenset[str] = frozenset()
MARKED: frozenset[str] = frozenset((MARK,))


class TransitionLike(Protocol):
    """The interface of transitions for runs and analyses."""

    @property
    def source(self) -> State:
        """The state that it leaves."""

    @property
    def target(self) -> State:
        """The state that it enters."""

    @property
    def condition(self) -> Condition | None:
        """Its condition; None is ε."""

    @property
    def writes(self) -> frozenset[str]:
        """The registers that get the event read."""

    @property
    def output(self) -> frozenset[str]:
        """The labels that the event read gets."""


Q = TypeVar("Q", bound=State)
T = TypeVar("T", bound=TransitionLike)


class Automaton(Protocol):
    """The interface of automata for runs and analyses."""

    @property
    def states(self) -> frozenset[State]:
        """All states."""

    @property
    def starts(self) -> frozenset[State]:
        """The states in which runs begin."""

    @property
    def finals(self) -> frozenset[State]:
        """The states in which runs may end."""

    @property
    def registers(self) -> tuple[str, ...]:
        """The names of the registers."""

    @property
    def transitions(self) -> tuple[TransitionLike, ...]:
        """All transitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicTransition:
    """``source, condition ↑ output ↓ writes → target``; the condition, which may be given as text, None is ε."""

    source: State
    target: State
    condition: Condition | None = None
    output: frozenset[str] = SKIPPED
    writes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        settle_condition(self)

    @property
    def reads(self) -> tuple[str, ...]:
        """The register selection: the registers that the condition reads, in its order."""
        return () if self.condition is None else register_selection(self.condition)


@dataclass(frozen=True, kw_only=True)
class SymbolicRegisterTransducer(Drawable):
    """``T = (Q, q_s, Q_f, R, Δ)``; also the SRA, by ignoring outputs.

    Raises a subclass of `AutomatonError` for parts that do not fit together.
    """

    states: frozenset[State]
    start: State
    finals: frozenset[State]
    transitions: tuple[SymbolicTransition, ...] = ()
    registers: tuple[str, ...] = ()
    _leaving: Mapping[State, tuple[SymbolicTransition, ...]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_parts(self)
        leaving: dict[State, list[SymbolicTransition]] = {}
        for t in self.transitions:
            leaving.setdefault(t.source, []).append(t)
        object.__setattr__(self, "_leaving", {state: tuple(found) for state, found in leaving.items()})

    @classmethod
    def of(
        cls,
        transitions: Iterable[SymbolicTransition],
        *,
        start: State,
        finals: Iterable[State],
        registers: Iterable[str] | None = None,
    ) -> SymbolicRegisterTransducer:
        """The transducer with these transitions (once each), the states they name, and the registers they use."""
        distinct = tuple(dict.fromkeys(transitions))
        ends = frozenset(finals)
        states = {start, *ends, *(t.source for t in distinct), *(t.target for t in distinct)}
        if registers is None:
            registers = sorted({r for t in distinct for r in (*t.reads, *t.writes)})
        return cls(states=frozenset(states), start=start, finals=ends, transitions=distinct, registers=tuple(registers))

    @property
    def starts(self) -> frozenset[State]:
        """The start state, as a set."""
        return frozenset((self.start,))

    @cached_property
    def is_epsilon_free(self) -> bool:
        """Whether there is no ε-transition."""
        return all(t.condition is not None for t in self.transitions)

    @cached_property
    def written(self) -> frozenset[str]:
        """The registers that some transition writes."""
        return frozenset().union(*(t.writes for t in self.transitions))

    @cached_property
    def read(self) -> frozenset[str]:
        """The registers that some condition reads."""
        return frozenset(r for t in self.transitions for r in t.reads)

    def leaving(self, state: State) -> tuple[SymbolicTransition, ...]:
        """The transitions out of a state."""
        return self._leaving.get(state, ())

    def renamed(self, registers: Mapping[str, str]) -> SymbolicRegisterTransducer:
        """The same with other names for some registers."""
        return replace(
            self,
            registers=tuple(dict.fromkeys(registers.get(r, r) for r in self.registers)),
            transitions=tuple(
                replace(
                    t,
                    condition=None if t.condition is None else rename_registers(t.condition, registers),
                    writes=frozenset(registers.get(r, r) for r in t.writes),
                )
                for t in self.transitions
            ),
        )

    def renumbered(self) -> SymbolicRegisterTransducer:
        """The same with states 0, 1, …, in the order in which they are reached from the start."""
        order = numbered_states(self)
        return SymbolicRegisterTransducer(
            states=frozenset(order.values()),
            start=0,
            finals=frozenset(order[q] for q in self.finals),
            registers=self.registers,
            transitions=tuple(replace(t, source=order[t.source], target=order[t.target]) for t in self.transitions),
        )

    def trimmed(self) -> SymbolicRegisterTransducer:
        """Without states that no run reaches, or from which no run reaches a final state; the start stays."""
        useful = useful_states(self) | self.starts
        return replace(
            self,
            states=useful,
            finals=self.finals & useful,
            transitions=tuple(t for t in self.transitions if t.source in useful and t.target in useful),
        )

    def without_output(self) -> SymbolicRegisterTransducer:
        """The SRA: the same with output ⊗ everywhere."""
        return replace(self, transitions=tuple(dict.fromkeys(replace(t, output=SKIPPED) for t in self.transitions)))

    def __str__(self) -> str:
        return f"SRT: {len(self.states)} states, {len(self.transitions)} transitions, {len(self.registers)} registers"


def check_parts(automaton: Automaton) -> None:
    """Whether the parts of an automaton fit together; raises the `AutomatonError` of the first fault."""
    for role, states in (("start", automaton.starts), ("final", automaton.finals)):
        for state in sorted_states(states - automaton.states):
            raise MissingStateError(f"the {role} state {show_state(state)} is not among the states")
    registers = frozenset(automaton.registers)
    for t in automaton.transitions:
        for state in (t.source, t.target):
            if state not in automaton.states:
                raise MissingStateError(f"a transition has an end {show_state(state)} that is not among the states")
        if t.condition is None and (t.writes or t.output):
            raise EpsilonTransitionError("an ε-transition reads no event, so it can neither write nor output one")
        read = () if t.condition is None else register_selection(t.condition)
        for register in (*read, *sorted(t.writes)):
            if register not in registers:
                raise MissingRegisterError(f"there is no register {register}")


def check_epsilon_free(*automata: SymbolicRegisterTransducer) -> None:
    """Raise `EpsilonFreeError` if one of them has an ε-transition."""
    if not all(automaton.is_epsilon_free for automaton in automata):
        raise EpsilonFreeError("the construction needs an automaton without ε-transitions; eliminate them first")


def fresh_names(taken: Iterable[str], like: str = "r") -> Iterator[str]:
    """Names r1, r2, … that are not taken."""
    used = frozenset(taken)
    return (name for number in count(1) if (name := f"{like}{number}") not in used)


def numbered_states(automaton: Automaton) -> dict[State, int]:
    """Numbers 0, 1, … for the states, in the order in which they are reached from the start states."""
    following = _following((t.source, t.target) for t in automaton.transitions)
    order = {state: k for k, state in enumerate(sorted_states(automaton.starts))}
    for state in (frontier := list(order)):
        for target in following.get(state, ()):
            if target not in order:
                order[target] = len(order)
                frontier.append(target)
    for state in sorted_states(automaton.states - order.keys()):
        order[state] = len(order)
    return order


def useful_states(automaton: Automaton) -> frozenset[State]:
    """The states that some run reaches and from which some run reaches a final state."""
    edges = [(t.source, t.target) for t in automaton.transitions]
    reached = _reachable(automaton.starts, edges)
    return reached & _reachable(automaton.finals, [(target, source) for source, target in edges])


def explored(starts: Iterable[Q], leaving: Callable[[Q], Iterable[T]]) -> tuple[frozenset[Q], tuple[T, ...]]:
    """The states that a construction reaches from its start states, and the transitions that leave them."""
    found = dict.fromkeys(starts)
    transitions: dict[T, None] = {}
    for state in (frontier := list(found)):
        for t in leaving(state):
            transitions[t] = None
            target = cast(Q, t.target)
            if target not in found:
                found[target] = None
                frontier.append(target)
    return frozenset(found), tuple(transitions)


def _reachable(begin: Iterable[State], edges: Iterable[tuple[State, State]]) -> frozenset[State]:
    following = _following(edges)
    found = set(begin)
    pending = list(found)
    while pending:
        for target in following.get(pending.pop(), ()):
            if target not in found:
                found.add(target)
                pending.append(target)
    return frozenset(found)


def _following(edges: Iterable[tuple[State, State]]) -> dict[State, list[State]]:
    following: dict[State, list[State]] = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    return following
