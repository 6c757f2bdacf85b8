"""Conditions on one event as Spark columns, if Spark certainly evaluates them as the engine does.

What Spark would see otherwise, or might fail at where the engine does not, has no translation: regular expressions
(its own are Java's), upper and lower case, rounding, predicates, decimals that are compared exactly, dates,
collations of texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from cerflow.base import limits
from cerflow.base.events import moment_at
from cerflow.base.operators import RELATIONS, Operator
from cerflow.base.schema import ValueKind, kind_of
from cerflow.base.text_patterns import MANY, ONE, tokens
from cerflow.base.units import DAY
from cerflow.engine.evaluate.rows import instant
from cerflow.engine.pushdown.translation import Translation, UndecidedError, encodable
from cerflow.language.condition import Arithmetic, Attribute, Condition, Expression, Function, Literal, Negative
from cerflow.logic.conditions.guards import TypeTest
from cerflow.logic.conditions.register_values import Microseconds

_FLOATS = (T.FloatType, T.DoubleType)
_LEAST = -(2**63)

#: Kinds of values in Spark; timestamps with a time zone and those without are different things.
_NUMBER, _REAL, _TEXT, _TRUTH, _INSTANT, _MOMENT, _NULL = range(7)


#: What computes with floats, and with whole numbers where it gives them.
_ARITHMETIC: Mapping[str, tuple[Callable[[Column, Column], Column], Callable[[Column, Column], Column] | None]] = {
    "+": (Column.__add__, F.try_add),
    "-": (Column.__sub__, F.try_subtract),
    "*": (Column.__mul__, F.try_multiply),
    "/": (F.try_divide, None),
    "%": (F.try_mod, F.try_mod),
}


class SparkConditions(Translation[Column]):
    """Propositions about the columns of one DataFrame (see `cerflow.logic.conditions.propositions`).

    ``types`` are the columns of the input by their names, ``plain`` the names under which they are found, and ``type``
    is the name of the column with the type of events.
    """

    def __init__(self, types: Mapping[str, T.DataType], plain: Mapping[str, str], type: str) -> None:
        self._types = types
        self._plain = plain
        self.type = type

    def _found(self, name: str) -> Column:
        return F.col(self._plain[name])

    def _constant(self, value: bool) -> Column:
        return F.lit(value)

    def _not_true(self, condition: Condition) -> Column:
        if isinstance(condition, TypeTest):
            column = self._found(self.type)
            return (column != encodable(condition.type)) | column.isNull()
        return ~F.coalesce(self._leaf(condition), F.lit(False))

    # -- values

    def _value(self, expression: Expression) -> tuple[Column, int]:
        """A column with the values of an expression, null or NaN where it has none, and what they are."""
        match expression:
            case Attribute():
                return self._attribute(expression.name)
            case Literal():
                return self._literal_value(expression.value)
            case Function("length", (operand,)):
                return F.length(self._text(operand)).cast(T.LongType()), _NUMBER
            case Function("abs", (operand,)):
                column, kind = self._computed(operand)
                if kind == _REAL:
                    return F.abs(column), _REAL
                return F.when(column < 0, _opposite(column)).otherwise(column), kind
            case Negative(operand):
                column, kind = self._computed(operand)
                return -column if kind == _REAL else _opposite(column), kind
            case Microseconds(Attribute(_, name)):
                return self.microseconds(self._column(name)), _NUMBER
            case Arithmetic(operator, left, right):
                return self._arithmetic(operator, *self._computed(left), *self._computed(right))
        raise UndecidedError

    def _column(self, name: str) -> str:
        return self.type if name == "type" and name not in self._types else name

    def _attribute(self, name: str) -> tuple[Column, int]:
        name = self._column(name)
        column, data_type = self._found(name), self._types[name]
        match data_type:
            case T.StringType() if type(data_type) is T.StringType and data_type.isUTF8BinaryCollation():
                return column, _TEXT
            case T.BooleanType():
                return column, _TRUTH
            case T.TimestampType():
                return column, _INSTANT
            case T.TimestampNTZType():
                return column, _MOMENT
            case T.DecimalType():
                kind = kind_of(pa.decimal128(data_type.precision, data_type.scale))
                if kind is ValueKind.INTEGER:
                    return column.cast(T.LongType()), _NUMBER
                if kind is ValueKind.FLOAT:
                    return column.cast(T.DoubleType()), _REAL
        if isinstance(data_type, T.IntegralType):
            return column, _NUMBER
        if isinstance(data_type, _FLOATS):
            return column if isinstance(data_type, T.DoubleType) else column.cast(T.DoubleType()), _REAL
        raise UndecidedError

    def microseconds(self, name: str) -> Column:
        """The microseconds of a column of times, which do not depend on the time zone of the session."""
        column, data_type = self._found(name), self._types[name]
        match data_type:
            case T.TimestampType():
                return F.unix_micros(column)
            case T.TimestampNTZType():
                days = F.unix_date(column.cast(T.DateType())).cast(T.LongType())
                within = _seconds(F.hour(column), F.minute(column), F.extract(F.lit("SECOND"), column))
                # Towards zero, as the beginning of the first day is beyond 64 bits.
                return F.when(days < 0, (days + 1) * DAY + (within - DAY)).otherwise(days * DAY + within)
            case T.DayTimeIntervalType(startField=T.DayTimeIntervalType.DAY, endField=T.DayTimeIntervalType.SECOND):
                days, *parts = (F.extract(F.lit(part), column) for part in ("DAY", "HOUR", "MINUTE", "SECOND"))
                return days.cast(T.LongType()) * DAY + _seconds(*parts)
        raise UndecidedError

    def _literal_value(self, value: object) -> tuple[Column, int]:
        match value:
            case None:
                return F.lit(None), _NULL
            case bool():
                return F.lit(value), _TRUTH
            case int() if _LEAST < value < 2**63:
                return F.lit(value).cast(T.LongType()), _NUMBER
            case float() if math.isfinite(value):
                return F.lit(value), _REAL
            case str():
                return F.lit(encodable(value)), _TEXT
        raise UndecidedError

    def _text(self, operand: Expression) -> Column:
        column, kind = self._value(operand)
        if kind != _TEXT:
            raise UndecidedError
        return column

    def _null(self, operand: Expression, negated: bool) -> Column:
        if not isinstance(operand, Attribute):
            column, kind = self._value(operand)
            floating = kind == _REAL
        else:
            # Whatever its type.
            name = self._column(operand.name)
            column, floating = self._found(name), isinstance(self._types[name], _FLOATS)
        known = column.isNotNull() & _is_number(column) if floating else column.isNotNull()
        return known if negated else ~known

    def _computed(self, operand: Expression) -> tuple[Column, int]:
        """A number to compute with: 64 bits, whole or not."""
        column, kind = self._value(operand)
        if kind == _NUMBER:
            return column.cast(T.LongType()), kind
        if kind == _REAL:
            return column, kind
        raise UndecidedError

    def _arithmetic(self, operator: str, left: Column, a: int, right: Column, b: int) -> tuple[Column, int]:
        """Whole numbers that leave 64 bits, and what is divided by zero, are null to the engine; nothing may fail."""
        of_reals, of_whole = _ARITHMETIC[operator]
        if of_whole is None or _REAL in (a, b):
            return of_reals(left.cast(T.DoubleType()), right.cast(T.DoubleType())), _REAL
        return _whole(of_whole(left, right)), _NUMBER

    # -- conditions

    def _comparison(self, operator: Operator, left: Expression, right: Expression) -> Column:
        (a, kind), (b, other) = self._value(left), self._value(right)
        if _NULL in (kind, other):
            return F.lit(False)
        if {kind, other} == {_NUMBER, _REAL}:
            a, b, kind, other = a.cast(T.DoubleType()), b.cast(T.DoubleType()), _REAL, _REAL
        if kind in (_INSTANT, _MOMENT) and isinstance(right, Literal) and isinstance(right.value, str):
            b, other = _instant(right.value, kind), kind
        if kind != other or (kind == _TRUTH and operator not in (Operator.EQ, Operator.NE)):
            raise UndecidedError
        found: Column = RELATIONS[operator](a, b)
        if kind == _REAL:
            for column, expression in ((a, left), (b, right)):
                found = found if isinstance(expression, Literal) else found & _is_number(column)
        return found

    def _among(self, operand: Expression, items: Sequence[Literal], negated: bool) -> Column:
        if len(items) > limits.SPARK_IN_ITEMS:
            raise UndecidedError
        column, kind = self._value(operand)
        found = column.isin([_item(item.value, kind) for item in items])
        return ~found if negated else found

    def _contains(self, text: Column, part: str) -> Column:
        return text.contains(part)

    def _begins_and_ends(self, text: Column, first: str, last: str) -> Column:
        return text.startswith(first) & text.endswith(last) & (F.length(text) >= len(first) + len(last))

    def _like_otherwise(self, text: Column, pattern: str) -> Column:
        """Spark's own LIKE, which wants every backslash to stand before a wildcard or another one."""
        parts = tokens(pattern)
        if any(c > "\uffff" for c in pattern):
            raise UndecidedError  # it looks for the halves of such characters
        if parts.count(MANY) > limits.SPARK_LIKE_WILDCARDS:
            raise UndecidedError
        written = []
        for token in parts:
            if isinstance(token, str):
                written.append("".join(f"\\{c}" if c in "%_\\" else c for c in token))
            else:
                written.append({MANY: "%", ONE: "_"}[token])
        return text.like("".join(written))


