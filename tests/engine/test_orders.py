"""Choices BY labels: examples worked out by hand, laws, random queries against the definitions, and what is refused."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError, QuerySyntaxError, UnsupportedQueryError
from cerflow.builder import event as read
from cerflow.builder import label, last, max_, next_
from cerflow.builder import select as query_of
from cerflow.language.condition import LabelReference
from cerflow.language.formula import CountWindow, DurationWindow, Selection, Strategy
from cerflow.language.select import Consumption
from cerflow.logic.analysis.scopes import labels_of
from cerflow.rewritings import (
    first_order_to_second_order,
    push_down_filters,
    push_down_labels,
    push_down_renames,
    second_order_to_first_order,
    strict_to_sequences,
)
from cerflow.theory.semantics.complex_events import kept_by
from support.conformance import assert_conforms, assert_limited, drawn, limit
from support.generators.conditions import Fragment
from support.generators.queries import formulas, stream_of, streams
from support.meanings import complex_events as meaning
from support.runners import ENGINE_RUNNERS, bag, complex_events, engine_refuses, examples, one_batch
from support.slices import shorten

COMPARING = (Strategy.NEXT, Strategy.LAST, Strategy.MAX)
TABLE = pa.table({"type": list("ABABC"), "v": [3, 1, 2, 2, 0]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* WHERE NEXT(A ; B ; C)", "014"),
        ("* WHERE NEXT BY A (A ; B ; C)", "014 034"),
        ("* WHERE NEXT BY B (A ; B ; C)", "014"),
        ("* WHERE LAST BY A (A ; B ; C)", "234"),
        ("* WHERE LAST BY B (A ; B ; C)", "034 234"),
        # All have the same C, so all are equal.
        ("* WHERE LAST BY C (A ; B ; C)", "014 034 234"),
        ("* WHERE MAX BY A (A+ ; B+ ; C)", "0234"),
        ("* WHERE MAX BY B (A+ ; B+ ; C)", "0134"),
        ("* WHERE MAX BY A, B (A+ ; B+ ; C)", "0134 0234"),
        ("* WHERE MAX BY x, y ((A AS x)+ ; (B AS y)+ ; C)", "0134 0234"),
        # EVENT gives its event the name of its type.
        ("* WHERE LAST BY B (EVENT ; C)", "34"),
        ("* WHERE NEXT BY A (EVENT ; C)", "04"),
        # Chosen again for every A.
        ("* WHERE A ; LAST BY x (B AS x ; C)", "034 234"),
        ("* WHERE LAST BY x (A ; B AS x) ; C", "014 034 234"),
        ("* WHERE LAST BY x ((A AS x ; B) WITHIN 2 EVENTS) ; C", "014 234"),
        ("* WHERE LAST BY x ((A AS x ; B AS y) FILTER x.v > y.v) ; C", "014 034"),
        ("* WHERE NEXT BY y ((A AS x ; B AS y ; C) FILTER x.v <= y.v)", "234"),
        # Of the whole query, in its window.
        ("NEXT BY B * WHERE A ; B ; C", "014"),
        ("NEXT BY B * WHERE A ; B ; C WITHIN 4 EVENTS", "234"),
        ("NEXT BY A * WHERE (A ; B ; C) WITHIN 4 EVENTS", "234"),
        ("LAST BY B * WHERE A ; B ; C", "034 234"),
        ("LAST BY B A WHERE A ; B ; C", "0 2"),
        ("MAX BY A C, B WHERE A+ ; B+ ; C", "34"),
        # What the order looks at need not be reported, and what is reported need not be looked at.
        ("LAST BY x y WHERE A AS x ; (B OR C) AS y", "1 3 4"),
        ("LAST BY x * WHERE PROJECT x (A AS x ; B)", "0 2"),
    ],
)
def test_examples(text, expected, runner):
    found = runner(cerflow.parse(f"SELECT {text}"), TABLE)
    assert sorted("".join(str(e["position"]) for e in row["events"]) for row in found) == sorted(expected.split())


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("NEXT BY x ((A AS x ; B) OR (A ; B AS x))", "Ax0 B1"),
        ("LAST BY x ((A AS x ; B) OR (A ; B AS x))", "A0 Bx1"),
        ("MAX BY x ((A AS x ; B) OR (A ; B AS x))", "Ax0 B1|A0 Bx1"),
        # No event of x is less than any.
        ("NEXT BY x ((A AS x OR A) ; B)", "Ax0 B1"),
        ("LAST BY x ((A AS x OR A) ; B)", "Ax0 B1"),
        ("MAX BY x ((A AS x OR A) ; B)", "Ax0 B1"),
        ("NEXT((A AS x OR A) ; B)", "Ax0 B1|A0 B1"),
        # Those that agree on x stay, whatever else they mark.
        ("NEXT BY x (((A AS x ; B) OR A AS x ; B AS y))", "Ax0 B1|Ax0 By1"),
    ],
)
def test_labels_decide(formula, expected, runner):
    found = runner(cerflow.parse(f"SELECT * WHERE {formula}"), pa.table({"type": ["A", "B"]}))
    shown = [" ".join("".join(e["labels"]) + str(e["position"]) for e in row["events"]) for row in found]
    assert sorted(shown) == sorted(expected.split("|"))


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("NEXT BY A, B ((A ; B)+)", "NEXT((A ; B)+)", True),
        ("LAST BY x ((A ; B+) AS x)", "LAST((A ; B+) AS x)", True),
        ("MAX BY A, B ((A ; B+)+)", "MAX((A ; B+)+)", True),
        ("NEXT BY A (A ; B)", "NEXT(A ; B)", True),
        ("LAST BY A (A ; B ; C)", "LAST(A ; B ; C)", False),
        ("NEXT BY B (A ; B ; C)", "NEXT(A ; B ; C)", False),
        ("LAST BY B (A ; B ; C)", "LAST BY B (LAST BY B (A ; B ; C))", True),
        ("LAST BY A (LAST BY B (A ; B ; C))", "LAST(A ; B ; C)", True),
        ("NEXT BY C (A ; B ; C)", "A ; B ; C", True),
        # A choice does not pass OR where both sides end together, nor does AS pass a choice by the label that it gives.
        ("LAST BY A ((A ; B) OR A)", "LAST BY A (A ; B) OR LAST BY A (A)", True),
        ("NEXT BY x ((A ; B AS x) OR (A AS x ; B))", "NEXT BY x (A ; B AS x) OR NEXT BY x (A AS x ; B)", False),
        ("LAST BY x (A ; B AS x) AS x", "LAST BY x ((A ; B AS x) AS x)", False),
    ],
)
def test_laws(first, second, equal):
    assert cerflow.equivalent(first, second).verdict is equal


@examples(40)
@given(st.data())
def test_by_all_labels_is_without_by(data):
    formula = data.draw(formulas(Fragment(projection=False, wild=False, windows=False)))
    rows = data.draw(streams(max_size=6, like=formula))
    every = tuple(map(LabelReference, sorted(labels_of(formula).assigned)))
    for strategy in COMPARING:
        assert meaning(Selection(strategy, formula, every), stream_of(rows)) == meaning(
            Selection(strategy, formula), stream_of(rows)
        )


# --- random queries ---------------------------------------------------------------------------------------------------


def ordered(data, **options):
    """A query that chooses BY labels as a whole, and events."""
    query, table = drawn(data, strategies=COMPARING, **options)
    labels = sorted(labels_of(query.tree.formula).assigned)
    assume(labels)
    by = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=2, unique=True))
    return cerflow.Query(replace(query.tree, by=tuple(map(LabelReference, by)))), table


@pytest.mark.parametrize("kind", ["first", "operators", "sets"])
@examples(25)
@given(data=st.data())
def test_random_queries(kind, data):
    fragment = {
        "first": Fragment(),
        "operators": Fragment(more=True),
        "sets": Fragment(aggregates=True),
    }
    query, table = ordered(data, fragment=fragment[kind])
    if engine_refuses(query, table, time="t"):
        event("refused")
        return
    assert_conforms(query, table, ENGINE_RUNNERS)


@examples(30)
@given(st.data(), st.integers(2, 3), st.integers(1, 4))
def test_threads(data, threads, events):
    query, table = ordered(data)
    window = data.draw(st.sampled_from((CountWindow(3), DurationWindow(4000))))
    keys = query.tree.partition if isinstance(window, DurationWindow) else ()
    query = cerflow.Query(replace(query.tree, window=window, consume=Consumption.NONE, limit=None, partition=keys))
    assume(not engine_refuses(query, table, time="t"))
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch, events)
        several = query.match(table, time="t", threads=threads)
        event(type(several.parts).__name__)
        if limit(query.tree) is not None:
            assert_limited(query, table, several.to_pylist())
        else:
            assert bag(several.to_pylist()) == bag(one_batch(query, table, time="t"))


LONGER = [
    ("BY B", "A ; B ; C WITHIN 12 EVENTS"),
    ("BY x", "(A AS x)+ ; B+ WITHIN 7 EVENTS"),
    ("BY B, C", "(A ; B)+ ; C WITHIN 10 EVENTS"),
    ("BY y", "(A AS x ; B AS y ; C AS z) FILTER x.v < z.v AND y.v != z.v WITHIN 15 EVENTS"),
    ("BY A", "(A OR B)+ ; C PARTITION BY k WITHIN 7 EVENTS CONSUME BY PARTITION"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("by", "formula"), LONGER)
def test_the_choice_among_all_matches(by, formula):
    generator = np.random.default_rng(len(formula))
    size = 150
    table = pa.table(
        {
            "type": np.array(list("ABC"))[generator.choice(3, size, p=(0.45, 0.35, 0.2))],
            "v": generator.integers(0, 9, size),
            "k": generator.integers(0, 3, size),
        }
    )
    everything = {}
    for n, c in complex_events(cerflow.parse(f"SELECT * WHERE {formula}").match(table).to_pylist()):
        everything.setdefault(n, set()).add(c)
    assert len(everything) > 10
    different = False
    for strategy in COMPARING:
        query = cerflow.parse(f"SELECT {strategy} {by} * WHERE {formula}")
        labels = [reference.label for reference in query.tree.by]
        expected = {(n, c) for n, found in everything.items() for c in kept_by(strategy, found, labels)}
        different |= expected != {(n, c) for n, found in everything.items() for c in kept_by(strategy, found)}
        assert complex_events(query.match(table).to_pylist()) == expected
        recognizer = query.recognizer(table.schema)
        found = []
        for start in range(0, size, 37):
            found += recognizer.push(table.slice(start, 37)).to_pylist()
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
        assert complex_events(found) == expected
        counted = cerflow.parse(query.text.replace("*", "COUNT(*) AS n", 1)).match(table).to_pylist()
        assert sum(row["n"] for row in counted) == len(expected)
    assert different


def test_detection_needs_no_order():
    query = cerflow.parse("SELECT LAST BY B NONE WHERE A ; B ; C")
    plain = cerflow.parse("SELECT NONE WHERE A ; B ; C")
    assert query.match(TABLE).to_pylist() == plain.match(TABLE).to_pylist()
    assert query.plan(cerflow.Schema(TABLE.schema)).transducer == plain.plan(cerflow.Schema(TABLE.schema)).transducer


# --- what is refused, and what is shown -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("NEXT BY xx * WHERE A AS x", "xx", "unknown label 'xx'"),
        ("* WHERE NEXT BY xx (A AS x)", "xx", "unknown label 'xx'"),
        ("* WHERE A AS x ; LAST BY y, x (B AS y)", "x", "'x' is not a label of the formula in which LAST chooses"),
        ("* WHERE MAX BY A (NOT(A)) ; A", "A", "'A' is not a label of the formula in which MAX chooses"),
        ("* WHERE NEXT BY A (PROJECT B (A ; B))", "A", "'A' is not a label of the formula in which NEXT chooses"),
        ("* WHERE NEXT BY A, B, A (A ; B)", "A", "BY lists 'A' twice"),
        ("STRICT BY x * WHERE A AS x", "x", "STRICT does not compare positions"),
        ("ANY BY x * WHERE A AS x", "x", "ANY does not compare positions"),
        ("* WHERE STRICT BY x (A AS x)", "BY", r"unexpected 'BY', expected '\('"),
        ("* WHERE NEXT BY (A AS x)", "(", r"unexpected '\(', expected a name"),
    ],
)
def test_refusals(text, place, message):
    text = f"SELECT {text}"
    with pytest.raises((QueryError, QuerySyntaxError), match=message) as caught:
        cerflow.parse(text)
    span = caught.value.span
    assert text[span.start : span.end] == place


def test_a_label_that_is_nearly_right_is_suggested():
    for text in ("SELECT NEXT BY xx * WHERE A AS x", "SELECT * WHERE A AS x ; MAX BY x (B AS xx)"):
        with pytest.raises(QueryError) as caught:
            cerflow.parse(text)
        assert "Did you mean" in str(caught.value)


@pytest.mark.parametrize("text", ["SELECT NEXT BY x * WHERE A AS x", "SELECT * WHERE NEXT BY x (A AS x)"])
def test_first_order_matches_have_no_labels(text):
    with pytest.raises(QueryError, match="BY has nothing to compare"):
        cerflow.parse(text, reading="first-order")


def test_trees_say_what_cannot_be_compared():
    with pytest.raises(QueryError, match="ANY does not compare positions"):
        Selection(Strategy.ANY, read("A").tree, (LabelReference("A"),))
    with pytest.raises(QueryError, match="ALL does not compare positions"):
        query_of(read("A"), by="A")
    with pytest.raises(TypeError, match="max of a value compares no matches"):
        max_(label("x").v, by="x")


def test_the_builder_makes_the_same_trees():
    x, pattern = label("x"), (read("A").as_("x") >> read("B")).as_("y")
    written = "(A AS x ; B) AS y"
    for function, name in ((next_, "NEXT"), (last, "LAST"), (max_, "MAX")):
        assert function(pattern, by=x).tree == cerflow.parse_formula(f"{name} BY x ({written})")
        assert function(pattern, by=[x, "y"]).tree == cerflow.parse_formula(f"{name} BY x, y ({written})")
        assert function(pattern).tree == cerflow.parse_formula(f"{name}({written})")
        query = query_of(pattern, "x", strategy=name, by=["x", "y"])
        assert query == cerflow.parse(f"SELECT {name} BY x, y x WHERE {written}").tree


def test_by_may_be_a_name():
    for text in (
        "SELECT NEXT by WHERE A AS by",
        "SELECT LAST by[v] WHERE A AS by",
        "SELECT MAX by.v AS n WHERE A AS by",
    ):
        assert cerflow.parse(text).tree.by == ()
    query = cerflow.parse("SELECT NEXT BY by by, A WHERE A AS by")
    assert [reference.label for reference in query.tree.by] == ["by"]
    assert len(query.tree.projection.items) == 2


def test_explain_shows_the_order():
    text = "SELECT LAST BY x, y * WHERE A AS x ; B AS y"
    assert "LAST BY x, y" in cerflow.parse(text).explain()


def test_a_snapshot_of_another_order_is_refused():
    recognizer = cerflow.parse("SELECT LAST BY A * WHERE A ; B ; C").recognizer(TABLE.schema)
    with pytest.raises(cerflow.CerflowError):
        cerflow.Recognizer.restore(cerflow.parse("SELECT LAST BY B * WHERE A ; B ; C"), recognizer.snapshot())


@pytest.mark.parametrize(
    ("rewriting", "text", "expected"),
    [
        (push_down_labels, "NEXT BY A (A ; B) AS x", "NEXT BY A (A ; B) AS x"),
        (push_down_labels, "NEXT(A ; B) AS x", "NEXT(A AS x ; B AS x)"),
        (push_down_renames, "LAST BY A (A ; B) [A -> x]", "LAST BY A (A ; B) [A -> x]"),
        (push_down_renames, "LAST BY x (((A ; B) [A -> x]) ; C)", "LAST BY x ((A [A -> x] ; B) ; C)"),
        (push_down_filters, "MAX BY A ((A ; B) FILTER A.v > 1)", "MAX BY A ((A FILTER A.v > 1) ; B)"),
        (
            push_down_labels,
            "(LAST BY x (A AS x ; B) FILTER x.v > 1) AS x",
            """(LAST BY "x'1" (A AS "x'1" ; B) AS x FILTER "x'1".v > 1) ["x'1" -> x]""",
        ),
    ],
)
def test_rewritings(rewriting, text, expected):
    found = rewriting(cerflow.parse_formula(text))
    assert found == cerflow.parse_formula(expected)
    for types in ("ABAB", "AABBC"):
        events = stream_of([{"type": name, "t": k, "v": k} for k, name in enumerate(types)])
        assert meaning(found, events) == meaning(cerflow.parse_formula(text), events)


@pytest.mark.parametrize(
    ("rewriting", "error", "text", "message"),
    [
        (push_down_filters, UnsupportedQueryError, "NEXT BY A (A ; B) FILTER A.v > 1", "would have to pass NEXT"),
        (second_order_to_first_order, UnsupportedQueryError, "NEXT BY A (A ; B)", "NEXT BY chooses a match by its"),
        (first_order_to_second_order, QueryError, "NEXT BY A (A ; B)", "BY has nothing to compare"),
        (strict_to_sequences, UnsupportedQueryError, "STRICT(LAST BY A (A ; B))", "STRICT is around LAST"),
    ],
)
def test_what_cannot_be_rewritten(rewriting, error, text, message):
    with pytest.raises(error, match=message):
        rewriting(cerflow.parse_formula(text))
