from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.cli.conversion import to_numbers, to_times


def text(*values):
    return pa.chunked_array([pa.array(values, pa.string())])


def test_integers_stay_integers():
    found = to_numbers(text("1", "+2", None, " -3 "))
    assert found.values.type == pa.int64()
    assert found.values.to_pylist() == [1, 2, None, -3]
    assert not found.bad.any()


def test_one_fraction_makes_floats():
    found = to_numbers(text("1", "2.5", "1e3", ".5", "-inf"))
    assert found.values.to_pylist() == [1.0, 2.5, 1000.0, 0.5, float("-inf")]


def test_integers_beyond_64_bits_become_floats():
    assert to_numbers(text("99999999999999999999", "1")).values.type == pa.float64()


def test_what_is_no_number_is_pointed_out():
    found = to_numbers(text("1", "abc", "", "1,5", "0x10"))
    assert found.bad.tolist() == [False, True, True, True, True]
    assert found.values.to_pylist() == [1, None, None, None, None]
    assert not found.hopeless


def test_hopeless_means_that_nothing_parsed():
    assert to_numbers(text("a", None)).hopeless
    assert to_times(text("a", None)).hopeless
    assert not to_numbers(text(None)).hopeless
    assert not to_numbers(text()).hopeless


def test_times_of_several_precisions():
    found = to_times(text("2024-01-01", "2024-01-01 10:00", "2024-01-01T10:00:00.123456789", None))
    assert found.values.type == pa.timestamp("us")
    assert found.values.to_pylist() == [
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 10),
        datetime(2024, 1, 1, 10, 0, 0, 123456),
        None,
    ]


def test_a_zone_anywhere_puts_all_times_in_utc():
    found = to_times(text("2024-01-01T10:00:00+02:00", "2024-01-01T10:00:00Z", "2024-01-01T10:00:00"))
    assert found.values.to_pylist() == [
        datetime(2024, 1, 1, 8, tzinfo=UTC),
        datetime(2024, 1, 1, 10, tzinfo=UTC),
        datetime(2024, 1, 1, 10, tzinfo=UTC),
    ]


@pytest.mark.parametrize("wrong", ["2024-02-30", "2024-01-01T25:00", "2024-02-30T00:00:00Z", "yesterday", "12"])
def test_what_is_no_time_is_pointed_out(wrong):
    found = to_times(text("2024-01-01T00:00:00", wrong, "2024-01-02"))
    assert found.bad.tolist() == [False, True, False]
    assert found.values[0].as_py().day == 1
    assert found.values[2].as_py().day == 2


def test_times_may_be_numbers():
    found = to_times(text("12", "13.5", "2024-01-01"))
    assert found.values.to_pylist() == [12.0, 13.5, None]
    assert found.bad.tolist() == [False, False, True]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))))
def test_every_integer_survives(values):
    found = to_numbers(text(*[None if v is None else str(v) for v in values]))
    assert not found.bad.any()
    assert found.values.to_pylist() == values


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_every_float_survives(values):
    found = to_numbers(text(*map(repr, values)))
    assert not found.bad.any()
    assert found.values.to_pylist() == values


@given(st.lists(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)), min_size=1))
def test_every_time_survives(values):
    found = to_times(text(*[v.isoformat() for v in values]))
    assert not found.bad.any()
    assert found.values.to_pylist() == values
