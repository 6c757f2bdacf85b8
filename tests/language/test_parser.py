"""What each construct of formulas, conditions and queries is read as."""

from __future__ import annotations

import sys

import pytest

from cerflow.base.errors import Span
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language.node import walk
from cerflow.language.parser import _CEQL, _grammar, parse_formula, parse_query
from support.conditions import attribute, compare

A, B, C, D = (f.EventType(name) for name in "ABCD")
STOCK = (
    "SELECT * FROM Stock WHERE (SELL as a; BUY as b) FILTER a[name = 'INTC'] AND b[price > 26.0] "
    "PARTITION BY [name] WITHIN 10 [stock_time] CONSUME BY ANY"
)


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
    lark = _grammar(_CEQL)
    builder = lark.options.transformer
    for rule in lark.rules:
        name = rule.alias or str(rule.origin.name)
        passes = rule.options.expand1 and len(rule.expansion) == 1 and not rule.alias
        assert passes or name.startswith("_") or callable(getattr(builder, name, None)), name
