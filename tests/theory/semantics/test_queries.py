from collections import Counter

import pytest
from hypothesis import given

import cerflow
from cerflow.base.errors import QueryError
from cerflow.base.events import Stream
from cerflow.language.formula import Strategy
from cerflow.language.parser import parse_query
from cerflow.language.select import Consumption, CountItem, Projection, ProjectionKind, Select
from cerflow.theory.semantics.queries import evaluate
from support.generators.queries import Fragment, stream_of
from support.generators.selects import cases
from support.golden import labelled, rows
from support.runners import examples


def run(query: str, events, **roles):
    return evaluate(parse_query(query), Stream.from_dicts(events, **roles))


def supports(query: str, events, **roles):
    return [(m.detected_at, "".join(map(str, sorted(m.positions)))) for m in run(query, events, **roles)]


def test_partition_evaluates_each_substream_by_itself():
    stream = rows("AABBC", k=[1, 2, 2, 1, None])
    assert supports("SELECT * WHERE A : B PARTITION BY k", stream) == [(2, "12"), (3, "03")]
    assert supports("SELECT * WHERE A ; B PARTITION BY k WITHIN 2 EVENTS", stream) == [(2, "12"), (3, "03")]
    assert supports("SELECT * WHERE C PARTITION BY k", stream) == []
    assert [m.key for m in run("SELECT * WHERE A ; B PARTITION BY k", stream)] == [(2,), (1,)]


def test_partition_key_with_several_names():
    stream = [{"type": "A", "a": 1}, {"type": "B", "b": 2}, {"type": "B", "b": 1}]
    assert supports("SELECT * WHERE A ; B PARTITION BY [a, b]", stream) == [(2, "02")]
    assert supports("SELECT * WHERE A ; B PARTITION BY a", stream) == []


def test_positions_are_those_of_the_whole_stream():
    stream = rows("AAB", k=[1, 2, 2])
    (match,) = run("SELECT position(x) AS p WHERE A AS x ; B PARTITION BY k", stream)
    assert match.columns == (("p", 1),)
    assert supports("SELECT * WHERE (A AS x ; B) FILTER position(x) = 1 PARTITION BY k", stream) == [(2, "12")]


def test_window_comes_before_the_strategy():
    stream = rows("AAB")
    assert supports("SELECT NEXT * WHERE A ; B", stream) == [(2, "02")]
    assert supports("SELECT NEXT * WHERE A ; B WITHIN 2 EVENTS", stream) == [(2, "12")]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("3 MILLISECONDS", []),
        ("4 MILLISECONDS", [(2, "12")]),
        ("1 SECONDS", [(2, "12")]),
        ("2 SECONDS", [(2, "02"), (2, "12")]),
        ("1001 [n]", [(2, "12")]),
        ("2001 [n]", [(2, "02"), (2, "12")]),
    ],
)
def test_windows_of_time_and_attributes(window, expected):
    stream = [{"type": t, "t": at, "n": at * 2} for t, at in (("A", 0), ("A", 997), ("B", 1000))]
    assert supports(f"SELECT * WHERE A ; B WITHIN {window}", stream, time="t") == expected


def test_window_on_a_null_attribute_keeps_nothing():
    stream = [{"type": "A", "n": None}, {"type": "A", "n": 1}, {"type": "B", "n": 1}]
    assert supports("SELECT * WHERE A ; B WITHIN 5 [n]", stream) == [(2, "12")]


def test_window_of_time_needs_times():
    with pytest.raises(QueryError, match="needs events with times"):
        run("SELECT * WHERE A ; B WITHIN 5 SECONDS", rows("AB"))


def test_consume():
    stream = rows("AABBAB", k=[1, 2, 1, 2, 1, 1])
    query = "SELECT * WHERE A ; B PARTITION BY k CONSUME BY "
    assert supports(query + "NONE", stream) == [(2, "02"), (3, "13"), (5, "05"), (5, "45")]
    assert supports(query + "PARTITION", stream) == [(2, "02"), (3, "13"), (5, "45")]
    assert supports(query + "ANY", stream) == [(2, "02"), (5, "45")]


