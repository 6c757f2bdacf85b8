"""Which tests can hold together: against values tried one by one, and known cases at the edges of values."""

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.events import Event
from cerflow.base.schema import Schema, ValueKind
from cerflow.language.condition import Not
from cerflow.language.parser import parse_condition
from cerflow.logic.conditions.guards import Satisfied, TypeTest, bare, without_brackets
from cerflow.theory.deciding.minterms import EventMinterms
from cerflow.theory.deciding.witnesses import Budget, event_spaces_of
from cerflow.theory.semantics.conditions import value_of
from support.generators.conditions import STRINGS, TYPES, conditions
from support.runners import examples


def bare_condition(text):
    return parse_condition(text, bare_attributes=True)


def algebras(*tests, schema=None, steps=10**6, mentioned=frozenset()):
    return [EventMinterms(event_space, mentioned, Budget(steps)) for event_space in event_spaces_of(tests, schema)]


def satisfiable(*texts, schema=None):
    """Whether some event, in some event space, satisfies all of the tests."""
    tests = tuple(map(bare_condition, texts))
    found = [
        minterm
        for algebra in algebras(*tests, schema=schema)
        for minterm in algebra.minterms(tests)
        if minterm.holds == frozenset(tests)
    ]
    return None if found and all(minterm.assumed for minterm in found) else bool(found)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("v > 1", "v < 2"), True),
        (("v > 1", "v <= 1"), False),
        (("v >= 1", "v <= 1", "v != 1"), False),
        (("v = 1", "v = 1.0"), True),
        (("v > 1", "v IS NULL"), False),
        (("NOT v > 1", "NOT v <= 1"), False),
        (("v > 1 OR NOT v > 1", "v IS NULL"), False),
        (("v = NULL",), False),
        (("NOT v = NULL",), False),
        (("v IN (1, NULL)", "v != 1"), False),
        (("v NOT IN (1, NULL)",), False),
        (("v IN (1, 2, 3)", "v > 2", "v < 3"), False),
        (("v BETWEEN 1 AND 2", "v NOT BETWEEN 0 AND 3"), False),
        # Neighbouring floats, and integers that floats cannot tell apart.
        (("v > 1.0", "v < 1.0000000000000002"), False),
        (("v > 1.0", "v < 1.0000000000000004"), True),
        (("v > 9007199254740992", "v < 9007199254740994"), True),
        (("v > 9007199254740992.0", "v < 9007199254740994.0"), False),
        (("v > 9007199254740992", "v <= 9007199254740992.0"), True),
        (("v < -9223372036854775807",), True),
        (("b = TRUE", "b != TRUE"), False),
        (("b = TRUE", "b = FALSE"), False),
        (("b != TRUE", "b != FALSE"), False),
        # Strings by code points.
        (("s > 'a'", "s < 'b'"), True),
        (("s >= 'a'", "s < 'a\0'", "s != 'a'"), False),
        (("s < ''",), False),
        (("s LIKE 'a%'", "s < 'a'"), False),
        (("s LIKE 'a%'", "s > 'b'"), False),
        (("s LIKE 'a%'", "s LIKE '%b'", "s NOT LIKE 'a%b'"), False),
        (("s LIKE '_a%'", "s NOT LIKE '__%'"), False),
        (("s LIKE 'a\\%'", "s != 'a%'"), False),
        (("s LIKE '%'", "s IS NOT NULL"), True),
        (("s NOT LIKE '%'",), False),
        (("length(s) = 2", "s LIKE '___%'"), False),
        (("length(s) = 2", "s LIKE 'a%'", "s > 'aa'"), True),
        (("length(s) < 0",), False),
        (("s IN ('a', 'b')", "s LIKE 'c%'"), False),
        # Moments: as strings these differ, as timestamps they are one.
        (("s = '2024-01-01'", "s = '2024-01-01T00:00:00'"), True),
        (("s = '2024-01-01'", "s = '2024-01-02'"), False),
        (("s = '2024-01-01'", "s = '2024-01-01T00:00:00'", "s LIKE '%'"), False),
        # Attributes with one another.
        (("v > w", "w > u", "u > v"), False),
        (("v > w", "w > u", "v > u"), True),
        (("v = w", "v > 1", "w <= 1"), False),
        (("v > w", "v < 2", "w > 1"), True),
        (("v = v", "v IS NULL"), False),
        (("s > r", "r > 'a'", "s < 'b'"), True),
        (("type = 'A'", "type != 'A'"), False),
        (("type > 'A'", "type < 'B'"), True),
        # What cannot be looked through: an event is found, or it is not known.
        (("v * 2 > 10",), True),
        (("v * 2 > 10", "v * 2 <= 10"), False),
        (("v * 2 > 10", "v IS NULL"), False),
        (("v + 0 != v",), None),
        (("s REGEXP 'abc'",), True),
        (("s REGEXP '^a$'", "s LIKE 'b%'"), None),
        (("upper(s) = 'A'",), True),
        (("position(EVENT) > 3",), None),
        (("position(EVENT) IS NULL",), False),
    ],
)
def test_what_can_hold_together(texts, expected):
    assert satisfiable(*texts) is expected


