"""Whether all rows of a batch are valid, found out in one pass; what is wrong with others, Python says."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel, part
from cerflow.engine.kernels.base.shared_arrays import as_float
from cerflow.engine.kernels.scan import values as v
from cerflow.engine.scan import layout

#: The greatest integer.
MOST = 2**63 - 1


@kernel
def all_valid(address, batch, count):
    """Whether all rows pass the checks, which are `ScanArrays.tests`; `LATEST` becomes the time of the last row."""
    if count == 0:
        return True
    s = v.scan_at(address)
    v.locate(s.columns, s.texts, batch)
    for k in range(s.tests.shape[0]):
        c = s.tests[k, layout.K_WHAT]
        kind = s.tests[k, layout.K_KIND]
        if kind == layout.IS_PLAIN:
            if not v.has_plain_dictionary(batch, s.columns[c, layout.C_CHILD]):
                return False
        elif kind == layout.IS_WITHIN:
            if not _all_within(s.columns, c, count, s.tests[k, layout.K_OTHER]):
                return False
        elif not _all_known(s.columns, c, count) or (
            kind != layout.IS_KNOWN and not _ascends(s, c, count, kind, s.tests[k, layout.K_OTHER])
        ):
            return False
    return True


@part
def _all_known(columns, c, count):
    if columns[c, layout.C_VALID] != 0:
        for row in range(count):
            if not v.has_bit(columns[c, layout.C_VALID], columns[c, layout.C_OFFSET] + row):
                return False
    return True


@part
def _all_within(columns, c, count, most):
    """Whether no magnitude is greater; nulls do not count."""
    data, offset = columns[c, layout.C_DATA], columns[c, layout.C_OFFSET]
    valid, kind = columns[c, layout.C_VALID], columns[c, layout.C_LAYOUT]
    least = greatest = np.int64(0)
    if kind == layout.INT64 and valid == 0:
        # The compiler makes vectors of this loop.
        for row in range(count):
            value = v.load_word(data, offset + row)
            least = min(least, value)
            greatest = max(greatest, value)
        return greatest <= most and least >= -most
    for row in range(count):
        if valid == 0 or v.has_bit(valid, offset + row):
            value = v.integer(kind, data, offset + row)
            if value > most or value < -most or (kind == layout.UINT64 and value < 0):
                return False
    return True


@part
def _ascends(s, c, count, kind, most):
    """Whether no time is less than the one before, nor NaN; no time is null, and ``most`` limits 64-bit integers."""
    columns, before = s.columns, s.control[layout.LATEST]
    data, offset, form = columns[c, layout.C_DATA], columns[c, layout.C_OFFSET], columns[c, layout.C_LAYOUT]
    if kind == layout.IS_LATER and form == layout.INT64 and columns[c, layout.C_FACTOR] == 1:
        first, last = v.load_word(data, offset), v.load_word(data, offset + count - 1)
        falls = np.int64(first < before)
        # The compiler makes vectors of this loop.
        for row in range(1, count):
            falls += np.int64(v.load_word(data, offset + row) < v.load_word(data, offset + row - 1))
        s.control[layout.LATEST] = last
        # Values that ascend are within range if the first and the last are.
        return falls == 0 and (most == 0 or (first >= -most and last <= most))
    if kind == layout.IS_LATER and form == layout.INT32 and columns[c, layout.C_FACTOR] > 0:
        first, last = v.word_of(columns, c, 0, 0), v.word_of(columns, c, count - 1, 0)
        falls = np.int64(first < before)
        for row in range(1, count):
            falls += np.int64(v.load_int(data, offset + row) < v.load_int(data, offset + row - 1))
        bound, ends = np.int64(MOST) // columns[c, layout.C_FACTOR], v.load_int(data, offset + count - 1)
        # Products within 64 bits ascend as the values do.
        if falls == 0 and v.load_int(data, offset) >= -bound and ends <= bound:
            s.control[layout.LATEST] = last
            return True
    for row in range(count):
        word = v.word_of(columns, c, row, 0)
        # Comparisons with NaN are false.
        if not (word >= before if kind == layout.IS_LATER else as_float(word) >= as_float(before)):
            return False
        before = word
    s.control[layout.LATEST] = before
    return True
