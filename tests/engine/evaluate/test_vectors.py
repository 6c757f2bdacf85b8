"""Expressions and conditions on whole batches against the definition on one event, value by value."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerflow.base.decimals import decimal_text, text_decimal
from cerflow.base.errors import InputError
from cerflow.base.events import Stream
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.rows import BatchRows, finest_unit, instant
from cerflow.engine.evaluate.vectors import column_vector
from cerflow.language.condition import (
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
    Regexp,
)
from cerflow.theory.semantics.conditions import value_of
from cerflow.theory.semantics.operators import like
from support.runners import examples

INTEGERS = st.one_of(
    st.integers(-3, 3),
    # The smallest integer stands for null in the engine, so it occurs only as a result.
    st.sampled_from([2**63 - 1, -(2**63) + 1, 2**62, -(2**62), 2**53 + 1, 10**9]),
    st.integers(-(2**63) + 1, 2**63 - 1),
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, math.inf, -math.inf, math.nan, 5e-324, 1.8e308, 2.0**53]),
    st.sampled_from([0.49999999999999994, -2.5, 1e16]),
    st.floats(),
)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "A", "ab", "a%b", "a_b", "\\", "é", "\U0001f600", "\uffff", "ß"]), st.text()
)
BOOLEANS = st.booleans()
OPERATORS = st.sampled_from(list(Operator))
COLUMNS = {"i": INTEGERS, "j": INTEGERS, "f": FLOATS, "g": FLOATS, "s": TEXTS, "u": TEXTS, "b": BOOLEANS}
ARROW = {
    "i": pa.int64(),
    "j": pa.int64(),
    "f": pa.float64(),
    "g": pa.float64(),
    "s": pa.string(),
    "u": pa.string(),
    "b": pa.bool_(),
}


@st.composite
def tables(draw):
    size = draw(st.integers(1, 6))
    columns = {"type": pa.array(["A"] * size)}
    for name, values in COLUMNS.items():
        nullable = st.one_of(st.none(), values, values, values)
        columns[name] = pa.array(draw(st.lists(nullable, min_size=size, max_size=size)), ARROW[name])
    return pa.RecordBatch.from_pydict(columns)


def attribute(names):
    return st.sampled_from(names).map(lambda name: Attribute(None, name))


NUMBERS = st.recursive(
    st.one_of(
        attribute("ijfg"),
        INTEGERS.map(Literal),
        FLOATS.filter(math.isfinite).map(Literal),
        st.just(Function("position", (LabelReference(None),))),
        st.just(Function("time", (LabelReference(None),))),
        st.just(Function("length", (Attribute(None, "s"),))),
        st.builds(lambda *x: Function("coalesce", x), attribute("ij"), attribute("ij"), INTEGERS.map(Literal)),
        st.builds(lambda *x: Function("coalesce", x), st.just(Literal(None)), attribute("fg")),
        st.just(Literal(None)),
    ),
    lambda below: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/%"), below, below),
        st.builds(Negative, below),
        st.builds(lambda name, x: Function(name, (x,)), st.sampled_from(["abs", "floor", "ceil", "round"]), below),
    ),
    max_leaves=5,
)
PLACES = st.one_of(attribute("ij"), st.one_of(st.none(), st.integers(-2, 4)).map(Literal))
STRINGS = st.one_of(
    attribute("su"),
    TEXTS.map(Literal),
    st.builds(lambda name, x: Function(name, (x,)), st.sampled_from(["lower", "upper"]), attribute("su")),
    st.builds(lambda *x: Function("coalesce", x), attribute("su"), attribute("su"), TEXTS.map(Literal)),
    st.builds(lambda *x: Function("||", x), attribute("su"), st.one_of(attribute("su"), TEXTS.map(Literal))),
    st.builds(lambda *x: Function("||", x), TEXTS.map(Literal), attribute("su")),
    st.builds(lambda *x: Function("substr", x), attribute("su"), PLACES),
    st.builds(lambda *x: Function("substr", x), st.one_of(attribute("su"), TEXTS.map(Literal)), PLACES, PLACES),
)
PATTERNS = st.sampled_from(["%", "_", "a%", "%b", "a\\%b", "a\\_b", "\\\\", "a_b", "", "%\n%", "[a]", "\\"])
NEGATED = st.booleans()
ATOMS = st.one_of(
    st.builds(Comparison, OPERATORS, NUMBERS, NUMBERS),
    st.builds(Comparison, OPERATORS, STRINGS, STRINGS),
    st.builds(Comparison, st.sampled_from([Operator.EQ, Operator.NE]), attribute("b"), BOOLEANS.map(Literal)),
    st.builds(Like, attribute("su"), PATTERNS, NEGATED),
    st.builds(Regexp, STRINGS, st.sampled_from(["a", "^$", "[A-Z]", "a.b", "é"]), NEGATED),
    st.builds(
        In, NUMBERS, st.lists(st.one_of(st.none(), INTEGERS).map(Literal), min_size=1, max_size=3).map(tuple), NEGATED
    ),
    st.builds(
        In, STRINGS, st.lists(st.one_of(st.none(), TEXTS).map(Literal), min_size=1, max_size=3).map(tuple), NEGATED
    ),
    st.builds(Between, NUMBERS, NUMBERS, st.one_of(st.none(), NUMBERS), NEGATED),
    st.builds(Between, STRINGS, st.none(), STRINGS, NEGATED),
    st.builds(IsNull, st.one_of(NUMBERS, STRINGS), NEGATED),
    st.builds(Constant, BOOLEANS),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda below: st.one_of(st.builds(And, below, below), st.builds(Or, below, below), st.builds(Not, below)),
    max_leaves=5,
)


def rows_of(batch, **roles):
    schema = Schema(batch.schema, **roles)
    return BatchRows(batch, schema, np.arange(batch.num_rows), finest_unit(schema))


def by_definition(tree, batch, **roles):
    stream = Stream.from_dicts(batch.to_pylist(), **roles)
    return [value_of(tree, {None: event}, lambda _: []) for event in stream]


def values(vector, count):
    data = np.broadcast_to(vector.data, (count,)).tolist()
    missing = np.broadcast_to(vector.missing(), (count,))
    if vector.kind is ValueKind.STRING:
        data = [None if gone else vector.dictionary[k] for k, gone in zip(data, missing)]
    return [None if gone else v for v, gone in zip(data, missing)]


def truths(truth, count):
    true = np.broadcast_to(truth.true, (count,))
    unknown = np.zeros(count, bool) if truth.unknown is None else np.broadcast_to(truth.unknown, (count,))
    assert not (true & unknown).any()
    return [None if u else bool(t) for t, u in zip(true, unknown)]


@examples(400)
@given(tables(), NUMBERS)
def test_numbers(batch, expression):
    found = values(rows_of(batch).value(expression), batch.num_rows)
    expected = by_definition(expression, batch)
    assert found == expected
    # 1 == 1.0, but not here; a literal NULL has no kind of its own.
    pairs = [(f, e) for f, e in zip(found, expected) if e is not None]
    assert [type(f) for f, _ in pairs] == [type(e) for _, e in pairs]


@examples(100)
@given(tables(), STRINGS)
def test_strings(batch, expression):
    assert values(rows_of(batch).value(expression), batch.num_rows) == by_definition(expression, batch)


@examples(600)
@given(tables(), CONDITIONS)
def test_conditions(batch, condition):
    assert truths(rows_of(batch).truth(condition), batch.num_rows) == by_definition(condition, batch)


@examples(300)
@given(st.text("aé%_\\.\n*", max_size=8), st.lists(st.text("aé%_\\.\n*", max_size=6), max_size=5))
def test_like(pattern, texts):
    found = rows_of(pa.record_batch({"type": ["A"] * len(texts), "s": pa.array(texts, pa.string())})).truth(
        Like(Attribute(None, "s"), pattern)
    )
    assert truths(found, len(texts)) == [like(text, pattern) for text in texts]


@pytest.mark.parametrize("operator", "+-*%")
@pytest.mark.parametrize("left", [-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("right", [-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1])
def test_whole_numbers_never_overflow(operator, left, right):
    batch = pa.record_batch({"type": ["A"], "i": [left], "j": [right]})
    tree = Arithmetic(operator, Attribute(None, "i"), Attribute(None, "j"))
    (found,) = values(rows_of(batch).value(tree), 1)
    (expected,) = by_definition(tree, batch)
    # The smallest integer stands for null in registers, so it is not a result either.
    assert found == (None if expected == -(2**63) else expected)


@pytest.mark.parametrize("name", ["abs", "-"])
def test_the_smallest_integer_has_no_opposite(name):
    batch = pa.record_batch({"type": ["A"] * 3, "i": [-(2**63), -(2**63) + 1, None]})
    operand = Attribute(None, "i")
    tree = Negative(operand) if name == "-" else Function(name, (operand,))
    assert values(rows_of(batch).value(tree), 3) == [None, 2**63 - 1, None] == by_definition(tree, batch)


# --- kinds of columns ------------------------------------------------------------------------------------------------

MOMENTS = [
    datetime.datetime(1969, 12, 31, 23, 59, 59),
    datetime.datetime(2024, 2, 29, 12, 0, 1),
    None,
    datetime.datetime(2024, 2, 29, 11, 0, 1),
]
LITERALS = [
    "2024-02-29 12:00:01",
    "2024-02-29T13:00:01+01:00",
    "1969-12-31T23:59:59Z",
    "2024-02-29",
    "0001-01-01",
    "9999-12-31",
]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+03:00"])
@pytest.mark.parametrize("operator", list(Operator))
def test_timestamps_and_texts(unit, zone, operator):
    if zone is None:
        column = pa.array(MOMENTS, pa.timestamp(unit))
    else:
        column = pa.array([m and m.replace(tzinfo=datetime.UTC) for m in MOMENTS], pa.timestamp(unit, zone))
    batch = pa.record_batch({"type": ["A"] * 4, "t": column})
    for text in LITERALS:
        for condition in (
            Comparison(operator, Attribute(None, "t"), Literal(text)),
            Comparison(operator, Literal(text), Attribute(None, "t")),
        ):
            assert truths(rows_of(batch).truth(condition), 4) == by_definition(condition, batch), text


def test_timestamps_of_different_units_compare_exactly():
    second = datetime.datetime(2024, 1, 1, 0, 0, 1)
    batch = pa.record_batch(
        {
            "type": ["A"] * 2,
            "d": pa.array([second.date(), second.date()], pa.date32()),
            "e": pa.array([second.date(), second.date()], pa.date64()),
            "s": pa.array([second, second.replace(second=0)], pa.timestamp("s")),
            "n": pa.array([second, second.replace(second=0, microsecond=1)], pa.timestamp("ns")),
        }
    )
    for a in "desn":
        for b in "desn":
            for operator in Operator:
                condition = Comparison(operator, Attribute(None, a), Attribute(None, b))
                assert truths(rows_of(batch).truth(condition), 2) == by_definition(condition, batch)


def test_time_counts_the_unit_of_its_column():
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2024, 1, 1)]
    for unit, ticks in (("us", 1), ("ns", 1000)):
        batch = pa.record_batch({"type": ["A"] * 2, "t": pa.array(moments, pa.timestamp(unit))})
        tree = Function("time", (LabelReference(None),))
        expected = by_definition(tree, batch, time="t")
        assert expected == [moment.replace(tzinfo=datetime.UTC) for moment in moments]
        # The engine computes with the numbers of timestamps.
        assert values(rows_of(batch, time="t").value(tree), 2) == [-ticks, 1704067200000000 * ticks]


@pytest.mark.parametrize("other", [pa.timestamp("s"), pa.date32()])
def test_a_time_that_no_unit_can_hold_is_an_error(other):
    far = pa.array([365 * 1000], pa.int32()).cast(pa.date32()).cast(other)
    batch = pa.record_batch({"type": ["A"], "far": far, "n": pa.array([0], pa.timestamp("ns"))})
    with pytest.raises(InputError, match="64 bits"):
        rows_of(batch).truth(Comparison(Operator.LT, Attribute(None, "n"), Attribute(None, "far")))
    alone = batch.select(["type", "far"])
    assert truths(rows_of(alone).truth(Comparison(Operator.GT, Attribute(None, "far"), Literal("2900-01-01"))), 1) == [
        True
    ]


def test_instants_are_exact_also_beyond_64_bits():
    assert instant("9999-12-31", "ns") == 253_402_214_400 * 10**9
    assert instant("0001-01-01", "ns") == -62_135_596_800 * 10**9
    assert instant("1970-01-01T00:00:01.5+00:00", "ms") == 1500
    with pytest.raises(ValueError, match="isoformat"):
        instant("tomorrow", "us")


SAME = {
    "dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "null in the dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array(["a", None, "b"])),
    "large string": pa.array(["a", None, "b", "a"], pa.large_string()),
    "large dictionary": pa.array(["a", None, "b", "a"], pa.large_string()).dictionary_encode(),
    "string view": pa.array(["a", None, "b", "a"], pa.string_view()),
}


@pytest.mark.parametrize("column", SAME.values(), ids=SAME)
@pytest.mark.parametrize("offset", [0, 1])
def test_strings_of_every_type(column, offset):
    vector = column_vector(column.slice(offset), "us")
    assert vector.kind is ValueKind.STRING
    assert values(vector, 4 - offset) == ["a", None, "b", "a"][offset:]


NUMERIC = {
    "int8": (pa.array([1, None, -3], pa.int8()), [1, None, -3]),
    "uint64": (pa.array([1, None, 2**63 - 1], pa.uint64()), [1, None, 2**63 - 1]),
    "float16": (pa.array(np.array([1, np.nan, -3], np.float16)), [1.0, None, -3.0]),
    "float32": (pa.array([0.5, None, math.nan], pa.float32()), [0.5, None, None]),
    "decimal": (pa.array([Decimal("1.25"), None, Decimal("-3")], pa.decimal128(10, 2)), [1.25, None, -3.0]),
    "whole decimal": (pa.array([Decimal(10**17 + 1), None, Decimal(-3)], pa.decimal128(18, 0)), [10**17 + 1, None, -3]),
    "nothing": (pa.nulls(3), [None, None, None]),
    "boolean": (pa.array([True, None, False]), [1, None, 0]),
    "dictionary of integers": (pa.array([7, None, 7]).dictionary_encode(), [7, None, 7]),
    "dictionary of floats": (pa.array([7.5, None, math.nan]).dictionary_encode(), [7.5, None, None]),
}


def test_wide_decimals_are_texts_in_their_order():
    numbers = ["1.25", "-3", "0.00", "1.2500000000000000000000001", "-3.0000000000000000001", "1000", "999.99", "-0.5"]
    column = pa.array([*map(Decimal, numbers), None], pa.decimal256(60, 25))
    vector = column_vector(column, "us")
    assert vector.kind is ValueKind.DECIMAL
    assert vector.missing().tolist() == [False] * len(numbers) + [True]
    texts = [vector.dictionary[k] for k in vector.data[: len(numbers)]]
    assert [text_decimal(text) for text in texts] == [Decimal(n) for n in numbers]
    assert sorted(numbers, key=Decimal) == [n for _, n in sorted(zip(texts, numbers))]


DECIMALS = st.builds(lambda digits, exponent: Decimal(f"{digits}e{exponent}"), st.integers(), st.integers(-30, 30))


@given(DECIMALS, DECIMALS)
def test_texts_of_decimals_compare_as_these_do(one, other):
    assert (decimal_text(one) < decimal_text(other)) == (one < other)
    assert (decimal_text(one) == decimal_text(other)) == (one == other)
    assert text_decimal(decimal_text(one)) == one


@pytest.mark.parametrize(("column", "expected"), NUMERIC.values(), ids=NUMERIC)
@pytest.mark.parametrize("offset", [0, 1])
def test_numbers_of_every_type(column, expected, offset):
    found = values(column_vector(column.slice(offset), "us"), 3 - offset)
    assert found == expected[offset:]
    assert [type(v) for v in found] == [type(v) for v in expected[offset:]]


def test_integers_beyond_64_bits_are_an_error():
    with pytest.raises(InputError, match="64 bits"):
        column_vector(pa.array([1, 2**63], pa.uint64()), "us")


@pytest.mark.parametrize("column", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"x"])])
def test_of_other_types_it_is_known_what_is_null(column):
    assert column_vector(pa.concat_arrays([column, pa.nulls(1, column.type)]), "us").missing().tolist() == [False, True]


@pytest.mark.parametrize("literal", [None, True, 5, 2.5, "x"])
def test_a_literal_has_no_dimension(literal):
    vector = rows_of(pa.record_batch({"type": ["A", "B"]})).value(Literal(literal))
    assert vector.data.ndim == 0
    assert values(vector, 2) == [literal] * 2


def test_empty_batches():
    batch = pa.RecordBatch.from_pylist([], pa.schema([("type", pa.string()), *ARROW.items()]))
    rows = rows_of(batch)
    for name in ARROW:
        assert values(rows.value(Attribute(None, name)), 0) == []
    assert truths(rows.truth(Comparison(Operator.LT, Attribute(None, "s"), Attribute(None, "u"))), 0) == []
    assert truths(rows.truth(Like(Attribute(None, "s"), "%")), 0) == []