def test_consume_keeps_what_began_later():
    stream = rows("AABB")
    assert supports("SELECT * WHERE A ; B CONSUME BY ANY", stream) == [(2, "02"), (2, "12")]


def test_limit_and_any():
    stream = rows("AAAB")
    assert len(run("SELECT * WHERE A ; B LIMIT 2", stream)) == 2
    assert len(run("SELECT ANY * WHERE A ; B", stream)) == 1


def test_count():
    stream = rows("AABAB")
    (two, three) = run("SELECT COUNT(*) AS n WHERE A ; B", stream)
    assert (two.detected_at, two.columns, two.complex_event) == (2, (("n", 2),), frozenset())
    assert (three.detected_at, three.columns) == (4, (("n", 3),))


def test_none_reports_each_detection_once():
    found = run("SELECT NONE WHERE A ; B", rows("AAB"))
    assert [(m.detected_at, m.complex_event) for m in found] == [(2, frozenset())]


def test_projection_merges_equal_matches():
    (match,) = run("SELECT y WHERE A AS x ; B AS y", rows("AAB"))
    assert (match.detected_at, match.complex_event) == labelled(2, y="2")


def test_columns_keep_matches_apart_by_the_labels_they_read():
    stream = rows("AAB", v=[1, 1, 0])
    found = run("SELECT y, x.v AS v WHERE A AS x ; B AS y", stream)
    assert [(m.complex_event, m.columns) for m in found] == [(labelled(2, y="2")[1], (("v", 1),))] * 2


def test_columns_alone_report_all_events():
    (match,) = run("SELECT count(x) AS n, max(x.v) AS top WHERE A+ AS x ; B LIMIT 1", rows("AB", v=[4, 0]))
    assert match.columns == (("n", 1), ("top", 4))
    assert match.complex_event == labelled(1, A="0", B="1", x="0")[1]


def test_column_of_a_label_without_event_is_null():
    found = run("SELECT x.v AS v WHERE (A AS x OR B AS y)", rows("AB", v=[1, 2]))
    assert [m.columns for m in found] == [(("v", 1),), (("v", None),)]


def test_column_of_a_label_with_several_events():
    with pytest.raises(QueryError, match="reads one event of 'x', which has several"):
        run("SELECT x.v AS v WHERE A+ AS x", rows("AA", v=[1, 2]))


def test_streams():
    pairs = (("A", "one"), ("A", "two"), ("B", "two"), ("B", "three"))
    events = [{"type": t, "s": name} for t, name in pairs]
    # Without FROM, or without several inputs, the names say nothing.
    assert len(run("SELECT * WHERE one>A ; two>B", events, stream="s")) == 4
    assert len(run("SELECT * FROM one, two WHERE one>A ; two>B", events)) == 4
    assert supports("SELECT * FROM one, two WHERE one>A ; two>B", events, stream="s") == [(2, "02")]
    assert supports("SELECT * FROM one, two WHERE A ; B", events, stream="s") == [(2, "02"), (2, "12")]


def test_empty_complex_events_are_matches():
    found = run("SELECT * WHERE PROJECT nothing (A)", rows("AA"))
    assert [(m.detected_at, m.complex_event) for m in found] == [(0, frozenset()), (1, frozenset())]


@given(cases(strategies=True))
@examples(50)
def test_what_surrounds_a_formula(case):
    query, stream_rows = case
    stream = stream_of(stream_rows)

    def variant(**changes):
        fields = {
            "formula": query.formula,
            "strategy": query.strategy,
            "partition": query.partition,
            "window": query.window,
            "consume": query.consume,
        }
        return evaluate(Select(**{**fields, **changes}), stream)

    everything = {(m.detected_at, m.complex_event) for m in variant(strategy=Strategy.ALL, consume=Consumption.NONE)}
    selected = variant()
    assert {(m.detected_at, m.complex_event) for m in selected} <= everything
    limited = variant(limit=2)
    per_event = Counter(m.detected_at for m in selected)
    assert Counter(m.detected_at for m in limited) == {n: min(2, count) for n, count in per_event.items()}
    count = Projection(ProjectionKind.ITEMS, (CountItem("n"),))
    assert {m.detected_at: m.columns[0][1] for m in variant(projection=count)} == per_event
    detections = variant(projection=Projection(ProjectionKind.NONE))
    assert [m.detected_at for m in detections] == sorted(per_event)
    if query.consume is Consumption.ANY:
        for m in selected:
            assert all(not any(p <= n < m.detected_at for p in m.positions) for n in per_event)


