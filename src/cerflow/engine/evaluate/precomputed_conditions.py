"""Conditions on one event that were evaluated before the engine sees the event, by Spark above all.

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

__all__ = [
    "PRECOMPUTED",
    "PRECOMPUTED_BITS",
    "Precomputed",
    "numbered_conditions",
    "precomputed_truth",
    "with_bits",
    "with_precomputed",
]

#: The column of bits; it is no attribute of events.
PRECOMPUTED = "\0precomputed"
#: Conditions whose bits fit a column of 64.
PRECOMPUTED_BITS = 31
_BITS = pa.int64()


@node
class Precomputed(Condition):
    """The condition with this number, of those that are precomputed."""

    number: int

    def notation(self) -> tuple[str | Node, ...]:
        """See `Node.notation`."""
        return (f"precomputed {self.number}",)


def with_bits(schema: Schema, data_type: pa.DataType = _BITS) -> Schema:
    """The schema with the column of bits beside the others."""
    return replace(schema, columns=schema.columns.append(pa.field(PRECOMPUTED, data_type)))


def numbered_conditions(conditions: Sequence[Condition]) -> Mapping[Condition, Precomputed]:
    """What stands for each condition."""
    return {condition: Precomputed(number) for number, condition in enumerate(conditions)}


def with_precomputed(test: Condition, precomputed: Mapping[Condition, Precomputed]) -> Condition:
    """A test in which the precomputed conditions are not evaluated any more."""
    if not precomputed:
        return test

    def visit(current: Node) -> Node:
        return precomputed.get(current, current) if isinstance(current, Condition) else current

    changed = transform(test, visit)
    assert isinstance(changed, Condition)
    return changed


def precomputed_truth(bits: Vector, number: int) -> TruthVector:
    """What a column of bits says of a condition."""
    codes = bits.data.astype(np.int64, copy=False)
    return TruthVector((codes >> 2 * number & 1).astype(bool), (codes >> 2 * number + 1 & 1).astype(bool))
