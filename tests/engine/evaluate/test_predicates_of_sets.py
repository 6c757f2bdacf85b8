"""Predicates of sets in the engine; random formulas with them are in `test_predicates`."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import PredicateError, QueryError, UnsupportedQueryError
from support.runners import ENGINE_RUNNERS, bag, semantics, supports

PREDICATES = {
    "numpy": {"of_set": "numpy"},
    "arrow": {"of_set": "arrow"},
}


def stream(*values, types=None, **columns):
    return pa.table({"type": list(types or "A" * len(values)), "v": values, **columns})


def sets(formula, table):
    """The supports of the matches, which the semantics confirms."""
    query = cerflow.parse(f"SELECT * WHERE {formula}")
    wanted = semantics(query, table)
    for run in ENGINE_RUNNERS.values():
        assert bag(run(query, table)) == bag(wanted)
    return {tuple(sorted(positions)) for _, positions in supports(wanted)}


@pytest.fixture
def total(predicate):
    """``total(x.v, n)``: the values add up to n; what was asked is noted."""
    asked = []

    def add(state, value, wanted):
        return (*state, value), wanted

    predicate("total", init=None, step=lambda s, v, n: ((*(s[0] if s else ()), v), n), accept=lambda s: note(asked, s))
    return asked


def note(asked, state):
    asked.append(() if state is None else state[0])
    return state is not None and sum(state[0]) == state[1]


def test_all_events_of_a_label(total):
    table = stream(1, 2, 3, 4)
    assert sets("A+ AS x FILTER total(x.v, 5)", table) == {(0, 3), (1, 2)}
    assert sets("(A+ AS x ; A AS y) FILTER total(x.v, 3)", table) == {(0, 1, 2), (0, 1, 3), (2, 3)}
    assert all(list(values) == sorted(values) for values in total)


def test_in_conditions_of_all_forms(total):
    table = stream(1, 2, 3, 4)
    assert sets("A+ AS x FILTER NOT total(x.v, 5) AND count(x) = 2", table) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert sets("A+ AS x FILTER total(x.v, 5) OR total(x.v, 10)", table) == {(0, 3), (1, 2), (0, 1, 2, 3)}
    assert sets("(A+ AS x ; A AS y) FILTER y[total(x.v, 3) AND v = 4]", table) == {(0, 1, 3), (2, 3)}
    assert sets("A+ AS x FILTER total(x.v, 5) AND x.v < 4", table) == {(1, 2)}


def test_one_event_is_a_set_too(total):
    table = stream(1, 2, 3, types="ABA")
    assert sets("(A AS x ; B) FILTER total(x.v, 1)", table) == {(0, 1)}
    assert sets("A AS x ; (B AS y FILTER y[total(x.v, 1) AND v = 2])", table) == {(0, 1)}
    assert sets("NOT(A FILTER total(A.v, 1))", table) == {(1,), (2,)}


def test_no_event_is_a_set_too(predicate):
    predicate("few", of_set=True)(lambda values: values.size < 2)
    table = stream(1, 2, 3, types="AAB")
    assert sets("(A AS x OR B) FILTER few(x.v)", table) == {(0,), (1,), (2,)}
    assert sets("(A+ AS x OR B) FILTER NOT few(x.v)", table) == {(0, 1)}
    predicate("many", of_set=True)(lambda values: values.size > 0)
    assert sets("(A AS x OR B) FILTER many(x.v)", table) == {(0,), (1,)}


@pytest.fixture
def fewer(predicate):
    """``fewer(x.v, y.v)``: x has fewer events with a value than y."""
    predicate("fewer", of_set=True)(lambda a, b: a.size < b.size)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("(A+ ; B) FILTER NOT fewer(A.v, B.v) AND fewer(B.v, A.v)", {(0, 1, 2), (0, 1, 3), (0, 1, 4), (0, 3), (1, 3)}),
        ("(A AS x ; B+) FILTER fewer(x.v, B.v) AND count(B) = 2", {(0, 2, 4), (1, 2, 4)}),
        ("A AS x ; (B+ FILTER fewer(x.v, B.v) AND count(B) = 2)", {(0, 2, 4), (1, 2, 4)}),
        ("(A+ FILTER fewer(y.v, A.v)) ; B AS y", {(0, 1, 2), (0, 1, 3), (0, 1, 4), (0, 3), (1, 3)}),
        ("(A AS x ; B AS y) FILTER fewer(y.v, x.v)", {(0, 3), (1, 3)}),
        ("(A OR B) FILTER fewer(A.v, B.v)", {(2,), (4,)}),
        ("((A+ : B) AS x) FILTER fewer(A.v, x.v)", {(0, 1, 2), (1, 2)}),
        ("NOT(A FILTER fewer(y.v, A.v)) ; B AS y", {(0, 2), (1, 2), (0, 4), (1, 4), (2, 3), (2, 4), (3, 4)}),
    ],
)
def test_events_of_several_labels(fewer, formula, expected):
    assert sets(formula, pa.table({"type": list("AABBB"), "v": [1, 2, 3, None, 5]})) == expected


def test_sets_of_several_labels_in_computed_columns(fewer):
    table = pa.table({"type": list("AABB"), "v": [1, None, 3, 4]})
    query = cerflow.parse("SELECT fewer(A.v, B.v) AS few WHERE A+ ; B+")
    assert bag(query.match(table)) == bag(semantics(query, table))
    assert {match["few"] for match in query.match(table)} == {True, False}


def test_event_by_event_there_is_one_label(total):
    with pytest.raises(QueryError, match="'total' goes over the events of one label, but its arguments read several"):
        cerflow.parse("SELECT * WHERE (A+ ; B+) FILTER total(A.v, B.v)")


@pytest.mark.parametrize("options", PREDICATES.values(), ids=PREDICATES)
def test_arrays_of_every_kind(predicate, options):
    seen = set()

    @predicate(**options)
    def look(integers, floats, booleans, strings, times, number):
        kinds = [str(getattr(a, "dtype", None) or a.type) for a in (integers, floats, booleans, strings, times)]
        seen.add((*kinds, number))
        return len(strings) == 2

    moments = pa.array([0, 1, None], pa.timestamp("s", "UTC"))
    table = stream(1, 2, 3, w=[0.5, 1.5, 2.5], b=[True, False, True], s=["a", "b", "c"], t=moments)
    query = cerflow.parse("SELECT * WHERE (A+ AS x ; A AS y) FILTER look(x.v, x.w, x.b, x.s, x.t, 7)")
    # The last event has no time, and does not count.
    assert supports(query.match(table).to_pylist()) == {(2, frozenset({0, 1, 2}))}
    arrays = {
        "numpy": ("int64", "float64", "bool", "object", "datetime64[us]"),
        "arrow": ("int64", "double", "bool", "string", "timestamp[us, tz=UTC]"),
    }
    assert seen == {(*arrays[options["of_set"]], 7)}


def test_whole_events(predicate):
    predicate("rising", of_set="arrow")(lambda events: events["v"].to_pylist() == sorted(events["v"].to_pylist()))
    names = []
    predicate("named", init="", step=lambda text, event: text + event["s"], accept=lambda text: names.append(text))
    table = stream(1, 3, 2, s=["a", "b", "c"])
    assert sets("A+ AS x FILTER rising(x) AND count(x) > 1", table) == {(0, 1), (0, 2)}
    assert sets("A+ AS x FILTER named(x)", table) == set()
    assert set(names) == {"a", "b", "c", "ab", "ac", "bc", "abc"}


@pytest.mark.parametrize(
    "form", [{"of_set": True}, {"init": 0, "step": lambda s, v: s + 1 / v, "accept": lambda s: s > 0}]
)
def test_failures_come_out_and_change_nothing(predicate, form):
    if "init" in form:
        predicate("sound", **form)
    else:
        predicate("sound", **form)(lambda values: sum(1 / v for v in values.tolist()) > 0)
    query = cerflow.parse("SELECT * WHERE A+ AS x FILTER sound(x.v)")
    recognizer = query.recognizer(stream(1).schema)
    assert recognizer.push(stream(1)).count() == 1
    for _ in range(2):
        with pytest.raises(PredicateError, match="predicate 'sound' failed: ZeroDivisionError"):
            recognizer.push(stream(2, 0))
    assert recognizer.push(stream(2)).count() == 2


def test_below_operators_that_follow_sets_of_runs(total):
    with pytest.raises(UnsupportedQueryError, match="remember a whole set of events"):
        cerflow.parse("SELECT * WHERE A WITHOUT (A+ AS x FILTER total(x.v, 5)) ; A").check()


def test_explanation(total):
    shown = cerflow.parse("SELECT * WHERE A+ AS x FILTER total(x.v, 5)").explain()
    assert "total(r0 ∪ {(v, 5)})" in shown
    assert "total({(v, 5)})" in shown
    assert "r0 ∪= {(position(EVENT), v)}" in shown
