"""Random queries on random streams: every way of running the engine gives what the definitions say."""

import math
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError
from support.conformance import COLUMNS, assert_conforms, drawn, limit
from support.generators.conditions import Fragment
from support.runners import ENGINE_RUNNERS, bag, examples, frozen, one_batch, semantics


@examples(250)
@given(st.data())
def test_in_one_batch(data):
    query, table = drawn(data)
    assert_conforms(query, table, {"one batch": one_batch})


@examples(100)
@given(st.data())
def test_in_batches_and_from_snapshots(data):
    assert_conforms(*drawn(data), ENGINE_RUNNERS)


@examples(100)
@given(st.data())
def test_in_random_batches(data):
    query, table = drawn(data)
    recognizer = query.recognizer(table.schema, time="t")
    # Cuts that fall together make empty batches.
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=6)))
    found = []
    for start, stop in pairwise([0, *cuts, table.num_rows]):
        found += recognizer.push(table.slice(start, stop - start)).to_pylist()
        if data.draw(st.booleans()):
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    assert list(map(frozen, found)) == list(map(frozen, one_batch(query, table, time="t")))
    assert recognizer.events == table.num_rows


KINDS = {
    "float32 and decimals": {"v": pa.float32(), "w": pa.decimal128(6, 2), "k": pa.float64()},
    "narrow integers": {"v": pa.int8(), "w": pa.float32(), "k": pa.int16(), "n": pa.int32(), "t": pa.int32()},
    "dictionaries": {"type": pa.dictionary(pa.int8(), pa.string()), "s": pa.dictionary(pa.int32(), pa.string())},
    "large strings and float times": {"type": pa.large_string(), "s": pa.large_string(), "t": pa.float64()},
    "float windows": {"n": pa.float64(), "t": pa.float32()},
}


def _fits(query, table):
    """Whether a query is right for the types of columns; functions of texts count by integers, for example."""
    try:
        query.result_schema(table.schema, time="t")
    except QueryError:
        return False
    return True


def saturated(table, types):
    """The table with columns of other types; what these do not hold is their first or last value, or null."""

    def held(value, type_, ordered):
        if value is None or isinstance(value, str):
            return value
        if pa.types.is_integer(type_):
            most = 2 ** (type_.bit_width - 1) - 1
            return min(max(value, -most), most)
        if pa.types.is_decimal(type_):
            return Decimal(min(max(value, -9999), 9999)).quantize(Decimal("0.01")) if math.isfinite(value) else None
        # Times, and what windows measure, have a place in 64 bits.
        return float(min(max(value, -(2**62)), 2**62)) if ordered else float(value)

    return pa.table({n: pa.array([held(v, t, n in "tn") for v in table[n].to_pylist()], t) for n, t in types.items()})


@examples(100)
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_with_columns_of_other_types(data, kind):
    query, table = drawn(data)
    assume(limit(query.tree) is None)
    other = saturated(table, {**COLUMNS, **KINDS[kind]})
    assume(_fits(query, other))
    assert bag(one_batch(query, other, time="t")) == bag(semantics(query, other, time="t"))


SETS = Fragment(aggregates=True)


@examples(100)
@given(st.data())
def test_conditions_on_sets(data):
    assert_conforms(*drawn(data, fragment=SETS), {"one batch": one_batch})


@examples(40)
@given(st.data())
def test_conditions_on_sets_in_batches_and_from_snapshots(data):
    assert_conforms(*drawn(data, fragment=SETS), ENGINE_RUNNERS)


@examples(40)
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_conditions_on_sets_with_columns_of_other_types(data, kind):
    query, table = drawn(data, fragment=SETS)
    assume(limit(query.tree) is None)
    other = saturated(table, {**COLUMNS, **KINDS[kind]})
    assume(_fits(query, other))
    assert bag(one_batch(query, other, time="t")) == bag(semantics(query, other, time="t"))


EXISTENTIAL = Fragment(some=True)


@examples(100)
@given(st.data())
def test_existential_conditions(data):
    assert_conforms(*drawn(data, fragment=EXISTENTIAL), {"one batch": one_batch})


@examples(40)
@given(st.data())
def test_existential_conditions_in_batches_and_from_snapshots(data):
    assert_conforms(*drawn(data, fragment=EXISTENTIAL), ENGINE_RUNNERS)


@examples(100)
@given(st.data(), st.sampled_from(["s", "ms", "us", "ns"]), st.sampled_from([None, "UTC", "Europe/Berlin"]))
def test_with_timestamps(data, unit, zone):
    query, table = drawn(data, ends=False)
    assume(limit(query.tree) is None)
    # A tick is a second, so that every unit can hold it; windows of time are whole seconds as well.
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    # A day from the ends: pandas, which shows nanoseconds, has no others in all zones.
    first, last = (-9_223_285_600, 9_223_285_600) if unit == "ns" else (-62_135_510_400, 253_402_214_400)
    begin = data.draw(st.sampled_from([0, 0, 0, first, last - 300]))
    moments = pa.array([(begin + t) * factor for t in table["t"].to_pylist()], pa.timestamp(unit, zone))
    table = table.set_column(1, "t", moments)
    # A difference of times is a duration, which is compared with no number.
    assume(_fits(query, table))
    assert bag(one_batch(query, table, time="t")) == bag(semantics(query, table, time="t"))
