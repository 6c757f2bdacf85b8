"""``s>EVENT``: events of any type of one stream."""

import random

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.schema import Schema
from cerflow.engine.pushdown.relevance import relevant_events
from cerflow.engine.pushdown.translation import arrow_filter
from cerflow.language.printer import show
from support.runners import RUNNERS, bag, semantics

ROLES = {"time": "t", "stream": "from"}


def rows(seed, count=14):
    draw = random.Random(seed)
    names = [("s1", "s2", "s3"), "ABC"]
    return pa.table(
        {
            "type": [draw.choice(names[1]) for _ in range(count)],
            "from": [draw.choice(names[0]) for _ in range(count)],
            "t": sorted(draw.randrange(count) for _ in range(count)),
            "v": [draw.choice((0, 1, 2, None)) for _ in range(count)],
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM s1, s2 WHERE s1>EVENT AS x ; s2>EVENT AS y WITHIN 3 EVENTS",
        "SELECT * FROM s1, s2 WHERE (s1>EVENT AS x : s2>EVENT AS y) FILTER x.v <= y.v",
        "SELECT * FROM s1, s2, s3 WHERE A ; (s2>EVENT)+ ; s3>B WITHIN 5 EVENTS",
        "SELECT * FROM s1, s2 WHERE (A ; B) WITHOUT (s2>EVENT AS e FILTER e.v > 0)",
        "SELECT * FROM s2, s3 WHERE (s2>EVENT FILTER A.v > 0) ; (B OR s3>EVENT AS z) PARTITION BY v",
        "SELECT NEXT x FROM s1, s3 WHERE s3>EVENT AS x ; EVENT ; s1>EVENT",
        "SELECT * WHERE s1>EVENT AS x ; B WITHIN 3 EVENTS",
    ],
)
def test_conforms(text, engine_runner):
    query = cerflow.parse(text)
    assert cerflow.parse(show(query.tree)).tree == query.tree
    found = 0
    for seed in range(6):
        table = rows(seed)
        wanted = semantics(query, table, **ROLES)
        assert bag(engine_runner(query, table, **ROLES)) == bag(wanted)
        found += len(wanted)
    assert found


def test_without_from_and_without_a_column_of_streams_it_is_any_event():
    query = cerflow.parse("SELECT * WHERE s1>EVENT AS x")
    table = rows(1)
    for runner in RUNNERS.values():
        assert len(runner(query, table, **ROLES)) == len(runner(query, table.drop_columns("from"), time="t")) == 14


def test_only_events_of_the_stream_are_relevant():
    query = cerflow.parse("SELECT * FROM s1, s2 WHERE s1>EVENT AS x ; s2>A")
    table = rows(2, 40)
    schema = Schema(table.schema, **ROLES)
    found = relevant_events(query.tree, query.plan(schema).transducer, schema, counted=False)
    kept = table.filter(arrow_filter(found.condition, schema))
    assert {(row["from"], row["type"]) for row in kept.to_pylist()} == {
        *(("s1", kind) for kind in "ABC"),
        ("s2", "A"),
    }


def test_what_is_decided():
    first, second, any_ = (cerflow.parse(f"SELECT * FROM s1, s2 WHERE {e}") for e in ("s1>EVENT", "s2>EVENT", "EVENT"))
    assert not cerflow.equivalent(first, second)
    assert not cerflow.equivalent(first, any_)
    assert cerflow.contained(first, any_)
