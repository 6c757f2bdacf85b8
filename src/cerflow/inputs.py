"""Events as people have them, as Arrow tables in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cerflow.errors import InputError, nearest

__all__ = ["in_order", "to_table"]


def to_table(events: Any) -> pa.Table:
    """A table of events.

    Takes Arrow tables and record batches (also many of them), whatever exports Arrow data by the PyCapsule interface
    (pandas, Polars, DuckDB, …), and lists of dicts, whose keys are united. Raises `InputError` for anything else and
    for values that have no Arrow type.
    """
    try:
        if isinstance(events, pa.Table):
            return _plain_strings(events, pa.types.is_string_view)
        if isinstance(events, pa.RecordBatch):
            return _plain_strings(pa.Table.from_batches([events]), pa.types.is_string_view)
        if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
            return _plain_strings(pa.table(events), pa.types.is_string_view, pa.types.is_large_string)
        if isinstance(events, Mapping):
            return pa.table(dict(events))
        if isinstance(events, Iterable) and not isinstance(events, str | bytes):
            return _from_rows(list(events))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"the events cannot be made an Arrow table: {error}") from error
    raise InputError(f"{type(events).__name__} is not a table of events")


def _from_rows(rows: list[Any]) -> pa.Table:
    if rows and all(isinstance(r, pa.RecordBatch) for r in rows):
        return _plain_strings(pa.Table.from_batches(rows), pa.types.is_string_view)
    if not all(isinstance(r, Mapping) for r in rows):
        found = next(r for r in rows if not isinstance(r, Mapping))
        raise InputError(f"events in a list must be dicts or record batches, not {type(found).__name__}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def _plain_strings(table: pa.Table, *views: Callable[[pa.DataType], bool]) -> pa.Table:
    """Views of strings as ordinary ones, which every compute function takes."""
    if not any(is_view(f.type) for f in table.schema for is_view in views):
        return table
    fields = [pa.field(f.name, pa.string()) if any(is_view(f.type) for is_view in views) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def in_order(table: pa.Table, time: str | None, sequence: str | None) -> pa.Table:
    """The rows ordered by time, ties by ``sequence``, and then as they came; untouched if they are so already."""
    if sequence is not None and sequence not in table.column_names:
        near = nearest(sequence, table.column_names)
        hint = f"; did you mean '{near}'?" if near else ""
        raise InputError(f"the sequence column '{sequence}' is not in the input{hint}")
    keys = [name for name in (time, sequence) if name is not None]
    if not keys or _ordered(table, keys):
        return table
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys]))


def _ordered(table: pa.Table, keys: list[str]) -> bool:
    if table.num_rows < 2:
        return False
    columns = [table.column(key) for key in keys]
    if all(_whole_and_known(column) for column in columns):
        return _numbers_ordered(columns[0]) if len(columns) == 1 else _ties_ordered(columns)
    if len(keys) > 1:
        return False
    later, earlier = columns[0].slice(1), columns[0].slice(0, len(columns[0]) - 1)
    outcome = pc.all(pc.greater_equal(later, earlier), skip_nulls=False).as_py()
    return bool(outcome)


def _whole_and_known(column: pa.ChunkedArray) -> bool:
    """Whether all values of a column are there, and are whole numbers of 64 bits or less."""
    whole = pa.types.is_signed_integer(column.type) or pa.types.is_timestamp(column.type)
    return bool(whole and column.null_count == 0)


def _numbers_ordered(column: pa.ChunkedArray) -> bool:
    pieces = [chunk.cast(pa.int64(), safe=False).to_numpy() for chunk in column.chunks if len(chunk)]
    within = all(bool((piece[1:] >= piece[:-1]).all()) for piece in pieces)
    return within and all(bool(b[0] >= a[-1]) for a, b in pairwise(pieces))


def _ties_ordered(columns: list[pa.ChunkedArray]) -> bool:
    """Whether the first column ascends, rows that are equal there by the next one, and so on."""
    rising: NDArray[np.bool_] = np.zeros(len(columns[0]) - 1, bool)
    equal = ~rising
    for column in columns:
        values = column.cast(pa.int64(), safe=False).to_numpy()
        rising |= equal & (values[1:] > values[:-1])
        equal = equal & (values[1:] == values[:-1])
    return bool((rising | equal).all())
