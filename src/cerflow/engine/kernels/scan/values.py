"""Values in memory: those of Arrow's buffers, as 64-bit words."""

from __future__ import annotations

import numpy as np

from cerflow.engine.kernels.base.arithmetic import wrapped_product, wrapped_sum
from cerflow.engine.kernels.base.parts import inlined, intrinsic, ir, kernel, part, types
from cerflow.engine.kernels.base.shared_arrays import address_of, bits_of, group_at, pointer_to, prefetch, words_at
from cerflow.engine.layout import NULL
from cerflow.engine.scan import layout
from cerflow.engine.scan.layout import ScanArrays

#: The arrays of a scan, by the address of its words.
scan_at = group_at(ScanArrays)
#: The bits of NaN, which is null.
NAN = 0x7FF8000000000000
#: The lowest bit of each byte of a word.
ONES = 0x0101010101010101
#: In each byte of a word all bits but the highest, and the highest.
_LOW, _HIGH = np.int64(0x7F7F7F7F7F7F7F7F), np.int64(-0x7F7F7F7F7F7F7F80)
#: Every second byte.
_EVEN = np.int64(0x00FF00FF00FF00FF)
#: The words of an array of Arrow's C data interface that count here.
_LENGTH, _NULLS, _OFFSET, _COUNT, _BUFFERS, _CHILDREN, _DICTIONARY = 0, 1, 2, 3, 5, 6, 7


def _reader(bits, *, signed=True, floating=False):
    """Reads number ``index`` of the elements at an address, as a word."""

    @intrinsic
    def load(_, address, index):
        def generate(context, builder, signature, arguments):
            kind = ir.FloatType() if floating else ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            value = builder.load(builder.gep(pointer, [arguments[1]]), align=1)
            if floating:
                return builder.bitcast(builder.fpext(value, ir.DoubleType()), ir.IntType(64))
            if bits == 64:
                return value
            return (builder.sext if signed else builder.zext)(value, ir.IntType(64))

        return types.int64(types.int64, types.int64), generate

    return load


load_small, _load_short, load_int, load_word = (_reader(bits) for bits in (8, 16, 32, 64))
load_byte, _load_unsigned_short, load_unsigned = (_reader(bits, signed=False) for bits in (8, 16, 32))
_load_float = _reader(32, floating=True)


