"""Several queries over one pass: events are checked, read, judged by their texts and kept once for all of them.

Each query has its own tables and memory. What its texts say of an event decides which queries look at it at all, so
that a query costs in proportion to the events that may be relevant to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.signatures import columns_of_test
from cerflow.engine.events.store import EventStore, WholeTable, one_batch
from cerflow.engine.events.text_tests import TextTests, rows_of_classes
from cerflow.engine.layout import EventArrays
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.machine import ROWS, Machine
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.single_events import SingleEvents, as_batch
from cerflow.engine.state import snapshot
from cerflow.engine.state.snapshot import Contents
from cerflow.engine.state.validation import check_counts, check_events, check_number
from cerflow.errors import InUseError, SnapshotError
from cerflow.language.condition import Condition
from cerflow.language.node import Node
from cerflow.schema import Schema
from cerflow.values.array_types import Ints
from cerflow.values.event_tables import as_rows

__all__ = ["LockstepRecognizer"]

#: To sort a row costs so many times as much as to look at its class.
_SPARSE = 32


class _Member:
    """One query among others: which of the common tests are its own."""

    def __init__(self, name: str, machine: Machine, numbers: Mapping[Condition, int]) -> None:
        self.name = name
        self.machine = machine
        self.signatures = machine.reader.signatures
        own = machine.tables.tests
        #: Numbers of common tests to those of the query.
        self._own = {numbers[own[t]]: t for tests in self.signatures.by_string.values() for t in tests}
        self._seen: dict[frozenset[int], frozenset[int]] = {}
        self.singles = SingleEvents(machine.plan, machine.tables, self.signatures)
        self.everything = machine.tables.counted
        read: list[Node] = [own[t] for t in self.signatures.others]
        read += [c.expression for c in machine.tables.columns if c.expression is not None]
        #: The columns that are read beyond texts that are judged.
        self.columns = frozenset(name for tree in read for name in columns_of_test(tree, machine.tables))

    def satisfied(self, common: frozenset[int]) -> frozenset[int]:
        """Of the common tests that hold, those of the query, with its numbers."""
        found = self._seen.get(common)
        if found is None:
            found = self._seen[common] = frozenset(self._own[t] for t in common if t in self._own)
        return found

    def relevant_to(self, common: frozenset[int]) -> bool:
        """Whether an event may be relevant to the query."""
        return self.everything or self.signatures.may_be_relevant(self.satisfied(common))


class LockstepRecognizer:
    """Recognises the matches of several queries in a stream that comes in batches.

    ``plans`` are for the schema of the checker.
    """

    def __init__(
        self,
        plans: Mapping[str, Plan],
        checker: RecordChecker,
        store: EventStore | None = None,
    ) -> None:
        self.plans = plans
        self._schema = schema = checker.schema
        self._checker = checker
        names = _columns(plans, schema)
        if store is None:
            store = EventStore(pa.schema([schema.columns.field(name) for name in names]))
        self._store = store
        #: Queries of some streams only number and keep events for themselves.
        self._apart = {n: Machine(p, EventStore(p.stored)) for n, p in plans.items() if not p.counts_all}
        machines = {n: Machine(p, self._store) for n, p in plans.items() if p.counts_all}
        tests: dict[str, dict[Condition, int]] = {}
        numbers: dict[Condition, int] = {}
        for machine in machines.values():
            for column, own in machine.reader.signatures.by_string.items():
                for test in (machine.tables.tests[t] for t in own):
                    tests.setdefault(column, {})[test] = numbers.setdefault(test, len(numbers))
        self._members = [_Member(name, machine, numbers) for name, machine in machines.items()]
        self._texts = TextTests(
            {column: {k: test for test, k in some.items()} for column, some in tests.items()},
            schema,
            self._members[0].machine.tables.atoms.unit if self._members else "us",
        )
        self._relevant_to: dict[frozenset[int], tuple[_Member, ...]] = {}
        self._in_use = Lock()

    @classmethod
    def parts_of(
        cls, plans: Mapping[str, Plan], schema: Schema, table: pa.Table, numbers: Ints | None
    ) -> Iterator[tuple[str, list[Part]]]:
        """What each query detects in a finite stream of usable events, slice by slice.

        ``numbers`` are those of the events in the input, if they are others. Raises `BadRecordError` if an attribute
        that measures a window decreases.
        """
        checker = RecordChecker(schema, "fail", in_order=False, numbers=numbers)
        together = cls(plans, checker, WholeTable(table.select(_columns(plans, schema))))
        reads = {name for plan in plans.values() for name in (*plan.reads, *(() if plan.counts_all else plan.columns))}
        read = table.select([name for name in schema.attributes if name in reads])
        for start in range(0, table.num_rows, ROWS):
            yield from together._process(one_batch(read.slice(start, ROWS)), start)

    @property
    def events(self) -> int:
        """The number of events accepted so far."""
        return self._checker.accepted

    @property
    def bad_records(self) -> int:
        """The number of events refused so far, those included that only some of the queries refuse."""
        return self._checker.refused

    def push(self, events: Any) -> dict[str, Matches]:
        """Process events as `Recognizer.push` does; returns the matches of the queries that detected any."""
        with self._alone():
            if type(events) is dict or isinstance(events, Mapping):
                return self._push_one(events)
            return self._push_rows(as_rows(events, self._schema.columns))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._in_use.acquire(blocking=False):
            raise InUseError("the recogniser of the set")
        try:
            yield
        finally:
            self._in_use.release()

    def _push_rows(self, events: pa.RecordBatch | pa.Table) -> dict[str, Matches]:
        found: dict[str, list[Part]] = {}
        if not events.num_rows:
            return {}
        undo = self._checkpoint(events.num_rows)
        try:
            for rows in self._checker.accept(events):
                for start in range(0, rows.num_rows, ROWS):
                    for name, parts in self._process(rows.slice(start, ROWS), start):
                        found.setdefault(name, []).extend(parts)
        except BaseException:
            undo()
            raise
        return self._matches(found)

    def _matches(self, found: Mapping[str, list[Part]]) -> dict[str, Matches]:
        """The matches of the queries that have any, in the order of the queries."""
        return {
            name: Matches(found[name], plan.report, plan.limit) for name, plan in self.plans.items() if found.get(name)
        }

    def _machines(self) -> list[Machine]:
        return [*(member.machine for member in self._members), *self._apart.values()]

    def _checkpoint(self, rows: int) -> Callable[[], None]:
        strict, slices = self._checker.policy != "skip", rows > ROWS
        undos = [self._checker.checkpoint(), self._store.checkpoint()]
        for machine in self._machines():
            # What a query that comes later refuses, others have processed.
            undos.append(machine.checkpoint(strict=strict, slices=slices or self._may_fail(strict)))
        undos += [machine.store.checkpoint() for machine in self._apart.values()]

        def undo() -> None:
            for each in undos:
                each()

        return undo

    def _may_fail(self, strict: bool) -> bool:
        """Whether a batch may fail after some queries have processed it."""
        tables = [machine.tables for machine in self._machines()]
        return any((len(p.arrays.checked) > 0 and strict) or p.asks for p in tables)

    def _process(self, rows: pa.RecordBatch, begin: int) -> Iterator[tuple[str, list[Part]]]:
        checker = self._checker
        first = checker.numbered
        checker.accept_rows(rows)

        def refuse(row: int) -> None:
            checker.refuse_late(rows, row, begin + row)

        for name, machine in self._apart.items():
            yield name, machine.process(rows, first, refuse)
        prepared = list(self._read(rows, first))
        if prepared:
            used = np.zeros(rows.num_rows, bool)
            for _, _, some in prepared:
                used[some] = True
            self._clean_up()
            self._store.keep(first, rows, np.flatnonzero(used))
        for member in self._members:
            member.machine.next = checker.numbered
        for member, events, some in prepared:
            yield member.name, member.machine.advance(events, lambda at, some=some: refuse(int(some[at])))  # type: ignore[misc]

    def _read(self, rows: pa.RecordBatch, first: int) -> Iterator[tuple[_Member, EventArrays, Ints]]:
        """For each query the events that may be relevant to it, and their rows."""
        if not self._members:
            return
        here = self._members[0].machine.reader.rows(rows, first)
        classes, satisfied = self._texts.classify(here)
        relevant_to = [self._members_for(s) for s in satisfied]
        some = rows_of_classes(classes, [bool(members) for members in relevant_to])
        relevant = classes[some]
        occurring = np.bincount(relevant, minlength=1)
        wanted: dict[_Member, list[int]] = {}
        for k in np.flatnonzero(occurring).tolist():
            for member in relevant_to[k]:
                wanted.setdefault(member, []).append(k)
        self._share_columns(here, wanted)
        by_class = None
        for member, ks in wanted.items():
            if _SPARSE * occurring[ks].sum() > len(some):
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

    def _share_columns(self, rows: BatchRows, members: Iterable[_Member]) -> None:
        """Read the columns at once that several queries read."""
        seen: set[str] = set()
        for member in members:
            for name in member.columns:
                if name in seen:
                    rows.attribute(name)
                seen.add(name)

    def _members_for(self, satisfied: frozenset[int]) -> tuple[_Member, ...]:
        found = self._relevant_to.get(satisfied)
        if found is None:
            found = tuple(member for member in self._members if member.relevant_to(satisfied))
            self._relevant_to[satisfied] = found
        return found

    def _clean_up(self) -> None:
        if self._store.wants_cleaning:
            self._store.forget(self._live_positions())

    def _live_positions(self) -> Ints:
        needed = [member.machine.live_positions() for member in self._members]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *needed]))

    # -- snapshots -----------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes. Matches handed out before are not part of it."""
        with self._alone():
            return self._snapshot()

    def _snapshot(self) -> bytes:
        self._store.forget(self._live_positions())
        counts, nothing = self._checker.counts, EventStore(self._store.schema).kept()
        parts = {m.name: m.machine.contents(counts, nothing) for m in self._members}
        for name, machine in self._apart.items():
            machine.store.forget(machine.live_positions())
            parts[name] = machine.contents(counts, machine.store.kept())
        packed = [snapshot.write_snapshot(snapshot.RECOGNIZER, contents) for contents in parts.values()]
        arrays = {f"part {k}": np.frombuffer(part, np.uint8) for k, part in enumerate(packed)}
        kept = self._store.kept()
        contents = Contents({**counts, "names": list(parts)}, arrays, kept.rows, kept.positions)
        return snapshot.write_snapshot(snapshot.SET, contents)

    def take_over(self, data: bytes) -> None:
        """Go on from a snapshot of the same queries; raises `SnapshotError` if it is of others, and changes nothing."""
        with self._alone():
            self._take_over(data)

    def _take_over(self, data: bytes) -> None:
        whole = snapshot.read(snapshot.SET, data)
        header = whole.description
        names = [*(m.name for m in self._members), *self._apart]
        if header.get("names") != names:
            raise SnapshotError(f"the snapshot is of the queries {_listed(header.get('names'))}, not {_listed(names)}")
        check_counts(header, self._schema)
        check_events(whole.events, whole.positions, self._store.schema, check_number(header, "accepted", least=0))
        restorers: list[Callable[[], None]] = []
        for k, machine in enumerate(self._machines()):
            if f"part {k}" not in whole.arrays:
                raise SnapshotError(f"the snapshot is damaged: it lacks the query '{names[k]}'")
            part = snapshot.read(snapshot.RECOGNIZER, whole.arrays[f"part {k}"].tobytes())
            own = machine.store is not self._store
            kept = part if own else whole
            if own:
                check_events(part.events, part.positions, machine.store.schema, check_number(part.description, "next"))
                restorers.append(partial(machine.store.take_over, part.events, part.positions))
            restorers.append(machine.restorer(part, kept.positions))
        for restore in restorers:
            restore()
        self._checker.take_over(header)
        self._store.take_over(whole.events, whole.positions)

    # -- single events -------------------------------------------------------------------------------------------

    def _push_one(self, event: Mapping[str, Any]) -> dict[str, Matches]:
        checker = self._checker
        ready = next((member.singles for member in self._members if member.singles.ready), None)
        values = ready.plain(event, checker.latest) if ready is not None and not self._apart else None
        if ready is None or values is None:
            return self._push_rows(as_batch(event, self._schema.columns))
        satisfied = self._texts.of(values)
        members = self._members_for(satisfied)
        if not all(member.singles.ready and not len(member.machine.tables.arrays.checked) for member in members):
            return self._push_rows(as_batch(event, self._schema.columns))
        position = checker.numbered
        prepared: list[tuple[_Member, EventArrays]] = []
        for member in members:
            events = member.singles.read(values, position, member.satisfied(satisfied))
            if events is not None:
                prepared.append((member, events))
        if prepared:
            self._store.add_one(position, values)
        found = {member.name: member.machine.advance(events, _never) for member, events in prepared}
        checker.numbered += 1
        checker.latest = ready.moment
        self._clean_up()
        return self._matches(found)


def _columns(plans: Mapping[str, Plan], schema: Schema) -> list[str]:
    """The columns that results of queries of all streams are made of."""
    wanted = {name for plan in plans.values() if plan.counts_all for name in plan.columns}
    return [name for name in schema.attributes if name in wanted]


def _listed(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else "of nobody"


def _never(row: int) -> None:
    raise AssertionError("no window measures an attribute here")


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
