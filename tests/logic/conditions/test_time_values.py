"""Arithmetic on timestamps and durations, worked by hand, and as the semantics has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import InputError
from cerflow.logic.conditions.evaluate import (
    date_part,
    duration_of,
    microseconds_of,
    moment_of,
    time_arithmetic,
    whole_number,
    zone_called,
)
from cerflow.theory.semantics.times import time_arithmetic as meant
from support.runners import examples

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sign", "left", "right", "result"),
    [
        ("-", NOON, NOON - HOUR, HOUR),
        ("-", NOON - HOUR, NOON, -HOUR),
        ("-", NOON, HOUR, datetime(2024, 2, 29, 11, tzinfo=UTC)),
        ("-", NOON, "2024-02-29T11:30:00", timedelta(minutes=30)),
        ("-", "2024-03-01T12:00:00+00:00", NOON, timedelta(days=1)),
        ("+", NOON, timedelta(days=1), datetime(2024, 3, 1, 12, tzinfo=UTC)),
        ("+", HOUR, NOON, datetime(2024, 2, 29, 13, tzinfo=UTC)),
        ("+", HOUR, HOUR, timedelta(hours=2)),
        ("-", HOUR, timedelta(minutes=1), timedelta(minutes=59)),
        ("*", HOUR, 2, timedelta(hours=2)),
        ("*", 0.5, HOUR, timedelta(minutes=30)),
        # Halves are rounded away from zero.
        ("*", timedelta(microseconds=1), 0.5, timedelta(microseconds=1)),
        ("*", timedelta(microseconds=-1), 0.5, timedelta(microseconds=-1)),
        ("*", timedelta(microseconds=1), 0.4, timedelta(0)),
        ("/", HOUR, 4, timedelta(minutes=15)),
        ("/", HOUR, timedelta(minutes=15), 4.0),
        # What is too large, and division by zero, is null.
        ("/", HOUR, 0, None),
        ("/", HOUR, timedelta(0), None),
        ("+", LAST, timedelta(microseconds=1), None),
        ("-", FIRST, timedelta(microseconds=1), None),
        ("*", HOUR, 2**62, None),
        ("*", HOUR, 1e300, None),
        ("*", HOUR, float("inf"), None),
        ("*", HOUR, float("nan"), None),
        ("+", timedelta(microseconds=2**63 - 1), timedelta(microseconds=1), None),
    ],
)
def test_arithmetic(sign: str, left: Any, right: Any, result: Any) -> None:
    assert time_arithmetic(sign, left, right) == result
    assert meant(sign, left, right) == result


@pytest.mark.parametrize(
    ("sign", "left", "right"),
    [
        ("+", NOON, NOON),
        ("*", NOON, 2),
        ("*", HOUR, HOUR),
        ("/", 2, HOUR),
        ("-", HOUR, NOON),
        ("+", NOON, 1),
        ("+", NOON, "2024-01-01"),
        ("-", HOUR, "2024-01-01"),
    ],
)
def test_kinds_that_do_not_go_together(sign: str, left: Any, right: Any) -> None:
    with pytest.raises(InputError, match=rf"'\{sign}' cannot combine"):
        time_arithmetic(sign, left, right)


MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))
#: Kinds of one sort, and numbers at the bounds of 64 bits.
VALUES = (
    MOMENTS
    | st.sampled_from([FIRST, LAST])
    | st.timedeltas(timedelta(microseconds=-(2**63) + 1), timedelta(microseconds=2**63 - 1))
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.integers(-3, 3)
    | st.floats()
)


@examples(2000)
@given(st.sampled_from("+-*/"), VALUES, VALUES)
def test_arithmetic_is_that_of_the_semantics(sign: str, left: Any, right: Any) -> None:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return

    def answer(function: Any) -> Any:
        try:
            return function(sign, left, right)
        except (InputError, TypeError):
            return InputError

    assert answer(time_arithmetic) == answer(meant)


@given(MOMENTS | st.sampled_from([FIRST, LAST]))
def test_moments_are_their_microseconds(moment: datetime) -> None:
    assert moment_of(microseconds_of(moment)) == moment


@given(st.integers())
def test_what_no_timestamp_and_no_duration_can_be_is_null(number: int) -> None:
    duration, moment = duration_of(number), moment_of(number)
    assert (duration is None) == (abs(number) >= 2**63)
    assert duration is None or microseconds_of(duration) == number
    assert (moment is None) == (not microseconds_of(FIRST) <= number <= microseconds_of(LAST))


def test_microseconds_are_rounded_down_not_towards_1970() -> None:
    assert microseconds_of(datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == -1
    assert microseconds_of(timedelta(microseconds=-1)) == -1


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (0.5, 1),
        (-0.5, -1),
        (1.5, 2),
        (2.5, 3),
        (0.49999999999999994, 0),
        (-2.4, -2),
        (2.0**63, None),
        (-(2.0**63), None),
    ],
)
def test_floats_are_rounded_with_halves_away_from_zero(value: float, whole: int | None) -> None:
    assert whole_number(value) == whole


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_not_rounded(value: float) -> None:
    assert whole_number(value) is None


@pytest.mark.parametrize(
    ("part", "zone", "value", "result"),
    [
        ("year", None, NOON, 2024),
        ("day", "Europe/Vienna", datetime(2024, 12, 31, 23, 30, tzinfo=UTC), 1),
        ("year", "Europe/Vienna", datetime(2024, 12, 31, 23, 30, tzinfo=UTC), 2025),
        # Summer time begins at 01:00 UTC.
        ("hour", "Europe/Vienna", datetime(2024, 3, 31, 0, 59, tzinfo=UTC), 1),
        ("hour", "Europe/Vienna", datetime(2024, 3, 31, 1, 0, tzinfo=UTC), 3),
        ("hour", "-05:30", NOON, 6),
        ("minute", "-0530", NOON, 30),
        ("weekday", None, NOON, 4),
        ("weekday", None, datetime(2024, 3, 3, tzinfo=UTC), 7),
        ("second", None, -1, 59),
        ("year", None, 2**62, None),
    ],
)
def test_parts_of_timestamps(part: str, zone: str | None, value: Any, result: int | None) -> None:
    assert date_part(part, zone, value) == result


def test_zones() -> None:
    assert zone_called("+01:00") == timezone(HOUR)
    assert zone_called("Europe/Vienna") == ZoneInfo("Europe/Vienna")
    with pytest.raises(ZoneInfoNotFoundError):
        zone_called("Europe/Nowhere")
