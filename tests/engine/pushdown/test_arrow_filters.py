"""Expressions of pyarrow are true of the same events as conditions are to the engine."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given

import cerflow
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.pushdown.relevance import plainly, relevant_events
from cerflow.engine.pushdown.translation import ArrowTranslation, arrow_filter
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Like,
    Literal,
    Not,
    Regexp,
)
from cerflow.logic.conditions.guards import Satisfied, TypeTest
from cerflow.logic.conditions.propositions import is_not_true, is_true, leaves_of
from cerflow.logic.conditions.register_values import Microseconds
from support import adversarial
from support.runners import examples


def satisfied(proposition):
    found = arrow_filter(proposition, adversarial.SCHEMA)
    numbered = adversarial.TABLE.append_column("at", pa.array(range(len(adversarial.TABLE))))
    kept = set((numbered if found is None else numbered.filter(found))["at"].to_pylist())
    return [at in kept for at in range(len(numbered))]


@examples(400)
@given(adversarial.conditions())
def test_they_are_true_of_the_same_rows_as_the_conditions(condition):
    decides = ArrowTranslation(adversarial.SCHEMA).decides
    for make, asked in ((is_true, condition), (is_not_true, Not(Satisfied(condition)))):
        proposition = plainly(make(condition), adversarial.SCHEMA)
        exact = all(map(decides, leaves_of(proposition)))
        event(
            "exact" if exact else "weaker" if arrow_filter(proposition, adversarial.SCHEMA) is not None else "nothing"
        )
        found, expected = satisfied(proposition), adversarial.truth(asked)
        assert adversarial.truth(proposition) == expected
        if exact:
            assert found == expected
        else:
            assert all(kept for kept, true in zip(found, expected) if true)


A, F = Attribute(None, "s"), Attribute(None, "f64")


@pytest.mark.parametrize(
    ("condition", "decided"),
    [
        (Comparison(Operator.GE, A, Literal("b")), True),
        (Comparison(Operator.NE, F, Literal(0.5)), True),
        (Comparison(Operator.LT, Attribute(None, "i64"), Literal(2**53)), True),
        (Comparison(Operator.LT, Attribute(None, "i64"), Literal(2.0**53)), False),
        (Comparison(Operator.GT, Attribute(None, "wide"), Literal(1)), False),
        (Comparison(Operator.EQ, A, Literal("\ud800")), False),
        (Comparison(Operator.EQ, Attribute(None, "zoned"), Literal("2024-01-01")), True),
        (Comparison(Operator.EQ, Attribute(None, "day"), Literal("2024-01-01")), False),
        (Like(A, "a%b"), True),
        (Like(A, "a_b"), False),
        (Regexp(A, "a"), False),
        (Comparison(Operator.GE, A, A), False),
        (TypeTest("a"), True),
    ],
)
def test_what_is_decided(condition, decided):
    assert ArrowTranslation(adversarial.SCHEMA).decides(condition) is decided
    assert (arrow_filter(is_true(condition), adversarial.SCHEMA) is not None) is decided


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("make", [pa.timestamp, lambda unit: pa.timestamp(unit, "Europe/Paris"), pa.duration])
def test_times_of_all_units(unit, make):
    """Columns of times beside numbers of microseconds, on both sides of every edge."""
    ticks = [0, 1, -1, 999, 1000, 1001, -999, -1000, -1001, 10**9, -(10**9), None]
    if unit != "s":
        ticks += [2**62, -(2**62) - 9] if unit in ("us", "ns") else [2**52, -(2**52) - 9]
    table = pa.table({"type": ["A"] * len(ticks), "a": pa.array(ticks, make(unit)), "at": range(len(ticks))})
    schema = Schema(table.schema)
    (batch,) = table.to_batches()
    rows = BatchRows(batch, schema, range(len(ticks)), finest_unit(schema))
    size = MICROSECONDS[unit]
    micros = {math.floor(n * size) + d for n in (*ticks[:-1], 1998, 2000) if n is not None for d in (-1, 0, 1)}
    for operator in Operator:
        for literal in [Literal(n) for n in sorted(micros) if abs(n) < 2**63]:
            condition = Comparison(operator, Microseconds(Attribute(None, "a")), literal)
            if not ArrowTranslation(schema).decides(condition):
                # In nanoseconds the literal is beyond 64 bits.
                assert unit == "ns"
                assert abs(literal.value) > 2**62 // 1000
                continue
            for make_, asked in ((is_true, condition), (is_not_true, Not(Satisfied(condition)))):
                found = arrow_filter(plainly(make_(condition), schema), schema)
                assert (
                    table.filter(found)["at"].to_pylist()
                    == np.flatnonzero(np.broadcast_to(rows.truth(asked).true, (len(ticks),))).tolist()
                ), condition


def test_row_groups_are_skipped_by_durations(tmp_path):
    """Readers compare durations and times with the bounds of row groups."""
    seconds = [0, 10, 400, 500]
    begun = pa.array([0] * 4, pa.timestamp("us"))
    table = pa.table(
        {
            "type": ["A"] * 4,
            "t": pa.array(range(4)),
            "took": pa.array([n * 10**6 for n in seconds], pa.duration("us")),
            "begun": begun,
            "ended": pa.array([n * 10**6 for n in seconds], pa.timestamp("us")),
        }
    )
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=2)
    for asked in ("x.took > 5 MINUTES", "x.ended - x.begun > 5 MINUTES"):
        query = cerflow.parse(f"SELECT * WHERE A AS x FILTER {asked}")
        schema = Schema(table.schema, "type", "t")
        condition = relevant_events(query.tree, query.plan(schema).transducer, schema, counted=False).condition
        wanted = arrow_filter(condition, schema)
        (fragment,) = ds.dataset(tmp_path).get_fragments()
        groups = [group.id for group in fragment.subset(wanted, schema=table.schema).row_groups]
        assert groups == ([1] if "took" in asked else [0, 1])
        if "took" in asked:
            assert table.filter(wanted)["t"].to_pylist() == [2, 3]
