"""Columns of text become columns of numbers or times, value by value: what does not parse is pointed out, not fatal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Converted", "to_numbers", "to_times"]

_INTEGER = r"^[+-]?\d+$"
_FLOAT = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^(?i:nan|[+-]?inf|[+-]?infinity)$"
_TIME = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"
_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


@dataclass(frozen=True)
class Converted:
    """The values of a column after conversion, and a mask of those that did not parse (they are null)."""

    values: pa.Array
    bad: npt.NDArray[np.bool_]

    @property
    def hopeless(self) -> bool:
        """Whether there were values and not a single one parsed."""
        return bool(self.bad.any()) and self.values.null_count == len(self.values)


def to_numbers(text: pa.ChunkedArray) -> Converted:
    """Numbers in decimal notation: an int64 array if all that parse are integers, else a float64 array."""
    trimmed = pc.utf8_trim_whitespace(_plain(text))
    fits = pc.match_substring_regex(trimmed, _FLOAT)
    numbers = pc.replace_substring_regex(pc.if_else(fits, trimmed, None), r"^\+", "")
    values = None
    if pc.all(pc.match_substring_regex(numbers, _INTEGER)).as_py():
        try:
            values = numbers.cast(pa.int64())
        except pa.ArrowInvalid:
            values = None  # some leave 64 bits
    if values is None:
        values = numbers.cast(pa.float64())
    return Converted(values, _true(pc.invert(fits)))


def to_times(text: pa.ChunkedArray) -> Converted:
    """ISO 8601 times as a timestamp[us] array, or numbers (of milliseconds), whichever more of the values are.

    If any of the times has a zone, the array is in UTC, and those without a zone are taken for UTC.
    """
    trimmed = pc.utf8_trim_whitespace(_plain(text))
    times = pc.match_substring_regex(trimmed, _TIME)
    numbers = pc.match_substring_regex(trimmed, _FLOAT)
    if (pc.sum(numbers).as_py() or 0) > (pc.sum(times).as_py() or 0):
        return to_numbers(text)
    # Digits beyond the microsecond would not convert.
    kept = pc.replace_substring_regex(pc.if_else(times, trimmed, None), r"(\.\d{6})\d+", r"\1")
    zoned = pc.match_substring_regex(kept, _ZONE)
    local = _cast_times(pc.if_else(zoned, None, kept), pa.timestamp("us"), _parse_local)
    if pc.any(zoned).as_py():
        world = _cast_times(pc.if_else(zoned, kept, None), pa.timestamp("us", tz="UTC"), _parse_zoned)
        values = pc.coalesce(world, pc.assume_timezone(local, "UTC"))
    else:
        values = local
    return Converted(values, _true(pc.and_(pc.is_valid(trimmed), pc.is_null(values))))


def _plain(text: pa.ChunkedArray) -> pa.Array:
    array = text.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of nothing
        array = pa.array([], text.type)
    return array.cast(pa.string())


def _true(mask: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return found


def _cast_times(text: pa.Array, target: pa.DataType, parse: Callable[[str], datetime]) -> pa.Array:
    try:
        return text.cast(target)
    except pa.ArrowInvalid:
        # A 30th of February somewhere: look at each distinct value by itself.
        encoded = text.dictionary_encode()
        values: list[Any] = []
        for value in encoded.dictionary.to_pylist():
            try:
                values.append(parse(value))
            except (ValueError, OverflowError):
                values.append(None)
        return pa.array(values, target).take(encoded.indices)


def _parse_local(value: str) -> datetime:
    return datetime.fromisoformat(value)


def _parse_zoned(value: str) -> datetime:
    return datetime.fromisoformat(value).astimezone(UTC)
