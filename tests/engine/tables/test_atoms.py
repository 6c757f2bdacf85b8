"""Conditions that relate several events: what kernels compute from columns and registers, against the definition."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.operators import Operator
from cerflow.engine import layout
from cerflow.language.condition import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Bracket,
    Comparison,
    Function,
    In,
    IsNull,
    LabelReference,
    Literal,
    Negative,
    Not,
    Or,
)
from cerflow.language.formula import As, EventType, Filter, Iteration, Sequence
from cerflow.language.select import Select
from support.runners import bag, examples, one_batch, semantics

INTEGERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**63 - 1, -(2**63) + 1, 2**62, -(2**62), 2**53, 2**53 + 1]))
FLOATS = st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan, 2.0**53, 1.8e308])
COLUMNS = {
    "i": (INTEGERS, pa.int64()),
    "f": (FLOATS, pa.float64()),
    "s": (st.sampled_from(["", "a", "b", "B", "ab", "é", "\uffff", "\U0001f600"]), pa.string()),
    "b": (st.booleans(), pa.bool_()),
    "m": (st.integers(-2, 2), pa.timestamp("us")),
}
LABELS = st.sampled_from("xy")
OPERATORS = st.sampled_from(list(Operator))
EQUALITY = st.sampled_from([Operator.EQ, Operator.NE])


@st.composite
def streams(draw):
    types = draw(st.lists(st.sampled_from("AB"), min_size=2, max_size=6))
    columns = {"type": pa.array(types)}
    for name, (values, arrow) in COLUMNS.items():
        cells = st.one_of(st.none(), values, values, values, values)
        columns[name] = pa.array(draw(st.lists(cells, min_size=len(types), max_size=len(types))), arrow)
    return pa.table(columns)


def attributes(names):
    return st.builds(Attribute, LABELS, st.sampled_from(names))


PLACES = st.builds(lambda name, x: Function(name, (LabelReference(x),)), st.sampled_from(["position", "time"]), LABELS)
NUMBERS = st.recursive(
    st.one_of(attributes("iiff"), INTEGERS.map(Literal), st.just(Literal(0.5)), st.just(Literal(None)), PLACES),
    lambda below: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/%"), below, below),
        st.builds(Negative, below),
        st.builds(lambda name, x: Function(name, (x,)), st.sampled_from(["abs", "floor", "ceil", "round"]), below),
    ),
    max_leaves=4,
)
TEXTS = st.one_of(attributes("s"), st.sampled_from(["", "a", "ab", "zz"]).map(Literal))
ITEMS = st.lists(st.sampled_from([None, 0, 1, 2**53]).map(Literal), min_size=1, max_size=3).map(tuple)
MOMENTS = st.one_of(attributes("m"), st.sampled_from(["1970-01-01", "1970-01-01 00:00:00.000001"]).map(Literal))
ATOMS = st.one_of(
    st.builds(Comparison, OPERATORS, NUMBERS, NUMBERS),
    st.builds(Comparison, OPERATORS, NUMBERS, NUMBERS),
    st.builds(Comparison, OPERATORS, TEXTS, TEXTS),
    st.builds(Comparison, EQUALITY, attributes("b"), st.one_of(attributes("b"), st.booleans().map(Literal))),
    st.builds(Comparison, OPERATORS, attributes("m"), MOMENTS),
    st.builds(In, NUMBERS, ITEMS, st.booleans()),
    st.builds(Between, NUMBERS, NUMBERS, st.one_of(st.none(), NUMBERS), st.booleans()),
    st.builds(Between, TEXTS, st.none(), TEXTS, st.booleans()),
    st.builds(Between, attributes("m"), MOMENTS, MOMENTS, st.booleans()),
    st.builds(IsNull, NUMBERS, st.booleans()),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda below: st.one_of(st.builds(And, below, below), st.builds(Or, below, below), st.builds(Not, below)),
    max_leaves=4,
)
ONE_EACH = Sequence(As(EventType("A"), "x"), As(EventType("B"), "y"))
SEVERAL = Sequence(Iteration(As(EventType("A"), "x")), Iteration(As(EventType("B"), "y")))


def assert_same(formula, table):
    query = cerflow.Query(Select(formula))
    assert bag(one_batch(query, table)) == bag(semantics(query, table))


@examples(400)
@given(streams(), CONDITIONS)
def test_on_one_event_each(table, condition):
    assert_same(Filter(ONE_EACH, condition), table)


@examples(200)
@given(streams(), CONDITIONS)
def test_on_all_choices_of_events(table, condition):
    assert_same(Filter(SEVERAL, condition), table)


@examples(200)
@given(streams(), CONDITIONS)
def test_in_one_bracket(table, condition):
    assert_same(Filter(ONE_EACH, Bracket("x", condition)), table)


@examples(150)
@given(streams(), CONDITIONS)
def test_on_the_event_of_an_outer_formula(table, condition):
    inner = Iteration(Filter(As(EventType("B"), "y"), condition))
    assert_same(Sequence(As(EventType("A"), "x"), inner), table)
    assert_same(Sequence(inner, As(EventType("A"), "x")), table)


@pytest.mark.parametrize(
    "condition",
    ["x.i < z.i OR x.i + x.f < z.i", "y.i + x.i < z.i OR y.i + x.i + x.f < z.f", "x.i = y.i OR z.i = x.i + y.f"],
)
def test_parts_of_one_another_wait_for_a_later_event(condition):
    table = pa.table({"type": list("AABAC"), "i": [5, 1, 1, 2, 0], "f": [-9.0, 0.5, 100.0, -3.0, -1.0]})
    query = cerflow.parse(f"SELECT * WHERE ((A AS x ; (A OR B) AS y) FILTER {condition}) ; C AS z")
    expected = semantics(query, table)
    assert expected
    assert bag(one_batch(query, table)) == bag(expected)


def operators_of(text, schema=None):
    """The operators of the atoms that a condition is compiled to."""
    names = list(schema or [("type", pa.string()), ("i", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
    recognizer = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {text}").recognizer(pa.schema(names))
    return recognizer._machine.tables.arrays.atoms[:, layout.A_OPERATOR].tolist()


@pytest.mark.parametrize("text", ["x.i < y.i", "y.i >= x.i", "x.s = y.s", "x.f < y.f", "x.i + 1 < y.i * 2"])
def test_plain_comparisons_are_no_programs(text):
    assert operators_of(text) != []
    assert layout.PROGRAM not in operators_of(text)


@pytest.mark.parametrize("text", ["x.i < y.f", "x.i + y.i > 3", "x[i > 3 OR i < y.i]"])
def test_other_conditions_are_programs(text):
    assert layout.PROGRAM in operators_of(text)


def test_conditions_on_one_event_are_no_atoms():
    assert operators_of("x.i < 3 AND y.s = 'p'") == []


def test_a_deep_condition():
    tree = " + ".join(["x.i", "y.i"] * 150)
    table = pa.table({"type": ["A", "B"], "i": [1, 2]})
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {tree} = 450")
    assert query.match(table).count() == 1


def test_transitions_share_the_programs_of_conditions():
    text = "nonincreasing(r.i) AND max(r.i) != 0 AND stddev(r.f) != -1) OR increasing(r.i) AND r.i IS NOT NULL"
    query = cerflow.parse(f"SELECT * WHERE A AS x : (EVENT AS r):{{3}} FILTER ({text}")
    columns = pa.schema([("type", pa.string()), ("i", pa.int64()), ("f", pa.float64())])
    atoms = query.recognizer(columns)._machine.tables.arrays.atoms
    programs = atoms[atoms[:, layout.A_OPERATOR] == layout.PROGRAM].tolist()
    assert len(set(map(tuple, programs))) * 5 < len(programs)
