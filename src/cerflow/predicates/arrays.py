"""Values of many events as arrays, and arrays of booleans as answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.predicates.predicate import Form
from cerflow.values.array_types import Mask


def given_as(form: Form, array: Any) -> Any:
    """An Arrow array without nulls in the form that a function takes; literals and whole events stay as they are.

    In NumPy strings are objects, and timestamps datetime64 without a zone (UTC).
    """
    if form is not Form.NUMPY or not isinstance(array, pa.Array):
        return array
    if pa.types.is_timestamp(array.type):
        return array.cast(pa.timestamp(array.type.unit)).to_numpy(zero_copy_only=False)
    return array.to_numpy(zero_copy_only=False)


def as_answers(given: Any, count: int) -> tuple[Mask, Mask]:
    """Where the answers for ``count`` events are true, and where they are unknown.

    Takes boolean arrays of Arrow (null is unknown), of NumPy (also masked), and values that Arrow turns into one.
    Raises ValueError for anything else, and for a wrong number of answers.
    """
    if isinstance(given, np.ma.MaskedArray):
        given = pa.array(given.data, mask=np.ma.getmaskarray(given))
    elif isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    elif not isinstance(given, pa.Array):
        if isinstance(given, str | bool | np.bool_ | None) or np.ndim(given) != 1:
            raise ValueError(f"it gave {_what(given)} instead of one answer for each of {count} events")
        values = np.asarray(given)
        given = pa.array(list(given)) if values.dtype == object else pa.array(values)
    if not (pa.types.is_boolean(given.type) or pa.types.is_null(given.type)):
        raise ValueError(f"it gave values of type {given.type} instead of booleans")
    if len(given) != count:
        raise ValueError(f"it gave {len(given)} answers for {count} events")
    unknown = np.asarray(given.is_null())
    true = given.cast(pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False)
    return true, unknown


def _what(given: Any) -> str:
    shape = np.shape(given)
    return f"an array of shape {shape}" if len(shape) > 1 else repr(given)
