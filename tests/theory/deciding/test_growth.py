"""Queries whose partial matches may keep any number of different sets: they are told, others are not."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.language.formula import DurationWindow
from cerflow.language.node import walk
from support.generators.deadlines import DeadlineQueries
from support.runners import EXAMPLES, engine_refuses

GROWING = [
    "(A+ AS x ; B AS y) FILTER x.v <> y.v",
    "(A AS a ; B AS b) UNLESS ((C AS c)+ ; D AS d FILTER c.v <> b.v)",
]


def warned(formula):
    return [w.reason for w in cerflow.parse(f"SELECT * WHERE {formula}").warnings() if "sets of values" in w.reason]


@pytest.mark.parametrize("formula", GROWING)
def test_growing(formula):
    assert len(warned(formula)) == 1


@pytest.mark.parametrize(
    "formula",
    [
        "(A AS x ; B AS y) FILTER x.v <> y.v",
        "(A+ AS x ; B AS y) FILTER x.v < y.v",
        "(A AS a ; B AS b) UNLESS (C AS c ; D AS d FILTER c.v = b.v AND d.v <> a.v)",
        "(A+ AS a ; B AS b) WITHOUT (C AS c ; D AS d FILTER c.v = b.v AND d.v <> b.v)",
        "(A AS a ; B AS b) UNLESS ((C AS c)+ ; D AS d FILTER c.v < b.v)",
        "(A AS a UNLESS (C AS c FILTER c.v = x.v AND c.w > x.w)) ; B AS x",
        "D ; NEXT(A AS a ; B AS b FILTER a.v <> b.v)",
    ],
)
def test_not_growing(formula):
    assert warned(formula) == []


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("(A AS x ; C AS y) FILTER x.v = y.v", "x.v"),
        ("(A AS x ; C AS y) FILTER x.v = y.v PARTITION BY k", "x.v"),
        ("(A AS x ; C AS y) FILTER time(y) - time(x) > 20", "x.time"),
        ("(A AS x ; C AS y) FILTER time(y) - time(x) < 20", None),
        ("(A+ AS x ; C AS y) FILTER max(x.v) < y.v", "max(x.v)"),
        ("(A AS x ; D) UNLESS (C AS y FILTER y.v = x.v)", "x.v"),
        ("(A AS x ; C AS y) FILTER x.v = y.v WITHIN 20 MILLISECONDS", None),
        ("(A AS x ; C AS y) FILTER x.v = y.v WITHIN 50 EVENTS", None),
        ("(A AS x ; C AS y) FILTER x.v = y.v WITHIN 5 [n]", None),
        ("((A AS x ; C AS y) FILTER x.v = y.v WITHIN 20 MILLISECONDS) ; D", None),
        ("(A+ AS x ; C AS y) FILTER count(x) > 3", None),
        ("(A AS x : C AS y) FILTER x.v = y.v", None),
        ("A ; C", None),
        ("A AS x NOT FOLLOWED BY (C AS y FILTER y.v = x.v) FOR 5 MILLISECONDS", None),
        ("(A AS x NOT FOLLOWED BY (C AS y FILTER y.v = x.v) FOR 5 MILLISECONDS) ; D", None),
    ],
)
def test_values_that_are_kept_for_good_are_told(text, kept):
    query = cerflow.parse(f"SELECT * WHERE {text}")
    assert_told(query, kept)
    # Live configurations say the same: they grow with the stream, or not.
    size = 400
    table = pa.table(
        {
            "type": [("A", "A", "C", "D")[k % 4] for k in range(size)],
            "t": range(size),
            "n": range(size),
            "v": [k * 7919 % 100_003 for k in range(size)],
            "k": [1] * size,
        }
    )
    recognizer = query.recognizer(table.schema, time="t", time_unit="ms")
    recognizer.push(table.slice(0, 200))
    before = recognizer.live["configurations"]
    recognizer.push(table.slice(200))
    assert (recognizer.live["configurations"] > before + 20) == (kept is not None)


def live_by_day(query, kinds="AABC", days=8):
    """Configurations at the end of each day, on which the events of 50 new keys come."""
    size = 200
    recognizer, found = None, []
    for day in range(days):
        columns = {"type": [kinds[k % len(kinds)] for k in range(size)], "v": [k % 3 for k in range(size)]}
        columns |= {"k": [day * size + k // 4 for k in range(size)], "t": [day * 10**8 + k for k in range(size)]}
        table = pa.table({**columns, "w": columns["t"]})
        recognizer = recognizer or query.recognizer(table.schema, time="t")
        recognizer.push(table)
        found.append(recognizer.live["configurations"])
    return found


@pytest.mark.parametrize(
    ("formula", "kept"),
    [
        ("((A AS a ; A AS b) WITHIN 2 MINUTES) NOT FOLLOWED BY EVENT FOR 10 MINUTES", False),
        ("((A ; B) WITHIN 2 MINUTES) OR ((B ; C) WITHIN 3 MINUTES)", False),
        ("((A ; B) WITHIN 2 MINUTES) ; C", True),
        ("(C NOT FOLLOWED BY B FOR 2 MINUTES) NOT FOLLOWED BY B FOR 2 MINUTES", False),
        ("A ; B", True),
        ("(A NOT FOLLOWED BY D FOR 2 MINUTES) ; B", True),
        ("A ; ((B ; C) WITHIN 2 MINUTES)", True),
        ("((A ; B) WITHIN 2 EVENTS)", True),
        ("A NOT FOLLOWED BY D FOR 30 EVENTS", True),
    ],
)
def test_keys_that_are_kept_for_good_are_told(formula, kept):
    query = cerflow.parse(f"SELECT * WHERE {formula} PARTITION BY [k]")
    assert (query.keys_kept() is not None) == kept
    found = live_by_day(query)
    assert (found[-1] > found[3] + 100) == kept


@pytest.mark.parametrize("seed", range(round(80 * EXAMPLES)))
def test_keys_are_forgotten_where_nothing_is_told(seed):
    query = cerflow.parse(DeadlineQueries(seed).query())
    if not query.tree.partition:
        return
    schema = pa.table({"type": ["A"], **{name: [1] for name in "vktw"}})
    if engine_refuses(query, schema, time="t") or query.keys_kept() is not None:
        return
    # A deadline or window may be as long as all days together.
    if any(n.microseconds > 10**9 for n in walk(query.tree) if isinstance(n, DurationWindow)):
        return
    found = live_by_day(query)
    assert found[-1] <= found[3] + 100, query


def assert_told(query, kept):
    told = [str(w) for w in query.warnings() if "for good" in str(w)]
    assert len(told) == (kept is not None)
    assert kept is None or f"remember values ({kept}" in told[0]
    assert ("remembered for good: each value" in query.explain()) == (kept is not None)


@pytest.mark.parametrize(("condition", "kept"), [("x.v < y.v", None), ("x.v = y.v", "x.v")])
def test_detection_alone_keeps_the_best_value(condition, kept):
    assert_told(cerflow.parse(f"SELECT NONE WHERE (A AS x ; C AS y) FILTER {condition}"), kept)
