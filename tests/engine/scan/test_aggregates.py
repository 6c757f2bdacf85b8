"""Aggregates over as many events each: columns say what the registers of the automaton would hold, to the last bit."""

import random
from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.engine.recognize.plan import Plan
from cerflow.theory.semantics.operators import aggregate, compare
from support.runners import RUNNERS, bag, examples, in_random_pieces

NAN, INF, LEAST, MOST = float("nan"), float("inf"), -(2**63) + 1, 2**63 - 1
SECOND = timedelta(seconds=1)
KINDS = {
    "i": (pa.int64(), [[0, 1, -2, 5], [MOST, LEAST, 1, -1, 2**62, None], [2**53 + 1, -(2**32), 2**32 - 1, None]]),
    "b": (pa.int8(), [[1, 2, 127, -128, None], [0]]),
    "f": (
        pa.float64(),
        [[0.1, 0.2, 0.7, -0.0, None], [INF, -INF, NAN, 1.0, -0.0], [1e308, -1e308, 1e-308, 2.0**53, 1.0]],
    ),
    "g": (pa.float32(), [[0.5, 1.5, NAN, None], [3.0, -7.25]]),
    "d": (
        pa.duration("us"),
        [[SECOND, 3 * SECOND, -SECOND, None], [timedelta(days=10**8), timedelta(days=-5), SECOND]],
    ),
}
CONSTANTS = {"d": ["2 SECONDS", "1 DAYS"], "f": ["0.3", "1", "1e308", "-0.5"], "i": ["1", "2.5", str(MOST), str(LEAST)]}
OPERATORS = ["<", "<=", ">", ">=", "=", "!="]


@pytest.fixture(autouse=True)
def narrowed(monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)
    monkeypatch.setattr(limits, "JOINED_ROWS", 1)


@st.composite
def conditions(draw, repeated, single, exactly):
    """A condition with aggregates over repeated labels; ``exactly`` says that the semantics rounds them alike."""
    label, kind = draw(st.sampled_from(repeated)), draw(st.sampled_from([*KINDS]))
    names = ["sum", "avg", "min", "max", "first", "last", "count"]
    names += [] if exactly or kind == "d" else ["stddev"]
    value = f"{draw(st.sampled_from(names))}({label}.{kind})"
    constant = draw(st.sampled_from(CONSTANTS.get(kind, ["1", "0.25"])))
    operator = draw(st.sampled_from(OPERATORS))
    if value.startswith("count"):
        return f"{value} {operator} {draw(st.integers(0, 3))}"
    form = draw(st.integers(0, 7))
    other = f"{draw(st.sampled_from(['min', 'max', 'sum']))}({draw(st.sampled_from(repeated))}.{kind})"
    if form == 1:
        return f"{value} - {other} {operator} {constant}"
    if form == 2:
        return f"{value} {operator} {other}"
    if form == 3 and single:
        return f"{draw(st.sampled_from(single))}.{kind} {operator} {value}"
    if form == 4 and single and kind != "d":
        return f"{draw(st.sampled_from(single))}.{kind} {operator} 1.25 * {value} + 1"
    if form == 5:
        return f"NOT {value} {operator} {constant}"
    if form == 6:
        return f"({value} {operator} {constant} OR {other} < {constant})"
    if form == 7:
        return f"{value} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    return f"{value} {operator} {constant}"


@st.composite
def queries(draw, exactly, gaps=False):
    types = ["A", "B", "EVENT", "(A OR B)"]
    repeated, single, steps = ["r"], [], []
    following = "{" if gaps else ":{"
    for label in ("r", "q")[: 1 if gaps else draw(st.integers(1, 2))]:
        repeated += [label] * (label not in repeated)
        if not gaps and draw(st.booleans()):
            single.append(f"x{len(steps)}")
            steps.append(f"{draw(st.sampled_from(types))} AS {single[-1]}")
        steps.append(
            f"({draw(st.sampled_from(types))} AS {label}){following}{draw(st.integers(2, 3 if gaps else 4))}}}"
        )
    if draw(st.booleans()):
        single.append("z")
        steps.append(f"{draw(st.sampled_from(types))} AS z")
    filters = draw(st.lists(conditions(repeated, single, exactly), min_size=1, max_size=2))
    if draw(st.booleans()):
        filters.append(f"r[f {draw(st.sampled_from(['<', '>=']))} prev(f)]")
    if draw(st.integers(0, 3)) == 0:
        filters.append(f"{draw(st.sampled_from([*repeated, *single]))}.b > 0")
    keys = draw(st.sampled_from(["", " PARTITION BY k", " PARTITION BY k, n"]))
    formula = f"({(' ; ' if gaps else ' : ').join(steps)}) FILTER {' AND '.join(filters)}"
    return f"SELECT {draw(st.sampled_from(['*', '*', 'NONE', 'r']))} WHERE ({formula}){keys}"


