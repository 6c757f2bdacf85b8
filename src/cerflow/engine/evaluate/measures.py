"""The measures of windows as 64-bit integers: a start is inside the window as long as it is greater than a bound."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Floats, Ints
from cerflow.base.errors import InputError
from cerflow.base.nested import attribute_named, field_type, parts_of
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.ranges import MOST, ticks
from cerflow.engine.evaluate.rows import BatchRows, finest_unit, instant
from cerflow.engine.evaluate.vectors import Vector
from cerflow.engine.layout import NO_BOUND, NULL
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window


def is_global(window: Window, partitioned: bool) -> bool:
    """Whether the measure grows along the whole stream, so that a bound holds for every partition."""
    return isinstance(window, DurationWindow) or not partitioned


def duration_in_units(window: DurationWindow, schema: Schema, unit: str) -> Fraction:
    """The size of a window in units of the time column: its own unit for timestamps, the schema's for numbers."""
    assert schema.time is not None
    of = MICROSECONDS[unit] if schema.kind(schema.time) is ValueKind.TIMESTAMP else schema.microseconds
    return window.microseconds / of


def window_size(window: Window, schema: Schema, unit: str) -> Fraction:
    """The size of a window in what it measures; see `duration_in_units` for the units of time."""
    if isinstance(window, DurationWindow):
        return duration_in_units(window, schema, unit)
    if isinstance(window, CountWindow):
        return Fraction(window.events)
    assert isinstance(window, AttributeWindow)
    return Fraction(window.size)


def _vector(window: Window, rows: BatchRows) -> Vector:
    if isinstance(window, AttributeWindow):
        return rows.attribute(window.attribute)
    if isinstance(window, DurationWindow):
        return rows.time()
    return Vector(ValueKind.INTEGER, rows.positions)


def measures(window: Window, rows: BatchRows, schema: Schema) -> Ints:
    """The measure of each event, null where an attribute is null."""
    vector = _vector(window, rows)
    if vector.kind is ValueKind.FLOAT:
        return np.where(vector.missing(), NULL, order_of_floats(vector.floats()))
    return vector.integers()


def bounds(window: Window, rows: BatchRows, schema: Schema, *, closed: bool = False) -> Ints:
    """For each event the greatest measure of a start outside its window; null if it has no measure.

    With ``closed`` what lies as far back as the window is long is still inside.
    """
    vector = _vector(window, rows)
    size = window_size(window, schema, rows.unit)
    if vector.kind is not ValueKind.FLOAT:
        below = _below(vector.integers(), Fraction(floor(size) + 1) if closed else size)
        return below if vector.nulls is None else np.where(vector.nulls, NULL, below)
    now, width = vector.floats(), float(size)
    return np.where(np.isnan(now), NULL, _edges(now, float(np.nextafter(width, np.inf)) if closed else width))


def outside(found: Ints, size: Fraction, *, floats: bool) -> Ints:
    """For each measure the greatest one outside a window of this size that ends there."""
    return _edges(floats_of(found), float(size)) if floats else _below(found, size)


def event_times(rows: BatchRows, schema: Schema) -> Ints:
    """The times of events, all known, as `idle_bounds` orders them."""
    return measures(DurationWindow(1), rows, schema)


def clock_time(time: object, schema: Schema) -> pa.Array:
    """A time before which no other event comes, as an array of the time column; raises `InputError` for other values.

    Times are given as the column has them; timestamps may also be datetimes or texts of ISO 8601.
    """
    if schema.time is None:
        raise InputError("a clock needs events with a time column; name the column with time=")
    target, timed = schema.columns.field(schema.time).type, schema.kind(schema.time) is ValueKind.TIMESTAMP
    try:
        if timed and isinstance(time, str):
            unit = finest_unit(schema)
            found = pa.array([instant(time, unit)], pa.timestamp(unit, getattr(target, "tz", None))).cast(target)
        elif isinstance(time, bool) or (timed and isinstance(time, int | float)):
            raise TypeError(f"it is of type {type(time).__name__}")
        else:
            found = pa.array([time], target)
        if pc.is_null(found, nan_is_null=True)[0].as_py():
            raise ValueError("it is unknown")
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise InputError(
            f"{time!r} is not a time of the column '{schema.time}' ({target}): {error}; give a value as the column has "
            "them, or for timestamps a datetime or a text such as '2024-03-15T10:00:00'"
        ) from error
    return found


def typed_time(text: str | None, columns: pa.Schema, time: str | None) -> str | int | float | None:
    """A typed time as `clock_time` takes it: a number if the column ``time`` has numbers, else the text."""
    found = None if time is None else field_type(columns, parts_of(attribute_named(columns, time)))
    if text is not None and found is not None and kind_of(found).numeric:
        for number in (int, float):
            with suppress(ValueError):
                return number(text)
    return text


