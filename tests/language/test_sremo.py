"""What each construct of SREMO is read as."""

from __future__ import annotations

import pytest

from cerflow.base.errors import QueryError, QuerySyntaxError, Span
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import sremo as r
from cerflow.language.parser import parse_sremo

T = r.Terminal(c.Constant(True))


def test_terminal() -> None:
    high = c.Comparison(Operator.GT, c.Attribute(None, "value"), c.Attribute("r", "value"))
    assert parse_sremo("[TRUE]") == T
    assert parse_sremo("[value > r.value]") == r.Terminal(high)
    assert parse_sremo("[value > r.value] MARK") == r.Terminal(high, r.MARK)
    assert parse_sremo("[value > r.value] as x") == r.Terminal(high, "x")
    assert parse_sremo("[value > r.value] AS x INTO r") == r.Terminal(high, "x", ("r",))
    assert parse_sremo("[value > r.value] into r, q") == r.Terminal(high, None, ("r", "q"))
    assert parse_sremo('[TRUE] AS "event"') == parse_sremo("[TRUE] MARK")


def test_attributes_of_the_event_read() -> None:
    tree = parse_sremo("[type = 'T' AND limit > 3 AND time(EVENT) - time(r) < 5]")
    assert isinstance(tree, r.Terminal)
    conjunction = tree.condition
    assert isinstance(conjunction, c.And)
    last = conjunction.right
    assert isinstance(last, c.Comparison)
    times = (c.Function("time", (c.LabelReference(None),)), c.Function("time", (c.LabelReference("r"),)))
    assert last.left == c.Arithmetic("-", *times)
    assert conjunction.left == c.And(
        c.Comparison(Operator.EQ, c.Attribute(None, "type"), c.Literal("T")),
        c.Comparison(Operator.GT, c.Attribute(None, "limit"), c.Literal(3)),
    )


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("EPSILON", r.Epsilon()),
        ("empty", r.Empty()),
        ("[TRUE] . [TRUE]", r.Concatenation(T, T)),
        ("[TRUE].[TRUE].[TRUE]", r.Concatenation(r.Concatenation(T, T), T)),
        ("[TRUE] | [TRUE]", r.Alternation(T, T)),
        ("[TRUE] & [TRUE]", r.Intersection(T, T)),
        ("[TRUE]*", r.Star(T)),
        ("[TRUE]+", r.Plus(T)),
        ("[TRUE]?", r.Optional(T)),
        ("![TRUE]", r.Complement(T)),
        ("![TRUE]*", r.Complement(r.Star(T))),
        ("![TRUE] . [TRUE]", r.Concatenation(r.Complement(T), T)),
        ("[TRUE] | [TRUE] & [TRUE] . [TRUE]", r.Alternation(T, r.Intersection(T, r.Concatenation(T, T)))),
        ("any([TRUE], [TRUE]+)", r.AnyMatch((T, r.Plus(T)))),
        ("ANY([TRUE]+)", r.AnyMatch((r.Plus(T),))),
        ("next([TRUE], [TRUE])", r.NextMatch((T, T))),
        ("unordered([TRUE], EMPTY)", r.Unordered((T, r.Empty()))),
        ("[TRUE] | EMPTY WITHIN 5 EVENTS", r.Windowed(r.Alternation(T, r.Empty()), f.CountWindow(5))),
        ("([TRUE] WITHIN 1 DAY) . [TRUE]", r.Concatenation(r.Windowed(T, f.DurationWindow(86_400_000_000)), T)),
        ("any([TRUE] INTO r, q, [TRUE])", r.AnyMatch((r.Terminal(c.Constant(True), None, ("r", "q")), T))),
        (
            "any([TRUE] INTO r, /* c */ q -- d\n, EPSILON)",
            r.AnyMatch((r.Terminal(c.Constant(True), None, ("r", "q")), r.Epsilon())),
        ),
        ("any([TRUE] INTO r, any([TRUE]))", r.AnyMatch((r.Terminal(c.Constant(True), None, ("r",)), r.AnyMatch((T,))))),
        ('any([TRUE] INTO r, "any")', r.AnyMatch((r.Terminal(c.Constant(True), None, ("r", "any")),))),
    ],
)
def test_expression(text: str, tree: r.Sremo) -> None:
    assert parse_sremo(text) == tree


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        ("[x[a > 1]]", "a bracket is not allowed inside a bracket", 2),
        ("[a + 1]", "this is a value, but a condition is expected here", 2),
        ("any()", "unexpected ')', expected an expression", 5),
        ("[TRUE] . ", "the text ends too early, expected an expression", 9),
        ("[TRUE] AS event", "unexpected 'event', expected a name", 11),
        ("A . B", "unexpected 'A', expected an expression", 1),
    ],
)
def test_errors(text: str, reason: str, column: int) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_sremo(text)
    assert (caught.value.reason, caught.value.column) == (reason, column)


def test_error_suggests_the_nearest_word() -> None:
    with pytest.raises(QuerySyntaxError, match=r"Did you mean MARK\?"):
        parse_sremo("[TRUE] MRK")
    with pytest.raises(QuerySyntaxError, match=r"Did you mean UNORDERED\?"):
        parse_sremo("unorderd([TRUE])")
    with pytest.raises(QueryError, match=r"Did you mean 'floor'\?"):
        parse_sremo("[flor(a) > 1]")


def test_spans() -> None:
    tree = parse_sremo("([a = 1] MARK . [b = 2]) WITHIN 3 EVENTS")
    assert tree.span == Span(0, 40)
    assert tree.children[0].span == Span(1, 23)
    assert tree.children[0].children[0].span == Span(1, 13)


def test_large_expressions_are_read() -> None:
    parse_sremo(" . ".join(["[a > 1] MARK"] * 1000))
    parse_sremo("(" * 200 + "[a > 1]" + ")" * 200)
    parse_sremo("!" * 1000 + "[TRUE]" + "*" * 1000)
