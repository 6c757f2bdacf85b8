"""What each construct of conditions and expressions is read as."""

from __future__ import annotations

import pytest

from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.parser import parse_condition, parse_expression
from support.conditions import attribute, compare


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x.a = 1", compare("x.a", "=", 1)),
        ("x.a <> 1", compare("x.a", "!=", 1)),
        ("x.a != 1", compare("x.a", "!=", 1)),
        ("x.a<=y.b", compare("x.a", "<=", "y.b")),
        ("x.a>=1.5", compare("x.a", ">=", 1.5)),
        ("x.a > -5", compare("x.a", ">", -5)),
        ("x.a = 'it''s'", compare("x.a", "=", "it's")),
        ("x.a = TRUE", compare("x.a", "=", True)),
        ("x.a = null", compare("x.a", "=", None)),
        ("x.a", compare("x.a", "=", True)),
        ("NOT x.a", c.Not(compare("x.a", "=", True))),
        ("x[a]", c.Bracket("x", compare("a", "=", True))),
        ("TRUE", c.Constant(True)),
        ("(false)", c.Constant(False)),
        ("NOT TRUE", c.Not(c.Constant(True))),
        ("x.a LIKE 'a%'", c.Like(attribute("x.a"), "a%")),
        ("x.a not like 'a%'", c.Like(attribute("x.a"), "a%", negated=True)),
        ("x.a REGEXP '^a+'", c.Regexp(attribute("x.a"), "^a+")),
        ("x.a NOT REGEXP '^a+'", c.Regexp(attribute("x.a"), "^a+", negated=True)),
        ("x.a IN (1, -2.5, 'b', NULL)", c.In(attribute("x.a"), tuple(map(c.Literal, (1, -2.5, "b", None))))),
        ("x.a IN {1, 2}", c.In(attribute("x.a"), (c.Literal(1), c.Literal(2)))),
        ("x.a IN ()", c.In(attribute("x.a"), ())),
        ("x.a NOT IN (1)", c.In(attribute("x.a"), (c.Literal(1),), negated=True)),
        ("x.a IN {1..5}", c.Between(attribute("x.a"), c.Literal(1), c.Literal(5))),
        ("x.a IN {1.5..}", c.Between(attribute("x.a"), c.Literal(1.5), None)),
        ("x.a IN {..-5}", c.Between(attribute("x.a"), None, c.Literal(-5))),
        ("x.a IN {y.b..5}", c.Between(attribute("x.a"), attribute("y.b"), c.Literal(5))),
        ("x.a NOT IN {1..5}", c.Between(attribute("x.a"), c.Literal(1), c.Literal(5), negated=True)),
        ("x.a IN RANGE(1, 5)", c.Between(attribute("x.a"), c.Literal(1), c.Literal(5))),
        ("x.a not in range(1, 5)", c.Between(attribute("x.a"), c.Literal(1), c.Literal(5), negated=True)),
        ("x.a BETWEEN y.b AND 5", c.Between(attribute("x.a"), attribute("y.b"), c.Literal(5))),
        ("x.a IS NULL", c.IsNull(attribute("x.a"))),
        ("x.a IS NOT NULL", c.IsNull(attribute("x.a"), negated=True)),
        ("p(x, y)", c.PredicateCall("p", (c.LabelReference("x"), c.LabelReference("y")))),
        ("Near()", c.PredicateCall("Near", ())),
        (
            "p(x.a, -y.b, 3, 'x')",
            c.PredicateCall("p", (attribute("x.a"), c.Negative(attribute("y.b")), c.Literal(3), c.Literal("x"))),
        ),
        (
            "x[p((a), a + 1, y, TRUE)]",
            c.Bracket(
                "x",
                c.PredicateCall(
                    "p",
                    (
                        attribute("a"),
                        c.Arithmetic("+", attribute("a"), c.Literal(1)),
                        c.LabelReference("y"),
                        c.Literal(True),
                    ),
                ),
            ),
        ),
        ('"count"(x)', c.PredicateCall("count", (c.LabelReference("x"),))),
        ("increasing(x.a)", c.SetTest("increasing", attribute("x.a"))),
        ("NonDecreasing(x.a)", c.SetTest("nondecreasing", attribute("x.a"))),
        ("x[a > 10 AND b < 5]", c.Bracket("x", c.And(compare("a", ">", 10), compare("b", "<", 5)))),
        ("x[a > y.b]", c.Bracket("x", compare("a", ">", "y.b"))),
        ("x[type = 'A']", c.Bracket("x", compare("type", "=", "A"))),
        ("x.filter = 1", compare("x.filter", "=", 1)),
        ("x.not = 1", compare("x.not", "=", 1)),
        ("x[limit > 3 AND from = 2]", c.Bracket("x", c.And(compare("limit", ">", 3), compare("from", "=", 2)))),
        ("x[last IS NULL]", c.Bracket("x", c.IsNull(attribute("last")))),
        ("x[3 < limit]", c.Bracket("x", c.Comparison(Operator.LT, c.Literal(3), attribute("limit")))),
        ("x[p(EVENT, y)]", c.Bracket("x", c.PredicateCall("p", (c.LabelReference(None), c.LabelReference("y"))))),
    ],
)
def test_condition(text: str, tree: c.Condition) -> None:
    assert parse_condition(text) == tree


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("x.a = 1 OR x.a = 2 AND x.b = 3", "x.a = 1 OR (x.a = 2 AND x.b = 3)"),
        ("NOT x.a = 1 AND x.b = 2", "(NOT x.a = 1) AND x.b = 2"),
        ("NOT x.a IN (1)", "NOT (x.a IN (1))"),
        ("x.a BETWEEN 1 AND 2 AND x.b = 3", "(x.a BETWEEN 1 AND 2) AND x.b = 3"),
        ("x.id = z.id = 1", "x.id = z.id AND z.id = 1"),
        ("1 < x.a <= y.a + 1 < 9", "(1 < x.a AND x.a <= y.a + 1) AND y.a + 1 < 9"),
        ("NOT 1 < x.a < 3", "NOT (1 < x.a AND x.a < 3)"),
        ("x.a + 1 * 2 - 3 > 0", "((x.a + (1 * 2)) - 3) > 0"),
        ("x.a / 2 % 3 * 4 = 0", "(((x.a / 2) % 3) * 4) = 0"),
        ("-x.a * 2 = 0", "(-(x.a)) * 2 = 0"),
        ("(x.a + 1) > 2 AND (x.a > 1)", "x.a + 1 > 2 AND x.a > 1"),
    ],
)
def test_precedence_in_conditions(text: str, grouped: str) -> None:
    assert parse_condition(text) == parse_condition(grouped)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("-5", c.Literal(-5)),
        ("- 5", c.Literal(-5)),
        ("-(5)", c.Negative(c.Literal(5))),
        ("-(-5)", c.Negative(c.Literal(-5))),
        ("- -5", c.Negative(c.Literal(-5))),
        ("-x.a", c.Negative(attribute("x.a"))),
        ("1 - -2", c.Arithmetic("-", c.Literal(1), c.Literal(-2))),
        ("1-2", c.Arithmetic("-", c.Literal(1), c.Literal(2))),
        ("007", c.Literal(7)),
        ("1.50", c.Literal(1.5)),
        (".5", c.Literal(0.5)),
        ("1e300", c.Literal(1e300)),
        ("2E-3", c.Literal(0.002)),
        ("9223372036854775807", c.Literal(2**63 - 1)),
        ("-9223372036854775808", c.Literal(-(2**63))),
        ("ABS(x.a)", c.Function("abs", (attribute("x.a"),))),
        ("length('abc')", c.Function("length", (c.Literal("abc"),))),
        ("position(x)", c.Function("position", (c.LabelReference("x"),))),
        ('time("filter")', c.Function("time", (c.LabelReference("filter"),))),
        ("COUNT(x)", c.Aggregate("count", c.LabelReference("x"))),
        ("count(x.a)", c.Aggregate("count", attribute("x.a"))),
        ("sum(x.a * 2)", c.Aggregate("sum", c.Arithmetic("*", attribute("x.a"), c.Literal(2)))),
        ("max(x.a)", c.Aggregate("max", attribute("x.a"))),
        ("LAST /* of */ (x.a)", c.Aggregate("last", attribute("x.a"))),
        ('"a b"."c d"', c.Attribute("a b", "c d")),
    ],
)
def test_expression(text: str, tree: c.Expression) -> None:
    assert parse_expression(text) == tree


def test_bare_attributes_on_demand() -> None:
    assert parse_condition("price > 1", bare_attributes=True) == compare("price", ">", 1)
    assert parse_expression("price", bare_attributes=True) == attribute("price")


def test_the_time_and_position_of_the_current_event_are_arguments_of_a_predicate() -> None:
    # They were read as labels called "time" and "position".
    assert str(parse_condition("x[near(time(), position())]")) == "x[near(time(EVENT), position(EVENT))]"
