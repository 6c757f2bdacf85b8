"""Translations between first-order and second-order formulas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.language.parser import parse_formula
from cerflow.logic.analysis.first_order import check_first_order, is_safe, is_well_formed, variables
from cerflow.logic.analysis.scopes import resolve
from cerflow.theory.rewriting.first_order.reading import first_order_to_second_order, second_order_to_first_order
from support.generators.conditions import Fragment
from support.generators.first_order import first_order_formulas, is_unary, related_formulas, small_streams
from support.generators.queries import formulas, stream_of, streams
from support.golden import PHI1, PHI2, PHI3, PHI4, PHI6, SENSORS, UNSAFE, separation_4_6
from support.meanings import first_order_matches, readable, stream, supports
from support.runners import examples


@examples(400)
@given(st.one_of(first_order_formulas(depth=4), related_formulas().filter(is_well_formed)), small_streams())
def test_theorem_4_5(formula, rows):
    second = first_order_to_second_order(formula)
    if second is not None:
        assert not any(resolve(second).outer.values())
        assert readable(second)
    events = stream(rows)
    assert supports(second, events) == first_order_matches(formula, events)


@examples(100)
@given(first_order_formulas(strategies=True), small_streams())
def test_theorem_4_5_with_strategies_and_windows(formula, rows):
    try:
        second = first_order_to_second_order(formula)
    except UnsupportedQueryError:
        return
    events = stream(rows)
    assert supports(second, events) == first_order_matches(formula, events)


def test_some_of_one_event_is_its_condition_in_first_order_terms():
    first = second_order_to_first_order(parse_formula("A AS x FILTER SOME x: x.v > 1"))
    assert first == parse_formula("A AS x FILTER x.v > 1")


@examples(200)
@given(
    formulas(Fragment(relating=False, outer=False, strict=False, projection=False, windows=False)), streams(max_size=4)
)
def test_theorem_4_3_backwards(formula, rows):
    try:
        first = second_order_to_first_order(formula)
    except UnsupportedQueryError:
        return
    check_first_order(first)
    assert is_safe(first)
    assert is_unary(first)
    assert readable(first)
    events = stream_of(rows[:3])
    # All valuations are enumerated.
    if len(variables(first)) > 7:
        return
    assert first_order_matches(first, events) == supports(formula, events)


@pytest.mark.parametrize("text", [PHI1, PHI2, PHI3, PHI4, PHI6])
def test_examples_of_the_theory(text):
    formula, events = parse_formula(text), stream(SENSORS)
    assert supports(first_order_to_second_order(formula), events) == first_order_matches(formula, events)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        # Examples 4.1 and 4.2
        (
            "(H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z) FILTER x.id = z.id",
            "(((H AS x ; (T AS y)+) FILTER y.id = x.id) ; H AS z) FILTER x.id = z.id",
        ),
        ("(A AS x ; B AS y) FILTER x.v = y.v", "(A AS x ; B AS y) FILTER x.v = y.v"),
        # The label x would have the events of both.
        (
            "(A AS x ; B AS y ; (C AS x)+) FILTER x.v = y.v",
            """((A AS x AS "x'1" ; B AS y ; (C AS x)+) FILTER "x'1".v = y.v) ["x'1" -> x]""",
        ),
        # Neither variable is bound where the condition stands.
        (
            "(A AS x ; B AS y) ; ((C AS z FILTER x.v = y.v) OR C AS w)",
            "((A AS x ; B AS y) FILTER x.v = y.v) ; C AS z OR A AS x ; B AS y ; C AS w",
        ),
        # Three variables, of which one is repeated.
        (
            "A AS x ; B AS y ; (C AS z FILTER z.v = x.v + y.v)+",
            "(A AS x ; B AS y ; (C AS z)+) FILTER z.v = x.v + y.v",
        ),
    ],
)
def test_first_order_to_second_order(text, second):
    found = first_order_to_second_order(parse_formula(text))
    if "OR" in text:
        # Which side of OR comes first does not matter, nor where the condition on both stands.
        events = stream([{"type": t, "v": v} for t, v in zip("ABCBC", (1, 1, 0, 2, 0))])
        assert supports(found, events) == supports(parse_formula(second), events)
    else:
        assert found == parse_formula(second)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (PHI1, "(T AS x FILTER x.value > 40 AND x.id = 0) ; (H AS y FILTER y.value <= 25 AND y.id = 0)"),
        ("A+ FILTER A.v > 1", """(A AS "A'1" FILTER "A'1".v > 1)+"""),
        ("(A ; B) AS x ; C", """A AS x ; B AS "x'1" ; C"""),
        (
            "(A ; EVENT) FILTER A.v = 2",
            """(A AS "A'1" FILTER "A'1".v = 2) ; ((A AS "A'2" FILTER "A'2".v = 2) OR NOT(A))""",
        ),
        ("(A ; NOT(A)) FILTER A.v = 2", """(A AS "A'1" FILTER "A'1".v = 2) ; NOT(A)"""),
    ],
)
def test_second_order_to_first_order(text, first):
    assert second_order_to_first_order(parse_formula(text)) == parse_formula(first)


def test_theorem_4_6():
    text = "R AS x ; ((S AS y ; T AS z) FILTER x.a = y.a + z.a)+"
    assert any(first_order_matches(parse_formula(text), stream(separation_4_6(2))))
    with pytest.raises(UnsupportedQueryError, match="relates y, z of each repetition with x outside"):
        first_order_to_second_order(parse_formula(text))


def test_theorem_4_4():
    with pytest.raises(UnsupportedQueryError, match="relates several labels"):
        second_order_to_first_order(parse_formula("(R+ ; T+) FILTER R.a != T.a"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A AS x ; NOT(B FILTER B.v < x.v)", "NOT reads 'x'"),
        ("NEXT((B AS y ; C AS z) FILTER y.v = x.v) ; A AS x", "would have to pass NEXT"),
        ("A AS x ; NEXT(B AS y ; C)", "NEXT compares with all matches in the whole stream"),
    ],
)
def test_what_is_not_translated_to_second_order(text, message):
    with pytest.raises(UnsupportedQueryError, match=message):
        first_order_to_second_order(parse_formula(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A : B", "no StrictSequence"),
        ("PROJECT A (A ; B)", "no Project"),
        ("(A ; B ; EVENT) FILTER A.v = 1 AND B.v = 1", "meets conditions on A and B"),
        ("(A ; NOT(B)) FILTER A.v = 1", r"NOT\(B\) meets conditions on A"),
    ],
)
def test_what_is_not_translated_to_first_order(text, message):
    with pytest.raises(UnsupportedQueryError, match=message):
        second_order_to_first_order(parse_formula(text))


def test_what_cannot_match():
    assert first_order_to_second_order(parse_formula(UNSAFE)) is None


def test_ill_formed():
    with pytest.raises(QueryError, match="unknown variable"):
        first_order_to_second_order(parse_formula("H AS x FILTER y.value <= 30"))


def test_sets_of_one_event_are_not_lifted():
    # In the first-order reading x is one event of each repetition.
    with pytest.raises(UnsupportedQueryError, match="reads sets of events"):
        first_order_to_second_order(parse_formula("A AS y ; (B AS x FILTER count(x) < y.v)+"))
    with pytest.raises(UnsupportedQueryError, match="reads a set of events"):
        second_order_to_first_order(parse_formula("A+ FILTER count(A) < 3"))


@pytest.mark.parametrize("translate", [first_order_to_second_order, second_order_to_first_order])
def test_any_is_not_translated(translate):
    with pytest.raises(UnsupportedQueryError, match="ANY chooses a match by its labels"):
        translate(parse_formula("A AS x ; ANY(B AS y)"))
