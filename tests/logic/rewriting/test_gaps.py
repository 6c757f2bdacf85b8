"""Windows that follow from conditions on the time between the first and the last event of a match."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.schema import Schema
from cerflow.engine.recognize.planning import fitted
from cerflow.language.printer import show

TIMES = {"us": pa.timestamp("us"), "ns": pa.timestamp("ns"), "number": pa.int64(), "float": pa.float64()}


def rewritten(query, kind="us"):
    schema = Schema(pa.schema({"type": pa.string(), "v": pa.int64(), "t": TIMES[kind]}), time="t")
    return show(fitted(cerflow.parse(f"SELECT * WHERE {query}").tree, schema, times=False)).removeprefix(
        "SELECT * WHERE "
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("(A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES", "A AS a ; B AS b WITHIN 5 MINUTES"),
        ("(A ; B) FILTER time(B) - A.t < 5 MINUTES", "A ; B WITHIN 5 MINUTES"),
        ("(A AS a ; B AS b ; C AS c) FILTER abs(a.t - c.t) < 1 HOUR", "A AS a ; B AS b ; C AS c WITHIN 1 HOUR"),
        ("(A+ AS a ; B AS b) FILTER b.t - a.t < 9 SECONDS", "A+ AS a ; B AS b WITHIN 9 SECONDS"),
        # The narrower of two windows stays.
        ("(A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES WITHIN 9 MINUTES", "A AS a ; B AS b WITHIN 5 MINUTES"),
        ("(A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES WITHIN 2 MINUTES", "A AS a ; B AS b WITHIN 2 MINUTES"),
        (
            "((A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES WITHIN 7 MINUTES) ; C",
            "(A AS a ; B AS b WITHIN 5 MINUTES) ; C",
        ),
        # Inside formulas.
        ("((A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES)+", "(A AS a ; B AS b WITHIN 5 MINUTES)+"),
        ("MAX((A AS a ; B AS b) FILTER b.t - a.t < 1 SECOND) ; C", "MAX(A AS a ; B AS b WITHIN 1 SECOND) ; C"),
        ("((A AS a OR C AS a) ; B AS b) FILTER b.t - a.t < 1 SECOND", "(A AS a OR C AS a) ; B AS b WITHIN 1 SECOND"),
    ],
)
def test_a_bound_from_the_first_event_to_the_last_is_a_window(query, expected):
    assert rewritten(query) == expected


@pytest.mark.parametrize(
    ("query", "kind", "window"),
    [
        ("(A AS a ; B AS b) FILTER b.t <= a.t + 5 MINUTES", "us", "5 MINUTES 0.001 MILLISECONDS"),
        ("(A AS a ; B AS b) FILTER b.t - 5 MINUTES < a.t", "us", "5 MINUTES"),
        ("(A AS a ; B AS b) FILTER 5 MINUTES + a.t > b.t", "us", "5 MINUTES"),
        ("(A AS a ; B AS b) FILTER b.t - 3000 - a.t < 2000 AND a.v > 1", "number", "5 SECONDS"),
        ("(A AS a ; B AS b) FILTER position(b) - position(a) < 9", "us", "9 EVENTS"),
        ("(A AS a ; B AS b) FILTER abs(position(a) - position(b)) <= 9 AND a.v > 1", "float", "10 EVENTS"),
        ("(A AS a ; B AS b) FILTER position(a) > position(b) - 3 AND b.t - a.t < 9 DAYS", "us", "9 DAYS"),
        # Nanoseconds are rounded before they are subtracted.
        ("(A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES AND a.v > 1", "ns", "5 MINUTES 0.001 MILLISECONDS"),
        ("(A AS a ; B AS b) FILTER b.t - a.t < 5000 AND a.v > 1", "number", "5 SECONDS"),
    ],
)
def test_the_window_may_be_wider_than_the_condition(query, kind, window):
    assert rewritten(query, kind).endswith(f" WITHIN {window}")


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        # Something may come before a, or after b, or a may be absent, or come last.
        ("(C ; A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES", "us"),
        ("(A AS a ; B AS b ; C) FILTER b.t - a.t < 5 MINUTES", "us"),
        ("((A AS a OR C) ; B AS b) FILTER b.t - a.t < 5 MINUTES", "us"),
        ("(A AS a ALL B AS b) FILTER b.t - a.t < 5 MINUTES", "us"),
        ("(A AS a ; B AS b) FILTER a.t - b.t < 5 MINUTES", "us"),
        ("(A AS a ; B AS b) FILTER b.t - a.t > 5 MINUTES", "us"),
        ("PROJECT a, b (A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES OR a.v > 1", "us"),
        ("(A AS a ; B AS b) FILTER position(b) - position(a) > 9", "us"),
        ("(A AS a ; B AS b) FILTER position(b) - position(a) < 9.5", "us"),
        ("(A AS a ; B AS b) FILTER position(b) - a.v < 9", "us"),
        ("(A AS a ; B AS b : C) FILTER position(b) - position(a) < 9", "us"),
        # Partial matches wait for the next event alone, or for a deadline.
        ("(A AS a : B AS b) FILTER b.t - a.t < 5 MINUTES", "us"),
        ("((A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES) NOT FOLLOWED BY C FOR 9 MINUTES", "us"),
        ("(A AS a ; B AS b) FILTER b.t - a.t < 5000", "float"),
        ("(A AS a ; B AS b) FILTER b.v - a.v < 5", "us"),
    ],
)
def test_other_conditions_say_nothing_of_the_extent(query, kind):
    assert "WITHIN" not in rewritten(query, kind)


def test_partial_matches_are_forgotten_when_their_gap_has_passed():
    query = cerflow.parse("SELECT * WHERE (A AS a ; B AS b) FILTER b.t - a.t < 100 AND b.v > a.v")
    schema = pa.schema({"type": pa.string(), "v": pa.int64(), "t": pa.int64()})
    recognizer = query.recognizer(schema, time="t")
    for begin in range(0, 200_000, 10_000):
        recognizer.push(pa.table({"type": ["A"] * 10_000, "v": range(10_000), "t": range(begin, begin + 10_000)}))
    assert len(recognizer.snapshot()) < 100_000