def _writer(bits):
    """Writes the lowest bits of a word as number ``index`` of the elements at an address."""

    @intrinsic
    def store(_, address, index, value):
        def generate(context, builder, signature, arguments):
            pointer = builder.gep(builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()), [arguments[1]])
            value = arguments[2] if bits == 64 else builder.trunc(arguments[2], ir.IntType(bits))
            builder.store(value, pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return store


store_word, store_int, store_byte = (_writer(bits) for bits in (64, 32, 8))


def _zeros(instruction):
    """Counts the bits that are zero on one side of a word that is not zero."""

    @intrinsic
    def count(_, word):
        def generate(context, builder, signature, arguments):
            return getattr(builder, instruction)(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.int64), generate

    return count


#: How many bits are zero below the lowest one that is not, and above the highest one.
trailing_zeros, leading_zeros = _zeros("cttz"), _zeros("ctlz")


@inlined
def fetch(address):
    """Ask the processor for what is at an ``address``, see `prefetch`."""
    prefetch(words_at(address))


@inlined
def start_of(array):
    """The address of the elements of an ``array``; reads by addresses do not look for negative indices."""
    return address_of(pointer_to(array, 0))


@inlined
def ones(eight):
    """1 for each byte of the word ``eight`` that is not zero."""
    return not_zero(eight) >> 7 & np.int64(ONES)


@inlined
def not_zero(eight):
    """The highest bit of each byte of the word ``eight`` that is not zero."""
    # Seven bits of a byte carry into the highest one.
    return (wrapped_sum(eight & _LOW, _LOW) | eight) & _HIGH


@inlined
def without_lowest(bits):
    """The ``bits`` without the lowest one that is set; the sum wraps, as the highest alone is the least integer."""
    return bits & wrapped_sum(bits, -1)


@inlined
def sum_of_bytes(eight):
    """The sum of the bytes of the word ``eight``, if it is less than 256."""
    return np.int64((np.uint64(eight) * np.uint64(ONES)) >> np.uint64(56))


@part
def rows_with(guards, count, some):
    """How many of ``count`` rows have ``some`` of their ``guards``; bytes behind the rows are zero."""
    words, mask, found = (count + 7) >> 3, np.uint64(some) * np.uint64(ONES), np.int64(0)
    for start in range(0, words, 255):
        # The compiler makes vectors of this loop, in which no byte is counted beyond 255.
        eight = np.int64(0)
        for k in range(start, min(start + 255, words)):
            eight = wrapped_sum(eight, ones(load_word(guards, k) & np.int64(mask)))
        pairs = (eight & _EVEN) + (np.int64(np.uint64(eight) >> np.uint64(8)) & _EVEN)
        found += np.int64((np.uint64(pairs) * np.uint64(0x0001000100010001)) >> np.uint64(48))
    return found


@inlined
def packed(eight):
    """A bit for each byte of the word ``eight``, 0 or 1; that of the first byte is the lowest."""
    return np.int64((np.uint64(eight) * np.uint64(0x0102040810204080)) >> np.uint64(56))


@inlined
def marked_rows(guards, count):
    """Which of ``count`` rows, but of 64 at most, have ``guards``, as bits."""
    found = np.int64(0)
    for j in range(8):
        found |= packed(ones(load_word(guards, j))) << 8 * j
    return found & ~(np.int64(-1) << count) if count < 64 else found


@inlined
def has_bit(data, at):
    """Whether a bit is set."""
    return load_byte(data, at >> 3) >> (at & 7) & 1 == 1


@inlined
def integer(kind, data, at):
    """An integer, a boolean or an index of a dictionary."""
    if kind == layout.INT64:
        return load_word(data, at)
    if kind == layout.INT32:
        return load_int(data, at)
    if kind == layout.INT8:
        return load_small(data, at)
    if kind == layout.INT16:
        return _load_short(data, at)
    if kind == layout.BOOLEAN:
        return np.int64(has_bit(data, at))
    if kind == layout.UINT8:
        return load_byte(data, at)
    if kind == layout.UINT16:
        return _load_unsigned_short(data, at)
    if kind == layout.UINT32:
        return load_unsigned(data, at)
    return load_word(data, at)


@part
def word_of(columns, c, row, first):
    """The value of a column in a row as a word: integers with `NULL` for null, floats by their bits."""
    kind = columns[c, layout.C_LAYOUT]
    if kind == layout.POSITION:
        value = first + row
    else:
        at = columns[c, layout.C_OFFSET] + row
        valid = columns[c, layout.C_VALID]
        condition = columns[c, layout.C_CONDITION]
        if valid != 0 and not has_bit(valid, at):
            if condition > 0:
                return np.int64(0)
            return np.int64(NAN) if columns[c, layout.C_FLOAT] else np.int64(NULL)
        data = columns[c, layout.C_DATA]
        if kind in (layout.FLOAT64, layout.COMPUTED):
            return load_word(data, at)
        if kind == layout.FLOAT32:
            return _load_float(data, at)
        if kind == layout.DECIMAL:
            value = load_word(data, 2 * at)
            # Both are exact as floats, so the quotient is the nearest one.
            divided = np.float64(value) / np.float64(columns[c, layout.C_FACTOR])
            return bits_of(divided) if columns[c, layout.C_FLOAT] else value
        value = integer(kind, data, at)
        if condition > 0:
            # One bit says that a condition is true, the next one that it is unknown.
            bits = value >> 2 * (condition - 1)
            return np.int64(1) if bits & 1 else np.int64(NULL) if bits & 2 else np.int64(0)
        factor = columns[c, layout.C_FACTOR]
        if factor > 1:
            value *= factor
        elif factor < 0:
            value //= -factor
    return bits_of(np.float64(value)) if columns[c, layout.C_FLOAT] else value


@inlined
def words_of(columns, c):
    """Where the words of a column are, if these are its values, but for nulls; or else 0."""
    column = columns[c]
    kind = column[layout.C_LAYOUT]
    plain = kind in (layout.FLOAT64, layout.COMPUTED) or (
        kind == layout.INT64 and column[layout.C_FACTOR] == 1 and column[layout.C_FLOAT] == 0
    )
    plain &= column[layout.C_CONDITION] == 0
    return column[layout.C_DATA] + 8 * column[layout.C_OFFSET] if plain else np.int64(0)


@inlined
def words_at_once(columns, c):
    """The same if no value is null."""
    return words_of(columns, c) if columns[c, layout.C_VALID] == 0 else np.int64(0)


def _widening(name, load):
    """Writes the elements from number ``at`` on as words, at once where the compiler makes vectors of it."""

    def run(to, data, at, count):
        for k in range(count):
            store_word(to, k, load(data, at + k))

    run.__qualname__ = run.__name__ = name
    return part(run)


_widen_float = _widening("_widen_float", _load_float)
_widen_truth = _widening("_widen_truth", inlined(lambda data, at: load_byte(data, at >> 3) >> (at & 7) & 1))
_widen_small, _widen_short = _widening("_widen_small", load_small), _widening("_widen_short", _load_short)
_widen_int, _widen_word = _widening("_widen_int", load_int), _widening("_widen_word", load_word)
_widen_byte, _widen_unsigned = _widening("_widen_byte", load_byte), _widening("_widen_unsigned", load_unsigned)


@part
def _write_integers(columns, c, to, data, at, count):
    """Write integers as words, as `word_of` does; False for others."""
    kind, factor = columns[c, layout.C_LAYOUT], columns[c, layout.C_FACTOR]
    if columns[c, layout.C_CONDITION] != 0 or factor < 1:
        return False
    if kind == layout.BOOLEAN:
        _widen_truth(to, data, at, count)
    elif kind == layout.INT8:
        _widen_small(to, data, at, count)
    elif kind == layout.INT16:
        _widen_short(to, data, at, count)
    elif kind == layout.INT32:
        _widen_int(to, data, at, count)
    elif kind == layout.INT64:
        _widen_word(to, data, at, count)
    elif kind == layout.UINT8:
        _widen_byte(to, data, at, count)
    elif kind == layout.UINT32:
        _widen_unsigned(to, data, at, count)
    else:
        return False
    for k in range(count if factor > 1 else 0):
        store_word(to, k, wrapped_product(load_word(to, k), factor))
    for k in range(count if columns[c, layout.C_FLOAT] else 0):
        store_word(to, k, bits_of(np.float64(load_word(to, k))))
    return True


@part
def write_words(columns, c, begin, count, first, to):
    """Write what `word_of` says of ``count`` rows from row ``begin`` on at the address ``to``, without branches."""
    kind, valid, words = columns[c, layout.C_LAYOUT], columns[c, layout.C_VALID], words_of(columns, c)
    data, at = columns[c, layout.C_DATA], columns[c, layout.C_OFFSET] + begin
    if words != 0:
        _widen_word(to, words, begin, count)
    elif kind == layout.FLOAT32:
        _widen_float(to, data, at, count)
    elif not _write_integers(columns, c, to, data, at, count):
        for k in range(count):
            store_word(to, k, word_of(columns, c, begin + k, first))
        return
    if valid != 0:
        _write_nulls(to, valid, at, count, np.int64(NAN) if columns[c, layout.C_FLOAT] else np.int64(NULL))


@part
def _write_nulls(to, valid, at, count, null):
    """Write ``null`` over those of ``count`` words whose bit, from number ``at`` on, is not set."""
    k = np.int64(0)
    while k < count:
        bits, some = load_byte(valid, (at + k) >> 3) >> (at + k & 7), min(8 - (at + k & 7), count - k)
        # The compiler makes vectors of this loop.
        for j in range(some):
            there = np.int64(0) - (bits >> j & 1)
            store_word(to, k + j, load_word(to, k + j) & there | null & ~there)
        k += some


@part
def locate(columns, texts, batch):
    """Find out where the values of the columns of a batch are."""
    children = load_word(batch, _CHILDREN)
    for c in range(columns.shape[0]):
        if columns[c, layout.C_LAYOUT] < layout.POSITION:
            child = load_word(children, columns[c, layout.C_CHILD])
            buffers = load_word(child, _BUFFERS)
            columns[c, layout.C_OFFSET] = load_word(child, _OFFSET)
            columns[c, layout.C_VALID] = _validity(child, buffers)
            columns[c, layout.C_DATA] = load_word(buffers, 1)
    for t in range(texts.shape[0]):
        child = load_word(children, texts[t, layout.T_CHILD])
        buffers = load_word(child, _BUFFERS)
        texts[t, layout.T_OFFSET] = load_word(child, _OFFSET)
        texts[t, layout.T_VALID] = _validity(child, buffers)
        texts[t, layout.T_DATA] = load_word(buffers, 1)
        if texts[t, layout.T_LAYOUT] >= layout.TEXT32:
            if texts[t, layout.T_LAYOUT] == layout.TEXT_VIEW:
                texts[t, layout.T_BYTES], texts[t, layout.T_SIZE] = buffers + 16, 0
                continue
            texts[t, layout.T_BYTES] = load_word(buffers, 2)
            last = texts[t, layout.T_OFFSET] + load_word(child, _LENGTH)
            texts[t, layout.T_SIZE] = text_offset(texts, t, last)


@inlined
def _validity(column, buffers):
    """Where the bits are that say which values are not null; 0 if all are not."""
    return load_word(buffers, 0) if load_word(column, _NULLS) != 0 else np.int64(0)


@inlined
def _dictionary(batch, child):
    """The dictionary of a column of a batch."""
    return load_word(load_word(load_word(batch, _CHILDREN), child), _DICTIONARY)


@kernel
def next_dictionary(address, batch, begin):
    """The first column of text from ``begin`` on that has another dictionary than that of its entries, -1: none."""
    texts = scan_at(address).texts
    for t in range(begin, texts.shape[0]):
        if texts[t, layout.T_LAYOUT] < layout.TEXT32:
            dictionary = _dictionary(batch, texts[t, layout.T_CHILD])
            same = load_word(dictionary, _COUNT) == 3
            same &= texts[t, layout.T_HELD] == load_word(dictionary, _LENGTH)
            same &= texts[t, layout.T_HELD + 1] == load_word(dictionary, _OFFSET)
            for k in range(3):
                same &= texts[t, layout.T_HELD + 2 + k] == load_word(load_word(dictionary, _BUFFERS), k)
            if not same:
                return t
    return -1


@inlined
def has_plain_dictionary(batch, child):
    """Whether it is known that no entry of the dictionary of a column is null."""
    dictionary = _dictionary(batch, child)
    return load_word(dictionary, _NULLS) == 0 or load_word(load_word(dictionary, _BUFFERS), 0) == 0


@inlined
def text_offset(texts, t, at):
    """Where a text begins."""
    if texts[t, layout.T_LAYOUT] == layout.TEXT64:
        return load_word(texts[t, layout.T_DATA], at)
    return load_int(texts[t, layout.T_DATA], at)


@inlined
def truth_of(texts, t, entry, number):
    """The answer of a condition on a text whose class is known."""
    cls = load_word(texts[t, layout.T_CLASSES], entry)
    return load_word(texts[t, layout.T_TRUTHS], cls * texts[t, layout.T_WIDTH] + number)
