"""Reads events once for several queries; the texts of an event decide which of the queries look at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow import limits
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.events.signatures import columns_of_test
from cerflow.engine.events.text_tests import TextTests, rows_of_classes
from cerflow.engine.layout import EventArrays
from cerflow.engine.recognize.machine import Machine
from cerflow.engine.recognize.single_events import SingleEvents
from cerflow.language.condition import Condition
from cerflow.language.node import Node
from cerflow.schema import Schema
from cerflow.values.array_types import Ints

__all__ = ["Member", "SharedReader", "Taker"]


class Member:
    """One query among others; ``numbers`` gives the number that a test has for all queries in common."""

    def __init__(self, name: str, machine: Machine, numbers: Mapping[Condition, int]) -> None:
        self.name = name
        self.machine = machine
        self._signatures = machine.reader.signatures
        tests = machine.tables.tests
        self._own = {numbers[tests[t]]: t for some in self._signatures.by_string.values() for t in some}
        self._satisfied: dict[frozenset[int], frozenset[int]] = {}

    @cached_property
    def singles(self) -> SingleEvents:
        """The object that prepares single events for the query."""
        return SingleEvents(self.machine.plan, self.machine.tables, self._signatures)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that the query reads for more than its tests of texts."""
        tables = self.machine.tables
        read: list[Node] = [tables.tests[t] for t in self._signatures.others]
        read += [column.expression for column in tables.columns if column.expression is not None]
        return frozenset(name for tree in read for name in columns_of_test(tree, tables))

    def satisfied(self, common: frozenset[int]) -> frozenset[int]:
        """The tests of the query among common tests that hold, by the query's own numbers."""
        found = self._satisfied.get(common)
        if found is None:
            found = self._satisfied[common] = frozenset(self._own[t] for t in common if t in self._own)
        return found

    def relevant(self, common: frozenset[int]) -> bool:
        """Whether events that satisfy exactly these tests of texts may matter to the query."""
        tables = self.machine.tables
        # Any event may show that a deadline has passed.
        return tables.counted or tables.ticking or self._signatures.may_be_relevant(self.satisfied(common))


#: A query that gets a single event: its name and machine, what prepares the event, and the tests of texts that hold.
Taker = tuple[str, Machine, SingleEvents, frozenset[int]]


class SharedReader:
    """Reads events for the machines of several queries, which number events alike and keep them in one store."""

    def __init__(self, machines: Mapping[str, Machine], schema: Schema) -> None:
        numbers: dict[Condition, int] = {}
        for machine in machines.values():
            for test in machine.tables.tests:
                numbers.setdefault(test, len(numbers))
        self._members = [Member(name, machine, numbers) for name, machine in machines.items()]
        self._texts = _texts(list(machines.values()), numbers, schema)
        self._members_for: dict[frozenset[int], tuple[Member, ...]] = {}
        self._takers: dict[frozenset[int], tuple[Taker, ...] | None] = {}

    # -- batches -------------------------------------------------------------------------------------------------

    def read(self, rows: pa.RecordBatch, first: int) -> Iterator[tuple[Member, EventArrays, Ints]]:
        """The relevant events of each query that has any, and their rows; the first row is number ``first``."""
        if not self._members:
            return
        here = self._members[0].machine.reader.rows(rows, first)
        classes, satisfied = self._texts.classify(here)
        members = [self._relevant_to(tests) for tests in satisfied]
        some = rows_of_classes(classes, [bool(each) for each in members])
        relevant = classes[some]
        occurring = np.bincount(relevant, minlength=1)
        wanted: dict[Member, list[int]] = {}
        for k in np.flatnonzero(occurring).tolist():
            for member in members[k]:
                wanted.setdefault(member, []).append(k)
        _share_columns(here, wanted)
        by_class = None
        for member, ks in wanted.items():
            if limits.SORTED_SHARE * occurring[ks].sum() > len(some):
                own = some[rows_of_classes(relevant, [k in ks for k in range(len(occurring))])]
            else:
                by_class = by_class or _by_class(some, relevant)
                own = np.sort(np.concatenate([by_class[k] for k in ks]))
            of_class: list[frozenset[int]] = [frozenset()] * len(satisfied)
            for k in ks:
                of_class[k] = member.satisfied(satisfied[k])
            events, chosen = member.machine.reader.read_some(here, own, classes[own], of_class)
            if len(chosen):
                yield member, events, chosen

    def _relevant_to(self, satisfied: frozenset[int]) -> tuple[Member, ...]:
        found = self._members_for.get(satisfied)
        if found is None:
            found = tuple(member for member in self._members if member.relevant(satisfied))
            self._members_for[satisfied] = found
        return found

    # -- single events -------------------------------------------------------------------------------------------

    @property
    def used(self) -> bool:
        """Whether there is any query."""
        return bool(self._members)

    @cached_property
    def single(self) -> SingleEvents | None:
        """The object that first checks single events, for all queries; None if no query takes single events."""
        return next((member.singles for member in self._members if member.singles.ready), None)

    def takers(self, values: Mapping[str, Any]) -> tuple[Taker, ...] | None:
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
        members = self._relevant_to(satisfied)
        # A query whose window decreases could refuse the event after others have processed it.
        alone = len(members) == 1
        if not all(m.singles.ready and (alone or not m.machine.may_refuse) for m in members):
            return None
        return tuple((m.name, m.machine, m.singles, m.satisfied(satisfied)) for m in members)


def _texts(machines: list[Machine], numbers: Mapping[Condition, int], schema: Schema) -> TextTests:
    """The tests of texts of all queries. A single query keeps its own, whose results its other recognisers share."""
    if len(machines) == 1:
        return machines[0].reader.signatures.texts
    tests: dict[str, dict[int, Condition]] = {}
    for machine in machines:
        for column, own in machine.reader.signatures.by_string.items():
            some = (machine.tables.tests[t] for t in own)
            tests.setdefault(column, {}).update((numbers[test], test) for test in some)
    return TextTests(tests, schema, machines[0].tables.atoms.unit if machines else "us")


def _share_columns(rows: BatchRows, members: Iterable[Member]) -> None:
    """Read the columns that several queries read, once for all rows."""
    seen: set[str] = set()
    for member in members:
        for name in member.columns:
            if name in seen:
                rows.attribute(name)
            seen.add(name)


def _by_class(rows: Ints, classes: Ints) -> dict[int, Ints]:
    """The rows of each class that occurs, ascending."""
    if not len(rows):
        return {}
    small = classes.astype(np.uint16) if classes.max() < 1 << 16 else classes
    order = np.argsort(small, kind="stable")
    ordered = classes[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    pieces = np.split(rows[order], begins[1:])
    return {int(ordered[begin]): piece for begin, piece in zip(begins, pieces)}
