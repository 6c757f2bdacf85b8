"""The recognisers of one query and of a set take events, return matches, and remember between calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from cerflow.base.errors import ArgumentError, InputError, SnapshotError
from cerflow.base.schema import Schema
from cerflow.engine import layout
from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.matches.matches import Matches
from cerflow.engine.recognize.driver import Driver
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.transaction import Transaction
from cerflow.engine.results.report import Report
from cerflow.engine.state import snapshot
from cerflow.language.printer import show
from cerflow.language.select import Select

#: The name of the one query.
_NAME = "query"


class StreamRecognizer:
    """What the recognisers of one query, of several and of a program have in common; the first two have a driver."""

    _checker: RecordChecker
    _driver: Driver

    def _use(self, driver: Driver) -> None:
        self._driver, self._checker = driver, driver.checker

    @property
    def events(self) -> int:
        """The number of events of the input accepted so far."""
        return self._checker.accepted

    @property
    def bad_records(self) -> int:
        """The number of events of the input refused so far; among several queries, also those that only some refuse."""
        return self._checker.refused

    def __copy__(self) -> Self:
        """Another recogniser in the same state; neither changes when the other goes on."""
        copied = object.__new__(type(self))
        copied._use(copy(self._driver))
        return copied

    def __deepcopy__(self, _: object) -> Self:
        return copy(self)


class Recognizer(StreamRecognizer):
    """Recognises the matches of one query in a stream that arrives in batches.

    ``schema`` describes the batches. ``position`` names a column that holds each event's position in the whole
    stream, in ascending order; without it events are counted as they arrive, and ``positions=False`` leaves positions
    out.
    ``on_bad_record`` says what happens to events that cannot be used: ``"fail"`` raises `BadRecordError`, ``"skip"``
    leaves them out, and a callable gets them as a table with two more columns, ``row`` and ``reason``. A ``plan`` for
    the query, schema and positions saves making one. With ``memory``, a number of bytes, a push whose state would need
    more raises `MemoryLimitError`; small pushes then cost more. Raises `QueryError` if the query does not fit the
    schema and `UnsupportedQueryError` if the engine cannot evaluate it.

    A push is processed completely or not at all, even if it is interrupted. There is one exception: if the state is
    large and a small push takes unexpectedly long, an interruption cannot be undone. Then all calls raise
    `CerflowError`; restore a snapshot.

    A recogniser is for one caller at a time: `push` and `snapshot` raise `InUseError` while another call runs. The
    matches that it has returned may be read at any time, in any thread.
    """

    def __init__(
        self,
        select: Select,
        schema: Schema,
        *,
        position: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        plan: Plan | None = None,
        memory: int | None = None,
    ) -> None:
        plan = plan or Plan(select, schema, position=position, positions=positions)
        self._use(Driver({_NAME: plan}, RecordChecker(plan.schema, on_bad_record), memory=memory))

    def _use(self, driver: Driver) -> None:
        super()._use(driver)
        self._machine = driver.machines[_NAME]
        #: The result of most pushes of single events.
        self._nothing = self._machine.matches(())

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the matches."""
        return self.report.schema

    @property
    def report(self) -> Report:
        """The report, which makes record batches of matches (for other parts of cerflow)."""
        return self._machine.plan.report

    @property
    def live(self) -> dict[str, int]:
        """How many configurations, nodes of the match graph, events, … are remembered; ``visited`` measures work."""
        c = self._machine.memory.state.counters
        return {
            "configurations": int(c[layout.N_LIVE]),
            "nodes": int(c[layout.N_NODES]),
            "partitions": int(c[layout.N_PARTITIONS] - c[layout.N_FREE_PARTITIONS]),
            "events": len(self._machine.store),
            "strings": len(self._machine.tables.strings),
            "visited": int(c[layout.N_VISITED]),
        }

    def run_clock(self) -> None:
        """From now on the clock shows each deadline when it passes, as if `advance` was called at every time.

        For other parts of cerflow.
        """
        self._driver.prompt = True

    @property
    def next_deadline(self) -> pa.Scalar | None:
        """The earliest time at which something may be detected without events (for other parts of cerflow)."""
        return None if self._machine.deadlines is None else self._machine.deadlines.next

    def reads_as(self, other: Recognizer) -> bool:
        """Whether both read and report the same columns of their events (for other parts of cerflow)."""
        own, others = self._machine.plan, other._machine.plan
        numbered = own.report.numbered == others.report.numbered
        return numbered and own.schema.in_default_unit() == others.schema.in_default_unit()

    @property
    def may_fail(self) -> bool:
        """Whether a predicate or a window may make a push fail amid its events (for other parts of cerflow)."""
        return self._machine.may_fail(strict=True)

    def transaction(self, rows: int, *, foreseen: bool) -> Transaction:
        """See `Driver.transaction` (for other parts of cerflow)."""
        return self._driver.transaction(rows, foreseen=foreseen)

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `restore`. Matches handed out before are not part of it."""
        _, (part,) = self._driver.contents(together=False)
        return snapshot.write_snapshot(snapshot.RECOGNIZER, part)

    @classmethod
    def restore(
        cls, query: object, data: bytes, *, on_bad_record: BadRecordPolicy = "fail", memory: int | None = None
    ) -> Recognizer:
        """A recogniser of the query that continues from a snapshot.

        Raises `SnapshotError` if the bytes are not a snapshot, if they are one of another query or version, or if no
        recogniser could have such a state. A forged snapshot can change which matches are found, but cannot do anything
        else.
        """
        select = getattr(query, "tree", query)
        if not isinstance(select, Select):
            raise ArgumentError(f"restore needs the query of the snapshot, not {type(query).__name__}")
        contents = snapshot.read_snapshot(snapshot.RECOGNIZER, data)
        header = contents.description
        if header.get("query") != show(select):
            raise SnapshotError(f"the snapshot is of another query: {header.get('query')!s:.2000}")
        schema, position = _roles_in(header)
        positions = header.get("positions") is True
        # A query that was parsed may have a plan already.
        plan_of: Callable[[Schema, str | None, bool], Plan] | None = getattr(query, "plan", None)
        try:
            plan = plan_of(schema, position, positions) if plan_of is not None else None
            plan = plan or Plan(select, schema, position=position, positions=positions)
        except InputError as error:
            raise SnapshotError(f"the snapshot is of events that the query does not fit: {error}") from error
        restored = cls(select, schema, on_bad_record=on_bad_record, plan=plan, memory=memory)
        restored._driver.take_over([contents])
        return restored

    def push(self, events: Any) -> Matches:
        """Process events in the order of the rows, or one event given as a mapping; returns the matches they detect.

        Events come in the forms that `Query.match` takes, with the columns of the recogniser; other columns are left
        out. Attributes that a mapping does not name are null. Raises `InputError` if events do not fit the schema,
        `BadRecordError` by policy, and `PredicateError` if the function of a predicate fails; then none of the events
        has been processed. Raises `InUseError` while another call runs.
        """
        return self._driver.push(events).get(_NAME, self._nothing)

    def advance(self, time: Any) -> Matches:
        """Let the time pass: returns the matches detected once no event before ``time`` is to come.

        Deadlines at or before ``time`` have passed. Their matches have no ``detected_at``; their ``detected_time`` is
        the deadline. From now on events before ``time`` are late, as if an event of that time had come. ``time`` is a
        value of the time column; for timestamps it may also be a datetime or a text of ISO 8601. Raises `InputError`
        for other values and without a time column, and `InUseError` while another call runs.
        """
        return self._driver.advance(time).get(_NAME, self._nothing)

    def advance_over(self, events: pa.Table, time: Any) -> Matches:
        """The same with ``events`` up to that time; the clock shows each deadline before they do.

        For other parts of cerflow.
        """
        driver, plan, before = self._driver, self._machine.plan, self._machine.reported
        prompt, driver.prompt = driver.prompt, True
        try:
            found = self.push(events)
        finally:
            driver.prompt = prompt
        return Matches([*found.parts, *self.advance(time).parts], plan.report, plan.limit, before=before)


class SetRecognizer(StreamRecognizer):
    """Recognises the matches of several queries in a stream that arrives in batches; see `QuerySet.recognizer`.

    It is for one caller at a time, like a `Recognizer`.
    """

    def __init__(
        self, plans: Mapping[str, Plan], schema: Schema, on_bad_record: BadRecordPolicy, memory: int | None = None
    ) -> None:
        self._use(Driver(plans, RecordChecker(schema, on_bad_record), memory=memory))

    def push(self, events: Any) -> dict[str, Matches]:
        """Process events; returns the matches of each query that has any. See `Recognizer.push`."""
        return self._driver.push(events)

    def advance(self, time: Any) -> dict[str, Matches]:
        """Let the time pass; returns matches as `push` does. See `Recognizer.advance`."""
        return self._driver.advance(time)

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `QuerySet.restore`. Matches handed out before are not part of it."""
        whole, parts = self._driver.contents(together=True)
        arrays = snapshot.arrays_of_parts(snapshot.write_snapshot(snapshot.RECOGNIZER, part) for part in parts)
        return snapshot.write_snapshot(snapshot.SET, replace(whole, arrays=arrays))

    def take_over(self, data: bytes) -> None:
        """Replace the present state by a snapshot of the same queries.

        Raises `SnapshotError` if the snapshot is damaged or of other queries; then nothing has changed.
        """
        with self._driver.alone():
            whole = snapshot.read_snapshot(snapshot.SET, data)
            given, names = whole.description.get("names"), list(self._driver.machines)
            if given != names:
                raise SnapshotError(f"the snapshot is of the queries {_listed(given)}, not {_listed(names)}")
            parts = [snapshot.part_in(whole, k, f"the query '{name}'") for k, name in enumerate(names)]
            self._driver.take_over([snapshot.read_snapshot(snapshot.RECOGNIZER, part) for part in parts], whole)


def _roles_in(header: Mapping[str, Any]) -> tuple[Schema, str | None]:
    """The schema of the events and their position column, as a snapshot describes them."""
    try:
        columns = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(header["columns"])))
        roles = {role: header[role] for role in ("type", "time", "stream", "position", "time_unit")}
        if not all(type(name) is str or (name is None and role != "type") for role, name in roles.items()):
            raise TypeError(f"the columns {roles} are not names")
        forget = header.get("forget")
        if forget is not None and (type(forget) is not int or not 0 < forget < 2**62):
            raise TypeError(f"{forget} is not a pause")
        constant, column = header.get("constant_type"), header.get("typed_by")
        if not all(name is None or type(name) is str for name in (constant, column)):
            raise TypeError(f"the types {constant} and {column} are not names")
        position = roles.pop("position")
        return Schema(columns, **roles, forget=forget, constant_type=constant, typed_by=column), position
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise SnapshotError(f"the snapshot is damaged: its events are not described: {error}") from error


def _listed(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) else "of nobody"
