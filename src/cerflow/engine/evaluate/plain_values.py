"""Values of single events: Python's objects as in columns, and times as the engine computes with them.

A timestamp or duration becomes the integer that its column holds. Arrow accepts these integers for such columns, too.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from cerflow.base.schema import Schema, ValueKind
from cerflow.base.units import MICROSECONDS, PER_SECOND

_EPOCH = datetime.datetime(1970, 1, 1)
_UTC_EPOCH = _EPOCH.replace(tzinfo=datetime.UTC)
#: Time zones that give the offset from UTC at every moment.
_ZONES = (datetime.timezone, ZoneInfo)
#: The greatest number of microseconds that surely fits durations and timestamps in nanoseconds.
_MOST = 2**63 // 1000 - 1


class PlainType(NamedTuple):
    """How the values of a column are given: as a Python type (None: none), and how they become the column's own.

    The function returns None for values that a batch must check: numbers beyond ``most``, and NaN. Without function and
    ``most`` all values of the type fit.
    """

    python: type | None
    taken: Callable[[Any], Any] | None = None
    most: float | None = None


def plain_type_of(data_type: pa.DataType, unit: str) -> PlainType:
    """The form of values of an Arrow type; ``unit`` is the finest unit of timestamps in the schema."""
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if pa.types.is_signed_integer(data_type):
        # The least 64-bit integer stands for null.
        return PlainType(int, most=2 ** (data_type.bit_width - 1) - 1)
    if pa.types.is_float64(data_type):
        return PlainType(float, most=math.inf)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return PlainType(str)
    if pa.types.is_boolean(data_type):
        return PlainType(bool)
    if pa.types.is_timestamp(data_type):
        return PlainType(datetime.datetime, _in_own_unit(_since_1970, data_type.unit, unit == "ns"))
    if pa.types.is_duration(data_type):
        return PlainType(datetime.timedelta, _in_own_unit(_length, data_type.unit, data_type.unit == "ns"))
    return PlainType(None)


def in_units(name: str, schema: Schema, unit: str) -> Callable[[int], int] | None:
    """The function from times in a column to integers as `column_vector` has them; None if both are equal."""
    data_type = schema.columns.field(name).type
    if schema.kind(name) is ValueKind.TIMESTAMP and pa.types.is_timestamp(data_type):
        factor = PER_SECOND[unit] // PER_SECOND[data_type.unit]
        return None if factor == 1 else lambda value: value * factor
    if schema.kind(name) is ValueKind.DURATION and data_type.unit != "us":
        size = MICROSECONDS[data_type.unit]
        return lambda value: value * size.numerator // size.denominator
    return None


def _in_own_unit(microseconds: Callable[[Any], int | None], unit: str, limited: bool) -> Callable[[Any], int | None]:
    """The function from times to numbers of a unit; ``limited`` says that these must fit 64 bits as nanoseconds."""
    if unit == "us" and not limited:
        return microseconds
    size = MICROSECONDS[unit]

    def taken(value: Any) -> int | None:
        found = microseconds(value)
        # Arrow rounds what is not a whole number of units.
        if found is None or (limited and abs(found) > _MOST) or found % size:
            return None
        return int(found / size)

    return taken


def _since_1970(value: datetime.datetime) -> int | None:
    zone = value.tzinfo
    if zone is None:
        since = value - _EPOCH
    elif isinstance(zone, _ZONES):
        since = value - _UTC_EPOCH
    else:
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _length(value: datetime.timedelta) -> int | None:
    found = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    return found if abs(found) < 2**62 else None
