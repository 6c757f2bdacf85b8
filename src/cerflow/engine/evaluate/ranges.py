"""Values outside the engine's range: an event with such a value in a column that the query reads is a bad record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Mask
from cerflow.base.schema import Schema, ValueKind
from cerflow.base.units import DAY, MICROSECONDS, PER_SECOND
from cerflow.engine.evaluate.rows import finest_unit

#: The greatest magnitude of 64-bit integers; the least integer represents null.
MOST = 2**63 - 1
#: The greatest magnitude that windows measure, as their bounds lie beyond.
MEASURED = MOST - 1
#: Up to this magnitude, different integers are different 64-bit floats.
EXACT_FLOATS = 2**53


def limits(schema: Schema) -> dict[str, int]:
    """The greatest magnitude for each column that may exceed the range, in the column's own units."""
    unit = finest_unit(schema)
    found: dict[str, int] = {}
    for name, most in schema.held.items():
        kind = schema.kind(name) if schema.has(name) else ValueKind.OTHER
        if kind in (ValueKind.INTEGER, ValueKind.TIMESTAMP, ValueKind.DURATION):
            data_type = schema.columns.field(name).type
            if kind is ValueKind.TIMESTAMP:
                most //= ticks(data_type, unit)
            elif kind is ValueKind.DURATION:
                most = MOST // max(1, int(MICROSECONDS[data_type.unit]))
            if _most(data_type) > most:
                found[name] = most
    return found


def _most(data_type: pa.DataType) -> int:
    if pa.types.is_decimal(data_type):
        return int(10 ** (data_type.precision - data_type.scale)) - 1
    signed = not pa.types.is_unsigned_integer(data_type)
    return int(2 ** (data_type.bit_width - signed))


def ticks(data_type: pa.DataType, unit: str) -> int:
    """The number of ticks of a unit in one tick of a type of times."""
    if pa.types.is_date32(data_type):
        return DAY * PER_SECOND[unit] // PER_SECOND["us"]
    return PER_SECOND[unit] // PER_SECOND["ms" if pa.types.is_date64(data_type) else data_type.unit]


def out_of_range(column: pa.Array, most: int) -> Mask | None:
    """Marks values of a greater magnitude; None if there are none."""
    if not pa.types.is_integer(column.type):
        width = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        column = column.cast(width)
    ends = pc.min_max(column)
    least, greatest = ends["min"].as_py(), ends["max"].as_py()
    if least is None or (greatest <= most and least >= -most):
        return None
    beyond = pc.greater(column, pa.scalar(most, column.type)) if greatest > most else pa.array([False] * len(column))
    if least < -most:
        beyond = pc.or_(beyond, pc.less(column, pa.scalar(-most, column.type)))
    return np.asarray(pc.fill_null(beyond, False))


def written(value: pa.Scalar) -> str:
    """A value as text for a message; also for times beyond Python's range."""
    if pa.types.is_duration(value.type):
        return f"{value.value} {value.type.unit}"
    if not pa.types.is_temporal(value.type):
        return str(value.as_py())
    unit: Any = "D" if pa.types.is_date32(value.type) else getattr(value.type, "unit", "ms")
    # NumPy reads the least integer as a missing time.
    if value.value < -MOST:
        return str(value.value)
    return f"{np.datetime64(value.value, unit)}{'Z' if getattr(value.type, 'tz', None) else ''}"


def why(name: str, schema: Schema, most: int) -> str:
    """Why such a value of a column cannot be used, to follow the value."""
    if schema.kind(name) is ValueKind.TIMESTAMP:
        return f"does not fit 64 bits in {finest_unit(schema)}, the finest unit of the times of the input"
    if schema.kind(name) is ValueKind.DURATION:
        return "is beyond 64 bits of microseconds"
    if most == EXACT_FLOATS:
        return "is beyond 2^53, where a partition key that is a float elsewhere cannot distinguish integers"
    hint = ", as far as windows measure" if most == MEASURED else ""
    if most == MOST and name != schema.time and schema.columns.field(name).type == pa.uint64():
        hint = "; give the column as text or as a decimal.Decimal"
    return f"is not between -{most} and {most}{hint}"
