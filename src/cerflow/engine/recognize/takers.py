"""Finds the queries to which a single event may be relevant; its texts are tested once for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from operator import not_
from typing import Any, NamedTuple

from cerflow.base.schema import Schema
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.engine.events.event_row import EventFields, EventRow
from cerflow.engine.events.store import EventStore
from cerflow.engine.events.text_tests import TextTests
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.machine import Machine, Refuse
from cerflow.engine.recognize.single_events import SingleEvents, in_own_row
from cerflow.engine.recognize.ticking import take_one_with_ticks
from cerflow.language.condition import Condition

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
        reads = (m.plan.reads for m in machines.values() if not in_own_row(m.plan, m.reader))
        #: The event, with the columns that programs read.
        self.row = EventRow(schema, frozenset().union(*reads))
        self._singles = {name: SingleEvents(m.plan, m.reader, m.deadlines, self.row) for name, m in machines.items()}
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
            found[name] = take_one_with_ticks(machine, singles, events, event, values, position)
        elif events is not None:
            found[name] = machine.advance(events, 1, refuse)
            machine.tidy()
    return found
