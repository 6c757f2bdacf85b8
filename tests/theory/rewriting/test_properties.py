"""The properties of formulas that the papers define, and the parts that lack them."""

import pytest
from hypothesis import given

import cerflow
from cerflow.automata import compile_cepl
from cerflow.base.errors import QueryError
from cerflow.language.formula import As, Disjunction, EventType, Filter, Formula, Iteration, Sequence
from cerflow.language.node import walk
from cerflow.rewritings import (
    bound_variables,
    defined_variables,
    is_bounded,
    is_locally_parametrized,
    is_safe,
    is_well_formed,
    safe_form,
)
from support.generators.first_order import first_order_formulas
from support.runners import examples

#: 003 §3: formulas 2, 3 and 5, and the examples of bound.
PHI2 = "((T AS x)+ ; H AS y) FILTER x.id = y.id"
PHI3 = "((T AS x)+ FILTER x.id = y.id) ; H AS y"
PHI3_IN = "(T AS x FILTER x.id = y.id)+ ; H AS y"
PHI4 = "(((T AS x FILTER x.value < -40) OR (T AS x FILTER x.value > 50)) ; T AS y) FILTER y.id = x.id"


@pytest.mark.parametrize(
    ("text", "well_formed", "bounded"),
    [
        (PHI2, False, False),
        (PHI3_IN, True, False),
        (PHI4, True, True),
        ("(T AS x OR H AS y) FILTER x.value > 0", False, False),
        ("T AS x ; (T AS x OR H AS y)", True, False),
        ("(T AS x FILTER x.v > 1)+ ; H AS y", True, True),
        ("A AS x ; (B AS y FILTER y.v > x.v)", True, False),
        ("A : B", True, False),
    ],
)
def test_well_formed_and_bounded(text, well_formed, bounded):
    for form in (text, cerflow.parse_formula(text), cerflow.parse(f"SELECT * WHERE {text}") if bounded else text):
        assert bool(is_well_formed(form)) is well_formed
        assert bool(is_bounded(form)) is bounded


def test_what_lacks_the_property():
    found = is_well_formed(PHI2)
    assert repr(found) == (
        "<Property False: no formula around the filter binds 'x' in T AS x+ ; H AS y FILTER x.id = y.id>"
    )
    found = is_bounded(PHI3_IN)
    assert found.subformula == cerflow.parse_formula("T AS x FILTER x.id = y.id")
    assert found.reason == "the filtered formula does not bind 'y'"
    found = is_safe("C ; (A AS x ; B AS x)")
    assert (found.subformula, found.reason) == (cerflow.parse_formula("A AS x ; B AS x"), "both sides of ; define 'x'")
    found = is_locally_parametrized("(A AS x ; B AS y) FILTER x.v > 1 AND x.v < y.v")
    assert found.reason == "x.v > 1 is not on the assignment of its variable"
    assert repr(is_safe("A AS x ; B AS y")) == "<Property True>"
    with pytest.raises(TypeError, match="not of type int"):
        is_safe(3)


def test_the_two_definitions_of_bound():
    text = "A AS x OR B AS y"
    assert bound_variables(text) == frozenset()
    assert bound_variables(text, union=True) == {"x", "y"}
    assert not is_well_formed(f"({text}) FILTER x.v > 1")
    assert is_well_formed(f"({text}) FILTER x.v > 1", union=True)
    assert bound_variables("(A AS x)+ ; B AS y", union=True) == {"y"}


def test_defined_variables():
    assert defined_variables("(A AS x)+ ; B AS y") == {"x", "y"}
    assert defined_variables("(A AS x)+ ; B AS y", outside_iterations=True) == {"y"}


def test_ill_formed_formulas_have_no_safe_form():
    with pytest.raises(QueryError, match="unknown variable 'y'"):
        safe_form(cerflow.parse_formula("A AS x FILTER y.v > 1"))


CORE = (EventType, As, Filter, Disjunction, Sequence, Iteration)


@examples(300)
@given(first_order_formulas())
def test_bounded_formulas_have_automata(formula):
    if is_bounded(formula) and all(isinstance(n, CORE) for n in walk(formula) if isinstance(n, Formula)):
        compile_cepl(formula)
