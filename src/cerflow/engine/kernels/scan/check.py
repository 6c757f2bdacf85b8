"""Whether all rows of a batch are usable, found out in one pass; what is wrong with others, Python says."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel, part
from cerflow.engine.kernels.base.shared_arrays import as_float
from cerflow.engine.kernels.scan.arrays import scan_at
from cerflow.engine.kernels.scan.values import has_bit, integer, load_word, locate, word_of
from cerflow.engine.scan.layout import (
    C_DATA,
    C_FACTOR,
    C_LAYOUT,
    C_OFFSET,
    C_VALID,
    INT64,
    IS_KNOWN,
    IS_LATER,
    IS_WITHIN,
    K_KIND,
    K_OTHER,
    K_WHAT,
    LATEST,
    UINT64,
)

__all__ = ["all_usable"]


@kernel
def all_usable(address, batch, count):
    """Whether all rows pass the checks, which are `ScanArrays.tests`; `LATEST` becomes the time of the last row."""
    if count == 0:
        return True
    s = scan_at(address)
    locate(s.columns, s.texts, batch)
    for k in range(s.tests.shape[0]):
        c = s.tests[k, K_WHAT]
        kind = s.tests[k, K_KIND]
        if kind == IS_WITHIN:
            if not _all_within(s.columns, c, count, s.tests[k, K_OTHER]):
                return False
        elif not _all_known(s.columns, c, count) or (
            kind != IS_KNOWN and not _ascends(s, c, count, kind, s.tests[k, K_OTHER])
        ):
            return False
    return True


@part
def _all_known(columns, c, count):
    if columns[c, C_VALID] != 0:
        for row in range(count):
            if not has_bit(columns[c, C_VALID], columns[c, C_OFFSET] + row):
                return False
    return True


@part
def _all_within(columns, c, count, most):
    """Whether no magnitude is greater; nulls do not count."""
    data, offset, valid, layout = columns[c, C_DATA], columns[c, C_OFFSET], columns[c, C_VALID], columns[c, C_LAYOUT]
    least = greatest = np.int64(0)
    if layout == INT64 and valid == 0:
        # The compiler makes vectors of this loop.
        for row in range(count):
            value = load_word(data, offset + row)
            least = min(least, value)
            greatest = max(greatest, value)
        return greatest <= most and least >= -most
    for row in range(count):
        if valid == 0 or has_bit(valid, offset + row):
            value = integer(layout, data, offset + row)
            if value > most or value < -most or (layout == UINT64 and value < 0):
                return False
    return True


@part
def _ascends(s, c, count, kind, most):
    """Whether no time is less than the one before, nor NaN; no time is null, and ``most`` limits 64-bit integers."""
    columns, before = s.columns, s.control[LATEST]
    data, offset, layout = columns[c, C_DATA], columns[c, C_OFFSET], columns[c, C_LAYOUT]
    if kind == IS_LATER and layout == INT64 and columns[c, C_FACTOR] == 1:
        first, last = load_word(data, offset), load_word(data, offset + count - 1)
        falls = np.int64(first < before)
        # The compiler makes vectors of this loop.
        for row in range(1, count):
            falls += np.int64(load_word(data, offset + row) < load_word(data, offset + row - 1))
        s.control[LATEST] = last
        # Values that ascend are within range if the first and the last are.
        return falls == 0 and (most == 0 or (first >= -most and last <= most))
    for row in range(count):
        word = word_of(columns, c, row, 0)
        # Comparisons with NaN are false.
        if not (word >= before if kind == IS_LATER else as_float(word) >= as_float(before)):
            return False
        before = word
    s.control[LATEST] = before
    return True