class Duration:
    """A duration as the time column of a schema measures it; all times are as `event_times` has them."""

    def __init__(self, window: DurationWindow, schema: Schema, unit: str) -> None:
        assert schema.time is not None
        self._target = target = schema.columns.field(schema.time).type
        self._size = duration_in_units(window, schema, unit)
        #: Whether times are floats; elsewhere the size is this ``whole`` number of units.
        self.floats, self.whole = schema.kind(schema.time) is ValueKind.FLOAT, ceil(self._size)
        #: The units of times in a 1 of the time column.
        self.step = 1
        if schema.kind(schema.time) is ValueKind.TIMESTAMP:
            self.step = ticks(pa.date32() if pa.types.is_date(target) else target, unit)
        # A deadline beyond the range of the column moves to its end.
        self._end = MOST // self.step * self.step
        if pa.types.is_integer(target):
            self._end = min(MOST, int(np.iinfo(target.to_pandas_dtype()).max))
        elif pa.types.is_decimal(target):
            self._end = min(MOST, 10**target.precision - 1)

    def bounds(self, times: Ints) -> Ints:
        """For each time the greatest one from which the duration has passed."""
        return _edges(floats_of(times), float(self._size)) if self.floats else _below(times, self.whole)

    def deadlines(self, begins: Ints) -> Ints:
        """The times when the duration has passed, rounded up to the unit of the time column."""
        if self.floats:
            now, size = floats_of(begins), float(self._size)
            after = now + size
            while (early := after - now < size).any():
                after = np.where(early, np.nextafter(after, np.inf), after)
            if pa.types.is_decimal(self._target):
                return order_of_floats(self._in_digits(after, now))
            return order_of_floats(pa.array(after).cast(self._target).to_numpy().astype(np.float64))
        if self.whole > MOST:
            return np.full(begins.shape, self._end)
        found = np.minimum(begins, self._end - self.whole) + self.whole
        return found if self.step == 1 else -(-found // self.step) * self.step

    def _in_digits(self, after: Floats, begins: Floats) -> Floats:
        """The least decimals of the time column that are not before times ``after`` the ones when durations begin."""
        tens, digits = 10.0**self._target.scale, self._target.precision
        whole = np.round(after * tens)
        whole = np.where(whole / tens - begins < float(self._size), whole + 1, whole)
        found: Floats = np.minimum(whole, 10.0**digits - 1) / tens
        return found


def column_times(times: Ints, schema: Schema, unit: str) -> pa.Array:
    """Times, as `event_times` gives them, in the type of the time column."""
    assert schema.time is not None
    target = schema.columns.field(schema.time).type
    if schema.kind(schema.time) is ValueKind.FLOAT:
        return pa.array(floats_of(times)).cast(target)
    if pa.types.is_decimal(target):
        # Arrow takes integers for 19 digits, however short they are.
        return pa.array(times).cast(pa.decimal128(19)).cast(target)
    if not pa.types.is_temporal(target):
        return pa.array(times).cast(target)
    return pa.array(times, pa.timestamp(unit, getattr(target, "tz", None))).cast(target, safe=False)


def idle_bounds(rows: BatchRows, schema: Schema) -> Ints:
    """For each event the greatest time at which the previous event of its substream makes the substream start again."""
    assert schema.forget is not None
    return bounds(DurationWindow(schema.forget), rows, schema, closed=True)


def _below(now: Ints, size: Fraction | int) -> Ints:
    """For each ``now`` the greatest start outside the window."""
    # For integers, a < size means a < the next integer.
    whole = ceil(size)
    if NO_BOUND + whole > MOST:
        return np.full(now.shape, NO_BOUND)
    # A size may need 64 bits, but its halves do not.
    return np.maximum(now, NO_BOUND + whole) - whole // 2 - (whole - whole // 2)


def _edges(now: Floats, width: float) -> Ints:
    """For each ``now`` the greatest start with ``now - start >= width``, rounded like the condition itself."""
    with np.errstate(invalid="ignore", over="ignore"):
        guess = now - width
        after = np.nextafter(guess, np.inf)
        edges = order_of_floats(guess)
        unsettled = np.flatnonzero((now - guess < width) | (now - after >= width))
        # Near zero floats are so dense that the edge can be many float steps from the guess.
        some = now[unsettled]
        low = np.full(some.shape, order_of_floats(np.array(-np.inf)))
        high = np.full(some.shape, order_of_floats(np.array(np.inf)))
        while (high - 1 > low).any():
            middle = (low & high) + ((low ^ high) >> 1)
            outside = some - floats_of(middle) >= width
            low = np.where(outside, middle, low)
            high = np.where(outside, high, middle)
        edges[unsettled] = low
    return edges


def floats_of(order: Ints) -> Floats:
    """The floats that these integers represent, as `measures` and `bounds` order them."""
    return np.where(order < 0, np.int64(NULL) - order - 1, order).view(np.float64)


def order_of_floats(values: Floats) -> Ints:
    """Integers in the order of floats, as `measures` gives them; see `floats_of`."""
    bits = (values + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(NULL) - bits - 1, bits)
