"""A start is inside a window exactly if its measure is greater than the bound of the event that ends it."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.engine.evaluate.measures import bounds, is_global, measures
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.layout import NULL
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow
from cerflow.schema import Schema
from support.runners import bag, examples, one_batch, semantics

INTEGERS = st.one_of(st.integers(-20, 20), st.integers(-(2**62), 2**62), st.sampled_from([2**63 - 1, -(2**63) + 2]))
FLOATS = st.one_of(
    st.integers(-20, 20).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 10.0, 10.000000000000002, 9.999999999999998, 1e16, 1e300]),
)
SIZES = st.one_of(st.integers(1, 30), st.sampled_from([0.5, 2.5, 10.0, 1e16, 5e-324]), st.floats(1e-3, 1e6))


def rows_of(values, arrow, **roles):
    batch = pa.record_batch({"type": ["A"] * len(values), "m": pa.array(values, arrow)})
    schema = Schema(batch.schema, **roles)
    return BatchRows(batch, schema, np.arange(len(values)), finest_unit(schema)), schema


def assert_bounds(window, values, arrow, inside, **roles):
    rows, schema = rows_of(values, arrow, **roles)
    found, edges = measures(window, rows, schema), bounds(window, rows, schema)
    for a, start in enumerate(values):
        for b, now in enumerate(values):
            assert (found[a] > edges[b]) == inside(start, now), (start, now)


@examples(200)
@given(st.lists(INTEGERS, min_size=2, max_size=4), SIZES)
def test_integers(values, size):
    # The definition compares exactly; sizes that are no whole numbers too.
    assert_bounds(AttributeWindow(size, "m"), values, pa.int64(), lambda start, now: now - start < size)


@examples(300)
@given(st.lists(FLOATS, min_size=2, max_size=4), SIZES)
def test_floats(values, size):
    assert_bounds(AttributeWindow(size, "m"), values, pa.float64(), lambda start, now: now - start < float(size))


@pytest.mark.parametrize("now", [10.0, 10.000000000000002, 9.999999999999998, 0.0, 5e-324, 1e16])
@pytest.mark.parametrize("size", [10, 10.000000000000002, 5e-324, 1e16])
def test_floats_whose_bound_is_near_zero(now, size):
    # Between zero and the next number that makes a difference there are up to 2^62 other floats.
    near = [0.0, 5e-324, -5e-324, 1e-17, -1e-17, 2e-15, -2e-15, 1.0, -1.0, 2.0, -2.0]
    window = AttributeWindow(size, "m")
    assert_bounds(window, [now, *near], pa.float64(), lambda start, end: end - start < float(size))


def test_a_float_time_that_equals_the_window():
    events = pa.table({"type": ["A", "B", "B"], "t": [0.0, 9999.999999, 10_000.0]})
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 10 SECONDS")
    assert [row["detected_at"] for row in query.match(events, time="t").to_pylist()] == [1]


@examples(50)
@given(st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=4), st.integers(1, 10**10))
def test_timestamps(values, microseconds):
    for unit, per in (("s", 10**6), ("ms", 10**3), ("us", 1)):
        assert_bounds(
            DurationWindow(microseconds),
            values,
            pa.timestamp(unit),
            lambda start, now, per=per: (now - start) * per < microseconds,
            time="m",
        )
    assert_bounds(
        DurationWindow(microseconds),
        values,
        pa.timestamp("ns"),
        lambda start, now: now - start < microseconds * 1000,
        time="m",
    )


def test_numbers_as_times_are_milliseconds():
    inside = lambda start, now: now - start < 1.5  # noqa: E731
    assert_bounds(DurationWindow(1500), [0, 1, 2, 3], pa.int64(), inside, time="m")
    assert_bounds(DurationWindow(1500), [0.0, 1.0, 1.5, 2.0], pa.float64(), inside, time="m")


def test_positions():
    rows, schema = rows_of([0] * 5, pa.int64())
    window = CountWindow(3)
    found, edges = measures(window, rows, schema), bounds(window, rows, schema)
    assert [(a, b) for a in range(5) for b in range(a, 5) if found[a] > edges[b]] == [
        (a, b) for a in range(5) for b in range(a, 5) if b - a < 3
    ]


@pytest.mark.parametrize("arrow", [pa.int64(), pa.float64()])
def test_null_has_neither_measure_nor_bound(arrow):
    values = [1, None] if arrow == pa.int64() else [1.0, math.nan]
    rows, schema = rows_of(values, arrow)
    window = AttributeWindow(5, "m")
    assert [v == NULL for v in measures(window, rows, schema)] == [False, True]
    assert [v == NULL for v in bounds(window, rows, schema)] == [False, True]


def test_windows_larger_than_all_integers():
    rows, schema = rows_of([-(2**63) + 2, 2**63 - 1], pa.int64())
    window = AttributeWindow(2**63 - 1, "m")
    found, edges = measures(window, rows, schema), bounds(window, rows, schema)
    assert found[1] > edges[0]
    assert found[0] > edges[0]


def test_which_windows_hold_for_all_partitions():
    assert is_global(DurationWindow(1), True)
    assert not is_global(CountWindow(1), True)
    assert not is_global(AttributeWindow(1, "m"), True)
    assert is_global(CountWindow(1), False)


NOW = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0, 1.5, 3.0, 1e-9])), min_size=3, max_size=7)


@examples(100)
@given(NOW, st.sampled_from(["WITHIN 1.5 [n]", "WITHIN 1 [n]"]), st.sampled_from(["", "PARTITION BY k"]))
def test_float_windows_in_queries(steps, window, partition):
    total, values = 0.0, []
    for step in steps:
        total += step or 0.0
        values.append(None if step is None else total)
    size = len(values)
    measured = pa.array([v for v in values for _ in "12"], pa.float64())
    table = pa.table({"type": ["A", "B"] * size, "n": measured, "k": [0, 1] * size})
    for formula in ("A ; B", "A ; A", "(A ; A WITHIN 0.75 [n]) ; EVENT"):
        query = cerflow.parse(f"SELECT * WHERE {formula} {partition} {window}")
        assert bag(one_batch(query, table)) == bag(semantics(query, table))
