import dataclasses
from functools import reduce

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.language.condition import Some
from cerflow.language.formula import As, Disjunction, Filter, Formula, Project, Rename
from cerflow.language.node import walk
from cerflow.language.parser import parse_formula
from cerflow.logic.analysis.scopes import labels_of, resolve
from cerflow.theory.rewriting.filters import push_down_filters
from cerflow.theory.rewriting.labels import outer_labels
from support.generators.conditions import Fragment, conditions
from support.generators.queries import formulas, stream_of, streams
from support.golden import INCREASING, PHI1, PHI2, SENSORS
from support.meanings import complex_events, readable, stream
from support.runners import examples

UNARY = Fragment(relating=False, outer=False, more=True)
EXISTENTIAL = Fragment(relating=False, outer=False, some=True, more=True)


def well_scoped(formula: Formula) -> bool:
    try:
        resolve(formula)
    except QueryError:
        return False
    return True


def on_one_event(formula: Formula) -> bool:
    """Whether FILTER stands on formulas that read one event, and AS and renaming too, but for those above PROJECT."""
    labels = resolve(formula).labels
    return all(
        labels[k].single or (isinstance(n, As | Rename) and any(isinstance(m, Project) for m in walk(n)))
        for k, n in enumerate(walk(formula))
        if isinstance(n, As | Rename | Filter)
    )


@examples(200)
@given(formulas(UNARY), streams(max_size=7))
def test_means_the_same(formula, rows):
    try:
        pushed = push_down_filters(formula)
    except UnsupportedQueryError:
        return
    assert readable(pushed)
    events = stream_of(rows)
    assert complex_events(pushed, events) == complex_events(formula, events)


@st.composite
def alternatives(draw):
    """A condition with SOME on an OR."""
    parts = draw(st.lists(formulas(dataclasses.replace(EXISTENTIAL, depth=1)), min_size=2, max_size=3))
    formula = reduce(Disjunction, parts)
    if draw(st.integers(0, 3)) == 0:
        formula = As(formula, "x")
    labels = sorted(labels_of(formula).assigned)
    relating = dataclasses.replace(EXISTENTIAL, relating=True)
    return Filter(formula, draw(conditions(labels, relating, 1))) if labels else formula


@examples(200)
@given(alternatives().filter(well_scoped) | formulas(EXISTENTIAL), streams(max_size=5))
def test_some_means_the_same(formula, rows):
    try:
        pushed = push_down_filters(formula)
    except UnsupportedQueryError:
        event("refused")
        return
    event("with SOME" if any(isinstance(n, Some) for n in walk(pushed)) else "without")
    assert readable(pushed)
    events = stream_of(rows)
    assert complex_events(pushed, events) == complex_events(formula, events)


