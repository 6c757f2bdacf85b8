"""Transducers under construction, their registers, and the constructions that disregard guards.

These are those of P2 Theorem 6.2, App. C.1. Every construction owns its operands and may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cerflow.automata.model.transducer import Accumulation, Register, Transducer, Transition
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import grouped, on_paths, visited
from cerflow.language.condition import Condition, Expression
from cerflow.language.formula import Window
from cerflow.language.node import Node, transform
from cerflow.language.printer import show
from cerflow.logic.conditions.guards import Shown, Stored

T = TypeVar("T", bound=Hashable)


@dataclass
class Fragment:
    """A transducer with any number of initial and final states, without registers of its own."""

    states: int = 0
    initial: set[int] = field(default_factory=set)
    final: set[int] = field(default_factory=set)
    transitions: list[Transition] = field(default_factory=list)

    @classmethod
    def of(cls, transducer: Transducer, transitions: Iterable[Transition] | None = None) -> Fragment:
        """The fragment of a transducer, perhaps with other transitions."""
        kept = transducer.transitions if transitions is None else transitions
        return cls(transducer.states, set(transducer.initial), set(transducer.final), list(kept))

    def finished(
        self, registers: Sequence[Register], window: Window | None = None, mentioned: frozenset[str] = frozenset()
    ) -> Transducer:
        """The transducer with these registers."""
        initial, final = frozenset(self.initial), frozenset(self.final)
        return Transducer(self.states, initial, final, tuple(self.transitions), tuple(registers), window, mentioned)

    def copy(self) -> Fragment:
        """An independent copy."""
        return Fragment(self.states, set(self.initial), set(self.final), list(self.transitions))

    def with_transitions(self, transitions: list[Transition]) -> Fragment:
        """The same states with other transitions."""
        return Fragment(self.states, self.initial, self.final, transitions)

    def add_state(self) -> int:
        """A new state."""
        self.states += 1
        return self.states - 1

    def endings(self) -> list[Transition]:
        """The transitions into final states."""
        return [t for t in self.transitions if t.target in self.final]

    def beginnings(self) -> list[Transition]:
        """The transitions out of initial states."""
        return [t for t in self.transitions if t.source in self.initial]

    def leaving(self) -> list[list[Transition]]:
        """The transitions out of each state."""
        return grouped(self.states, ((t.source, t) for t in self.transitions))

    def move(self, shift: int) -> None:
        """Number the states from ``shift`` on."""
        self.initial = {q + shift for q in self.initial}
        self.final = {q + shift for q in self.final}
        self.transitions = [t.moved(t.source + shift, t.target + shift) for t in self.transitions]

    def trimmed(self) -> Fragment:
        """The fragment without the states that are not on a path from an initial to a final one."""
        useful = on_paths(self.initial, self.final, ((t.source, t.target) for t in self.transitions))
        numbers = {q: k for k, q in enumerate(sorted(useful))}
        kept = (t for t in self.transitions if t.source in useful and t.target in useful)
        return Fragment(
            len(numbers),
            {numbers[q] for q in self.initial & useful},
            {numbers[q] for q in self.final & useful},
            [t.moved(numbers[t.source], numbers[t.target]) for t in kept],
        )

    def with_own_beginning(self) -> Fragment:
        """The same runs, with no transition into an initial state except loops that change nothing; trimmed."""
        fragment = self.trimmed()
        entered = {t.target for t in fragment.transitions if not t.stays} & fragment.initial
        copies = {q: fragment.states + k for k, q in enumerate(sorted(entered))}
        again = (t for t in fragment.transitions if t.source in copies)
        more = [t.moved(copies[t.source], copies[t.source] if t.stays else t.target) for t in again]
        initial = {copies.get(q, q) for q in fragment.initial}
        states = fragment.states + len(copies)
        return Fragment(states, initial, fragment.final, [*fragment.transitions, *more]).trimmed()


class RegisterFile:
    """Hands out registers by number."""

    def __init__(self) -> None:
        self.registers: list[Register] = []
        #: The fields that hold the time or the position of an event for a condition that waits, as read on it.
        self.instants: dict[tuple[int, int], Expression] = {}

    def add(self, register: Register) -> int:
        """The number of a new register."""
        self.registers.append(register)
        return len(self.registers) - 1

    def value(self, fields: int, meaning: str, window: Window | None = None) -> int:
        """The number of a new register for one row of values."""
        return self.add(Register(Accumulation.VALUE, fields, meaning, window))

    def describe(self, expression: Expression) -> str:
        """An expression for users, in which each register is shown by its meaning."""

        def name(current: Node) -> Node:
            if not isinstance(current, Stored):
                return current
            register = self.registers[current.register]
            field = "" if register.fields == 1 else f".{current.field}"
            return Shown(f"{register.meaning}{field}")

        return show(transform(expression, name))


def check_fragment_size(fragment: Fragment, more: int = 0) -> None:
    """Raise `UnsupportedQueryError` if a fragment under construction has become too large.

    ``more`` states are allowed on top of `limits.CONSTRUCTED_STATES`: those of the operands.
    """
    most = limits.CONSTRUCTED_STATES + more
    if fragment.states > most or len(fragment.transitions) > 10 * most:
        raise UnsupportedQueryError(
            f"this formula needs an automaton of more than {limits.CONSTRUCTED_STATES:,} states",
            hint="Combine smaller formulas, or fewer conditions in one of them.",
        )


def _by_size(left: Fragment, right: Fragment) -> tuple[Fragment, Fragment]:
    """The larger one first. The other is renumbered: a long sequence built from its end would take quadratic time."""
    return (left, right) if len(left.transitions) >= len(right.transitions) else (right, left)


def _beside(left: Fragment, right: Fragment) -> Fragment:
    """Both in one, without initial and final states for now; the operands are renumbered to fit."""
    large, small = _by_size(left, right)
    small.move(large.states)
    return Fragment(large.states + small.states, transitions=large.transitions + small.transitions)


def atom(cases: Iterable[Transition]) -> Fragment:
    """Skip any events, then read one by one of ``cases`` (from state 0 to state 1)."""
    return Fragment(2, {0}, {1}, [Transition(0, 0), *cases])


def union(left: Fragment, right: Fragment) -> Fragment:
    """``φ OR ψ``: both in parallel, from one state where runs of both only wait, and to one that ends both.

    So an OR of many operands, in a sequence or repetition, has as many transitions, not the square of that.
    """
    large, small = _by_size(left, right)
    waiting = {tests: q for q, tests in waiting_states(large).items()}
    place = {q: waiting[tests] for q, tests in waiting_states(small).items() if tests in waiting}
    joined = frozenset(place)
    if ends := _ends(large):
        place |= dict.fromkeys(_ends(small), min(ends))
    alone = [q for q in range(small.states) if q not in place]
    place |= {q: large.states + k for k, q in enumerate(alone)}
    moved = [
        t.moved(place[t.source], place[t.target]) for t in small.transitions if not t.stays or t.source not in joined
    ]
    initial, final = ({place[q] for q in states} for states in (small.initial, small.final))
    return Fragment(large.states + len(alone), large.initial | initial, large.final | final, large.transitions + moved)


def waiting_states(fragment: Fragment) -> dict[int, frozenset[Condition]]:
    """The initial states in which runs only wait, each with the tests of its loops."""
    entered = {t.target for t in fragment.transitions if not t.stays}
    loops: dict[int, list[Condition]] = {q: [] for q in sorted(fragment.initial - entered - fragment.final)}
    for t in fragment.transitions:
        if t.stays and t.source in loops:
            loops[t.source].append(t.test)
    return {q: frozenset(tests) for q, tests in loops.items()}


def _ends(fragment: Fragment) -> set[int]:
    """The final states that no transition leaves."""
    return fragment.final - fragment.initial - {t.source for t in fragment.transitions}


#: Which endings of a part another one may follow directly; None if events may lie between them.
Joins = Callable[[Transition], bool] | None


def marks(t: Transition) -> bool:
    """That a part follows directly after the last marked event of another one, unless that may end with a tick."""
    return bool(t.labels)


def sequence(
    left: Fragment, right: Fragment, optional: tuple[bool, bool] = (False, False), joins: Joins = None
) -> Fragment:
    """``φ ; ψ``: what enters a final state of φ also enters the initial states of ψ.

    With ``joins`` ``φ : ψ``: a state without a loop stands between the last marked event of φ and the first of ψ.
    ``optional`` says which of the operands may be absent; the other one alone is a run, too.
    """
    whole = _beside(left, right)
    endings = left.endings()
    if joins is None:
        between = [t.moved(t.source, state) for state in sorted(right.initial) for t in endings]
    else:
        middle = whole.add_state()
        between = [t.moved(t.source, middle) for t in endings if joins(t)]
        between += [t.moved(middle, t.target) for t in right.beginnings() if t.labels]
    whole.initial = left.initial | right.initial if optional[0] else left.initial
    whole.final = left.final | right.final if optional[1] else right.final
    whole.transitions += between
    return whole


def iterate(operand: Fragment, joins: Joins = None) -> Fragment:
    """``φ+``: every transition into a final state also enters the initial states.

    With ``joins`` ``φ :+``, with the loop on the new state that the paper's construction lacks (middle iterations of
    one event).
    """
    endings = operand.endings()
    if joins is None:
        again = [t.moved(t.source, state) for state in sorted(operand.initial) for t in endings]
        return operand.with_transitions(operand.transitions + again)
    into = [t for t in endings if joins(t)]
    first = [t for t in operand.beginnings() if t.labels]
    between = operand.add_state()
    entering = [t.moved(t.source, between) for t in into]
    leaving = [t.moved(between, t.target) for t in first]
    # A run with one marked event leaves an initial state and enters a final one by the same transition.
    whole = [t.moved(between, between) for t in first if t.target in operand.final]
    return operand.with_transitions([*operand.transitions, *entering, *leaving, *whole])


def relabel(operand: Fragment, change: Callable[[frozenset[str]], frozenset[str]]) -> Fragment:
    """Change the labels of every transition that has labels."""
    changed = [replace(t, labels=change(t.labels)) if t.labels else t for t in operand.transitions]
    return operand.with_transitions(changed)


def track(
    operand: Fragment,
    start: T,
    step: Callable[[T, Transition], Iterable[tuple[T, Transition]]],
    accepts: Callable[[T], bool] = lambda _: True,
) -> Fragment:
    """The product with a deterministic observer of the transitions taken.

    ``step(memory, transition)`` returns the versions of a transition (none forbids it), each with the observer's next
    memory. Only transitions between reachable pairs are built. The first pair of a state keeps the state's number, so
    parts that the observer does not touch stay the same.
    """
    leaving = operand.leaving()
    free = [True] * operand.states

    def following(place: tuple[int, T]) -> Iterator[tuple[tuple[int, T], Transition]]:
        for t in leaving[place[0]]:
            for after, changed in step(place[1], t):
                yield (t.target, after), changed

    def numbered(place: tuple[int, T], result: Fragment) -> int:
        state = place[0] if free[place[0]] else result.add_state()
        free[place[0]] = False
        check_fragment_size(result, operand.states)
        return state

    return explored(
        [(state, start) for state in sorted(operand.initial)],
        following,
        lambda place: place[0] in operand.final and accepts(place[1]),
        numbered,
        operand.states,
    )


def _new_state(_: Hashable, result: Fragment) -> int:
    state = result.add_state()
    check_fragment_size(result)
    return state


def explored(
    starts: Iterable[T],
    following: Callable[[T], Iterable[tuple[T, Transition]]],
    is_final: Callable[[T], bool],
    numbered: Callable[[T, Fragment], int] = _new_state,
    states: int = 0,
) -> Fragment:
    """The fragment of all places that lead from some to others, with the transitions that ``following`` gives.

    ``numbered`` makes the state of a new place, beside ``states`` that exist already.
    """
    result = Fragment(states)
    moves: list[tuple[T, T, Transition]] = []

    def ahead(place: T) -> Iterator[T]:
        for after, t in following(place):
            moves.append((place, after, t))
            yield after

    begin = list(starts)
    numbers = {place: numbered(place, result) for place in visited(begin, ahead, depth_first=True)}
    result.initial = {numbers[place] for place in begin}
    result.final = {number for place, number in numbers.items() if is_final(place)}
    result.transitions = [t.moved(numbers[source], numbers[target]) for source, target, t in moves]
    return result
