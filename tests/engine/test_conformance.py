"""The worked examples of the theory on every runner, and what the engine cannot evaluate."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from support.golden import (
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
from support.runners import complex_events, supports

PARSED = [(case, cerflow.parse(case.query)) for case in CASES]
LABELLED = [(case, cerflow.parse(case.query)) for case in LABELLED_CASES]
TABLE = pa.table({"type": ["A", "B"], "v": [1, 2], "s": ["p", "q"]})


def table(stream):
    return pa.Table.from_pylist(list(stream))


@pytest.mark.parametrize(("case", "query"), PARSED, ids=[case.name for case, _ in PARSED])
def test_golden(case, query, runner):
    assert supports(runner(query, table(case.stream))) == case.expected


@pytest.mark.parametrize(
    ("case", "query"), LABELLED, ids=[f"{number} {case.name}" for number, (case, _) in enumerate(LABELLED)]
)
def test_golden_with_labels(case, query, runner):
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


def test_a_bracket_that_reads_nothing_still_speaks_of_its_label(runner):
    query = cerflow.parse("SELECT * WHERE (A OR A AS x) FILTER x[FALSE]")
    assert complex_events(runner(query, table(rows("AB")))) == {(0, frozenset({("A", 0)}))}


# --- what cannot be evaluated ----------------------------------------------------------------------------------------

REFUSED = {
    "SELECT * WHERE (A ; D) WITHOUT (B+ AS b ; C AS c FILTER b.v != c.v)": "WITHOUT",
    "SELECT * WHERE NEXT(A+ AS a ; B AS b FILTER a.v != b.v) ; C": "NEXT",
    "SELECT MAX * WHERE A+ AS a ; B AS b FILTER a.v * b.v > 3": "MAX",
    "SELECT * WHERE NEXT(B AS b ; (C AS c FILTER b.v < c.v AND c.v < d.v) ; A) ; D AS d": "comes later",
    f"SELECT * WHERE {' ALL '.join('ABCDEFGHIJ')}": "500 states",
}


@pytest.mark.parametrize(("text", "name"), REFUSED.items())
def test_what_is_not_evaluable_is_refused_with_its_place(text, name, monkeypatch):
    monkeypatch.setattr(limits, "CONSTRUCTED_STATES", 500)
    query = cerflow.parse(text)
    for evaluate in (lambda: query.match(TABLE), lambda: query.recognizer(TABLE.schema), query.check):
        with pytest.raises(UnsupportedQueryError, match=name) as caught:
            evaluate()
        assert caught.value.line == 1
        assert caught.value.hint is not None


def test_what_would_take_too_long_to_prepare_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "RUN_SET_WORK", 300)
    query = cerflow.parse(
        f"SELECT * WHERE MAX({' ; '.join(f'(EVENT AS x{k} FILTER x{k}.v > {k})+' for k in range(9))})"
    )
    with pytest.raises(UnsupportedQueryError, match="more than 300 steps to prepare"):
        query.check()


def test_an_unsatisfiable_first_order_query_matches_nothing(engine_runner):
    query = cerflow.parse("SELECT * WHERE T AS x ; T AS x", reading="first-order")
    assert engine_runner(query, table(rows("TTT"))) == []
    query = cerflow.parse("SELECT * WHERE (T AS x ; T AS x) OR H AS y", reading="first-order")
    assert supports(engine_runner(query, table(rows("TTH")))) == at({2})


@pytest.mark.parametrize(
    "text", ["SELECT MAX * WHERE {}", *(f"SELECT * WHERE D ; {s}({{}})" for s in ("NEXT", "LAST"))]
)
def test_many_sets_of_runs_are_prepared(text):
    """There are exponentially many in the distance from an A to the end, and few of their runs matter."""
    query = cerflow.parse(text.format("(A OR B)+ : A" + " : EVENT" * 9))
    events = [{"type": t} for t in "DABAABBABAABAB"]
    assert query.match(events).count() > 0
    assert query.match(events).to_pylist() == query.match(events, runner="semantics").to_pylist()
