"""Timestamps and durations (spec §10): the results of arithmetic, and their value next to a numeric time."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any

from cerflow.base.events import Value, microseconds_since_epoch, parsed_moment
from cerflow.language.condition import Literal
from cerflow.language.node import Node

MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
#: The microseconds that one counts in the numeric time of the current stream.
_TICK: ContextVar[Fraction] = ContextVar("tick", default=Fraction(1000))


@contextmanager
def with_numeric_time(microseconds_per_tick: Fraction | int | None) -> Iterator[None]:
    """Evaluate on a stream whose numeric time counts this many microseconds (None: there is none)."""
    token = _TICK.set(Fraction(1000 if microseconds_per_tick is None else microseconds_per_tick))
    try:
        yield
    finally:
        _TICK.reset(token)


def numbers_of_time(operands: Sequence[Node], values: Sequence[Any]) -> Sequence[Any]:
    """Values that meet: durations next to a number, which can only be a numeric time, are numbers of its ticks.

    A literal that is a whole number of ticks is an integer, every other duration a float.
    """
    if not any(isinstance(v, int | float) for v in values):
        return values
    return [_ticks(v, of) if isinstance(v, datetime.timedelta) else v for v, of in zip(values, operands)]


def _ticks(value: datetime.timedelta, of: Node) -> int | float:
    exact = Fraction(value // MICROSECOND) / _TICK.get()
    if isinstance(of, Literal) and exact.denominator == 1 and abs(exact) < 2**63:
        return int(exact)
    return float(exact)


def time_arithmetic(sign: str, left: Any, right: Any) -> Value:
    """Arithmetic where a timestamp or a duration is an operand, and none is null."""
    if isinstance(left, str):
        left = parsed_moment(left)
    if isinstance(right, str):
        right = parsed_moment(right)
    turn = -1 if sign == "-" else 1
    match sign, left, right:
        case "-", datetime.datetime(), datetime.datetime():
            return duration(microseconds_since_epoch(left) - microseconds_since_epoch(right))
        case "+" | "-", datetime.datetime(), datetime.timedelta():
            return _moved(left, turn * (right // MICROSECOND))
        case "+", datetime.timedelta(), datetime.datetime():
            return _moved(right, left // MICROSECOND)
        case "+" | "-", datetime.timedelta(), datetime.timedelta():
            return duration(left // MICROSECOND + turn * (right // MICROSECOND))
        case "*", datetime.timedelta(), int() | float():
            return _times(left // MICROSECOND, right)
        case "*", int() | float(), datetime.timedelta():
            return _times(right // MICROSECOND, left)
        case "/", datetime.timedelta(), int() | float():
            return None if right == 0 else duration(nearest_integer(float(left // MICROSECOND) / float(right)))
        case "/", datetime.timedelta(), datetime.timedelta():
            return None if not right else float(left // MICROSECOND) / float(right // MICROSECOND)
    raise TypeError(f"{left!r} {sign} {right!r} is not defined")


def _times(microseconds: int, number: int | float) -> Value:
    if isinstance(number, int):
        return duration(microseconds * number)
    return duration(nearest_integer(float(microseconds) * number))


def _moved(moment: datetime.datetime, microseconds: int) -> Value:
    """A timestamp so much later, null beyond the years 1 to 9999."""
    try:
        return _EPOCH + datetime.timedelta(microseconds=microseconds_since_epoch(moment) + microseconds)
    except OverflowError:
        return None


def duration(microseconds: int | None) -> Value:
    """A duration of this many microseconds, null beyond 64 bits."""
    if microseconds is None or not -(2**63) < microseconds < 2**63:
        return None
    return datetime.timedelta(microseconds=microseconds)


def nearest_integer(number: float) -> int | None:
    """The nearest integer, of two the one farther from zero; None for what is not finite."""
    if not math.isfinite(number):
        return None
    below = math.floor(number)
    # The difference of a float and its floor is exact.
    half = number - below
    return below + 1 if half > 0.5 or (half == 0.5 and number > 0) else below
