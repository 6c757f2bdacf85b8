"""Conditions on one event as expressions of pyarrow, by which row groups of files are left out.

Every leaf that is translated is true of the same events as to the engine; others are taken for TRUE. So are those
of which the bounds of a row group say nothing: lengths, differences, two columns.
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
    return translation.proposition(left)


class ArrowTranslation(Translation[pc.Expression]):
    """Propositions about the columns of one schema; an expression may be null where the proposition does not hold."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.type = schema.type

    def _constant(self, value: bool) -> pc.Expression:
        return pc.scalar(value)

    def _not_true(self, condition: c.Condition) -> pc.Expression:
        return ~pc.coalesce(self._leaf(condition), pc.scalar(False))

    # -- columns

    def _type(self, name: str) -> pa.DataType:
        return self.schema.columns.field(name).type

    def _column(self, operand: c.Expression) -> str:
        if not isinstance(operand, c.Attribute):
            raise UndecidedError
        return self.schema.column(operand.name)

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
        if isinstance(left, Microseconds):
            return self._beside(operator, self._column(left.expression), right)
        name = self._column(left)
        if not isinstance(right, c.Literal):
            raise UndecidedError
        if right.value is None:
            return pc.scalar(False)
        found = RELATIONS[operator](pc.field(name), self._scalar(name, operator, right.value))
        return found & ~pc.is_nan(pc.field(name)) if pa.types.is_floating(self._type(name)) else found

    def _beside(self, operator: Operator, name: str, right: c.Expression) -> pc.Expression:
        """A column of times compared with a number of microseconds, in its own unit, as readers have bounds in it."""
        own = self._type(name)
        timed = pa.types.is_timestamp(own) or pa.types.is_duration(own)
        if not timed or not isinstance(right, c.Literal) or type(right.value) is not int:
            raise UndecidedError
        # The values that have this many microseconds, rounded down, lie from ``first`` to before ``after``.
        first, after = (math.ceil(n / MICROSECONDS[own.unit]) for n in (right.value, right.value + 1))
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
