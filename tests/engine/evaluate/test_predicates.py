"""Predicates of users in the engine: random formulas, values of every kind, and what happens when they fail."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import PerformanceWarning, PredicateError, QueryError, UnsupportedQueryError
from cerflow.base.events import Stream
from cerflow.builder import read, select, sremo
from cerflow.language.condition import Attribute, Comparison, LabelReference, PredicateCall
from cerflow.language.formula import Strategy
from cerflow.language.node import transform, walk
from cerflow.theory.semantics.queries import evaluate
from cerflow.theory.semantics.sremo import sremo_matches
from support.generators import predicates as random_predicates
from support.generators.conditions import Fragment
from support.generators.selects import cases
from support.generators.sremo import streams, windowed_expressions
from support.runners import ENGINE_RUNNERS, bag, complex_events, examples, semantics, supports

COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("w", pa.float64()),
        ("s", pa.string()),
        ("e", pa.string()),
        *((name, pa.int64()) for name in "tvkn"),
    ]
)


@pytest.fixture(scope="module", autouse=True)
def _predicates():
    with random_predicates.registered():
        yield


def drawn(data, **options):
    select, rows = data.draw(cases(Fragment(predicates=True), **options))
    assume(any(isinstance(current, PredicateCall) for current in walk(select)))
    try:
        # Which matches LIMIT and ANY choose is open.
        query = cerflow.Query(replace(select, limit=None, strategy=Strategy.ALL))
    except QueryError:
        assume(False)
    return query, pa.Table.from_pylist(rows, COLUMNS)


@examples(60)
@given(st.data(), st.sampled_from(sorted(ENGINE_RUNNERS)))
def test_random_formulas(data, runner):
    query, table = drawn(data)
    wanted = semantics(query, table, time="t")
    assert bag(ENGINE_RUNNERS[runner](query, table, time="t")) == bag(wanted)
    event("matching" if wanted else "not matching")


def calling(tree):
    """What compares values of ``v`` asks the predicate instead, about the attribute by its name alone."""
    if isinstance(tree, Comparison) and tree.left == Attribute(None, "v"):
        return PredicateCall("close", (LabelReference("v"), tree.right))
    return tree


@examples(60)
@given(windowed_expressions(), streams(), st.sampled_from(sorted(ENGINE_RUNNERS)))
def test_random_expressions_of_sremo(expression, rows, runner):
    called = transform(expression, calling)
    assume(any(isinstance(current, PredicateCall) for current in walk(called)))
    table = pa.Table.from_pylist(rows, COLUMNS)
    try:
        query = cerflow.Query(called)
        found = ENGINE_RUNNERS[runner](query, table, time="t")
    except (QueryError, UnsupportedQueryError):
        assume(False)  # registers that nothing writes, complements that need a window
    wanted = sremo_matches(called, Stream.from_dicts(rows, time="t"))
    assert complex_events(found) == wanted
    event("matching" if wanted else "not matching")


def test_names_as_arguments_in_sremo():
    """A name alone is a register where the expression writes it, else an attribute of the event read."""
    cerflow.predicate("near", compile=False)(lambda a, b, width=1: abs(a - b) <= width)
    cerflow.predicate("later", compile=False)(lambda a, b: a["v"] > b["v"])
    rows = [{"type": "A", "v": v, "limit": 9 - v} for v in (1, 7, 5, 8)]

    def found(query):
        return {s for _, s in supports(query.match(rows).to_pylist())}

    def parsed(condition, register="r"):
        return found(cerflow.parse(f"[TRUE] MARK INTO {register} . [TRUE]* . [{condition}] MARK", language="sremo"))

    near = {frozenset(p) for p in [(1, 2), (1, 3)]}
    assert parsed("near(v, r.v, 2)") == parsed("near(r.v, v, 2)") == near
    assert parsed("near(limit, r.limit, 2)") == near  # a reserved word
    assert parsed("later(EVENT, r)") == {frozenset(p) for p in [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]}
    # A register of the attribute's name stands before it; in parentheses it is the attribute.
    assert parsed("near((v), v.v, 2)", "v") == near
    assert parsed("later(EVENT, v)", "v") == parsed("later(EVENT, r)")
    # In Python what writes the register may be another part.
    parts = read().mark().into("r") >> sremo("[TRUE]*") >> sremo("[later(EVENT, r) AND near(v, r.v, 2)] MARK")
    assert found(cerflow.Query(parts.tree)) == found(cerflow.Query(select(parts))) == {frozenset((1, 3))}
    warning, *_ = cerflow.parse("[near(v, q.v)] MARK", language="sremo").warnings()
    assert "register 'q' is read but never written" in str(warning)


@examples(20)
@given(st.data(), st.sampled_from(["s", "ms", "us", "ns"]))
def test_columns_of_other_types(data, unit):
    query, table = drawn(data, ends=False)
    # Literals of the query are among the values.
    assume(all(v is None or abs(v) < 2**15 for v in table["v"].to_pylist()))
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    moments = pa.array([t * factor for t in table["t"].to_pylist()], pa.timestamp(unit, "Europe/Berlin"))
    table = table.set_column(table.column_names.index("t"), "t", moments)
    for name, kind in {"v": pa.int16(), "w": pa.float32(), "s": pa.dictionary(pa.int8(), pa.string())}.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    table = table.append_column("b", pa.array([k % 2 == 0 for k in range(len(table))]))
    try:
        wanted = semantics(query, table, time="t")
    except QueryError:
        # A difference of timestamps is not compared with an integer.
        assume(False)
    assert bag(ENGINE_RUNNERS["restored"](query, table, time="t")) == bag(wanted)


# -- what functions get ----------------------------------------------------------------------------------------------


def stream(*values, **columns):
    return pa.table({"type": ["A"] * len(values), "v": values, **columns})


def pairs(condition, table, formula="A AS x ; A AS y"):
    """The supports of the matches, which the semantics confirms."""
    query = cerflow.parse(f"SELECT * WHERE ({formula}) FILTER {condition}")
    wanted = semantics(query, table)
    for run in ENGINE_RUNNERS.values():
        assert bag(run(query, table)) == bag(wanted)
    return {tuple(sorted(positions)) for _, positions in supports(wanted)}


def test_compiled_functions(predicate):
    @predicate
    def within_reach(a, b, width=2):
        if b == 9:
            return None
        return 0 < b - a < width

    table = stream(1, 2, 4, None, 9, 3.5)
    assert pairs("within_reach(x.v, y.v)", table) == {(0, 1), (1, 5)}
    assert pairs("within_reach(x.v, y.v, 3)", table) == {(0, 1), (0, 5), (1, 2), (1, 5)}
    assert pairs("NOT within_reach(x.v, y.v)", table) == {(0, 2), (1, 2), (0, 5), (2, 5), (4, 5)}
    assert pairs("within_reach(position(x), position(y))", table) == {(k, k + 1) for k in range(5)}


def test_booleans_and_integers_stay_what_they_are(predicate):
    @predicate(compile=False)
    def same(a, b):
        return type(a) is bool and type(b) is int

    assert pairs("same(x.b, y.v)", stream(1, 2, b=[True, False])) == {(0, 1)}

    @predicate
    def either(a, b):
        return a or b > 1

    assert pairs("either(x.b, y.v)", stream(1, 1, 2, b=[True, False, False])) == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("options", [{}, {"compile": False}, {"vectorized": True}])
def test_zero_has_no_sign(predicate, options):
    predicate("negative", **options)(lambda a: np.copysign(1.0, a) < 0)
    assert pairs("negative(x.v)", stream(-0.0, 0.0, -1.0), "A AS x") == {(2,)}
    if "vectorized" not in options:
        predicate("negative", **options)(lambda a, b: np.copysign(1.0, a * b) < 0)
        assert pairs("negative(x.v, y.v)", stream(-0.0, 0.0, -1.0)) == {(0, 2), (1, 2)}
        predicate("positive", **options)(lambda a: np.copysign(1.0, a) > 0)
        assert pairs("positive(x.v * y.v)", stream(-0.0, 0.0, -1.0)) == {(0, 1), (0, 2), (1, 2)}


def test_large_integers_are_exact(predicate):
    predicate("directly")(lambda a, b: a + 1 == b)
    predicate("later", compile=False)(lambda a, b: a + 1 == b)
    big = 2**53
    for name in ("directly", "later"):
        assert pairs(f"{name}(x.v, y.v)", stream(big, big, big + 1)) == {(0, 2), (1, 2)}


def test_whole_events_are_mappings_of_their_attributes(predicate):
    seen = []

    @predicate(compile=False)
    def look(x, y, number):
        seen.append((dict(x), dict(y), number))
        with pytest.raises(TypeError):
            x["v"] = 0
        return x["s"] is not None

    table = stream(1, 2.5, None, s=["a", None, "b"], b=[True, None, False], tags=[["t"], [], None])
    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER look(x, y, 3)")
    assert query.match(table).count() == 2
    first = {"type": "A", "v": 1.0, "s": "a", "b": True}
    assert (first, {"type": "A", "v": 2.5, "s": None, "b": None}, 3) in seen
    assert (first, {"type": "A", "v": None, "s": "b", "b": False}, 3) in seen


def test_whole_events_with_very_many_attributes(predicate):
    predicate("grows", compile=False)(lambda x, y: x["c199"] < y["c199"])
    table = stream(1, 2, 3, **{f"c{k}": [k, k + 2, k + 1] for k in range(200)})
    assert pairs("grows(x, y)", table) == {(0, 1), (0, 2)}
    assert pairs("grows(x, y)", table, "A+ AS x ; A AS y") == {(0, 1), (0, 2)}


def test_the_column_with_positions_is_no_attribute(predicate):
    seen = []
    predicate("look", compile=False)(lambda x: seen.append(sorted(x)) or True)
    query = cerflow.parse("SELECT * FROM s WHERE A AS x FILTER look(x)")
    table = stream(1, 2, s=["s", "t"], at=[5, 7])
    recognizer = query.recognizer(table.schema, stream="s", position="at")
    assert recognizer.push(table).count() == 1
    assert query.match(table.drop("at"), stream="s").count() == 1
    assert seen == [["s", "type", "v"], ["s", "type", "v"]]


def test_strings_that_come_and_go(predicate, monkeypatch):
    monkeypatch.setattr("cerflow.base.limits.STRING_SLACK", 4)
    predicate("before", compile=False)(lambda a, b: a + "x" == b)
    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER before(x.s, y.s) WITHIN 2 EVENTS")
    recognizer = query.recognizer(stream(1, s=["a"]).schema)
    texts = [f"{k // 2}{'x' * (k % 2)}" for k in range(100)]
    assert sum(recognizer.push(stream(k, s=[text])).count() for k, text in enumerate(texts)) == 50
    assert recognizer.live["strings"] < 20


def test_timestamps_are_datetimes(predicate):
    predicate("midnight")(lambda moment: (moment.hour, moment.tzinfo.utcoffset(moment).total_seconds()) == (0, 0))
    moments = pa.array([0, 3600, 86400, None], pa.timestamp("s", "America/New_York"))
    with pytest.warns(PerformanceWarning, match="'midnight' runs as plain Python, which is slow: it gets a timestamp"):
        assert pairs("midnight(x.t)", stream(*range(4), t=moments), "A AS x") == {(0,), (2,)}


def test_a_text_is_asked_about_once_per_batch(predicate):
    asked = []
    predicate("short", compile=False)(lambda text, most: asked.append(text) or len(text) < most)
    table = stream(*range(6), s=["a", "bbb", "a", None, "bbb", "a"])
    query = cerflow.parse("SELECT * WHERE A AS x FILTER short(x.s, 2)")
    assert query.match(table).count() == 3
    assert sorted(asked) == ["a", "bbb"]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "formula",
    [
        "(A AS x ; B AS y) FILTER sound(x.v) AND x.v < y.v",
        "(A AS x ; B AS y) FILTER sound(x.v) OR x.v < y.v",
        "(A AS x FILTER x.v > 0 AND sound(x.v)) ; B",
        "NOT(B FILTER TRUE) ; NOT(B FILTER TRUE) AS x FILTER sound(x.v)",
    ],
)
def test_events_that_cannot_matter_are_not_asked_about(predicate, compiled, formula):
    @predicate(compile=compiled)
    def sound(a, b=3):
        return 10 // (a - 7) < 100

    rows = [{"type": t, "v": v} for t, v in [("A", 1), ("B", 7), ("A", 3), ("C", 7), ("B", 5), ("B", None)]]
    if formula.startswith("NOT"):
        rows = [row for row in rows if row["v"] != 7 or row["type"] == "B"]
    query = cerflow.parse(f"SELECT * WHERE {formula}")
    assert bag(query.match(rows).to_pylist()) == bag(query.match(rows, runner="semantics").to_pylist())


# -- failures --------------------------------------------------------------------------------------------------------

FAILING = {
    "one event": "SELECT * WHERE (A AS x ; A AS y) FILTER inverse(x.v)",
    "several events": "SELECT * WHERE (A AS x ; A AS y) FILTER inverse(x.v, y.v)",
    "collections": "SELECT * WHERE (A+ AS x ; A AS y) FILTER inverse(x.v, y.v)",
    "stored truth": "SELECT * WHERE (A AS x ; A AS y) FILTER x.v > y.v OR inverse(x.v, 1)",
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", FAILING)
def test_failures_come_out_and_change_nothing(predicate, name, compiled):
    @predicate(compile=compiled)
    def inverse(a, b=1):
        return 1 / a > b - 10

    query = cerflow.parse(FAILING[name])
    good, bad = stream(3, 2), stream(2, 0, 1)
    recognizer = query.recognizer(good.schema)
    expected = query.recognizer(good.schema)
    assert recognizer.push(good).to_pylist() == expected.push(good).to_pylist()
    for _ in range(2):
        with pytest.raises(PredicateError, match=r"predicate 'inverse' failed on \(0[,)].*ZeroDivisionError") as caught:
            recognizer.push(bad)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert recognizer.push(good).to_pylist() == expected.push(good).to_pylist()
    assert recognizer.events == 4
    with pytest.raises(PredicateError):
        query.match(bad, runner="semantics")


def test_a_vectorised_function_that_fails(predicate):
    predicate("odd", vectorized=True)(lambda values: values[len(values)])
    query = cerflow.parse("SELECT * WHERE A AS x FILTER odd(x.v)")
    with pytest.raises(PredicateError, match="predicate 'odd' failed: IndexError") as caught:
        query.match(stream(1, 2)).count()
    assert isinstance(caught.value.__cause__, IndexError)


def test_interruptions_are_no_failures(predicate):
    @predicate(compile=False)
    def stop(a, b):
        raise KeyboardInterrupt

    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER stop(x.v, y.v)")
    with pytest.raises(KeyboardInterrupt):
        query.match(stream(1, 2)).count()


def test_what_fails_only_as_compiled(predicate):
    @predicate
    def far(a, b):
        # As an integer of Python it has room.
        return np.int8(a + b) > 0 if a < 0 else [1, 2, 3][a : a + 1][0] > 0

    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER far(x.v, y.v)")
    with pytest.raises(PredicateError, match=r"IndexError|as compiled by Numba"):
        query.match(stream(5, 6)).count()


def test_what_cannot_be_compiled_runs_with_a_warning(predicate):
    known = {1: 2}

    @predicate
    def follows(a, b):
        return known.get(a) == b

    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER follows(x.v, y.v)")
    with pytest.warns(PerformanceWarning, match="'follows' runs as plain Python, which is slow: Numba cannot compile"):
        assert query.match(stream(1, 2, 3)).count() == 1


def test_plain_python_that_is_meant_gives_no_warning(predicate, recwarn):
    predicate("follows", compile=False)(lambda a, b: a == b)
    assert cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER follows(x.v, y.v)").match(stream(1, 1)).count() == 1
    assert not [w for w in recwarn if issubclass(w.category, PerformanceWarning)]


# -- names -----------------------------------------------------------------------------------------------------------


def test_what_is_being_recognised_keeps_its_predicates(predicate):
    predicate("p")(lambda a, b: a < b)
    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER p(x.v, y.v) AND p(y.v, 10)")
    recognizer = query.recognizer(stream(1).schema)
    assert recognizer.push(stream(1, 2)).count() == 1
    predicate("p")(lambda a, b: a > b)
    assert recognizer.push(stream(3)).count() == 2
    assert query.match(stream(30, 20)).count() == 1


def test_snapshots_find_predicates_by_name(predicate):
    predicate("p")(lambda a, b: a < b)
    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER p(x.v, y.v)")
    recognizer = query.recognizer(stream(1).schema)
    recognizer.push(stream(1))
    snapshot = recognizer.snapshot()
    assert cerflow.Recognizer.restore(query, snapshot).push(stream(2)).count() == 1
    cerflow.unregister_predicate("p")
    for use in (lambda: cerflow.Recognizer.restore(query, snapshot), lambda: query.match(stream(1))):
        with pytest.raises(QueryError, match="unknown function or predicate 'p'"):
            use()
    with pytest.raises(QueryError, match="'p' is not registered"):
        semantics_of(query)
    predicate("p", vectorized=True)(lambda a, b: a < b)
    with pytest.raises(QueryError, match="is vectorized"):
        cerflow.Recognizer.restore(query, snapshot)


def semantics_of(query):
    return evaluate(query.tree, Stream.from_dicts([{"type": "A", "v": 1}, {"type": "A", "v": 2}]))


def _nan_above_two(v):
    return float("nan") if v > 2 else v


def _nan_or_none(v):
    return None if v > 3 else float("nan") if v > 2 else v


@pytest.mark.parametrize("runner", ["engine", "semantics"])
@pytest.mark.parametrize(
    ("function", "options"),
    [
        *((_nan_above_two, {"compile": compiled}) for compiled in (True, False)),
        *((_nan_or_none, {"compile": compiled}) for compiled in (True, False)),
        (lambda v: np.float32("nan") if v > 2 else v, {"compile": False}),
        (lambda v: pa.scalar(None if v > 2 else v > 0), {"compile": False}),
        (lambda v: pa.scalar(_nan_above_two(v)), {"compile": False}),
        (lambda values: _nan_above_two(values[0]), {"of_set": True}),
    ],
)
def test_nan_is_an_unknown_answer(predicate, function, options, runner):
    predicate("known", **options)(function)
    rows = [{"type": "A", "v": float(v)} for v in range(5)]
    for text, found in (("known(a.v)", [1, 2]), ("NOT known(a.v)", [0])):
        matches = cerflow.parse(f"SELECT * WHERE A AS a FILTER {text}").match(rows, runner=runner)
        assert [match["detected_at"] for match in matches] == found


def test_not_implemented_is_no_answer(predicate):
    predicate("compares", compile=False)(lambda v: (5).__gt__(v))
    with pytest.raises(PredicateError, match="it gave NotImplemented, which is no answer"):
        cerflow.parse("SELECT * WHERE A AS a FILTER compares(a.v)").match([{"type": "A", "v": 1.5}]).count()
