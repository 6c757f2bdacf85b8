"""Values of Arrow columns at many indices."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Ints, Smalls
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, numbers_of, values_taken

#: The largest offset of texts and lists.
_OFFSETS = 2**31
#: The longest period of repeating values, and the number of values that are tested for it first.
_PERIOD, _BEGINNING = 16, 64


def taken(values: pa.Array, at: Smalls) -> pa.Array:
    """The values at these indices, which must be within bounds.

    For many indices a kernel takes texts and lists of texts, for which Arrow needs several times as long.
    """
    if _is_all(at, len(values)):
        return values
    many = len(at) >= max(limits.GATHERED_ROWS, len(values))
    if many and not values.null_count and values.type in (pa.string(), pa.list_(pa.string())):
        found = _texts(values, at)
        if found is not None:
            return found
    return values_taken(values, at)


def _is_all(at: Smalls, count: int) -> bool:
    """Whether some numbers below a ``count`` are all of them in turn."""
    return len(at) == count > 0 and at[0] == 0 and at[-1] == count - 1 and bool((at[1:] > at[:-1]).all())


def repeated_or_taken(values: pa.Array, codes: Ints, at: Smalls) -> pa.Array:
    """A column of texts, or of lists of texts, without nulls, at some indices: distinct values, and each row's code.

    The codes often repeat in the order of a pattern's labels; then most of the result exists from the batch before.
    """
    small = codes.astype(np.uint8 if len(values) <= 1 << 8 else np.int32)
    numbers = numbers_of(taken(array_of_numbers(small), at))
    period = _period(numbers)
    some = taken(values, numbers[: period or None].astype(np.int32, copy=False))
    return _repeating(some, len(at)) if period else some


def _repeating(pattern: pa.Array, count: int) -> pa.Array:
    """This many texts or lists of texts, repeating a pattern."""
    # Batches of similar size have the same texts.
    size = 1 << max(16, 2 * -(-(count - 1).bit_length() // 2))
    if pattern.nbytes * size > limits.REPEATED_BYTES * len(pattern):
        return taken(pattern, _around(len(pattern), count))
    texts = pattern.to_pylist()
    return _repeated(tuple(map(tuple, texts)) if pa.types.is_list(pattern.type) else tuple(texts), size)[:count]


def _around(period: int, count: int) -> Smalls:
    """This many numbers: 0 up to the period, again and again."""
    return np.tile(np.arange(period, dtype=np.int32), -(-count // period))[:count]


def _period(numbers: NDArray[Any]) -> int:
    """The period of repeating numbers; 0 if they do not repeat, or the period is too long."""
    beginning = numbers[:_BEGINNING]
    for period in range(1, min(_PERIOD, len(beginning)) + 1):
        if beginning[period:].tobytes() == beginning[: len(beginning) - period].tobytes():
            return period if np.array_equal(numbers[period:], numbers[: len(numbers) - period]) else 0
    return 0


@lru_cache(maxsize=8)
def _repeated(texts: tuple[str, ...] | tuple[tuple[str, ...], ...], count: int) -> pa.Array:
    """This many texts or lists of texts, which repeat some; the last batches usually want the same ones."""
    values = array_of_texts(texts) if isinstance(texts[0], str) else lists_of_texts(texts)
    return taken(values, _around(len(texts), count))


@lru_cache(maxsize=8)
def lists_of_texts(texts: tuple[tuple[str, ...], ...]) -> pa.ListArray:
    """Lists of texts; the last batches usually want the same ones."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.ListArray.from_arrays(array_of_numbers(ends), array_of_texts([*chain(*texts)]))


def _texts(values: pa.Array, at: Smalls) -> pa.Array | None:
    """Texts, or lists of texts; None for nulls in lists, long elements, or more than fit an array."""
    from cerflow.engine.kernels.matches.gather import WORD
    from cerflow.engine.kernels.table import gather_texts

    listed = pa.types.is_list(values.type)
    texts = values.values if listed else values
    starts = _offsets(texts)
    lists = _offsets(values) if listed else np.arange(len(starts), dtype=np.int32)
    offsets = starts[lists]
    lengths, counts = np.diff(offsets), np.diff(lists)
    longest, most = int(lengths.max()), int(counts.max())
    many = max(longest, most)
    if texts.null_count or many > limits.GATHERED_SIZE or many * len(at) >= _OFFSETS:
        return None
    words, pairs = max(1, -(-longest // WORD)), max(1, -(-most // 2))
    elements = np.zeros((len(lengths), 1 + words + pairs), np.int64)
    elements[:, 0] = lengths + (counts.astype(np.int64) << 32)
    if longest:
        data = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        padded = np.zeros((len(lengths), WORD * words), np.uint8)
        padded[np.arange(WORD * words) < lengths[:, None]] = data
        elements[:, 1 : 1 + words] = padded.view(np.int64)
    ends = elements[:, 1 + words :].view(np.int32)
    for k in range(most):
        ends[:, k] = starts[np.minimum(lists[:-1] + k + 1, lists[1:])] - offsets[:-1]
    items = most * len(at) if counts.min() == most else int(counts[at].sum())
    # Short elements waste few bytes, and their sum takes time.
    size = longest * len(at) if longest <= WORD else int(lengths[at].sum())
    out, to_offsets = pa.allocate_buffer(size + WORD), pa.allocate_buffer(4 * items + 4 + WORD)
    to_lists = pa.allocate_buffer(4 * len(at) + 4 + WORD) if listed else None
    gather_texts(at, elements, words, out.address, to_offsets.address, 0 if to_lists is None else to_lists.address)
    made = pa.Array.from_buffers(pa.string(), items, [None, to_offsets, out], 0)
    if to_lists is None:
        return made
    return pa.Array.from_buffers(values.type, len(at), [None, to_lists], 0, children=[made])


def _offsets(values: pa.Array) -> Smalls:
    if not len(values):
        # Arrow may omit their buffer.
        return np.zeros(1, np.int32)
    found = np.frombuffer(values.buffers()[1], np.int32, values.offset + len(values) + 1)
    # Kernels need writable arrays.
    return found[values.offset :].copy()


def taken_or_null(values: pa.Array, at: Smalls) -> pa.Array:
    """The values at these indices, null for negative ones."""
    missing = at < 0
    if missing.any():
        return values.take(array_of_numbers(at, missing))
    return taken(values, at.astype(np.int32, copy=False))


def spelt(values: pa.Array) -> pa.Array:
    """Texts themselves, decoded if they are in a dictionary."""
    if not pa.types.is_dictionary(values.type) or values.null_count or values.dictionary.null_count:
        return values.cast(pa.string())
    return taken(values.dictionary.cast(pa.string()), numbers_of(values.indices.cast(pa.int32())))
