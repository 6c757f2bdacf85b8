"""Cases of an event that do the same are put together."""

import random

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.operators import Operator
from cerflow.language.condition import Attribute, Comparison, Condition, Literal, Not
from cerflow.logic.conditions.cases import merged_cases
from cerflow.logic.conditions.connectives import conjunction
from cerflow.logic.conditions.guards import Satisfied


def above(name: str) -> Condition:
    return Comparison(Operator.GT, Attribute(None, name), Literal(1))


A, B, C = map(above, "abc")


def fails(*parts: Condition) -> Condition:
    return Not(Satisfied(conjunction(list(parts))))


@pytest.mark.parametrize(
    ("cases", "merged"),
    [
        ([[A], [fails(A)]], [()]),
        ([[A, B], [fails(A, B)]], [()]),
        ([[fails(A, B)], [B, A]], [()]),
        ([[C, A, B], [C, fails(A, B)]], [(C,)]),
        ([[A, B], [fails(A), B]], [(B,)]),
    ],
)
def test_a_conjunction_and_its_failure_are_one_case(cases, merged):
    assert merged_cases(cases) == merged


@pytest.mark.parametrize("cases", [[[A], [fails(A, B)]], [[A, B, C], [fails(A, B)]], [[A, B], [C, fails(A, B)]]])
def test_cases_that_leave_something_out_are_not(cases):
    assert len(merged_cases(cases)) == 2


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX"])
@pytest.mark.parametrize("window", ["", " WITHIN 4 EVENTS"])
def test_choices_among_kinds_of_several_conditions(strategy, window):
    source = random.Random(5)
    rows = [{n: source.choice([1, 2, None]) for n in "abc"} for _ in range(40)]
    text = f"DEFINE x AS a > 1 AND b > 1, y AS a > 1 AND c > 1 SELECT {strategy} * WHERE x ; y{window}"
    query, events = cerflow.parse(text), pa.Table.from_pylist(rows)
    found, wanted = (query.match(events, runner=runner).to_pylist() for runner in ("engine", "semantics"))
    assert sorted(map(repr, found)) == sorted(map(repr, wanted)) != []
