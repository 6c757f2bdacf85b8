"""Columns of text as codes into the distinct texts of a batch."""

from __future__ import annotations

import pyarrow as pa

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import numbers_of


def encoded(column: pa.Array) -> tuple[Ints, pa.Array]:
    """The code of each text and the distinct texts; codes of nulls are arbitrary."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return numbers_of(column.indices.cast(pa.int64())), column.dictionary
