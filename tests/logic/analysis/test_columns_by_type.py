"""Of events of which types a query expects which columns."""

import pytest

import cerflow
from cerflow.logic.analysis.columns import columns_by_type

QUERIES = [
    ("WHERE (A AS a ; B AS b) FILTER a.v < b.w", {"v": {"A"}, "w": {"B"}}),
    ("WHERE (A AS a ; (B OR C) AS b) FILTER a.v < b.v PARTITION BY [k]", {"v": {"A", "B", "C"}, "k": {"A", "B", "C"}}),
    ("WHERE (A AS a ; EVENT AS b) FILTER a.v < b.v", {"v": {"A"}}),
    ("WHERE (A AS a ; B AS b) FILTER a.v IS NULL AND coalesce(b.w, 0) = 1 AND b.x = 1", {"x": {"B"}}),
    ("WHERE EVENT AS e FILTER e.v = 1", {"v": None}),
    ("WHERE A ; B", {}),
]


@pytest.mark.parametrize(("text", "expected"), QUERIES)
def test_columns_by_type(text, expected):
    assert columns_by_type(cerflow.parse(f"SELECT * {text}").tree) == expected


def test_reported_columns_are_read():
    assert columns_by_type(cerflow.parse("SELECT a.v AS x WHERE A AS a ; B").tree) == {"v": {"A"}}
