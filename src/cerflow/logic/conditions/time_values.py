"""Timestamps and durations as plain values: their arithmetic, and their microseconds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from cerflow.base.errors import InputError
from cerflow.base.events import microseconds_since_epoch, moment_at, parsed_moment
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.logic.conditions.register_values import FIRST_MOMENT, LAST_MOMENT

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def microseconds_of(value: datetime | timedelta) -> int:
    """The microseconds of a duration, or of a timestamp since 1970, rounded down."""
    return microseconds_since_epoch(value) if isinstance(value, datetime) else value // timedelta(microseconds=1)


def date_part(part: str, zone: str | None, value: datetime | int) -> int | None:
    """A part of `DATE_PARTS` of a timestamp, or of microseconds since 1970, in a time zone (None: UTC)."""
    moment = moment_of(value) if isinstance(value, int) else value
    if moment is None:
        return None
    if zone is not None:
        moment = moment.astimezone(zone_called(zone))
    return moment.isoweekday() if part == "weekday" else int(getattr(moment, part))


def zone_called(zone: str) -> tzinfo:
    """The time zone of a name as Arrow writes it: of a region, or an offset such as ``+01:00``."""
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return ZoneInfo(zone)
    sign, hours, minutes = offset.groups()
    return timezone((1 if sign == "+" else -1) * timedelta(hours=int(hours), minutes=int(minutes)))


def duration_of(microseconds: int | None) -> timedelta | None:
    """The duration of this many microseconds, None beyond 64 bits."""
    if microseconds is None or abs(microseconds) > LARGEST_INTEGER:
        return None
    return timedelta(microseconds=microseconds)


def moment_of(microseconds: int) -> datetime | None:
    """The timestamp of this many microseconds since 1970, None beyond the years 1 to 9999."""
    return moment_at(microseconds) if FIRST_MOMENT <= microseconds <= LAST_MOMENT else None


def whole_number(value: float) -> int | None:
    """A float rounded to an integer, halves away from zero; None beyond 64 bits."""
    if not abs(value) < 2.0**63:
        return None
    whole = math.trunc(value)
    return whole + int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else whole


def time_arithmetic(sign: str, left: Any, right: Any) -> datetime | timedelta | float | None:
    """``left sign right`` where one is a timestamp or a duration, and neither is null; null where it is too large.

    Raises `InputError` for kinds that do not go together.
    """
    if sign == "-":
        left, right = _said_beside(left, right), _said_beside(right, left)
    kinds = tuple("t" if isinstance(v, datetime) else "d" if isinstance(v, timedelta) else "n" for v in (left, right))
    given = _OPERATIONS.get((sign, *kinds))
    if given is None or isinstance(left, str) or isinstance(right, str):
        raise InputError(f"'{sign}' cannot combine {type(left).__name__} with {type(right).__name__}")
    numbers = (microseconds_of(v) if isinstance(v, datetime | timedelta) else v for v in (left, right))
    return given(*numbers)


def _said_beside(value: Any, other: Any) -> Any:
    """The timestamp that a string means next to a timestamp; other values as they are."""
    said = isinstance(value, str) and isinstance(other, datetime)
    return parsed_moment(value) if said else value


def _product(a: int | float, b: int | float) -> timedelta | None:
    exact = isinstance(a, int) and isinstance(b, int)
    return duration_of(int(a * b) if exact else whole_number(float(a) * float(b)))


#: The effect of signs on timestamps (t), durations (d), both in microseconds, and numbers (n).
_OPERATIONS: Mapping[tuple[str, ...], Callable[[Any, Any], datetime | timedelta | float | None]] = {
    ("-", "t", "t"): lambda a, b: duration_of(a - b),
    ("-", "t", "d"): lambda a, b: moment_of(a - b),
    ("+", "t", "d"): lambda a, b: moment_of(a + b),
    ("+", "d", "t"): lambda a, b: moment_of(a + b),
    ("+", "d", "d"): lambda a, b: duration_of(a + b),
    ("-", "d", "d"): lambda a, b: duration_of(a - b),
    ("*", "d", "n"): _product,
    ("*", "n", "d"): _product,
    ("/", "d", "n"): lambda a, b: duration_of(whole_number(float(a) / float(b))) if b else None,
    ("/", "d", "d"): lambda a, b: float(a) / float(b) if b else None,
}
