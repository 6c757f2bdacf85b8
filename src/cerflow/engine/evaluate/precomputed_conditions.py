"""Conditions on one event that were evaluated before the engine sees the event, mostly by Spark.

A column of integers holds the results: bit 2k says whether condition k is true for the event, bit 2k+1 whether it is
unknown. Columns that only these conditions read may then be missing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from cerflow.base.schema import Schema
from cerflow.engine.evaluate.vectors import TruthVector, Vector
from cerflow.language.condition import Condition
from cerflow.language.node import node

#: The column of bits; it is not an attribute of events.
PRECOMPUTED = "\0precomputed"
#: The number of conditions that fit a 64-bit column.
PRECOMPUTED_BITS = 31
_BITS = pa.int64()


@node
class Precomputed(Condition):
    """The precomputed condition with this number."""

    number: int

    template = "precomputed {number}"


def with_bits(schema: Schema, data_type: pa.DataType = _BITS) -> Schema:
    """The schema with the column of bits added."""
    return replace(schema, columns=schema.columns.append(pa.field(PRECOMPUTED, data_type)))


def precomputed_truth(bits: Vector, number: int) -> TruthVector:
    """The truth of a condition according to a column of bits."""
    codes = bits.data.astype(np.int64, copy=False)
    return TruthVector((codes >> 2 * number & 1).astype(bool), (codes >> 2 * number + 1 & 1).astype(bool))
