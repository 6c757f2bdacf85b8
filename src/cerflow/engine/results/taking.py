"""Values of Arrow columns at many places."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow import limits
from cerflow.values.array_types import Smalls
from cerflow.values.arrow_columns import array_of_numbers, numbers_of

__all__ = ["spelt", "taken", "taken_or_null"]

#: The largest offset of texts and lists.
_OFFSETS = 2**31


def taken(values: pa.Array, at: Smalls) -> pa.Array:
    """The values at some places, which are known to be within bounds.

    Arrow takes texts and lists in many times the time of numbers, so a kernel takes them at many places.
    """
    if len(at) >= max(limits.GATHERED_ROWS, len(values)) and not values.null_count:
        kind = values.type
        if pa.types.is_struct(kind):
            return pa.StructArray.from_arrays([taken(c, at) for c in values.flatten()], fields=list(kind))
        if kind in (pa.string(), pa.list_(pa.string())):
            found = _texts(values, at)
            if found is not None:
                return found
    return pc.take(values, array_of_numbers(at), boundscheck=False)


def _texts(values: pa.Array, at: Smalls) -> pa.Array | None:
    """Texts, or lists of texts; None if there are nulls in lists, long elements, or more than fit an array."""
    from cerflow.engine.kernels.matches.gather import WORD, gather_texts, read_texts

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
        read_texts(offsets, texts.buffers()[2].address, words, elements)
    ends = elements[:, 1 + words :].view(np.int32)
    for k in range(most):
        ends[:, k] = starts[np.minimum(lists[:-1] + k + 1, lists[1:])] - offsets[:-1]
    items = most * len(at) if counts.min() == most else int(counts[at].sum())
    # Few bytes are wasted if elements are short; their sum costs time.
    size = longest * len(at) if longest <= WORD else int(lengths[at].sum())
    out, to_offsets = pa.allocate_buffer(size + WORD), pa.allocate_buffer(4 * items + 4 + WORD)
    to_lists = pa.allocate_buffer(4 * len(at) + 4 + WORD) if listed else None
    gather_texts(at, elements, words, out.address, to_offsets.address, 0 if to_lists is None else to_lists.address)
    made = pa.Array.from_buffers(pa.string(), items, [None, to_offsets, out], 0)
    if to_lists is None:
        return made
    return pa.Array.from_buffers(values.type, len(at), [None, to_lists], 0, children=[made])


def _offsets(values: pa.Array) -> Smalls:
    """The offsets of texts or lists."""
    if not len(values):
        # Arrow may leave out their buffer.
        return np.zeros(1, np.int32)
    found = np.frombuffer(values.buffers()[1], np.int32, values.offset + len(values) + 1)
    # Kernels are compiled for arrays that may be written to.
    return found[values.offset :].copy()


def taken_or_null(values: pa.Array, at: Smalls) -> pa.Array:
    """The values at some places, null where the place is negative."""
    missing = at < 0
    return values.take(array_of_numbers(at, missing)) if missing.any() else taken(values, at)


def spelt(values: pa.Array) -> pa.Array:
    """Texts as such, where they may be in a dictionary."""
    if not pa.types.is_dictionary(values.type) or values.null_count or values.dictionary.null_count:
        return values.cast(pa.string())
    return taken(values.dictionary.cast(pa.string()), numbers_of(values.indices.cast(pa.int32())))
