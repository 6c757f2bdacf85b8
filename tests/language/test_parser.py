"""What each construct of formulas, conditions and queries is read as."""

from __future__ import annotations

import sys

import pytest

from cerflow.errors import Span
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language.node import walk
from cerflow.language.parser import _grammar, parse_condition, parse_expression, parse_formula, parse_query
from cerflow.values.operators import Operator

A, B, C, D = (f.EventType(name) for name in "ABCD")
STOCK = (
    "SELECT * FROM Stock WHERE (SELL as a; BUY as b) FILTER a[name = 'INTC'] AND b[price > 26.0] "
    "PARTITION BY [name] WITHIN 10 [stock_time] CONSUME BY ANY"
)


def attribute(text: str) -> c.Attribute:
    label, _, name = text.rpartition(".")
    return c.Attribute(label or None, name)


def compare(left: str, sign: str, right: object) -> c.Comparison:
    other = attribute(right) if isinstance(right, str) and "." in right else c.Literal(right)
    return c.Comparison(Operator(sign), attribute(left), other)


# -- formulas


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", A),
        ("s>A", f.EventType("A", "s")),
        ('"my type"', f.EventType("my type")),
        ('"say ""hi"""', f.EventType('say "hi"')),
        ('"FILTER"', f.EventType("FILTER")),
        ("EVENT", f.AnyEvent()),
        ("event", f.AnyEvent()),
        ("NOT A", f.NotEvent(A)),
        ("NOT(A)", f.NotEvent(A)),
        ("not ( s>A )", f.NotEvent(f.EventType("A", "s"))),
        ("NOT(A FILTER A.v > 3)", f.NotEvent(A, compare("A.v", ">", 3))),
        ("NOT A FILTER A.v > 3", f.Filter(f.NotEvent(A), compare("A.v", ">", 3))),
        ("A AS x", f.As(A, "x")),
        ("A IN x", f.As(A, "x")),
        ("A as x As y", f.As(f.As(A, "x"), "y")),
        ("A [x -> y]", f.Rename(A, "x", "y")),
        ("A[x->y]", f.Rename(A, "x", "y")),
        ("A+", f.Iteration(A)),
        ("A:+", f.StrictIteration(A)),
        ("A AS x+", f.Iteration(f.As(A, "x"))),
        ("A+ AS x", f.As(f.Iteration(A), "x")),
        ("A ; B", f.Sequence(A, B)),
        ("A : B", f.StrictSequence(A, B)),
        ("A AND B", f.Conjunction(A, B)),
        ("A ALL B", f.All(A, B)),
        ("A OR B", f.Disjunction(A, B)),
        ("A UNLESS B", f.Unless(A, B)),
        ("A WITHOUT B", f.Without(A, B)),
        ("A NOT FOLLOWED BY B FOR 5 MINUTES", f.NotFollowedBy(A, B, f.DurationWindow(300_000_000))),
        ("A not followed by B for 1 event", f.NotFollowedBy(A, B, f.CountWindow(1))),
        ("A NOT FOLLOWED BY B FOR 2.5 [v]", f.NotFollowedBy(A, B, f.AttributeWindow(2.5, "v"))),
        ("FOLLOWED ; FOR", f.Sequence(f.EventType("FOLLOWED"), f.EventType("FOR"))),
        ("PROJECT x, y (A)", f.Project(("x", "y"), A)),
        ("START(A)", f.Start(A)),
        ("STRICT(A)", f.Selection(f.Strategy.STRICT, A)),
        ("NEXT(A)", f.Selection(f.Strategy.NEXT, A)),
        ("NXT (A)", f.Selection(f.Strategy.NEXT, A)),
        ("any(A)", f.Selection(f.Strategy.ANY, A)),
        ("last(A)", f.Selection(f.Strategy.LAST, A)),
        ("MAX(A)", f.Selection(f.Strategy.MAX, A)),
        ("A WITHIN 5 EVENTS", f.Within(A, f.CountWindow(5))),
        ("A FILTER x.v > 1", f.Filter(A, compare("x.v", ">", 1))),
        ("((A))", A),
        ("A -- a comment ; B\n ; /* another ; * / */ B", f.Sequence(A, B)),
    ],
)
def test_formula(text: str, tree: f.Formula) -> None:
    assert parse_formula(text) == tree


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("A ; B ; C", "(A ; B) ; C"),
        ("A : B : C", "(A : B) : C"),
        ("A OR B OR C", "(A OR B) OR C"),
        ("A AND B AND C", "(A AND B) AND C"),
        ("A ALL B ALL C", "(A ALL B) ALL C"),
        ("A UNLESS B WITHOUT C", "(A UNLESS B) WITHOUT C"),
        ("A WITHOUT B UNLESS C", "(A WITHOUT B) UNLESS C"),
        ("A UNLESS B NOT FOLLOWED BY C FOR 1 EVENT", "(A UNLESS B) NOT FOLLOWED BY C FOR 1 EVENT"),
        (
            "A OR B NOT FOLLOWED BY C ; D FOR 1 EVENT WITHIN 3 EVENTS",
            "((A OR B) NOT FOLLOWED BY (C ; D) FOR 1 EVENT) WITHIN 3 EVENTS",
        ),
        ("A ; B AS x", "A ; (B AS x)"),
        ("A ; B+", "A ; (B+)"),
        ("A : B ; C", "A : (B ; C)"),
        ("A AND B : C", "A AND (B : C)"),
        ("A ALL B AND C", "A ALL (B AND C)"),
        ("A OR B ALL C", "A OR (B ALL C)"),
        ("A UNLESS B OR C", "A UNLESS (B OR C)"),
        ("A UNLESS B FILTER x.v = 1", "(A UNLESS B) FILTER x.v = 1"),
        ("A ; B FILTER x.v = 1 WITHIN 3 EVENTS", "((A ; B) FILTER x.v = 1) WITHIN 3 EVENTS"),
        ("A WITHIN 3 EVENTS FILTER x.v = 1", "(A WITHIN 3 EVENTS) FILTER x.v = 1"),
        ("A FILTER x.v = 1 FILTER y.v = 1", "(A FILTER x.v = 1) FILTER y.v = 1"),
        ("A FILTER x.v = 1 AND x.w = 1 OR y.v = 1", "A FILTER ((x.v = 1 AND x.w = 1) OR y.v = 1)"),
        ("(A WITHIN 3 EVENTS FILTER x.v = 1 WITHIN 1 DAY)", "(((A WITHIN 3 EVENTS) FILTER x.v = 1) WITHIN 1 DAY)"),
    ],
)
def test_precedence(text: str, grouped: str) -> None:
    assert parse_formula(text) == parse_formula(grouped)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("1 EVENT", f.CountWindow(1)),
        ("10 events", f.CountWindow(10)),
        ("10 MINUTES", f.DurationWindow(600_000_000)),
        ("1 minute 30 Seconds", f.DurationWindow(90_000_000)),
        ("1 DAY 1 HOUR", f.DurationWindow(90_000_000_000)),
        ("2 DAYS 3 HOURS 1 MILLISECOND", f.DurationWindow(183_600_001_000)),
        ("0.5 SECONDS", f.DurationWindow(500_000)),
        ("0.001 MILLISECONDS", f.DurationWindow(1)),
        ("1e3 MILLISECONDS", f.DurationWindow(1_000_000)),
        ("0.1 SECONDS", f.DurationWindow(100_000)),
        ("10 [stock_time]", f.AttributeWindow(10, "stock_time")),
        ("2.5 [limit]", f.AttributeWindow(2.5, "limit")),
        ('3 ["a b"]', f.AttributeWindow(3, "a b")),
    ],
)
def test_window(text: str, window: f.Window) -> None:
    assert parse_formula(f"A WITHIN {text}") == f.Within(A, window)
    assert parse_query(f"SELECT * WHERE A WITHIN {text}").window == window


