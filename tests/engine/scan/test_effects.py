"""Events that do nothing to the states that may be occupied are left out; that changes no match."""

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.scan.effects import empties_states
from cerflow.schema import Schema
from support.runners import RUNNERS, bag, examples

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
    assert empties_states(Plan(query.tree, schema).tables())
    for text in ("SELECT * WHERE A ; B", "SELECT * WHERE A : B", "SELECT NEXT * WHERE A ; B"):
        assert not empties_states(Plan(cerflow.parse(text).tree, schema).tables())
