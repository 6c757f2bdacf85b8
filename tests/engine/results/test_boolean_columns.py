"""Predicates, tests on the order and other conditions as columns, and counts of distinct values."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cerflow

EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "C", "B"],
        "v": pa.array([1, 2, None, 2, 1]),
        "f": [0.0, -0.0, None, float("nan"), 0.5],
        "s": ["p", None, "P", "q", "p"],
        "t": pa.array([0, 1, 1, 2, 3], pa.timestamp("ms")),
        "d": pa.array([1, None, 1, 2, 2], pa.duration("s")),
        "raw": [b"", b"", None, b"", b""],
        "b": [True, None, True, False, True],
        "exact": pa.array([1, None, 1, 2, 2], pa.decimal128(30, 2)),
    }
)


@pytest.fixture(autouse=True)
def some_predicates(predicate):
    predicate("near")(lambda a, b: abs(a - b) <= 1)
    predicate("same", compile=False)(lambda x, y: x["s"] == y["s"])
    predicate("large", vectorized="arrow")(lambda v, least: pc.greater_equal(v, least))
    predicate("spread", of_set=True)(lambda values, least: len(set(values.tolist())) > least)
    predicate("texts", of_set="arrow")(
        lambda events: len({event["s"] for event in events.to_pylist()}) > 1 if len(events) else None
    )


def column(text, runner=None):
    options = {} if runner is None else {"runner": runner}
    return [row["c"] for row in cerflow.parse(text).match(EVENTS, time="t", **options).to_pylist()]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("near(x.v, y.v)", [True, None, True]),
        ("same(x, y)", [False, False, True]),
        ("large(y.v, 2)", [True, None, False]),
        ("(near(x.v, y.v) AND NOT same(x, y))", [True, None, False]),
        ("CASE WHEN near(x.v, y.v) THEN y.v ELSE -1 END", [2, -1, 1]),
        ("near(count(y), max(x.v) + 0.5)", [True, True, True]),
        ("(y.s IS NULL)", [True, False, False]),
        ("(y.raw IS NULL)", [False, True, False]),
        ("CASE WHEN y.raw IS NOT NULL THEN y.v END", [2, None, 1]),
        ("(time(y) - time(x) > y.d)", [None, False, False]),
    ],
)
def test_of_single_events(value, expected):
    text = f"SELECT {value} AS c WHERE A AS x ; B AS y"
    assert column(text) == column(text, "semantics") == expected
    assert cerflow.parse(text).result_schema(EVENTS.schema, time="t").field("c").type == (
        pa.int64() if value.startswith("CASE") else pa.bool_()
    )


@pytest.mark.parametrize(
    "value",
    [
        "spread(y.v, 1)",
        "texts(y)",
        "(NOT texts(y) OR increasing(y.v))",
        "nonincreasing(y.s)",
        "increasing(y.t)",
        "count(distinct y.v)",
        "count(distinct y.f)",
        "count(distinct lower(y.s))",
        "count(distinct y.t)",
        "count(distinct y.d)",
        "count(distinct y.b)",
        "count(distinct y.exact)",
        "count(distinct y.v % 2) + 1",
        "CASE WHEN count(distinct y.v) > 1 THEN last(y.v) END",
    ],
)
def test_of_all_events_of_a_label(value):
    text = f"SELECT y, {value} AS c WHERE A AS x ; (B OR C)+ AS y"

    def rows(**options):
        found = cerflow.parse(text).match(EVENTS, time="t", **options).to_pylist()
        return sorted(([e["position"] for e in row["events"]], repr(row["c"])) for row in found)

    assert rows() == rows(runner="semantics")
    assert len({value for _, value in rows()}) > 1


def test_of_texts_that_are_all_null_nothing_is_distinct():
    events = pa.table({"type": ["A", "A"], "s": pa.nulls(2, pa.string())})
    found = cerflow.parse("SELECT count(distinct A.s) AS c WHERE A").match(events).to_pylist()
    assert [row["c"] for row in found] == [0, 0]


def test_an_event_that_is_not_there_is_null():
    text = "SELECT same(x, y) AS c WHERE (A AS x ; C AS y) OR C AS y"
    assert sorted(column(text), key=str) == sorted(column(text, "semantics"), key=str) == [False, None]
    assert column("SELECT texts(y) AS c WHERE (A AS x) OR (B AS y)") == [None, False, False, False]


def test_predicates_are_those_of_the_beginning(predicate):
    recognizer = cerflow.parse("SELECT near(x.v, 1) AS c WHERE A AS x").recognizer(EVENTS.schema, time="t")
    predicate("near")(lambda a, b: None)
    assert [row["c"] for row in recognizer.push(EVENTS)] == [True]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("same(x, y)", "'y' may have several events in one match"),
        ("(y.v > 1)", "'y' may have several events in one match"),
        ("(x[v > 1])", "a bracket is not allowed inside a computed column"),
        ("(SOME y: y.v > 1)", "SOME is not allowed inside a computed column"),
        ("nears(x.v, 1)", "unknown function or predicate 'nears'"),
        ("CASE WHEN x.v = 1 THEN x.raw END", "attribute 'raw' has type binary, which expressions cannot use"),
        ("x.raw", "attribute 'raw' has type binary"),
        ("(x.raw = x.raw)", "attribute 'raw' has type binary"),
        ("(x.s > 1)", "a string cannot be compared with an integer"),
        ("(x.v > 1) + 1", "this is a condition, but a value is expected here"),
    ],
)
def test_errors(value, reason):
    with pytest.raises((cerflow.QueryError, cerflow.QuerySyntaxError)) as caught:
        column(f"SELECT {value} AS c WHERE A AS x ; B+ AS y")
    assert reason in str(caught.value)
    assert caught.value.span is not None


def test_a_count_of_distinct_values_of_several_events_is_no_condition():
    query = cerflow.parse("SELECT * WHERE A+ AS x FILTER count(distinct x.v) > 1")
    with pytest.raises(cerflow.UnsupportedQueryError, match="registers do not hold"):
        query.match(EVENTS)


@pytest.mark.parametrize("runner", ["engine", "semantics"])
@pytest.mark.parametrize(
    ("condition", "found"),
    [("x.b", 3), ("NOT x.b", 1), ("x[b AND v = 1]", 2), ("x.v = 2 AND x.b", 0), ("x.b OR x.v = 2", 5)],
)
def test_boolean_attributes_are_conditions(condition, found, runner):
    query = cerflow.parse(f"SELECT * WHERE EVENT AS x FILTER {condition}")
    assert len(query.match(EVENTS, time="t", runner=runner).to_pylist()) == found