@examples(100)
@given(formulas(Fragment(relating=False, outer=False)))
def test_conditions_on_one_label_reach_the_events(formula):
    # The name of a type in a filter over NOT may be bound further out.
    assume(not any(outer for _, outer in outer_labels(formula)))
    assert on_one_event(push_down_filters(formula))


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        (
            PHI1,
            "(T AS x FILTER x.value > 40 AND x.id = 0) ; (H AS y FILTER y.value <= 25 AND y.id = 0)",
        ),
        ("(A ; B) FILTER A.v > 1", "(A FILTER A.v > 1) ; B"),
        ("(A+) FILTER A.v > 1", "(A FILTER A.v > 1)+"),
        ("((A ; B) AS x) FILTER x.v > 1", "(A AS x FILTER x.v > 1) ; (B AS x FILTER x.v > 1)"),
        ("((A ; B) [A -> B]) FILTER B.v > 1", "(A [A -> B] FILTER B.v > 1) ; (B FILTER B.v > 1)"),
        ("((A : B) [A -> x]) FILTER x.v > 1", "(A [A -> x] FILTER x.v > 1) : B"),
        ("(A+ ; B) FILTER A.v > 1 OR A.v = 0", "((A FILTER A.v > 1)+ ; B) OR ((A FILTER A.v = 0)+ ; B)"),
        ("(A ; B) FILTER A.v > 1 OR A.v = 0", "(A FILTER A.v > 1 OR A.v = 0) ; B"),
        ("(A ; B) FILTER FALSE", "(A FILTER FALSE) ; (B FILTER FALSE)"),
        ("PROJECT A, B (A ; C) FILTER A.v > 1", "PROJECT A, B ((A FILTER A.v > 1) ; C)"),
        ("(PROJECT A, B (A ; B)) AS x FILTER x.v > 1", "PROJECT A, B ((A FILTER A.v > 1) ; (B FILTER B.v > 1)) AS x"),
        ("(PROJECT A (A ; B)) [A -> x] FILTER x.v > 1", "PROJECT A ((A FILTER A.v > 1) ; B) [A -> x]"),
        ("((A ; EVENT) FILTER A.v > 1)", "(A FILTER A.v > 1) ; (EVENT FILTER A.v > 1)"),
        ("(A ; B UNLESS C) FILTER C.v > 1 AND A.v > 1", None),
        (
            "(A AS x OR B AS x) FILTER SOME x: x.v > 1",
            "(A AS x FILTER SOME x: x.v > 1) OR (B AS x FILTER SOME x: x.v > 1)",
        ),
        (
            "((A OR B) AS x) FILTER SOME x: x.v > 1",
            "(A AS x FILTER SOME x: x.v > 1) OR (B AS x FILTER SOME x: x.v > 1)",
        ),
        ("(A AS x OR B AS y) FILTER SOME x: x.v > 1", "(A AS x FILTER SOME x: x.v > 1) OR (B AS y FILTER FALSE)"),
        ("(A AS x OR B AS y) FILTER NOT SOME x: x.v > 1", "(A AS x FILTER NOT SOME x: x.v > 1) OR B AS y"),
        (
            "((A AS x ; B) OR C AS x) FILTER SOME x: x.v > 1 AND SOME x: x.w > 1",
            "((A AS x FILTER SOME x: x.v > 1 AND SOME x: x.w > 1) ; B) "
            "OR (C AS x FILTER SOME x: x.v > 1 AND SOME x: x.w > 1)",
        ),
        (
            "((A AS x ; B) OR C) FILTER SOME x: (x.v > 1 OR x.w > x.v)",
            "((A AS x FILTER SOME x: (x.v > 1 OR x.w > x.v)) ; B) OR (C FILTER FALSE)",
        ),
        (
            "(A AS x OR B AS x OR C) FILTER x.v > 1 FILTER SOME x: x.w > 1",
            "(A AS x FILTER x.v > 1 FILTER SOME x: x.w > 1) OR (B AS x FILTER x.v > 1 FILTER SOME x: x.w > 1) "
            "OR (C FILTER FALSE)",
        ),
        ("((A OR B) AND (A OR C)) FILTER A.v > 1", "((A FILTER A.v > 1) OR B) AND (A OR C)"),
    ],
)
def test_rules(text, pushed):
    if pushed is None:
        with pytest.raises(QueryError, match="'C' is not bound here"):
            push_down_filters(parse_formula(text))
    else:
        assert push_down_filters(parse_formula(text)) == parse_formula(pushed)


def test_examples_of_the_theory():
    for text in (PHI1, PHI2):
        formula = parse_formula(text)
        events = stream(SENSORS)
        assert complex_events(push_down_filters(formula), events) == complex_events(formula, events)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (INCREASING, "increasing(HS.value)", "reads a set of events"),
        ("(A ; B) FILTER A.v > B.v", "A.v > B.v", "relates several labels"),
        ("A AS x ; (B FILTER x.v > 1)", "B FILTER x.v > 1", "'x', which is bound outside"),
        ("NEXT(A ; B) FILTER A.v > 1", "A.v > 1", "would have to pass NEXT"),
        ("A+ AS x FILTER SOME x: x.v > 1", "SOME x: x.v > 1", "may be about several events"),
        ("((A ; B) AS x OR C) FILTER SOME x: x.v > 1", "SOME x: x.v > 1", "may be about several events"),
    ],
)
def test_what_cannot_be_pushed(text, place, message):
    with pytest.raises(UnsupportedQueryError, match=message) as caught:
        push_down_filters(parse_formula(text))
    span = caught.value.span
    assert text[span.start : span.end] == place


def test_too_many_choices():
    condition = " AND ".join(f"(A.v > {k} OR A.w > {k})" for k in range(20))
    with pytest.raises(UnsupportedQueryError, match="more than"):
        push_down_filters(parse_formula(f"A+ FILTER {condition}"))


def test_long_sequences():
    text = " ; ".join(f"A AS x{i}" for i in range(1000))
    pushed = push_down_filters(parse_formula(f"({text}) FILTER x7.v > 1"))
    assert sum(isinstance(n, Filter) for n in walk(pushed)) == 1
