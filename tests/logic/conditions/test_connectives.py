"""Conditions taken apart, negated and written in other ways, against their truth values."""

from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.events import Event
from cerflow.base.operators import Operator
from cerflow.language.condition import (
    And,
    Attribute,
    Between,
    Comparison,
    Condition,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    operands,
)
from cerflow.logic.conditions.connectives import (
    FALSE,
    TRUE,
    UNKNOWN,
    conjunction,
    conjuncts,
    constant,
    not_true,
    spelled_out,
    two_valued,
    with_atoms,
)
from cerflow.logic.conditions.evaluate import value_on
from cerflow.logic.conditions.guards import Satisfied, TypeTest
from cerflow.logic.conditions.propositions import is_not_true, is_true

NEGATED = st.booleans()
ATTRIBUTES = st.sampled_from(["a", "b"]).map(lambda name: Attribute(None, name))
VALUES = st.one_of(st.none(), st.integers(0, 2))
LITERALS = VALUES.map(Literal)
RANGES = st.one_of(
    st.builds(In, ATTRIBUTES, st.lists(LITERALS, min_size=1, max_size=3).map(tuple), NEGATED),
    st.tuples(st.none() | LITERALS, LITERALS | ATTRIBUTES).flatmap(
        lambda ends: st.builds(Between, ATTRIBUTES, *map(st.just, ends), NEGATED)
    ),
)
ATOMS = st.one_of(
    st.sampled_from([TRUE, FALSE, UNKNOWN, TypeTest("A"), TypeTest("B")]),
    st.builds(Comparison, st.sampled_from(list(Operator)), ATTRIBUTES, ATTRIBUTES | LITERALS),
    st.builds(IsNull, ATTRIBUTES, NEGATED),
    RANGES,
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda below: st.one_of(
        st.builds(And, below, below), st.builds(Or, below, below), st.builds(Not, below), st.builds(Satisfied, below)
    ),
    max_leaves=6,
)
EVENTS = st.builds(lambda kind, a, b: Event(0, kind, 0, {"a": a, "b": b}), st.sampled_from("AB"), VALUES, VALUES)


def truth(condition: Condition, event: Event) -> bool | None:
    """The truth value: of AND the least, of OR the greatest, where unknown lies between false and true."""
    match condition:
        case And(left, right) | Or(left, right):
            choose = min if isinstance(condition, And) else max
            return choose((truth(left, event), truth(right, event)), key=[False, None, True].index)
        case Not(operand):
            found = truth(operand, event)
            return None if found is None else not found
        case Satisfied(operand):
            return truth(operand, event) is True
        case TypeTest(name):
            return event.type == name
    return value_on(condition, {None: event})


@given(CONDITIONS, EVENTS)
def test_the_same_condition_in_other_forms(condition, event):
    expected = truth(condition, event)
    assert truth(with_atoms(condition, lambda atom: atom), event) is expected
    assert truth(with_atoms(condition, lambda atom: constant(truth(atom, event))), event) is expected
    assert truth(conjunction(conjuncts(condition)), event) is expected


@given(CONDITIONS, EVENTS)
def test_conditions_as_tests(condition, event):
    holds = truth(condition, event) is True
    assert (truth(not_true(condition), event) is True) is not holds
    asked, positive = two_valued(condition)
    assert ((truth(asked, event) is True) == positive) is holds
    assert (truth(is_true(condition), event) is True) is holds
    assert (truth(is_not_true(condition), event) is True) is not holds


@given(RANGES, EVENTS)
def test_ranges_are_comparisons(condition, event):
    assert truth(spelled_out(condition), event) is truth(condition, event)


def test_operands_stand_in_the_order_of_the_text():
    a, b, c = (TypeTest(name) for name in "ABC")
    nested = And(Or(a, And(b, a)), And(Not(c), b))
    assert operands(nested, And) == [nested.left, Not(c), b]
    assert operands(nested, And | Or | Not) == [a, b, c]


def test_constants_are_worked_in():
    a, b = TypeTest("A"), TypeTest("B")
    whole = And(Or(a, b), Not(Satisfied(b)))
    assert with_atoms(whole, lambda atom: FALSE if atom == b else atom) == a
    assert with_atoms(whole, lambda atom: TRUE if atom == b else atom) == FALSE
    assert with_atoms(Not(Not(a)), lambda atom: atom) == a
