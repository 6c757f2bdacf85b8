"""Conditions on one event as expressions of pyarrow, which readers of files evaluate while they read.

Every leaf that is translated is true of the same events as to the engine; others are taken for TRUE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.operators import RELATIONS, Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.evaluate.rows import instant
from cerflow.engine.pushdown.relevance import by_types
from cerflow.engine.pushdown.translation import Translation, UndecidedError, encodable
from cerflow.language import condition as c
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.propositions import leaves_of, weakened
from cerflow.logic.conditions.register_values import Microseconds


def arrow_filter(proposition: c.Condition, schema: Schema) -> pc.Expression | None:
    """A filter for the rows that satisfy a proposition, and perhaps more of them; None if all may."""
    translation = ArrowTranslation(schema)
    left = weakened(proposition, translation.decides)
    if len(leaves_of(left)) > limits.PUSHED_LEAVES:
        left = by_types(left, schema)
    if left == TRUE:
        return None
    return reduce(or_, map(translation.beyond, sorted(translation.multiplied)), translation.proposition(left))


class ArrowTranslation(Translation[pc.Expression]):
    """Propositions about the columns of one schema; an expression may be null where the proposition does not hold."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        #: Columns whose microseconds may exceed 64 bits
        self.multiplied: set[str] = set()

    def beyond(self, name: str) -> pc.Expression:
        """The rows whose value has microseconds beyond 64 bits: the engine reports them."""
        own = self._type(name)
        most = MOST // int(MICROSECONDS[own.unit])
        return (pc.field(name) > pa.scalar(most, own)) | (pc.field(name) < pa.scalar(-most, own))

    def _constant(self, value: bool) -> pc.Expression:
        return pc.scalar(value)

    def _not_true(self, condition: c.Condition) -> pc.Expression:
        return ~pc.coalesce(self._leaf(condition), pc.scalar(False))

    def _of_type(self, name: str) -> pc.Expression:
        return pc.field(self.schema.type) == self._scalar(self.schema.type, Operator.EQ, name)

    # -- columns

    def _type(self, name: str) -> pa.DataType:
        return self.schema.columns.field(name).type

    def _column(self, operand: c.Expression) -> str:
        if not isinstance(operand, c.Attribute):
            raise UndecidedError
        return self.schema.column(operand.name)

    def _column_of_times(self, operand: c.Expression) -> str:
        name = self._column(operand)
        if not (pa.types.is_timestamp(self._type(name)) or pa.types.is_duration(self._type(name))):
            raise UndecidedError
        return name

    def _text(self, operand: c.Expression) -> pc.Expression:
        name = self._column(operand)
        if not (pa.types.is_string(self._type(name)) or pa.types.is_large_string(self._type(name))):
            raise UndecidedError  # there are no functions of dictionaries
        return pc.field(name)

    def _null(self, operand: c.Expression, negated: bool) -> pc.Expression:
        name = self._column(operand)
        missing = ~pc.field(name).is_valid()
        if pa.types.is_floating(self._type(name)):
            missing = missing | pc.is_nan(pc.field(name))
        return ~missing if negated else missing

    # -- conditions

    def _comparison(self, operator: Operator, left: c.Expression, right: c.Expression) -> pc.Expression:
        if isinstance(left, c.Function) and left.name == "length":
            if not isinstance(right, c.Literal) or type(right.value) is not int or abs(right.value) >= 2**31:
                raise UndecidedError
            return RELATIONS[operator](pc.utf8_length(self._text(left.arguments[0])), pa.scalar(right.value))
        if isinstance(left, Microseconds | c.Arithmetic):
            return self._of_times(operator, left, right)
        name = self._column(left)
        if isinstance(right, c.Attribute):
            return self._two(operator, name, self.schema.column(right.name))
        if not isinstance(right, c.Literal):
            raise UndecidedError
        if right.value is None:
            return pc.scalar(False)
        found = RELATIONS[operator](pc.field(name), self._scalar(name, operator, right.value))
        return found & ~pc.is_nan(pc.field(name)) if pa.types.is_floating(self._type(name)) else found

    def _two(self, operator: Operator, left: str, right: str) -> pc.Expression:
        own = self._type(left)
        if own != self._type(right) or not (
            pa.types.is_floating(own) or pa.types.is_integer(own) or pa.types.is_string(own)
        ):
            raise UndecidedError
        found = RELATIONS[operator](pc.field(left), pc.field(right))
        return found & ~pc.is_nan(pc.field(left)) & ~pc.is_nan(pc.field(right)) if pa.types.is_floating(own) else found

    def _of_times(self, operator: Operator, left: c.Expression, right: c.Expression) -> pc.Expression:
        """Comparisons of microseconds: of a column or of the difference of two with a literal, or of two columns."""
        match left, right:
            case Microseconds(c.Attribute() as column), c.Literal(int() as value) if not isinstance(value, bool):
                return self._beside(operator, self._column_of_times(column), value)
            case Microseconds(), Microseconds():
                return RELATIONS[operator](self._microseconds(left), self._microseconds(right))
            case c.Arithmetic("-", first, second), c.Literal(int() as value) if abs(value) <= MOST:
                a, b = self._microseconds(first), self._microseconds(second)
                difference = pc.subtract(a, b)
                # Arrow continues at the other end where 64 bits do not suffice; to the engine that is null.
                fits = ((a < 0) == (b < 0)) | ((difference < 0) == (a < 0))
                return fits & (difference != pa.scalar(-MOST - 1)) & RELATIONS[operator](difference, pa.scalar(value))
        raise UndecidedError

    def _beside(self, operator: Operator, name: str, microseconds: int) -> pc.Expression:
        """A column of times compared with a number of microseconds, in its own unit, as readers have bounds in it."""
        own = self._type(name)
        # The values that have this many microseconds, rounded down, lie from ``first`` to before ``after``.
        first, after = (math.ceil(n / MICROSECONDS[own.unit]) for n in (microseconds, microseconds + 1))
        if max(abs(first), abs(after)) > MOST:
            raise UndecidedError
        from_first, from_after = (pc.field(name) >= pa.scalar(n, own) for n in (first, after))
        return {
            Operator.GE: from_first,
            Operator.GT: from_after,
            Operator.LT: ~from_first,
            Operator.LE: ~from_after,
            Operator.EQ: from_first & ~from_after,
            Operator.NE: ~from_first | from_after,
        }[operator]

    def _microseconds(self, value: c.Expression) -> pc.Expression:
        if not isinstance(value, Microseconds):
            raise UndecidedError
        name = self._column_of_times(value.expression)
        ticks = pc.field(name).cast(pa.int64())
        size = MICROSECONDS[self._type(name).unit]
        if size >= 1:
            if size > 1:
                self.multiplied.add(name)
            return pc.multiply(ticks, pa.scalar(int(size)))
        whole = pc.divide(ticks, pa.scalar(int(1 / size)))
        above = pc.multiply(whole, pa.scalar(int(1 / size))) > ticks
        return pc.if_else(above, pc.subtract(whole, pa.scalar(1)), whole)

    def _scalar(self, name: str, operator: Operator, value: object) -> pa.Scalar:
        """A literal as a value that a column is compared with."""
        own = self._type(name)
        match self.schema.kind(name), value:
            case ValueKind.BOOLEAN, bool() if operator in (Operator.EQ, Operator.NE):
                return pa.scalar(value)
            case ValueKind.INTEGER, int() if pa.types.is_integer(own) and not isinstance(value, bool):
                # The largest numbers without signs have no type in common with others.
                if own == pa.uint64():
                    raise UndecidedError
                return pa.scalar(value, pa.int64())
            case ValueKind.FLOAT, int() | float() if pa.types.is_floating(own) and not isinstance(value, bool):
                return pa.scalar(float(value))
            case ValueKind.STRING, str():
                if pa.types.is_dictionary(own) and operator not in (Operator.EQ, Operator.NE):
                    raise UndecidedError
                return pa.scalar(encodable(value))
            case ValueKind.TIMESTAMP, str() if pa.types.is_timestamp(own):
                moment = instant(value, "us") / MICROSECONDS[own.unit]
                if moment.denominator > 1 or abs(moment) >= 2**62:
                    raise UndecidedError
                return pa.scalar(moment.numerator, own)
        raise UndecidedError

    def _among(self, operand: c.Expression, items: Sequence[c.Literal], negated: bool) -> pc.Expression:
        name = self._column(operand)
        own = self._type(name)
        for item in items:
            self._scalar(name, Operator.EQ, item.value)
        if pa.types.is_dictionary(own):
            # Dictionaries are not looked up.
            if len(items) > limits.PUSHED_LEAVES:
                raise UndecidedError
            found = reduce(or_, [pc.field(name) == self._scalar(name, Operator.EQ, item.value) for item in items])
            return ~found if negated else found
        if not (pa.types.is_integer(own) or self.schema.kind(name) is ValueKind.STRING):
            raise UndecidedError
        values = [item.value for item in items if not isinstance(item.value, int) or _fits(item.value, own)]
        found = pc.field(name).isin(pa.array(values, own))
        return ~found & pc.field(name).is_valid() if negated else found

    def _contains(self, text: pc.Expression, part: str) -> pc.Expression:
        return pc.match_substring(text, part)

    def _begins_and_ends(self, text: pc.Expression, first: str, last: str) -> pc.Expression:
        length = len(f"{first}{last}".encode())
        return pc.starts_with(text, first) & pc.ends_with(text, last) & (pc.binary_length(text) >= pa.scalar(length))


def _fits(value: int, data_type: pa.DataType) -> bool:
    signed = bool(pa.types.is_signed_integer(data_type))
    limit = 1 << (int(data_type.bit_width) - signed)
    return (-limit if signed else 0) <= value < limit
