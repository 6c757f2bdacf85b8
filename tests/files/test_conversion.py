from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import InputError
from cerflow.files.column_types import Look, look_at, type_named, type_of
from cerflow.files.conversion import USUAL, converted, notation_of


def text(*values):
    return pa.chunked_array([pa.array(values, pa.string())])


def read(column, use, declared=None, notation=USUAL):
    """A column of text as what it is used for."""
    used = "number" if declared else use
    look = look_at(column, np.arange(len(column)), "t.csv", used, typed=False, notation=notation)
    kind = type_of("v", look, use, declared, notation)
    return converted(notation.usual(column.combine_chunks(), times=use == "time"), kind)


def to_numbers(column):
    return read(column, "number")


def to_times(column):
    return read(column, "time")


def test_integers_stay_integers():
    found = to_numbers(text("1", "+2", None, " -3 "))
    assert found.type == pa.int64()
    assert found.to_pylist() == [1, 2, None, -3]


def test_one_fraction_makes_floats():
    found = to_numbers(text("1", "2.5", "1e3", ".5", "-inf"))
    assert found.to_pylist() == [1.0, 2.5, 1000.0, 0.5, float("-inf")]


def test_integers_beyond_64_bits_become_floats():
    assert to_numbers(text("99999999999999999999", "1")).type == pa.float64()


def test_what_is_no_number_is_pointed_out():
    found = to_numbers(text("1", "abc", "", "1,5", "0x10"))
    assert found.to_pylist() == [1, None, None, None, None]


def test_numbers_may_have_a_decimal_comma():
    notation = notation_of(",")
    found = read(text("1,5", " -,5e1 ", "7", "1.5", "1,2,3", "nan"), "number", notation=notation)
    assert [str(v) for v in found.to_pylist()] == ["1.5", "-5.0", "7.0", "None", "None", "nan"]
    assert read(text("1,5", "2"), "other", notation=notation).to_pylist() == [1.5, 2.0]
    with pytest.raises(InputError, match="has '1,5'; is the decimal point a comma"):
        to_numbers(text("1,5"))
    with pytest.raises(InputError, match="the decimal point may be"):
        notation_of(";")


@pytest.mark.parametrize(
    ("form", "values", "expected"),
    [
        ("%d.%m.%Y %H:%M:%S", ["01.02.2024 10:20:30", "1.2.2024 10:20:30"], ["2024-02-01 10:20:30"] * 2),
        ("%d/%m/%Y", ["29/02/2024", "29/02/2023", "2024-02-01"], ["2024-02-29 00:00:00", None, None]),
        ("%Y%m%dT%H%M%S.%f", ["20240201T102030.5", "20240201"], ["2024-02-01 10:20:30.500000", None]),
        ("%Y-%m-%d %H:%M:%S%z", ["2024-02-01 10:20:30+0100", "x"], ["2024-02-01 09:20:30+00:00", None]),
        ("%b %d, %y (%%)", ["Feb 1, 24 (%)", None], ["2024-02-01 00:00:00", None]),
        ("%H:%M", ["10:20", "25:00"], ["1900-01-01 10:20:00", None]),
    ],
)
def test_times_may_have_a_format(form, values, expected):
    found = read(text(*values), "time", notation=notation_of(".", form)).to_pylist()
    assert [v if v is None else str(v) for v in found] == expected


def test_what_is_no_format_of_times():
    for form in ("", "now", "%Q", "%d.%m.%Y %"):
        with pytest.raises(InputError, match="is not a format of times"):
            notation_of(".", form)
    with pytest.raises(InputError, match=r"is a time \(%d\.%m\.%Y\); row 0"):
        read(text("2024-02-01"), "time", notation=notation_of(".", "%d.%m.%Y"))


def test_a_column_of_nothing_else_is_at_fault_itself():
    with pytest.raises(InputError, match=r"no value of the column 'v' is a number; row 1 of t\.csv, .* has 'a'"):
        to_numbers(text(None, "a"))
    with pytest.raises(InputError, match="no value of the column 'v' is a time"):
        to_times(text("a", None))
    assert to_numbers(text(None)).to_pylist() == [None]
    assert to_times(text()).to_pylist() == []