# -- conditions


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


# -- queries


def test_stock_query() -> None:
    pattern = f.Sequence(f.As(f.EventType("SELL"), "a"), f.As(f.EventType("BUY"), "b"))
    condition = c.And(c.Bracket("a", compare("name", "=", "INTC")), c.Bracket("b", compare("price", ">", 26.0)))
    assert parse_query(STOCK) == s.Select(
        formula=f.Filter(pattern, condition),
        projection=s.Projection(s.ProjectionKind.ALL),
        strategy=f.Strategy.ALL,
        streams=("Stock",),
        partition=(("name",),),
        window=f.AttributeWindow(10, "stock_time"),
        consume=s.Consumption.ANY,
        limit=None,
    )


def test_all_clauses() -> None:
    tree = parse_query(
        "select nxt x, y[a, limit], x.a + 1 as next_a, sum(y.b) AS total, count(*) as n, COUNT(*) "
        "from s, t where A as x ; B as y filter x.a < y.a filter y.b > 0 "
        "partition by id, [a, within] within 1 hour consume by partition limit 3"
    )
    assert tree.strategy is f.Strategy.NEXT
    assert tree.projection == s.Projection(
        s.ProjectionKind.ITEMS,
        (
            s.LabelItem("x"),
            s.LabelItem("y", ("a", "limit")),
            s.ExpressionItem(c.Arithmetic("+", attribute("x.a"), c.Literal(1)), "next_a"),
            s.ExpressionItem(c.Aggregate("sum", attribute("y.b")), "total"),
            s.CountItem("n"),
            s.CountItem("count"),
        ),
    )
    assert tree.streams == ("s", "t")
    assert tree.formula == parse_formula("A AS x ; B AS y FILTER x.a < y.a FILTER y.b > 0")
    assert tree.partition == (("id",), ("a", "within"))
    assert tree.window == f.DurationWindow(3_600_000_000)
    assert tree.consume is s.Consumption.PARTITION
    assert tree.limit == 3


