"""Writes the program of one condition or value, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

import numpy as np

from cerflow.base.decimals import written_text
from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.engine import layout, opcodes
from cerflow.engine.evaluate.binding import Call, CallOfSet, WholeEvent
from cerflow.engine.evaluate.rows import instant
from cerflow.engine.tables.instructions import OPERATORS, Instructions
from cerflow.language import condition as c
from cerflow.language.node import Node
from cerflow.logic.conditions.guards import AllRows, InWindow, NoRow, Satisfied, Stored, is_local
from cerflow.logic.conditions.register_values import Dated, DatePart, Joined, SquareRoot, Whole

_INTEGER_CODE = {"+": opcodes.ADD_I, "-": opcodes.SUBTRACT_I, "*": opcodes.MULTIPLY_I, "%": opcodes.REMAINDER_I}
_FLOAT_CODE = {
    "+": opcodes.ADD_F,
    "-": opcodes.SUBTRACT_F,
    "*": opcodes.MULTIPLY_F,
    "%": opcodes.REMAINDER_F,
    "/": opcodes.DIVIDE,
}
_ROUNDING = {"floor": opcodes.FLOOR, "ceil": opcodes.CEIL, "round": opcodes.ROUND}
#: The first slot of each register of a configuration.
Places = Mapping[int, int]


class Emitter:
    """Writes the program of one atom or expression. Pending work waits on a stack, so depth is unlimited."""

    def __init__(self, to: Instructions, places: Places, sets: Mapping[int, int]) -> None:
        self.to = to
        self.places = places
        self.sets = sets
        self._pending: list[Callable[[], None]] = []

    def condition(self, atom: c.Condition) -> None:
        """Write the program of an atom."""
        self._run(lambda: self._condition(atom))

    def expression(self, expression: c.Expression, *, as_float: bool) -> None:
        """Write the program of a value."""
        self._run(*(self._as_float(expression) if as_float else [self._value(expression)]))

    def _run(self, *work: Callable[[], None]) -> None:
        self._later(*work)
        while self._pending:
            self._pending.pop()()

    def _later(self, *work: Callable[[], None]) -> None:
        """Do these next, in this order."""
        self._pending.extend(reversed(work))

    def _then(self, opcode: int, argument: int = 0) -> Callable[[], None]:
        return lambda: self.to.emit(opcode, argument)

    def _is_read(self, current: Node) -> bool:
        """Whether an event column holds the value of a condition or expression."""
        return is_local(current)

    def _condition(self, current: c.Condition) -> None:
        if isinstance(current, c.Constant):
            self.to.constant(int(current.value))
            return
        if self._is_read(current):
            self.to.emit(opcodes.COLUMN, self.to.column(c.TruthValue(current), as_float=False))
            return
        match current:
            case c.And(left, right):
                self._later(self._of(left), self._of(right), self._then(opcodes.AND))
            case c.Or(left, right):
                self._later(self._of(left), self._of(right), self._then(opcodes.OR))
            case c.Not(operand):
                self._later(self._of(operand), self._then(opcodes.NOT))
            case Satisfied(operand):
                self._later(self._of(operand), self._then(opcodes.TRUE_ONLY))
            case c.Comparison(operator, left, right):
                self._compare(operator, left, right)
            case NoRow():
                self.to.constant(0)
            case InWindow(start, window):
                self.to.emit(opcodes.COLUMN, self.to.bound_column(window))
                self._later(self._value(start), self._then(opcodes.COMPARE_I, layout.LT))
            case c.Between() | c.In():
                join = opcodes.AND if isinstance(current, c.Between) else opcodes.OR
                first, *others = map(self._of, c.comparisons(current))
                work = [first, *(step for part in others for step in (part, self._then(join)))]
                self._later(*work, *([self._then(opcodes.NOT)] if current.negated else []))
            case c.IsNull(operand, negated):
                is_float = self.to.kind(operand) is ValueKind.FLOAT
                work = [self._value(operand), self._then(opcodes.IS_NULL_F if is_float else opcodes.IS_NULL_I)]
                self._later(*work, *([self._then(opcodes.NOT)] if negated else []))
            case Call(_, arguments):
                self._later(*map(self._value, _words(arguments)), lambda: self.to.call(current))
            case CallOfSet(rows=rows):
                own = map(self._value, _words(current.own))
                self._later(lambda: self._rows(rows), *own, lambda: self.to.call(current))
            case c.Like() | c.Regexp():
                word = "LIKE" if isinstance(current, c.Like) else "REGEXP"
                raise self._of_one_event(word, current)
            case _:
                raise AssertionError(f"{type(current).__name__} over several events")

    @staticmethod
    def _of_one_event(what: str, place: Node) -> UnsupportedQueryError:
        return UnsupportedQueryError(
            f"'{what}' is computed from one event in a condition, but this combines several events",
            span=place.span,
            hint="Apply it to the attributes of each event, or compute it in SELECT.",
        )

    def _rows(self, rows: AllRows | None) -> None:
        """Push the address of the rows of a collection and the number of their words."""
        if rows is not None:
            self.to.emit(opcodes.ROWS, self.places[rows.register])
            return
        self.to.constant(0)
        self.to.constant(0)

    def _of(self, current: c.Condition) -> Callable[[], None]:
        return lambda: self._condition(current)

    def _compare(self, operator: Operator, left: c.Expression, right: c.Expression) -> None:
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
            self._later(
                *self._as_float(left), *self._as_float(right), self._then(opcodes.COMPARE_F, OPERATORS[operator])
            )
            return
        ranked = []
        if (a.coded or b.coded) and operator not in (Operator.EQ, Operator.NE):
            self.to.ordered = True
            ranked = [self._then(opcodes.RANKED)]
        self._later(
            self._value(left), *ranked, self._value(right), *ranked, self._then(opcodes.COMPARE_I, OPERATORS[operator])
        )

    def _moment(self, expression: c.Expression) -> c.Expression:
        if isinstance(expression, c.Literal) and isinstance(expression.value, str):
            return c.Literal(instant(expression.value, self.to.unit))
        return expression

    def _as_float(self, expression: c.Expression) -> list[Callable[[], None]]:
        if self._is_read(expression) and not isinstance(expression, c.Literal):
            return [self._then(opcodes.COLUMN, self.to.column(expression, as_float=True))]
        if isinstance(expression, c.Literal):
            value = expression.value
            assert value is None or isinstance(value, int | float)
            bits = int(np.float64(np.nan if value is None else value).view(np.int64))
            return [lambda: self.to.constant(bits)]
        work = [self._value(expression)]
        if self.to.kind(expression) is not ValueKind.FLOAT:
            work.append(self._then(opcodes.TO_FLOAT))
        return work

    def _alike(self, whole: c.Expression, *parts: c.Expression) -> list[Callable[[], None]]:
        """The parts in the form of the whole: floats or 64-bit integers."""
        if self.to.kind(whole) is ValueKind.FLOAT:
            return [work for part in parts for work in self._as_float(part)]
        return [self._value(part) for part in parts]

    def _value(self, expression: c.Expression) -> Callable[[], None]:
        return lambda: self._expression(expression)

    def _expression(self, current: c.Expression) -> None:
        match current:
            case Stored(register, field) if register in self.sets:
                self.to.emit(opcodes.SET_FIELD, (self.sets[register] << 16) | field)
            case Stored(register, field):
                self.to.emit(opcodes.SLOT, self.places[register] + field)
            case c.Literal(value):
                self._literal(value)
            case _ if self._is_read(current):
                is_float = self.to.kind(current) is ValueKind.FLOAT
                self.to.emit(opcodes.COLUMN, self.to.column(current, as_float=is_float))
            case c.TruthValue(condition):
                self._condition(condition)
            case c.If(condition, then, otherwise):
                self._later(self._of(condition), *self._alike(current, then, otherwise), self._then(opcodes.SELECT))
            case Joined(high, low, floating):
                if self.to.kind(low) is ValueKind.FLOAT:
                    self._later(*self._as_float(low))
                else:
                    join = opcodes.JOIN_F if floating else opcodes.JOIN_I
                    self._later(self._value(high), self._value(low), self._then(join))
            case SquareRoot(operand):
                self._later(*self._as_float(operand), self._then(opcodes.SQUARE_ROOT))
            case Dated(operand):
                self._later(self._value(operand), self._then(opcodes.DATED))
            case Whole(operand):
                self._later(*self._as_float(operand), self._then(opcodes.WHOLE))
            case c.Arithmetic() if self.to.kind(current) is ValueKind.OTHER:
                self.to.constant(layout.NULL)
            case c.Arithmetic(operator, left, right):
                if self.to.kind(current) is ValueKind.FLOAT:
                    self._later(*self._as_float(left), *self._as_float(right), self._then(_FLOAT_CODE[operator]))
                else:
                    self._later(self._value(left), self._value(right), self._then(_INTEGER_CODE[operator]))
            case c.Negative(operand):
                is_float = self.to.kind(operand) is ValueKind.FLOAT
                self._later(self._value(operand), self._then(opcodes.NEGATE_F if is_float else opcodes.NEGATE_I))
            case c.Function("coalesce", (first, *others)):
                is_float = self.to.kind(current) is ValueKind.FLOAT
                joined = self._then(opcodes.COALESCE_F if is_float else opcodes.COALESCE_I)
                work = self._alike(current, first)
                for other in others:
                    work += [*self._alike(current, other), joined]
                self._later(*work)
            case c.Function(name, (argument,)) if name == "abs" or name in _ROUNDING:
                is_float = self.to.kind(argument) is ValueKind.FLOAT
                work = [self._value(argument)]
                if name == "abs":
                    work.append(self._then(opcodes.ABS_F if is_float else opcodes.ABS_I))
                elif is_float:
                    work.append(self._then(_ROUNDING[name]))
                self._later(*work)
            case c.Function(name) | DatePart(_, name):
                raise self._of_one_event(name, current)
            case _:
                raise AssertionError(f"{type(current).__name__} over several events")

    def _literal(self, value: int | float | str | bool | timedelta | None) -> None:
        if value is None:
            self.to.constant(layout.NULL)
        elif isinstance(value, str):
            self.to.constant(self.to.strings.code(value))
        elif isinstance(value, timedelta):
            self.to.constant(value // timedelta(microseconds=1))
        elif isinstance(value, float):
            self.to.constant(int(np.float64(value).view(np.int64)))
        else:
            self.to.constant(int(value))


def _decimal(expression: c.Expression) -> c.Expression:
    """A literal compared with an exact decimal, as the text that represents it."""
    if isinstance(expression, c.Literal) and isinstance(expression.value, int | float | str):
        return c.Literal(written_text(expression.value))
    return expression


def _words(arguments: Iterable[c.Expression]) -> list[c.Expression]:
    """The values that make up arguments; a whole event is many values."""
    return [v for a in arguments for v in (a.values if isinstance(a, WholeEvent) else (a,))]
