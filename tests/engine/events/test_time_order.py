"""Events that come in another order give what those in the order of time give, whatever is read of them."""

import random

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.engine.events.time_order import sort_by_time

QUERIES = [
    "SELECT * WHERE A AS a FILTER a.v > 2",
    "SELECT a.note, b.v WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY k WITHIN 9 SECONDS",
    "SELECT * WHERE A : B:+ : C",
    "SELECT * WHERE A ; B ; C WITHIN 6 EVENTS CONSUME BY ANY",
    "SELECT count(b) AS n, max(b.note) AS m WHERE A ; B+ AS b ; C WITHIN 1 [v]",
    "SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 7 SECONDS PARTITION BY k",
]


def events(spread, chunks):
    generator = random.Random(spread)
    times = [generator.randrange(-300, 300) for _ in range(400)]
    table = pa.table(
        {
            "type": pa.array(generator.choices("ABC", k=400)).dictionary_encode(),
            "k": generator.choices(["x", "y", None], k=400),
            "v": [float(time // 7) for time in times],
            "t": pa.array(times, pa.timestamp("s")),
            "note": [None if k % 9 == 0 else f"text {k}" for k in range(400)],
            "of": [{"place": k} for k in range(400)],
        }
    )
    rows = np.argsort(np.array(times) + np.array([generator.randrange(spread) for _ in times]), kind="stable")
    table = table.take(pa.array(rows))
    return pa.concat_tables(table.slice(at, 400 // chunks) for at in range(0, 400, 400 // chunks))


@pytest.mark.parametrize("chunks", [1, 40])
@pytest.mark.parametrize("spread", [1, 3, 2000])
@pytest.mark.parametrize("text", QUERIES)
def test_the_order_of_the_input_does_not_matter(text, spread, chunks):
    query, table = cerflow.parse(text), events(spread, chunks)
    found, expected = (query.match(some, time="t") for some in (table, sort_by_time(table, "t", None)))
    assert expected.count() > 0
    for form in ({}, {"flat": True}, {"events": "dictionary"}):
        assert found.to_arrow(**form).to_pylist() == expected.to_arrow(**form).to_pylist()
    assert found[3:9:2].to_pylist() == expected[3:9:2].to_pylist()
    assert found.to_html(title="") == expected.to_html(title="")
    together = cerflow.QuerySet({"one": query, "other": cerflow.parse(QUERIES[0])}).match(table, time="t")
    assert together["one"].to_pylist() == expected.to_pylist()
    assert sorted(map(str, query.match(table, time="t", threads=2))) == sorted(map(str, expected))


@pytest.mark.parametrize("times", [[-(2**63), 2**63 - 1, 0, 0, -1], [5], [], [3, 2, 1], [7, 7, 7]])
def test_times_at_the_limits(times):
    table = pa.table({"type": ["A"] * len(times), "t": pa.array(times, pa.int64()), "n": [*range(len(times))]})
    ordered = sort_by_time(table, "t", None).to_pylist()
    assert ordered == sorted(table.to_pylist(), key=lambda row: row["t"])