@st.composite
def streams(draw, most):
    size, generator = draw(st.integers(0, most)), random.Random(draw(st.integers(0, 10**6)))
    kinds = draw(st.sampled_from([pa.string(), pa.dictionary(pa.int32(), pa.string())]))

    def column(values, data_type):
        return pa.array([generator.choice(values) for _ in range(size)]).cast(data_type)

    columns = {"type": column(["A", "A", "A", "B"], kinds), "k": column(["x", "x", "y", None], kinds)}
    columns["n"] = column([1, 1, 2], pa.int64())
    return pa.table(columns | {k: column(draw(st.sampled_from(some)), own) for k, (own, some) in KINDS.items()})


def plan_of(query, schema):
    return Plan(query.tree, Schema(schema)).scan


@given(st.data())
@examples(600)
def test_matches_are_those_of_the_semantics(data):
    query, table = cerflow.parse(data.draw(queries(exactly=True))), data.draw(streams(30))
    expected = bag(RUNNERS["semantics"](query, table))
    assert bag(RUNNERS["one batch"](query, table)) == expected
    assert bag(in_random_pieces(query, table, data)) == expected


@given(st.data(), st.booleans())
@examples(600)
def test_matches_are_those_of_the_automaton(data, gaps):
    """Which reads events that come one by one."""
    query, table = cerflow.parse(data.draw(queries(exactly=False, gaps=gaps))), data.draw(streams(25 if gaps else 60))
    assert bag(RUNNERS["one batch"](query, table)) == bag(RUNNERS["one by one"](query, table))


VALUES = [
    *("CASE WHEN {0} IS NULL THEN {1} ELSE {0} END", "CASE WHEN {0} IS NOT NULL THEN {0} ELSE {1} END"),
    *("CASE WHEN {0} > 1 THEN {1} END", "CASE WHEN {0} > 1 THEN CASE WHEN {1} < 2 THEN {0} END END"),
    *(
        "coalesce({0}, {1})",
        "({0} + {1})",
        "({0} - {1})",
        "({0} * 0.5)",
        "abs({0})",
        "floor({0})",
        "({0} / {1})",
        "{0}",
    ),
    *("-({0})", "round({0})", "({0} % 2)"),
]
TRUTHS = ["{0} {2} {1}", "NOT {0} {2} {1}", "({0} {2} {1} OR {1} IS NULL)", "({0} {2} 1 AND {1} {2} 2)", "{0} IS NULL"]


@given(st.data())
@examples(600)
def test_conditions_are_taken_apart(data):
    """Values that are null unless a condition holds, in the place of others."""
    labels = ["a", "b", "c"]
    read = [f"{label}.{kind}" for label in labels for kind in "if"]

    def value(depth):
        parts = [value(depth - 1) if depth else data.draw(st.sampled_from(read)) for _ in range(2)]
        return data.draw(st.sampled_from(VALUES)).format(*parts)

    found = [
        data.draw(st.sampled_from(TRUTHS)).format(value(1), value(1), data.draw(st.sampled_from(OPERATORS)))
        for _ in range(data.draw(st.integers(1, 2)))
    ]
    query = cerflow.parse(f"SELECT * WHERE (EVENT AS a : EVENT AS b : EVENT AS c) FILTER {' AND '.join(found)}")
    table = data.draw(streams(30))
    assert bag(RUNNERS["one batch"](query, table)) == bag(RUNNERS["semantics"](query, table))


SCHEMA = pa.schema([("type", pa.string()), ("k", pa.string()), *((k, kind) for k, (kind, _) in KINDS.items())])


