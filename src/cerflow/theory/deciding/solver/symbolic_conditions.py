"""Conditions and registers over unknown events, as formulas of Z3.

What the solver cannot say is *open*: such a condition may have any truth value, so that "there is none" stays right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import z3

from cerflow.automata.model.transducer import Accumulation
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.formula import CountWindow
from cerflow.language.node import Node
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import spelled_out
from cerflow.logic.conditions.guards import InWindow, Measure, Satisfied, Stored, StreamTest, TypeTest, leaves
from cerflow.logic.conditions.register_values import Joined, Known, Word
from cerflow.theory.deciding.solver import symbolic_values as s


@dataclass(frozen=True)
class RegisterTerms:
    """A register: whether it is empty, and its fields; ``fields`` is None for a collection, which is open."""

    empty: Any
    fields: tuple[s.Term, ...] | None

    def key(self) -> tuple[object, ...]:
        """Equal for contents that are the same."""
        return self.empty.get_id(), *(term.key() for term in self.fields or ())


def template(sort: s.ValueSort | None, name: str) -> s.Term:
    """A term of a sort with variables of its own; without a sort, a value that is not known."""
    if sort is None:
        return s.UNKNOWN
    if sort is s.ValueSort.NULL:
        return s.NULL
    return s.Term(z3.Bool(f"{name} is null"), z3.Int(name), sort)


class SymbolicConditions:
    """Conditions over events with some values, and what they were left open about."""

    def __init__(self, values: s.SymbolicValues) -> None:
        self.values = values
        #: For each condition that is open the variables that stand for it, and the terms that it reads, so that these
        #: keep their numbers.
        self._left_open: dict[tuple[object, ...], tuple[c.Condition, Any, Any, object]] = {}

    # -- values --------------------------------------------------------------------------------------------------

    def term(self, expression: Node, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]) -> s.Term:
        """The value of an expression; one that is not known has the sort of null, and is not null."""
        try:
            return self._term(expression, event, memory)
        except s.OpenValueError:
            return s.UNKNOWN

    def _term(self, expression: Node, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]) -> s.Term:
        match expression:
            case c.Attribute(_, name):
                if (found := event.values.get(self.values.event_space.column(name))) is not None:
                    return found
            case c.Literal(value):
                return self.values.constant(value)
            case Stored(register, field):
                if (fields := memory[register].fields) is not None and fields[field].known:
                    return fields[field]
            case c.TruthValue(condition):
                true, false = self.truth(condition, event, memory)
                return s.Term(z3.And(z3.Not(true), z3.Not(false)), z3.If(true, 1, 0), s.ValueSort.TRUTH)
            case Measure(CountWindow()):
                return s.Term(s.NO, event.position, s.ValueSort.INTEGER)
            case c.If(condition, then, otherwise):
                true, _ = self.truth(condition, event, memory)
                return s.chosen_term(true, self._term(then, event, memory), self._term(otherwise, event, memory))
            case Known(inner):
                return s.Term(s.NO, z3.If(self._term(inner, event, memory).null, 0, 1), s.ValueSort.INTEGER)
            case Word(inner, high):
                return s.low_or_high(self._term(inner, event, memory), high)
            case Joined(high, low, False):
                whole, rest = (self._term(part, event, memory) for part in (high, low))
                return s.joined_words(whole, rest)
            case c.Arithmetic(sign, left, right):
                return self.values.computed(sign, self._term(left, event, memory), self._term(right, event, memory))
            case c.Negative(operand):
                return self.values.computed("*", self._term(operand, event, memory), self.values.constant(-1))
            case c.Function("abs", (operand,)):
                return s.absolute(self._term(operand, event, memory))
        raise s.OpenValueError

    # -- conditions ----------------------------------------------------------------------------------------------

    def truth(self, condition: c.Condition, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]) -> tuple[Any, Any]:
        """Whether a condition is true, and whether it is false; where neither holds it is unknown."""
        match condition:
            case c.Constant(value):
                return (s.YES, s.NO) if value else (s.NO, s.YES)
            case c.Not(operand):
                true, false = self.truth(operand, event, memory)
                return false, true
            case c.And() | c.Or():
                (a, b), (p, q) = (self.truth(part, event, memory) for part in (condition.left, condition.right))
                if isinstance(condition, c.And):
                    return z3.And(a, p), z3.Or(b, q)
                return z3.Or(a, p), z3.And(b, q)
            case Satisfied(inner):
                true, _ = self.truth(inner, event, memory)
                return true, z3.Not(true)
            case c.In() | c.Between():
                return self.truth(spelled_out(condition), event, memory)
        try:
            return self._atom(condition, event, memory)
        except s.OpenValueError:
            return self._opened(condition, event, memory)

    def _atom(self, condition: c.Condition, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]) -> tuple[Any, Any]:
        space = self.values.event_space
        match condition:
            case c.Comparison(relation, left, right):
                one, other = self._term(left, event, memory), self._term(right, event, memory)
                return self.values.compared(relation, one, other)
            case c.IsNull(operand, negated):
                null = self._term(operand, event, memory).null
                return (z3.Not(null), null) if negated else (null, z3.Not(null))
            case TypeTest(type_, stream):
                parts = [self._is(event, space.type, type_)]
                if stream is not None and space.stream is not None:
                    parts.append(self._is(event, space.stream, stream))
                true = z3.And(*parts)
            case StreamTest(stream):
                true = s.YES if space.stream is None else self._is(event, space.stream, stream)
            case InWindow(start, CountWindow(size)):
                begun = self._term(start, event, memory)
                true = event.position - begun.number < size
                return z3.And(z3.Not(begun.null), true), z3.And(z3.Not(begun.null), z3.Not(true))
            case _:
                raise s.OpenValueError
        return true, z3.Not(true)

    def _is(self, event: s.SymbolicEvent, column: str, text: str) -> Any:
        if text.startswith("\0"):
            return s.NO
        return event.values[column].number == self.values.text_places[text]

    def _opened(
        self, condition: c.Condition, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]
    ) -> tuple[Any, Any]:
        """Any truth value, but the same for the same values."""
        contents: list[object] = []
        for leaf in leaves(condition):
            if isinstance(leaf, Stored):
                fields = memory[leaf.register].fields
                known = fields is not None and fields[leaf.field].known
                # What is not known may differ from time to time.
                contents.append(fields[leaf.field].key() if known and fields is not None else object())
        key = (condition, event.key(), *contents)
        if key not in self._left_open:
            number = len(self._left_open)
            true, false = z3.Bool(f"open {number} is true"), z3.Bool(f"open {number} is false")
            self._left_open[key] = condition, true, z3.And(false, z3.Not(true)), (event, memory)
        _, true, false, _ = self._left_open[key]
        return true, false

    def doubts(self, formula: Any) -> list[str]:
        """The conditions left open that a formula of Z3 speaks of, for users."""
        names = {str(v) for v in s.variables_of(formula)}
        opened = [condition for condition, true, _, _ in self._left_open.values() if str(true) in names]
        return [show(condition) for condition in dict.fromkeys(opened)]

    # -- registers -----------------------------------------------------------------------------------------------

    def written(self, keeps: Accumulation, former: RegisterTerms, row: Sequence[s.Term]) -> RegisterTerms:
        """The register after a row is written to it; ``former`` is its content where the row adds to that."""
        if former.fields is None:
            return former
        if keeps is not Accumulation.VALUE:
            row = [self._added(keeps, former.empty, old, new) for old, new in zip(former.fields, row)]
        return RegisterTerms(s.NO, tuple(term.simplified() for term in row))

    def _added(self, keeps: Accumulation, empty: Any, former: s.Term, new: s.Term) -> s.Term:
        try:
            if keeps is Accumulation.SAME:
                same, _ = self.values.compared(Operator.EQ, former, new)
                return s.chosen_term(empty, new, s.Term(z3.Not(same), former.number, former.sort))
            better, _ = self.values.compared(Operator.LT if keeps is Accumulation.MIN else Operator.GT, new, former)
            chosen = s.chosen_term(better, new, former)
            return s.chosen_term(empty, new, s.Term(z3.Or(former.null, new.null), chosen.number, chosen.sort))
        except s.OpenValueError:
            return s.UNKNOWN
