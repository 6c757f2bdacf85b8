"""Gathers texts, and lists of texts, from some rows, for which Arrow needs several times as long.

An element is a text, or the texts of a list together. A row of ``elements`` (int64) describes it: the numbers of its
bytes and of its texts, 32 bits each, then the bytes, then in pairs where its texts end.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import kernel
from cerflow.engine.kernels.scan.values import store_word

#: Bytes of a word.
WORD = 8
#: Puts a number of 31 bits into both halves of a word.
_TWICE = (1 << 32) + 1


@kernel
def gather_texts(at, elements, words, out, offsets, lists):
    """Write the elements in the rows ``at``, one after the other, to the address ``out``.

    The bounds of the texts are written to the address ``offsets``, 32 bits each, and those of the lists to ``lists``,
    unless that is zero. Rows have ``words`` words of bytes. Each address needs room for one more word than there are
    bytes, texts or lists.
    """
    to = 0
    texts = 0
    store_word(offsets, 0, 0)
    if lists != 0:
        store_word(lists, 0, 0)
    # The next element overwrites the bytes beyond this one.
    for i in range(at.shape[0]):
        row = at[i]
        length = elements[row, 0] & 0xFFFFFFFF
        count = elements[row, 0] >> 32
        store_word(out + to, 0, elements[row, 1])
        k = WORD
        while k < length:
            store_word(out + to + k, 0, elements[row, 1 + k // WORD])
            k += WORD
        begin = offsets + 4 * (texts + 1)
        store_word(begin, 0, elements[row, 1 + words] + to * _TWICE)
        k = 2
        while k < count:
            store_word(begin + 4 * k, 0, elements[row, 1 + words + k // 2] + to * _TWICE)
            k += 2
        to += length
        texts += count
        if lists != 0:
            store_word(lists + 4 * (i + 1), 0, texts)
