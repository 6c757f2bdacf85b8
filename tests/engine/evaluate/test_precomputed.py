"""Conditions that somebody else has evaluated give the same matches without the columns that only they read."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow import Recognizer
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED, with_bits
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.recognize.plan import Plan
from cerflow.logic.conditions.connectives import atomic_conditions
from cerflow.logic.rewriting.times import with_times_as_numbers
from support.relevance_cases import ALL, FRAGMENTS, drawn
from support.runners import examples, frozen

SCHEMA = Schema(ALL, time="t", stream="from")


def parts_of(query, schema, position):
    return list(dict.fromkeys(part for test in query.plan(schema, position).tests for part in atomic_conditions(test)))


def narrowed(query, table, conditions, schema, position):
    """The plan and the table for which these conditions are evaluated."""
    full = query.plan(schema, position)
    (batch,) = table.combine_chunks().to_batches()
    numbers = None if position is None else np.array(table[position])
    positions = np.arange(len(batch))
    rows = BatchRows(batch, full.streams.schema, positions, finest_unit(schema), numbers)
    bits = np.zeros(len(batch), np.int64)
    for number, condition in enumerate(conditions):
        truth = rows.truth(condition)
        bits |= np.where(truth.true, 1 << 2 * number, 0)
        if truth.unknown is not None:
            bits |= np.where(truth.unknown, 2 << 2 * number, 0)
    needed = Plan(
        query.tree, with_bits(schema), position=position, transducer=full.transducer, precomputed=conditions
    ).needs
    names = [name for name in schema.attributes if name in needed]
    narrow = table.select(names).append_column(PRECOMPUTED, pa.array(bits))
    type_ = schema.type if schema.type in names else PRECOMPUTED
    stream = schema.stream if schema.stream in names else None
    events = replace(schema, columns=narrow.schema, type=type_, stream=stream)
    return Plan(query.tree, events, position=position, precomputed=conditions), narrow


@examples(250)
@given(st.data(), st.sampled_from(sorted(FRAGMENTS)))
def test_matches_are_the_same(data, kind):
    query, table = drawn(data, kind)
    # Conditions are never evaluated before for a query whose tree depends on the types of columns.
    assume(with_times_as_numbers(query.tree, SCHEMA) is query.tree)
    parts = parts_of(query, SCHEMA, "at")[:31]
    some = data.draw(st.lists(st.sampled_from(parts), unique=True)) if parts else []
    conditions = some if data.draw(st.integers(0, 3)) == 0 else parts
    assume(conditions)
    expected = query.recognizer(ALL, time="t", stream="from", position="at").push(table).to_pylist()
    plan, narrow = narrowed(query, table, conditions, SCHEMA, "at")
    event(f"{len(table.column_names) - len(narrow.column_names) + 1} columns saved")
    found = Recognizer(query.tree, plan.schema, plan=plan).push(narrow).to_pylist()
    assert list(map(frozen, found)) == list(map(frozen, expected))


EVENTS = pa.table({"type": ["A", "B", "A", "B"], "s": ["x", "y", None, "z"], "t": [1, 2, 3, 4]})


@pytest.mark.parametrize(
    ("projection", "columns"),
    [
        ("COUNT(*) AS n", ["t", PRECOMPUTED]),
        ("NONE", ["t", PRECOMPUTED]),
        ("b[t]", ["type", "t", PRECOMPUTED]),
        ("*", [*"st", PRECOMPUTED]),
    ],
)
def test_what_only_conditions_read_is_not_needed(projection, columns):
    query = cerflow.parse(f"SELECT {projection} WHERE A AS a ; B AS b FILTER a.s LIKE 'x%' AND NOT b.s = 'y'")
    schema = Schema(EVENTS.schema, time="t")
    plan, narrow = narrowed(query, EVENTS, parts_of(query, schema, None), schema, None)
    expected = query.match(EVENTS, time="t").to_pylist()
    assert len(expected) == 1
    assert Recognizer(query.tree, plan.schema, plan=plan).push(narrow).to_pylist() == expected
    assert set(narrow.column_names) == {*columns, *(["type"] if projection == "*" else [])}