@pytest.mark.parametrize(
    ("columns", "texts", "expected"),
    [
        ({"v": pa.int64()}, ("v > 1", "v < 2"), False),
        ({"v": pa.int64()}, ("v > 1.5", "v < 2.5"), True),
        ({"v": pa.int8()}, ("v > 127",), False),
        ({"v": pa.int8()}, ("v > 126",), True),
        ({"v": pa.uint32()}, ("v < 0",), False),
        ({"v": pa.int64(), "w": pa.int64()}, ("v > w", "v < 3", "w > 1"), False),
        ({"v": pa.int64(), "w": pa.float64()}, ("v > w", "v < 3", "w > 1"), True),
        ({"v": pa.float32()}, ("v = 0.5",), True),
        ({"v": pa.float32()}, ("v = 0.1",), None),
        ({"d": pa.date32()}, ("d > '2024-01-01'", "d < '2024-01-02'"), False),
        ({"d": pa.timestamp("s")}, ("d > '2024-01-01'", "d < '2024-01-01T00:00:01'"), False),
        ({"d": pa.timestamp("us")}, ("d > '2024-01-01'", "d < '2024-01-01T00:00:01'"), True),
        ({"v": pa.list_(pa.int64())}, ("v IS NULL",), None),
        ({"kind": pa.string()}, ("kind = 'A'", "type = 'B'"), False),
    ],
)
def test_columns_bound_what_can_be(columns, texts, expected):
    kind = "kind" if "kind" in columns else "type"
    schema = Schema(pa.schema({kind: pa.string(), **columns}), type=kind)
    assert satisfiable(*texts, schema=schema) is expected


def test_times_are_not_made_up():
    schema = Schema(pa.schema({"type": pa.string(), "t": pa.int64()}), time="t")
    assert satisfiable("t > 5", schema=schema) is None


VALUES = {
    "v": (None, -1, 0, 0.5, 1, 1.5, 2, 7),
    "w": (None, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0),
    "s": (None, *STRINGS, "x", "PQ"),
    "k": (None, 0, 1, 2, 3),
    "n": (None, 0, 1, 2, 3),
}


def holds(test, event):
    if isinstance(test, TypeTest):
        return event.type == test.type
    if isinstance(test, Satisfied):
        return holds(test.condition, event)
    if isinstance(test, Not) and isinstance(test.operand, Satisfied | TypeTest):
        return not holds(test.operand, event)
    return value_of(test, {None: event, "x": event}, lambda _: ()) is True


@st.composite
def unary_tests(draw):
    found = [bare(without_brackets(draw(conditions(["x"])))) for _ in range(draw(st.integers(1, 3)))]
    found += [TypeTest(draw(st.sampled_from(TYPES))) for _ in range(draw(st.integers(0, 2)))]
    return tuple(dict.fromkeys(Not(Satisfied(t)) if draw(st.integers(0, 4)) == 0 else t for t in found))


@examples(200)
@given(unary_tests(), st.data())
def test_every_event_has_its_minterm(tests, data):
    minterms = [minterm for algebra in algebras(*tests) for minterm in algebra.minterms(tests)]
    known = {minterm.holds for minterm in minterms}
    for minterm in minterms:
        if not minterm.assumed:
            event = Event(0, minterm.type, 0, minterm.values)
            assert minterm.holds == frozenset(t for t in tests if holds(t, event))
    for _ in range(20):
        values = {name: data.draw(st.sampled_from(some)) for name, some in VALUES.items()}
        event = Event(0, data.draw(st.sampled_from((*TYPES, "D"))), 0, values)
        assert frozenset(t for t in tests if holds(t, event)) in known


@pytest.mark.parametrize(
    "texts", list(product(("v > 1", "v IN (1, 2)", "v + 1 > 2"), ("v = 'a'", "v LIKE '%'", "v = TRUE")))
)
def test_kinds_that_do_not_go_together(texts):
    with pytest.raises(QueryError, match="so no events fit"):
        satisfiable(*texts)


def test_kinds_are_read_off_the_conditions():
    (event_space,) = event_spaces_of(
        map(bare_condition, ("v > 1", "s LIKE 'a'", "b = TRUE", "w > v", "lower(r) = s", "o IS NULL"))
    )
    kinds = dict.fromkeys(("v", "w", "o"), ValueKind.FLOAT) | dict.fromkeys(("s", "r"), ValueKind.STRING)
    assert event_space.kinds == {**kinds, "b": ValueKind.BOOLEAN}
    assert event_space.computed == {"r"}


def test_names_of_streams_count_only_where_there_are_any():
    tests = (TypeTest("A", "s"), TypeTest("A", "t"))
    unnamed, named = (algebra.minterms(tests) for algebra in algebras(*tests))
    assert {minterm.holds for minterm in unnamed} == {frozenset(), frozenset(tests)}
    assert {minterm.holds for minterm in named} == {frozenset(), frozenset(tests[:1]), frozenset(tests[1:])}


def test_other_types_have_names_that_are_not_mentioned():
    (algebra,) = algebras(TypeTest("A"), mentioned=frozenset({"A", "other", "other1"}))
    assert {minterm.type for minterm in algebra.minterms((TypeTest("A"),))} == {"A", "other2"}


def test_the_budget_is_kept():
    tests = tuple(bare_condition(f"a{k} > 0") for k in range(20))
    with pytest.raises(UnsupportedQueryError, match="more than 10,000 steps"):
        algebras(*tests, steps=10_000)[0].minterms(tests)
