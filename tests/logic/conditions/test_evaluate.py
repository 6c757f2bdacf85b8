"""Values on single events against the semantics, which computes them in its own code."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cerflow.base.errors import InputError
from cerflow.base.events import Event
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    DATE_PARTS,
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Constant,
    Function,
    In,
    IsNull,
    LabelReference,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    PredicateCall,
    Regexp,
)
from cerflow.language.parser import parse_condition
from cerflow.language.predicates.registry import Form, Predicate, PredicateKind, using
from cerflow.logic.conditions.evaluate import arithmetic, compare, constant_value, value_on
from cerflow.theory.semantics.conditions import value_of
from cerflow.theory.semantics.operators import arithmetic as meant_arithmetic
from cerflow.theory.semantics.operators import compare as meant_comparison

INTEGERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, -(2**63) + 1, 2**62, 2**53 + 1]),
    st.integers(-(2**63) + 1, 2**63 - 1),
)
FLOATS = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 0.1, 0.5, -0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, 5e-324, 2.0**53, 0.49999999999999994]
    ),
    st.floats(allow_nan=False),
)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "A", "ab", "a%b", "a_b", "\\", "é", "\U0001f600", "ß", "a\nb"]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=4),
)
DECIMALS = st.one_of(st.integers(-3, 3).map(Decimal), st.sampled_from(["0.1", "-0.10", "1e20", "0.5"]).map(Decimal))
MOMENTS = st.datetimes(datetime.datetime(1960, 1, 1), datetime.datetime(2060, 1, 1), timezones=st.just(datetime.UTC))
#: Kinds of attributes by name.
KINDS = {"i": INTEGERS, "f": FLOATS, "s": TEXTS, "b": st.booleans(), "d": DECIMALS, "t": MOMENTS}
LABELS = st.sampled_from([None, "x", "y"])
OPERATORS = st.sampled_from(list(Operator))
NEGATED = st.booleans()
PREDICATES = (
    Predicate("near", PredicateKind.SCALAR, lambda a, b: None if a == b else abs(a - b) < 2, 2, 2),
    Predicate("positive", PredicateKind.VECTORIZED, lambda a: np.asarray(a) > 0, 1, 1, Form.NUMPY),
    Predicate("some", PredicateKind.SET, lambda rows: any(a > b for a, b in rows), 2, 2),
    Predicate("whole", PredicateKind.SCALAR, lambda event, bound: (event["i"] or 0) < bound, 2, 2),
)


@st.composite
def events(draw):
    attributes = {name: draw(st.one_of(st.none(), kind, kind, kind)) for name, kind in KINDS.items()}
    return Event(draw(st.integers(0, 9)), "A", draw(st.one_of(INTEGERS, FLOATS)), attributes)


def attribute(names):
    return st.builds(Attribute, LABELS, st.sampled_from(names))


NUMBERS = st.recursive(
    st.one_of(
        attribute("if"),
        st.one_of(INTEGERS, FLOATS.filter(math.isfinite), st.none()).map(Literal),
        st.builds(lambda name, x: Function(name, (LabelReference(x),)), st.sampled_from(["position", "time"]), LABELS),
        attribute("s").map(lambda text: Function("length", (text,))),
        st.builds(lambda *x: Function("coalesce", x), attribute("i"), attribute("i"), INTEGERS.map(Literal)),
        st.builds(lambda *x: Function("coalesce", x), st.just(Literal(None)), attribute("f")),
        st.builds(lambda part, t: Function(part, (t,)), st.sampled_from(DATE_PARTS), attribute("t")),
    ),
    lambda below: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/%"), below, below),
        st.builds(Negative, below),
        st.builds(lambda name, x: Function(name, (x,)), st.sampled_from(["abs", "floor", "ceil", "round"]), below),
    ),
    max_leaves=4,
)
PLACES = st.one_of(attribute("i"), st.one_of(st.none(), st.integers(-2, 4)).map(Literal))
STRINGS = st.one_of(
    attribute("s"),
    st.one_of(TEXTS, st.none()).map(Literal),
    st.builds(lambda name, x: Function(name, (x,)), st.sampled_from(["lower", "upper"]), attribute("s")),
    st.builds(lambda *x: Function("coalesce", x), attribute("s"), attribute("s"), TEXTS.map(Literal)),
    st.builds(lambda *x: Function("||", x), attribute("s"), st.one_of(attribute("s"), TEXTS.map(Literal))),
    st.builds(lambda *x: Function("substr", x), attribute("s"), PLACES),
    st.builds(lambda *x: Function("substr", x), attribute("s"), PLACES, PLACES),
)
PATTERNS = st.one_of(
    st.sampled_from(["%", "_", "a%", "%b", "a\\%b", "a\\_b", "\\\\", "a_b", "", "%\n%", "[a]", "\\", "_%_"]),
    st.text("ab%_\\.*", max_size=5),
)


def lists(of):
    return st.lists(st.one_of(st.none(), of, of).map(Literal), min_size=1, max_size=3).map(tuple)


ATOMS = st.one_of(
    st.builds(Constant, st.booleans()),
    st.builds(Comparison, OPERATORS, NUMBERS, NUMBERS),
    st.builds(Comparison, OPERATORS, STRINGS, STRINGS),
    st.builds(Comparison, OPERATORS, attribute("b"), st.booleans().map(Literal)),
    st.builds(Comparison, OPERATORS, attribute("d"), st.one_of(attribute("ifd"), st.just(Literal("0.1")))),
    st.builds(Comparison, OPERATORS, attribute("t"), st.one_of(attribute("t"), st.just(Literal("2020-02-03T04:05")))),
    st.builds(Comparison, OPERATORS, st.just(Literal("2020-02-03")), attribute("t")),
    st.builds(Like, STRINGS, PATTERNS, NEGATED),
    st.builds(Regexp, STRINGS, st.sampled_from(["a", "^$", "[A-Z]", "a.b", "é"]), NEGATED),
    st.builds(In, NUMBERS, lists(st.one_of(INTEGERS, FLOATS.filter(math.isfinite))), NEGATED),
    st.builds(In, STRINGS, lists(TEXTS), NEGATED),
    st.builds(Between, NUMBERS, NUMBERS, st.one_of(st.none(), NUMBERS), NEGATED),
    st.builds(Between, NUMBERS, st.none(), NUMBERS, NEGATED),
    st.builds(Between, STRINGS, STRINGS, STRINGS, NEGATED),
    st.builds(IsNull, st.one_of(NUMBERS, STRINGS, attribute("dt")), NEGATED),
    st.builds(lambda a, b: PredicateCall("near", (a, b)), attribute("if"), NUMBERS),
    attribute("if").map(lambda a: PredicateCall("positive", (a,))),
    st.builds(
        lambda a, b: PredicateCall("some", (Attribute(None, a), b)), st.sampled_from("if"), INTEGERS.map(Literal)
    ),
    NUMBERS.map(lambda bound: PredicateCall("whole", (LabelReference(None), bound))),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda below: st.one_of(st.builds(And, below, below), st.builds(Or, below, below), below.map(Not)),
    max_leaves=5,
)


@given(st.one_of(CONDITIONS, CONDITIONS, NUMBERS, STRINGS), events(), events())
def test_values_are_those_of_the_semantics(root, here, other):
    # The label y has no event.
    single = {None: here, "x": other}
    with using(PREDICATES):
        found, meant = value_on(root, single), value_of(root, single, lambda _: ())
    assert found == meant
    assert type(found) is type(meant)


SCALARS = st.one_of(st.none(), INTEGERS, FLOATS)


@given(st.sampled_from("+-*/%"), SCALARS, SCALARS)
def test_arithmetic_is_that_of_the_semantics(sign, left, right):
    found, meant = arithmetic(sign, left, right), meant_arithmetic(sign, left, right)
    assert (found, type(found)) == (meant, type(meant))


@example(Operator.EQ, 0.1, Decimal("0.1"))
@given(OPERATORS, st.one_of(SCALARS, DECIMALS), st.one_of(SCALARS, DECIMALS))
def test_comparisons_are_those_of_the_semantics(relation, left, right):
    assert compare(relation, left, right) is meant_comparison(relation, left, right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 1 = 2", True),
        ("-7 % 2 = -1", True),
        ("7 % -2 = 1", True),
        ("9223372036854775807 + 1 IS NULL", True),
        ("1 / 0 = 1 OR TRUE", True),
        ("NULL = NULL AND 1 = 1", None),
        ("NOT (1 IN (2, NULL))", None),
        ("1 IN (1, NULL)", True),
        ("round(-2.5) = -3", True),
        ("'a%b' LIKE 'a\\%b'", True),
        ("'a\nb' NOT LIKE 'a_b'", False),
    ],
)
def test_constants(text, expected):
    assert constant_value(parse_condition(text)) is expected


def test_deep_conditions():
    root = Constant(True)
    for _ in range(20_000):
        root = Not(root)
    assert constant_value(root) is True


@pytest.mark.parametrize("text", ["count(x) > 1", "increasing(x.v)", "SOME x: x.v > 1", "x[v > 1]"])
def test_conditions_on_several_events_have_no_value(text):
    with pytest.raises(TypeError, match="no value on single events"):
        value_on(parse_condition(text), {"x": Event(0, "A", 0, {"v": 2})})


def test_nothing_is_computed_with_decimals():
    with pytest.raises(InputError, match="not used in arithmetic"):
        arithmetic("+", 1, Decimal("0.5"))
    with pytest.raises(InputError, match="not used in arithmetic"):
        value_on(Function("floor", (Attribute(None, "d"),)), {None: Event(0, "A", 0, {"d": Decimal("0.5")})})
