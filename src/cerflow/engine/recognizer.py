"""The recogniser: events in, matches out, with all that is remembered in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from cerflow.engine import layout, snapshot
from cerflow.engine.machine import ROWS, Machine
from cerflow.engine.matches import Matches
from cerflow.engine.plan import Plan
from cerflow.engine.records import BadRecordPolicy, RecordChecker
from cerflow.engine.results import Report
from cerflow.engine.single import SingleEvents, as_batch
from cerflow.engine.store import EventStore
from cerflow.engine.unfolding import Part
from cerflow.errors import SnapshotError
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select
from cerflow.schema import Schema

__all__ = ["Recognizer"]

_CONSUME = {Consumption.NONE: 0, Consumption.ANY: 1, Consumption.PARTITION: 2}


class Recognizer:
    """Recognises the matches of one query in a stream that comes in batches.

    ``schema`` describes the batches; ``position`` names a column that holds each event's position in the whole
    stream (otherwise events are counted as they come, and ``positions=False`` leaves positions null). ``on_bad_record``
    says what happens to events that cannot be used: ``"fail"`` raises `BadRecordError`, ``"skip"`` leaves them out,
    a callable gets them as a table with the columns ``row`` and ``reason`` in addition. Raises `QueryError` if the
    query does not fit the schema and `UnsupportedQueryError` if the engine cannot evaluate it. A ``plan`` for the
    query, schema and positions saves making one.
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
        self._program = self._machine.program
        self._singles: SingleEvents | None = None

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
            "strings": len(self._program.strings),
            "visited": int(c[layout.N_VISITED]),
        }

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `restore`. Matches handed out before are not part of it."""
        self._store.forget(self._machine.live_positions())
        return self._machine.snapshot(self._checker.counts, self._store.kept())

    @classmethod
    def restore(cls, query: object, data: bytes, *, on_bad_record: BadRecordPolicy = "fail") -> Recognizer:
        """The recogniser that a snapshot was taken of, for the same query; it goes on where that one stood.

        Raises `SnapshotError` if the bytes are no snapshot, or one of another query or version.
        """
        select = getattr(query, "tree", query)
        if not isinstance(select, Select):
            raise TypeError(f"restore needs the query of the snapshot, not {type(query).__name__}")
        header, state, events, positions = snapshot.read(data)
        if header["query"] != show(select):
            raise SnapshotError(f"the snapshot is of another query: {header['query']}")
        columns = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(header["columns"])))
        schema = Schema(columns, header["type"], header["time"], header["stream"])
        # A query that was parsed may have a plan already.
        plan_of: Callable[[Schema, str | None, bool], Plan] | None = getattr(query, "plan", None)
        restored = cls(
            select,
            schema,
            position=header["position"],
            positions=header["positions"],
            on_bad_record=on_bad_record,
            plan=plan_of(schema, header["position"], header["positions"]) if plan_of is not None else None,
        )
        restored._machine.take_over(header, state)
        restored._checker.take_over(header)
        for batch in events.combine_chunks().to_batches():
            restored._store.add(positions, batch)
        return restored

    def push(self, events: pa.RecordBatch | pa.Table | Mapping[str, Any]) -> Matches:
        """Process events, in the order of the rows, or one event given as a mapping; returns the matches they detect.

        An event given as a mapping lacks (as null) the attributes that are not named there. Raises `InputError` if
        events do not fit the schema, `BadRecordError` by policy, `PredicateError` if the function of a predicate
        fails; then nothing of them has been processed.
        """
        if type(events) is dict or isinstance(events, Mapping):
            return self._push_one(events)
        parts: list[Part] = []
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
        accepted = checker.accepted
        checker.accept_rows(rows)
        return self._machine.process(rows, accepted, lambda row: checker.refuse_late(rows, row, begin + row))

    def _push_one(self, event: Mapping[str, Any]) -> Matches:
        plan, checker = self._plan, self._checker
        if self._singles is None:
            self._singles = SingleEvents(plan, self._program, self._machine.reader.signatures)
        singles = self._singles
        values = singles.plain(event, checker.latest) if singles.ready else None
        if values is None:
            return self.push(as_batch(event, plan.schema.columns))
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
                return self.push(as_batch(event, plan.schema.columns))
            if self._store.crowded:
                self._store.forget(self._machine.live_positions())
        self._machine.next += 1
        checker.accepted += 1
        checker.latest = singles.moment
        return Matches(parts, self._plan.report, plan.limit)
