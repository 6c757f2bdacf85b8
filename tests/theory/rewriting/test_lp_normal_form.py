import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.language.node import walk
from cerflow.language.parser import parse_formula
from cerflow.logic.analysis.first_order import is_safe, is_well_formed
from cerflow.rewritings import is_locally_parametrized
from cerflow.theory.rewriting.first_order.waiting import lp_normal_form
from support.generators.first_order import first_order_formulas, is_unary, related_formulas, small_streams
from support.golden import PHI1, PHI1_PUSHED, PHI2, PHI3, PHI4, PHI5, PHI6, SENSORS, UNSAFE
from support.meanings import first_order_matches, readable, stream
from support.runners import examples


@examples(300)
@given(st.one_of(first_order_formulas(), related_formulas().filter(is_well_formed)), small_streams())
def test_theorem_2(formula, rows):
    normal = lp_normal_form(formula)
    if normal is not None:
        assert is_locally_parametrized(normal)
        assert is_well_formed(normal)
        assert is_safe(normal)
        assert readable(normal)
    events = stream(rows)
    assert first_order_matches(normal, events) == first_order_matches(formula, events)


@examples(300)
@given(
    st.one_of(
        first_order_formulas(strategies=True),
        related_formulas(chosen=True).filter(is_well_formed),
        related_formulas(chosen=True).filter(is_well_formed),
    ),
    small_streams(),
)
def test_theorem_2_with_strategies_and_windows(formula, rows):
    try:
        normal = lp_normal_form(formula)
    except UnsupportedQueryError as error:
        event(error.reason.split(" on ")[0][:40])
        return
    if normal is not None:
        assert is_locally_parametrized(normal)
        assert is_well_formed(normal)
        assert readable(normal)
    events = stream(rows)
    assert first_order_matches(normal, events) == first_order_matches(formula, events)


@pytest.mark.parametrize(("text", "local"), [(PHI1, False), (PHI1_PUSHED, True), (PHI2, False), (PHI6, False)])
def test_which_formulas_are_in_normal_form(text, local):
    assert bool(is_locally_parametrized(parse_formula(text))) is local


@pytest.mark.parametrize("text", [PHI1, PHI2, PHI3, PHI4, PHI6])
def test_examples_of_the_theory(text):
    formula, events = parse_formula(text), stream(SENSORS)
    normal = lp_normal_form(formula)
    assert is_locally_parametrized(normal)
    assert first_order_matches(normal, events) == first_order_matches(formula, events)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (PHI1, PHI1_PUSHED),
        (PHI6, "(T AS x FILTER x.value >= 40) ; T AS y OR (T AS x FILTER x.value < 40) ; H AS y"),
        ("A AS x ; (B AS y FILTER x.v = 1)+", "(A AS x FILTER x.v = 1) ; (B AS y)+"),
        (
            "A AS x ; ((B AS y FILTER x.v = 1) OR C AS z)+",
            "(A AS x FILTER x.v = 1) ; (B AS y OR C AS z)+ OR A AS x ; (C AS z)+",
        ),
        # The same condition in several places is asked once.
        (
            "A AS x ; ((B AS y FILTER x.v = 1) OR C AS z) ; (B AS w FILTER x.v = 1)",
            "(A AS x FILTER x.v = 1) ; B AS y ; B AS w OR (A AS x FILTER x.v = 1) ; C AS z ; B AS w",
        ),
        ("(A AS x ; B AS y) FILTER NOT (x.v = 1 OR x.v > 2)", "(A AS x FILTER x.v != 1 AND x.v <= 2) ; B AS y"),
        ("(A AS x ; B AS y) FILTER x.v = 1 OR x.v > 2", "(A AS x FILTER x.v = 1 OR x.v > 2) ; B AS y"),
        ("(A AS x ; B AS y) FILTER x.v = y.v AND x.v = 1", "(A AS x FILTER x.v = 1) ; B AS y FILTER x.v = y.v"),
        ("(A AS x ; B AS y) FILTER x.v = y.v OR x.v = 1", "(A AS x ; B AS y) FILTER x.v = y.v OR x.v = 1"),
        ("(A AS x ; (B AS x)+) FILTER x.v = 1", "(A AS x FILTER x.v = 1) ; (B AS x)+"),
        (
            "((A AS x FILTER x.v = 1) OR B AS x) FILTER x.w = 2",
            "(A AS x FILTER x.v = 1 AND x.w = 2) OR (B AS x FILTER x.w = 2)",
        ),
        ("A AS x FILTER TRUE AND 1 < 2", "A AS x"),
        ("A AS x OR (B AS y FILTER FALSE)", "A AS x"),
        (
            "STRICT(A AS x ; B AS y) WITHIN 3 EVENTS FILTER x.v = 1",
            "STRICT((A AS x FILTER x.v = 1) ; B AS y) WITHIN 3 EVENTS",
        ),
        ("NEXT(A AS x ; (B AS y FILTER x.v = 1))", "NEXT((A AS x FILTER x.v = 1) ; B AS y)"),
        # A strategy chooses once if a condition on an event outside holds, and once if it does not.
        (
            "A AS x ; NEXT((B AS y FILTER x.v = 1) OR C AS z)",
            "(A AS x FILTER x.v = 1) ; NEXT(B AS y OR C AS z) OR "
            "(A AS x FILTER x.v != 1 OR x.v IS NULL) ; NEXT(C AS z)",
        ),
        (
            "A AS x ; LAST((B AS y ; C AS z FILTER x.s LIKE 'a%') OR D AS w)",
            "(A AS x FILTER x.s LIKE 'a%') ; LAST(B AS y ; C AS z OR D AS w) OR "
            "(A AS x FILTER NOT x.s LIKE 'a%' OR x.s IS NULL) ; LAST(D AS w)",
        ),
        ("A AS x ; MAX((B AS y ; (C AS z FILTER x.v > 3))+)", "(A AS x FILTER x.v > 3) ; MAX((B AS y ; C AS z)+)"),
        ("MAX(A AS x FILTER x.v > 1) FILTER x.w = 2", "MAX(A AS x FILTER x.v > 1 AND x.w = 2)"),
    ],
)
def test_rules(text, normal):
    assert lp_normal_form(parse_formula(text)) == parse_formula(normal)


