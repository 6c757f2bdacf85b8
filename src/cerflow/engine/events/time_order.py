"""Sorts tables of events by time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import NoneType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Ints, Mask
from cerflow.base.arrow_columns import array_of_numbers, numbers_of, one_array, truths_of, with_plain_columns
from cerflow.base.errors import InputError, expect, nearest
from cerflow.base.nested import attribute_named, field_values, is_nested, root_of
from cerflow.base.schema import Schema
from cerflow.engine.events.records import RecordChecker
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import Node, walk

#: Events that are late by so many are late by much.
_NEAR = 64


@dataclass(frozen=True)
class EventsInOrder:
    """The events of a finite stream: event k is row ``order[k]`` of a table, or row k without an order.

    ``numbers`` are those of the events in the input, for errors; None if they are those in the table.
    """

    table: pa.Table
    order: Ints | None = None
    numbers: Ints | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def select(self, names: Iterable[str]) -> pa.Table:
        """Some columns of the events; the others need not be put in order."""
        table = self.table.select([*names])
        return table if self.order is None else table.take(array_of_numbers(self.order))

    @cached_property
    def whole(self) -> pa.Table:
        """All columns of the events."""
        return self.table if self.order is None else self.select(self.table.column_names)


def sort_by_time(table: pa.Table, time: str | None, sequence: str | None) -> pa.Table:
    """The rows by time, then ``sequence``, then arrival; the same table if they are in this order."""
    return EventsInOrder(table, _order(table, time, sequence)).whole


def extent(table: pa.Table, schema: Schema, *, ordered: bool = False) -> tuple[float | None, float | None]:
    """The least and the greatest time of events, if times are numbers without a unit; otherwise nothing.

    ``ordered`` says that the events are sorted by time.
    """
    if schema.time is None or schema.time_unit is not None or not schema.kind(schema.time).numeric:
        return None, None
    column = schema.completed(table).column(schema.time)
    if ordered and len(column):
        column = pa.chunked_array([*column.slice(0, 1).chunks, *column.slice(len(column) - 1).chunks])
    found = pc.min_max(column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column).as_py()
    return found["min"], found["max"]


def valid_in_order(table: pa.Table, checker: RecordChecker, sequence: str | None) -> EventsInOrder:
    """The rows that a checker accepts, ordered as by `sort_by_time`. Raises the checker's errors."""
    table = checker.schema.completed(table)
    if sequence is None and checker.all_in_order(table):
        return EventsInOrder(table)
    table = with_plain_columns(table)
    valid = checker.valid(table)
    order = _order(valid, checker.schema.time, sequence)
    numbers = checker.rows if order is None else order if checker.rows is None else checker.rows[order]
    return EventsInOrder(valid, order, numbers)


def with_ascending(schema: Schema, tree: Node, events: EventsInOrder) -> Schema:
    """The schema of these events, which says which columns ascend that windows of a query measure."""
    measured = {schema.column(n.attribute) for n in walk(tree) if isinstance(n, AttributeWindow)}
    # A window on the time column becomes one of time.
    found = frozenset(name for name in measured - {schema.time} if _ascends(events.select([name]).column(0)))
    return replace(schema, ascending=found) if found else schema


def _ascends(column: pa.ChunkedArray) -> bool:
    whole = pa.types.is_int64(column.type) or pa.types.is_int32(column.type) or pa.types.is_timestamp(column.type)
    if not whole or column.null_count or not len(column):
        return False
    chunks = [numbers_of(chunk.cast(pa.int64())) for chunk in column.chunks if len(chunk)]
    ends = all(one[-1] <= other[0] for one, other in pairwise(chunks))
    return ends and all(bool((chunk[1:] >= chunk[:-1]).all()) for chunk in chunks)


def _order(table: pa.Table, time: str | None, sequence: str | None) -> Ints | None:
    """The numbers of the rows in the order of `sort_by_time`; None if they are in this order."""
    expect(sequence, (str, NoneType), "sequence must be the name of a column")
    keys: list[str] = []
    for name in (time, sequence):
        if name is None:
            continue
        keys.append(attribute_named(table.schema, name))
        if is_nested(keys[-1]) and keys[-1] not in table.column_names:
            table = table.append_column(keys[-1], field_values(table.column(root_of(keys[-1])), keys[-1]))
    if sequence is not None and keys[-1] not in table.column_names:
        near = nearest(sequence, table.column_names)
        hint = f"; did you mean '{near}'?" if near else ""
        raise InputError(f"the sequence column '{sequence}' is not in the input{hint}")
    if not keys or _ordered(table, keys):
        return None
    column = table.column(keys[0])
    if (
        len(keys) == 1
        and not column.null_count
        and (pa.types.is_signed_integer(column.type) or pa.types.is_timestamp(column.type))
    ):
        return _order_of_numbers(numbers_of(one_array(column).cast(pa.int64(), safe=False)))
    return numbers_of(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in keys])).astype(np.int64)


def _order_of_numbers(values: Ints) -> Ints:
    """The numbers of the rows by their values, equal ones as they are."""
    bits, least = (len(values) - 1).bit_length(), int(values.min())
    # Stable sorting is fast where few events are late by much.
    late = np.count_nonzero(values[_NEAR:] < values[:-_NEAR])
    if late < len(values) >> 4 or (int(values.max()) - least).bit_length() + bits > 63:
        return np.argsort(values, kind="stable")
    # Elsewhere numbers below the values are sorted with them, which takes half the time.
    found = ((values - least) << bits) | np.arange(len(values))
    found.sort()
    return found & ((1 << bits) - 1)


def _ordered(table: pa.Table, keys: list[str]) -> bool:
    """Whether rows ascend by the first key, equal ones by the next, and so on, as far as it is cheap to tell."""
    columns, count = [table.column(key) for key in keys], table.num_rows - 1
    # Several columns are compared if all have integers of at most 64 bits, without nulls.
    known = (column.null_count == 0 for column in columns)
    whole = (pa.types.is_signed_integer(c.type) or pa.types.is_timestamp(c.type) for c in columns)
    if count < 1:
        return True
    if len(keys) > 1 and not (all(known) and all(whole)):
        return False
    rising: Mask = np.zeros(count, bool)
    equal = ~rising
    for column in columns:
        later, earlier = column.slice(1), column.slice(0, count)
        rising |= equal & _held(pc.greater(later, earlier))
        equal &= _held(pc.equal(later, earlier))
    return bool((rising | equal).all())


def _held(truths: pa.ChunkedArray) -> Mask:
    return np.concatenate([truths_of(chunk) for chunk in truths.chunks])
