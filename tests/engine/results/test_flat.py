"""The flat form: a column for every label and field, compared with what one makes of the nested events by hand."""

from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from support.conformance import drawn
from support.runners import bag, engine_refuses, examples

EVENTS = [
    {"type": "A", "v": 1, "s": "p"},
    {"type": "B", "v": 2, "s": None},
    {"type": "B", "v": 3, "s": "q"},
    {"type": "C", "v": 4, "s": "r"},
]
LEADING = ["detected_at", "detected_time", "start", "end", "start_time", "end_time"]


def flattened(matches):
    """The flat rows, from the rows; which columns there are, and which are lists, is taken from the report."""
    rows = []
    columns = matches._report.flat
    labels = {column.label for column in columns}
    for row in matches.to_pylist():
        events = row.pop("events", [])
        for column in columns:
            if column.label is None:
                having = [e for e in events if not labels.intersection(e["labels"])]
            else:
                having = [e for e in events if column.label in e["labels"]]
            values = [e[column.field] for e in having]
            assert column.several or len(values) <= 1
            row[column.name] = values if column.several else (values or [None])[0]
        rows.append(row)
    return rows


@examples(60)
@given(st.data())
def test_random_queries(data):
    query, table = drawn(data)
    if engine_refuses(query, table, time="t"):
        return
    recognizer = query.recognizer(table.schema, time="t")
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=2)))
    for a, b in pairwise([0, *cuts, table.num_rows]):
        matches = recognizer.push(table.slice(a, b - a))
        flat = matches.to_arrow(flat=True)
        assert flat.to_pylist() == flattened(matches)
        assert flat.to_pylist() == [row for batch in matches.to_batches(2, flat=True) for row in batch.to_pylist()]
        some = data.draw(st.lists(st.sampled_from(flat.schema.names), min_size=1, unique=True))
        assert matches.to_arrow(flat=True, columns=some) == flat.select([n for n in flat.schema.names if n in some])
        # No event is lost.
        seen = {e["position"] for row in matches.to_pylist() for e in row.get("events", ())}
        listed = {c.name: c.several for c in matches._report.flat if c.field == "position"}
        found = [p for name, several in listed.items() for v in flat[name].to_pylist() for p in (v if several else [v])]
        assert seen == set(found) - {None}


@examples(30)
@given(st.data())
def test_both_runners(data):
    query, table = drawn(data)
    if engine_refuses(query, table, time="t") or query.tree.limit or query.tree.strategy == "ANY":
        return
    found, expected = (query.match(table, time="t", runner=r).to_arrow(flat=True) for r in ("engine", "semantics"))
    assert found.schema == expected.schema
    assert bag(found.to_pylist()) == bag(expected.to_pylist())


NAMES = {
    # A scalar where a label is given once, a list where it can be given several times.
    "SELECT * WHERE A AS x ; B+ AS y ; C": ({"x": False, "y": True, "C": False}, ["position", "type", "v", "s"]),
    "SELECT * WHERE (A AS x ; B AS x)": ({"x": True}, ["position", "type", "v", "s"]),
    "SELECT * WHERE A AS x OR B AS y": ({"x": False, "y": False}, ["position", "type", "v", "s"]),
    # The name of an event type has columns where an event may have no other label.
    "SELECT * WHERE A AS x ; A": ({"x": False, "A": True}, ["position", "type", "v", "s"]),
    "SELECT * WHERE (A ; B) [B -> z]": ({"A": False, "z": False}, ["position", "type", "v", "s"]),
    "SELECT * WHERE PROJECT A (A AS x ; B AS y)": ({"A": False}, ["position", "type", "v", "s"]),
    # Events of EVENT and NOT without a label.
    "SELECT * WHERE A AS x ; EVENT": ({"x": False, "EVENT": False}, ["position", "type", "v", "s"]),
    "SELECT * WHERE (EVENT)+ ; NOT A AS y": ({"y": False, "EVENT": True}, ["position", "type", "v", "s"]),
    # What SELECT lists has columns, in that order.
    "SELECT y[s, v], A WHERE A AS x ; B AS y": ({"y": False, "A": False}, None),
    "SELECT NONE WHERE A ; B": ({}, []),
}


