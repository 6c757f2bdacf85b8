"""Columns of integers as dictionaries of texts."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from cerflow.base.arrow_columns import encoded_texts

LIMITS = {pa.int8(): (-128, 127), pa.uint8(): (0, 255), pa.int64(): (-(2**63), 2**63 - 1), pa.uint64(): (0, 2**64 - 1)}


@pytest.mark.parametrize("kind", LIMITS, ids=str)
@pytest.mark.parametrize("span", [1, 100, 2**40])
@pytest.mark.parametrize("at", ["least", "greatest"])
@pytest.mark.parametrize("nulls", [0, 1])
def test_integers_become_their_texts(kind: pa.DataType, span: int, at: str, nulls: int) -> None:
    generator, (least, greatest) = random.Random(span), LIMITS[kind]
    ends = (least, min(least + span, greatest)) if at == "least" else (max(least, greatest - span), greatest)
    values = [generator.randint(*ends) for _ in range(300)] + [None] * nulls
    column = pa.chunked_array([pa.array(values[:170], kind)[3:], pa.array(values[170:], kind), pa.array([], kind)])
    texts = [None if value is None else str(value) for value in values[3:]]
    for one in (column, *column.chunks):
        assert encoded_texts(one).cast(pa.string()).to_pylist() == texts[: len(one)]
        texts = texts if one is column else texts[len(one) :]


def test_integers_without_values_become_texts() -> None:
    assert encoded_texts(pa.array([None, None], pa.int32())).to_pylist() == [None, None]
    assert encoded_texts(pa.chunked_array([], pa.int32())).to_pylist() == []
