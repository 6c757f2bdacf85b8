"""Expressions beyond those of the language: values that registers accumulate, and times as numbers.

`Known`, `Word` and `Microseconds` are read on the current event; the others are computed while the automaton runs.
"""

from __future__ import annotations

from typing import ClassVar

from cerflow.base.schema import ValueKind
from cerflow.language.condition import Expression
from cerflow.language.node import Node, node

#: The microseconds since 1970 of the first and the last moment of the years 1 to 9999.
FIRST_MOMENT, LAST_MOMENT = -62_135_596_800_000_000, 253_402_300_799_999_999
#: A whole number is ``high * WORD + low``, both with its sign.
WORD = 2**32


@node
class Derived(Expression):
    """A value that follows from that of an expression."""

    expression: Expression


class Known(Derived):
    """0 if the value of an expression is null, else 1."""

    template = "known({expression})"


@node
class Word(Derived):
    """The high or the low word of a number, so that the sum of many does not leave 64 bits; of null it is 0.

    A float has itself as low word and 0 as high word.
    """

    high: bool

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        return ("high(" if self.high else "low(", self.expression, ")")


@node
class Joined(Expression):
    """The number that two sums of words stand for: null beyond 64 bits, or with ``floating`` the nearest float."""

    high: Expression
    low: Expression
    floating: bool = False

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        return ("float(" if self.floating else "integer(", self.high, ", ", self.low, ")")


class SquareRoot(Derived):
    """The square root of a float."""

    template = "sqrt({expression})"


class Microseconds(Derived):
    """The microseconds of a duration, or of a timestamp since 1970 (rounded down)."""

    gives: ClassVar[ValueKind] = ValueKind.INTEGER

    template = "microseconds({expression})"


class Dated(Derived):
    """Microseconds since 1970 if they lie in the years 1 to 9999, else null."""

    gives: ClassVar[ValueKind] = ValueKind.INTEGER

    template = "timestamp({expression})"


@node
class DatePart(Derived):
    """A part of `DATE_PARTS` of the moment this many microseconds after 1970, in a time zone (None: UTC)."""

    part: str
    zone: str | None
    gives: ClassVar[ValueKind] = ValueKind.INTEGER

    template = "{part}({expression}‹ in {zone}›)"


class Whole(Derived):
    """A float rounded to an integer, halves away from zero; null beyond 64 bits."""

    gives: ClassVar[ValueKind] = ValueKind.INTEGER

    template = "integer({expression})"
