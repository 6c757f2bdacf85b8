"""Functions of several operands, of texts and of times, for a whole batch at once: see `vectors`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Mask
from cerflow.base.arrow_columns import array_of_numbers, numbers_of
from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.vectors import Vector
from cerflow.logic.conditions.time_values import zone_called


def either(first: Mask, then: Vector, otherwise: Vector) -> Vector:
    """One value where ``first`` is true, the other elsewhere; NULL takes the kind of the other."""
    then, otherwise = _beside(then, otherwise), _beside(otherwise, then)
    if ValueKind.FLOAT in (then.kind, otherwise.kind):
        return Vector(ValueKind.FLOAT, np.where(first, then.floats(), otherwise.floats()))
    dictionary = [*then.dictionary, *otherwise.dictionary]
    missing = np.where(first, then.missing(), otherwise.missing())
    # A column of nulls alone has no texts, so that its codes would lie behind all others.
    data = np.where(missing, 0, np.where(first, then.data, otherwise.data + len(then.dictionary)))
    return Vector(then.kind, data, missing, dictionary)


def _beside(value: Vector, other: Vector) -> Vector:
    if value.kind is not ValueKind.FLOAT or other.kind is ValueKind.FLOAT or not value.missing().all():
        return value
    return Vector(
        other.kind, np.zeros(value.data.shape, np.int64), np.ones(value.data.shape, bool), ("",) * other.kind.coded
    )


def coalesced(values: Sequence[Vector]) -> Vector:
    """The first value that is not null."""
    result = values[-1]
    for value in reversed(values[:-1]):
        result = either(~value.missing(), value, result)
    return result


def on_texts(function: Callable[..., str | None], operands: Sequence[Vector]) -> Vector:
    """A function of texts and integers, null if any of them is; it is called once for equal operands."""
    arrays = np.broadcast_arrays(*(operand.data for operand in operands))
    missing = np.broadcast_arrays(*(operand.missing() for operand in operands))
    unknown = np.logical_or.reduce(missing)
    rows = np.stack([np.where(unknown, 0, array).astype(np.int64).ravel() for array in arrays], axis=1)
    distinct, codes = np.unique(rows, axis=0, return_inverse=True)
    known = np.zeros(len(distinct), bool)
    known[codes.ravel()[~unknown.ravel()]] = True
    texts: list[str | None] = []
    for row, is_known in zip(distinct.tolist(), known.tolist()):
        if is_known:
            given = (o.dictionary[value] if o.kind is ValueKind.STRING else value for o, value in zip(operands, row))
            texts.append(function(*given))
        else:
            texts.append(None)
    data = codes.reshape(unknown.shape)
    unknown = unknown | np.array([text is None for text in texts] or [True])[data]
    return Vector(ValueKind.STRING, data, unknown, [text or "" for text in texts])


def date_parts(operand: Vector, part: str, zone: str | None) -> Vector:
    """A part of moments in microseconds since 1970, see `cerflow.logic.conditions.register_values.DatePart`."""
    distinct, codes = np.unique(np.where(operand.missing(), 0, operand.data), return_inverse=True)
    moments = array_of_numbers(distinct.astype(np.int64)).cast(pa.timestamp("us", "UTC"))
    if zone is not None:
        offset = zone_called(zone).utcoffset(None)
        if offset is None:
            moments = moments.cast(pa.timestamp("us", zone))
        else:
            moments = pc.add(moments, pa.scalar(offset, pa.duration("us")))
    found = pc.day_of_week(moments, count_from_zero=False) if part == "weekday" else getattr(pc, part)(moments)
    values = numbers_of(found.cast(pa.int64()))
    return Vector(ValueKind.INTEGER, values[codes.reshape(operand.data.shape)], operand.missing())
