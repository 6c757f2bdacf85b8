"""Events in all accepted forms as Arrow tables; anything else is refused with an error that names it."""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from operator import attrgetter
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base.arrow_columns import values_as_array, with_plain_columns
from cerflow.base.errors import InputError, shown, warn
from cerflow.base.units import MICROSECONDS

_TRUTHS, _FLOATS = (bool, np.bool_), (float, np.floating)
_TAKEN = "a table of Arrow, pandas or Polars, record batches, or a list of dicts"


def to_table(
    events: Any, columns: pa.Schema | None = None, *, needed: Collection[str] | None = None, views: bool = False
) -> pa.Table:
    """A table of events.

    Takes Arrow tables and record batches (also many of them), objects that export Arrow data by the PyCapsule interface
    (pandas, Polars, DuckDB, …), Arrow's datasets, and dicts (their keys named in ``columns``, or else all keys). Raises
    `InputError` for anything else and for values that have no Arrow type; columns that hold such values and are not
    among those ``needed`` (None: all) are left out with a warning. With ``views`` columns of such texts, as Polars has
    them, stay as they are.
    """
    if not isinstance(events, pa.Table | pa.RecordBatch):
        events = _without_delay(events)
        _refuse_others(events)
    try:
        if isinstance(events, pa.Table):
            return with_plain_columns(events, views=views)
        if isinstance(events, pa.RecordBatch):
            return with_plain_columns(pa.Table.from_batches([events]), views=views)
        if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
            return with_plain_columns(_short_strings(pa.table(events)), views=views)
        if isinstance(events, Mapping):
            return with_plain_columns(_from_columns(events))
        if isinstance(events, Iterable):
            rows = list(events)
            if rows and all(isinstance(r, pa.RecordBatch | pa.Table) for r in rows):
                return pa.concat_tables(map(to_table, rows))
            return from_rows(rows, columns, needed)
    except (pa.ArrowException, OverflowError) as error:
        if needed is not None and hasattr(events, "columns") and hasattr(events, "__getitem__"):
            return with_plain_columns(_short_strings(_from_frame(events, needed)))
        raise _no_table(error, events) from error
    raise InputError(f"{type(events).__name__} is not a table of events")


def as_rows(events: Any, columns: pa.Schema) -> pa.RecordBatch | pa.Table:
    """Events that are pushed, as Arrow has them; dicts get the types of the columns. Raises as `to_table`."""
    return events if isinstance(events, pa.RecordBatch | pa.Table) else to_table(events, columns, needed=columns.names)


def unknown_types(table: pa.Table) -> bool:
    """Whether the types of columns are unknown because there are no rows: an empty list, an empty frame."""
    return not table.num_rows and (not table.num_columns or any(map(pa.types.is_null, table.schema.types)))


def supposed(columns: pa.Schema, roles: Mapping[str, str | None], attributes: Iterable[str]) -> pa.Schema:
    """The columns of such a table and the ``attributes`` that a query reads besides, with types for those in a role.

    A role adds a column only if there is none at all.
    """
    types = {f.name: f.type for f in columns}
    for role, name in roles.items():
        if name is not None and pa.types.is_null(types.get(name, pa.null())) and (name in types or not len(columns)):
            types[name] = pa.int64() if role == "time" else pa.string()
    for name in attributes:
        types.setdefault(name, pa.null())
    return pa.schema(list(types.items()))


def _short_strings(table: pa.Table) -> pa.Table:
    """Large strings as ordinary ones, which libraries export where nobody asked for large ones."""
    large = [pa.types.is_large_string(f.type) for f in table.schema]
    fields = [f.with_type(pa.string()) if found else f for f, found in zip(table.schema, large)]
    return table.cast(pa.schema(fields)) if any(large) else table


def _without_delay(events: Any) -> Any:
    """The events; lazy ones (Polars' lazy frames, Arrow's datasets) are computed or read."""
    origin = type(events).__module__.partition(".")[0]
    if origin == "polars" and type(events).__name__ == "LazyFrame":
        return events.collect()
    if origin == "pyarrow" and not isinstance(events, pa.Table) and hasattr(events, "to_table"):
        return events.to_table()
    return events


def _refuse_others(events: Any) -> None:
    """Raise an error for what is not a table of events, which says what to do."""
    kind = type(events)
    origin = kind.__module__.partition(".")[0]
    if events is None:
        raise InputError(f"there are no events: None was given; give {_TAKEN} ([] if there are no events)")
    if isinstance(events, str | bytes | os.PathLike):
        raise InputError(
            f"{shown(events)} is not a table of events; if it is the path of a file, read that first: "
            "cerflow.read_events(path), or a reader of pyarrow or pandas"
        )
    if kind.__name__ == "Series" or isinstance(events, pa.ChunkedArray | pa.Array):
        # A column of structs is a table.
        if pa.types.is_struct(getattr(events, "type", None) or pa.null()):
            return
        raise InputError(
            f"one column ({kind.__name__} of {origin}) is not a table of events; give a table with one column for the "
            "type of each event and one for each attribute"
        )
    if origin == "pyspark":
        raise InputError("a DataFrame of Spark is matched by cerflow.spark.match(query, df), not in this process")
    if origin == "numpy":
        raise InputError("an array of NumPy has no columns of different types; give pandas.DataFrame(array)")


def _no_table(error: Exception, frame: Any = None) -> InputError:
    schema = frame.schema if type(frame).__module__.startswith("polars.") else {}
    for name, kind in schema.items():
        if str(kind) in ("Int128", "UInt128"):
            return InputError(f"the column '{name}' has the type {kind}, which Arrow lacks; cast it to Int64 or text")
    return InputError(f"the events cannot be made an Arrow table: {'; '.join(map(str, error.args))}")


