"""Events that do nothing to the states that may be occupied are left out; that changes no match."""

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.scan.program.compiler import ScanProgram
from cerflow.engine.scan.program.effects import counted_states, empties_states
from support.runners import RUNNERS, bag, examples, in_random_pieces

STEPS = ["[type = 'A']", "[type = 'B']", "[type = 'A' AND n = 'p']", "[type = 'B' AND n = 'q']", "[v > 1]", "[n = 'q']"]


@st.composite
def queries(draw):
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=4))
    chain = ", ".join(f"{step} AS {label}" for step, label in zip(steps, "abcd"))
    inner = f"next({chain})"
    more = draw(
        st.sampled_from(["{}", "{}", "({}) . [type = 'C'] AS z", "next({}, [type = 'C'] AS z)", "({}) | [v > 2] AS z"])
    )
    return more.format(inner)


@st.composite
def streams(draw):
    size, generator = draw(st.integers(0, 30)), random.Random(draw(st.integers(0, 10**6)))
    text = draw(st.sampled_from([pa.string(), pa.dictionary(pa.int32(), pa.string())]))
    columns = {
        "type": pa.array([generator.choice("AABBC") for _ in range(size)]).cast(text),
        "n": pa.array([generator.choice(["p", "q", None]) for _ in range(size)], pa.string()).cast(text),
        "v": pa.array([generator.choice([1, 2, 3, None]) for _ in range(size)], pa.int64()),
    }
    return pa.table(columns)


@given(st.data())
@examples(400)
def test_matches_are_those_of_the_semantics(data):
    query, table = cerflow.parse(data.draw(queries()), language="sremo"), data.draw(streams())
    expected = bag(RUNNERS["semantics"](query, table))
    assert bag(RUNNERS["one batch"](query, table)) == expected
    recognizer, found = query.recognizer(table.schema), []
    while table.num_rows:
        size = data.draw(st.integers(1, 12))
        if data.draw(st.booleans()):
            size = 1
            found += recognizer.push(table.slice(0, 1).to_pylist()[0]).to_pylist()
        else:
            found += recognizer.push(table.slice(0, size)).to_pylist()
        table = table.slice(size)
    assert bag(found) == expected


def test_events_that_do_nothing_do_not_come_to_the_automaton():
    query = cerflow.parse("next([type = 'A'] AS a, [type = 'B'] AS b, [type = 'C'] AS c)", language="sremo")
    table = pa.table({"type": list("BCBCBC" * 100 + "A" + "CCC" * 50 + "BBB" * 50 + "C" + "BC" * 100)})
    recognizer = query.recognizer(table.schema)
    assert recognizer.push(table).count() == 1
    # The first ones, because the scan does not know what waits, and those of the match.
    assert recognizer.live["visited"] < 10
    schema = Schema(table.schema)
    assert empties_states(Plan(query.tree, schema).begin_scan().tables)
    for text in ("SELECT * WHERE A ; B", "SELECT * WHERE A : B", "SELECT NEXT * WHERE A ; B"):
        assert not empties_states(Plan(cerflow.parse(text).tree, schema).begin_scan().tables)


#: Queries whose matches can be counted by states.
COUNTED = [
    "next([type = 'A'] AS a, [type = 'B'] AS b, [type = 'C'] AS c)",
    "next([type = 'A'] AS a, [type = 'B' AND n = 'q'] AS b)",
    "next([type = 'A'] AS a, [v > 1] AS b, [n = 'q'] AS c)",
    "next([v > 1] AS a, [v > 1] AS b)",
    "next([type = 'A'] AS a, ([type = 'B'] AS b | [type = 'B'] AS y), [type = 'C'] AS c)",
    "next([type = 'A'] AS a, [type = 'B'] AS b) | next([type = 'B'] AS a, [n = 'p'] AS b, [type = 'A'] AS c)",
    "next([type = 'A'] AS a, [type = 'B'] AS b, [v > 2] AS c) | [type = 'C'] AS z",
]


def counts(text, table):
    """Whether the matches of a query are counted by states."""
    plan = Plan(cerflow.parse(text, language="sremo").tree, Schema(table.schema))
    tables = plan.begin_scan().tables
    return (
        empties_states(tables) and isinstance(plan.scan, ScanProgram) and counted_states(tables, plan.scan.outputs) > 0
    )


