"""Callbacks that turn the grammar of conditions (`condition.lark`) into trees, for CEQL and SREMO alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from cerflow.base import limits
from cerflow.base.errors import QuerySyntaxError, Span
from cerflow.base.operators import Operator
from cerflow.base.text_patterns import check_like, check_regexp
from cerflow.base.units import DURATION_UNITS
from cerflow.language import condition as c
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow
from cerflow.language.grammar.call_tree import CallBuilder
from cerflow.language.grammar.grammars import Name, Parsed, Piece, span_of
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import walk, walk_into

#: The number of a duration; that of INTERVAL may have a sign.
_AMOUNT = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ZERO = re.compile(r"[+-]?[0.]+($|[eE])")


_Callback = Callable[["ConditionBuilder", Sequence[Piece]], Parsed]


def _of_conditions(cls: type[c.Condition]) -> _Callback:
    return lambda self, children: self.make(children, cls, *map(self.condition, self.parts(children)))


def _test(cls: type[c.Condition]) -> _Callback:
    """A test on values, perhaps with NOT before its name."""
    return lambda self, children: self.make(
        children, cls, *map(self.value, self.parts(children)), negated=_negated(children)
    )


def _pattern(cls: type[c.Condition], check: Callable[[str, Span], None]) -> _Callback:
    """``value [NOT] LIKE 'pattern'``, and the like."""

    def test(self: ConditionBuilder, children: Sequence[Piece]) -> Parsed:
        pattern = _string(children[-1])
        check(pattern, span_of(children[-1]))
        return self.make(children, cls, self.value(self.parts(children)[0]), pattern, _negated(children))

    return test


class ConditionBuilder(CallBuilder):
    """Conditions, expressions and windows."""

    # -- conditions

    or_, and_, not_ = _of_conditions(c.Or), _of_conditions(c.And), _of_conditions(c.Not)
    between, is_null = _test(c.Between), _test(c.IsNull)
    like, regexp = _pattern(c.Like, check_like), _pattern(c.Regexp, check_regexp)

    def some(self, children: Sequence[Piece]) -> Parsed:
        """``SOME x, y: c``."""
        *labels, inner = self.parts(children)
        condition = self.condition(inner)
        for current in walk(condition):
            if isinstance(current, c.Some):
                raise QuerySyntaxError(
                    "SOME is not allowed inside SOME",
                    span=current.span,
                    hint="one SOME may list several labels: SOME x, y: …",
                )
        return self.make(children, c.Some, tuple(label.value for label in labels), condition)

    def comparison(self, children: Sequence[Piece]) -> Parsed:
        """``a < b``."""
        left, right = self.parts(children)
        made = self.make(children, c.Comparison, _operator(children[1]), self.value(left), self.value(right))
        return replace(made, last=right)

    def chained(self, children: Sequence[Piece]) -> Parsed:
        """``a = b = c``: the neighbours compared, joined by AND."""
        before, right = self.parts(children)
        assert before.last is not None
        added = self.comparison((before.last, *children[1:]))
        return replace(self.make(children, c.And, before.value, added.value), last=right)

    def in_interval(self, children: Sequence[Piece]) -> Parsed:
        """``a [NOT] IN {low..high}``, where either end may be left out."""
        dots = next(i for i, child in enumerate(children) if child == "..")
        low, high = children[dots - 1], children[dots + 1]
        ends = (self.value(end) if isinstance(end, Parsed) else None for end in (low, high))
        return self.make(children, c.Between, self.value(self.parts(children)[0]), *ends, _negated(children))

    def in_(self, children: Sequence[Piece]) -> Parsed:
        """``a [NOT] IN (item, …)``."""
        operand, *items = self.parts(children)
        for item in items:
            if not isinstance(item.value, c.Literal):
                raise QuerySyntaxError(
                    "only numbers, strings, TRUE, FALSE and NULL can be in the list after IN",
                    span=span_of(item),
                    expected=("a literal",),
                )
        return self.make(children, c.In, self.value(operand), tuple(i.value for i in items), _negated(children))

    def case(self, children: Sequence[Piece]) -> Parsed:
        """``CASE [value] WHEN … THEN value … [ELSE value] END``."""
        parts = self.parts(children)
        for part in parts:
            self.no_bracket_in(part, "CASE")
        otherwise: c.Expression = c.Literal(None)
        if any(not isinstance(child, Parsed) and child.type == "ELSE" for child in children):
            otherwise = self.value(parts.pop())
        operand = self.value(parts.pop(0)) if isinstance(children[1], Parsed) else None
        size = 0 if operand is None else sum(1 for _ in walk(operand))
        # It is written out at every WHEN, so nested ones would grow without end.
        if size > 1 and size * len(parts) > limits.CASE_NODES:
            raise QuerySyntaxError(
                "the value after CASE is too large for this number of WHEN",
                span=span_of(children[1]),
                hint="write CASE WHEN … = … THEN …",
            )
        for when, then in reversed([*zip(parts[::2], parts[1::2])]):
            if operand is None:
                condition = self.condition(when)
            else:
                condition = c.Comparison(Operator.EQ, operand, self.value(when), span=span_of(when))
            otherwise = c.If(condition, self.value(then), otherwise, span=span_of(*children))
        return self.part(children, otherwise)

    def bracket(self, children: Sequence[Piece]) -> Parsed:
        """``label[condition]``."""
        label, inner = self.parts(children)
        self.no_bracket_in(inner)
        return self.make(children, c.Bracket, label.value, self.condition_at_hand(inner))

    def no_bracket_in(self, part: Parsed, place: str = "a bracket") -> None:
        """An error if there is a bracket ``x[…]``, or SOME, in the part; ``place`` is where the part stands."""
        # CASE has been asked already.
        for current in walk_into(part.value, lambda n: not isinstance(n, c.If)):
            if isinstance(current, c.Bracket | c.Some):
                what = "SOME" if isinstance(current, c.Some) else "a bracket"
                raise QuerySyntaxError(f"{what} is not allowed inside {place}", span=current.span)

    # -- values

    def arithmetic(self, children: Sequence[Piece]) -> Parsed:
        """``a + b`` and the like."""
        left, right = self.parts(children)
        return self.make(children, c.Arithmetic, str(children[1]), self.value(left), self.value(right))

    def joined_strings(self, children: Sequence[Piece]) -> Parsed:
        """``a || b``."""
        sides = [self.value(part) for part in self.parts(children)]
        for side in sides:
            if isinstance(side, c.Literal) and not isinstance(side.value, str | None):
                raise QuerySyntaxError("'||' joins strings", span=side.span, hint="between conditions write OR")
        return self.make(children, c.Function, "||", tuple(sides))

    def negative(self, children: Sequence[Piece]) -> Parsed:
        """``-a``."""
        (operand,) = self.parts(children)
        return self.make(children, c.Negative, self.value(operand))

    def number(self, children: Sequence[Piece]) -> Parsed:
        """A number, to which a minus directly before it belongs."""
        return self.make(children, c.Literal, _number(children[-1], "-" * (len(children) - 1), over=children))

    def duration_literal(self, children: Sequence[Piece]) -> Parsed:
        """A duration as a value, to which a minus directly before it belongs."""
        (duration,) = self.parts(children)
        sign = 1 if len(children) == 1 else -1
        return self.make(children, c.Literal, timedelta(microseconds=sign * duration.value))

    def string(self, children: Sequence[Piece]) -> Parsed:
        """A string."""
        return self.make(children, c.Literal, _string(children[0]))

    def boolean(self, children: Sequence[Piece]) -> Parsed:
        """``TRUE``, ``FALSE``: as a value or as a condition."""
        return self.make(children, c.Literal, str(children[0]).upper() == "TRUE")

    def null(self, children: Sequence[Piece]) -> Parsed:
        """``NULL``."""
        return self.make(children, c.Literal, None)

    def bare(self, children: Sequence[Piece]) -> Parsed:
        """A name alone: an attribute of the current event, unless it turns out to be a label in an argument."""
        (name,) = self.parts(children)
        assert name.name is not None
        return replace(self.make(children, c.Attribute, None, name.value, quoted=name.name.quoted), name=name.name)

    def bare_reserved(self, children: Sequence[Piece]) -> Parsed:
        """A reserved word as an attribute; EVENT in an argument is the current event."""
        word = str(children[0])
        return replace(self.make(children, c.Attribute, None, word), name=Name(word, reserved=True))

    def attribute(self, children: Sequence[Piece]) -> Parsed:
        """``label.attribute``, or in a bracket or terminal ``attribute.field``."""
        label, attribute = self.parts(children)
        return self.make(children, c.Attribute, label.value, attribute.value, doubtful=True)

    # -- windows

    def count_window(self, children: Sequence[Piece]) -> Parsed:
        """``n EVENTS``."""
        return self.make(children, CountWindow, positive_integer(children[0], "the number of events in a window"))

    def duration(self, children: Sequence[Piece]) -> Parsed:
        """``number unit``; the value is the microseconds so far."""
        amount, unit = children[-2:]
        return self.part(children, _microseconds(amount, str(unit)))

    def interval(self, children: Sequence[Piece]) -> Parsed:
        """``INTERVAL 'number' unit``; the value is the microseconds."""
        _, amount, unit = children
        return self.part(children, _microseconds(amount, str(unit), _string(amount).strip()))

    def longer_duration(self, children: Sequence[Piece]) -> Parsed:
        """A duration and another ``number unit``."""
        total = self.parts(children)[0].value + self.duration(children).value
        if total > LARGEST_INTEGER:
            raise QuerySyntaxError("this duration is too long", span=span_of(*children))
        return self.part(children, total)

    def window(self, children: Sequence[Piece]) -> Parsed:
        """A duration that is complete."""
        microseconds = self.parts(children)[0].value
        if microseconds <= 0:
            raise QuerySyntaxError("a window must be larger than zero", span=span_of(*children))
        return self.make(children, DurationWindow, microseconds)

    def attribute_window(self, children: Sequence[Piece]) -> Parsed:
        """``size [attribute]``."""
        size = _number(children[0], "")
        if size <= 0:
            raise QuerySyntaxError("a window must be larger than zero", span=span_of(children[0]))
        (attribute,) = self.parts(children)
        return self.make(children, AttributeWindow, size, attribute.value)


def positive_integer(token: Piece, what: str) -> int:
    """The number in a token that must be an integer from 1 on; ``what`` begins the sentence of the error."""
    value = _number(token, "")
    if not isinstance(value, int) or value < 1:
        raise QuerySyntaxError(
            f"{what} must be a positive integer", span=span_of(token), expected=("a positive integer",)
        )
    return value


def _negated(children: Sequence[Piece]) -> bool:
    return any(not isinstance(child, Parsed) and child.type == "NOT" for child in children)


def _operator(token: Piece) -> Operator:
    return Operator.NE if token == "<>" else Operator(str(token))


def _string(token: Piece) -> str:
    return str(token)[1:-1].replace("''", "'")


def _number(token: Piece, sign: str, over: Sequence[Piece] | None = None) -> int | float:
    text = str(token)
    span = span_of(*(over or (token,)))
    if not text.isascii():
        raise QuerySyntaxError("numbers are written with the digits 0 to 9", span=span)
    if text.isdigit():
        digits = text.lstrip("0") or "0"
        # The length is checked first: converting many digits is slow, and Python refuses more than 4300.
        if len(digits) > 19 or not -LARGEST_INTEGER - 1 <= int(sign + digits) <= LARGEST_INTEGER:
            raise QuerySyntaxError("this integer does not fit into 64 bits", span=span)
        return int(sign + digits)
    value = float(sign + text)
    if value in (float("inf"), float("-inf")):
        raise QuerySyntaxError("this number is too large", span=span)
    return value if Decimal(sign + text) == Decimal(repr(value)) else c.Rounded(value)


def _microseconds(amount: Piece, unit: str, text: str | None = None) -> int:
    """A number of units in microseconds; ``text`` is the number where it does not stand alone in its token."""
    text = str(amount) if text is None else text
    span = span_of(amount)
    if not _AMOUNT.fullmatch(text):
        raise QuerySyntaxError(
            f"'{text}' is not a number", span=span, hint="Write one number and its unit, as in INTERVAL '5' MINUTE."
        )
    factor = DURATION_UNITS[unit.upper() if unit.upper().endswith("S") else unit.upper() + "S"]
    number = abs(float(text))
    if number * factor > LARGEST_INTEGER:
        raise QuerySyntaxError("this duration is too long", span=span)
    # A number this small is zero or cannot be whole, and its exact fraction may be huge.
    exact = Fraction(text) * factor if number * factor >= 1 else Fraction(0 if _ZERO.match(text) else 1, 2)
    if exact.denominator != 1:
        raise QuerySyntaxError("a duration must be a whole number of microseconds", span=span)
    if abs(exact.numerator) > LARGEST_INTEGER:
        raise QuerySyntaxError("this duration is too long", span=span)
    return exact.numerator
