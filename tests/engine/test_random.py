"""Random queries on random streams: every way of running the engine gives what the definitions say."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.errors import QueryError
from cerflow.language.formula import AttributeWindow, Strategy
from cerflow.language.node import walk
from cerflow.language.select import CountItem, ProjectionKind
from random_conditions import Fragment
from random_queries import cases
from runners import ENGINE_RUNNERS, bag, engine_refuses, examples, frozen, one_batch, semantics, unsupported

COLUMNS = {
    "type": pa.string(),
    "t": pa.int64(),
    "v": pa.int64(),
    "w": pa.float64(),
    "s": pa.string(),
    "k": pa.int64(),
    "n": pa.int64(),
}


def table_of(rows, columns=COLUMNS):
    return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in columns.items()})


def drawn(data, **options):
    """A query that is well-formed, and events; where a window measures ``n``, some events lack it."""
    select, rows = data.draw(cases(**options))
    try:
        query = cerflow.Query(select)
    except QueryError:
        assume(False)
    if any(isinstance(current, AttributeWindow) for current in walk(select)):
        for row in rows:
            if data.draw(st.integers(0, 4)) == 0:
                row["n"] = None
    return query, table_of(rows)


def limit(select):
    limits = [1] if select.strategy is Strategy.ANY or select.projection.kind is ProjectionKind.NONE else []
    limits += [select.limit] if select.limit is not None else []
    return min(limits) if limits else None


def assert_limited(query, table, found):
    """LIMIT and ANY choose among the matches of each detecting event; which of them is open."""
    everything = semantics(cerflow.Query(replace(query.tree, limit=None, strategy=Strategy.ALL)), table, time="t")
    most = limit(query.tree)
    counts = [item.name for item in query.tree.projection.items if isinstance(item, CountItem)]
    if counts:
        assert bag(found) == bag([{**row, **{n: min(row[n], most) for n in counts}} for row in everything])
        return
    taken = Counter(row["detected_at"] for row in found)
    assert taken == {n: min(most, k) for n, k in Counter(row["detected_at"] for row in everything).items()}
    assert bag(found) <= bag(everything)


def assert_conforms(query, table, runners):
    expected = None
    for name, run in runners.items():
        found = run(query, table, time="t")
        detected = [row["detected_at"] for row in found]
        assert detected == sorted(detected), name
        if expected is not None:
            # The same order, too: what is written does not depend on how the events came.
            assert [frozen(row) for row in found] == expected, name
            continue
        expected = [frozen(row) for row in found]
        if limit(query.tree) is not None:
            assert_limited(query, table, found)
        else:
            wanted = semantics(query, table, time="t")
            assert bag(found) == bag(wanted)
            event("matching" if wanted else "not matching")


@examples(250)
@given(st.data())
def test_in_one_batch(data):
    query, table = drawn(data)
    assert unsupported(query) is None
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


@examples(60)
@given(st.data())
def test_what_the_engine_refuses_it_refuses_for_a_reason(data):
    select, rows = data.draw(cases(Fragment(aggregates=True, more=True), strategies=True))
    try:
        query = cerflow.Query(select)
    except QueryError:
        assume(False)
    table = table_of(rows)
    assert engine_refuses(query, table, time="t") == (unsupported(query) is not None)


KINDS = {
    "float32 and decimals": {"v": pa.float32(), "w": pa.decimal128(6, 2), "k": pa.float64()},
    "narrow integers": {"v": pa.int8(), "w": pa.float32(), "k": pa.int16(), "n": pa.int32(), "t": pa.int32()},
    "dictionaries": {"type": pa.dictionary(pa.int8(), pa.string()), "s": pa.dictionary(pa.int32(), pa.string())},
    "large strings and float times": {"type": pa.large_string(), "s": pa.large_string(), "t": pa.float64()},
    "float windows": {"n": pa.float64(), "t": pa.float32()},
}


@examples(100)
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_with_columns_of_other_types(data, kind):
    query, table = drawn(data)
    assume(limit(query.tree) is None)
    other = table.cast(pa.schema([(name, KINDS[kind].get(name, type_)) for name, type_ in COLUMNS.items()]))
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
    other = table.cast(pa.schema([(name, KINDS[kind].get(name, type_)) for name, type_ in COLUMNS.items()]))
    assert bag(one_batch(query, other, time="t")) == bag(semantics(query, other, time="t"))


@examples(100)
@given(st.data(), st.sampled_from(["s", "ms", "us", "ns"]), st.sampled_from([None, "UTC", "Europe/Berlin"]))
def test_with_timestamps(data, unit, zone):
    query, table = drawn(data)
    assume(limit(query.tree) is None)
    # A tick is a second, so that every unit can hold it; windows of time are whole seconds as well.
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    moments = pa.array([t * factor for t in table["t"].to_pylist()], pa.timestamp(unit, zone))
    table = table.set_column(1, "t", moments)
    assert bag(one_batch(query, table, time="t")) == bag(semantics(query, table, time="t"))