@pytest.mark.parametrize("word", ["ALL", "ANY", "NEXT", "LAST", "MAX", "STRICT"])
def test_strategy(word: str) -> None:
    assert parse_query(f"SELECT {word} * WHERE A").strategy is f.Strategy(word)
    assert parse_query(f"SELECT {word.lower()} NONE WHERE A").strategy is f.Strategy(word)
    assert parse_query(f"SELECT {word} x WHERE A AS x").strategy is f.Strategy(word)


def test_max_and_last_before_a_parenthesis_are_aggregates() -> None:
    tree = parse_query("SELECT max(x.a) AS top, last(x.a) AS final WHERE A+ AS x")
    assert tree.strategy is f.Strategy.ALL
    assert [type(item.expression) for item in tree.projection.items] == [c.Aggregate, c.Aggregate]  # type: ignore[union-attr]
    assert parse_query("SELECT MAX max(x.a) AS top WHERE A+ AS x").strategy is f.Strategy.MAX


def test_within_behind_where_is_that_of_the_query() -> None:
    outer = parse_query("SELECT * WHERE A ; B FILTER A.v = 1 WITHIN 5 EVENTS")
    assert outer.window == f.CountWindow(5)
    assert isinstance(outer.formula, f.Filter)
    inner = parse_query("SELECT * WHERE (A ; B FILTER A.v = 1 WITHIN 5 EVENTS)")
    assert inner.window is None
    assert isinstance(inner.formula, f.Within)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM readings WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25 "
        "AND hot.id = dry.id WITHIN 10 MINUTES",
        "SELECT * WHERE (T AS x ; H AS y) FILTER x.value > 40 AND y.value <= 25 AND x.id = 0 AND y.id = 0",
        "SELECT * WHERE ((T AS x ; H AS y) OR (H AS y ; T AS x)) FILTER x.value > 40 AND y.value <= 25",
        "SELECT * WHERE (H AS x ; (T AS y FILTER y.id = 1)+ ; H AS z) "
        "FILTER x.value < 30 AND z.value > 60 AND x.id = 1 AND z.id = 1",
        "SELECT * WHERE (H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z) "
        "FILTER x.value < 30 AND z.value > 60 AND x.id = z.id",
        "SELECT NEXT b FROM Stock WHERE (SELL AS s ; (BUY OR SELL) AS b + ; SELL) FILTER s[name = 'MSFT'] "
        "AND b[name IN {'AMAT', 'QQQ'}] AND b[volume IN {1..1000}] WITHIN 30 [stock_time]",
        "SELECT * FROM S WHERE (SELL ; BUY ; BUY) FILTER SELL[name = 'MSFT'] PARTITION BY [name], [volume] "
        "WITHIN 4 HOURS 20 MINUTES CONSUME BY NONE",
    ],
)
def test_queries_of_the_manual(text: str) -> None:
    spans = [node.span for node in walk(parse_query(text))]
    assert all(span is not None and 0 <= span.start < span.end <= len(text) for span in spans)


# -- spans, depth, speed


def test_spans() -> None:
    text = "(A AS x ; B) FILTER x.a > -5"
    tree = parse_formula(text)
    assert isinstance(tree, f.Filter)
    assert tree.span == Span(0, len(text))
    assert tree.operand.span == Span(1, 11)
    assert tree.condition.span == Span(20, len(text))
    literal = tree.condition.children[1]
    assert literal.span == Span(26, 28)


def test_spans_lie_within_that_of_the_parent() -> None:
    for node in walk(parse_query(STOCK)):
        for child in node.children:
            assert node.span is not None
            assert child.span is not None
            assert node.span.start <= child.span.start
            assert child.span.end <= node.span.end


@pytest.mark.parametrize(
    "text",
    [
        " ; ".join(f"T{i} AS x{i}" for i in range(1000)),
        " OR ".join(["A"] * 1000),
        "A FILTER " + " AND ".join(["x.a > 1"] * 1000),
        "A FILTER " + "1 + " * 1000 + "x.a > 1",
        "A FILTER " + "NOT " * 1000 + "x.a > 1",
        "A" + "+" * 1000,
        "(" * 200 + "A" + ")" * 200,
        "A FILTER " + "(" * 200 + "x.a > 1" + ")" * 200,
    ],
    ids=["sequence", "or", "and", "sum", "not", "iteration", "parentheses", "parentheses in a condition"],
)
def test_large_formulas_are_read_without_recursion(text: str) -> None:
    parse_formula("A")  # the grammar is loaded once
    limit = sys.getrecursionlimit()
    depth = 0
    frame = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    sys.setrecursionlimit(depth + 100)
    try:
        tree = parse_formula(text)
    finally:
        sys.setrecursionlimit(limit)
    assert tree == parse_formula(text)


def test_every_rule_has_its_callback() -> None:
    # A rule without one would become a tree of Lark instead of ours.
    lark = _grammar()
    builder = lark.options.transformer
    for rule in lark.rules:
        name = rule.alias or str(rule.origin.name)
        passes = rule.options.expand1 and len(rule.expansion) == 1 and not rule.alias
        assert passes or name.startswith("_") or callable(getattr(builder, name, None)), name
