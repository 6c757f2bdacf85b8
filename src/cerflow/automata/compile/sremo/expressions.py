"""SREMO to transducer (register transducers Theorem 27, App. A.2): a part for every expression, without ε.

A part is built for given registers at its beginning. For every state it is known which registers are empty and which
place holds the content of the others, so an atom on an empty register is decided here. A sub-expression that may begin
with different registers filled is built once for each case. A register written on one side of ``&``, or below ``!``,
gets another place than the one that is still read elsewhere, so ``v' = v`` after ``!e`` needs no copying.

For ``!e`` nothing is unrolled (§5.1.2, §11.11). One run follows the set of all runs of the fragment of e that began
with it, as in the subset construction (see `cerflow.automata.compile.run_sets`), and may end wherever none of these
ends. Registers of enclosing expressions are its own, so conditions on them are atoms of the event.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import count

from cerflow.automata.compile.products import both
from cerflow.automata.compile.run_sets import FollowedRuns, RunSet, every
from cerflow.automata.compile.sremo import terminals
from cerflow.automata.compile.sremo.terminals import START, Held, Place, Places, Positions, restricted
from cerflow.automata.compile.windows import restrict
from cerflow.automata.model.fragment import Fragment, RegisterFile, check_fragment_size, track
from cerflow.automata.model.transducer import Register, Transition
from cerflow.automata.optimise.simplify import merge_transitions
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.graphs import answered
from cerflow.language import sremo as r
from cerflow.language.condition import Condition, Not
from cerflow.language.node import Node, fold, nested_operands, walk_into
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions.connectives import FALSE, TRUE, conjunction, conjuncts
from cerflow.logic.conditions.guards import Satisfied
from cerflow.logic.rewriting.strategies import without_strategies


@dataclass(frozen=True)
class _Question:
    """An expression to build, with the registers held at its beginning.

    ``live`` are the registers that are read after it, ``reserved`` the places that it must not overwrite, and
    ``windowed`` says whether some window bounds it.
    """

    expression: r.Sremo
    held: Held
    live: frozenset[str]
    reserved: frozenset[Place]
    windowed: bool


_Rule = Generator[_Question, Positions, Positions]


def compile_sremo(expression: r.Sremo, registers: RegisterFile, *, windowed: bool = False) -> Fragment:
    """The fragment that reads any events and then a match of the expression, which ends with an event that it marks.

    ``windowed`` says that a window around the whole is applied elsewhere. Raises `UnsupportedQueryError` for ``!e``
    that would remember any number of events, having no window, and for a too large automaton.
    """
    return _Builder(without_strategies(expression), registers).whole(windowed)


class _Builder:
    def __init__(self, expression: r.Sremo, registers: RegisterFile) -> None:
        self.expression = expression
        self.registers = registers
        self.places = Places()
        self._states = 0
        self._reads: dict[r.Sremo, frozenset[str]] = {}
        fold(expression, self._note)

    def _note(self, current: Node, _: object) -> None:
        if isinstance(current, r.Terminal):
            self._reads[current] = frozenset(condition_labels(current.condition))
        elif isinstance(current, r.Sremo):
            below = [child for child in current.children if isinstance(child, r.Sremo)]
            self._reads[current] = frozenset().union(*map(self._reads.__getitem__, below))

    def whole(self, windowed: bool) -> Fragment:
        """See `compile_sremo`."""
        part = answered(_Question(self.expression, (), frozenset(), frozenset(), windowed), self._placed)
        waiting = self._state()
        part.transitions.append(Transition(waiting, waiting))
        part.transitions += [t.moved(waiting, t.target) for t in part.beginnings]
        part.transitions = self.places.settled(part.transitions, self.registers, lambda _: True)
        # A match is reported with its last marked event, so ends that mark nothing do not count.
        final: set[int] = set()
        ends = {state for states in part.ends.values() for state in states}
        silent = {t.target for t in part.transitions if not t.labels}
        if both := ends & silent:
            done = self._state()
            final.add(done)
            part.transitions += [t.moved(t.source, done) for t in part.transitions if t.labels and t.target in both]
        whole = Fragment(self._states, {waiting}, final | (ends - silent), part.transitions).trimmed()
        return terminals.waiting_anywhere(merge_transitions(whole))

    def _placed(self, question: _Question) -> _Rule:
        try:
            return (yield from self._rule(question))
        except UnsupportedQueryError as error:
            error.span = error.span or question.expression.span
            raise

    def _state(self) -> int:
        self._states += 1
        return self._states - 1

    def _alone(self, part: Positions, ends: Iterable[int]) -> Fragment:
        """The part as a fragment, with these of its ends."""
        return Fragment(self._states, {START}, set(ends), [*part.beginnings, *part.transitions]).trimmed()

    def _fragments(self, part: Positions) -> Iterator[tuple[Held, Fragment]]:
        """The part as fragments, one for each set of registers held at its end."""
        for held, ends in part.ends.items():
            yield held, self._alone(part, ends)

    def _add(self, part: Positions, fragment: Fragment, held: Held) -> None:
        """Put a fragment that ends with these registers beside the part."""
        fragment.move(self._states)
        self._states += fragment.states
        check_fragment_size(fragment)
        entered = {t.target for t in fragment.transitions}
        part.beginnings += [t.moved(START, t.target) for t in fragment.beginnings()]
        part.transitions += [t for t in fragment.transitions if t.source not in fragment.initial or t.source in entered]
        part.end(held, sorted(fragment.final & entered))

    def _rule(self, question: _Question) -> _Rule:
        expression = question.expression
        match expression:
            case r.Epsilon():
                return Positions(empty=True)
            case r.Empty():
                return Positions()
            case r.Terminal():
                return self._terminal(expression, question)
            case r.Concatenation():
                return (yield from self._concatenation(expression, question))
            case r.Alternation():
                left = yield self._ask(question, expression.left)
                right = yield self._ask(question, expression.right)
                left.empty |= right.empty
                left.beginnings += right.beginnings
                left.transitions += right.transitions
                for held, ends in right.ends.items():
                    left.end(held, ends)
                return left
            case r.Optional():
                once = yield self._ask(question, expression.operand)
                once.empty = True
                return once
            case r.Star() | r.Plus():
                return (yield from self._repeated(expression, question))
            case r.Intersection():
                denied = _event_denied(expression)
                if denied is not None:
                    return self._terminal(denied, question)
                return (yield from self._intersection(expression, question))
            case r.Complement():
                return (yield from self._complement(expression, question))
            case r.Windowed():
                operand = yield self._ask(question, expression.operand, windowed=True)
                whole = Positions(operand.empty)
                for held, fragment in self._fragments(operand):
                    self._add(whole, restrict(fragment, expression.window, self.registers), held)
                return whole
        raise TypeError(f"{type(expression).__name__} is not an expression without strategies")

    def _ask(self, question: _Question, expression: r.Sremo, **changes: object) -> _Question:
        """The same question about another expression, without the registers that do not affect it."""
        asked = replace(question, expression=expression, **changes)  # type: ignore[arg-type]
        wanted = self._reads[expression] | asked.live
        return replace(asked, held=restricted(asked.held, wanted))

    def _terminal(self, terminal: r.Terminal, question: _Question) -> Positions:
        after = dict(question.held)
        known = terminals.with_empty_registers(terminal.condition, after)
        if known == FALSE:
            return Positions()
        guards = [terminals.on_places(part, after) for part in conjuncts(known)]
        writes = []
        for register in terminal.registers:
            if register in question.live:
                place = next(place for k in count() if (place := (register, k)) not in question.reserved)
                after[register] = place[1]
                writes.append(self.places.write(place))
        labels = frozenset[str]() if terminal.label is None else frozenset((terminal.label,))
        t = Transition(START, self._state(), labels=labels, writes=tuple(dict.fromkeys(writes))).guarded(guards)
        return Positions(beginnings=[t], ends={restricted(tuple(sorted(after.items())), question.live): [t.target]})

    def _concatenation(self, expression: r.Concatenation, question: _Question) -> _Rule:
        live = question.live | self._reads[expression.right]
        left = yield self._ask(question, expression.left, live=live)
        first = restricted(question.held, live)
        following: dict[Held, Positions] = {}
        for held in sorted({*left.ends, *([first] if left.empty else [])}):
            following[held] = yield self._ask(question, expression.right, held=held)
        # The right side of a long chain is small, so the long side stays in place.
        whole = Positions(False, left.beginnings, left.transitions)
        for held, part in following.items():
            whole.transitions += part.transitions
            for after, ends in part.ends.items():
                whole.end(after, ends)
            before = left.ends.get(held, [])
            whole.follow(before, part)
            if part.empty:
                whole.end(restricted(held, question.live), before)
        if left.empty:
            whole.empty = following[first].empty
            whole.beginnings += following[first].beginnings
        return whole

    def _repeated(self, expression: r.Star | r.Plus, question: _Question) -> _Rule:
        live = question.live | self._reads[expression.operand]
        first = restricted(question.held, live)
        rounds: dict[Held, Positions] = {}
        pending = [first]
        while pending:
            held = pending.pop()
            if held in rounds:
                continue
            rounds[held] = yield self._ask(question, expression.operand, held=held, live=live)
            pending += [after for after in rounds[held].ends if after not in rounds]
        whole = Positions(isinstance(expression, r.Star) or rounds[first].empty, rounds[first].beginnings)
        for part in rounds.values():
            whole.transitions += part.transitions
            for held, ends in part.ends.items():
                whole.follow(ends, rounds[held])
                whole.end(restricted(held, question.live), ends)
        return whole

    def _intersection(self, expression: r.Intersection, question: _Question) -> _Rule:
        sides = (expression.left, expression.right)
        parts: list[Positions] = []
        reserved = question.reserved
        for side, other in (sides, sides[::-1]):
            read = frozenset(place for place in question.held if place[0] in self._reads[other])
            # This side need not keep what the other writes; both keep what neither writes.
            parts.append((yield self._ask(question, side, reserved=reserved | read)))
            # What both write are two registers.
            reserved |= self.places.written([*parts[-1].beginnings, *parts[-1].transitions])
        left, right = parts
        whole = Positions(left.empty and right.empty)
        written = r.left_registers(expression.left)
        for held1, first in self._fragments(left):
            for held2, second in self._fragments(right):
                held = [p for p in held1 if p[0] in written] + [p for p in held2 if p[0] not in written]
                self._add(whole, both(first.copy(), second), tuple(sorted(held)))
        return whole

    def _complement(self, expression: r.Complement, question: _Question) -> _Rule:
        held = restricted(question.held, question.live)
        reserved = question.reserved | frozenset(question.held)
        whole = Positions()
        inner = expression.operand
        if isinstance(inner, r.Complement):
            # A double complement: the same strings, without marks, and with the registers as they were.
            operand = yield self._ask(question, inner.operand, live=frozenset(), reserved=reserved)
            whole.empty = operand.empty
            for _, fragment in self._fragments(operand):
                silent = [replace(t, labels=frozenset()) if t.labels else t for t in fragment.transitions]
                self._add(whole, fragment.with_transitions(silent), held)
            return whole
        operand = yield self._ask(question, inner, live=frozenset(), reserved=reserved)
        whole.empty = not operand.empty
        fragment = self._alone(operand, (q for ends in operand.ends.values() for q in ends))
        own = self.places.settled(fragment.transitions, self.registers, lambda place: place not in reserved)
        fragment = merge_transitions(fragment.with_transitions(own))
        # Whether windows bound all of the operand except events that it reads unconditionally.
        outside = walk_into(inner, lambda n: isinstance(n, r.Sremo) and not isinstance(n, r.Windowed | r.Terminal))
        bounded = question.windowed or all(not isinstance(n, r.Terminal) or n == r.ANY_EVENT for n in outside)
        if not bounded and remembers_without_end(fragment, self.registers.registers):
            raise UnsupportedQueryError(
                "'!' needs a window here: the excluded part relates its own events by registers, and could take any "
                "number of them",
                span=expression.span,
                hint="Put a window around the whole, (… . !e . …) WITHIN 10 EVENTS, or on the excluded part, "
                "!(e WITHIN 10 EVENTS).",
            )
        self._add(whole, complement_of(fragment, self.registers), held)
        return whole


def _event_denied(expression: r.Intersection) -> r.Terminal | None:
    """``[TRUE] & !(φ | …)`` as a terminal, since it is about one event and so needs no window; None for others."""
    if expression.left != r.ANY_EVENT or not isinstance(expression.right, r.Complement):
        return None
    found = nested_operands(expression.right.operand, r.Alternation)
    denied = [Not(Satisfied(part.condition)) for part in found if isinstance(part, r.Terminal)]
    return r.Terminal(conjunction(denied)) if len(denied) == len(found) else None


#: The name of the runs that must not end.
_DENIED = "denied"
#: The state of the following run: the runs beside it (None: they will end anyway), and whether none ended now.
_Beside = tuple[RunSet | None, bool]


def complement_of(operand: Fragment, registers: RegisterFile) -> Fragment:
    """A deterministic fragment of the strings, except the empty one, that the operand does not match.

    Raises `UnsupportedQueryError` if the runs of the operand remember sets, or divide events into too many cases.
    """
    followed = FollowedRuns(operand, registers, alone=True)
    final, transitions = followed.final, followed.fragment.transitions
    # States in which a run can stay over any event, and end with it.
    ended = {t.source for t in transitions if t.test == TRUE and not t.atoms and t.target in final}
    ending = frozenset(t.source for t in transitions if t.skips and t.source in ended)

    def step(place: _Beside, t: Transition) -> Iterator[tuple[_Beside, Transition]]:
        run_set, _ = place
        if run_set is None:
            return
        sources = [(_DENIED, run_set, every)]
        for case in followed.cases(t, sources):
            moves = followed.moves(case, sources)
            free, open_ = (_both_ways(followed.none_enters(moves, states)) for states in (final, ending))
            after, writes = followed.step(_DENIED, moves, run_set)
            for is_free, not_ended in free:
                for is_open, not_lost in open_:
                    if is_free or is_open:
                        asked = t.reguarded([*case.literals, *not_ended, *not_lost])
                        yield (after if is_open else None, is_free), asked.writing(*writes) if is_open else asked

    follower = Fragment(1, {0}, {0}, [Transition(0, 0)])
    start: _Beside = followed.beginning(), False
    return track(follower, start, step, lambda place: place[1]).trimmed()


def remembers_without_end(operand: Fragment, registers: Sequence[Register]) -> bool:
    """Whether some run can continue over any number of events before it reads a register that it wrote.

    Then the set of all runs may hold any number of values. Starts of windows do not count: the latest one suffices.
    """
    live = operand.finished(registers).live()
    order: TopologicalSorter[tuple[int, int]] = TopologicalSorter()
    for t in operand.transitions:
        for k in live[t.source] & live[t.target] - {write.register for write in t.writes}:
            if registers[k].window is None:
                order.add((t.source, k), (t.target, k))
    try:
        order.prepare()
    except CycleError:
        return True
    return False


def _both_ways(guards: list[Condition] | None) -> list[tuple[bool, list[Condition]]]:
    """Whether guards hold, with the conditions that decide it; without guards they do, and None never does."""
    if guards is None:
        return [(False, [])]
    held = (True, guards)
    return [held, (False, [Not(Satisfied(conjunction(guards)))])] if guards else [held]
