"""Finds the queries to which a single event may be relevant; its texts are tested once for all queries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from cerflow.base.schema import Schema
from cerflow.engine.events.text_tests import TextTests
from cerflow.engine.recognize.machine import Machine
from cerflow.engine.recognize.single_events import SingleEvents
from cerflow.language.condition import Condition


class Member:
    """One of several queries; ``numbers`` numbers the tests of all of them."""

    def __init__(self, name: str, machine: Machine, numbers: Mapping[Condition, int]) -> None:
        self.name = name
        self.machine = machine
        self._evaluation = machine.reader.evaluation
        tests = machine.tables.tests
        self._own = {numbers[tests[t]]: t for some in self._evaluation.by_string.values() for t in some}
        self._satisfied: dict[frozenset[int], frozenset[int]] = {}

    @cached_property
    def singles(self) -> SingleEvents:
        """The object that prepares single events for the query."""
        return SingleEvents(self.machine.plan, self.machine.tables, self._evaluation)

    def satisfied(self, common: frozenset[int]) -> frozenset[int]:
        """Those of the ``common`` tests that belong to the query, by its own numbers."""
        found = self._satisfied.get(common)
        if found is None:
            found = self._satisfied[common] = frozenset(self._own[t] for t in common if t in self._own)
        return found

    def relevant(self, common: frozenset[int]) -> bool:
        """Whether events that satisfy exactly these tests of texts may matter to the query."""
        tables = self.machine.tables
        # Any event may show that a deadline has passed.
        return tables.counted or tables.ticking or self._evaluation.may_be_relevant(tables, self.satisfied(common))


#: A query that gets a single event: its name, machine, the object that prepares the event, tests of texts that hold.
Taker = tuple[str, Machine, SingleEvents, frozenset[int]]


class Takers:
    """The machines of several queries that may take single events."""

    def __init__(self, machines: Mapping[str, Machine], schema: Schema) -> None:
        numbers: dict[Condition, int] = {}
        for machine in machines.values():
            for test in machine.tables.tests:
                numbers.setdefault(test, len(numbers))
        self._members = [Member(name, machine, numbers) for name, machine in machines.items()]
        self._texts = _texts(list(machines.values()), numbers, schema)
        self._takers: dict[frozenset[int], tuple[Taker, ...] | None] = {}

    @property
    def used(self) -> bool:
        """Whether there are queries."""
        return bool(self._members)

    @cached_property
    def single(self) -> SingleEvents | None:
        """The object that first checks single events, for all queries; None if the queries do not take them."""
        return next((member.singles for member in self._members if member.singles.ready), None)

    def of(self, values: Mapping[str, Any]) -> tuple[Taker, ...] | None:
        """The queries to which a single event may be relevant; None if one of these needs it as a batch.

        Each comes with the object that prepares the event for it, and with its own tests of texts that hold.
        """
        satisfied = self._texts.of(values)
        try:
            return self._takers[satisfied]
        except KeyError:
            found = self._takers[satisfied] = self._ready_for(satisfied)
            return found

    def _ready_for(self, satisfied: frozenset[int]) -> tuple[Taker, ...] | None:
        members = [member for member in self._members if member.relevant(satisfied)]
        # A query whose window decreases could refuse the event after others have processed it.
        alone = len(members) == 1
        if not all(m.singles.ready and (alone or not m.machine.may_refuse) for m in members):
            return None
        return tuple((m.name, m.machine, m.singles, m.satisfied(satisfied)) for m in members)


def _texts(machines: list[Machine], numbers: Mapping[Condition, int], schema: Schema) -> TextTests:
    """The tests of texts of all queries. A single query keeps its own, whose results its other recognisers share."""
    if len(machines) == 1:
        return machines[0].reader.evaluation.texts
    tests: dict[str, dict[int, Condition]] = {}
    for machine in machines:
        for column, own in machine.reader.evaluation.by_string.items():
            some = (machine.tables.tests[t] for t in own)
            tests.setdefault(column, {}).update((numbers[test], test) for test in some)
    return TextTests(tests, schema, machines[0].tables.atoms.unit if machines else "us")
