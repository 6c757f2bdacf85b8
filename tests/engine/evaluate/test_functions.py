"""Functions of strings, nulls and dates, in computed columns and conditions."""

from datetime import datetime

import pyarrow as pa
import pytest

import cerflow
from cerflow.builder import label
from cerflow.errors import QueryError, QuerySyntaxError, UnsupportedQueryError

LATE = datetime(2024, 3, 15, 23, 30)
EVENTS = pa.table(
    {
        "type": ["A", "B", "B"],
        "s": ["abc", None, "xyz"],
        "n": pa.array([1, None, 3]),
        "f": [None, 2.5, None],
        "vienna": pa.array([LATE] * 3, pa.timestamp("us", "Europe/Vienna")),
        "offset": pa.array([LATE] * 3, pa.timestamp("us", "+05:30")),
        "plain": pa.array([LATE, None, LATE], pa.timestamp("ms")),
    }
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("coalesce(y.s, x.s)", ["abc", "xyz"]),
        ("coalesce(x.f, y.n)", [None, 3.0]),
        ("coalesce(y.n, NULL, 7)", [7, 3]),
        ("x.s || '-' || y.s", [None, "abc-xyz"]),
        ("substr(x.s, 2, y.n)", [None, "bc"]),
        ("substr(x.s, 0, 2)", ["a", "a"]),
        ("substr(x.s, -1)", ["abc", "abc"]),
        ("substr(x.s, 2, -1)", [None, None]),
        ("hour(y.vienna)", [0, 0]),
        ("day(y.vienna)", [16, 16]),
        ("hour(y.offset)", [5, 5]),
        ("weekday(y.plain)", [None, 5]),
        ("year(coalesce(y.plain, x.plain))", [2024, 2024]),
        ("hour(min(y.plain) + 1 HOUR)", [None, 0]),
    ],
)
def test_computed_columns(value, expected):
    query = cerflow.parse(f"SELECT {value} AS c WHERE A AS x ; B AS y")
    assert [match["c"] for match in query.match(EVENTS)] == expected


@pytest.mark.parametrize(
    ("condition", "ends"),
    [
        ("coalesce(y.s, x.s) = 'abc'", [1]),
        ("coalesce(x.f, y.n) = 3", [2]),
        ("coalesce(y.s, x.s) || 'd' = 'abcd'", None),
        ("substr(x.s, 1, 2) != substr(y.s, 1)", [2]),
        ("y.s || 'x' = 'xyzx'", [2]),
        ("hour(y.vienna) = hour(x.vienna) AND hour(x.plain) = 23", [1, 2]),
        ("substr(first(y.s), 1, 2) = 'xy'", [2]),
        ("weekday(max(y.offset)) = 6", [1, 2]),
        ("coalesce(y.plain, x.plain) - x.plain = 0 SECONDS", [1, 2]),
        ("x.s || y.s = 'abcxyz'", None),
        ("hour(coalesce(x.plain, y.plain)) = 23", None),
        ("lower(coalesce(x.s, y.s)) = 'abc'", None),
    ],
)
def test_conditions(condition, ends):
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition}")
    if ends is None:
        with pytest.raises(UnsupportedQueryError, match="computed from one event in a condition"):
            query.match(EVENTS)
    else:
        assert [match["end"] for match in query.match(EVENTS)] == ends


@pytest.mark.parametrize(
    ("condition", "error", "reason"),
    [
        ("coalesce(x.n, x.s) = 1", QueryError, "coalesce takes values of one kind, but this is a string beside an int"),
        ("hour(x.n) = 1", QueryError, "hour needs a timestamp, but this is an integer"),
        ("substr(x.n, 1) = 'a'", QueryError, "substr needs a string, but this is an integer"),
        ("substr(x.s, 1.5) = 'a'", QueryError, "substr counts characters by integers, but this is a float"),
        ("x.n || 'a' = 'a'", QueryError, "|| needs a string, but this is an integer"),
        ("substr(x.s) = 'a'", QuerySyntaxError, "substr takes 2 or 3 arguments, but 1 are given"),
        ("x.n = 1 || x.n = 2", QuerySyntaxError, "joins strings"),
    ],
)
def test_errors(condition, error, reason):
    with pytest.raises(error) as caught:
        cerflow.parse(f"SELECT * WHERE A AS x FILTER {condition}").match(EVENTS)
    assert reason in str(caught.value)


def test_the_builder_gives_the_same_trees():
    x = label("x")
    for made, written in (
        (x.s.substr(1, 2).concat("a") == "b", "substr(x.s, 1, 2) || 'a' = 'b'"),
        (x.s.coalesce(x.u, "a") == "b", "coalesce(x.s, x.u, 'a') = 'b'"),
        (x.t.date_part("hour") == 3, "hour(x.t) = 3"),
    ):
        assert made.tree == cerflow.parse(f"SELECT * WHERE A AS x FILTER {written}").tree.formula.condition
    with pytest.raises(QueryError, match="no part 'hours'"):
        x.t.date_part("hours")
