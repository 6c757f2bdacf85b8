"""Columns in the form that a page contains: numbers in one compressed block of bytes, and words about them in JSON."""

from __future__ import annotations

import base64
import json
import math
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.arrow_columns import one_array, python_values
from cerflow.base.schema import ValueKind, kind_of
from cerflow.base.units import PER_SECOND, TimeUnit, since_1970

#: The types of whole numbers that the script of the page knows.
_WHOLE = ("u1", "u2", "u4")
#: Beyond this, a float cannot represent every integer.
_EXACT = 2**53


class PackedArrays:
    """Arrays of numbers, one after the other, and for each a description by which the script of the page finds it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, values: np.ndarray[Any, Any], *, rising: bool = False) -> dict[str, Any]:
        """Add an array; ``rising`` ones of whole numbers are kept as differences, which compress better."""
        if rising and len(values) and values.dtype.kind in "iu":
            first = int(values[0])
            if abs(first) < _EXACT and int(values[-1]) - first < _EXACT:
                return self.add(np.diff(values, prepend=values[:1])) | {"from": first}
        name = _smallest(values)
        data = np.ascontiguousarray(values, name).tobytes()
        found = {"at": self._size, "size": len(values), "as": name}
        padding = -len(data) % 8
        self._parts.append(data + bytes(padding))
        self._size += len(data) + padding
        return found

    def text(self) -> str:
        """All arrays: compressed by zlib, in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode()


def _smallest(values: np.ndarray[Any, Any]) -> str:
    if values.dtype.kind not in "iub" or values.min(initial=0) < 0:
        return "f8"
    name = np.min_scalar_type(int(values.max(initial=0))).str[1:]
    return name if name in _WHOLE else "f8"


def text_codes(column: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray[Any, Any], list[str | None]]:
    """A column as numbers, and the text that each number stands for (None: null), in the order of their occurrence."""
    array = one_array(column)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    encoded = _as_text(array).dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()


def _as_text(array: pa.Array) -> pa.Array:
    """Any values as text for people."""
    if pa.types.is_string(array.type):
        return array
    try:
        return array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return pa.array([None if value is None else _shown(value) for value in python_values(array)], pa.string())


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict) else str(value)


def packed_column(name: str, column: pa.Array | pa.ChunkedArray, arrays: PackedArrays) -> dict[str, Any]:
    """A column of the page's table: its name, its kind, and its values; null is NaN, or the code of no text."""
    array = one_array(column)
    kind = kind_of(array.type)
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return {"name": name} | packed_times(array, None, arrays)
    if pa.types.is_duration(array.type):
        seconds = _floats(array.cast(pa.int64())) / PER_SECOND[array.type.unit]
        return {"name": name, "kind": "duration", "values": arrays.add(seconds)}
    if kind.numeric and not pa.types.is_decimal(array.type):
        bounds = pc.min_max(array).as_py() if kind is ValueKind.INTEGER else {}
        if all(value is None or abs(value) < _EXACT for value in bounds.values()):
            floats = _floats(array)
            whole = kind is ValueKind.INTEGER and not array.null_count
            return {
                "name": name,
                "kind": "number",
                "values": arrays.add(floats.astype(np.int64) if whole else floats),
                "nulls": arrays.add(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else None,
            }
    codes, texts = text_codes(array)
    return {"name": name, "kind": "text", "values": arrays.add(codes), "texts": texts}


def _floats(array: pa.Array) -> np.ndarray[Any, Any]:
    if pa.types.is_floating(array.type) and not pa.types.is_float64(array.type):
        # By way of text, a short float keeps its short notation.
        array = array.cast(pa.string())
    found: np.ndarray[Any, Any] = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def packed_times(
    column: pa.Array | pa.ChunkedArray, unit: TimeUnit | None, arrays: PackedArrays, *, rising: bool = False
) -> dict[str, Any]:
    """Times as distances from the least one, ``base``, which is text, as it may have more digits than a float.

    The kind is "time" if they count from 1970, and "number" if they do not; these are shown as on a ``clock`` if their
    unit is known. ``unit`` is that of times that are numbers;
    ``zone`` is the name of a time zone, None if times have none. ``rising`` says that no time is before the one above.
    """
    array = one_array(column)
    zone, known_unit, from_1970 = None, unit is not None, True
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s" if pa.types.is_date32(array.type) else "ms"))
    if pa.types.is_timestamp(array.type):
        unit, zone = array.type.unit, array.type.tz
    unit = unit or "ms"
    if kind_of(array.type).numeric:
        ends = pc.min_max(array).as_py().values()
        from_1970 = all(end is not None and since_1970(end / PER_SECOND[unit]) for end in ends)
    whole = pa.types.is_integer(array.type) or pa.types.is_timestamp(array.type)
    array = array.cast(pa.int64() if whole else pa.float64(), safe=False)
    least = math.floor(pc.min(array).as_py() or 0)
    distances = pc.subtract(array, pa.scalar(least, array.type)).to_numpy(zero_copy_only=False)
    return {
        "kind": "time" if from_1970 else "number",
        "unit": unit,
        "zone": zone,
        "clock": known_unit and not from_1970,
        "base": str(least),
        "values": arrays.add(distances, rising=rising),
    }