def test_what_is_in_normal_form_stays():
    for text in (PHI1_PUSHED, "A AS x ; (B AS y FILTER y.v = x.v)+", "A ; NOT(B FILTER B.v > 1)"):
        assert lp_normal_form(parse_formula(text)) == parse_formula(text)


@pytest.mark.parametrize("text", [UNSAFE, "A AS x FILTER FALSE", "(A AS x ; (B AS y FILTER 1 > 2))+"])
def test_what_cannot_match(text):
    assert lp_normal_form(parse_formula(text)) is None


def test_no_growth_without_need():
    # Twelve branches with conditions of their own: one copy of the event for each, not one for every set of them.
    branches = " OR ".join(f"(B AS y FILTER x.v = {k})" for k in range(12))
    normal = lp_normal_form(parse_formula(f"A AS x ; ({branches})"))
    assert sum(1 for _ in walk(normal)) < 200
    assert is_unary(normal)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("NEXT(A AS x ; B AS y) FILTER x.v = 1", "NEXT(A AS x ; B AS y)", "'x' would have to pass NEXT"),
        (
            "(LAST(A AS x ; B AS y) ; C AS z) FILTER y.v > 1 OR y.v = 0",
            "LAST(A AS x ; B AS y)",
            "'y' would have to pass LAST",
        ),
        # Where x is not bound outside, it is another x for each match that is compared.
        (
            "MAX(((A AS y FILTER x.v = 1) OR B AS x) ; C AS z) OR D AS w",
            "x.v",
            "'x' may have no event here",
        ),
    ],
)
def test_no_condition_passes_a_strategy(text, place, message):
    with pytest.raises((QueryError, UnsupportedQueryError), match=message) as caught:
        lp_normal_form(parse_formula(text))
    assert text[caught.value.span.start : caught.value.span.end] == place


def test_too_large():
    branches = " OR ".join(f"(B AS y FILTER x.v = {k})" for k in range(30))
    with pytest.raises(UnsupportedQueryError, match="more than 50000 parts"):
        lp_normal_form(parse_formula(f"A AS x ; ({branches})+"))


def test_erratum_e9():
    # The body of + binds x again, but only in one branch.
    with pytest.raises(QueryError, match="'x' may have no event here"):
        lp_normal_form(parse_formula("A AS x ; ((A AS x OR B AS y) FILTER x.v = 1)+"))


def test_ill_formed():
    with pytest.raises(QueryError, match="unknown variable 'y'"):
        lp_normal_form(parse_formula(PHI5))


def test_long_sequences():
    text = " ; ".join(f"A AS x{i}" for i in range(500))
    conditions = " AND ".join(f"x{i}.v > 1" for i in range(500))
    normal = lp_normal_form(parse_formula(f"({text}) FILTER {conditions}"))
    assert is_locally_parametrized(normal)
