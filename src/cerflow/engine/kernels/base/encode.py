"""Texts as small numbers: equal texts get one code, in the order of first appearance; and classes of codes."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.kernels.base.shared_arrays import head_at

#: Columns of the hash table: the first eight bytes, the length, the code (-1: free).
H_HEAD, H_LENGTH, H_CODE = range(3)

_MIX = np.uint64(0x9E3779B97F4A7C15)


@kernel
def encode(offsets, data, valid, table, first, codes):
    """Fill ``codes`` for the texts ``data[offsets[i] : offsets[i + 1]]``; returns the number of distinct ones.

    ``valid`` says which texts are not null (if it has any entries); nulls keep their code. ``first`` gets the row where
    each code appears first. Returns -1 if the table is too small. ``offsets`` are int32, ``data`` and ``valid`` uint8,
    ``table`` int64 (slots, 3), columns H_…, all -1 at first; ``first`` and ``codes`` are int64.
    """
    mask = table.shape[0] - 1
    n = np.int64(0)
    for i in range(codes.shape[0]):
        if valid.shape[0] > 0 and valid[i] == 0:
            continue
        start = np.int64(offsets[i])
        stop = np.int64(offsets[i + 1])
        length = stop - start
        head = np.uint64(0)
        if start + 8 <= data.shape[0]:
            head = head_at(data, start)
            if length < 8:
                head &= (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
        else:
            for j in range(min(length, 8)):
                head |= np.uint64(data[start + j]) << np.uint64(8 * j)
        h = (head ^ np.uint64(length)) * _MIX
        for j in range(start + 8, stop):
            h = (h ^ (h >> np.uint64(29)) ^ np.uint64(data[j])) * _MIX
        slot = np.int64(h >> np.uint64(32)) & mask
        # Half of the table is free.
        while True:
            code = table[slot, H_CODE]
            if code < 0:
                if 2 * (n + 1) > table.shape[0]:
                    return np.int64(-1)
                table[slot, H_HEAD] = np.int64(head)
                table[slot, H_LENGTH] = length
                table[slot, H_CODE] = n
                first[n] = i
                codes[i] = n
                n += 1
                break
            if table[slot, H_HEAD] == np.int64(head) and table[slot, H_LENGTH] == length:
                other = np.int64(offsets[first[code]])
                j = np.int64(8)
                while j < length and data[other + j] == data[start + j]:
                    j += 1
                if j >= length:
                    codes[i] = code
                    break
            slot = (slot + 1) & mask
    return n


@kernel
def combine(codes, of_code, width, joint, seen):
    """Add ``of_code[codes[i]] * width`` to each joint class, and mark the joint classes that occur.

    ``codes`` and ``joint`` are int64, one per row, ``of_code`` int64, one per code; ``seen`` is uint8, one per joint
    class.
    """
    for i in range(codes.shape[0]):
        joint[i] += of_code[codes[i]] * width
        seen[joint[i]] = 1


@kernel
def choose_rows(joint, relevant, rows):
    """Write the numbers of the rows whose class ``joint[i]`` is ``relevant`` (1, else 0); returns their number.

    All are int64; ``rows`` has one entry more than there are rows.
    """
    n = 0
    for i in range(joint.shape[0]):
        rows[n] = i
        n += relevant[joint[i]]
    return n
