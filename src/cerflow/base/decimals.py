"""Exact decimals as texts: equal decimals have equal texts, and texts in the order of code points are in theirs.

So all that the engine does with text (codes, ranks, keys, registers) it does with decimals of any size.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

_COMPLEMENT = str.maketrans("0123456789", "9876543210")
#: Places of the point are written with as many digits, from 0 to twice this.
_MIDDLE = 50_000


def decimal_text(value: Decimal) -> str:
    """The text of a decimal: sign, place of the point, digits; those of negative ones in reverse order."""
    negative, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).lstrip("0")
    if not significant:
        return "1"
    place = len(significant) + exponent
    significant = significant.rstrip("0")
    if negative:
        # Of two that begin alike the longer one is less.
        return f"0{_MIDDLE - place:05d}{significant.translate(_COMPLEMENT)}~"
    return f"2{_MIDDLE + place:05d}{significant}"


def text_decimal(text: str) -> Decimal:
    """The decimal of a text, without zeros at the end of its fraction."""
    if text == "1":
        return Decimal(0)
    negative = text[0] == "0"
    place = (_MIDDLE - int(text[1:6])) if negative else int(text[1:6]) - _MIDDLE
    digits = text[6:-1].translate(_COMPLEMENT) if negative else text[6:]
    digits = digits.ljust(place, "0")
    return Decimal(f"{'-' if negative else ''}{digits}e{place - len(digits)}")


@lru_cache(maxsize=1024)
def written_text(value: int | float | str) -> str:
    """The text of the decimal that a literal of a query writes out; of a float that with the fewest digits."""
    return decimal_text(Decimal(repr(value) if isinstance(value, float) else value))
