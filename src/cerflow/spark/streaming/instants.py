"""Instants: the times of events in whole microseconds since 1970, on the clocks of Spark and of recognisers.

Spark's watermark begins at zero and never falls below. So events give it their instants moved by 146,000 years:
zero is then before all of them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa

from cerflow.base.schema import Schema, ValueKind
from cerflow.base.units import DAY, MICROSECONDS

#: No instant is before this: 365 cycles of 400 years before 1970, so Spark's reports show the right month and day.
BEGINNING = -365 * 146_097 * DAY
#: The least integer stands for null.
_INTEGERS = (-(2**63) + 1, 2**63 - 1)


def watermark_at(milliseconds: int) -> int:
    """The instant of Spark's watermark, before which no event is expected; `BEGINNING` before the first event."""
    return milliseconds * 1000 + BEGINNING


def spark_timer(milliseconds: int) -> int:
    """The time of Spark's clock this many milliseconds after 1970."""
    return milliseconds - BEGINNING // 1000


def shown_instant(instant: int) -> str:
    """An instant as people read it."""
    return f"{str(np.datetime64(instant, 'us')).rstrip('0').rstrip('.')}Z"


def clock_value(schema: Schema, watermark: int) -> int | float | pa.Scalar:
    """The least value of the time column that an event at the watermark (microseconds) or after it may have."""
    assert schema.time is not None
    data_type = schema.columns.field(schema.time).type
    if schema.kind(schema.time) is ValueKind.FLOAT:
        return math.nextafter(float(watermark / schema.microseconds), -math.inf)
    if pa.types.is_date(data_type):
        return pa.scalar(-(-watermark // DAY), pa.date32()).cast(data_type)
    unit = schema.microseconds if schema.kind(schema.time) is ValueKind.INTEGER else MICROSECONDS[data_type.unit]
    least, greatest = _INTEGERS
    if pa.types.is_integer(data_type):
        information = np.iinfo(data_type.to_pandas_dtype())
        least, greatest = max(int(information.min), least), int(information.max)
    return pa.scalar(min(max(math.ceil(watermark / unit), least), greatest), data_type)


def instant_of(schema: Schema, time: pa.Scalar) -> int:
    """A value of the time column in whole microseconds, rounded down."""
    assert schema.time is not None
    if schema.kind(schema.time) in (ValueKind.INTEGER, ValueKind.FLOAT):
        return math.floor(Fraction(time.as_py()) * schema.microseconds)
    microseconds: int = time.cast(pa.timestamp("us"), safe=False).value
    return microseconds
