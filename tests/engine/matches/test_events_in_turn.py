"""Matches of as many events each are read from their rows, and equal those that are read from a graph."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.engine.matches import unfolding

QUERIES = [
    "SELECT * WHERE (A OR B) AS e",
    "SELECT e.v, e.v + 1 AS w WHERE EVENT AS e FILTER e.v > 2",
    "SELECT * WHERE A : B AS x : EVENT",
    "SELECT x.v, time(b) AS d WHERE A AS x : EVENT AS b PARTITION BY k",
    "SELECT * WHERE EVENT:{20}",
    "SELECT x.v, y.v AS w, first(x.v) AS f, count(B) AS n WHERE EVENT AS x : EVENT AS y",
    "SELECT B.v, x.v AS w WHERE (A AS B : EVENT AS x) FILTER x.v > 1",
    "SELECT e.v, count(A) AS a WHERE (A OR B) AS e : EVENT AS f : C",
    "SELECT x, y WHERE EVENT AS x : (A OR C) AS y : EVENT",
    "SELECT b WHERE A AS x : EVENT AS b PARTITION BY k",
    "SELECT * WHERE (A AS a ; B AS b) FILTER b.v > a.v PARTITION BY k WITHIN 20 EVENTS",
]


@pytest.fixture(autouse=True)
def narrowed(monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    monkeypatch.setattr(limits, "JOINED_ROWS", 1)


@pytest.mark.parametrize("text", QUERIES)
def test_rows_and_graph_agree(text, monkeypatch):
    generator = random.Random(7)
    table = pa.table(
        {
            "type": generator.choices("AABC", k=900),
            "k": generator.choices(["x", "y", None], k=900),
            "v": generator.choices([0, 1, 2, 3, None], k=900),
            "t": pa.array(range(900), pa.timestamp("ms")),
        }
    )
    query, read = cerflow.parse(text), list[int]()
    plain = unfolding._in_turn
    monkeypatch.setattr(unfolding, "_in_turn", lambda found, rows: read.append(rows) or plain(found, rows))

    def forms(found):
        tables = [found.to_arrow(), found.to_arrow(flat=True), found.to_arrow(events="dictionary")]
        batches = [batch for rows in (1, 7) for batch in found.to_batches(rows)]
        return [one.to_pylist() for one in (*tables, *batches, found[5:40:3], found[-9:], found[30:][:4], found[3:3])]

    of_rows = query.match(table, time="t")
    of_graph = of_rows._like([replace(part, found=part.graph) for part in of_rows._parts], None)
    expected = forms(of_graph)
    assert not read
    assert forms(of_rows) == expected
    assert read


@pytest.mark.parametrize("text", [text for text in QUERIES if "B.v, x.v" not in text])
def test_first_matches_are_those_of_the_graph(text):
    generator = random.Random(8)
    limits_ = [0, -(2**62), 2**62, 3, 3, None]
    table = pa.table(
        {
            "type": generator.choices("AABC", k=600),
            "k": generator.choices(["x", "y", None], k=600),
            "v": generator.choices(limits_, k=600),
            "w": generator.choices([0.5, -0.0, 0.0, float("nan"), None, 1e300], k=600),
            "t": pa.array(range(600), pa.timestamp("ms")),
        }
    )
    query = cerflow.parse(text.replace("e.v, e.v + 1 AS w", "*").replace("x.v, time(b) AS d", "*"))
    found = query.match(table, time="t")
    of_graph = found._like([replace(part, found=part.graph) for part in found._parts], None)
    labels = [label for label in "exab" if f"AS {label}" in text]
    orders = ["start", "events", *((label, None, "count") for label in labels)]
    orders += [(label, name, f) for label in labels for name in "vw" for f in ("min", "max", "sum", "count")]
    compared = 0

    def read(matches, order):
        # As texts, since NaN is not itself.
        return [
            str(matches.first(n, by=order, descending=down).to_arrow().to_pylist()) for n in (1, 3) for down in (0, 1)
        ]

    for order in orders:
        try:
            some = read(found, order)
        except cerflow.CerflowError:
            continue
        compared += 1
        assert some == read(of_graph, order), order
    assert compared >= 2
