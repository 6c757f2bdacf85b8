"""Queries whose partial matches may keep any number of different sets: they are told, others are not."""

import pyarrow as pa
import pytest

import cerflow

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
        ("(A AS x ; C AS y) FILTER time(y) - time(x) < 20", "x.time"),
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


def assert_told(query, kept):
    told = [str(w) for w in query.warnings() if "for good" in str(w)]
    assert len(told) == (kept is not None)
    assert kept is None or f"remember values ({kept}" in told[0]
    assert ("remembered for good: each value" in query.explain()) == (kept is not None)


@pytest.mark.parametrize(("condition", "kept"), [("x.v < y.v", None), ("x.v = y.v", "x.v")])
def test_detection_alone_keeps_the_best_value(condition, kept):
    assert_told(cerflow.parse(f"SELECT NONE WHERE (A AS x ; C AS y) FILTER {condition}"), kept)
