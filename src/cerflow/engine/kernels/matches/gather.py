"""Gathers columns, texts, and lists of texts from some rows.

Arrow is as fast for a column of numbers, but needs a call for each.

An element is a text, or the texts of a list together. A row of ``elements`` (int64) describes it: the numbers of its
bytes and of its texts, 32 bits each, then the bytes, then in pairs where its texts end.
"""

from __future__ import annotations

from cerflow.engine.kernels.base.parts import intrinsic, ir, kernel, types
from cerflow.engine.kernels.scan.texts import eight_bytes
from cerflow.engine.kernels.scan.values import has_bit, store_byte, store_word

#: Bytes of a word.
WORD = 8
#: Puts a number of 31 bits into both halves of a word.
_TWICE = (1 << 32) + 1

# Columns of the columns to gather: bits of a value, address of the values, the first of them, where to write
G_BITS, G_FROM, G_FIRST, G_TO = range(4)


def _copier(bits):
    """Copies value ``index`` at one address to value ``place`` at another."""

    @intrinsic
    def copy(_, source, index, target, place):
        def generate(context, builder, signature, arguments):
            kind = ir.IntType(bits).as_pointer()
            source, target = (builder.inttoptr(arguments[k], kind) for k in (0, 2))
            value = builder.load(builder.gep(source, [arguments[1]]), align=1)
            builder.store(value, builder.gep(target, [arguments[3]]), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), generate

    return copy


_copy_8, _copy_16, _copy_32, _copy_64, _copy_128 = (_copier(bits) for bits in (8, 16, 32, 64, 128))


@kernel
def gather_columns(at, columns):
    """Write the values of columns in the rows ``at`` (int32), one after the other.

    A row of ``columns`` (int64, columns G_…) is a column, whose values have 1, 8, 16, 32, 64 or 128 bits.
    """
    for c in range(columns.shape[0]):
        bits = columns[c, G_BITS]
        source = columns[c, G_FROM]
        target = columns[c, G_TO]
        first = columns[c, G_FIRST]
        if bits == 64:
            for i in range(at.shape[0]):
                _copy_64(source, first + at[i], target, i)
        elif bits == 32:
            for i in range(at.shape[0]):
                _copy_32(source, first + at[i], target, i)
        elif bits == 8:
            for i in range(at.shape[0]):
                _copy_8(source, first + at[i], target, i)
        elif bits == 16:
            for i in range(at.shape[0]):
                _copy_16(source, first + at[i], target, i)
        elif bits == 128:
            for i in range(at.shape[0]):
                _copy_128(source, first + at[i], target, i)
        else:
            for begin in range(0, at.shape[0], 8):
                byte = 0
                for i in range(begin, min(begin + 8, at.shape[0])):
                    if has_bit(source, first + at[i]):
                        byte |= 1 << (i - begin)
                store_byte(target, begin >> 3, byte)


@kernel
def read_texts(offsets, data, words, elements):
    """Write the bytes of elements, ``words`` at most, to their rows; ``data`` is their address, ``offsets`` int32."""
    for i in range(elements.shape[0]):
        for k in range(words):
            begin = offsets[i] + WORD * k
            elements[i, 1 + k] = eight_bytes(data + begin, max(0, offsets[i + 1] - begin))


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