def test_numbers_out_of_range_are_pointed_out():
    found = to_numbers(text("1e400", "1e3", "-1e-400", "inf", "9" * 400))
    assert found.to_pylist() == [None, 1000.0, 0.0, float("inf"), None]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", " 2"], pa.int64(), [1, 2]),
        (["1", "2.5"], pa.float64(), [1.0, 2.5]),
        (["9223372036854775807", "-9223372036854775808"], pa.int64(), [2**63 - 1, -(2**63)]),
        # Keys that differ stay different.
        (["9223372036854775808", "1"], pa.string(), ["9223372036854775808", "1"]),
        (["123456789012345678", "9" * 5000], pa.string(), ["123456789012345678", "9" * 5000]),
        (["1e400", "1"], pa.string(), ["1e400", "1"]),
        (["TRUE", "false"], pa.bool_(), [True, False]),
        (["true", "1"], pa.string(), ["true", "1"]),
        (["2024-01-01", "2024-02-29"], pa.date32(), [date(2024, 1, 1), date(2024, 2, 29)]),
        (["2024-01-01", "2024-02-30"], pa.string(), ["2024-01-01", "2024-02-30"]),
        (["2024-01-01", "2024-01-01T10:00"], pa.timestamp("us"), [datetime(2024, 1, 1), datetime(2024, 1, 1, 10)]),
        (["0000-01-01", "10000-01-01"], pa.string(), ["0000-01-01", "10000-01-01"]),
        (["09:30", "10:00"], pa.string(), ["09:30", "10:00"]),
        (["0x10", "1"], pa.string(), ["0x10", "1"]),
        ([None, None], pa.null(), [None, None]),
    ],
)
def test_what_follows_from_the_values(values, kind, expected):
    found = read(text(*values), "other")
    assert found.type == kind
    assert found.to_pylist() == expected


def test_what_follows_does_not_depend_on_the_cut():
    values = ["1"] * 300 + ["x"] + ["2.5"] * 300
    pieces = [text(*values[k : k + 50]) for k in range(0, len(values), 50)]
    looks = [look_at(piece, np.arange(len(piece)), "t.csv", "other", typed=False) for piece in pieces]
    assert type_of("v", sum(looks, Look()), "other", None) == pa.string()
    assert type_of("v", sum(looks[:6], Look()), "other", None) == pa.int64()
    assert type_of("v", sum(looks[:6] + looks[-1:], Look()), "other", None) == pa.float64()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text", ["1", "x", "true", "2024-01-01", "2.5"]),
        ("integer", [1, None, None, None, None]),
        ("float", [1.0, None, None, None, 2.5]),
        ("boolean", [True, None, True, None, None]),
        ("timestamp", [None, None, None, datetime(2024, 1, 1), None]),
    ],
)
def test_what_is_said_of_a_column_counts(kind, expected):
    found = read(text("1", "x", "true", "2024-01-01", "2.5"), "other", type_named(kind))
    assert found.to_pylist() == expected


def test_types_have_names():
    with pytest.raises(InputError, match=r"no column type 'string'.*; the types are text, integer, float"):
        type_named("string")
    with pytest.raises(InputError, match="did you mean 'integer'"):
        type_named("int")


def test_times_of_several_precisions():
    found = to_times(text("2024-01-01", "2024-01-01 10:00", "2024-01-01T10:00:00.123456789", None))
    assert found.type == pa.timestamp("us")
    assert found.to_pylist() == [
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 10),
        datetime(2024, 1, 1, 10, 0, 0, 123456),
        None,
    ]


def test_a_zone_anywhere_puts_all_times_in_utc():
    found = to_times(text("2024-01-01T10:00:00+02:00", "2024-01-01T10:00:00Z", "2024-01-01T10:00:00"))
    assert found.to_pylist() == [
        datetime(2024, 1, 1, 8, tzinfo=UTC),
        datetime(2024, 1, 1, 10, tzinfo=UTC),
        datetime(2024, 1, 1, 10, tzinfo=UTC),
    ]


@pytest.mark.parametrize("wrong", ["2024-02-30", "2024-01-01T25:00", "2024-02-30T00:00:00Z", "yesterday", "12"])
def test_what_is_no_time_is_pointed_out(wrong):
    found = to_times(text("2024-01-01T00:00:00", wrong, "2024-01-02"))
    assert [value is None for value in found.to_pylist()] == [False, True, False]
    assert found[0].as_py().day == 1
    assert found[2].as_py().day == 2


def test_times_may_be_numbers():
    found = to_times(text("12", "13.5", "2024-01-01"))
    assert found.to_pylist() == [12.0, 13.5, None]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))))
def test_every_integer_survives(values):
    found = to_numbers(text(*[None if v is None else str(v) for v in values]))
    assert found.to_pylist() == values


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_every_float_survives(values):
    found = to_numbers(text(*map(repr, values)))
    assert found.to_pylist() == values


@given(st.lists(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)), min_size=1))
def test_every_time_survives(values):
    found = to_times(text(*[v.isoformat() for v in values]))
    assert found.to_pylist() == values
