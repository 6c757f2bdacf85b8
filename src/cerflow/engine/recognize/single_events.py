"""Prepares single events, given as mappings, for one query: each is a batch of one row in place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base.events import Event, as_value, raw_time
from cerflow.base.schema import ValueKind
from cerflow.engine.events.event_row import EventRow
from cerflow.engine.events.reader import EventReader
from cerflow.engine.layout import NULL, EventArrays
from cerflow.engine.recognize.deadlines import Deadlines
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.scan.program.compiler import computed_column
from cerflow.logic.analysis.kinds import kind_of_expression
from cerflow.logic.conditions.evaluate import value_on

#: The kinds of expressions whose values become words here.
_WORDS = (ValueKind.INTEGER, ValueKind.FLOAT, ValueKind.STRING, ValueKind.BOOLEAN)


def in_own_row(plan: Plan, reader: EventReader) -> bool:
    """Whether the query of a plan reads more of an event than its columns."""
    return reader.by_columns or len(plan.total_keys.names) > 0


class SingleEvents:
    """Prepares single events for the query of a ``plan``; ``ready`` says whether that is possible.

    They are in the ``row``, unless they get more than its columns.
    """

    def __init__(self, plan: Plan, reader: EventReader, deadlines: Deadlines | None, row: EventRow) -> None:
        self._schema, self._reads, self._deadlines = plan.schema, plan.reads, deadlines
        self._scan = reader.whole
        self._tables = tables = reader.tables
        program = self._scan.program
        self._by_columns = reader.by_columns
        self._computed, self._filled = program.computed, program.filled.columns
        self._keys, own = plan.total_keys, [*plan.reads, *plan.total_keys.names]
        self._apart = in_own_row(plan, reader)
        self._row = EventRow(plan.read, own, self._computed) if self._apart else row
        filled = [tables.columns[k].expression for k in self._filled]
        self.ready = not (
            not plan.counts_all
            or not {*own}.issubset(self._row.names)
            or (deadlines is not None and not deadlines.takes_one)
            or plan.schema.forget is not None
            or tables.asks
            or reader.evaluation.asks
            or tables.guessing
            or tables.consumes_at_once
            or tables.atoms.ordered
            or program.filled.keys
            or program.filled.window
            or any(e is None or kind_of_expression(e, plan.schema) not in _WORDS for e in filled)
        )

    def read(self, event: Mapping[str, Any], values: Mapping[str, Any], position: int) -> EventArrays | None:
        """An event with these plain ``values`` as the kernels read it; None if it is not relevant.

        It is valid until the next call. Raises ValueError if it needs a batch.
        """
        if not self._apart:
            return self._scan.read_one(self._row.exported, self._row.batch, position)
        here: dict[str | None, Event | None] = {}
        if self._by_columns:
            here[None] = self._as_event(event, position)
        own = self._keys.of_one(values)
        for k in self._computed:
            own[computed_column(k)] = value_on(self._tables.tests[k], here) is True
        self._row.write(own)
        events = self._scan.read_one(self._row.exported, self._row.batch, position)
        if events is None:
            return None
        for k in self._filled:
            column = self._tables.columns[k]
            assert column.expression is not None
            events.columns[0, k] = self._word(value_on(column.expression, here), as_float=column.as_float)
        return events

    def _as_event(self, event: Mapping[str, Any], position: int) -> Event:
        schema, values = self._schema, {name: as_value(event.get(name)) for name in self._reads}
        stream = None if schema.stream is None else event[schema.stream]
        if schema.time is None:
            return Event(position, event[schema.type], position, values, stream)
        time = as_value(event[schema.time])
        return Event(
            position, event[schema.type], raw_time(time), values, stream, time if isinstance(time, datetime) else None
        )

    def _word(self, value: Any, *, as_float: bool) -> int:
        """The word of a value in an event column: the bits of a float, or the code of a text."""
        if as_float:
            return int(np.float64(np.nan if value is None else value + 0.0).view(np.int64))
        return NULL if value is None else self._tables.strings.code(value) if isinstance(value, str) else int(value)

    # -- ticks ---------------------------------------------------------------------------------------------------

    def now(self, values: Mapping[str, Any]) -> int:
        """The time of an event, as deadlines measure it."""
        assert self._schema.time is not None
        assert self._deadlines is not None
        time: int = values[self._schema.time]
        return time * self._deadlines.step

    def times(self, values: Mapping[str, Any], count: int) -> pa.Array:
        """An array that repeats the time of an event, of the type of the time column."""
        assert self._schema.time is not None
        return pa.array([values[self._schema.time]] * count, self._schema.columns.field(self._schema.time).type)
