"""Positions that the caller has numbered stand in for those that the recogniser counts."""

from copy import copy

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import BadRecordError
from cerflow.base.schema import Schema
from cerflow.engine.recognize.columns_needed import columns_needed, needs_positions

EVENTS = pa.table({"type": list("ABAB"), "v": [1, 2, 3, 4], "t": [1, 2, 3, 4], "at": pa.array([10, 12, 40, 41])})


def recognised(text, **roles):
    recognizer = cerflow.parse(text).recognizer(EVENTS.schema, position="at", **roles)
    return recognizer.push(EVENTS).to_pylist()


def test_they_are_reported():
    first, *_ = recognised("SELECT * WHERE A ; B")
    assert (first["detected_at"], first["start"], first["end"]) == (12, 10, 12)
    assert [event["position"] for event in first["events"]] == [10, 12]
    assert "at" not in first["events"][0]


def test_conditions_and_columns_read_them():
    found = recognised(
        "SELECT position(b) - position(a) AS far WHERE A AS a ; B AS b FILTER position(b) - position(a) < 5"
    )
    assert [row["far"] for row in found] == [2, 1]


def test_time_is_the_position_where_there_is_no_time():
    found = recognised("SELECT time(b) AS at_time WHERE A AS a ; B AS b FILTER time(b) - time(a) < 5")
    assert [row["at_time"] for row in found] == [12, 41]
    found = recognised("SELECT time(b) AS at_time WHERE A AS a ; B AS b FILTER position(a) > 10", time="t")
    assert [row["at_time"] for row in found] == [4]


def test_a_test_of_text_and_position_is_not_made_once_per_text():
    table = pa.table({"type": ["A", "A", "A"]})
    found = cerflow.parse("SELECT * WHERE A AS a FILTER length(a.type) < time(a)").match(table).to_pylist()
    assert [row["detected_at"] for row in found] == [2]


@pytest.mark.parametrize(
    ("positions", "row", "reason"),
    [
        ([5, None, 7, 8], 1, "no position in 'at'"),
        ([5, 7, 6, 8], 2, "the position 6 in 'at' does not ascend from 7"),
        ([5, 6, 6, 8], 2, "the position 6 in 'at' does not ascend from 6"),
        ([-1, 6, 7, 8], 0, "the position -1 in 'at' does not ascend; positions count from 0"),
    ],
)
def test_they_are_known_and_ascend(positions, row, reason):
    query, refused = cerflow.parse("SELECT * WHERE EVENT AS x"), []
    events = EVENTS.set_column(3, "at", pa.array(positions, pa.int64()))
    with pytest.raises(BadRecordError, match=f"row {row}: {reason}"):
        query.recognizer(events.schema, position="at", time="t").push(events)
    recognizer = query.recognizer(events.schema, position="at", time="t", on_bad_record=refused.append)
    found = recognizer.push(events).to_pylist()
    assert [match["start"] for match in found] == [p for k, p in enumerate(positions) if k != row]
    assert [(r["row"], r["reason"]) for table in refused for r in table.to_pylist()] == [(row, reason)]


def test_they_ascend_from_push_to_push_and_over_snapshots():
    query = cerflow.parse("SELECT * WHERE A ; B")
    recognizer = query.recognizer(EVENTS.schema, position="at")
    recognizer.push(EVENTS)
    for going_on in (recognizer, copy(recognizer), cerflow.Recognizer.restore(query, recognizer.snapshot())):
        for given in (EVENTS, EVENTS.slice(3), {"type": "A", "at": 41}):
            with pytest.raises(BadRecordError, match=r"row [0-9]+: the position [0-9]+ in 'at' does not ascend"):
                going_on.push(given)
        going_on.push({"type": "A", "at": 42})


def test_windows_and_contiguity_count_the_events_that_come():
    assert len(recognised("SELECT * WHERE A : B")) == 2
    assert len(recognised("SELECT * WHERE A ; B WITHIN 2 EVENTS")) == 2


@pytest.mark.parametrize(
    ("text", "columns", "positions"),
    [
        ("SELECT * WHERE A", ("type", "v", "t", "at"), False),
        ("SELECT NONE WHERE A AS a FILTER a.v > 2", ("type", "v"), False),
        ("SELECT COUNT(*) AS n WHERE A+ WITHIN 3 [t]", ("type", "t"), False),
        ("SELECT a[v] WHERE A AS a ; B AS b FILTER b.type = 'B'", ("type", "v"), False),
        ("SELECT a[v], position(a) AS p WHERE A AS a", ("type", "v"), True),
        ("SELECT NONE WHERE A AS a FILTER a[at > 3] PARTITION BY v", ("type", "v", "at"), False),
        ("SELECT NONE WHERE A AS a FILTER time(a) > 2", ("type",), True),
    ],
)
def test_what_a_query_needs(text, columns, positions):
    tree = cerflow.parse(text).tree
    schema = Schema(EVENTS.schema)
    assert columns_needed(tree, schema) == columns
    assert needs_positions(tree, schema) is positions


def test_the_columns_needed_are_enough():
    for text in (
        "SELECT b[v], a.t AS w WHERE A AS a ; B AS b FILTER a.v < b.v",
        "SELECT NONE WHERE A ; B WITHIN 2 [v]",
    ):
        query = cerflow.parse(text)
        few = EVENTS.select(columns_needed(query.tree, Schema(EVENTS.schema)))
        assert few.num_columns < EVENTS.num_columns
        assert query.match(few).to_arrow().equals(query.match(EVENTS).to_arrow())


def test_counts_beyond_64_bits_are_exact():
    events = pa.table({"type": ["A"] * 100 + ["B"]})
    assert cerflow.parse("SELECT * WHERE A+ ; B").match(events).count() == 2**100 - 1
