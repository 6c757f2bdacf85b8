"""Queries whose partial matches may keep any number of different sets: they are told, others are not."""

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
