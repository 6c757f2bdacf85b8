"""Predicates of sets are not conditions on each event, whatever they look like."""

import pytest

from cerflow.automata.compile.formulas import compile_formula
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.language.parser import parse_formula, parse_sremo
from cerflow.theory.from_automata import as_language_condition
from cerflow.theory.rewriting.filters import push_down_filters
from cerflow.theory.semantics.sremo import SremoDenotation


@pytest.fixture(autouse=True)
def _spread(predicate):
    predicate("spread", of_set=True)(lambda values: values.size > 1)


def test_they_are_not_pushed_down():
    with pytest.raises(UnsupportedQueryError, match="reads a set of events"):
        push_down_filters(parse_formula("A+ AS x FILTER spread(x.v)"))


def test_expressions_with_memory_have_no_sets():
    with pytest.raises(QueryError, match="holds one event"):
        SremoDenotation(parse_sremo("[v > 1] MARK INTO r . [spread(r.v)] MARK"), [])


def test_they_are_not_brought_back_from_automata():
    transducer = compile_formula(parse_formula("(A+ AS x OR B) FILTER spread(x.v)"))
    asked = [t.test for t in transducer.transitions if "∅" in repr(t.test)]
    assert len(asked) == 1
    with pytest.raises(UnsupportedQueryError, match="not a condition on one event"):
        as_language_condition(asked[0])