def _from_frame(frame: Any, needed: Collection[str]) -> pa.Table:
    """The columns of a DataFrame one by one, without those that have no Arrow type and are not needed."""
    found: dict[str, pa.ChunkedArray] = {}
    for name in frame.columns:
        try:
            part = pa.table(frame[[name]])
        except (pa.ArrowException, OverflowError) as error:
            _leave_out(name, needed, _no_table(error, frame[[name]]))
        else:
            found |= dict(zip(part.column_names, part.columns))
    return pa.table(found)


def _leave_out(name: object, needed: Collection[str] | None, error: InputError) -> None:
    if needed is None or name in needed:
        raise error
    warn(UserWarning(f"the column '{name}' is left out: {error}"))


def from_rows(rows: Sequence[Any], schema: pa.Schema | None = None, needed: Collection[str] | None = None) -> pa.Table:
    """Dicts as a table, with the columns of a schema or else all keys, where what is not named is null.

    Columns whose values do not fit together and that are not ``needed`` (None: all are) are left out. Raises
    `InputError`, with the row and the column, for what is not a dict and for values that do not fit.
    """
    for k, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(
                "events in a list must be dicts, or record batches all of them, but number "
                f"{k} is {shown(row)}, of type {type(row).__name__}"
            )
    if schema is not None:
        columns = [_column(rows, field.name, field.type) for field in schema]
        return pa.Table.from_arrays(columns, names=schema.names)
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"the keys of events must be names, not {shown(name)} of type {type(name).__name__}")
    found = {}
    for name in names:
        try:
            found[name] = _column(rows, name, None)
        except InputError as error:
            _leave_out(name, needed, error)
    return pa.table(found)


def _from_columns(columns: Mapping[Any, Any]) -> pa.Table:
    """A table given as a dict of columns; raises `InputError` for what is none, a single event for example."""
    for name, values in columns.items():
        if not isinstance(name, str):
            raise InputError(f"the names of columns must be text, not {shown(name)} of type {type(name).__name__}")
        if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
            raise InputError(
                f"the column '{name}' of the events is {shown(values)}; a dict must hold a list for every column "
                "(a single event goes into a list: [event])"
            )
    return pa.table(dict(columns))


def _column(rows: Sequence[Mapping[str, Any]], name: str, target: pa.DataType | None) -> pa.Array:
    values = [row.get(name) for row in rows]

    def array(some: list[Any]) -> pa.Array:
        if target is not None:
            _refuse_losses(some, target)
        return values_as_array(some, target)

    try:
        return array(values)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError) as error:
        raise _misfit(values, name, target, array) from error


def _refuse_losses(values: Sequence[Any], target: pa.DataType) -> None:
    """Raise `ValueError` if Arrow would cut off a part of one of the values, or take a truth value for a number."""
    kinds, lost = set(map(type, values)), False
    unit = getattr(target, "unit", None) if pa.types.is_timestamp(target) or pa.types.is_duration(target) else None
    if pa.types.is_integer(target):
        lost = not kinds <= {int, NoneType} and any(v % 1 != 0 for v in values if isinstance(v, _FLOATS))
    elif pa.types.is_floating(target) and target.bit_width < 64:
        most = float(np.finfo(target.to_pandas_dtype()).max)
        lost = any(most < abs(float(v)) < math.inf for v in values if isinstance(v, _FLOATS))
    elif pa.types.is_date(target) or unit in ("s", "ms"):
        wanted = timedelta if pa.types.is_duration(target) else datetime
        # Values that pandas takes for missing do not equal themselves.
        moments: Sequence[Any] = (
            values if kinds == {wanted} else [v for v in values if isinstance(v, wanted) and v == v]
        )
        if unit is None:
            lost = any(v.time() != time.min for v in moments)
        else:
            name = "microseconds" if wanted is timedelta else "microsecond"
            size = int(MICROSECONDS[unit])
            lost = any(number % size for number in set(map(attrgetter(name), moments)))
    if lost or (not kinds.isdisjoint(_TRUTHS) and (pa.types.is_integer(target) or pa.types.is_floating(target))):
        raise ValueError(f"a value would lose something as {target}")


def _way_out(value: object, target: pa.DataType) -> str:
    if isinstance(value, _TRUTHS) and pa.types.is_primitive(target):
        return "; write 0 or 1, or make the column boolean"
    if isinstance(value, float | np.floating | datetime | timedelta):
        return "; round it, or give the column a wider type"
    return ""


def _misfit(
    values: list[Any], name: str, target: pa.DataType | None, array: Callable[[list[Any]], pa.Array]
) -> InputError:
    """The error for the first value that cannot be in a column with those before it."""
    row = bisect_left(range(1, len(values)), True, key=lambda count: not _works(array, values[:count]))
    value = values[row]
    said = f"row {row}: the value {shown(value)} of '{name}' "
    if target is not None:
        return InputError(f"{said}does not fit the column, which has type {target}{_way_out(value, target)}")
    if not _works(array, [value]):
        if isinstance(value, int):
            return InputError(f"{said}does not fit 64 bits; give it as text or as a decimal.Decimal")
        return InputError(f"{said}is of type {type(value).__name__}, which no column of Arrow can hold")
    before = array(values[:row]).type
    return InputError(
        f"{said}is of type {type(value).__name__}, but the values before it are {before}; a column holds one type"
    )


def _works(array: Callable[[list[Any]], pa.Array], values: list[Any]) -> bool:
    try:
        array(values)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        return False
    return True
