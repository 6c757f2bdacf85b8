import pytest

from cerflow.base.errors import QueryError
from cerflow.language.parser import parse_formula
from cerflow.logic.analysis.first_order import (
    bound_variables,
    check_first_order,
    defined_variables,
    is_safe,
    is_well_formed,
    variables,
)
from support.generators.first_order import is_unary
from support.golden import PHI1, PHI1_PUSHED, PHI2, PHI3, PHI4, PHI5, PHI6, UNSAFE


def test_variables_of_the_example():
    formula = parse_formula("(T AS x ; (H AS y)+) FILTER z.id = 1")
    assert variables(formula) == {"x", "y", "z"}
    assert defined_variables(formula) == {"x", "y"}
    assert defined_variables(formula, outside_iterations=True) == {"x"}


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("T AS x", {"x"}),
        ("T", set()),
        ("(T AS x)+", set()),
        ("T AS x ; H AS y", {"x", "y"}),
        ("T AS x OR H AS y", set()),
        ("(T AS x ; H AS y) OR H AS y", {"y"}),
        ("T AS x FILTER x.v > 1", {"x"}),
        ("NEXT(T AS x)", {"x"}),
    ],
)
def test_bound(text, bound):
    assert bound_variables(parse_formula(text)) == bound


@pytest.mark.parametrize(
    ("text", "well_formed", "safe", "unary"),
    [
        (PHI1, True, True, True),
        (PHI1_PUSHED, True, True, True),
        (PHI2, True, True, True),
        (PHI3, True, True, True),
        (PHI4, True, True, False),
        (PHI5, False, True, True),
        (PHI6, True, True, True),
        (UNSAFE, True, False, True),
        ("(T AS y FILTER y.id = x.id)+", False, True, False),
    ],
)
def test_static_properties(text, well_formed, safe, unary):
    formula = parse_formula(text)
    assert bool(is_well_formed(formula)) is well_formed
    assert bool(is_safe(formula)) is safe
    assert is_unary(formula) is unary


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("T+ AS x", "T+ AS x", "AS labels an event type, but 'x' labels a formula"),
        ("T AS x : H AS y", "T AS x : H AS y", "support ':'"),
        ("T AS x FILTER z.v = 1", "z.v", "unknown variable 'z'"),
        ("(T AS x)+ FILTER x.v = 1", "x.v", "'x' may have no event here"),
        ("(T AS x OR H AS y) FILTER x.v = 1", "x.v", "'x' may have no event here"),
        ("T AS x ; ((T AS x OR H AS y) FILTER x.v = 1)+", "x.v", "'x' may have no event here"),
        ("T ; NOT(H FILTER H.v = x.v)", "x.v", "unknown variable 'x'"),
        ("T ; (H AS y FILTER T.v = 1)", "T.v", "unknown variable 'T'"),
    ],
)
def test_what_has_no_first_order_reading(text, place, message):
    with pytest.raises(QueryError) as caught:
        check_first_order(parse_formula(text))
    error = caught.value
    assert message in error.reason
    assert text[error.span.start : error.span.end] == place


@pytest.mark.parametrize(
    "text", [PHI1, PHI2, PHI3, PHI4, PHI6, UNSAFE, "T AS x ; NOT(H FILTER H.v = x.v)", "NEXT(T AS x) WITHIN 3 EVENTS"]
)
def test_what_has_a_first_order_reading(text):
    check_first_order(parse_formula(text))


def test_deep_formulas():
    formula = parse_formula(" ; ".join(f"T AS x{i}" for i in range(1000)))
    assert len(bound_variables(formula)) == 1000
    assert is_safe(formula)
    assert is_well_formed(formula)
