"""Conditions and registers over unknown events, as formulas of Z3.

What the solver cannot say is *open*: such a condition may have any truth value, so that "there is none" stays right.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import z3

from cerflow.automata.model.transducer import Accumulation
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.formula import CountWindow
from cerflow.language.node import Node
from cerflow.language.printer import show
from cerflow.logic.conditions.connectives import spelled_out
from cerflow.logic.conditions.guards import InWindow, Measure, Satisfied, Shown, Stored, StreamTest, TypeTest, leaves
from cerflow.logic.conditions.register_values import Joined, Known, Word
from cerflow.theory.deciding.solver import symbolic_values as s

#: Where a window begins.
_FIRST: Any = Shown("the first event")


@dataclass(frozen=True)
class RegisterTerms:
    """A register: whether it is empty, and its fields; None for what the solver cannot say, as in a collection."""

    empty: Any
    fields: tuple[s.Term | None, ...]


class SymbolicConditions:
    """Conditions over events with some values, and what they were left open about."""

    def __init__(self, values: s.SymbolicValues) -> None:
        self.values = values
        #: For each condition that is open, at an event and for some values of registers, whether it is true and false.
        self._left_open: dict[tuple[c.Condition, object, tuple[object, ...]], tuple[Any, Any]] = {}

    # -- values --------------------------------------------------------------------------------------------------

    def term(self, expression: Node, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]) -> s.Term | None:
        """The value of an expression, None if the solver cannot say it."""
        with suppress(s.OpenValueError):
            return self._term(expression, event, memory)
        return None

    def _term(self, expression: Node, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]) -> s.Term:
        match expression:
            case c.Attribute(_, name):
                if (found := event.values.get(self.values.event_space.column(name))) is not None:
                    return found
            case c.Literal(value):
                return self.values.constant(value)
            case Stored(register, field):
                if (stored := memory[register].fields[field]) is not None:
                    return stored
            case c.TruthValue(condition):
                true, false = self.truth(condition, event, memory)
                return s.Term(s.ValueSort.TRUTH, z3.And(z3.Not(true), z3.Not(false)), z3.If(true, 1, 0))
            case Measure(CountWindow()):
                return s.Term(s.ValueSort.INTEGER, s.NO, event.position)
            case Measure(window):
                # Of times and attributes that windows measure nothing else is said.
                return s.Term(s.ValueSort.INTEGER, s.NO, z3.Int(f"{show(window)} @{event.position}"))
            case c.If(condition, then, otherwise):
                true, _ = self.truth(condition, event, memory)
                return s.chosen_term(true, self._term(then, event, memory), self._term(otherwise, event, memory))
            case Known(inner):
                return s.Term(s.ValueSort.INTEGER, s.NO, z3.If(self._term(inner, event, memory).null, 0, 1))
            case Word(inner, high):
                return s.low_or_high(self._term(inner, event, memory), high)
            case Joined(high, low, False):
                return s.joined_words(self._term(high, event, memory), self._term(low, event, memory))
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
                true = z3.And(self._is(event, space.type, type_), self._is(event, space.stream, stream))
            case StreamTest(stream):
                true = self._is(event, space.stream, stream)
            case InWindow(start, CountWindow(size)):
                begun = self._term(start, event, memory)
                true = event.position - begun.number < size
                return z3.And(z3.Not(begun.null), true), z3.And(z3.Not(begun.null), z3.Not(true))
            case _:
                raise s.OpenValueError
        return true, z3.Not(true)

    def _is(self, event: s.SymbolicEvent, column: str | None, text: str | None) -> Any:
        """Whether a column holds a text; streams without names, or of any name, are all alike."""
        if column is None or text is None:
            return s.YES
        if text.startswith("\0"):
            return s.NO
        return event.values[column].number == self.values.text_places[text]

    def _opened(
        self, condition: c.Condition, event: s.SymbolicEvent, memory: Sequence[RegisterTerms]
    ) -> tuple[Any, Any]:
        """Any truth value, but the same for the same values."""
        stored = [memory[leaf.register].fields[leaf.field] for leaf in leaves(condition) if isinstance(leaf, Stored)]
        if isinstance(condition, InWindow):
            # Registers of two transducers may hold the same start.
            condition = InWindow(_FIRST, condition.window)
        # Two unknown values may differ.
        key = (condition, event, tuple(object() if term is None else term for term in stored))
        if key not in self._left_open:
            number = len(self._left_open)
            true, false = z3.Bool(f"open {number} is true"), z3.Bool(f"open {number} is false")
            self._left_open[key] = true, z3.And(false, z3.Not(true))
        return self._left_open[key]

    def doubts(self, formula: Any) -> list[str]:
        """The conditions left open that a formula of Z3 speaks of, for users."""
        variables = set(s.variables_of(formula))
        opened = (condition for (condition, _, _), (true, _) in self._left_open.items() if true in variables)
        return [show(condition) for condition in dict.fromkeys(opened)]

    # -- registers -----------------------------------------------------------------------------------------------

    def written(self, keeps: Accumulation, former: RegisterTerms, row: Sequence[s.Term | None]) -> RegisterTerms:
        """The register after a row is written to it; ``former`` is its content where the row adds to that."""
        if keeps is Accumulation.SET:
            return former
        if keeps is not Accumulation.VALUE:
            row = [self._added(keeps, former.empty, old, new) for old, new in zip(former.fields, row)]
        return RegisterTerms(s.NO, tuple(None if term is None else term.simplified() for term in row))

    def _added(self, keeps: Accumulation, empty: Any, former: s.Term | None, new: s.Term | None) -> s.Term | None:
        if former is None or new is None:
            return None
        with suppress(s.OpenValueError):
            if keeps is Accumulation.SAME:
                same, _ = self.values.compared(Operator.EQ, former, new)
                return s.chosen_term(empty, new, replace(former, null=z3.Not(same), constant=None))
            better, _ = self.values.compared(Operator.LT if keeps is Accumulation.MIN else Operator.GT, new, former)
            chosen = s.chosen_term(better, new, former)
            return s.chosen_term(empty, new, replace(chosen, null=z3.Or(former.null, new.null)))
        return None
