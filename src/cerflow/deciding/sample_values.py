"""Values of one attribute that stand for all others, as far as comparisons with given constants can tell.

``many`` is the number of attributes that are compared with one another: that many values are taken between two
neighbouring constants, so that every order of them occurs.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator

from cerflow.values.events import microseconds_since_epoch, parsed_moment
from cerflow.values.units import DAY

__all__ = ["MOMENT_LIMITS", "candidate_moments", "first_integer", "floats", "integers", "strings_between"]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
#: The first and last moments there are, in microseconds.
MOMENT_LIMITS = tuple(
    microseconds_since_epoch(datetime.datetime(*day, tzinfo=datetime.UTC)) for day in ((1, 1, 2), (9999, 12, 30))
)


def floats(constants: Iterable[int | float], many: int) -> list[float]:
    """Floats: the constants, and between and beyond them."""
    points = sorted({float(c) + 0.0 for c in constants})
    found = set(points)
    for low, high in zip([None, *points], [*points, None]):
        found.update(_between(low, high, many))
    return sorted(found, key=_plainness)


def _between(low: float | None, high: float | None, many: int) -> list[float]:
    """``many`` floats strictly between two, or all there are."""
    if low is None and high is None:
        return [float(k) for k in range(many)]
    if high is None:
        assert low is not None
        return _chain(low, math.inf, many, 1.0)
    if low is None:
        return _chain(high, -math.inf, many, -1.0)
    first = math.floor(low) + 1 if abs(low) < 2**53 else None
    found = [] if first is None else [float(first + k) for k in range(many) if first + k < high]
    if len(found) < many:
        parts = (low * (1 - k / (many + 1)) + high * (k / (many + 1)) for k in range(1, many + 1))
        found = sorted({part for part in parts if low < part < high})
    return found if len(found) == many else list(_neighbours(low, high, many))


def _chain(start: float, end: float, many: int, step: float) -> list[float]:
    """``many`` floats from a constant towards infinity."""
    if math.isinf(start):
        return []
    base = float(math.floor(start) if step > 0 else math.ceil(start))
    found = [base + step * k for k in range(1, many + 1)]
    distinct = len({start, *found}) == many + 1 and not any(map(math.isinf, found))
    return found if distinct else list(_neighbours(start, end, many, inclusive=True))


def _neighbours(start: float, end: float, many: int, *, inclusive: bool = False) -> Iterator[float]:
    current = start
    for _ in range(many):
        current = math.nextafter(current, end)
        if current == end and not inclusive:
            return
        yield current
        if current == end:
            return


def integers(constants: Iterable[int | float], many: int, low: int, high: int) -> list[int]:
    """Integers between two limits: at and around the places where comparisons with the constants change."""
    found: set[int] = set()
    for constant in constants:
        if isinstance(constant, int):
            places = [constant]
        else:
            # An integer is rounded before it is compared with a float.
            places = [first_integer(low, high, constant, strict) for strict in (False, True)]
        for place in places:
            found.update(range(max(low, place - many), min(high, place + many) + 1))
    # Without a constant within the limits all integers are alike.
    return sorted(found or range(max(low, 0), min(high, max(low, 0) + many) + 1), key=_plainness)


def first_integer(low: int, high: int, constant: float, strict: bool) -> int:
    """The first integer that is at least the constant, with ``strict`` greater; ``high + 1`` if there is none."""
    high += 1
    while low < high:
        middle = (low + high) // 2
        if float(middle) > constant or (not strict and float(middle) == constant):
            high = middle
        else:
            low = middle + 1
    return low


def candidate_moments(constants: Iterable[str], many: int, unit: int = 1) -> list[datetime.datetime]:
    """Moments that are multiples of a number of microseconds: at and around those that strings stand for."""
    units: set[int] = set()
    for text in constants:
        place = microseconds_since_epoch(parsed_moment(text)) // unit
        units.update(range(place - many, place + many + 2))
    if not units:
        units.update(10_957 * (DAY // unit) + k for k in range(many))
    low, high = MOMENT_LIMITS
    return [_EPOCH + datetime.timedelta(microseconds=u * unit) for u in sorted(units) if low <= u * unit <= high]


def strings_between(constants: Iterable[str], many: int) -> list[str]:
    """Strings: the constants, and strings that follow them before the next one, as far as there are any."""
    points = sorted({"", *constants})
    found = dict.fromkeys(points)
    for low, high in zip(points, [*points[1:], None]):
        inside: list[str] = []
        for suffix in (*(chr(ord("a") + k) for k in range(min(many, 26))), *("\0" * k for k in range(1, many + 1))):
            if len(inside) < many and (high is None or low + suffix < high):
                inside.append(low + suffix)
        found.update(dict.fromkeys(inside))
    # The empty string comes last, because it reads oddly in an example.
    return sorted(found, key=lambda text: (not text, len(text), text))


def _plainness(value: float) -> tuple[bool, bool, float]:
    """Small whole numbers first."""
    return (not float(value).is_integer(), value < 0, abs(value))
