"""Keys, which order the events, as numbers: the values of a column, and the bounds that statistics give for them.

Keys are whole numbers (of the units of a timestamp, of milliseconds for dates) or floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.slices.by_keys import Keys
from cerflow.slices.by_row_groups import Key
from cerflow.values.array_types import Floats, Ints
from cerflow.values.arrow_columns import array_of_numbers, numbers_of
from cerflow.values.units import DAY, UNIT_NAMES


def is_orderly(data_type: pa.DataType) -> bool:
    """Whether the values of a type can be ordered as numbers here, as statistics order them."""
    return bool(
        pa.types.is_signed_integer(data_type)
        or pa.types.is_uint8(data_type)
        or pa.types.is_uint16(data_type)
        or pa.types.is_uint32(data_type)
        or pa.types.is_timestamp(data_type)
        or pa.types.is_date32(data_type)
        or pa.types.is_float32(data_type)
        or pa.types.is_float64(data_type)
    )


def keys_of(column: pa.Array) -> Keys:
    """The values of a column of such a type; NaN for null floats, anything for other nulls."""
    if pa.types.is_floating(column.type):
        floats: Floats = numbers_of(column.cast(pa.float64()), np.nan)
        return floats
    if pa.types.is_date32(column.type):
        column = column.cast(pa.timestamp("ms"))
    integers: Ints = numbers_of(column.cast(pa.int64()))
    return integers


def extremes_of(statistics: Any, data_type: pa.DataType) -> tuple[Key, Key] | None:
    """The least and greatest key that the statistics of a column chunk allow; None if they say nothing of it.

    ``data_type`` is the type in which the column is read.
    """
    if statistics is None or not statistics.has_min_max:
        return None
    low, high = (_key(value, statistics, data_type) for value in (statistics.min_raw, statistics.max_raw))
    return None if low is None or high is None or not low <= high else (low, high)


def _key(raw: Any, statistics: Any, data_type: pa.DataType) -> Key | None:
    if pa.types.is_floating(data_type):
        return float(raw) if isinstance(raw, float) else None
    if not isinstance(raw, int):
        return None
    if pa.types.is_date32(data_type):
        return raw * (DAY // 1000)
    if pa.types.is_timestamp(data_type):
        stored = _stored_unit(statistics)
        if stored is None:
            return None
        # Arrow reads seconds, say, that are stored as milliseconds.
        found = array_of_numbers(np.array([raw])).cast(pa.timestamp(stored))
        return int(keys_of(found.cast(pa.timestamp(data_type.unit), safe=False))[0])
    if pa.types.is_unsigned_integer(data_type) and raw < 0:
        return raw + (1 << 32)
    return raw


def _stored_unit(statistics: Any) -> str | None:
    text = statistics.logical_type.to_json()
    return next((unit for unit, name in UNIT_NAMES.items() if f'"{name}"' in text), None)
