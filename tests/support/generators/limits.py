"""Values at the limits of their kinds, for random streams and literals.

Floats are few where they stand beside integers, as every float beyond 2⁵³ is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

__all__ = ["FLOATS", "INTEGERS", "MEASURES", "MOMENTS", "SPANS", "TEXTS", "first", "later", "mostly"]

LAST = 2**63 - 1
_POWERS = (2**31, 2**32, 2**53, 2**62)
_LARGE = (*(n + d for n in _POWERS for d in (-1, 0, 1)), 3_037_000_499, 3_037_000_500, LAST - 1, LAST)
#: Integers, without the smallest of 64 bits: it stands for null.
INTEGERS = (0, 1, -1, 2, *_LARGE, *(-n for n in _LARGE))
#: What windows measure
MEASURES = tuple(n for n in INTEGERS if abs(n) < LAST)
FLOATS = (
    *(0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 2.2250738585072014e-308, 0.49999999999999994),
    *(1.7976931348623157e308, -1.7976931348623157e308, 2.0**53, 2.0**62, 2.0**63, -(2.0**63), 9223372036854774784.0),
)
TEXTS = ("", "p" * 15, "p" * 16, "p" * 17 + "q", "q" * 40_000, "\0", "p\0", "é", "𝄞", "\U0010ffff", "\ud7ff")
_EPOCH, _TICK = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_MIN, _MAX = (moment.replace(tzinfo=UTC) for moment in (datetime.min, datetime.max))
MOMENTS = (_MIN, _MIN + _TICK, _EPOCH - _TICK, _EPOCH, _EPOCH + _TICK, _MAX - _TICK, _MAX)
#: Durations; those beyond 64 bits of microseconds do not exist.
SPANS = tuple(timedelta(microseconds=n) for n in INTEGERS)


@st.composite
def mostly(draw: st.DrawFn, near: st.SearchStrategy[Any], far: Sequence[Any], one_in: int = 8) -> Any:
    """A usual value, or one time of ``one_in`` a value at the limits."""
    return draw(st.sampled_from(far)) if draw(st.integers(1, one_in)) == one_in else draw(near)


def first(draw: st.DrawFn, limits: bool) -> int:
    """The first of integers that do not decrease."""
    return draw(st.sampled_from(MEASURES)) if limits and draw(st.booleans()) else 0


def later(draw: st.DrawFn, value: int, step: st.SearchStrategy[int], limits: bool) -> int:
    """An integer that is not less than another one: a step farther, or with ``limits`` now and then at a limit."""
    beyond = [n for n in MEASURES if n > value]
    if limits and beyond and draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(beyond))
    return min(value + draw(step), LAST - 1)
