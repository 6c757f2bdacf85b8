"""What is printed reads back as the same tree, with no more parentheses than needed."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given

from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language import sremo as r
from cerflow.language.node import Node
from cerflow.language.parser import parse_condition, parse_expression, parse_formula, parse_query, parse_sremo
from cerflow.language.printer import _WRITERS, show
from support.generators.syntax import (
    conditions,
    expressions,
    formulas,
    odd_names,
    projections,
    selects,
    sremos,
    windows,
)

ODD = odd_names()


@given(formulas())
def test_formulas(tree: f.Formula) -> None:
    assert parse_formula(show(tree)) == tree


@given(formulas(ODD, ODD, ODD, ODD, streams=ODD, leaves=4))
def test_formulas_with_odd_names(tree: f.Formula) -> None:
    assert parse_formula(show(tree)) == tree


@given(conditions())
def test_conditions(tree: c.Condition) -> None:
    assert parse_condition(show(tree)) == tree


@given(conditions(ODD, ODD, ODD, leaves=3))
def test_conditions_with_odd_names(tree: c.Condition) -> None:
    assert parse_condition(show(tree)) == tree


@given(conditions(ODD, ODD, ODD, bare=True, leaves=3))
def test_conditions_inside_brackets(tree: c.Condition) -> None:
    assert parse_condition(show(tree), bare_attributes=True) == tree


@given(expressions(leaves=8))
def test_expressions(tree: c.Expression) -> None:
    assert parse_expression(show(tree)) == tree


@given(selects())
def test_queries(tree: s.Select) -> None:
    assert parse_query(show(tree)) == tree


@given(selects(ODD, ODD, ODD, ODD, streams=ODD, leaves=2))
def test_queries_with_odd_names(tree: s.Select) -> None:
    assert parse_query(show(tree)) == tree


@given(sremos())
def test_sremo(tree: r.Sremo) -> None:
    assert parse_sremo(show(tree)) == tree


@given(sremos(ODD, ODD, ODD, ODD, leaves=3))
def test_sremo_with_odd_names(tree: r.Sremo) -> None:
    assert parse_sremo(show(tree)) == tree


@given(windows(ODD))
def test_windows(tree: f.Window) -> None:
    parsed = parse_formula(f"A WITHIN {show(tree)}")
    assert isinstance(parsed, f.Within)
    assert parsed.window == tree


@given(projections(ODD, ODD))
def test_projections(tree: s.Projection) -> None:
    assert parse_query(f"SELECT ALL {show(tree)} WHERE A").projection == tree


# Each text is already as it is printed: nothing can be left out of it.
@pytest.mark.parametrize(
    "text",
    [
        "A ; B ; C",
        "A ; (B ; C)",
        "(A OR B) ; C",
        "A OR B ; C",
        "(A ; B)+ AS x",
        "A+ AS x:+ [x -> y]",
        "A UNLESS B FILTER x.a = 1 WITHIN 1 EVENT FILTER x.b = 2",
        "(A FILTER A.v = 1) ; B",
        "A UNLESS (B WITHOUT C)",
        "A UNLESS B NOT FOLLOWED BY (C UNLESS D) FOR 5 MINUTES",
        "A NOT FOLLOWED BY (B FILTER B.v > A.v) FOR 3 EVENTS WITHIN 10 EVENTS",
        "(A NOT FOLLOWED BY B FOR 2 [v]) ; C",
        "NOT(A FILTER A.v = 1) : EVENT",
        'PROJECT x, "select" (NEXT(START(s>A)))',
        "A WITHIN 1 DAY 2 HOURS 30 MINUTES 1 SECOND 1.5 MILLISECONDS",
        "A WITHIN 10 [limit]",
        "A FILTER (x.a = 1 OR x.b = 2) AND NOT x.c = 3",
        "A FILTER x.a = 1 OR x.b = 2 AND x.c = 3",
        "A FILTER NOT (x.a = 1 AND x.b = 2)",
        "A FILTER x.a + y.b * 2 - (1 - x.c) > -5",
        "A FILTER (x.a + 1) * 2 = -x.b / -(5) % -(-5)",
        "A FILTER x[a > 1 OR b IS NOT NULL] AND y.limit NOT IN ('it''s', -1, TRUE, NULL)",
        "A FILTER x.a NOT BETWEEN 1 AND 2 AND x.b IN {1..} AND x.c NOT IN {..x.d}",
        "A FILTER x.a LIKE '%' AND x.b NOT REGEXP 'b' AND p(x, y) AND increasing(x.a)",
        "A FILTER x.a = 1e+300 AND x.b = 0.1 AND count(x) = 1 AND position(x) < time(y)",
    ],
)
def test_formula_is_printed_with_no_more_than_needed(text: str) -> None:
    assert show(parse_formula(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A",
        "SELECT NEXT NONE FROM s, t WHERE (A WITHIN 1 DAY) FILTER A.v = 1 PARTITION BY a, [b, from] WITHIN 5 EVENTS "
        "CONSUME BY ANY LIMIT 3",
        "SELECT MAX x[a, limit], x.a + 1 AS y, COUNT(*) AS n WHERE A AS x",
        "SELECT max(x.a) AS top WHERE A AS x",
        "SELECT MAX /* strategy */ (x.a + 1) * 2 AS top WHERE A AS x",
        "SELECT NEXT (x.a + 1) * 2 AS top WHERE A AS x",
    ],
)
def test_query_is_printed_with_no_more_than_needed(text: str) -> None:
    assert show(parse_query(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "[type = 'T'] MARK INTO r . [value > r.value] AS high INTO q, r",
        "([TRUE] . [FALSE])* | [TRUE]+? & EPSILON",
        "!([TRUE] . EMPTY) . !![TRUE]*",
        "(![TRUE])*",
        "any([TRUE] INTO r, [p(EVENT, r)]+) . next([a = 1], [b = 1]) . unordered(EPSILON | EMPTY, EPSILON)",
        '[TRUE] INTO r, "empty", "any"',
        "([TRUE] WITHIN 5 EVENTS)+ WITHIN 1 HOUR",
    ],
)
def test_sremo_is_printed_with_no_more_than_needed(text: str) -> None:
    assert show(parse_sremo(text)) == text


def test_durations_in_their_largest_units() -> None:
    assert show(f.DurationWindow(90_000_000)) == "1 MINUTE 30 SECONDS"
    assert show(f.DurationWindow(600_000_000)) == "10 MINUTES"
    assert show(f.DurationWindow(1)) == "0.001 MILLISECONDS"
    assert show(f.DurationWindow(1000)) == "1 MILLISECOND"
    assert show(f.DurationWindow(10_000_000 * 86_400 * 1_000_000)) == "10000000 DAYS"


def _kinds(cls: type[Node]) -> set[type[Node]]:
    below = cls.__subclasses__()
    return set().union(*map(_kinds, below)) if below else {cls}


def test_every_kind_of_node_can_be_printed() -> None:
    # Nodes that belong to no language say themselves how they are written.
    leaves = {*_kinds(Node), f.EventType}
    assert set(_WRITERS) == {kind for kind in leaves if kind.notation is Node.notation and not kind.template}


@pytest.mark.slow
def test_deep_trees_are_printed_without_recursion() -> None:
    depth = 3 * sys.getrecursionlimit()
    formula: f.Formula = f.EventType("A")
    condition: c.Condition = c.Constant(True)
    expression: r.Sremo = r.Epsilon()
    for _ in range(depth):
        formula = f.Disjunction(f.EventType("A"), formula)
        condition = c.Not(condition)
        expression = r.Complement(r.Star(expression))
    assert parse_formula(show(formula)) == formula
    assert parse_condition(show(condition)) == condition
    assert parse_sremo(show(expression)) == expression
    assert repr(condition).startswith("<Not NOT NOT ")
