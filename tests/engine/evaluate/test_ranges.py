"""A value that the engine cannot hold makes its event a bad record, by every door and policy, and names the place."""

import datetime

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import BadRecordError

LEAST = -(2**63)
#: Columns whose middle value cannot be held, and how it is named.
COLUMNS = {
    "uint64": (pa.array([1, 2**63, 3], pa.uint64()), str(2**63)),
    "int64": (pa.array([1, LEAST, 3]), str(LEAST)),
    "dictionary": (pa.array([1, LEAST, 3]).dictionary_encode(), str(LEAST)),
    "seconds": (pa.array([1, 2**50, 3], pa.timestamp("s")), "35680317-09-25T18:57:04"),
    "microseconds": (pa.array([1, LEAST, 3], pa.timestamp("us", "UTC")), str(LEAST)),
    "date32": (pa.array([1, 2**31 - 1, 3], pa.int32()).view(pa.date32()), "5881580-07-11"),
    "date64": (pa.array([0, 2**60 - 2**60 % 86_400_000, 86_400_000]).view(pa.date64()), "36536598-01-28"),
}
QUERIES = [
    "SELECT * WHERE A AS a ; B AS b FILTER a.v <= b.v",
    "SELECT * WHERE A ; B PARTITION BY v",
    "SELECT max(a.v) AS m WHERE A AS a ; B",
    "SELECT * WHERE (EVENT AS a)+ FILTER increasing(a.v)",
]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_door_and_policy(name):
    column, written = COLUMNS[name]
    table = pa.table({"type": ["A", "A", "B"], "v": column})
    rest = table.take(pa.array([0, 2]))
    for text in QUERIES:
        query = cerflow.parse(text)
        expected = query.match(rest, positions=False).to_arrow()
        refused = []
        assert query.match(table, positions=False, on_bad_record="skip").to_arrow() == expected
        assert query.match(table, positions=False, on_bad_record="skip", runner="semantics").count() == len(expected)
        query.match(table, on_bad_record=lambda rows: refused.append(rows.drop_columns("v").to_pylist()))  # noqa: B023
        recognizer = query.recognizer(table.schema, positions=False, on_bad_record="skip")
        assert pa.concat_tables(recognizer.push(batch).to_arrow() for batch in table.to_batches(2)) == expected
        assert (recognizer.events, recognizer.bad_records) == (2, 1)
        together = cerflow.QuerySet({"q": query, "other": "SELECT * WHERE A"})
        assert together.match(table, on_bad_record="skip")["q"].count() == len(expected)
        ((row,),) = refused
        assert row["row"] == 1
        assert row["reason"].startswith(f"the value {written}")
        assert " of 'v' " in row["reason"]
        for door in (query.match, query.recognizer(table.schema).push, together.match):
            with pytest.raises(BadRecordError, match=f"row 1: the value {written}.* of 'v' "):
                door(table)


def test_columns_that_no_condition_reads_hand_on_what_they_have():
    for name, (column, _) in COLUMNS.items():
        table = pa.table({"type": ["A", "A", "B"], "v": column})
        plain = column.dictionary_decode() if name == "dictionary" else column
        found = cerflow.parse("SELECT * WHERE A AS a").match(table).to_arrow()
        events = found.column("events").combine_chunks().flatten().field("v")
        assert events == plain.slice(0, 2)


def test_a_time_that_is_refused_holds_nothing_up():
    table = pa.table({"type": ["A", "A", "B"], "t": pa.array([1, 2**63, 3], pa.uint64())})
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 1 MINUTES")
    recognizer = query.recognizer(table.schema, time="t", on_bad_record="skip")
    assert recognizer.push(table).count() == 1
    assert recognizer.bad_records == 1
    assert query.match(table, time="t", on_bad_record="skip").count() == 1


def test_nanoseconds_beside_other_times():
    far = datetime.datetime(9999, 12, 31)
    table = pa.table(
        {
            "type": ["A", "B"],
            "until": pa.array([far, datetime.datetime(2024, 1, 1)], pa.timestamp("us")),
            "at": pa.array([1, 2], pa.timestamp("ns")),
        }
    )
    query = cerflow.parse("SELECT * WHERE EVENT AS x FILTER x.until > x.at")
    with pytest.raises(BadRecordError, match=r"value 9999-12-31T00:00:00\.0+ of 'until' does not fit 64 bits in ns"):
        query.match(table)
    assert query.match(table, on_bad_record="skip").count() == 1


def test_integers_that_share_a_key_with_floats():
    # As floats 2**53 and 2**53 + 1 are one.
    table = pa.table(
        {
            "type": ["A", "B", "B", "A"],
            "k": pa.array([2**53, None, None, 2**53 + 1]),
            "f": pa.array([None, 2.0**53, 2.0**53, None]),
        }
    )
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY [k, f]")
    with pytest.raises(BadRecordError, match=r"row 3: the value 9007199254740993 of 'k' is beyond 2\^53"):
        query.match(table)
    assert query.match(table, on_bad_record="skip").count() == 2
