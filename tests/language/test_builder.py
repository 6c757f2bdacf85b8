"""Python expressions give the trees of the texts they stand for."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta

import pytest

from cerflow import builder
from cerflow.base.errors import QueryError
from cerflow.builder import (
    ConditionExpr,
    Expr,
    FormulaExpr,
    SremoExpr,
    ValueExpr,
    any_,
    any_event,
    any_match,
    attribute,
    avg,
    condition,
    count,
    count_matches,
    decreasing,
    empty,
    epsilon,
    event,
    false,
    first,
    formula,
    increasing,
    item,
    label,
    last,
    literal,
    max_,
    min_,
    next_,
    next_match,
    nondecreasing,
    nonincreasing,
    not_event,
    position,
    predicate,
    read,
    select,
    some,
    sremo,
    start,
    stddev,
    strict,
    sum_,
    this,
    time,
    true,
    unordered,
    value,
    window,
)
from cerflow.language.parser import parse_condition, parse_expression, parse_formula, parse_query, parse_sremo

x, y, r = label("x"), label("y"), label("r")
A, B, C = event("A"), event("B"), event("C")


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (event("T").as_("hot") >> event("H").as_("dry"), "T AS hot ; H AS dry"),
        (event("A", "s"), "s>A"),
        (any_event(), "EVENT"),
        (any_event("s"), "s>EVENT"),
        (not_event("A"), "NOT(A)"),
        (not_event("A", label("A").v > 3, stream="s"), "NOT(s>A FILTER A.v > 3)"),
        (A.as_(x), "A AS x"),
        (A.rename("x", y), "A [x -> y]"),
        (A.plus(), "A+"),
        (A.strict_plus(), "A:+"),
        (A.then(B), "A : B"),
        (A.all_(B), "A ALL B"),
        (A.unless(B), "A UNLESS B"),
        (A.without(B), "A WITHOUT B"),
        (A.not_followed_by(B, minutes=5), "A NOT FOLLOWED BY B FOR 5 MINUTES"),
        (A.not_followed_by(B, events=2), "A NOT FOLLOWED BY B FOR 2 EVENTS"),
        (A.not_followed_by(B, 10, "v"), "A NOT FOLLOWED BY B FOR 10 [v]"),
        (A | B >> C, "A OR B ; C"),
        (A & B | C, "A AND B OR C"),
        (A >> (B >> C), "A ; (B ; C)"),
        (A.project("x", y), "PROJECT x, y (A)"),
        (A.filter(x.a > 1).filter(y.b > 2), "A FILTER x.a > 1 FILTER y.b > 2"),
        (A.filter(True), "A FILTER TRUE"),
        (A.within(events=5), "A WITHIN 5 EVENTS"),
        (A.within(minutes=10), "A WITHIN 10 MINUTES"),
        (A.within(hours=1, seconds=0.5), "A WITHIN 1 HOUR 0.5 SECONDS"),
        (A.within(seconds=0.1), "A WITHIN 0.1 SECONDS"),
        (A.within(timedelta(days=1, microseconds=7)), "A WITHIN 1 DAY 0.007 MILLISECONDS"),
        (A.within(500, "stock_time"), "A WITHIN 500 [stock_time]"),
        (A.within(2.5, "t"), "A WITHIN 2.5 [t]"),
        (start(A), "START(A)"),
        (strict(A), "STRICT(A)"),
        (next_(A), "NEXT(A)"),
        (any_(A), "ANY(A)"),
        (last(A), "LAST(A)"),
        (max_(A), "MAX(A)"),
        (formula("A ; B").plus(), "(A ; B)+"),
    ],
)
def test_formula(built: FormulaExpr, text: str) -> None:
    assert built.tree == parse_formula(text)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (x.price > 10, "x.price > 10"),
        (x["price"] >= 10, "x.price >= 10"),
        (x["a b"] < y.c, 'x."a b" < y.c'),
        (x.a <= 1.5, "x.a <= 1.5"),
        (x.a == "it's", "x.a = 'it''s'"),
        (x.a != literal(None), "x.a != NULL"),
        (x.a == True, "x.a = TRUE"),  # noqa: E712
        ((x.a > 1) & (x.b > 2) | ~(x.c > 3), "x.a > 1 AND x.b > 2 OR NOT x.c > 3"),
        ((x.a > 1) & True, "x.a > 1 AND TRUE"),
        (False | (x.a > 1), "FALSE OR x.a > 1"),
        (true() & ~false(), "TRUE AND NOT FALSE"),
        (x[this.price > 10], "x[price > 10]"),
        (x[(attribute("price") > 10) & (attribute("volume") < 5)], "x[price > 10 AND volume < 5]"),
        (x[condition("price > 10")], "x[price > 10]"),
        (x.a.like("a%"), "x.a LIKE 'a%'"),
        (x.a.like("a%", negated=True), "x.a NOT LIKE 'a%'"),
        (x.a.regexp("^a"), "x.a REGEXP '^a'"),
        (x.a.isin([1, -2, "b", None]), "x.a IN (1, -2, 'b', NULL)"),
        (x.a.isin((1,), negated=True), "x.a NOT IN (1)"),
        (x.a.isin([]), "x.a IN ()"),
        (x.a.between(1, y.b), "x.a BETWEEN 1 AND y.b"),
        (x.a.between(low=1), "x.a IN {1..}"),
        (x.a.between(high=1, negated=True), "x.a NOT IN {..1}"),
        (x.a.is_null(), "x.a IS NULL"),
        (x.a.is_not_null(), "x.a IS NOT NULL"),
        (predicate("near", x, "y"), "near(x, y)"),
        (x[predicate("near", this, y)], "x[near(EVENT, y)]"),
        (predicate("near", x.a, y.b + 1, 3, literal("s"), None), "near(x.a, y.b + 1, 3, 's', NULL)"),
        (x[predicate("near", this.a, y.a)], "x[near((a), y.a)]"),
        (increasing(x.a), "increasing(x.a)"),
        (decreasing(x.a), "decreasing(x.a)"),
        (nondecreasing(x.a), "nondecreasing(x.a)"),
        (nonincreasing(x.a), "nonincreasing(x.a)"),
        (some(x)(x.a > 1), "SOME x: x.a > 1"),
        (~some("x", y)((x.a > y.a) & (x.b == y.b)), "NOT SOME x, y: (x.a > y.a AND x.b = y.b)"),
        (x.a > 1, "x.a > 1"),
    ],
)
def test_condition(built: ConditionExpr, text: str) -> None:
    assert built.tree == parse_condition(text)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (x.a + 1 - y.b * 2, "x.a + 1 - y.b * 2"),
        ((x.a + 1) * 2, "(x.a + 1) * 2"),
        (1 - x.a, "1 - x.a"),
        (1 + x.a, "1 + x.a"),
        (2 * x.a, "2 * x.a"),
        (2 / x.a, "2 / x.a"),
        (2 % x.a, "2 % x.a"),
        (x.a / 2 % -3, "x.a / 2 % -3"),
        (-x.a, "-x.a"),
        (literal(5) + 1, "5 + 1"),
        (x.a.abs(), "abs(x.a)"),
        (x.a.floor().ceil().round(), "round(ceil(floor(x.a)))"),
        (x.a.lower().upper().length(), "length(upper(lower(x.a)))"),
        (position(x), "position(x)"),
        (time("x"), "time(x)"),
        (count(x), "count(x)"),
        (count("x"), "count(x)"),
        (count(x.a), "count(x.a)"),
        (sum_(x.price), "sum(x.price)"),
        (avg(x.a), "avg(x.a)"),
        (min_(x.a), "min(x.a)"),
        (max_(x.a), "max(x.a)"),
        (first(x.a), "first(x.a)"),
        (last(x.a), "last(x.a)"),
        (stddev(x.a), "stddev(x.a)"),
        (value("x.a + 1"), "x.a + 1"),
    ],
)
def test_value(built: ValueExpr, text: str) -> None:
    assert built.tree == parse_expression(text)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (read(), "[TRUE]"),
        (read(this.type == "T").mark().into("r"), "[type = 'T'] MARK INTO r"),
        (read(this.v > r.v).label("x").into("q").into("r"), "[v > r.v] AS x INTO q, r"),
        (read() >> read() | epsilon() & empty(), "[TRUE] . [TRUE] | EPSILON & EMPTY"),
        (read().then(read()), "[TRUE] . [TRUE]"),
        (~read().star(), "![TRUE]*"),
        (read().plus().optional(), "[TRUE]+?"),
        (any_match(read(), read().plus()), "any([TRUE], [TRUE]+)"),
        (next_match(read()), "next([TRUE])"),
        (unordered(read(), empty()), "unordered([TRUE], EMPTY)"),
        (read().within(events=5), "[TRUE] WITHIN 5 EVENTS"),
        (read().within(5, "t"), "[TRUE] WITHIN 5 [t]"),
        (sremo("[a = 1]").mark(), "[a = 1] MARK"),  # type: ignore[attr-defined]
    ],
)
def test_sremo(built: SremoExpr, text: str) -> None:
    assert built.tree == parse_sremo(text)


def test_select() -> None:
    pattern = (event("SELL").as_("a") >> event("BUY").as_("b")).filter(
        label("a")[this.name == "INTC"] & label("b")[this.price > 26.0]
    )
    assert select(
        pattern, streams=["Stock"], partition_by=["name"], within=window(10, "stock_time"), consume_by="any"
    ) == parse_query(
        "SELECT * FROM Stock WHERE (SELL as a; BUY as b) FILTER a[name = 'INTC'] AND b[price > 26.0] "
        "PARTITION BY [name] WITHIN 10 [stock_time] CONSUME BY ANY"
    )
    assert select(
        A.as_(x),
        x,
        "y",
        item(x, "a", "limit"),
        (x.a + 1).as_("b"),
        count_matches("n"),
        strategy="next",
        partition_by=["k", ("a", "b")],
        limit=3,
    ) == parse_query(
        "SELECT NEXT x, y, x[a, limit], x.a + 1 AS b, COUNT(*) AS n WHERE A AS x PARTITION BY k, [a, b] LIMIT 3"
    )
    assert select(A, events=False) == parse_query("SELECT NONE WHERE A")
    assert select(A.as_(x), "*", x.v.as_("v")) == parse_query("SELECT *, x.v AS v WHERE A AS x")


@pytest.mark.parametrize(
    "expression",
    [A >> B.plus(), x.price > 10, x[this.a > 1], x.price + 1, this.a * 2, this.a > 1, read().into("r"), ~read()],
    ids=repr,
)
def test_repr_is_code(expression: Expr) -> None:  # type: ignore[type-arg]
    names = {name: getattr(builder, name) for name in builder.__all__}
    rebuilt = eval(repr(expression), names)  # of our own repr, not of a query
    assert type(rebuilt) is type(expression)
    assert rebuilt.tree == expression.tree


def test_repr() -> None:
    assert repr(x.price > 10) == "condition('x.price > 10')"
    assert repr(A >> B) == "formula('A ; B')"
    assert repr(x) == "label('x')"
    assert repr(this) == "this"


@pytest.mark.parametrize(
    "use",
    [
        lambda: (x.a > 1) and (x.b > 2),
        lambda: (x.a > 1) or (x.b > 2),
        lambda: not (x.a > 1),
        lambda: 1 < x.a < 3,
        lambda: A and B,
        lambda: not read(),
        lambda: bool(x.a),
    ],
)
def test_no_truth_value(use: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"use & \| ~ and not `and`, `or`, `not`"):
        use()


@pytest.mark.parametrize("made", [x, x.a, x.a > 1, A, read()])
def test_immutable(made: object) -> None:
    with pytest.raises(AttributeError):
        made.anything = 1  # type: ignore[attr-defined]


def test_values_can_be_copied_compared_and_hashed() -> None:
    assert (A >> B) == (A >> B) != (B >> A)
    assert hash(A >> B) == hash(A >> B)
    assert (x.a > 1) == (x.a > 1)
    assert label("x") == x != y
    for made in (A >> B, x.a > 1, x, read().mark()):
        assert pickle.loads(pickle.dumps(made)) == made
        assert copy.deepcopy(made) == made
    with pytest.raises(TypeError):
        hash(x.a)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: A.filter(this.a > 1), QueryError, "'a' needs a label here"),
        (lambda: A.filter(predicate("p", this)), QueryError, "no current event"),
        (lambda: x[y[this.a > 1]], QueryError, "bracket inside a bracket|cannot be nested|is not allowed inside"),
        (lambda: read(y[this.a > 1]), QueryError, "brackets cannot be nested"),
        (lambda: this[this.a > 1], TypeError, "needs a label"),
        (lambda: (this.a + 1).as_("b"), QueryError, "needs a label here"),
        (lambda: count(this.a), QueryError, "count takes a label"),
        (lambda: event(""), QueryError, "cannot be empty"),
        (lambda: event(3), TypeError, "must be a string, not int"),
        (lambda: A >> "B", TypeError, "unsupported operand"),
        (lambda: A | (x.a > 1), TypeError, "not FormulaExpr"),
        (lambda: A.then("B"), TypeError, "a formula such as event"),
        (lambda: A.filter("x.a > 1"), TypeError, "a condition is expected here, not str"),
        (lambda: (x.a > 1) & x.b, TypeError, "a condition is expected here, not ValueExpr"),
        (lambda: x.a > 2**63, QueryError, "does not fit into 64 bits"),
        (lambda: x.a > float("nan"), QueryError, "infinite or not a number"),
        (lambda: x.a > [1], TypeError, "not list"),
        (lambda: x.a.isin("abc"), TypeError, "not one string"),
        (lambda: x.a.is_in([1]), TypeError, r"no method 'is_in': write isin\(\[…\]\)"),
        (lambda: x.a.b.startswith("c"), TypeError, r"no method 'startswith': write like\('%abc%'\)"),
        (lambda: this.a.betwen(1, 2), TypeError, "no method 'betwen'; did you mean 'between'"),
        (lambda: (x.a + 1)(), TypeError, "a value cannot be called"),
        (lambda: (x.a + 1).betwen(1, 2), AttributeError, "no method 'betwen'; did you mean 'between'"),
        (lambda: x.a == None, TypeError, r"write value.is_null\(\)"),  # noqa: E711
        (lambda: x.a != None, TypeError, r"value.is_not_null\(\)"),  # noqa: E711
        (lambda: x.a <= None, TypeError, "never true"),
        (lambda: x.a.regexp("("), QueryError, "cannot be read"),
        (lambda: x.a.like(3), TypeError, "must be a string"),
        (lambda: sremo("[TRUE]").then(3), TypeError, "an expression of SREMO is expected here, not int"),
        (lambda: sum_(x), TypeError, "takes a value such as x.price"),
        (lambda: A.project(), TypeError, "at least one label"),
        (lambda: any_match(), TypeError, "at least one operand"),
        (lambda: A.within(), TypeError, "give one of these"),
        (lambda: A.within(events=5, minutes=1), TypeError, "give one of these"),
        (lambda: A.within(500), TypeError, "needs the name of an attribute"),
        (lambda: A.within(events=0), QueryError, "larger than zero"),
        (lambda: A.within(events=1.5), TypeError, "must be an integer"),
        (lambda: A.within(minutes=-1), QueryError, "larger than zero"),
        (lambda: A.within(milliseconds=0.0001), QueryError, "whole number of microseconds"),
        (lambda: A.within(days=1e300), QueryError, "64 bits"),
        (lambda: A.within(float("nan"), "t"), QueryError, "larger than zero"),
        (lambda: A.within(seconds=float("nan")), QueryError, "finite"),
        (lambda: select(A, strategy="nxt_"), QueryError, "no strategy 'nxt_'"),
        (lambda: select(A, consume_by="al"), QueryError, "no consumption policy"),
        (lambda: select(A, limit=0), QueryError, "positive integer"),
        (lambda: select(A, x.a + 1), TypeError, "needs a name"),
        (lambda: select(A, "*", x), TypeError, "only named values"),
        (lambda: select(A, x, events=False), TypeError, "takes no items"),
        (lambda: select(A, streams="ab"), TypeError, "a list of names"),
        (lambda: list(x), TypeError, "not iterable"),
    ],
)
def test_errors(use: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use()


def test_durations_are_timedeltas():
    text = "SELECT b.t - a.t AS gap WHERE (A AS a ; B AS b) FILTER b.t - a.t < 5 MINUTES AND a.d = -1 DAY"
    a, b = label("a"), label("b")
    formula = (event("A").as_(a) >> event("B").as_(b)).filter(
        (b.t - a.t < timedelta(minutes=5)) & (a.d == timedelta(days=-1))
    )
    assert select(formula, (b.t - a.t).as_("gap")) == parse_query(text)
    with pytest.raises(QueryError, match="do not fit into 64 bits"):
        literal(timedelta.max)
