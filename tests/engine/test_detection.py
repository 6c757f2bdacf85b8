"""SELECT NONE: at which events there is any match, without the matches."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.automata.model.runs import matches as matches_of_runs
from cerflow.automata.optimise.detection import for_detection
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.engine.recognize.planning import compile_select, transducer_of
from cerflow.engine.slices.division import divided
from cerflow.language.formula import AttributeWindow, Strategy, Within
from cerflow.language.node import walk
from cerflow.language.select import CountItem, Projection, ProjectionKind, Select
from cerflow.language.sremo import Regular
from cerflow.theory.semantics.sremo import sremo_matches
from support.conformance import table_of
from support.generators.conditions import Fragment
from support.generators.queries import OPERATORS
from support.generators.selects import cases
from support.generators.sremo import OPERATORS as SREMO_OPERATORS
from support.generators.sremo import streams, windowed_expressions
from support.runners import ENGINE_RUNNERS, engine_refuses, examples, may_refuse, one_batch, semantics

NONE = Projection(ProjectionKind.NONE)


def drawn(data, **options):
    """A query that asks for detections only, and events; some formulas have a window of their own at the end."""
    select, rows = data.draw(cases(**options))
    select = replace(select, projection=NONE)
    if select.window is not None and data.draw(st.integers(0, 2)) == 0:
        # A window that is not a window of the whole query, as something may come before.
        select = replace(select, formula=Within(select.formula, select.window), window=None)
    try:
        query = cerflow.Query(select)
    except QueryError:
        assume(False)
    if any(isinstance(n, AttributeWindow) for n in walk(select)):
        for row in rows:
            if data.draw(st.integers(0, 4)) == 0:
                row["n"] = None
    return query, table_of(rows)


def assert_detects(query, table, runners):
    if engine_refuses(query, table, time="t"):
        assert may_refuse(query)
        assume(False)
    expected = semantics(query, table, time="t")
    for name, run in runners.items():
        assert run(query, table, time="t") == expected, name
    event("detecting" if expected else "not detecting")


@examples(250)
@given(st.data())
def test_random_queries(data):
    query, table = drawn(data, strategies=True)
    assert_detects(query, table, {"one batch": one_batch})


@examples(80)
@given(st.data())
def test_random_queries_in_batches_and_from_snapshots(data):
    query, table = drawn(data, strategies=True, fragment=Fragment(aggregates=data.draw(st.booleans())))
    assert_detects(query, table, ENGINE_RUNNERS)


@examples(40)
@given(st.data())
def test_existential_conditions(data):
    query, table = drawn(data, strategies=True, fragment=Fragment(some=True, depth=2))
    assert_detects(query, table, ENGINE_RUNNERS)


@pytest.mark.parametrize("operator", OPERATORS)
@examples(25)
@given(data=st.data())
def test_every_operator(operator, data):
    query, table = drawn(data, operator=operator, fragment=Fragment(more=True))
    assert_detects(query, table, ENGINE_RUNNERS)


@pytest.mark.parametrize("operator", SREMO_OPERATORS, ids=lambda operator: operator.__name__)
@examples(25)
@given(data=st.data())
def test_expressions_of_sremo(operator, data):
    expression = data.draw(windowed_expressions(3, operator))
    rows = data.draw(streams())
    try:
        query = cerflow.Query(Select(Regular(expression), NONE))
        query.check()
    except (QueryError, UnsupportedQueryError):
        assume(False)
    expected = sorted({n for n, _ in sremo_matches(expression, Stream.from_dicts(rows, time="t"))})
    columns = {"type": pa.string(), "t": pa.int64(), "v": pa.int64(), "n": pa.int64()}
    for name, run in ENGINE_RUNNERS.items():
        found = run(query, table_of(rows, columns), time="t")
        assert [row["detected_at"] for row in found] == expected, name
    event("detecting" if expected else "not detecting")


@examples(60)
@given(st.data())
def test_strategies_detect_where_all_matches_do(data):
    """Those that only choose among the matches of an event: of some matches at least one is chosen."""
    query, table = drawn(data)
    chosen = [Strategy.ALL, Strategy.ANY, Strategy.NEXT, Strategy.LAST, Strategy.MAX]
    queries = [cerflow.Query(replace(query.tree, strategy=strategy)) for strategy in chosen]
    plans = {repr(compile_select(q.tree)) for q in queries}
    assert len(plans) == 1
    expected = [semantics(q, table, time="t") for q in queries]
    assert all(found == expected[0] for found in expected)


def detections(text, types, **roles):
    rows = [{"type": t, "v": k % 3, "t": k} for k, t in enumerate(types)]
    return [row["detected_at"] for row in cerflow.parse(text).match(rows, **roles)]


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("SELECT NONE WHERE A ; B", "BAABAB", [3, 5]),
        ("SELECT NONE WHERE A ; B WITHIN 2 EVENTS", "BAABAB", [3, 5]),
        ("SELECT NONE WHERE A ; B WITHIN 2 EVENTS", "ACBABB", [4]),
        ("SELECT NONE WHERE A ; B+ ; C WITHIN 4 EVENTS", "ABBCBC", [3]),
        ("SELECT NONE WHERE (A ; B)+ ; C WITHIN 3 EVENTS", "ABABCC", [4]),
        ("SELECT NONE WHERE A : B", "ABACBAB", [1, 6]),
        ("SELECT NONE WHERE A ; B CONSUME BY ANY", "ABBAAB", [1, 5]),
        ("SELECT NONE WHERE START(A ; B)", "ACBB", [2, 3]),
        ("SELECT NONE WHERE START(A ; B)", "CABB", []),
        ("SELECT NONE WHERE (A ; B WITHIN 2 EVENTS) ; C", "ACBCABC", [6]),
        ("SELECT NONE WHERE (A ; C) UNLESS B", "ACABC", [1]),
        ("SELECT NONE WHERE (A AS x ; B AS y) FILTER x.v < y.v", "AABB", [2]),
        ("SELECT NONE WHERE A ; B PARTITION BY v", "ABCBABAAB", [3]),
        ("SELECT NONE WHERE A LIMIT 3", "AA", [0, 1]),
    ],
)
def test_examples(text, types, expected):
    assert detections(text, types) == expected
    assert detections(text, types, runner="semantics") == expected


def test_a_row_says_only_where():
    """One row for each detecting event, whatever ends there; of a match nothing is known."""
    rows = [{"type": t, "k": k} for t, k in zip("AAAB", "ppqp")]
    found = cerflow.parse("SELECT NONE WHERE A+ ; B PARTITION BY k").match(rows)
    nothing = dict.fromkeys(("start", "end", "start_time", "end_time"))
    assert found.to_pylist() == [{"detected_at": 3, "detected_time": 3, **nothing, "k": "p"}]
    assert found.count() == 1


@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        ("A+", "A"),
        ("A+ ; B", "A ; B"),
        ("A ; B+ ; C", "A ; B ; C"),
        ("(A ; B)+ ; C", "A ; B ; C"),
        ("A ; (B ; C+)+ ; D", "A ; B ; C ; D"),
        ("A OR A+ OR (A ; B)", "A OR (A ; B)"),
        ("(A AS x ; B+ AS y ; C AS z) FILTER x.v < z.v", "(A AS x ; B ; C AS z) FILTER x.v < z.v"),
    ],
)
@pytest.mark.parametrize("window", ["", " WITHIN 5 EVENTS"])
def test_iterations_come_down_to_single_steps(formula, plain, window):
    made = [compile_select(cerflow.parse(f"SELECT NONE WHERE {text}{window}").tree) for text in (formula, plain)]
    sizes = {(each.states, len(each.transitions), len(each.registers)) for each in made}
    assert len(sizes) == 1


def test_iterations_that_matter_stay():
    """In `A+` each value is compared with its neighbour, so the one before cannot be left out."""
    for text in ("(A+ AS x ; B) FILTER increasing(x.v) AND count(x) > 2", "A ; B ; A ; B"):
        query = cerflow.parse(f"SELECT NONE WHERE {text}")
        assert len(compile_select(query.tree).transitions) > 4


@examples(150)
@given(st.data())
def test_the_automaton_detects_at_the_same_events(data):
    """What is left of marks and transitions is enough, by the definition of runs."""
    select, rows = data.draw(cases())
    select = replace(select, projection=NONE, partition=(), limit=None)
    try:
        query = cerflow.Query(select)
        whole = transducer_of(query.tree)
    except (QueryError, UnsupportedQueryError):
        assume(False)
    small = for_detection(whole)
    assert small.states <= whole.states
    assert len(small.transitions) <= len(whole.transitions)
    stream = Stream.from_dicts(rows, time="t")
    assert {n for n, _ in matches_of_runs(small, stream)} == {n for n, _ in matches_of_runs(whole, stream)}


def pushed(query, table, size):
    recognizer = query.recognizer(table.schema, time="t")
    for start in range(0, table.num_rows, size):
        recognizer.push(table.slice(start, size)).count()
        yield recognizer.live


@pytest.mark.parametrize(
    ("formula", "configurations"),
    [
        ("A ; B+ ; C WITHIN 500 EVENTS", 2),
        ("A ; B ; C", 2),
        ("(A ; B+ WITHIN 500 EVENTS) ; C", 2),
        ("A+ ; (B ; A)+ ; C", 3),
        ("A ; B+ ; C PARTITION BY [v] WITHIN 500 EVENTS", 2 * 4),
        ("START(A+ ; B+ ; C+)", 1),
    ],
)
def test_nothing_grows(formula, configurations):
    """At most one configuration for each state and key; work for each event that does not depend on the window."""
    n, size = 40_000, 2000
    rng = np.random.default_rng(5)
    types = np.array(["A", "B", "C", "D"])[rng.integers(0, 4, n)]
    table = pa.table({"type": types, "t": np.arange(n), "v": rng.integers(0, 4, n)})
    visited = 0
    for live in pushed(cerflow.parse(f"SELECT NONE WHERE {formula}"), table, size):
        assert live["nodes"] == 1
        assert live["configurations"] <= configurations
        assert live["visited"] - visited <= 3 * size
        visited = live["visited"]


#: Formulas whose conditions ask whether values are less or greater, or also whether they are equal.
ORDERED = [
    "(A AS x ; B AS y) FILTER x.v < y.v",
    "(A AS x ; B AS y ; C AS z) FILTER x.v >= y.v AND y.v > z.v",
    "(A AS x ; B AS y ; C AS z) FILTER x.v < z.v AND y.w >= z.w",
    "(A AS x ; (B+ AS y) ; C AS z) FILTER x.v <= y.v AND y.w < z.w",
    "(A AS x ; B AS y ; C AS z) FILTER x.v < y.v AND x.w = z.w",
    "(A AS x ; B AS y ; C AS z) FILTER (x.v < y.v OR x.w > z.w) AND NOT y.v < z.v",
    "(A AS x ; ((B AS y ; C AS z) FILTER y.v > z.v WITHIN 4 EVENTS)) FILTER x.v < z.v",
    "(A AS x : B AS y ; C AS z) FILTER x.v < z.v",
    "((A AS x ; B AS y) FILTER x.v < y.v) ; (C AS z ; D AS u) FILTER z.w > u.w",
]


@examples(150)
@given(st.data())
def test_the_better_configurations_suffice(data):
    options = ["", "PARTITION BY [k] ", "WITHIN 6 EVENTS", "WITHIN 9 [t]", "CONSUME BY ANY"]
    query = cerflow.parse(
        f"SELECT NONE WHERE {data.draw(st.sampled_from(ORDERED))} {data.draw(st.sampled_from(options))}"
    )
    size = data.draw(st.integers(0, 40))
    number = {"v": st.none() | st.integers(0, 6), "w": st.none() | st.sampled_from([-0.0, 0.0, 1.5, 2.5, float("nan")])}
    drawn_from = {"type": st.sampled_from("AAABBCCD"), "k": st.integers(0, 1), **number}
    columns = {name: data.draw(st.lists(of, min_size=size, max_size=size)) for name, of in drawn_from.items()}
    types = {"type": pa.string(), "k": pa.int64(), "v": pa.int64(), "w": pa.float64()}
    arrays = {name: pa.array(values, types[name]) for name, values in columns.items()}
    assert_detects(query, pa.table({**arrays, "t": pa.array(range(size), pa.int64())}), ENGINE_RUNNERS)


@pytest.mark.parametrize("keys", [1, 5])
@pytest.mark.parametrize(
    ("formula", "window", "most"),
    [
        ("(A AS x ; B AS y) FILTER x.v < y.v", "", 1),
        ("(A AS x ; B AS y) FILTER x.v >= y.v", "", 1),
        ("(A AS x ; B AS y ; C AS z) FILTER x.v > y.v AND y.w < z.w", "", 2),
        ("(A AS x ; B AS y) FILTER x.v < y.v", "WITHIN 5000 EVENTS", 60),
    ],
)
def test_with_order_the_best_values_are_kept(formula, window, most, keys):
    n = 20_000
    rng = np.random.default_rng(7)
    types = np.array(["A", "B", "C"])[rng.choice(3, n, p=[0.8, 0.1, 0.1])]
    drawn = {"v": rng.random(n), "w": rng.integers(0, 1000, n)}
    table = pa.table({"type": types, "t": np.arange(n), "k": rng.integers(0, keys, n), **drawn})
    query = cerflow.parse(f"SELECT NONE WHERE {formula} PARTITION BY [k] {window}")
    assert all(live["configurations"] <= most * keys for live in pushed(query, table, 2000))


@pytest.mark.slow
@pytest.mark.parametrize("window", ["500 EVENTS", "500 MILLISECONDS", "500 [t]"])
@pytest.mark.parametrize("keys", ["", "PARTITION BY [k] "])
def test_with_registers_no_more_than_the_window_is_kept(window, keys):
    """Though events are often not compared with all that came before, what has passed is forgotten."""
    n = 30_000
    rng = np.random.default_rng(6)
    types = np.array(["A", "B"])[rng.integers(0, 2, n)]
    table = pa.table({"type": types, "t": np.arange(n), "v": rng.random(n), "k": rng.integers(0, 3, n)})
    query = cerflow.parse(f"SELECT NONE WHERE (A AS x ; B AS y) FILTER x.v < y.v {keys}WITHIN {window}")
    most = 3 * 500 if keys and "EVENTS" in window else 500
    assert all(live["configurations"] <= 4 * most for live in pushed(query, table, 3000))
    found = query.match(table, time="t").to_arrow()
    assert query.match(table, time="t", threads=2).to_arrow() == found
    counting = cerflow.Query(replace(query.tree, projection=Projection(ProjectionKind.ITEMS, (CountItem("n"),))))
    assert counting.match(table, time="t").to_arrow()["detected_at"] == found["detected_at"]


def test_threads_may_share_the_work():
    select = cerflow.parse("SELECT NONE WHERE A ; B WITHIN 5 EVENTS").tree
    assert divided(select, compile_select(select), threads=True).window is not None


def test_explained():
    found = json.loads(cerflow.parse("SELECT NONE WHERE (A AS x ; B+ ; C AS y) FILTER x.v < y.v").explain("json"))
    assert found["recognition"] == {
        "keeps": "latest starts",
        "reason": "SELECT NONE asks only at which events there are matches",
        "one_per": ["state", "r0"],
        "best": ["r0"],
    }
    assert found["automaton"]["reduced_from"] == {"states": 4}
    assert found["automaton"]["determinized_from"] is None
    assert "those that no other one beats in both r0" in cerflow.parse(f"SELECT NONE WHERE {ORDERED[0]}").explain()
    text = cerflow.parse("SELECT NONE WHERE A ; B").explain()
    assert "at most  one configuration for each state" in text
    assert "detection only" not in cerflow.parse("SELECT * WHERE A ; B").explain()
