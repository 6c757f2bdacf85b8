"""The evaluation algorithms of P1, App. D.3, for the selection strategies, word for word: a second opinion.

They evaluate an automaton without registers. In NextEvaluate (5) and LastEvaluate (6) a list of complex events never
has more than one node, so it is the node itself: (position, list of the rest), the bottom node is (). In MaxEvaluate
(7) and StrictEvaluate (8) a list is kept as the set of complex events that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cerflow.automata.model.runs import RunReader
from cerflow.automata.model.transducer import Transducer
from cerflow.base.events import Event
from cerflow.language.formula import Strategy

Node = tuple[Any, ...]
_MARKING, _PASSING = True, False


class SelectiveEvaluation:
    """One run of an algorithm; ``outputs[n]`` is the support found at event n, None if there is none."""

    def __init__(self, automaton: Transducer, strategy: Strategy, events: Sequence[Event]) -> None:
        if automaton.registers or automaton.window is not None:
            raise ValueError("complex event automata have neither registers nor windows")
        self.reader = RunReader(automaton, events)
        #: The one final state, entered by marking transitions only (erratum E4).
        self.q_f = automaton.states
        self.final = automaton.final
        self.lists: dict[int, Node] = dict.fromkeys(automaton.initial, ())
        queue: list[set[int]] = [set(automaton.initial)]
        self.outputs: list[frozenset[int] | None] = []
        for t in range(len(events)):
            self.old, self.lists = self.lists, {}
            queue_old, self.queue = queue, []
            self.queued: set[int] = set()
            if strategy is Strategy.NEXT:
                for states in queue_old:
                    self.update_marking(states, t, _MARKING)
                    self.update_marking(states, t, _PASSING)
            else:
                for states in queue_old:
                    self.update_marking(states, t, _MARKING)
                for states in queue_old:
                    self.update_marking(states, t, _PASSING)
            queue = self.queue
            self.outputs.append(_positions(self.lists[self.q_f]) if self.q_f in self.lists else None)

    def update_marking(self, states: set[int], t: int, marking: bool) -> None:
        """UpdateMarking(A, t, m)."""
        found: set[int] = set()
        for q in sorted(states):
            for p in self.successors(q, t, marking):
                if p in self.queued or p in found:
                    continue
                found.add(p)
                self.lists[p] = (t, self.old[q]) if marking else self.old[q]
        if found:
            self.queue.append(found)
            self.queued |= found

    def successors(self, q: int, t: int, marking: bool) -> Iterable[int]:
        """Δ(q, t, m)."""
        if q == self.q_f:
            return
        for transition in self.reader.leaving[q]:
            if bool(transition.labels) == marking and self.reader.fires(transition, t, ()):
                yield transition.target
                if marking and transition.target in self.final:
                    yield self.q_f


def _positions(node: Node) -> frozenset[int]:
    found = []
    while node:
        position, node = node
        found.append(position)
    return frozenset(found)


class _Moves:
    """Δ of an automaton on a stream, for sets of states."""

    def __init__(self, automaton: Transducer, events: Sequence[Event]) -> None:
        if automaton.registers or automaton.window is not None:
            raise ValueError("complex event automata have neither registers nor windows")
        self.reader = RunReader(automaton, events)

    def __call__(self, states: Iterable[int], t: int, marking: bool) -> frozenset[int]:
        return frozenset(
            transition.target
            for q in states
            for transition in self.reader.leaving[q]
            if bool(transition.labels) == marking and self.reader.fires(transition, t, ())
        )


Supports = set[frozenset[int]]


def max_evaluate(automaton: Transducer, events: Sequence[Event]) -> set[tuple[int, frozenset[int]]]:
    """Algorithm 7: lists for pairs (T, U) of sets of states."""
    delta = _Moves(automaton, events)
    lists: dict[tuple[frozenset[int], frozenset[int]], Supports] = {(automaton.initial, frozenset()): {frozenset()}}
    found: set[tuple[int, frozenset[int]]] = set()
    for t in range(len(events)):
        old, lists = lists, {}
        for (states, larger), supports in old.items():
            u = delta(larger, t, _MARKING)
            moved = delta(states, t, _MARKING) - u
            if moved:
                lists.setdefault((moved, u), set()).update(s | {t} for s in supports)
            u = delta(larger, t, _MARKING) | delta(larger, t, _PASSING) | delta(states, t, _MARKING)
            moved = delta(states, t, _PASSING) - u
            if moved:
                lists.setdefault((moved, u), set()).update(supports)
        for (states, larger), supports in lists.items():
            if states & automaton.final and not larger & automaton.final:
                found |= {(t, s) for s in supports if t in s}
    return found


def strict_evaluate(automaton: Transducer, events: Sequence[Event]) -> set[tuple[int, frozenset[int]]]:
    """Algorithm 8 on the automaton determinised as it goes: lists for sets of states."""
    delta = _Moves(automaton, events)
    waiting = automaton.initial
    lists: dict[frozenset[int], Supports] = {}
    found: set[tuple[int, frozenset[int]]] = set()
    for t in range(len(events)):
        old, lists = lists, {}
        for states, supports in [*old.items(), (waiting, {frozenset[int]()})]:
            marked = delta(states, t, _MARKING)
            if marked:
                lists.setdefault(marked, set()).update(s | {t} for s in supports)
        waiting = delta(waiting, t, _PASSING)
        for states, supports in lists.items():
            if states & automaton.final:
                found |= {(t, s) for s in supports}
    return found
