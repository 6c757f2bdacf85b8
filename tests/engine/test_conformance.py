"""The worked examples of the theory on every runner, and what the engine cannot evaluate yet."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.errors import UnsupportedQueryError
from cerflow.language.formula import Strategy
from golden import (
    CASES,
    HOT_DRY,
    LABELLED_CASES,
    SENSORS,
    SEPARATION_4_4,
    SEPARATION_4_6,
    rows,
    separation_4_4,
    separation_4_6,
)
from runners import complex_events, supports, unsupported

PARSED = [(case, cerflow.parse(case.query)) for case in CASES]
LABELLED = [(case, cerflow.parse(case.query)) for case in LABELLED_CASES]
EVALUABLE = [(case, query) for case, query in PARSED if unsupported(query) is None]
TABLE = pa.table({"type": ["A", "B"], "v": [1, 2], "s": ["p", "q"]})


def table(stream):
    return pa.Table.from_pylist(list(stream))


@pytest.mark.parametrize(("case", "query"), EVALUABLE, ids=[case.name for case, _ in EVALUABLE])
def test_golden(case, query, runner):
    assert supports(runner(query, table(case.stream))) == case.expected


def test_most_of_the_golden_cases_are_evaluable():
    assert len(EVALUABLE) >= 55


@pytest.mark.parametrize(
    ("case", "query"), LABELLED, ids=[f"{number} {case.name}" for number, (case, _) in enumerate(LABELLED)]
)
def test_golden_with_labels(case, query, runner, request):
    if unsupported(query) is not None and "semantics" not in request.node.callspec.id:
        with pytest.raises(UnsupportedQueryError):
            runner(query, table(case.stream))
        return
    found = runner(query, table(case.stream))
    assert complex_events(found) == case.expected
    assert len(found) == len(case.expected)


@pytest.mark.parametrize("n", [2, 3])
def test_separation_of_theorem_4_4(n, engine_runner):
    everything = frozenset(range(2 * n))
    query = cerflow.parse(SEPARATION_4_4)
    assert (2 * n - 1, everything) in supports(engine_runner(query, table(separation_4_4(n))))
    assert (2 * n - 1, everything) not in supports(engine_runner(query, table(separation_4_4(n, spoilt=True))))


@pytest.mark.parametrize("n", [2, 4, 6])
def test_separation_of_theorem_4_6(n, engine_runner):
    stream, spoilt = separation_4_6(n), separation_4_6(n, spoilt=True)
    everything = (len(stream) - 1, frozenset(range(len(stream))))
    query = cerflow.parse(SEPARATION_4_6)
    assert everything in supports(engine_runner(query, table(stream)))
    assert everything not in supports(engine_runner(query, table(spoilt)))


# --- the worked example of the specification -------------------------------------------------------------------------


def at(*found):
    return {(max(s), frozenset(s)) for s in found}


def test_specification_sequence(runner):
    query = cerflow.parse(f"SELECT * WHERE (T AS x ; H AS y) FILTER {HOT_DRY}")
    assert supports(runner(query, table(SENSORS))) == at({1, 2}, {1, 8}, {5, 8})


def test_specification_both_orders(runner):
    query = cerflow.parse(f"SELECT * WHERE ((T AS x ; H AS y) OR (H AS y ; T AS x)) FILTER {HOT_DRY}")
    assert supports(runner(query, table(SENSORS))) == at({1, 2}, {1, 8}, {5, 8}, {2, 5})


@pytest.mark.parametrize(("inner", "outer"), [("1", "x.id = 1 AND z.id = 1"), ("x.id", "x.id = z.id")])
def test_specification_iteration(inner, outer, runner):
    query = cerflow.parse(
        f"SELECT * WHERE (H AS x ; (T AS y FILTER y.id = {inner})+ ; H AS z) "
        f"FILTER x.value < 30 AND z.value > 60 AND {outer}"
    )
    assert supports(runner(query, table(SENSORS))) == at({3, 6, 7}, {3, 4, 7}, {3, 4, 6, 7})


# --- what comes later ------------------------------------------------------------------------------------------------

REFUSED = {
    "SELECT STRICT * WHERE A ; B": "STRICT",
    "SELECT MAX * WHERE A ; B": "MAX",
    "SELECT * WHERE A AND B": "AND",
    "SELECT * WHERE A ALL B": "ALL",
    "SELECT * WHERE A UNLESS B": "UNLESS",
    "SELECT * WHERE A WITHOUT B": "WITHOUT",
    "SELECT * WHERE START(A)": "START",
    "SELECT * WHERE STRICT(A)": "STRICT",
    "SELECT * WHERE NEXT(A)": "NEXT",
    "SELECT * WHERE NXT(A ; B)+": "NEXT",
    "SELECT * WHERE C ; LAST(A)": "LAST",
    "SELECT * WHERE MAX(A) WITHIN 3 EVENTS": "MAX",
    **{
        f"SELECT * WHERE A+ AS x FILTER {name}(x{'' if name == 'count' else '.v'}) > 1": name
        for name in ("count", "sum", "avg", "min", "max", "first", "last", "stddev")
    },
    **{
        f"SELECT * WHERE (A+ AS x) FILTER {name}(x.v)": name
        for name in ("increasing", "decreasing", "nondecreasing", "nonincreasing")
    },
    "SELECT sum(x.v) AS total WHERE A+ AS x": "aggregates",
    "SELECT x, last(x.v) + 1 AS top WHERE A+ AS x": "aggregates",
}


@pytest.mark.parametrize(("text", "name"), REFUSED.items())
def test_what_is_not_evaluable_is_named(text, name):
    query = cerflow.parse(text)
    assert unsupported(query) is not None
    for evaluate in (lambda: query.match(TABLE), lambda: query.recognizer(TABLE.schema), query.check):
        with pytest.raises(UnsupportedQueryError, match=rf"\b{name}\b") as caught:
            evaluate()
        assert caught.value.line == 1
    query.match(TABLE, runner="semantics").to_pylist()


def test_every_strategy_is_evaluable_or_refused():
    assert {name for name in REFUSED.values() if name in set(Strategy)} == set(Strategy) - {Strategy.ANY}


def test_all_is_only_refused_as_an_operator():
    assert len(cerflow.parse("SELECT ALL * WHERE A ; B").match(TABLE).to_pylist()) == 1


def test_an_unsatisfiable_first_order_query_matches_nothing(engine_runner):
    query = cerflow.parse("SELECT * WHERE T AS x ; T AS x", reading="first-order")
    assert engine_runner(query, table(rows("TTT"))) == []
    query = cerflow.parse("SELECT * WHERE (T AS x ; T AS x) OR H AS y", reading="first-order")
    assert supports(engine_runner(query, table(rows("TTH")))) == at({2})
