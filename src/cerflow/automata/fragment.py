"""Transducers under construction, and the constructions that do not look at guards (P2 Theorem 6.2, App. C.1).

A fragment may be taken apart: every construction owns its operands and may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cerflow.automata.transducer import Transition

__all__ = [
    "Fragment",
    "atom",
    "iterate",
    "iterate_strictly",
    "relabel",
    "sequence",
    "sequence_strictly",
    "track",
    "union",
]

T = TypeVar("T", bound=Hashable)


@dataclass
class Fragment:
    """A transducer with any number of initial and final states, without registers of its own."""

    states: int = 0
    initial: set[int] = field(default_factory=set)
    final: set[int] = field(default_factory=set)
    transitions: list[Transition] = field(default_factory=list)

    def add_state(self) -> int:
        """A new state."""
        self.states += 1
        return self.states - 1

    def absorb(self, other: Fragment) -> int:
        """Take in the states and transitions of another fragment; returns by how much its states were moved."""
        shift = self.states
        self.states += other.states
        self.transitions.extend(replace(t, source=t.source + shift, target=t.target + shift) for t in other.transitions)
        return shift

    def copy(self) -> Fragment:
        """An independent copy."""
        return Fragment(self.states, set(self.initial), set(self.final), list(self.transitions))

    def entering(self, states: set[int]) -> list[Transition]:
        """The transitions into some of these states."""
        return [t for t in self.transitions if t.target in states]

    def leaving(self, states: set[int]) -> list[Transition]:
        """The transitions out of some of these states."""
        return [t for t in self.transitions if t.source in states]


def atom(cases: Iterable[Transition]) -> Fragment:
    """Skip any events, then read one by one of ``cases`` (from state 0 to state 1)."""
    return Fragment(2, {0}, {1}, [Transition(0, 0), *cases])


def union(left: Fragment, right: Fragment) -> Fragment:
    """``φ OR ψ``: both side by side."""
    shift = left.absorb(right)
    left.initial |= {q + shift for q in right.initial}
    left.final |= {q + shift for q in right.final}
    return left


def sequence(left: Fragment, right: Fragment) -> Fragment:
    """``φ ; ψ``: what enters a final state of φ also enters the initial states of ψ."""
    into = left.entering(left.final)
    shift = left.absorb(right)
    for state in right.initial:
        left.transitions.extend(replace(t, target=state + shift) for t in into)
    left.final = {q + shift for q in right.final}
    return left


def sequence_strictly(left: Fragment, right: Fragment) -> Fragment:
    """``φ : ψ``: a state without a loop stands between the last marked event of φ and the first of ψ."""
    into = [t for t in left.entering(left.final) if t.labels]
    shift = left.absorb(right)
    between = left.add_state()
    left.transitions.extend(replace(t, target=between) for t in into)
    first = left.leaving({q + shift for q in right.initial})
    left.transitions.extend(replace(t, source=between) for t in first if t.labels)
    left.final = {q + shift for q in right.final}
    return left


def iterate(operand: Fragment) -> Fragment:
    """``φ+``: what enters a final state also enters the initial states."""
    into = operand.entering(operand.final)
    for state in operand.initial:
        operand.transitions.extend(replace(t, target=state) for t in into)
    return operand


def iterate_strictly(operand: Fragment) -> Fragment:
    """``φ :+``, with the loop on the new state that the paper's construction lacks (middle iterations of one event)."""
    into = [t for t in operand.entering(operand.final) if t.labels]
    first = [t for t in operand.leaving(operand.initial) if t.labels]
    # A run of one marked event leaves an initial state and enters a final one with the same transition.
    whole = [t for t in first if t.target in operand.final]
    between = operand.add_state()
    operand.transitions.extend(replace(t, target=between) for t in into)
    operand.transitions.extend(replace(t, source=between) for t in first)
    operand.transitions.extend(replace(t, source=between, target=between) for t in whole)
    return operand


def relabel(operand: Fragment, change: Callable[[frozenset[str]], frozenset[str]]) -> Fragment:
    """Change the labels of every transition that has some."""
    operand.transitions = [replace(t, labels=change(t.labels)) if t.labels else t for t in operand.transitions]
    return operand


def track(
    operand: Fragment,
    start: T,
    step: Callable[[T, Transition], Iterable[tuple[T, Transition]]],
    accepts: Callable[[T], bool] = lambda _: True,
) -> tuple[Fragment, list[T]]:
    """The product with a deterministic observer of the transitions taken.

    ``step(memory, transition)`` gives what becomes of a transition: any number of transitions (none forbids it), each
    with the observer's next memory. Only reachable pairs are built; the second result is the memory of each state.
    """
    leaving: dict[int, list[Transition]] = {}
    for t in operand.transitions:
        leaving.setdefault(t.source, []).append(t)
    result = Fragment()
    numbers: dict[tuple[int, T], int] = {}
    memories: list[T] = []
    pending: list[tuple[int, T]] = []

    def number(state: int, memory: T) -> int:
        pair = (state, memory)
        if pair not in numbers:
            numbers[pair] = result.add_state()
            memories.append(memory)
            pending.append(pair)
            if state in operand.final and accepts(memory):
                result.final.add(numbers[pair])
        return numbers[pair]

    for state in sorted(operand.initial):
        result.initial.add(number(state, start))
    while pending:
        state, memory = pair = pending.pop()
        for t in leaving.get(state, ()):
            for after, changed in step(memory, t):
                result.transitions.append(replace(changed, source=numbers[pair], target=number(t.target, after)))
    return result, memories
