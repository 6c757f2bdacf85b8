"""Propositions about one event in the language of another system: for Arrow, and as a base for Spark.

Every leaf that is translated is true of the same events as to the engine. A leaf that a system might decide otherwise
has no translation; see `cerflow.logic.conditions.propositions.weakened`. Filters of Arrow leave out row groups of
files, so lengths, differences and comparisons of columns, of which the bounds of a row group say nothing, have none.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, reduce
from operator import or_
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.operators import RELATIONS, Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.base.text_patterns import literal_parts
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.evaluate.rows import instant
from cerflow.engine.pushdown.relevance import by_types
from cerflow.language import condition as c
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.guards import Satisfied, TypeTest
from cerflow.logic.conditions.propositions import leaves_of, translated, weakened
from cerflow.logic.conditions.register_values import Microseconds

#: A condition of the other system.
C = TypeVar("C")


class UndecidedError(Exception):
    """The other system might decide a leaf otherwise than the engine."""


class Translation(ABC, Generic[C]):
    """Propositions about the columns of events, as conditions of a system that joins them by ``&``, ``|`` and ``~``.

    The methods that a system fills in raise `UndecidedError` for what has no translation. ``type`` is the name of the
    column with the types of events.
    """

    type: str

    def decides(self, leaf: c.Condition) -> bool:
        """Whether a leaf has a translation."""
        try:
            self._known(leaf)
        except UndecidedError:
            return False
        return True

    def proposition(self, whole: c.Condition) -> C:
        """True where a proposition holds, all of whose leaves are decided; elsewhere false or null."""
        found: C = translated(whole, self._known)
        return found

    @cached_property
    def _translations(self) -> dict[c.Condition, C]:
        return {}

    def _known(self, leaf: c.Condition) -> C:
        """The translation of a leaf, made once: Spark needs ten calls from Python for a comparison."""
        if leaf not in self._translations:
            self._translations[leaf] = self._leaf(leaf)
        return self._translations[leaf]

    def _leaf(self, leaf: c.Condition) -> C:
        match leaf:
            case c.Constant(value):
                return self._constant(value)
            case c.Not(Satisfied(condition)):
                return self._not_true(condition)
            case TypeTest(name):
                return self._comparison(Operator.EQ, c.Attribute(None, self.type), c.Literal(name))
            case c.IsNull(operand, negated):
                return self._null(operand, negated)
            case c.Comparison(operator, left, right):
                return self._comparison(operator, left, right)
            case c.In(operand, items, negated):
                return self._among(operand, items, negated)
            case c.Like(operand, pattern, negated):
                accepted: Any = self._like(self._text(operand), pattern)
                found: C = ~accepted if negated else accepted
                return found
        raise UndecidedError

    def _like(self, text: Any, pattern: str) -> Any:
        match literal_parts(encodable(pattern)):
            case [whole]:
                return text == whole
            case ["", part, ""]:
                return self._contains(text, part)
            case [first, last]:
                return self._begins_and_ends(text, first, last)
        return self._like_otherwise(text, pattern)

    def _like_otherwise(self, text: C, pattern: str) -> C:
        """Whether a text fits a pattern with ``_``, or with ``%`` in several other places."""
        raise UndecidedError

    @abstractmethod
    def _constant(self, value: bool) -> C: ...

    @abstractmethod
    def _not_true(self, condition: c.Condition) -> C: ...

    @abstractmethod
    def _null(self, operand: c.Expression, negated: bool) -> C: ...

    @abstractmethod
    def _comparison(self, operator: Operator, left: c.Expression, right: c.Expression) -> C: ...

    @abstractmethod
    def _among(self, operand: c.Expression, items: Sequence[c.Literal], negated: bool) -> C: ...

    @abstractmethod
    def _text(self, operand: c.Expression) -> C: ...

    @abstractmethod
    def _contains(self, text: C, part: str) -> C: ...

    @abstractmethod
    def _begins_and_ends(self, text: C, first: str, last: str) -> C:
        """Whether a text begins with one text and ends with another one after it."""


def encodable(text: str) -> str:
    """The text; raises `UndecidedError` if it has halves of characters (surrogates), which no event has."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise UndecidedError
    return text


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
        values: list[Any] = [item.value for item in items]
        if pa.types.is_integer(own):
            held = np.iinfo(own.to_pandas_dtype())
            values = [value for value in values if held.min <= value <= held.max]
        found = pc.field(name).isin(pa.array(values, own))
        return ~found & pc.field(name).is_valid() if negated else found

    def _contains(self, text: pc.Expression, part: str) -> pc.Expression:
        return pc.match_substring(text, part)

    def _begins_and_ends(self, text: pc.Expression, first: str, last: str) -> pc.Expression:
        length = len(f"{first}{last}".encode())
        return pc.starts_with(text, first) & pc.ends_with(text, last) & (pc.binary_length(text) >= pa.scalar(length))
