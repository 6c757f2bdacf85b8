"""Units of time: those of columns and those in which queries write durations, in one table each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Literal, get_args

from cerflow.base.errors import ArgumentError

#: Units of a time column: the units of Arrow's timestamps, the finest last.
TimeUnit = Literal["s", "ms", "us", "ns"]
#: How many of each unit make a second.
PER_SECOND: Mapping[str, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: The microseconds of each unit.
MICROSECONDS: Mapping[str, Fraction] = {unit: Fraction(10**6, number) for unit, number in PER_SECOND.items()}
#: The units in words.
UNIT_NAMES: Mapping[str, str] = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
#: The microseconds of a day.
DAY = 86_400 * 10**6
#: Units of durations in queries, in microseconds, the largest first; the singular is the word without its S.
DURATION_UNITS: Mapping[str, int] = {
    "DAYS": DAY,
    "HOURS": DAY // 24,
    "MINUTES": 60 * 10**6,
    "SECONDS": 10**6,
    "MILLISECONDS": 1000,
}


def since_1970(seconds: float) -> bool:
    """Whether a number of seconds looks like a time since 1970: it would be between 2001 and 2096."""
    return 10**9 <= seconds <= 4 * 10**9


def check_unit(unit: str) -> None:
    """Raise `ArgumentError` for anything but a unit of time columns."""
    if not isinstance(unit, str) or unit not in PER_SECOND:
        raise ArgumentError(f"a time unit must be {', '.join(map(repr, PER_SECOND))}, not {unit!r}")


def finest(units: Iterable[str]) -> TimeUnit:
    """The finest of some units."""
    wanted = max(units, key=PER_SECOND.__getitem__)
    return next(unit for unit in get_args(TimeUnit) if unit == wanted)
