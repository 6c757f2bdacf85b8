"""The meaning of SREMO: the relation ``(e, S, M, v) ⊢ v'`` (spec §5; register transducers §1.3, Definition 17).

``e`` reads the string S = S[m…n-1] from registers v, marks M and leaves registers v'. As in
`cerflow.theory.semantics.formulas`, every rule is a generator that asks for its parts.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import reduce

from cerflow.base.errors import ArgumentError
from cerflow.base.events import ComplexEvent, Event, StreamGiven, as_stream, support
from cerflow.base.graphs import answered
from cerflow.language import sremo as r
from cerflow.language.builder.given import SremoGiven, sremo_tree
from cerflow.language.node import fold_only
from cerflow.logic.analysis.checks import refuse_aggregates, refuse_doubtful_reads
from cerflow.theory.semantics.complex_events import within
from cerflow.theory.semantics.conditions import check_conditions, satisfies_with_registers

#: The positions of the events in the filled registers: (register, index), sorted.
Registers = tuple[tuple[str, int], ...]
#: A part of the expression, and its remaining operands (where that matters).
_Part = tuple[int, tuple[int, ...]]
#: A part and its remaining operands, m, n, v.
_Question = tuple[int, tuple[int, ...], int, int, Registers]
_Outcomes = frozenset[tuple[ComplexEvent, Registers]]
_Rule = Generator[_Question, _Outcomes, _Outcomes]


def sremo_matches(expression: SremoGiven, events: StreamGiven) -> frozenset[tuple[int, ComplexEvent]]:
    """All matches (n, C) in a stream: C is a match on S[m…n] for some m ≤ n, and n its last marked event.

    Raises `QueryError` for aggregates and other conditions that are not on events one by one, such as MATCH_NUMBER(),
    and for a read after ``&`` of a register that both sides write.
    """
    stream = as_stream(events)
    columns = {name for event in stream for name in event.attributes}
    denotation = SremoDenotation(r.with_fields(sremo_tree(expression), columns), stream)
    return frozenset((n, marks) for n in range(len(stream)) for marks in denotation.ending(0, n))


def sremo_match_string(expression: SremoGiven, events: StreamGiven) -> frozenset[ComplexEvent]:
    """``Match(e, S)`` for the whole string S (004 Definition 18), the empty M included.

    S is in ``Lang(e)`` iff the result is not empty.
    """
    return frozenset(marks for marks, _ in sremo_derivations(expression, events))


def sremo_derivations(
    expression: SremoGiven, events: StreamGiven, registers: Mapping[str, int] | None = None
) -> frozenset[tuple[ComplexEvent, Registers]]:
    """All (M, v') with ``(e, S, M, v) ⊢ v'`` for the whole string S (004 Definition 17).

    ``registers`` is v, the positions of the events in filled registers (None: all are empty). v' is written as sorted
    pairs of register and position.
    """
    stream = as_stream(events)
    for register, position in (registers or {}).items():
        if not 0 <= position < len(stream):
            raise ArgumentError(
                f"register '{register}' holds event {position}, but the string has {len(stream)} events"
            )
    held = tuple(sorted((registers or {}).items()))
    return SremoDenotation(sremo_tree(expression), stream)(0, len(stream), held)


#: What joins the parts of operators that are made of others.
_THEN = r.Concatenation(r.Epsilon(), r.Epsilon())
_EITHER = r.Alternation(r.Epsilon(), r.Epsilon())
_REPEATED = r.Star(r.Epsilon())


class SremoDenotation:
    """``(e, S[m…n-1], M, v) ⊢ v'`` over one stream: call it with m, n (and v) for all (M, v')."""

    def __init__(self, expression: r.Sremo, events: Sequence[Event]) -> None:
        expression = r.names_told_apart(expression)
        refuse_aggregates(expression)
        check_conditions(expression)
        refuse_doubtful_reads(expression)
        self._events = events
        self._known: dict[_Question, _Outcomes] = {}
        self._parts: list[r.Sremo] = []
        self._below: list[tuple[int, ...]] = []

        fold_only(expression, r.Sremo, self._visit)

    def _visit(self, _: int, current: r.Sremo, below: list[int]) -> int:
        """The part for an expression; ``+``, ``?``, ``any`` and ``next`` are made of others."""
        part = self._part
        match current:
            case r.Plus():
                return part(_THEN, below[0], part(_REPEATED, below[0]))
            case r.Optional():
                return part(_EITHER, part(r.Epsilon()), below[0])
            case r.AnyMatch() | r.NextMatch():
                # The strategy as a part is what it skips before an operand.
                if len(below) == 1 and isinstance(current.parts[0], r.Plus | r.Star):
                    # ``e · (skip · e)*``, for ``e*`` perhaps empty as a whole.
                    body = self._below[below[0]][0]
                    whole = part(_THEN, body, part(_REPEATED, part(_THEN, part(current, body), body)))
                    return whole if isinstance(current.parts[0], r.Plus) else part(_EITHER, part(r.Epsilon()), whole)
                # ``e1 · skip · e2 · … · en``
                return reduce(lambda left, k: part(_THEN, left, part(_THEN, part(current, k), k)), below)
        return part(current, *below)

    def _part(self, meaning: r.Sremo, *below: int) -> int:
        """A new part, by its number, with these operands instead of those of the expression."""
        self._parts.append(meaning)
        self._below.append(below)
        return len(self._parts) - 1

    def __call__(self, m: int, n: int, registers: Registers = ()) -> _Outcomes:
        """All (M, v') with ``(e, S[m…n-1], M, registers) ⊢ v'``."""
        whole: _Question = (*self._first(len(self._parts) - 1), m, n, registers)
        return answered(whole, lambda question: self._rule(*question), self._known)

    def ending(self, i: int, n: int) -> frozenset[ComplexEvent]:
        """The matches on S[m…n] for some m from i to n whose last marked event is n."""
        found = (marks for m in range(i, n + 1) for marks, _ in self(m, n + 1))
        return frozenset(marks for marks in found if marks and max(support(marks)) == n)

    def _first(self, k: int) -> _Part:
        """Part k with all its operands remaining."""
        return k, self._below[k] if isinstance(self._parts[k], r.Unordered) else ()

    def _rule(self, k: int, rest: tuple[int, ...], m: int, n: int, v: Registers) -> _Rule:
        expression, below = self._parts[k], self._below[k]
        nothing: _Outcomes = frozenset()
        unmarked: _Outcomes = frozenset(((frozenset(), v),))

        def ask(part: int, start: int, end: int, registers: Registers) -> _Question:
            return (*self._first(part), start, end, registers)

        match expression:
            case r.Epsilon():
                return unmarked if m == n else nothing
            case r.Empty():
                return nothing
            case r.Terminal():
                held = {register: self._events[index] for register, index in v}
                if n != m + 1 or not satisfies_with_registers(expression.condition, self._events[m], held):
                    return nothing
                marks = frozenset(((expression.label, m),)) if expression.label is not None else frozenset()
                return frozenset(((marks, _written(v, dict.fromkeys(expression.registers, m))),))
            case r.Concatenation():
                return (yield from self._in_turn(self._first(below[0]), self._first(below[1]), m, n, v, m))
            case r.Alternation():
                return (yield ask(below[0], m, n, v)) | (yield ask(below[1], m, n, v))
            case r.Star():
                if m == n:
                    return unmarked
                # Each repetition reads an event: repeating the empty string changes nothing.
                return (yield from self._in_turn(self._first(below[0]), self._first(k), m, n, v, m + 1))
            case r.Intersection():
                left = yield ask(below[0], m, n, v)
                right = yield ask(below[1], m, n, v)
                # Of a register that both sides write nothing is read after them.
                wrote = r.left_registers(expression.right)
                return frozenset(
                    (marks, _written(v1, {register: p for register, p in v2 if register in wrote}))
                    for marks, v1 in left
                    for marks2, v2 in right
                    if marks == marks2
                )
            case r.Complement():
                return nothing if (yield ask(below[0], m, n, v)) else unmarked
            case r.Windowed():
                window, outcomes = expression.window, (yield ask(below[0], m, n, v))
                return frozenset(o for o in outcomes if within(o[0], window, self._events))
            case r.AnyMatch():
                return unmarked
            case r.NextMatch():
                # A stretch that as a whole holds no match of the following operand (§11.7). Matches of the empty string
                # do not count, or nothing could ever stand before ``e*``.
                for start in range(m, n):
                    for end in range(start + 1, n + 1):
                        if (yield ask(below[0], start, end, v)):
                            return nothing
                return unmarked
            case r.Unordered():
                # One of the remaining operands, then the others in any order.
                found: set[tuple[ComplexEvent, Registers]] = set(unmarked if not rest and m == n else nothing)
                for place, part in enumerate(rest):
                    others = rest[:place] + rest[place + 1 :]
                    found |= yield from self._in_turn(self._first(part), (k, others), m, n, v, m)
                return frozenset(found)
        raise TypeError(f"{type(expression).__name__} is not an expression")

    def _in_turn(self, first: _Part, then: _Part, m: int, n: int, v: Registers, begin: int) -> _Rule:
        """One part, and then another one from ``begin`` or later on."""
        found: set[tuple[ComplexEvent, Registers]] = set()
        for split in range(begin, n + 1):
            for marks1, v1 in (yield (*first, m, split, v)):
                for marks2, v2 in (yield (*then, split, n, v1)):
                    found.add((marks1 | marks2, v2))
        return frozenset(found)


def _written(v: Registers, new: dict[str, int]) -> Registers:
    return tuple(sorted({**dict(v), **new}.items()))
