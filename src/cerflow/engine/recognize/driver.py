"""The driver of a recogniser checks, reads and keeps each push once, and runs it through the machines of all queries.

A push is processed wholly or not at all. The cost of a query is proportional to the events that may be relevant to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.errors import CerflowError, InUseError, MemoryLimitError, at_least_one
from cerflow.base.event_tables import as_rows
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.event_row import as_batch
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.store import ChosenEvents, EventStore, WholeTable
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.deadlines import ascending
from cerflow.engine.recognize.machine import Machine
from cerflow.engine.recognize.plan import Plan, columns_kept
from cerflow.engine.recognize.single_events import Single, Takers, advanced
from cerflow.engine.recognize.ticking import nobody
from cerflow.engine.recognize.transaction import StateBefore, Transaction
from cerflow.engine.results.report import POSITION
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.room import lend_room
from cerflow.engine.state.snapshot import Contents
from cerflow.engine.state.validation import check_counts, check_events, check_origin
from cerflow.engine.stopping import look
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import walk

#: The states of some machines before a push.
_States = Mapping[Machine, StateBefore]


def _store_for(plan: Plan, store: EventStore) -> EventStore:
    """The store for the events of a query: the given one if these are its events, or those of its whole table."""
    if plan.shares_events:
        return store
    if isinstance(store, WholeTable) and plan.chooses_events:
        return ChosenEvents(plan.stored, store, POSITION)
    return store if isinstance(store, WholeTable) and plan.keeps_input else EventStore(plan.stored)


class Driver:
    """Takes a stream through the machines of some plans, all made for the schema of the checker.

    ``memory`` bounds the bytes that a push may need for all that is remembered; it raises `MemoryLimitError` beyond.
    ``store`` keeps the events of all queries that share them (`Plan.shares_events`); by default it is a new one. Other
    queries keep their events themselves, unless all are kept in a ``store`` with a whole table and numbered alike.
    """

    def __init__(
        self,
        plans: Mapping[str, Plan],
        checker: RecordChecker,
        store: EventStore | None = None,
        memory: int | None = None,
    ) -> None:
        self.plans = plans
        self.checker = checker
        checker.position = next((plan.position for plan in plans.values()), None)
        self._columns = columns = checker.schema.columns
        self._completed = checker.schema.completing
        self._given = checker.schema.given
        if store is None:
            store = EventStore(pa.schema([columns.field(name) for name in columns_kept(plans, checker.schema)]))
        self.store = store
        #: The machines by the names of their queries, in the order of snapshots: those that share events come first.
        self.machines: dict[str, Machine] = {}
        for name, plan in sorted(plans.items(), key=lambda item: not item[1].shares_events):
            self.machines[name] = Machine(plan, _store_for(plan, store))
        #: The machines by the store of their events.
        self._kept: dict[EventStore, dict[str, Machine]] = {store: {}}
        room = lend_room(self)
        for name, machine in self.machines.items():
            machine.reader.scan.room.lent = machine.reader.scan.whole.room.lent = room
            machine.look_at_memory = None if memory is None else self._look_at_memory
            self._kept.setdefault(machine.store, {})[name] = machine
        self._places = {name: place for place, name in enumerate(plans)}
        self._in_use = Lock()
        #: Whether a push broke off, and could not be undone.
        self._broken = False
        #: Whether a single event has been processed in part.
        self._amid = False
        #: The seconds that the last push has taken.
        self._spent = 0.0
        #: The bytes that all remembered data may take.
        self.memory = None if memory is None else at_least_one(memory, "memory")
        self._prompt = False

    @property
    def prompt(self) -> bool:
        """Whether the clock shows deadlines before events do; see `cerflow.engine.recognize.deadlines.Deadlines`."""
        return self._prompt

    @prompt.setter
    def prompt(self, prompt: bool) -> None:
        self._prompt = prompt
        for machine in self.machines.values():
            if machine.deadlines is not None:
                machine.deadlines.prompt = prompt

    def end_with_next(self, ending: bool) -> None:
        """Say whether no event follows the rows that are processed next."""
        for machine in self.machines.values():
            machine.reader.scan.ending = ending

    @property
    def rows_at_once(self) -> int:
        """The greatest number of rows in a batch."""
        return min((machine.reader.scan.rows_at_once for machine in self.machines.values()), default=limits.BATCH_ROWS)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the recogniser for one caller; raises `InUseError` if another one has it."""
        self._hold()
        try:
            yield
        finally:
            self._in_use.release()

    def _hold(self) -> None:
        if not self._in_use.acquire(blocking=False):
            raise InUseError("the recogniser")
        if self._broken:
            self._in_use.release()
            raise CerflowError("an earlier push failed midway, so the state is incomplete; restore a snapshot")

    def _look_at_memory(self) -> None:
        taken = sum(store.bytes for store in self._kept) + sum(machine.bytes for machine in self.machines.values())
        if self.memory is not None and taken > self.memory:
            raise MemoryLimitError(
                f"the state needs {taken:,} bytes so far, more than the {self.memory:,} bytes that 'memory' allows: a "
                "window (WITHIN), PARTITION BY, stricter conditions or SELECT COUNT(*) need less (see 'explain'), or "
                "allow more"
            )

    # -- pushes --------------------------------------------------------------------------------------------------

    def push(self, events: Any) -> dict[str, Matches]:
        """The matches that events detect, of each query that has any.

        See `Recognizer.push` for the events and the errors.
        """
        # A context manager would slow down single events.
        if self._broken or not self._in_use.acquire(False):
            self._hold()
        try:
            if type(events) is dict or isinstance(events, Mapping):
                return self._push_one(events if self._completed is None else self._completed(events))
            return self._push_rows(as_rows(events, self._given))
        finally:
            if self._amid:
                self._amid, self._broken = False, True
            self._in_use.release()

    def _push_rows(self, events: pa.RecordBatch | pa.Table, single: Single | None = None) -> dict[str, Matches]:
        """The matches that rows detect; they may be the one row of a ``single`` event."""
        count = events.num_rows
        if not count:
            return {}
        begin = perf_counter()
        found: dict[str, list[Part]] = {}
        machines = self.machines.values() if single is None else single.machines
        size = self.rows_at_once if count > 1 else 1
        with _Wholly(self, self._states(count, machines, cut=count > size)):
            self.forget(wanted=True)
            rows = self.checker.accept(events)
            if rows is not None and rows.num_rows <= size:
                found = self.process(rows, 0, single)
            elif rows is not None:
                for start in range(0, rows.num_rows, size):
                    for name, parts in self.process(rows.slice(start, size), start).items():
                        found.setdefault(name, []).extend(parts)
            matches = self._matches(found)
        self._spent = perf_counter() - begin
        return matches

    def _matches(self, found: Mapping[str, list[Part]]) -> dict[str, Matches]:
        """The matches in what was found just now, in the order of the queries; from now on they are reported."""
        if not found:
            return {}
        names = sorted(filter(found.get, found), key=self._places.__getitem__)
        return {name: self.machines[name].matches(found[name]) for name in names}

    def transaction(self, rows: int, *, foreseen: bool) -> Transaction:
        """A context manager that goes back to the present state if its block fails, after any pushes.

        If failures are not ``foreseen``, and copying a state costs much compared with a push of this many rows, all
        later calls raise an error instead.
        """
        states = {machine: StateBefore(machine) for machine in self.machines.values()}
        for machine, state in states.items():
            state.leave(machine, keep=foreseen or state.bytes <= _cheap(rows))
        return _Wholly(self, states)

    def _states(self, rows: int, machines: Collection[Machine], *, cut: bool = False) -> _States:
        """The present states of some machines, kept for a push of ``rows`` rows, which are ``cut`` into slices or not.

        All foreseen failures can be undone. Others, and interruptions, only where the state was copied, which must be
        cheap compared with the push.
        """
        strict = self.checker.policy != "skip"
        # When a later slice or query fails, or much memory is taken, machines have already processed events.
        failing = len(machines) > 1 and any(machine.may_fail(strict=strict) for machine in machines)
        processed = failing or self.memory is not None or cut
        room = max(_cheap(rows), int(limits.COPIED_BYTES_A_SECOND * self._spent))
        return {machine: machine.begin_push(processed=processed, strict=strict, room=room) for machine in machines}

    def advance(self, time: object) -> dict[str, Matches]:
        """The matches of each query that has any once no event before a time can come; see `Recognizer.advance`."""
        with self.alone():
            clock = clock_time(time, self.checker.schema)
            with _Wholly(self, self._states(1, self.machines.values())):
                found = self._matches(dict(self.until(clock)))
                self.checker.accept_time(clock)
            return found

    def until(self, clock: pa.Array) -> Iterator[tuple[str, list[Part]]]:
        """The detections, up to the time in an array, of the queries that wait for deadlines."""
        for name, machine in self.machines.items():
            yield name, machine.until(clock)
            machine.tidy()

    def process(self, rows: pa.RecordBatch, begin: int, single: Single | None = None) -> dict[str, list[Part]]:
        """The detections in rows that the checker accepted of a push; the first is row ``begin`` of all accepted."""
        look()
        checker = self.checker
        first, exported = checker.numbered, checker.accept_rows(rows)
        try:
            return self._read(rows, first, exported, begin, single)
        except (UnicodeDecodeError, pa.ArrowInvalid) as error:
            checker.refuse_broken_texts(rows, begin, error)
            raise

    def _read(
        self, rows: pa.RecordBatch, first: int, exported: ExportedBatch | None, begin: int, single: Single | None
    ) -> dict[str, list[Part]]:
        found: dict[str, list[Part]] = {}
        # Some queries take a single event by themselves, beside others that take its row.
        own, kept = ([], self._kept) if single is None else self._takers.read_beside_row(single, first)
        for store, machines in kept.items():
            each = ((name, machine, machine.read(rows, first, exported)) for name, machine in machines.items())
            read = [(name, machine, reading) for name, machine, reading in each if reading is not None]
            needed = [reading.needed for _, _, reading in read]
            needed += [np.array([first]) for _, machine, _, e in own if e is not None and machine.store is store]
            if len(needed) > 1:
                # Of a single event there is nothing to join.
                needed = [ascending(*needed) if single is None else max(needed, key=len)]
            if needed:
                store.keep(*((read[0][2].first, read[0][2].rows) if read else (first, rows)), needed[0])
            for name, machine, reading in read:
                found[name] = machine.take(reading, partial(self._refuse, machine, rows, begin))
                machine.tidy()
        if single is not None:
            found |= advanced(own, single.event, single.values, first, nobody)
        return found

    def _refuse(self, machine: Machine, rows: pa.RecordBatch, begin: int, row: int) -> None:
        windows = (node for node in walk(machine.plan.select) if isinstance(node, AttributeWindow))
        self.checker.refuse_late(rows, row, begin + row, {window.attribute for window in windows})

    @cached_property
    def _takers(self) -> Takers:
        """Made for the first event that comes by itself."""
        return Takers(self.machines, self.checker.schema)

    def _push_one(self, event: Mapping[str, Any]) -> dict[str, Matches]:
        checker, takers = self.checker, self._takers
        plainly = not self._prompt and self.memory is None
        values = takers.fields.plain(event, checker.latest) if plainly else None
        if values is None:
            return self._push_rows(as_batch(event, self._columns))
        some = takers.of(values)
        if some.batched or len(values) < takers.fields.count:
            return self._push_rows(as_batch(event, self._columns), Single(event, values, *some))
        matches: dict[str, Matches] = {}
        self._amid = True
        if some.singly:
            found = takers.take_singly(some.singly, event, values, checker.numbered)
            if found is None:
                # As a batch of one event it fits, or the checker refuses it; queries have not processed it.
                self._amid = False
                return self._push_rows(as_batch(event, self._columns), Single(event, values, (), some.singly))
            for store in self._kept:
                if store.wants_cleaning:
                    self.forget(wanted=True)
            matches = self._matches(found)
        checker.numbered += 1
        time = checker.schema.time
        checker.latest = None if time is None else values[time]
        self._amid = False
        return matches

    # -- what is remembered --------------------------------------------------------------------------------------

    def begin_anew(self, first: int) -> None:
        """Forget all events; the next one is event number ``first`` of the stream."""
        self.checker.numbered = first
        for machine in self.machines.values():
            machine.begin_anew()
            machine.store.clear()

    def forget(self, *, wanted: bool = False) -> None:
        """Keep only the events that matches may still refer to; if ``wanted``, only where there are many others.

        The latter happens before a push, so that the last push is not charged for it, and once for all its rows, which
        are one table.
        """
        for store, machines in self._kept.items():
            if not wanted or store.wants_cleaning:
                for machine in machines.values():
                    machine.about_to_change()
                needed = [machine.live_positions() for machine in machines.values()]
                store.forget(ascending(*needed))

    # -- snapshots -----------------------------------------------------------------------------------------------

    def contents(self, *, together: bool) -> tuple[Contents, list[Contents]]:
        """The counts of the checker with the events that queries share, and what each machine remembers.

        The latter has these events, too, unless it is kept ``together`` with the former.
        """
        with self.alone():
            self.forget()
            counts, shared = self.checker.counts, self.store.kept()
            nothing, parts = EventStore(self.store.schema).kept(), list[Contents]()
            for machine in self.machines.values():
                apart = not together or machine.store is not self.store
                parts.append(machine.contents(counts, machine.store.kept() if apart else nothing))
            header = {**counts, "names": list(self.machines)}
            return Contents(header, {}, shared.rows, shared.positions), parts

    def take_over(self, parts: Sequence[Contents], shared: Contents | None = None) -> None:
        """Replace the present state by what machines remember, and if not with these, what they share.

        Raises `SnapshotError` if no recogniser of these queries could have such a state; then nothing has changed.
        """
        for machine, part in zip(self.machines.values(), parts, strict=True):
            check_origin(part.description, machine.plan.identity(machine.tables))
        counts = (shared or parts[0]).description
        check_counts(counts, self.checker.schema)
        if shared is not None:
            check_events(shared.events, shared.positions, self.store.schema, counts["accepted"])
        # States are replaced here, not changed, so none is copied.
        with _Wholly(self, {machine: StateBefore(machine) for machine in self.machines.values()}):
            for machine, part in zip(self.machines.values(), parts, strict=True):
                if shared is not None and machine.store is self.store:
                    machine.take_over(part, shared.positions)
                    continue
                check_events(part.events, part.positions, machine.store.schema, machine.came(part.description))
                machine.store.take_over(part.events, part.positions)
                machine.take_over(part, part.positions)
            self.checker.take_over(counts)
            if shared is not None:
                self.store.take_over(shared.events, shared.positions)
        self._broken = False

    def __copy__(self) -> Driver:
        """Another driver in the same state."""
        copied = Driver(self.plans, RecordChecker(self.checker.schema, self.checker.policy), memory=self.memory)
        copied.prompt = self.prompt
        shared, parts = self.contents(together=True)
        copied.take_over(parts, shared)
        return copied


def _cheap(rows: int) -> int:
    """The bytes of a state whose copy costs little compared with a push of this many rows."""
    return max(limits.COPIED_BYTES, limits.COPIED_BYTES_EACH * rows)


class _Wholly(Transaction):
    """Sets a driver back if the block fails; if a state is lost, it can only be restored from a snapshot."""

    def __init__(self, driver: Driver, states: _States) -> None:
        stores = dict.fromkeys([driver.store, *(machine.store for machine in states)])
        super().__init__([driver.checker, *stores, *(part for machine in states for part in machine.parts)])
        self._driver, self._states, self._broken = driver, states, driver._broken

    def set_back(self) -> None:
        self._driver._broken = True
        super().set_back()
        for machine, state in self._states.items():
            state.set_back(machine)
        self._driver._broken = self._broken or any(state.lost for state in self._states.values())