@pytest.mark.parametrize(
    ("formula", "links"),
    [
        ("(A AS r):{3} FILTER sum(r.f) > 2", 2),
        ("(A AS r):{16} FILTER avg(r.i) > 2", 2),
        ("(A AS r):{5} FILTER max(r.f) < 2", 2),
        ("(A AS r):{5} FILTER min(r.i) < 2", 1),
        ("(A AS r):{5} FILTER max(r.g) - min(r.g) > 2 PARTITION BY k", 1),
        ("(A AS r):{3} FILTER stddev(r.f) < 2 AND count(r.i) > 1", 3),
        ("((A AS r):{4} : B AS x) FILTER x.f > 1.3 * avg(r.f) PARTITION BY k", 2),
        ("(B AS x : (A AS r):{4} : B AS y) FILTER sum(r.d) > 3 SECONDS AND y.f > max(r.f)", 7),
        ("(A AS r):{9} FILTER count(r.f) != 4", 1),
        ("((A AS r):{2} : (B AS q):{2}) FILTER sum(r.f) > sum(q.f) AND r[f > prev(f)]", 3),
        ("(A AS r):{30} FILTER stddev(r.f) < 2 PARTITION BY k", 2),
        ("(A AS r):{9} FILTER max(r.f) - min(r.f) < 2", 3),
        ("(A AS r):{3} FILTER max(r.k) < 'x'", "a condition that columns cannot decide"),
        ("(A AS r):{2,3} FILTER sum(r.f) > 2", "not all matches have the same number of events"),
        ("(A AS r):+ FILTER sum(r.f) > 2", "not all matches have the same number of events"),
        ("(A AS r){3} FILTER sum(r.f) > 2", "matches have gaps"),
    ],
)
def test_which_aggregates_columns_decide(formula, links):
    found = plan_of(cerflow.parse(f"SELECT * WHERE {formula}"), SCHEMA).contiguity
    assert (found if isinstance(found, str) else len(found.links)) == links


def test_events_with_gaps_are_joined():
    query = "SELECT * WHERE (A AS r){3} FILTER sum(r.f) > 2 AND max(r.f) < 5 WITHIN 5 EVENTS"
    assert not isinstance(plan_of(cerflow.parse(query), SCHEMA).join, str)
    several = cerflow.parse("SELECT * WHERE (A AS r){3} FILTER stddev(r.f) < 2 AND min(r.f) > 1")
    assert not isinstance(plan_of(several, SCHEMA).join, str)


def test_what_several_conditions_read_of_an_event_is_computed_once():
    query = "SELECT * WHERE (A AS r):{9} FILTER avg(r.f) > 2 AND last(r.f) > 2 * avg(r.f) AND count(r.f) > 3"
    found = plan_of(cerflow.parse(query), SCHEMA).contiguity
    assert len(found.computed) == 2  # the value or 0, and whether it is known


@pytest.mark.parametrize("length", [33, 63])
@pytest.mark.parametrize("keys", ["", " PARTITION BY k", " PARTITION BY k, n"])
@pytest.mark.parametrize("kind", ["f", "i"])
def test_long_runs(kind, keys, length):
    generator = random.Random(length)
    values = {"type": "AAAAAAAAAAAAAAAAAAAB", "k": "xy", "n": [1, 2], "f": [0.1, 0.2, 0.7, None], "i": [LEAST, MOST, 7]}
    table = pa.table({name: [generator.choice(some) for _ in range(1500)] for name, some in values.items()})
    for condition in (f"avg(r.{kind}) > 0.25", f"stddev(r.{kind}) > 0.2", f"sum(r.{kind}) - min(r.{kind}) > 5"):
        query = cerflow.parse(f"SELECT * WHERE (A AS r):{{{length}}} FILTER {condition}{keys}")
        assert bag(RUNNERS["one batch"](query, table)) == bag(RUNNERS["one by one"](query, table))


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
def test_a_bound_on_all_events_is_a_condition_on_each(keys):
    found = plan_of(cerflow.parse(f"SELECT * WHERE (A AS r):{{6}} FILTER max(r.f) < 2{keys}"), SCHEMA).contiguity
    assert [link[3:] for link in found.links] == [[0b111111, 0], [0b100000, 5]]


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "d"])
def test_every_window_of_values(kind, size):
    """Compared with values that windows have, by each operator, in streams whose windows often have nulls alone."""
    generator = random.Random(size)
    data_type, pools = KINDS[kind]
    for pool in pools:
        drawn = pa.array([generator.choice([*pool, None, None]) for _ in range(300)]).cast(data_type)
        table, values = pa.table({"v": drawn}), [None if v is None or v != v else v for v in drawn.to_pylist()]
        windows = [values[end - size : end] for end in range(size, len(values) + 1)]
        for name in ("sum", "avg", "min", "max", "first", "last", "count"):
            found = [aggregate(name, window) for window in windows]
            known = sorted({v for v in found if v is not None and abs(v) < INF})
            for operator in Operator:
                constant = generator.choice(known)
                expected = sum(compare(operator, value, constant) is True for value in found)
                query = cerflow.parse(
                    f"SELECT * WHERE (EVENT AS r):{{{size}}} FILTER {name}(r.v) {operator} {constant!r}"
                )
                assert not isinstance(plan_of(query, table.schema).contiguity, str)
                assert (query.text, query.match(table).count()) == (query.text, expected)