def random_table(size, seed):
    generator = np.random.default_rng(seed)
    types = pa.array(np.array(list("ABC"))[generator.choice(3, size, p=(0.3, 0.4, 0.3))])
    names = pa.array(np.array(["p", "q"])[generator.integers(0, 2, size)], mask=generator.random(size) < 0.1)
    values = pa.array(generator.integers(0, 4, size), mask=generator.random(size) < 0.1)
    return pa.table({"type": types, "n": names.dictionary_encode(), "v": values})


@pytest.fixture
def always_counted(monkeypatch):
    monkeypatch.setattr(limits, "COUNTED_EVENTS", 1)


@given(st.data())
@examples(400)
def test_counted_matches_are_those_of_the_semantics(data):
    text = data.draw(st.sampled_from(COUNTED))
    query, table = cerflow.parse(text, language="sremo"), data.draw(streams())
    assert counts(text, table)
    expected = bag(RUNNERS["semantics"](query, table))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "COUNTED_EVENTS", 1)
        assert bag(RUNNERS["one batch"](query, table)) == expected
        assert bag(in_random_pieces(query, table, data)) == expected
        assert bag(in_random_pieces(query, table, data)) == expected


@pytest.mark.parametrize("text", COUNTED)
def test_counted_matches_are_those_of_the_graph(text, monkeypatch):
    query, generator = cerflow.parse(text, language="sremo"), random.Random(text)
    table = random_table(3_000, generator.randrange(10**6))
    monkeypatch.setattr(limits, "COUNTED_EVENTS", 10**9)
    matches = query.match(table)
    expected, per_event = matches.to_pylist(), matches.aggregate({"n": "count"}).to_pylist()
    assert len(expected) > 100
    monkeypatch.setattr(limits, "COUNTED_EVENTS", 1)
    # Few nodes, so that there has to be more room.
    monkeypatch.setattr(limits, "FIRST_NODES", 64)
    for threads in (1, 3):
        matches = query.match(table, threads=threads)
        assert matches.count() == len(expected)
        assert matches.aggregate({"n": "count"}).to_pylist() == per_event
        assert bag(matches.to_pylist()) == bag(expected)
    recognizer, at = query.recognizer(table.schema), 0
    pushed = []
    while at < table.num_rows:
        size = generator.choice([1, 7, 300, 1_000])
        pushed.append(recognizer.push(table.slice(at, size)))
        at += size
        if generator.random() < 0.3:
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    # They are listed when the recogniser has gone on.
    assert sum(found.count() for found in pushed) == len(expected)
    assert [match for found in pushed for match in found.to_pylist()] == expected


def test_counting_visits_no_configuration(always_counted):
    query = cerflow.parse(COUNTED[0], language="sremo")
    table = pa.table({"type": list("AABABC" * 200)})
    recognizer = query.recognizer(table.schema)
    matches = recognizer.push(table)
    assert matches.count() == 600
    assert recognizer.live["visited"] < 20


@pytest.mark.parametrize("steps", [4, 58, 60])
def test_numbers_of_any_size(steps, always_counted):
    # Each B doubles the number of runs.
    chain = ", ".join(["[type = 'A'] AS a", *["([type = 'B'] AS b | [type = 'B'] AS y)"] * steps])
    query = cerflow.parse(f"next({chain})", language="sremo")
    table = pa.table({"type": [*"AB" * steps * 2, *"A" * 12, *"B" * steps, *"AA"]})
    assert counts(f"next({chain})", table)
    assert query.match(table).count() == (2 * steps + 12) * 2**steps


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A ; B",
        "SELECT NONE WHERE A ; B",
        "SELECT * WHERE (A ; B) FILTER A.v < B.v",
        "SELECT * WHERE A ; B CONSUME BY ANY",
        "SELECT * WHERE A : B",
    ],
)
def test_other_queries_are_not_counted_by_states(text):
    table = random_table(1, 0)
    plan = Plan(cerflow.parse(text).tree, Schema(table.schema))
    tables = plan.begin_scan().tables
    assert not empties_states(tables) or not counted_states(tables, plan.scan.outputs)
