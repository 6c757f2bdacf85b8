"""Batches become signatures and columns; a signature stands for all tests that an event satisfies."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine.events.reader import EventReader
from cerflow.engine.recognize.plan import Plan
from support.runners import bag, examples, one_batch, semantics


def reader_of(text, table, **roles):
    plan = Plan(cerflow.parse(text).tree, Schema(table.schema, **roles))
    reader = EventReader(plan.begin_scan(), plan.keys, plan.evaluation)
    return reader.tables, reader


def disjunction(conditions):
    """A query with one step for each condition, any of which may come."""
    return " OR ".join(
        f"(A AS x{k} FILTER {condition.replace('@', f'x{k}')})" for k, condition in enumerate(conditions)
    )


def events_of(reader, table, first=0):
    return reader.read(table.combine_chunks().to_batches()[0], first)


@pytest.mark.parametrize("count", [3, 17, 20, 65, 200])
def test_as_many_signatures_as_combinations_that_occur(count):
    conditions = [f"@.v < {k}" for k in range(count)]
    table = pa.table({"type": ["A"] * (count + 5) + ["B"], "v": [*range(-2, count + 3), 0]})
    tables, reader = reader_of(f"SELECT * WHERE {disjunction(conditions)}", table)
    assert len(tables.tests) > count
    events, found = events_of(reader, table)
    assert events.position[:found].tolist() == list(range(count + 1))
    # Events that satisfy the same tests have the same signature.
    assert len(set(events.signature[:found].tolist())) == count
    assert len(set(events.signature[:2].tolist())) == 1


@pytest.mark.parametrize("count", [6, 20, 70])
def test_many_independent_tests(count):
    table_rows = [{"type": "A", **{f"c{k}": (row * 7919 + k * 104729) % 5 for k in range(count)}} for row in range(60)]
    table = pa.Table.from_pylist(table_rows)
    query = cerflow.parse(f"SELECT COUNT(*) AS n WHERE {disjunction([f'@.c{k} < 2' for k in range(count)])}")
    found = {row["detected_at"]: int(row["n"]) for row in one_batch(query, table)}
    assert found == {
        n: hits for n, row in enumerate(table_rows) if (hits := sum(row[f"c{k}"] < 2 for k in range(count)))
    }


@pytest.mark.slow
def test_many_signatures_in_a_large_batch():
    size, count = 8_000, 20
    drawn = np.random.default_rng(5).random((count, size))
    table = pa.table({"type": pa.array(["A"] * size), **{f"c{k}": drawn[k] for k in range(count)}})
    query = cerflow.parse(f"SELECT COUNT(*) AS n WHERE {disjunction([f'@.c{k} < 0.5' for k in range(count)])}")
    assert query.match(table).count() == int((drawn < 0.5).sum())


def test_signatures_are_forgotten_between_batches(monkeypatch):
    monkeypatch.setattr(limits, "SIGNATURES", 40)
    steps = " ; ".join(f"(A AS x{k} FILTER x{k}.c{k} < 1)" for k in range(3))
    several = cerflow.parse(f"SELECT * WHERE {steps}")
    rows = [{"type": "A", "c0": k % 5, "c1": k % 3, "c2": k % 7} for k in range(60)]
    limited = cerflow.parse(f"SELECT COUNT(*) AS n WHERE {disjunction([f'@.v = {k}' for k in range(100)])}")
    values = pa.table({"type": ["A"] * 300, "v": [k % 100 for k in range(300)]})
    for query, table in ((several, pa.Table.from_pylist(rows)), (limited, values)):
        recognizer = query.recognizer(table.schema)
        found = [row for k in range(table.num_rows) for row in recognizer.push(table.slice(k, 1)).to_pylist()]
        assert bag(found) == bag(one_batch(query, table))
        assert len(recognizer._machine.tables.relevant) <= 42


def test_tests_of_strings_are_made_once_per_string():
    conditions = ["@.s LIKE 'p%'", "@.s = 'pq'", "@.s IS NULL", "length(@.s) > 2", "@.s NOT IN ('a', 'pq')"]
    values = ["p", "pq", None, "a", "long", "pq", None, ""]
    table = pa.table({"type": ["A"] * len(values), "s": values})
    tables, reader = reader_of(f"SELECT * WHERE {disjunction(conditions)}", table)
    assert {name: len(tests) for name, tests in reader.evaluation.by_string.items()} == {
        "s": len(conditions),
        "type": 1,
    }
    query = cerflow.parse(f"SELECT * WHERE {disjunction(conditions)}")
    assert bag(one_batch(query, table)) == bag(semantics(query, table))
    assert tables.strings.texts == []


def test_only_events_that_matter_are_chosen():
    table = pa.table({"type": list("ABCAB"), "v": [1, 2, 3, 0, 5]})
    _, reader = reader_of("SELECT * WHERE A AS x ; B FILTER x.v > 0", table)
    events, found = events_of(reader, table, 100)
    assert events.position[:found].tolist() == [100, 101, 104]


def test_every_event_is_chosen_where_positions_in_the_substream_count():
    table = pa.table({"type": list("ABCAB"), "k": [1, 1, 2, None, 2]})
    for text in ("SELECT * WHERE A : B PARTITION BY k", "SELECT * WHERE A ; B PARTITION BY k WITHIN 3 EVENTS"):
        _, reader = reader_of(text, table)
        events, found = events_of(reader, table)
        assert events.position[:found].tolist() == [0, 1, 2, 4]
    _, reader = reader_of("SELECT * WHERE A : B", table)
    events, found = events_of(reader, table)
    assert events.position[:found].tolist() == [0, 1, 3, 4]


def test_zero_and_null_have_one_bit_pattern():
    quiet = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    table = pa.table({"type": ["A"] * 4, "f": pa.array([0.0, -0.0, float("nan"), quiet]), "g": [1.5] * 4})
    query = "SELECT * WHERE (A AS x ; A AS y) FILTER x.f = y.f PARTITION BY g"
    _, reader = reader_of(query, table)
    events, _ = events_of(reader, table)
    (column,) = [events.columns[:, k] for k, c in enumerate(reader.tables.columns) if c.expression is not None]
    assert column[0] == column[1] != column[2] == column[3]


def test_a_key_of_several_attributes_is_the_first_that_is_there():
    table = pa.table(
        {
            "type": ["A"] * 6,
            "i": pa.array([1, None, None, 2, None, 1], pa.int64()),
            "f": pa.array([5.0, 1.0, -0.0, None, None, None]),
        }
    )
    query = cerflow.parse("SELECT * WHERE A ; A PARTITION BY [i, f]")
    found = one_batch(query, table)
    assert bag(found) == bag(semantics(query, table))
    assert {(row["start"], row["end"], row["i"]) for row in found} == {(0, 1, 1), (0, 5, 1), (1, 5, 1)}


KEYS = {
    "strings": ["p", "q", None, "p", "", "q", ""],
    "floats": [0.0, -0.0, float("nan"), None, 1.5, 1.5, 0.0],
    "booleans": [True, False, None, True, False, None, True],
    "integers": [2**63 - 1, -(2**63) + 1, 0, 2**63 - 1, None, 0, -(2**63) + 1],
}


@pytest.mark.parametrize("values", KEYS.values(), ids=KEYS)
def test_keys_of_every_kind(values, engine_runner):
    table = pa.table({"type": ["A"] * len(values), "k": values, "one": [1] * len(values)})
    for key in ("k", "k, one", "one, k"):
        query = cerflow.parse(f"SELECT * WHERE A ; A PARTITION BY {key}")
        assert bag(engine_runner(query, table)) == bag(semantics(query, table))


def test_keys_of_timestamps_and_dictionaries(engine_runner):
    table = pa.table(
        {
            "type": pa.array(["A"] * 4).dictionary_encode(),
            "d": pa.array(["p", "q", "p", None]).dictionary_encode(),
            "t": pa.array([1, 1, 1, 2], pa.timestamp("s", "Europe/Berlin")),
        }
    )
    for key in ("d", "t", "type, d", "d, t"):
        query = cerflow.parse(f"SELECT * WHERE A ; A PARTITION BY {key}")
        assert bag(engine_runner(query, table)) == bag(semantics(query, table))


@examples(30)
@given(st.lists(st.sampled_from(["p", "q", "pq", None]), min_size=2, max_size=10))
def test_dictionaries_that_differ_from_batch_to_batch(values):
    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER x.s < y.s AND x.s != 'q'")
    plain = pa.table({"type": ["A"] * len(values), "s": pa.array(values, pa.string())})
    encoded = pa.schema([("type", pa.string()), ("s", pa.dictionary(pa.int32(), pa.string()))])
    recognizer = query.recognizer(encoded)
    found = []
    for k in range(plain.num_rows):
        column = plain["s"].slice(k, 1).combine_chunks().dictionary_encode()
        batch = pa.table({"type": ["A"], "s": column})
        found += recognizer.push(batch).to_pylist()
    assert bag(found) == bag(semantics(query, plain))
