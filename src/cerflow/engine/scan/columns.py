"""The layout of the columns of a schema in memory, and the addresses of those of a batch."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Mask
from cerflow.base.arrow_columns import truths_of
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.base.units import DAY, MICROSECONDS, PER_SECOND
from cerflow.engine.kernels.table import mark_equal
from cerflow.engine.scan import layout

_LAYOUTS = {
    pa.int8(): layout.INT8,
    pa.int16(): layout.INT16,
    pa.int32(): layout.INT32,
    pa.int64(): layout.INT64,
    pa.uint8(): layout.UINT8,
    pa.uint16(): layout.UINT16,
    pa.uint32(): layout.UINT32,
    pa.uint64(): layout.UINT64,
    pa.bool_(): layout.BOOLEAN,
    pa.float32(): layout.FLOAT32,
    pa.float64(): layout.FLOAT64,
    pa.string(): layout.TEXT32,
    pa.large_string(): layout.TEXT64,
    pa.string_view(): layout.TEXT_VIEW,
}

#: The bytes of a bound or view.
_WIDTHS = {layout.TEXT32: 4, layout.TEXT64: 8, layout.TEXT_VIEW: 16}
#: Digits that every integer of 64 bits has room for.
_DIGITS = 18

_pointer_of: Any = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def layout_of(data_type: pa.DataType, unit: str) -> tuple[int, int] | None:
    """How the values of a column lie, and what makes them numbers; None if the scan cannot read them.

    Times become numbers of ``unit``, durations of microseconds: by multiplication, or by division if it is negative.
    Decimals are divided.
    """
    found = _LAYOUTS.get(data_type)
    if found is not None:
        return None if found >= layout.TEXT32 else (found, 1)
    if pa.types.is_timestamp(data_type):
        return layout.INT64, PER_SECOND[unit] // PER_SECOND[data_type.unit]
    if pa.types.is_date32(data_type):
        return layout.INT32, DAY * PER_SECOND[unit] // PER_SECOND["us"]
    if pa.types.is_date64(data_type):
        return layout.INT64, PER_SECOND[unit] // PER_SECOND["ms"]
    if pa.types.is_decimal128(data_type) and kind_of(data_type) in (ValueKind.INTEGER, ValueKind.FLOAT):
        return (layout.DECIMAL, 10**data_type.scale) if 0 <= data_type.scale <= _DIGITS else None
    if pa.types.is_duration(data_type):
        size = MICROSECONDS[data_type.unit]
        return layout.INT64, size.numerator if size.denominator == 1 else -size.denominator
    return None


def layout_of_text(data_type: pa.DataType) -> int | None:
    """How texts lie, or the indices of a dictionary of texts; None if the scan cannot read them."""
    if pa.types.is_dictionary(data_type):
        is_text = kind_of(data_type.value_type) is ValueKind.STRING
        return _LAYOUTS.get(data_type.index_type) if is_text else None
    found = _LAYOUTS.get(data_type)
    return found if found is not None and found >= layout.TEXT32 else None


def texts_equal(column: pa.Array, text: str) -> Mask:
    """Which values of a column of texts, but not of a dictionary, are a ``text``; null is not."""
    kind = layout_of_text(column.type)
    if kind is None:
        return texts_equal(column.cast(pa.string()), text)
    _, places, *letters = column.buffers()
    known = text.encode()
    same, wanted = np.zeros(len(column), np.uint8), np.frombuffer(known.ljust(8, b"\0"), np.uint8)
    if len(column):
        size = 0 if not letters or letters[0] is None else letters[0].size
        addresses = np.array([0 if buffer is None else buffer.address for buffer in letters], np.int64)
        bytes_at = pa.py_buffer(addresses).address if kind == layout.TEXT_VIEW else int(addresses[0])
        at = places.address + _WIDTHS[kind] * column.offset
        mark_equal(bytes_at, size, at, kind, len(column), pa.py_buffer(wanted).address, len(known), same)
    found: Mask = same.view(bool)
    return found & truths_of(column.is_valid()) if column.null_count else found


def column_row(kind: int, factor: int, *, floating: bool = False, condition: int = 0, child: int = 0) -> list[int]:
    """A row of `ScanArrays.columns`; ``kind`` and ``factor`` are as from `layout_of`."""
    return [child, kind, factor, floating, condition, 0, 0, 0]


class ExportedBatch:
    """A batch at an ``address``, as an array of Arrow's C data interface; it is there as long as this is."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows >= limits.COUNTED_ROWS:
            for column in batch.columns:
                # Arrow counts nulls when it is asked; a column without any is read faster.
                _ = column.null_count
        _, self._array = batch.__arrow_c_array__()
        self.address = int(_pointer_of(self._array, b"arrow_array"))
        self._batch = batch
        self._among: dict[tuple[str, frozenset[str]], bool] = {}

    def has(self, column: str, types: frozenset[str]) -> bool:
        """Whether one of some types is in a column; several queries may ask."""
        question = column, types
        if question not in self._among:
            self._among[question] = bool(Schema.types_among(types, self._batch.column(column)))
        return self._among[question]
