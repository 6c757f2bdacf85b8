"""Columns of text as codes into the distinct texts of a batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cerflow import limits
from cerflow.engine.kernels.table import encode
from cerflow.values.array_types import Ints
from cerflow.values.arrow_columns import array_of_numbers, array_of_texts, numbers_of

__all__ = ["encoded"]

#: The number of slots of the first hash table to try; then larger ones.
_SLOTS, _LARGER = 1 << 8, 1 << 4


def encoded(column: pa.Array) -> tuple[Ints, pa.Array]:
    """The code of each text and the distinct texts; codes of nulls have no meaning."""
    if pa.types.is_dictionary(column.type):
        return numbers_of(column.indices.cast(pa.int64())), column.dictionary
    if not pa.types.is_string(column.type) or len(column) == 0:
        return encoded(column.dictionary_encode())
    bits, starts, texts = column.buffers()
    offsets = np.frombuffer(starts, np.int32)[column.offset : column.offset + len(column) + 1]
    offsets = np.require(offsets, requirements="A")
    data = np.frombuffer(texts, np.uint8) if texts is not None else np.zeros(0, np.uint8)
    valid = np.zeros(0, np.uint8)
    if column.null_count:
        some = np.frombuffer(bits, np.uint8)
        valid = np.unpackbits(some, bitorder="little")[column.offset : column.offset + len(column)]
    codes_of = np.zeros(len(column), np.int64)
    slots = _SLOTS
    while True:
        table = np.full((slots, 3), -1, np.int64)
        first = np.zeros(slots // 2 + 1, np.int64)
        count = int(encode(offsets, data, valid, table, first, codes_of))
        if count > limits.ENCODED_TEXTS:
            return codes_of, column.take(array_of_numbers(first[:count]))
        if count >= 0:
            # Taking from a slice costs in proportion to the whole array behind it.
            return codes_of, array_of_texts([column[row].as_py() for row in first[:count].tolist()])
        slots *= _LARGER
