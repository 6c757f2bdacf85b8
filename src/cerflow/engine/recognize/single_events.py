"""Single events, given as mappings: each is a batch of one row in place.

Their texts are tested once for all queries, to find those to which an event may be relevant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import compress
from operator import not_
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers
from cerflow.base.events import Event, as_value, raw_time
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.engine.events.event_row import EventFields, EventRow
from cerflow.engine.events.store import EventStore
from cerflow.engine.events.text_tests import TextTests
from cerflow.engine.layout import NULL, EventArrays
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.machine import Machine, Refuse
from cerflow.engine.recognize.ticking import nobody
from cerflow.engine.scan.program.compiler import computed_column
from cerflow.language.condition import Condition
from cerflow.logic.analysis.kinds import kind_of_expression
from cerflow.logic.conditions.evaluate import value_on

#: The kinds of expressions whose values become words here.
_WORDS = (ValueKind.INTEGER, ValueKind.FLOAT, ValueKind.STRING, ValueKind.BOOLEAN)
#: The row of a single event.
_ONE = np.zeros(1, np.int64)


def in_own_row(machine: Machine) -> bool:
    """Whether the query of a machine reads more of an event than its columns."""
    return machine.reader.by_columns or len(machine.plan.total_keys.names) > 0


class SingleEvents:
    """Prepares single events for the query of a ``machine``; ``ready`` says whether that is possible.

    They are in the ``row``, unless they get more than its columns.
    """

    def __init__(self, machine: Machine, row: EventRow) -> None:
        plan, reader = machine.plan, machine.reader
        self._machine, self._schema, self._reads = machine, plan.schema, plan.reads
        self._scan = reader.whole
        self._tables = tables = reader.tables
        program = self._scan.program
        self._by_columns = reader.by_columns
        self._computed, self._filled = program.computed, program.filled.columns
        self._keys, own = plan.total_keys, [*plan.reads, *plan.total_keys.names]
        self._apart = in_own_row(machine)
        self._row = EventRow(plan.read, own, self._computed) if self._apart else row
        filled = [tables.columns[k].expression for k in self._filled]
        self.ready = not (
            not plan.counts_all
            or not {*own}.issubset(self._row.names)
            or (machine.deadlines is not None and not machine.deadlines.takes_one)
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

    def take_with_ticks(
        self, events: EventArrays | None, event: Mapping[str, Any], values: Mapping[str, Any], position: int
    ) -> list[Part]:
        """Process an event with deadlines, which cannot be refused; a relevant one is in ``events``, and stored."""
        machine, deadlines, name = self._machine, self._machine.deadlines, self._schema.time
        assert deadlines is not None
        assert name is not None
        now = values[name] * deadlines.step
        if passes := deadlines.due <= now:
            # The signatures of ticks may be new.
            deadlines.signatures()
            events = self.read(event, values, position)
        woven, count, shown = events or deadlines.none, int(events is not None), None
        if passes:

            def moments(rows: Ints) -> tuple[pa.Array, pa.Array]:
                times = pa.array([values[name]] * len(rows), self._schema.columns.field(name).type)
                return array_of_numbers(np.full(len(rows), position)), times

            woven, count, shown, _ = deadlines.woven_in(np.array([now]), woven, _ONE[:count], moments)
        if events is not None:
            deadlines.open(int(events.signature[0]), position, now, tuple(events.keys[0].tolist()))
        parts = machine.advance(woven, count, nobody, shown) if count else []
        machine.tidy()
        return parts


#: A query that gets a single event: its name, its machine, and what prepares the event.
Taker = tuple[str, Machine, SingleEvents]
#: The same, and the event as the query reads it; None if it is not relevant.
_Read = tuple[str, Machine, SingleEvents, EventArrays | None]


class Concerned(NamedTuple):
    """The queries to which a single event may be relevant: those that take it by itself, and those that need a row."""

    singly: tuple[Taker, ...]
    batched: tuple[Taker, ...]


class Single(NamedTuple):
    """A single event that comes as a row, its plain values, and the queries that it concerns, see `Concerned`."""

    event: Mapping[str, Any]
    values: Mapping[str, Any]
    singly: tuple[Taker, ...]
    batched: tuple[Taker, ...]

    @property
    def machines(self) -> list[Machine]:
        """The machines of the queries."""
        return [machine for _, machine, _ in (*self.singly, *self.batched)]


class Takers:
    """The machines of queries that get single events; ``schema`` says which values events may have."""

    def __init__(self, machines: Mapping[str, Machine], schema: Schema) -> None:
        self._machines = machines
        reads = (machine.plan.reads for machine in machines.values() if not in_own_row(machine))
        #: The event, with the columns that programs read.
        self.row = EventRow(schema, frozenset().union(*reads))
        self._singles = {name: SingleEvents(machine, self.row) for name, machine in machines.items()}
        #: For each query its own numbers of its tests of texts, by those that all queries have in common.
        self._own: dict[str, dict[int, int]] = {}
        numbers: dict[Condition, int] = {}
        tests: dict[str, dict[int, Condition]] = {}
        for name, machine in machines.items():
            self._own[name] = own = {}
            for column, some in machine.reader.evaluation.by_string.items():
                for number, test in some.items():
                    common = numbers.setdefault(test, len(numbers))
                    tests.setdefault(column, {})[common], own[common] = test, number
        self._texts = TextTests(tests, schema, finest_unit(schema))
        #: What the values of an event must be; those that no row holds are left out, unless they are tested here.
        self.fields = EventFields(schema, tests)
        self._concerned: dict[frozenset[int], Concerned] = {}

    def of(self, values: Mapping[str, Any]) -> Concerned:
        """The queries to which a single event may be relevant."""
        held = self._texts.of(values)
        try:
            return self._concerned[held]
        except KeyError:
            found = self._concerned[held] = self._found(held)
            return found

    def _found(self, held: frozenset[int]) -> Concerned:
        found: list[Taker] = []
        for name, machine in self._machines.items():
            tables, own = machine.tables, self._own[name]
            satisfied = frozenset(own[test] for test in held if test in own)
            # Any event may show that a deadline has passed, and FROM counts those of its streams.
            always = tables.counted or tables.ticking or not machine.plan.counts_all
            if always or machine.reader.evaluation.may_be_relevant(tables, satisfied):
                found.append((name, machine, self._singles[name]))
        # A query whose window decreases could refuse the event after others have processed it. A batch can be undone.
        alone = len(found) == 1
        ready = [singles.ready and (alone or not machine.may_refuse) for _, machine, singles in found]
        return Concerned(tuple(compress(found, ready)), tuple(compress(found, map(not_, ready))))

    def take_singly(
        self, takers: Sequence[Taker], event: Mapping[str, Any], values: Mapping[str, Any], position: int
    ) -> dict[str, list[Part]] | None:
        """The detections of queries at an event; None if no row holds its values or a query may refuse it.

        Then no query has processed it.
        """
        kept: EventStore | None = None
        refused: list[int] = []
        try:
            read = self._read(takers, event, values, position)
        except ValueError:
            return None
        for _, machine, _, events in read:
            if events is not None and machine.store is not kept:
                kept = machine.store
                kept.add_one(position, values)
        found = advanced(read, event, values, position, refused.append)
        if refused and kept is not None:
            kept.drop_last()
            return None
        return found

    def read_beside_row(
        self, single: Single, position: int
    ) -> tuple[list[_Read], dict[EventStore, dict[str, Machine]]]:
        """What queries read of an event that others take as a row; and the latter, by the stores of all.

        One that may refuse the event is asked as it is of a batch.
        """
        singly = [taker for taker in single.singly if not taker[1].may_refuse]
        try:
            own = self._read(singly, single.event, single.values, position)
        except ValueError:
            own = []
        apart = {name for name, *_ in own}
        kept: dict[EventStore, dict[str, Machine]] = {machine.store: {} for _, machine, _, _ in own}
        for name, machine, _ in (*single.singly, *single.batched):
            if name not in apart:
                kept.setdefault(machine.store, {})[name] = machine
        return own, kept

    def _read(
        self, takers: Sequence[Taker], event: Mapping[str, Any], values: Mapping[str, Any], position: int
    ) -> list[_Read]:
        """What each query reads of an event; raises `ValueError` if a row cannot hold its values."""
        self.row.write(values)
        # First all read, as what reading needs stays in the caches.
        return [(name, machine, singles, singles.read(event, values, position)) for name, machine, singles in takers]


def advanced(
    read: Sequence[_Read], event: Mapping[str, Any], values: Mapping[str, Any], position: int, refuse: Refuse
) -> dict[str, list[Part]]:
    """The detections of queries at an event that they have read, and that is stored."""
    found: dict[str, list[Part]] = {}
    for name, machine, singles, events in read:
        if machine.deadlines is not None:
            found[name] = singles.take_with_ticks(events, event, values, position)
        elif events is not None:
            found[name] = machine.advance(events, 1, refuse)
            machine.tidy()
    return found
