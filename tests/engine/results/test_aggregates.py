"""Aggregates in the engine: conditions on sets of events, what they cost, and computed columns."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, QueryError
from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.vectors import Vector
from cerflow.engine.layout import NULL
from cerflow.engine.results.computed_columns import Grouping, aggregated, chosen
from cerflow.theory.semantics.operators import aggregate
from support.runners import bag, examples, one_batch, semantics

# --- conditions ------------------------------------------------------------------------------------------------------

TABLE = pa.table({"type": list("AAABAC"), "v": [3, 1, 4, 2, 5, 9], "s": ["p", "q", "Pr", "p", None, "z"]})


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("A :+ AS x FILTER count(x) = 3", "012"),
        ("A :+ AS x FILTER sum(x.v) = 5", "12 4"),
        ("A :+ AS x FILTER increasing(x.v) AND count(x) > 1", "12"),
        ("A :+ AS x FILTER NOT increasing(x.v)", "01 012"),
        ("A :+ AS x FILTER max(x.s) = 'q' AND count(x) > 1", "01 12 012"),
        ("A :+ AS x FILTER min(x.s) LIKE '%r'", "2 12 012"),
        ("A :+ AS x FILTER length(last(x.s)) = 2", "2 12 012"),
        ("A :+ AS x FILTER last(x.s) IS NULL", "4"),
        ("(A :+ AS x : B AS y) FILTER y.v < avg(x.v)", "23 123 0123"),
        ("(A :+ AS x : B AS y) FILTER y.v > avg(x.v) OR first(x.v) = 3", "0123"),
        ("(A :+ AS x FILTER sum(x.v) > z.v) ; C AS z", ""),
        ("(A :+ AS x FILTER sum(x.v) + 5 > z.v) ; C AS z", "125 45 0125"),
        ("A AS z ; (A :+ AS x FILTER sum(x.v) > z.v)", "02 04 012 12 14 24"),
    ],
)
def test_examples(formula, expected, runner):
    found = runner(cerflow.parse(f"SELECT * WHERE {formula}"), TABLE)
    assert {"".join(str(e["position"]) for e in row["events"]) for row in found} == set(expected.split())


EXTREMES = st.sampled_from([0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, 2**53 + 1, 2**32, -(2**32) - 1])
FLOATS = st.sampled_from([0.0, -0.0, 0.1, 0.2, -2.5, 1e16, -1e16, math.inf, -math.inf, math.nan, 1.8e308])
BOUNDS = st.sampled_from(["0", "0.1", "1", "0.1 + 0.2", "9223372036854775807", "4611686018427387904", "1e16"])


@examples(60)
@given(st.data())
def test_extreme_numbers(data):
    size = data.draw(st.integers(1, 6))
    columns = {"type": pa.array(data.draw(st.lists(st.sampled_from("AAB"), min_size=size, max_size=size)))}
    for name, values, arrow in (("i", EXTREMES, pa.int64()), ("f", FLOATS, pa.float64())):
        cells = st.lists(st.one_of(values, values, values, st.none()), min_size=size, max_size=size)
        columns[name] = pa.array(data.draw(cells), arrow)
    table = pa.table(columns)
    names = st.sampled_from(["sum", "avg", "min", "max", "count"])
    left, right = (f"{data.draw(names)}(x.{data.draw(st.sampled_from('if'))})" for _ in range(2))
    other = data.draw(st.one_of(BOUNDS, st.just(right), st.just("y.i"), st.just("y.f")))
    operator = data.draw(st.sampled_from(["<", "<=", "=", "!=", ">"]))
    text = f"SELECT * WHERE (A+ AS x ; B AS y) FILTER {left} {operator} {other} OR {right} IS NULL"
    query = cerflow.parse(text)
    assert bag(one_batch(query, table)) == bag(semantics(query, table))


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("min(x.m) <= '1970-01-01 00:00:00.000002' AND max(x.m) = last(x.m)", "m"),
        ("first(x.b) = last(x.b) AND count(x.b) > 1", "b"),
        ("first(x.d) < last(x.d)", "d"),
        ("increasing(x.m) AND NOT decreasing(x.s)", "m"),
    ],
)
def test_values_of_other_kinds(condition, column, engine_runner):
    table = pa.table(
        {
            "type": list("AABAA"),
            "m": pa.array([1, 3, None, 2, 4], pa.timestamp("us", "UTC")),
            "b": [True, False, None, True, True],
            "d": pa.array([1, None, 3, 2, 5], pa.date32()),
            "s": pa.array(["b", "a", None, "a", "c"]).dictionary_encode(),
        }
    )
    query = cerflow.parse(f"SELECT * WHERE A+ AS x FILTER {condition}")
    found = engine_runner(query, table)
    assert bag(found) == bag(semantics(query, table))
    assert found


@pytest.mark.parametrize(
    "condition",
    [
        "last(x.v) / y.v + 1 > 1 OR count(x) = 0",
        "NOT (sum(x.v) % y.v IN (0, NULL)) OR -max(x.v) * y.v <= abs(min(x.v) - y.v)",
        "first(x.s) LIKE 'p' OR y.s = upper(last(x.s)) OR stddev(x.v) + y.v IS NULL",
        "y[s >= max(x.s) OR v < sum(x.v * NULL) OR v BETWEEN min(x.v) AND avg(x.v)]",
    ],
)
def test_aggregates_of_no_events(condition, engine_runner):
    table = pa.table({"type": list("BABC"), "v": [2, 0, -1, 7], "s": ["p", None, "P", ""]})
    for query in map(
        cerflow.parse,
        (
            f"SELECT * WHERE (A AS x OR B AS y)+ FILTER {condition}",
            f"SELECT * WHERE ((A AS x OR C)+ FILTER {condition}) ; B AS y",
        ),
    ):
        assert bag(engine_runner(query, table)) == bag(semantics(query, table))


@pytest.mark.parametrize(
    "condition",
    [
        "near_to(y.v, sum(x.v)) OR NOT near_to(count(x), max(y.v))",
        "within_text(first(x.s), upper(max(x.s))) OR near_to(sum(x.v), z.v)",
        "NOT least(z, avg(x.v)) AND near_to(min(x.v), max(y.v))",
    ],
)
@pytest.mark.filterwarnings("ignore:predicate:cerflow.PerformanceWarning")
def test_predicates_of_aggregates(condition):
    @cerflow.predicate
    def near_to(a, b):
        return None if a is None or b is None else abs(a - b) < 2

    @cerflow.predicate
    def within_text(a, b):
        return None if a is None or b is None else a in b

    @cerflow.predicate
    def least(event, value):
        return None if event["v"] is None or value is None else event["v"] < value

    table = pa.table({"type": list("CAABAC"), "v": [3, 1, None, 2, 4, 5], "s": ["p", "P", None, "q", "Q", "P"]})
    filtered = f"((A+ AS x ; B AS y) FILTER {condition})"
    for formula in (f"C AS z ; {filtered}", f"{filtered} ; C AS z", f"{filtered}+ ; C AS z"):
        query = cerflow.parse(f"SELECT * WHERE {formula}")
        assert bag(one_batch(query, table)) == bag(semantics(query, table))


def test_windows_partitions_and_consumption(engine_runner):
    table = pa.table({"type": list("AABABAAB"), "k": [0, 0, 1, 1, 0, 1, 0, 1], "v": [2, 1, 3, 4, 1, 1, 5, 2]})
    for rest in ("WITHIN 4 EVENTS", "PARTITION BY k", "PARTITION BY k WITHIN 3 EVENTS", "CONSUME BY ANY", "LIMIT 1"):
        query = cerflow.parse(f"SELECT * WHERE (A+ AS x ; B AS y) FILTER sum(x.v) > y.v {rest}")
        found = engine_runner(query, table)
        assert found
        if "LIMIT" not in rest:
            assert bag(found) == bag(semantics(query, table))
        else:
            assert len(found) == len({row["detected_at"] for row in semantics(query, table)})


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("sum(x.s) > 3", "needs numbers"),
        ("avg(x.s) = 'p'", "needs numbers"),
        ("max(x.v) = 'p'", "cannot be compared"),
        ("increasing(x.b)", "order"),
        ("sum(x.nothing) > 1", "nothing"),
        ("count(z) > 1", "unknown label"),
        ("sum(x.v + y.v) > 1", "one label"),
        ("sum(max(x.v)) > 1", "inside an aggregate"),
    ],
)
def test_conditions_that_make_no_sense(condition, reason):
    table = TABLE.append_column("b", pa.array([True] * 6))
    with pytest.raises(QueryError, match=reason):
        cerflow.parse(f"SELECT * WHERE (A+ AS x ; B+ AS y) FILTER {condition}").match(table)


@pytest.mark.slow
@pytest.mark.parametrize("test", ["increasing", "decreasing", "nondecreasing", "nonincreasing"])
@pytest.mark.parametrize("formula", ["C", "C+", "(C+ ; B)"])
def test_the_order_of_one_null_is_unknown(runner, formula, test):
    for column in (pa.array([None, None], pa.int64()), pa.array([None, "b"]), pa.array([float("nan"), 1.0])):
        table = pa.table({"type": ["C", "B"], "s": column})
        assert runner(cerflow.parse(f"SELECT * WHERE {formula} FILTER {test}(C.s)"), table) == []
        assert runner(cerflow.parse(f"SELECT * WHERE {formula} FILTER NOT {test}(C.s)"), table) == []
        count = cerflow.parse(f"SELECT * WHERE {formula} FILTER {test}(C.s) OR count(C) = 1")
        assert len(runner(count, table)) == 1


def test_the_value_that_stands_for_null_is_refused():
    table = pa.table({"type": ["A", "A"], "v": [1, NULL]})
    with pytest.raises(BadRecordError, match="row 1: the value -9223372036854775808 of 'v'"):
        cerflow.parse("SELECT * WHERE A+ AS x FILTER max(x.v) > 0").match(table).to_pylist()


# --- what they cost --------------------------------------------------------------------------------------------------


def generated(size):
    generator = np.random.default_rng(7)
    return pa.table({"type": ["A"] * size, "v": generator.integers(0, 4, size)})


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("count(x) >= 5", 8),
        ("increasing(x.v)", 6),
        ("NOT increasing(x.v)", 7),
        ("max(x.v) - min(x.v) = 2", 12),
        ("first(x.v) < last(x.v)", 18),
        ("count(x) > 2 AND max(x.v) < 3", 24),
    ],
)
def test_equal_registers_are_one_configuration(condition, most):
    """2^300 sets of events, but few configurations: the number of matches can be told at once."""
    recognizer = cerflow.parse(f"SELECT COUNT(*) AS n WHERE A+ AS x FILTER {condition}").recognizer(
        generated(100).schema
    )
    recognizer.push(generated(100))
    assert recognizer.live["configurations"] <= most


def test_counted_against_the_formula():
    table = pa.table({"type": ["A"] * 60})
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ AS x FILTER count(x) = 4")
    counts = {row["detected_at"]: int(row["n"]) for row in query.match(table).to_pylist()}
    assert counts == {n: math.comb(n, 3) for n in range(3, 60)}


def test_sums_against_a_table_of_subsets():
    values = [1, 5, 2, -3, 4, 4, 0, 7, -2, 1, 3, 6]
    ways = {0: 1}
    expected = {}
    for n, value in enumerate(values):
        ending = {total + value: count for total, count in ways.items()}
        expected[n] = ending.get(9, 0)
        for total, count in ending.items():
            ways[total] = ways.get(total, 0) + count
    table = pa.table({"type": ["A"] * len(values), "v": values})
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ AS x FILTER sum(x.v) = 9")
    found = {row["detected_at"]: int(row["n"]) for row in query.match(table).to_pylist()}
    assert found == {n: count for n, count in expected.items() if count}


# --- computed columns ------------------------------------------------------------------------------------------------

COLUMNS = pa.table(
    {
        "type": list("AABAC"),
        "v": pa.array([3, None, 1, 4, 2], pa.int16()),
        "f": [0.1, 0.2, None, 0.3, 1.0],
        "s": pa.array(["b", None, "a", "B", "c"]).dictionary_encode(),
        "m": pa.array([1, 2, 3, None, 5], pa.timestamp("ns", "Europe/Berlin")),
        "b": [True, False, None, True, None],
        "d": pa.array([3, 1, 2, 5, None], pa.date32()),
    }
)


def column(expression, table=COLUMNS, formula="A+ AS x ; C AS z"):
    query = cerflow.parse(f"SELECT {expression} AS found, z WHERE {formula}")
    found = one_batch(query, table)
    assert bag(found) == bag(semantics(query, table))
    return query.match(table).to_arrow().column("found")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("count(x)", pa.int64()),
        ("count(x.v)", pa.int64()),
        ("sum(x.v)", pa.int64()),
        ("sum(x.f)", pa.float64()),
        ("avg(x.v)", pa.float64()),
        ("stddev(x.f)", pa.float64()),
        ("min(x.v)", pa.int16()),
        ("max(x.v * 2)", pa.int64()),
        ("first(x.s)", pa.string()),
        ("max(x.s)", pa.string()),
        ("upper(min(x.s))", pa.string()),
        ("last(x.b)", pa.bool_()),
        ("max(x.m)", pa.timestamp("ns", "Europe/Berlin")),
        ("min(x.d)", pa.date32()),
        ("last(x.type)", pa.string()),
        ("max(time(x)) - min(position(x))", pa.int64()),
        ("sum(x.v) - count(x) + z.v", pa.int64()),
        ("sum(x.v * NULL)", pa.null()),
        ("sum(z.v) + first(z.f)", pa.float64()),
        ("-max(x.f) / count(x.v)", pa.float64()),
    ],
)
def test_columns_and_their_types(expression, expected):
    found = column(expression)
    assert found.type == expected
    assert len(found) == (7 if "x" in expression.replace("max", "") else 1)


def test_columns_of_a_label_without_events():
    table = pa.table({"type": ["A", "B"], "v": [1, 2], "s": ["p", "q"]})
    items = ", ".join(f"{name}(x.v) AS its_{name}" for name in NAMES)
    rows = cerflow.parse(f"SELECT {items}, max(x.s) AS text WHERE (A AS x OR B AS y)").match(table).to_pylist()
    without = next(row for row in rows if row["detected_at"] == 1)
    assert {name: without[f"its_{name}"] for name in NAMES} == {**dict.fromkeys(NAMES), "count": 0}
    assert without["text"] is None


def test_columns_where_nothing_matches():
    query = cerflow.parse("SELECT sum(x.v) AS total, min(x.s) AS text, stddev(x.v) AS s WHERE (A ; A ; A)+ AS x")
    found = query.match(pa.table({"type": ["A"], "v": [1], "s": ["p"]})).to_arrow()
    assert found.num_rows == 0
    assert found.schema.field("total").type == pa.int64()


@pytest.mark.parametrize("name", ["min", "max", "first", "last"])
def test_texts_that_are_chosen_in_many_matches(name, monkeypatch):
    monkeypatch.setattr(limits, "GATHERED_ROWS", 1)
    table = pa.table({"type": list("AABB"), "s": ["", "", "p", "q"]})
    found = cerflow.parse(f"SELECT {name}(z.s) AS one WHERE A AS x ; B AS z").match(table).to_arrow()
    assert sorted(found["one"].to_pylist()) == ["p", "p", "q", "q"]


def test_columns_of_streams_that_number_their_events():
    table = pa.table({"type": ["A", "A", "B"], "at": [10, 20, 30]})
    query = cerflow.parse("SELECT min(position(x)) AS low, sum(position(x)) AS total WHERE A :+ AS x : B")
    found = cerflow.Recognizer(query.tree, cerflow.Schema(table.schema), position="at").push(table).to_pylist()
    assert {(row["low"], row["total"]) for row in found} == {(10, 30), (20, 20)}


NAMES = ("count", "sum", "avg", "min", "max", "first", "last", "stddev")
INTEGERS = st.one_of(st.integers(-3, 3), EXTREMES)


@examples(150)
@given(st.data(), st.sampled_from(NAMES), st.sampled_from(["integers", "floats", "strings"]))
def test_groups_are_aggregated_by_the_definition(data, name, kind):
    if kind == "strings" and name in ("sum", "avg", "stddev"):
        kind = "integers"
    values = {"integers": INTEGERS, "floats": st.one_of(FLOATS, st.floats(-9, 9)), "strings": st.sampled_from("aBbé")}
    cells = st.one_of(st.none(), values[kind], values[kind], values[kind])
    groups = data.draw(st.lists(st.lists(cells, max_size=9), max_size=4))
    flat = [None if v != v else v for group in groups for v in group]
    missing = np.array([v is None for v in flat], bool)
    if kind == "floats":
        vector = Vector(ValueKind.FLOAT, np.array([math.nan if v is None else v for v in flat], np.float64))
    elif kind == "strings":
        texts = sorted({v for v in flat if v is not None}, reverse=True)
        codes = np.array([0 if v is None else texts.index(v) for v in flat], np.int64)
        vector = Vector(ValueKind.STRING, codes, missing, texts)
    else:
        vector = Vector(ValueKind.INTEGER, np.array([v or 0 for v in flat], np.int64), missing)
    sizes = Grouping(np.array([len(group) for group in groups], np.int64))
    if name in ("min", "max", "first", "last"):
        result = vector.taken(chosen(name, sizes, vector))
    else:
        result = aggregated(name, sizes, vector)
    gone = result.missing()
    found = [None if gone[g] else _plain(result, g) for g in range(len(groups))]
    assert found == [aggregate(name, [None if v != v else v for v in group]) for group in groups]


def _plain(vector, at):
    value = vector.data[at].item()
    return vector.dictionary[value] if vector.kind is ValueKind.STRING else value
