"""Writes the program of one condition or value, instruction by instruction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from cerflow.base.decimals import written_text
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.engine import layout, opcodes
from cerflow.engine.evaluate.binding import Call, CallOfSet, words
from cerflow.engine.evaluate.rows import instant
from cerflow.engine.tables.instructions import OPERATORS, Instructions
from cerflow.language import condition as c
from cerflow.language.node import Node
from cerflow.logic.conditions.connectives import spelled_out
from cerflow.logic.conditions.guards import InWindow, NoRow, Satisfied, Stored, is_local
from cerflow.logic.conditions.register_values import Dated, DatePart, Derived, Joined, SquareRoot, Whole

#: The instructions for whole numbers, and for floats.
_ARITHMETIC = {
    "+": (opcodes.ADD_I, opcodes.ADD_F),
    "-": (opcodes.SUBTRACT_I, opcodes.SUBTRACT_F),
    "*": (opcodes.MULTIPLY_I, opcodes.MULTIPLY_F),
    "%": (opcodes.REMAINDER_I, opcodes.REMAINDER_F),
    "/": (opcodes.DIVIDE, opcodes.DIVIDE),
}
_CONNECTIVES = {c.And: opcodes.AND, c.Or: opcodes.OR, c.Not: opcodes.NOT, Satisfied: opcodes.TRUE_ONLY}
_ROUNDING = {"floor": opcodes.FLOOR, "ceil": opcodes.CEIL, "round": opcodes.ROUND}
#: The first slot of each register of a configuration.
Places = Mapping[int, int]


class _AsFloat(Derived):
    """A number as a float."""

    template = "float({expression})"


#: A part of a program: the program of a condition or value, or an instruction, without or with its argument.
Part = Node | int | tuple[int, int]
Parts = Sequence[Part]


@dataclass(eq=False)
class Emitter:
    """Writes the program of one atom or expression. Parts that are left wait on a stack, so depth is unlimited."""

    to: Instructions
    places: Places
    sets: Mapping[int, int]

    def write(self, tree: c.Condition | c.Expression, *, as_float: bool = False) -> None:
        """Write the program of a condition or of a value."""
        left: list[Part] = [_AsFloat(tree) if as_float and isinstance(tree, c.Expression) else tree]
        while left:
            part = left.pop()
            if isinstance(part, int):
                self.to.emit(part)
            elif isinstance(part, tuple):
                self.to.emit(*part)
            elif isinstance(part, c.Condition):
                left.extend(reversed(self._condition(part)))
            else:
                assert isinstance(part, c.Expression)
                left.extend(reversed(self._expression(part)))

    def _is_read(self, current: Node) -> bool:
        """Whether an event column holds the value of a condition or expression."""
        return is_local(current)

    def _is_float(self, expression: c.Expression) -> bool:
        return self.to.kind(expression) is ValueKind.FLOAT

    def _condition(self, current: c.Condition) -> Parts:
        if isinstance(current, c.Constant):
            return [c.Literal(current.value)]
        if self._is_read(current):
            return [(opcodes.COLUMN, self.to.column(c.TruthValue(current), as_float=False))]
        match current:
            case c.And() | c.Or() | c.Not() | Satisfied():
                return [*current.children, _CONNECTIVES[type(current)]]
            case c.Comparison(operator, left, right):
                return self._compare(operator, left, right)
            case NoRow():
                return [c.Literal(False)]
            case InWindow(start, window):
                return [(opcodes.COLUMN, self.to.bound_column(window)), start, (opcodes.COMPARE_I, layout.LT)]
            case c.Between() | c.In():
                return [spelled_out(current)]
            case c.IsNull(operand, negated):
                is_null = opcodes.IS_NULL_F if self._is_float(operand) else opcodes.IS_NULL_I
                return [operand, is_null, opcodes.NOT] if negated else [operand, is_null]
            case Call(_, arguments):
                return [*words(arguments), (opcodes.CALL, self.to.call(current))]
            case CallOfSet(rows=rows):
                # The address of the rows of a collection and the number of their words come first.
                none: Parts = [c.Literal(0), c.Literal(0)]
                held = none if rows is None else [(opcodes.ROWS, self.places[rows.register])]
                return [*held, *words(current.own(current.arguments)), (opcodes.CALL, self.to.call(current))]
            case c.Like() | c.Regexp():
                raise self._of_one_event(type(current).__name__.upper(), current)
        raise AssertionError(f"{type(current).__name__} over several events")

    @staticmethod
    def _of_one_event(what: str, place: Node) -> UnsupportedQueryError:
        return UnsupportedQueryError(
            f"'{what}' is computed from one event in a condition, but this combines several events",
            span=place.span,
            hint="Apply it to the attributes of each event, or compute it in SELECT.",
        )

    def _compare(self, operator: Operator, left: c.Expression, right: c.Expression) -> Parts:
        a, b = self.to.kind(left), self.to.kind(right)
        if ValueKind.TIMESTAMP in (a, b) and ValueKind.STRING in (a, b):
            left, right = self._moment(left), self._moment(right)
            a = b = ValueKind.TIMESTAMP
        if ValueKind.DECIMAL in (a, b):
            left, right = _decimal(left), _decimal(right)
            a = b = ValueKind.DECIMAL
        # NULL alone fits every kind.
        a, b = (b if a is ValueKind.OTHER else a), (a if b is ValueKind.OTHER else b)
        if ValueKind.FLOAT in (a, b):
            return [_AsFloat(left), _AsFloat(right), (opcodes.COMPARE_F, OPERATORS[operator])]
        compared = (opcodes.COMPARE_I, OPERATORS[operator])
        if (a.coded or b.coded) and operator not in (Operator.EQ, Operator.NE):
            self.to.ordered = True
            return [left, opcodes.RANKED, right, opcodes.RANKED, compared]
        return [left, right, compared]

    def _moment(self, expression: c.Expression) -> c.Expression:
        if isinstance(expression, c.Literal) and isinstance(expression.value, str):
            return c.Literal(instant(expression.value, self.to.unit))
        return expression

    def _as_float(self, expression: c.Expression) -> Parts:
        if isinstance(expression, c.Literal):
            value = expression.value
            assert value is None or isinstance(value, int | float)
            return [c.Literal(math.nan if value is None else float(value))]
        if self._is_read(expression):
            return [(opcodes.COLUMN, self.to.column(expression, as_float=True))]
        return [expression] if self._is_float(expression) else [expression, opcodes.TO_FLOAT]

    def _alike(self, whole: c.Expression, *parts: c.Expression) -> Sequence[c.Expression]:
        """The parts in the form of the whole: floats or 64-bit integers."""
        return [*map(_AsFloat, parts)] if self._is_float(whole) else parts

    def _expression(self, current: c.Expression) -> Parts:
        match current:
            case _AsFloat(expression):
                return self._as_float(expression)
            case Stored(register, field) if register in self.sets:
                return [(opcodes.SET_FIELD, (self.sets[register] << 16) | field)]
            case Stored(register, field):
                return [(opcodes.SLOT, self.places[register] + field)]
            case c.Literal(value):
                return [(opcodes.CONSTANT, self.to.constant(self._word_of(value)))]
            case _ if self._is_read(current):
                return [(opcodes.COLUMN, self.to.column(current, as_float=self._is_float(current)))]
            case c.TruthValue(condition):
                return [condition]
            case c.If(condition, then, otherwise):
                return [condition, *self._alike(current, then, otherwise), opcodes.SELECT]
            case Joined(_, low) if self._is_float(low):
                return [_AsFloat(low)]
            case Joined(high, low, floating):
                return [high, low, opcodes.JOIN_F if floating else opcodes.JOIN_I]
            case SquareRoot(operand):
                return [_AsFloat(operand), opcodes.SQUARE_ROOT]
            case Dated(operand):
                return [operand, opcodes.DATED]
            case Whole(operand):
                return [_AsFloat(operand), opcodes.WHOLE]
            case c.Arithmetic() if self.to.kind(current) is ValueKind.OTHER:
                return [c.Literal(None)]
            case c.Arithmetic(operator, left, right):
                return [*self._alike(current, left, right), _ARITHMETIC[operator][self._is_float(current)]]
            case c.Negative(operand):
                return [operand, opcodes.NEGATE_F if self._is_float(operand) else opcodes.NEGATE_I]
            case c.Function("coalesce", arguments):
                joined = opcodes.COALESCE_F if self._is_float(current) else opcodes.COALESCE_I
                first, *others = self._alike(current, *arguments)
                return [first, *(part for other in others for part in (other, joined))]
            case c.Function("abs", (argument,)):
                return [argument, opcodes.ABS_F if self._is_float(argument) else opcodes.ABS_I]
            case c.Function(name, (argument,)) if name in _ROUNDING:
                return [argument, _ROUNDING[name]] if self._is_float(argument) else [argument]
            case c.Function(name) | DatePart(_, name):
                raise self._of_one_event(name, current)
        raise AssertionError(f"{type(current).__name__} over several events")

    def _word_of(self, value: int | float | str | bool | timedelta | None) -> int:
        """The 64 bits that stand for a literal."""
        if value is None:
            return layout.NULL
        if isinstance(value, str):
            return self.to.strings.code(value)
        if isinstance(value, timedelta):
            return value // timedelta(microseconds=1)
        return int(np.float64(value).view(np.int64)) if isinstance(value, float) else int(value)


def _decimal(expression: c.Expression) -> c.Expression:
    """A literal compared with an exact decimal, as the text that represents it."""
    if isinstance(expression, c.Literal) and isinstance(expression.value, int | float | str):
        return c.Literal(written_text(expression.value))
    return expression