@given(cases(Fragment(outer=False, windows=False)))
@examples(50)
def test_partition_is_the_union_of_its_parts(case):
    query, stream_rows = case
    whole = Select(query.formula, partition=(("k",),))
    stream = stream_of(stream_rows)
    expected = set()
    for key in (0, 1):
        members = [event for event in stream if event.attribute("k") == key]
        for m in evaluate(Select(query.formula), Stream(members, 1000)):
            expected.add((m.detected_at, m.complex_event))
    assert {(m.detected_at, m.complex_event) for m in evaluate(whole, stream)} == expected


def test_deep_formulas_are_evaluated():
    text = "SELECT * WHERE " + " OR ".join("B" for _ in range(3000))
    assert supports(text, rows("B")) == [(0, "0")]


#: Which events the name of a type means in a filter over EVENT or NOT: pairs of a formula and what it finds in `READ`.
READ = [("A", 1), ("B", 2), ("A", 2), ("B", 0), ("A", 0), ("B", 3)]
NAMES_OF_TYPES = [
    # What encloses binds the name.
    ("(A AS y) UNLESS (EVENT FILTER A.v > 1)", "0 4"),
    ("(A ; B) UNLESS (NOT(C) FILTER A.v > 1)", "01 03 05 45"),
    ("(A ; B) WITHOUT (EVENT+ FILTER A.v > B.v)", "01 05 25 45"),
    ("B ; (A UNLESS (EVENT FILTER B.v > 1))+", "34"),
    ("A AND (EVENT FILTER A.v > 1)", "2"),
    ("A : (NOT(A) AS n FILTER n.v > A.v)", "01 45"),
    ("A ; (NOT(A) AS n FILTER n.v > A.v)", "01 05 25 45"),
    ("A : (NOT(A)+ AS n FILTER n.v > A.v)", "01 015 45"),
    ("(A ; B) UNLESS ((NOT(A) OR C) FILTER A.v > 1)", "01 03 05 45"),
    # Nothing does: EVENT may read the name itself, an iteration binds none, another stream has the type as well.
    ("A : (EVENT FILTER A.v > 1)", "01 23 45"),
    ("(EVENT ; EVENT AS A) FILTER count(A) > 1", "01 02 03 04 05 23 24 25 45"),
    ("A : (NOT(A FILTER A.v > 1) FILTER A.v > 1)", "01 23 45"),
    ("A : (NOT(s>A) FILTER A.v > 1)", "01 23 45"),
    ("(B ; A+) UNLESS (EVENT FILTER A.v > 1)", ""),
    ("EVENT FILTER A.v > 1", "1 2 3 5"),
    # The formula gives the label.
    ("(A AS y) UNLESS ((EVENT ; A) FILTER A.v > 1)", "0"),
    ("(B AS x) UNLESS (EVENT [A -> x] FILTER x.v > 1)", ""),
    # A label that is bound stands for one event, even where the condition that names it never holds.
    ("(EVENT AS A ; EVENT) UNLESS (EVENT FILTER B.v > A.v AND count(B) > 1)", "01 03 05 13 15 23 25 35 45"),
]


@pytest.mark.parametrize("runner", ["semantics", "engine"])
@pytest.mark.parametrize(("formula", "found"), NAMES_OF_TYPES)
def test_names_of_types_in_filters_over_any_event(formula, found, runner):
    query = cerflow.parse(f"SELECT * WHERE {formula}")
    matches = query.match([{"type": t, "v": v} for t, v in READ], runner=runner)
    assert sorted("".join(str(e["position"]) for e in m["events"]) for m in matches) == sorted(found.split())
