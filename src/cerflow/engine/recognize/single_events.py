"""Prepares a single event, given as a mapping, in a few microseconds, without making Arrow arrays of one row.

Events and queries that need more become a batch of one event.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base.event_tables import from_rows
from cerflow.base.schema import ValueKind
from cerflow.engine.declared_arrays import empty_arrays
from cerflow.engine.evaluate.measures import units_of_time, window_size
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.evaluate.scalar import in_units, plain_type_of, scalar
from cerflow.engine.events.signatures import Evaluation
from cerflow.engine.events.store import one_batch
from cerflow.engine.layout import NO_BOUND, NOT_BEGUN, NULL, EventArrays
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window
from cerflow.logic.analysis.kinds import kind_of_expression
from cerflow.logic.conditions.register_values import Known, Word

_bits_of = struct.Struct("<q").unpack
_float_as_bytes = struct.Struct("<d").pack
_NAN = int(np.array([np.nan]).view(np.int64)[0])

#: Functions from a value, or from an event and its position, to the 64-bit word of an event column or key.
_Word = Callable[[Any], int]
_OfEvent = Callable[[Mapping[str, Any], int], int]


class SingleEvents:
    """Prepares single events for one query; ``ready`` says whether the query allows that."""

    def __init__(self, plan: Plan, tables: TransducerTables, evaluation: Evaluation) -> None:
        schema, keys = plan.schema, plan.select.partition
        self.tables = tables
        self._schema = schema
        self._time_column = schema.time
        unit = tables.atoms.unit
        self._kinds = {field.name: plain_type_of(field.type, unit).python for field in schema.columns}
        tests = [(number, scalar(tables.tests[number], schema)) for number in evaluation.others]
        columns = [self._column(k) for k in range(len(tables.columns))]
        words = [[(self._schema.column(name), self._word(name)) for name in key] for key in keys]
        window = tables.transducer.window
        counted_here = tables.partitioned and isinstance(window, CountWindow)
        #: The units of measures in one unit of the time column.
        self._units = 1
        self._window = None if window is None or counted_here else self._measured(window)
        self.ready = not (
            tables.asks
            or tables.guessing
            or tables.consumes_at_once
            or schema.forget is not None
            or not plan.counts_all
            or (tables.ticking and (tables.reached or len(tables.arrays.checked) or self._time_column is None))
            or None in (self._measured(window) for window in tables.deadlines)
            or tables.atoms.ordered
            or any(test is None for _, test in tests)
            or any(column is None for column in columns)
            or any(word is None for key in words for _, word in key)
            # A key of integers and floats refuses integers that are not exactly a float.
            or any(
                self._kinds[name] is int and schema.key_kind(key) is ValueKind.FLOAT
                for key in keys
                for name in map(schema.column, key)
            )
            or any(self._kinds[name] is not str for name in evaluation.by_string)
            or (self._time_column is not None and self._kinds[self._time_column] not in (int, float, datetime.datetime))
            or (window is not None and not counted_here and self._window is None)
        )
        self._tests = [(number, test) for number, test in tests if test is not None]
        self._columns = [column for column in columns if column is not None]
        self._keys = [[(name, word) for name, word in key if word is not None] for key in words]
        if self.ready and tables.ticking:
            self._units = units_of_time(schema, unit)
        room = {"events": 1, "key words": max(1, len(keys)), "columns": max(1, len(tables.columns))}
        self._events = empty_arrays(EventArrays, room)

    # -- columns and keys ----------------------------------------------------------------------------------------

    def _word(self, name: str) -> _Word | None:
        name = self._schema.column(name)
        kind, change = self._kinds[name], in_units(name, self._schema, self.tables.atoms.unit)
        return None if kind is None else change or self._word_of(kind)

    def _word_of(self, kind: type) -> _Word:
        return self.tables.strings.code if kind is str else _float_word if kind is float else int

    def _column(self, k: int) -> _OfEvent | None:
        column = self.tables.columns[k]
        if column.window is not None:
            return self._window_column(column.window, column.bound)
        assert column.expression is not None
        read = scalar(column.expression, self._schema)
        if read is None:
            return None
        counts = isinstance(column.expression, Known | Word)
        kind = ValueKind.INTEGER if counts else kind_of_expression(column.expression, self._schema)
        if kind is ValueKind.OTHER or (kind is ValueKind.FLOAT and not column.as_float):
            return None
        word = self._word_of(str if kind is ValueKind.STRING else float if column.as_float else int)
        null = _NAN if column.as_float and kind is not ValueKind.STRING else NULL

        def value_of(event: Mapping[str, Any], position: int) -> int:
            value = read(event)
            return null if value is None else word(value)

        return value_of

    def _window_column(self, window: Window, bound: bool) -> _OfEvent | None:
        if self.tables.partitioned and isinstance(window, CountWindow):
            return lambda event, position: 0  # the kernel counts positions in the substream
        measured = self._measured(window)
        if measured is None:
            return None
        measure, size = measured

        def value_of(event: Mapping[str, Any], position: int) -> int:
            value = measure(event, position)
            return NULL if value is None else _bound(value, size) if bound else value

        return value_of

    def _measured(self, window: Window) -> tuple[Callable[[Mapping[str, Any], int], int | None], int] | None:
        """The function that gives an event's measure for a window, and its size; None unless both are integers."""
        unit = self.tables.atoms.unit
        size = ceil(window_size(window, self._schema, unit))
        if isinstance(window, CountWindow):
            return lambda event, position: position, size
        name = window.attribute if isinstance(window, AttributeWindow) else self._time_column
        assert name is not None
        if size <= MOST and self._kinds[name] is int:
            return lambda event, position: event[name], size
        if size <= MOST and self._kinds[name] is datetime.datetime:
            change = in_units(name, self._schema, unit) or int
            return lambda event, position: change(event[name]), size
        return None

    # -- ticks ---------------------------------------------------------------------------------------------------

    def now(self, values: Mapping[str, Any]) -> int:
        """The time of an event as deadlines measure it."""
        assert self._time_column is not None
        time: int = values[self._time_column]
        return time * self._units

    def time(self, values: Mapping[str, Any]) -> pa.Array:
        """The time of an event, as an array of the type of the time column."""
        assert self._time_column is not None
        return pa.array([values[self._time_column]], self._schema.columns.field(self._time_column).type)

    def tick(self, signature: int, position: int, words: tuple[int, ...], time: int) -> EventArrays:
        """A tick of a partition at a time, as the column has it, or the pause after it; valid until the next call."""
        assert self._time_column is not None
        events = self._events
        events.signature[0], events.position[0] = signature, position
        events.measure[0], events.bound[0] = NOT_BEGUN, NO_BOUND
        events.keys[0] = words
        # Only columns that measure time have values.
        values = {self._time_column: time}
        for k, column in enumerate(self.tables.columns):
            timed = isinstance(column.window, DurationWindow)
            events.columns[0, k] = self._columns[k](values, -1) if timed else NULL
        return events

    # -- events --------------------------------------------------------------------------------------------------

    def read(self, values: Mapping[str, Any], position: int, satisfied: frozenset[int]) -> EventArrays | None:
        """The event as the kernels read it, valid until the next call; None if it is not relevant.

        ``satisfied`` are the tests of texts that hold, see `TextTests.of`; they must allow that it is relevant.
        """
        tables = self.tables
        held = [number for number, test in self._tests if test(values) is True]
        signature = tables.signature(satisfied.union(held) if held else satisfied)
        if not tables.counted and not tables.relevant[signature]:
            return None
        events = self._events
        for k, key in enumerate(self._keys):
            word = next((word(values[name]) for name, word in key if values[name] is not None), None)
            if word is None:
                return None
            events.keys[0, k] = word
        events.signature[0] = signature
        events.position[0] = position
        for k, column in enumerate(self._columns):
            events.columns[0, k] = column(values, position)
        if self._window is not None:
            measure, size = self._window
            value = measure(values, position)
            # An event without a measure cannot begin or end a complex event, nor end a window.
            events.measure[0] = NOT_BEGUN if value is None else value
            events.bound[0] = NO_BOUND if value is None else _bound(value, size)
        elif self.tables.ticking:
            events.measure[0] = 0
        return events


def as_batch(event: Mapping[str, Any], columns: pa.Schema) -> pa.RecordBatch:
    """One event as a record batch; raises `InputError` for values that do not fit the columns."""
    return one_batch(from_rows([event], columns))


def _bound(measure: int, size: int) -> int:
    return max(measure, NO_BOUND + size) - size


def _float_word(value: float) -> int:
    word: int
    (word,) = _bits_of(_float_as_bytes(value + 0.0))
    return word
