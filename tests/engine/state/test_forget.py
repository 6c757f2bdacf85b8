"""Keys that begin again after a pause: what that means, and that they are forgotten."""

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import InputError, SnapshotError
from cerflow.base.schema import Schema
from cerflow.engine.slices.division import divided
from cerflow.engine.state.snapshot import Contents
from support.runners import ENGINE_RUNNERS, ONLY_DEEP, bag, examples, semantics

QUERIES = {
    "no window": "A AS x ; B AS y PARTITION BY k",
    "events": "A AS x ; B AS y PARTITION BY k WITHIN 3 EVENTS",
    "contiguous": "A AS x : B AS y PARTITION BY k",
    "first": "START(A AS x ; B AS y) PARTITION BY k",
    "iterations": "A+ AS x ; B AS y PARTITION BY k WITHIN 4 EVENTS",
    "consumed": "A AS x ; B AS y PARTITION BY k CONSUME BY PARTITION",
    "consumed by any": "A AS x ; B AS y PARTITION BY k CONSUME BY ANY",
    "attribute": "A AS x ; B AS y PARTITION BY k WITHIN 3 [v]",
    "one substream": "A AS x ; B AS y",
    "one substream, contiguous": "A AS x : B AS y : C AS z",
    "one substream, first": "START(A AS x ; B AS y)",
}
STRATEGIES = ("", "NEXT ", "LAST ", "MAX ", "NONE ")
STEP = st.tuples(st.sampled_from("AABBC"), st.sampled_from([0, 0, 1, 2, 3, 7]), st.sampled_from("ppq"))
KEYED = ("A ; B PARTITION BY k WITHIN 20 EVENTS", "A ; B PARTITION BY k", "START(A ; B) PARTITION BY k")


def stream(steps, kind=None):
    times = [sum(step for _, step, _ in steps[: k + 1]) for k in range(len(steps))]
    t = pa.array(times, pa.int64()) if kind is None else pa.array(times, pa.int64()).cast(kind)
    return pa.table(
        {
            "type": pa.array([step[0] for step in steps], pa.string()),
            "t": t,
            "k": pa.array([step[2] for step in steps], pa.string()),
            "v": pa.array(range(len(steps)), pa.int64()),
        }
    )


@examples(40)
@given(
    st.sampled_from([*QUERIES]),
    st.sampled_from(STRATEGIES),
    st.sampled_from([pa.int64(), pa.float64(), pa.timestamp("ms")]),
    st.sampled_from(["2 MILLISECONDS", "2.5 MILLISECONDS", "6 milliseconds"]),
    st.lists(STEP, max_size=12),
)
def test_all_runners_agree(name, strategy, kind, forget, steps):
    projection = "NONE" if strategy == "NONE " else f"{strategy}*"
    query = cerflow.parse(f"SELECT {projection} WHERE {QUERIES[name]}")
    table = stream(steps, kind)
    roles = {"time": "t", "forget": forget}
    expected = bag(semantics(query, table, **roles))
    for runner in ENGINE_RUNNERS.values():
        assert bag(runner(query, table, **roles)) == expected
    assert bag(cerflow.QuerySet({"q": query}).match(table, **roles)["q"].to_pylist()) == expected


CART = cerflow.parse("SELECT * WHERE cart AS c NOT FOLLOWED BY checkout FOR 30 MILLISECONDS PARTITION BY k")


def carts(*events):
    return pa.table({"type": [a for a, _, _ in events], "t": [t for _, t, _ in events], "k": [k for _, _, k in events]})


def test_a_deadline_outlasts_its_session():
    table = carts(("cart", 0, "p"), ("checkout", 20, "p"), ("cart", 22, "p"), ("checkout", 24, "p"), ("cart", 30, "q"))
    for runner in ("engine", "semantics"):
        assert CART.match(table, time="t", runner=runner).count() == 0
        # The checkout is an event of the next session.
        (match,) = CART.match(table, time="t", forget="10 milliseconds", runner=runner)
        assert (match["start"], match["detected_at"], match["k"]) == (0, 4, "p")


@pytest.mark.parametrize("step", [*(pytest.param(step, marks=ONLY_DEEP) for step in (1, 7)), 35, 1000])
def test_keys_with_deadlines_are_forgotten(step, monkeypatch):
    """Neither keys nor sessions nor partial matches stay of keys that never come again."""
    monkeypatch.setattr(limits, "STRING_SLACK", 0)
    query = cerflow.parse("SELECT * WHERE (cart ; view) NOT FOLLOWED BY checkout FOR 30 MILLISECONDS PARTITION BY k")
    events = [(a, 2 * n, f"user {n}") for n in range(3000) for a in (("cart", "view") if n % 3 else ("cart",))]
    table = carts(*events)
    recognizer = query.recognizer(table.schema, time="t", forget="10 milliseconds")
    found = 0
    for begin in range(0, len(table), step):
        found += recognizer.push(table.slice(begin, step)).count()
        if begin % 700 == 0 and step > 1:
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    assert found == query.match(table, time="t", forget="10 milliseconds", runner="engine").count() == 1990
    assert recognizer.live["partitions"] < 1500
    assert len(recognizer._machine.sessions._open) < 2500


