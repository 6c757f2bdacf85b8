"""The recogniser: events in, matches out, with all that is remembered in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

import pyarrow as pa

from cerflow.engine import layout
from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.events.store import EventStore
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.machine import ROWS, Machine
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.single_events import SingleEvents, as_batch
from cerflow.engine.results.report import Report
from cerflow.engine.state import snapshot
from cerflow.engine.state.validation import check_counts, check_events, check_number
from cerflow.errors import InputError, InUseError, SnapshotError
from cerflow.language.printer import show
from cerflow.language.select import Select
from cerflow.schema import Schema
from cerflow.values.event_tables import as_rows

__all__ = ["Recognizer"]


class Recognizer:
    """Recognises the matches of one query in a stream that comes in batches.

    ``schema`` describes the batches; ``position`` names a column that holds each event's position in the whole
    stream (otherwise events are counted as they come, and ``positions=False`` leaves positions null). ``on_bad_record``
    says what happens to events that cannot be used: ``"fail"`` raises `BadRecordError`, ``"skip"`` leaves them out,
    a callable gets them as a table with the columns ``row`` and ``reason`` in addition. Raises `QueryError` if the
    query does not fit the schema and `UnsupportedQueryError` if the engine cannot evaluate it. A ``plan`` for the
    query, schema and positions saves making one.

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
    ) -> None:
        self._plan = plan = plan or Plan(select, schema, position=position, positions=positions)
        self._checker = RecordChecker(plan.schema, on_bad_record)
        self._store = EventStore(plan.stored)
        self._machine = Machine(plan, self._store)
        self._tables = self._machine.tables
        self._singles: SingleEvents | None = None
        self._in_use = Lock()

    @property
    def events(self) -> int:
        """The number of events accepted so far."""
        return self._checker.accepted

    @property
    def bad_records(self) -> int:
        """The number of events refused so far."""
        return self._checker.refused

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the matches."""
        return self._plan.report.schema

    @property
    def report(self) -> Report:
        """What makes record batches of matches (for other parts of cerflow)."""
        return self._plan.report

    @property
    def live(self) -> dict[str, int]:
        """How much is remembered: configurations, nodes of the match graph, events, partitions; and work done."""
        c = self._machine.memory.state.counters
        return {
            "configurations": int(c[layout.N_LIVE]),
            "nodes": int(c[layout.N_NODES]),
            "partitions": int(c[layout.N_PARTITIONS] - c[layout.N_FREE_PARTITIONS]),
            "events": len(self._store),
            "strings": len(self._tables.strings),
            "visited": int(c[layout.N_VISITED]),
        }

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `restore`. Matches handed out before are not part of it."""
        if not self._in_use.acquire(blocking=False):
            raise InUseError("the recogniser")
        try:
            self._store.forget(self._machine.live_positions())
            contents = self._machine.contents(self._checker.counts, self._store.kept())
            return snapshot.write_snapshot(snapshot.RECOGNIZER, contents)
        finally:
            self._in_use.release()

    @classmethod
    def restore(cls, query: object, data: bytes, *, on_bad_record: BadRecordPolicy = "fail") -> Recognizer:
        """The recogniser that a snapshot was taken of, for the same query; it goes on where that one stood.

        Raises `SnapshotError` if the bytes are no snapshot, or one of another query or version, or if anything in it
        could not be remembered by a recogniser. Who can change a snapshot can change what is found, but no more.
        """
        select = getattr(query, "tree", query)
        if not isinstance(select, Select):
            raise TypeError(f"restore needs the query of the snapshot, not {type(query).__name__}")
        contents = snapshot.read(snapshot.RECOGNIZER, data)
        header = contents.description
        if header.get("query") != show(select):
            raise SnapshotError(f"the snapshot is of another query: {header.get('query')!s:.2000}")
        schema, position = _roles_in(header)
        positions = header.get("positions") is True
        # A query that was parsed may have a plan already.
        plan_of: Callable[[Schema, str | None, bool], Plan] | None = getattr(query, "plan", None)
        try:
            plan = plan_of(schema, position, positions) if plan_of is not None else None
            restored = cls(
                select, schema, position=position, positions=positions, on_bad_record=on_bad_record, plan=plan
            )
        except InputError as error:
            raise SnapshotError(f"the snapshot is of events that the query does not fit: {error}") from error
        check_counts(header, schema)
        check_events(contents.events, contents.positions, restored._store.schema, check_number(header, "next", least=0))
        restored._machine.restorer(contents, contents.positions)()
        restored._checker.take_over(header)
        restored._store.take_over(contents.events, contents.positions)
        return restored

    def push(self, events: Any) -> Matches:
        """Process events, in the order of the rows, or one event given as a mapping; returns the matches they detect.

        Events are given as to `Query.match`, with the columns of the recogniser; others are left out.
        An event given as a mapping lacks (as null) the attributes that are not named there. Raises `InputError` if
        events do not fit the schema, `BadRecordError` by policy, `PredicateError` if the function of a predicate
        fails; then nothing of them has been processed. Raises `InUseError` while another call runs.
        """
        if not self._in_use.acquire(blocking=False):
            raise InUseError("the recogniser")
        try:
            if type(events) is dict or isinstance(events, Mapping):
                return self._push_one(events)
            return self._push_rows(as_rows(events, self._plan.schema.columns))
        finally:
            self._in_use.release()

    def _push_rows(self, events: pa.RecordBatch | pa.Table) -> Matches:
        parts: list[Part] = []
        if not events.num_rows:
            return Matches(parts, self._plan.report, self._plan.limit)
        undo = self._checkpoint(events.num_rows)
        try:
            for rows in self._checker.accept(events):
                for start in range(0, rows.num_rows, ROWS):
                    parts.extend(self._process(rows.slice(start, ROWS), start))
        except BaseException:
            undo()
            raise
        return Matches(parts, self._plan.report, self._plan.limit)

    def _checkpoint(self, rows: int) -> Callable[[], None]:
        """How to go back to what is remembered now, should a batch of so many rows fail."""
        undos = (
            self._checker.checkpoint(),
            self._store.checkpoint(),
            self._machine.checkpoint(strict=self._checker.policy != "skip", slices=rows > ROWS),
        )

        def undo() -> None:
            for each in undos:
                each()

        return undo

    def _process(self, rows: pa.RecordBatch, begin: int) -> list[Part]:
        checker = self._checker
        numbered = checker.numbered
        checker.accept_rows(rows)
        return self._machine.process(rows, numbered, lambda row: checker.refuse_late(rows, row, begin + row))

    def _push_one(self, event: Mapping[str, Any]) -> Matches:
        plan, checker = self._plan, self._checker
        if self._singles is None:
            self._singles = SingleEvents(plan, self._tables, self._machine.reader.signatures)
        singles = self._singles
        values = singles.plain(event, checker.latest) if singles.ready else None
        if values is None:
            return self._push_rows(as_batch(event, plan.schema.columns))
        parts: list[Part] = []
        position = self._machine.next
        prepared = singles.read(values, position, self._machine.reader.signatures.texts.of(values))
        if prepared is not None:
            self._store.add_one(position, values)
            late: list[int] = []
            parts = self._machine.advance(prepared, late.append)
            if late:
                # It has to be refused, like one of a batch.
                self._store.drop_last()
                return self._push_rows(as_batch(event, plan.schema.columns))
            if self._store.wants_cleaning:
                self._store.forget(self._machine.live_positions())
        self._machine.next += 1
        checker.numbered += 1
        checker.latest = singles.moment
        return Matches(parts, self._plan.report, plan.limit)


def _roles_in(header: Mapping[str, Any]) -> tuple[Schema, str | None]:
    """The schema of the events and their position column, as a snapshot describes them."""
    try:
        columns = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(header["columns"])))
        roles = {role: header[role] for role in ("type", "time", "stream", "position", "time_unit")}
        if not all(type(name) is str or (name is None and role != "type") for role, name in roles.items()):
            raise TypeError(f"the columns {roles} are no names")
        forget = header.get("forget")
        if forget is not None and (type(forget) is not int or not 0 < forget < 2**62):
            raise TypeError(f"{forget} is no pause")
        schema = Schema(columns, roles["type"], roles["time"], roles["stream"], roles["time_unit"], forget)
        return schema, roles["position"]
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise SnapshotError(f"the snapshot is damaged: its events are not described: {error}") from error