def _seconds(hours: Column, minutes: Column, seconds: Column) -> Column:
    micros = (seconds * 10**6).cast(T.LongType())
    return (hours.cast(T.LongType()) * 60 + minutes.cast(T.LongType())) * (60 * 10**6) + micros


def _item(value: object, kind: int) -> int | str:
    """An item of IN, which is of the kind of the values it is compared with."""
    match value:
        case str() if kind == _TEXT:
            return encodable(value)
        case int() if kind == _NUMBER and not isinstance(value, bool) and _LEAST < value < 2**63:
            return value
    raise UndecidedError


def _is_number(column: Column) -> Column:
    """Whether a float is not NaN: that is the greatest number to Spark, and null to the engine.

    Files can be searched for what is written like this, but not for `isnan`.
    """
    return column <= F.lit(math.inf)


def _opposite(column: Column) -> Column:
    return _whole(F.try_subtract(F.lit(0).cast(T.LongType()), column))


def _whole(column: Column) -> Column:
    """The result of arithmetic on whole numbers; the least whole number stands for null."""
    return F.when(column != _LEAST, column)


def _instant(text: str, kind: int) -> Column:
    micros = instant(text, "us")
    if kind == _INSTANT:
        return F.timestamp_micros(F.lit(micros).cast(T.LongType()))
    try:
        moment = moment_at(micros)
    except OverflowError:
        raise UndecidedError from None
    return F.lit(moment.replace(tzinfo=None).isoformat(" ", "microseconds")).cast(T.TimestampNTZType())