@pytest.mark.parametrize("text", NAMES)
def test_columns(text):
    labels, fields = NAMES[text]
    schema = cerflow.parse(text).match(EVENTS).to_arrow(flat=True).schema
    assert schema.names[-6:] == LEADING
    if fields is not None:
        assert schema.names[:-6] == [f"{label}_{field}" for label in labels for field in fields]
    for label, several in labels.items():
        assert pa.types.is_list(schema.field(f"{label}_type").type) == several


def test_restricted_attributes():
    flat = cerflow.parse("SELECT y[s], A WHERE A AS x ; B AS y").match(EVENTS).to_arrow(flat=True)
    assert flat.schema.names[:-6] == ["y_position", "y_type", "y_s", "A_position", "A_type", "A_v", "A_s"]
    row = [2, "B", "q", 0, "A", 1, "p", 2, 2, 0, 2, 0, 2]
    assert flat.slice(1).to_pylist() == [dict(zip(flat.schema.names, row))]


def test_names_that_are_taken_lose_nothing():
    events = [{"type": "A", "b_c": 1, "c": 2, "position": 3}, {"type": "B", "b_c": 4, "c": 5, "position": 6}]
    text = 'SELECT a, a_b, a.c + 10 AS a_c, a.c AS "A_TYPE" WHERE A AS a ; B AS a_b'
    flat = cerflow.parse(text).match(events).to_arrow(flat=True)
    folded = [name.casefold() for name in flat.schema.names]
    assert len(set(folded)) == len(folded)
    (row,) = flat.to_pylist()
    assert {row[name] for name in ("a_c", "A_TYPE", "a_c_", "a_type_", "a_b_c", "a_b_c_", "a_b_b_c")} == {
        *(12, 2, 2, "A", 1, 5, 4)
    }
    assert row["a_position_"] == 3
    assert row["a_b_position_"] == 6


def test_counts_have_no_labels():
    assert cerflow.parse("SELECT COUNT(*) AS n WHERE A ; B").match(EVENTS).to_arrow(flat=True).schema.names == [
        *("n", "detected_at", "detected_time", "end_time")
    ]


def test_what_the_query_asks_for_comes_first():
    query = cerflow.parse("SELECT x[v], y.v, y.v - x.v AS more WHERE A AS x ; B AS y PARTITION BY s")
    events = [{**event, "s": "p"} for event in EVENTS]
    names = query.match(events).to_arrow(flat=True).schema.names
    assert names == ["s", "y_v", "more", "x_position", "x_type", "x_v", *LEADING]


def test_sremo():
    text = "[type = 'A'] AS x . ([type = 'B'] AS y)+ . [TRUE] MARK"
    (*_, match) = cerflow.parse(text, language="sremo").match(EVENTS).to_arrow(flat=True).to_pylist()
    assert (match["x_v"], match["y_v"], match["event_v"]) == (1, [2, 3], 4)


def test_every_way_out(tmp_path):
    matches = cerflow.parse("SELECT x, y WHERE A AS x ; B+ AS y").match(
        pa.Table.from_pylist(EVENTS).set_column(2, "s", pa.array(["p", None, "q", "r"]).dictionary_encode())
    )
    rows = matches.to_arrow(flat=True).to_pylist()
    assert rows == flattened(matches)
    assert matches.to_polars(flat=True).to_dicts() == rows
    assert matches.to_pandas(flat=True)["x_v"].tolist() == [1, 1, 1]
    assert matches[1:].to_arrow(flat=True).to_pylist() == rows[1:]
    assert matches.first(1, by="start").to_arrow(flat=True).num_rows == 2
    pa.parquet.write_table(matches.to_arrow(flat=True), tmp_path / "m.parquet")
    assert pa.parquet.read_table(tmp_path / "m.parquet").to_pylist() == rows


def test_what_there_is_not():
    matches = cerflow.parse("SELECT x, y WHERE A AS x ; B AS y").match(EVENTS)
    with pytest.raises(ValueError, match="give flat or events, not both"):
        matches.to_arrow(flat=True, events="dictionary")
    with pytest.raises(ValueError, match="the result has no column 'x_w'; did you mean 'x_v'"):
        matches.to_arrow(flat=True, columns=["x_w"])
    with pytest.raises(ValueError, match="no column 'events'"):
        matches.to_arrow(flat=True, columns=["events"])