def test_damaged_sessions_are_refused():
    table = carts(("cart", 0, "p"), ("view", 1, "q"))
    recognizer = CART.recognizer(table.schema, time="t", forget="10 milliseconds")
    recognizer.push(table)
    machine = recognizer._machine
    contents = machine.contents(recognizer._driver.checker.counts, machine.store.kept())
    good = contents.arrays["sessions"]
    machine.take_over(contents, contents.positions)
    for bad in (None, good[:, 1:], good.astype(float), good + 1000):
        arrays = {**contents.arrays, "sessions": bad}
        with pytest.raises(SnapshotError, match=r"session|key"):
            machine.take_over(
                Contents(contents.description, arrays, contents.events, contents.positions), contents.positions
            )


def test_a_pause_is_longer_than_what_is_given():
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    for last, found in ((1999, 1), (2000, 1), (2001, 0)):
        table = pa.table({"type": ["A", "B"], "t": [0, last], "k": ["p", "p"]})
        for runner in ("engine", "semantics"):
            for forget in ("2 seconds", datetime.timedelta(seconds=2)):
                assert query.match(table, time="t", forget=forget, runner=runner).count() == found
    # Events that matter to no condition keep a key alive.
    table = pa.table({"type": ["A", "C", "B"], "t": [0, 1500, 3000], "k": ["p", "p", "p"]})
    assert query.match(table, time="t", forget="2 SECONDS").count() == 1
    # Those of other keys do not.
    table = pa.table({"type": ["A", "C", "B"], "t": [0, 1500, 3000], "k": ["p", "q", "p"]})
    assert query.match(table, time="t", forget="2 SECONDS").count() == 0


@pytest.mark.parametrize("where", KEYED)
def test_keys_are_forgotten(where):
    query = cerflow.parse(f"SELECT * WHERE {where}")
    count = 30_000
    table = pa.table({"type": ["A"] * count, "t": range(count), "k": range(count)})
    live = {}
    for forget in (None, "50 milliseconds"):
        recognizer = query.recognizer(table.schema, time="t", forget=forget)
        for start in range(0, count, 1000):
            recognizer.push(table.slice(start, 1000))
        live[forget] = recognizer.live
    assert live[None]["partitions"] == count
    assert live["50 milliseconds"]["partitions"] < 500
    assert live["50 milliseconds"]["configurations"] < 500


def test_snapshots_know_it():
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    table = pa.table({"type": ["A", "B"], "t": [0, 5000], "k": ["p", "p"]})
    for forget, found in (("2 seconds", 0), ("5 seconds", 1), (None, 1)):
        recognizer = query.recognizer(table.schema, time="t", forget=forget)
        recognizer.push(table.slice(0, 1))
        assert cerflow.Recognizer.restore(query, recognizer.snapshot()).push(table.slice(1)).count() == found
    queries = cerflow.QuerySet({"q": query})
    data = queries.recognizer(table.schema, time="t", forget="2 seconds").snapshot()
    with pytest.raises(SnapshotError):
        queries.restore(data, table.schema, time="t")
    queries.restore(data, table.schema, time="t", forget="2 seconds")


def test_what_is_refused():
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y PARTITION BY k")
    table = pa.table({"type": ["A", "B"], "t": [0, 5000], "k": ["p", "p"]})
    with pytest.raises(InputError, match="no time column is named"):
        query.match(table, forget="2 seconds")
    for text in ("2", "2 EVENTS", "2 [t]", "soon", "1 HOURS) OR (A"):
        with pytest.raises(ValueError, match=r"is not a duration.*above zero.*'30 minutes'"):
            query.match(table, time="t", forget=text)
    with pytest.raises(ValueError, match="above zero"):
        query.match(table, time="t", forget=datetime.timedelta(0))


def test_slices_are_refused_with_a_reason():
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 3 SECONDS")
    schema = Schema(stream([]).schema, time="t", forget=10**6)
    division = divided(query.tree, query.plan(schema).transducer, schema)
    assert (division.window, "starts again after a pause" in division.reason) == (None, True)
    table = stream([("AB"[k % 2], k % 5, "pq"[k % 3 == 0]) for k in range(40)])
    assert bag(query.match(table, time="t", forget="3 milliseconds", threads=2).to_pylist()) == bag(
        query.match(table, time="t", forget="3 milliseconds").to_pylist()
    )
