"""Numbers and durations as queries write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from cerflow.base.errors import QuerySyntaxError
from cerflow.base.units import DURATION_UNITS
from cerflow.language import condition as c
from cerflow.language.grammar.grammars import Piece, span_of
from cerflow.language.lexicon import LARGEST_INTEGER

#: The number of a duration; that of INTERVAL may have a sign.
_AMOUNT = re.compile(r"[+-]?(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ZERO = re.compile(r"[+-]?[0.]+($|[eE])")


def positive_integer(token: Piece, what: str) -> int:
    """The number in a token that must be an integer from 1 on; ``what`` begins the sentence of the error."""
    value = number_of(token, "")
    if not isinstance(value, int) or value < 1:
        raise QuerySyntaxError(
            f"{what} must be a positive integer", span=span_of(token), expected=("a positive integer",)
        )
    return value


def number_of(token: Piece, sign: str, over: Sequence[Piece] | None = None) -> int | float:
    """The number in a token, with a ``sign`` before it; ``over`` are the pieces to which an error points."""
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


def written_duration(amount: Piece, unit: str, text: str | None = None) -> int:
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
