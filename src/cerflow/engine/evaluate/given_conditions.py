"""Conditions on one event that somebody else has evaluated.

A column of integers says what was found: bit 2k whether condition k is true of the event, bit 2k+1 whether it is
unknown. What only these conditions read need not be there then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from cerflow.engine.evaluate.vectors import TruthVector, Vector
from cerflow.language.condition import Condition
from cerflow.language.node import Node, node, transform
from cerflow.schema import Schema

__all__ = ["GIVEN", "GIVEN_BITS", "Given", "given_truth", "numbered", "with_bits", "with_given"]

#: The column of bits; it is no attribute of events.
GIVEN = "\0given"
#: Conditions whose bits fit a column of 64.
GIVEN_BITS = 31
_BITS = pa.int64()


@node
class Given(Condition):
    """The condition with this number, of those that are given."""

    number: int

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        return (f"given {self.number}",)


def with_bits(schema: Schema, data_type: pa.DataType = _BITS) -> Schema:
    """The schema with the column of bits beside the others."""
    return replace(schema, columns=schema.columns.append(pa.field(GIVEN, data_type)))


def numbered(conditions: Sequence[Condition]) -> Mapping[Condition, Given]:
    """What stands for each condition."""
    return {condition: Given(number) for number, condition in enumerate(conditions)}


def with_given(test: Condition, given: Mapping[Condition, Given]) -> Condition:
    """A test in which the conditions that are given are not evaluated any more."""
    if not given:
        return test

    def visit(current: Node) -> Node:
        return given.get(current, current) if isinstance(current, Condition) else current

    changed = transform(test, visit)
    assert isinstance(changed, Condition)
    return changed


def given_truth(bits: Vector, number: int) -> TruthVector:
    """What a column of bits says of a condition."""
    codes = bits.data.astype(np.int64, copy=False)
    return TruthVector((codes >> 2 * number & 1).astype(bool), (codes >> 2 * number + 1 & 1).astype(bool))
