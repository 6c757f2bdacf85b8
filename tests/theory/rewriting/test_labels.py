import pytest
from hypothesis import given

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.formula import AnyEvent, As, EventType, Filter, NotEvent, Rename
from cerflow.language.node import walk
from cerflow.language.parser import parse_formula
from cerflow.logic.analysis.scopes import labels_of, resolve
from cerflow.theory.rewriting.labels import push_down_labels, push_down_renames, with_labels_replaced
from support.generators.conditions import Fragment
from support.generators.queries import formulas, stream_of, streams
from support.meanings import complex_events, readable
from support.runners import examples

EVERYTHING = Fragment(aggregates=True, more=True)


@examples(300)
@given(formulas(EVERYTHING), streams(max_size=7))
def test_labels_pushed_down(formula, rows):
    try:
        pushed = push_down_labels(formula)
    except UnsupportedQueryError:
        return
    assert readable(pushed)
    events = stream_of(rows)
    assert complex_events(pushed, events) == complex_events(formula, events)


@examples(300)
@given(formulas(EVERYTHING), streams(max_size=7))
def test_renames_pushed_down(formula, rows):
    try:
        pushed = push_down_renames(formula)
    except UnsupportedQueryError:
        return
    assert readable(pushed)
    events = stream_of(rows)
    assert complex_events(pushed, events) == complex_events(formula, events)


@examples(150)
@given(formulas(Fragment(outer=False, more=True)), streams(max_size=7))
def test_replacing_labels_is_renaming_them(formula, rows):
    names = {"A": "A'", "x": "x'", "y": "y'"}
    expected = formula
    for old, new in names.items():
        expected = Rename(expected, old, new)
    events = stream_of(rows)
    assert complex_events(with_labels_replaced(formula, names), events) == complex_events(expected, events)


@examples(100)
@given(formulas(Fragment(outer=False, projection=False)))
def test_where_as_stands(formula):
    pushed = push_down_labels(formula)
    labels = resolve(pushed).labels
    assert all(labels[k].single for k, n in enumerate(walk(pushed)) if isinstance(n, As))


@examples(100)
@given(formulas(Fragment(outer=False, projection=False)))
def test_where_renamings_stand(formula):
    for n in walk(push_down_renames(formula)):
        if isinstance(n, Rename):
            operand = n.operand
            while isinstance(operand, Rename):
                operand = operand.operand
            assert isinstance(operand, EventType | AnyEvent | NotEvent | Filter)


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        ("(A ; B) AS x", "A AS x ; B AS x"),
        ("(A : B)+ AS x", "(A AS x : B AS x)+"),
        ("STRICT(A ; B :+) AS x", "STRICT(A AS x ; (B AS x) :+)"),
        ("((A ; B) FILTER A.v < B.v) AS x", "(A AS x ; B AS x) FILTER A.v < B.v"),
        # The condition means what was called x before.
        (
            "((A AS x ; B) FILTER x.v < B.v) AS x",
            """((A AS "x'1" AS x ; B AS x) FILTER "x'1".v < B.v) ["x'1" -> x]""",
        ),
        # Erratum E16: the type of the event stays.
        (
            "((A ; B) FILTER A.v < B.v) AS A",
            """((A [A -> "A'1"] AS A ; B AS A) FILTER "A'1".v < B.v) ["A'1" -> A]""",
        ),
        ("((A ; B) [A -> y]) AS A", """(A [A -> "A'1"] AS A ; B AS A) ["A'1" -> y]"""),
        ("((A ; B) [A -> y]) AS y", "(A AS y ; B AS y) [A -> y]"),
        ("(PROJECT A (A ; B)) AS x ; C", "(PROJECT A (A ; B)) AS x ; C"),
        ("(A UNLESS B) AS x", "A AS x UNLESS B"),
        ("NEXT(A ; B) AS x", "NEXT(A AS x ; B AS x)"),
        ("ANY(A ; B) AS x", "ANY(A ; B) AS x"),
        ("(A AS y FILTER y.v > 1) AS x", "(A AS y FILTER y.v > 1) AS x"),
    ],
)
def test_rules_for_labels(text, pushed):
    assert push_down_labels(parse_formula(text)) == parse_formula(pushed)


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        ("(A ; B) [A -> x]", "A [A -> x] ; B"),
        ("(A+ AS y ; B) [y -> x]", "A+ AS x ; B"),
        ("((A ; B) FILTER A.v < B.v) [A -> x]", "(A [A -> x] ; B) FILTER x.v < B.v"),
        # x would mean more events than A.
        ("((A ; B AS x) FILTER A.v < B.v) [A -> x]", "((A ; B AS x) FILTER A.v < B.v) [A -> x]"),
        ("((A ; B AS x) FILTER B.v > 0) [A -> x]", "(A [A -> x] ; B AS x) FILTER B.v > 0"),
        ("((A ; EVENT) FILTER A.v < 1) [A -> x]", "((A ; EVENT) FILTER A.v < 1) [A -> x]"),
        ("((A ; EVENT) FILTER A.v < 1) [B -> x]", "(A ; EVENT [B -> x]) FILTER A.v < 1"),
        ("((A ; B) [A -> B]) [B -> A]", "A ; B [B -> A]"),
        ("(PROJECT A (A ; B)) [A -> x]", "(PROJECT A (A ; B)) [A -> x]"),
        ("(A WITHOUT B) [B -> x]", "A WITHOUT B"),
        ("ANY(A ; B) [A -> x]", "ANY(A ; B) [A -> x]"),
    ],
)
def test_rules_for_renamings(text, pushed):
    assert push_down_renames(parse_formula(text)) == parse_formula(pushed)


@pytest.mark.parametrize("push", [push_down_labels, push_down_renames])
def test_labels_bound_further_out_are_not_touched(push):
    text = "A AS x ; (B FILTER B.v < x.v)"
    assert push(parse_formula(text)) == parse_formula(text)
    named = f"({text} ; C) AS x" if push is push_down_labels else f"({text} ; C) [x -> y]"
    with pytest.raises(UnsupportedQueryError, match="'x', which is bound outside") as caught:
        push(parse_formula(named))
    span = caught.value.span
    assert named[span.start : span.end] == "B FILTER B.v < x.v"


def test_labels_that_any_chooses_by():
    with pytest.raises(UnsupportedQueryError, match="ANY chooses by them"):
        push_down_labels(parse_formula("((ANY(A ; B) ; C) FILTER A.v < C.v) AS A"))


def test_no_label_becomes_bound_for_others():
    # x is an event of type x, which happens to be the label of the last event.
    formula = parse_formula("(EVENT FILTER x.v > 1) ; ((A OR B) AS x)")
    with pytest.raises(UnsupportedQueryError, match="a type called 'x'"):
        push_down_labels(formula)


def test_labels_are_kept():
    formula = parse_formula("((A ; B) FILTER A.v < B.v) AS A")
    assert labels_of(push_down_labels(formula)).assigned == {"A", "B"}


def test_long_sequences():
    formula = parse_formula(f"({' ; '.join('A' for _ in range(1000))}) AS x [x -> y]")
    assert sum(isinstance(n, As) for n in walk(push_down_labels(formula))) == 1000
    assert sum(isinstance(n, As) for n in walk(push_down_renames(formula))) == 1
