"""Many matches are unfolded and written in other ways than few; both give the same Arrow data."""

import random

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits

QUERIES = [
    "SELECT * WHERE A AS x ; B AS y ; C AS z WITHIN 9 EVENTS",
    "SELECT * WHERE (A OR B) AS x ; B AS y ; C PARTITION BY [k] WITHIN 9 EVENTS",
    "SELECT * WHERE A ; (B OR A+) ; C WITHIN 7 EVENTS",
    "SELECT x[v], y WHERE A AS x ; (B AS y) ; C WITHIN 9 EVENTS",
    "SELECT * WHERE EVENT AS x ; C AS y WITHIN 20 EVENTS LIMIT 3",
    "SELECT * WHERE A ; B ; C WITHIN 5 [t]",
]


def table(rng: random.Random) -> pa.Table:
    """Events in chunks, cut from a longer table: plain or in dictionaries, with nulls, and with nested attributes."""
    count = rng.randint(20, 70)

    def some(values: list[object], kind: pa.DataType) -> pa.Array:
        return pa.array([rng.choice(values) for _ in range(count)], kind)

    columns = {
        "type": some(["A", "B", "C"], pa.string()),
        "t": pa.array(np.cumsum([rng.randint(0, 2) for _ in range(count)]), pa.int64()),
        "k": some(["p", "q"], pa.string()),
        "v": some([None, 1.5, 2.0], rng.choice([pa.float32(), pa.float64()])),
        "w": some([1, 2], rng.choice([pa.int8(), pa.uint32(), pa.int64()])),
        "b": some([True, False, None], pa.bool_()),
        "d": some([None, 7], pa.decimal128(20, 1)),
        "s": some(["", "text", "a longer text"], pa.string()),
        "n": some([[1, 2], [], None], pa.list_(pa.int64())),
    }
    for name in ("type", "k", "s"):
        if rng.random() < 0.5:
            columns[name] = columns[name].dictionary_encode()
    whole = pa.table(columns)
    cut = rng.randint(1, count - 1)
    return pa.concat_tables([whole.slice(3, cut), whole.slice(3 + cut)])


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(5))
def test_many_matches_are_written_as_few_are(query, seed, monkeypatch):
    rng = random.Random(f"{query} {seed}")
    events = table(rng)
    matches = cerflow.parse(query).match(events, time="t")
    together = {}
    for rows in (1, 1 << 40):
        monkeypatch.setattr(limits, "GATHERED_ROWS", rows)
        together[rows] = matches.to_arrow()
        together[rows].validate(full=True)
        encoded = matches.to_arrow(events="dictionary")
        encoded.validate(full=True)
        assert encoded.to_pylist() == together[rows].to_pylist()
    assert together[1].schema == together[1 << 40].schema == matches.schema
    assert together[1].equals(together[1 << 40])
    for rows in (1, 2, 5, 30):
        in_batches = pa.Table.from_batches(matches.to_batches(rows), matches.schema)
        # Arrow does not compare dictionaries of several chunks.
        assert together[1].combine_chunks().equals(in_batches.combine_chunks())


def test_sets_that_are_unfolded_again_lose_the_events_that_a_window_leaves_behind():
    types = "AAABACABBACCBC" * 6
    events = pa.table({"type": list(types), "t": np.arange(len(types)) * 3})
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y ; C AS z WITHIN 30 [t]")
    matches = query.match(events, time="t")
    wanted = sorted(
        (a, b, c)
        for c in range(len(types))
        for b in range(c)
        for a in range(b)
        if types[a] + types[b] + types[c] == "ABC" and (c - a) * 3 < 30
    )
    for rows in (1, 7, 1000):
        found = [tuple(e["position"] for e in row) for b in matches.to_batches(rows) for row in b["events"].to_pylist()]
        assert sorted(found) == wanted


@pytest.mark.parametrize("least", [1, 1 << 40])
def test_many_events_without_types_have_none(least, monkeypatch):
    monkeypatch.setattr(limits, "GATHERED_ROWS", least)
    table = pa.table({"of": list("AB") * 20, "t": range(40)})
    query = cerflow.parse("DEFINE KA AS of = 'A' SELECT * WHERE KA AS a : EVENT AS b")
    events = [event for row in query.match(table, time="t", type=None).to_pylist() for event in row["events"]]
    assert len(events) == 40
    assert {event["type"] for event in events} == {None}
