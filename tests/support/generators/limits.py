"""Values at the limits of their kinds, for random streams and literals.

Floats are few where they stand beside integers, as every float beyond 2⁵³ is one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from cerflow.language.condition import Literal
from cerflow.language.node import Node, transform

__all__ = [
    *("FLOATS", "INTEGERS", "MEASURES", "MOMENTS", "SPANS", "TEXTS"),
    *("SIZES", "first", "later", "moved", "mostly", "number", "places", "size"),
]

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
SPANS = tuple(timedelta(microseconds=n) for n in INTEGERS if n >= -LAST + 10**6)


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


#: Sizes of windows
SIZES = (2**31, 2**32 + 1, 2**53 + 1, 2**62 - 1, 2**62 + 5)
#: What `moved` adds to small integers, which then lie around a limit.
PLACES = (2**31 - 2, 2**32 - 2, 2**53 - 2, 2**62 - 2, LAST - 300, -(2**31), -(2**53) - 1, -LAST + 8)


def moved(draw: st.DrawFn, tree: Any, rows: list[dict[str, Any]], ends: bool) -> tuple[Any, list[dict[str, Any]]]:
    """A query and its stream with all integers around one limit, so that about the same events match.

    With ``ends`` times and what windows measure, too.
    """
    by = draw(st.sampled_from(PLACES))
    columns = ("v", "k", "t", "n") if ends else ("v", "k")

    def of(current: Node) -> Node:
        whole = isinstance(current, Literal) and type(current.value) is int
        return Literal(min(max(current.value + by, -LAST), LAST)) if whole else current

    def there(value: Any) -> Any:
        return min(max(value + by, 1 - LAST), LAST - 1) if type(value) is int else value

    return transform(tree, of), [{**row, **{n: there(row[n]) for n in columns if n in row}} for row in rows]


def number(chance: random.Random, low: int, high: int, far: Sequence[Any] = INTEGERS, one_in: int = 10) -> Any:
    """An integer from ``low`` to ``high``, or one time of ``one_in`` a value at the limits."""
    return chance.choice(far) if chance.randrange(one_in) == 0 else chance.randint(low, high)


def size(chance: random.Random, most: int) -> int:
    """How wide a window is: up to ``most``, or one time of ten much wider than any stream."""
    return number(chance, 1, most, SIZES)


def places(chance: random.Random) -> int:
    """Where a stream of a few hundred ticks begins: mostly at 0, or at a limit."""
    return chance.choice((*PLACES, -LAST + 1)) if chance.randrange(5) == 0 else 0
