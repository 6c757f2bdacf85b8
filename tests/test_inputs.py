"""Events as people have them: tables of many libraries, dicts, batches, in any order."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cerflow
from cerflow.errors import InputError
from cerflow.inputs import in_order, to_table

QUERY = cerflow.parse("SELECT x, x.v + y.v AS total WHERE (A AS x ; B AS y) FILTER x.s = y.s")
ROWS = [{"type": "A", "v": 1, "s": "p"}, {"type": "C", "v": 2, "s": "q"}, {"type": "B", "v": 3, "s": "p"}]
TABLE = pa.Table.from_pylist(ROWS)
VIEWS = pa.table(
    {"type": TABLE["type"].cast(pa.string_view()), "v": TABLE["v"], "s": TABLE["s"].cast(pa.string_view())}
)


class Capsule:
    """Something of another library that exports Arrow data."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


FORMS = {
    "table": TABLE,
    "record batch": TABLE.to_batches()[0],
    "list of batches": [TABLE.slice(0, 2).to_batches()[0], TABLE.slice(2).to_batches()[0]],
    "iterator of batches": lambda: iter(TABLE.to_batches(max_chunksize=1)),
    "list of dicts": ROWS,
    "generator of dicts": lambda: (row for row in ROWS),
    "dict of lists": {name: TABLE[name].to_pylist() for name in TABLE.column_names},
    "pandas": pd.DataFrame(ROWS),
    "pandas with an index": pd.DataFrame(ROWS, index=[5, 3, 5]),
    "polars": pl.DataFrame(ROWS),
    "capsule": Capsule(TABLE),
    "reader": lambda: TABLE.to_reader(),
    "string views": VIEWS,
    "batches of string views": VIEWS.to_batches(),
    "capsule of string views": Capsule(VIEWS),
    "large strings": TABLE.cast(pa.schema([("type", pa.large_string()), ("v", pa.int64()), ("s", pa.large_string())])),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms(form):
    events = form() if callable(form) else form
    (row,) = QUERY.match(events).to_pylist()
    assert (row["start"], row["end"], row["total"]) == (0, 0, 4)
    assert [(event["type"], event["v"], event["s"]) for event in row["events"]] == [("A", 1, "p")]


def test_string_views_in_a_recogniser():
    recognizer = QUERY.recognizer(VIEWS.schema)
    assert recognizer.push(VIEWS.slice(0, 2)).count() == 0
    recognizer = cerflow.Recognizer.restore(QUERY, recognizer.snapshot())
    assert recognizer.push(VIEWS.slice(2)).to_pylist()[0]["total"] == 4


def test_dicts_with_differing_keys():
    rows = [{"type": "A", "v": 1}, {"w": 2.5, "type": "B"}, {"type": "B", "v": None}]
    assert to_table(rows).to_pydict() == {
        "type": ["A", "B", "B"],
        "v": [1, None, None],
        "w": [None, 2.5, None],
    }
    assert cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.w").match(rows).count() == 1


def test_nothing_at_all():
    assert to_table([]).num_rows == 0
    assert QUERY.match(TABLE.slice(0, 0)).to_pylist() == []
    assert QUERY.match(TABLE.schema.empty_table()).count() == 0


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (5, "int is not a table"),
        ("AB", "str is not a table"),
        (None, "NoneType is not a table"),
        ([1, 2], "not int"),
        ([TABLE.to_batches()[0], {"type": "A"}], "not (RecordBatch|dict)"),
        ([{"type": "A", "v": 1}, {"type": "A", "v": "x"}], "cannot be made an Arrow table"),
        ([{"type": "A", "v": object()}], "cannot be made an Arrow table"),
        ({"type": ["A"], "v": [1, 2]}, "cannot be made an Arrow table"),
    ],
)
def test_what_is_no_table(events, message):
    with pytest.raises(InputError, match=message):
        QUERY.match(events)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"type": "typ"}, "type column 'typ' is not in the input; did you mean 'type'"),
        ({"time": "when"}, "time column 'when' is not in the input; the columns are"),
        ({"stream": "vv"}, "stream column 'vv' is not in the input"),
        ({"sequence": "vv"}, "sequence column 'vv' is not in the input; did you mean 'v'"),
    ],
)
def test_columns_that_are_not_there(roles, message):
    with pytest.raises(InputError, match=message):
        QUERY.match(TABLE, **roles)


def test_columns_of_the_same_name():
    with pytest.raises(InputError, match="more than one column called 'v'"):
        QUERY.match(pa.table([["A"], [1], [2]], names=["type", "v", "v"]))


# --- order -----------------------------------------------------------------------------------------------------------

LATE = pa.table({"type": list("BABA"), "t": [3, 1, 3, 3], "q": [2, 9, 1, 0], "id": [0, 1, 2, 3]})


def test_order_of_time_is_stable():
    assert in_order(LATE, "t", None)["id"].to_pylist() == [1, 0, 2, 3]
    assert in_order(LATE, "t", "q")["id"].to_pylist() == [1, 3, 2, 0]
    assert in_order(LATE, None, "q")["id"].to_pylist() == [3, 2, 0, 1]
    assert in_order(LATE, None, None) is LATE


def test_what_is_ordered_is_left_alone():
    ordered = LATE.take([1, 0, 2, 3])
    assert in_order(ordered, "t", None) is ordered
    assert in_order(ordered.slice(0, 1), "t", None).num_rows == 1
    ties = pa.table({"t": [0, 0, 1, 1, 2], "q": [5, 5, 1, 3, 0], "id": range(5)})
    assert in_order(ties, "t", "q") is ties
    assert in_order(ties.set_column(1, "q", pa.array([5, 6, 3, 1, 0])), "t", "q")["id"].to_pylist() == [0, 1, 3, 2, 4]


def test_matches_follow_time():
    query = cerflow.parse("SELECT * WHERE A ; B")
    ids = lambda **roles: [  # noqa: E731
        tuple(event["id"] for event in row["events"]) for row in query.match(LATE, **roles).to_pylist()
    ]
    assert ids() == [(1, 2)]
    assert set(ids(time="t")) == {(1, 0), (1, 2)}
    assert set(ids(time="t", sequence="q")) == {(1, 0), (3, 0), (1, 2), (3, 2)}
    for runner in ("engine", "semantics"):
        assert {m["detected_at"] for m in query.match(LATE, time="t", runner=runner)} == {1, 2}


@pytest.mark.parametrize("size", [2, 50, 500])
def test_large_ties_keep_their_order(size):
    table = pa.table({"type": ["A"] * size, "t": [k % 2 for k in range(size)], "id": range(size)})
    expected = [*range(0, size, 2), *range(1, size, 2)]
    assert in_order(table, "t", None)["id"].to_pylist() == expected
