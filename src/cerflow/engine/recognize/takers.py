"""Checks a single event, and finds the queries to which it may be relevant; its texts are tested once for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cerflow.base.schema import Schema
from cerflow.engine.evaluate.ranges import limits
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.engine.evaluate.scalar import plain_type_of
from cerflow.engine.events.text_tests import TextTests
from cerflow.engine.recognize.machine import Machine
from cerflow.engine.recognize.single_events import SingleEvents
from cerflow.language.condition import Condition

#: A query that gets a single event: its name, its machine, what prepares the event, and its tests of texts that hold.
Taker = tuple[str, Machine, SingleEvents, frozenset[int]]
#: A column with what `PlainType` says of it.
_Field = tuple[str, Any, Callable[[Any], Any] | None, float | None]


class Takers:
    """The machines of queries that may take single events; ``schema`` says which values events may have."""

    def __init__(self, machines: Mapping[str, Machine], schema: Schema) -> None:
        self._machines = machines
        self._type, self._time = schema.type, schema.time
        unit, most = finest_unit(schema), limits(schema)
        found = {field.name: plain_type_of(field.type, unit) for field in schema.columns}
        for name in most.keys() & found.keys():
            if found[name].python is int:
                found[name] = found[name]._replace(most=most[name])
        self._fields: list[_Field] = [(name, *kind) for name, kind in found.items()]
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
        self._texts = TextTests(tests, schema, unit)
        self._takers: dict[frozenset[int], tuple[Taker, ...] | None] = {}

    def plain(self, event: Mapping[str, Any], latest: int | float | None) -> dict[str, Any] | None:
        """The columns of an event, times as integers; None if a batch must check it.

        Unusual values and bad records need that. ``latest`` is the time of the event before.
        """
        values: dict[str, Any] = {}
        get = event.get
        for name, kind, taken, most in self._fields:
            value: Any = get(name)
            if value is not None:
                if type(value) is not kind:
                    return None
                if most is not None:
                    if not -most <= value <= most:
                        return None
                elif taken is not None:
                    value = taken(value)
                    if value is None:
                        return None
            values[name] = value
        if values[self._type] is None:
            return None
        if self._time is not None:
            moment = values[self._time]
            if moment is None or (latest is not None and moment < latest):
                return None
        return values

    def of(self, values: Mapping[str, Any]) -> tuple[Taker, ...] | None:
        """The queries to which a single event may be relevant; None if one of these needs it as a batch."""
        held = self._texts.of(values)
        try:
            return self._takers[held]
        except KeyError:
            found = self._takers[held] = self._ready_for(held)
            return found

    def _ready_for(self, held: frozenset[int]) -> tuple[Taker, ...] | None:
        found: list[Taker] = []
        for name, machine in self._machines.items():
            tables, own = machine.tables, self._own[name]
            satisfied = frozenset(own[test] for test in held if test in own)
            # Any event may show that a deadline has passed.
            always = tables.counted or tables.ticking
            if always or machine.reader.evaluation.may_be_relevant(tables, satisfied):
                found.append((name, machine, machine.singles, satisfied))
        # A query whose window decreases could refuse the event after others have processed it.
        alone = len(found) == 1
        ready = all(singles.ready and (alone or not machine.may_refuse) for _, machine, singles, _ in found)
        return tuple(found) if ready else None
