"""The recogniser: events in, matches out, with all that is remembered in between."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from cerflow.analysis.types import check_types
from cerflow.automata.transducer import Transducer
from cerflow.engine import layout, snapshot
from cerflow.engine.columns import EventReader
from cerflow.engine.layout import State
from cerflow.engine.matches import Matches, Part
from cerflow.engine.memory import Memory
from cerflow.engine.planning import compile_select, limit_of, strategy_of
from cerflow.engine.program import Program
from cerflow.engine.records import BadRecordPolicy, RecordChecker
from cerflow.engine.renaming import forget_strings
from cerflow.engine.results import Report
from cerflow.engine.store import EventStore
from cerflow.engine.streams import InputStreams
from cerflow.errors import SnapshotError
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select
from cerflow.schema import Schema

__all__ = ["Recognizer"]

_CONSUME = {Consumption.NONE: 0, Consumption.ANY: 1, Consumption.PARTITION: 2}
#: Rows that are prepared and processed at a time.
_ROWS = 1 << 17


class Recognizer:
    """Recognises the matches of one query in a stream that comes in batches.

    ``schema`` describes the batches; ``position`` names a column that holds each event's position in the whole
    stream (otherwise events are counted as they come, and ``positions=False`` leaves positions null). ``on_bad_record``
    says what happens to events that cannot be used: ``"fail"`` raises `BadRecordError`, ``"skip"`` leaves them out,
    a callable gets them as a table with the columns ``row`` and ``reason`` in addition. Raises `QueryError` if the
    query does not fit the schema and `UnsupportedQueryError` if the engine cannot evaluate it.
    """

    def __init__(
        self,
        select: Select,
        schema: Schema,
        *,
        position: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
    ) -> None:
        check_types(select, schema)
        self._select = select
        self._schema = schema
        self._position = position
        self._streams = InputStreams(select, schema, position)
        inner = self._streams.schema
        self._report = Report(select, inner, positions=positions, position=self._streams.position)
        self._program = Program(
            compile_select(select),
            inner,
            keys=select.partition,
            consume=_CONSUME[select.consume],
            position=self._streams.position,
            strategy=strategy_of(select),
        )
        self._reader = EventReader(self._program, select.partition, self._streams.position)
        self._checker = RecordChecker(schema, on_bad_record)
        self._memory = Memory(self._program)
        self._columns = self._report.stored
        self._store = EventStore(pa.schema([inner.columns.field(n) for n in self._columns]))
        self._limit = limit_of(select)
        #: The number of the next event among those of the query's streams.
        self._next = 0
        #: Where the window of the last event begins.
        self._last_bound = layout.NO_BOUND

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
        return self._report.schema

    @property
    def report(self) -> Report:
        """What makes record batches of matches (for other parts of cerflow)."""
        return self._report

    @property
    def live(self) -> dict[str, int]:
        """How much is remembered: configurations, nodes of the match graph, events, partitions; and work done."""
        c = self._memory.state.counters
        return {
            "configurations": int(c[layout.N_LIVE]),
            "nodes": int(c[layout.N_NODES]),
            "partitions": int(c[layout.N_PARTITIONS] - c[layout.N_FREE_PARTITIONS]),
            "events": len(self._store),
            "strings": len(self._program.strings),
            "visited": int(c[layout.N_VISITED]),
        }

    @property
    def transducer(self) -> Transducer:
        """The automaton that is evaluated (for other parts of cerflow)."""
        return self._program.transducer

    def restart(self, first: int) -> None:
        """Forget everything: the stream begins anew, with event number ``first``. Matches found before stay valid."""
        self._checker = RecordChecker(self._schema, self._checker.policy)
        self._checker.accepted = self._next = first
        self._memory = Memory(self._program)
        self._store = EventStore(self._store.schema)
        self._last_bound = layout.NO_BOUND

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `restore`. Matches handed out before are not part of it."""
        bound = self._last_bound if self._program.global_window else layout.NO_BOUND
        positions = self._memory.live_positions(bound)
        self._store.forget(positions)
        kept = self._store.kept()
        description = {
            **self._identity(),
            "strings": self._program.strings.texts,
            "next": self._next,
            "accepted": self._checker.accepted,
            "refused": self._checker.refused,
            "latest": self._checker.latest,
            "bound": self._last_bound,
        }
        return snapshot.write(description, self._memory.state, kept.rows, kept.positions)

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
        restored = cls(
            select,
            schema,
            position=header["position"],
            positions=header["positions"],
            on_bad_record=on_bad_record,
        )
        if restored._identity() != {name: header.get(name) for name in restored._identity()}:
            raise SnapshotError("the snapshot numbers states or labels in another way than this cerflow does")
        restored._program.strings.replace(header["strings"])
        restored._memory.state = state
        restored._next = header["next"]
        restored._checker.accepted = header["accepted"]
        restored._checker.refused = header["refused"]
        restored._checker.latest = header["latest"]
        restored._last_bound = header["bound"]
        for batch in events.combine_chunks().to_batches():
            restored._store.add(positions, batch)
        return restored

    def _identity(self) -> dict[str, object]:
        """What must be the same for a snapshot to make sense."""
        return {
            "query": show(self._select),
            "columns": self._schema.columns.serialize().to_pybytes().hex(),
            "type": self._schema.type,
            "time": self._schema.time,
            "stream": self._schema.stream,
            "position": self._position,
            "positions": self._report.numbered,
            "labels": [sorted(labels) for labels in self._program.label_sets],
            "slots": [sorted(map(list, places.items())) for places in self._program.slots.at],
        }

    def push(self, batch: pa.RecordBatch | pa.Table) -> Matches:
        """Process events, in the order of the rows; returns the matches detected by them.

        Raises `InputError` if the batch has another schema, `BadRecordError` by policy, `PredicateError` if the
        function of a predicate fails; then nothing of the batch has been processed.
        """
        parts: list[Part] = []
        undo = self._checkpoint(batch.num_rows)
        try:
            for rows in self._checker.accept(batch):
                for start in range(0, rows.num_rows, _ROWS):
                    parts.extend(self._process(rows.slice(start, _ROWS), start))
        except BaseException:
            undo()
            raise
        return Matches(parts, self._report, self._limit)

    def _checkpoint(self, rows: int) -> Callable[[], None]:
        """How to go back to what is remembered now, should a batch of so many rows fail."""
        checker, memory = self._checker, self._memory
        counts = (checker.accepted, checker.refused, checker.latest, self._next, self._last_bound)
        # After others were processed, events are refused only where windows measure attributes, and in later slices;
        # there predicates fail too.
        late = (len(self._program.tables.checked) > 0 and checker.policy != "skip") or self._program.asks
        state = State._make(array.copy() for array in memory.state) if late or rows > _ROWS else memory.state
        store = self._store.checkpoint()
        strings = self._program.strings.checkpoint()

        def undo() -> None:
            checker.accepted, checker.refused, checker.latest, self._next, self._last_bound = counts
            memory.state = state
            store()
            strings()

        return undo

    def _process(self, rows: pa.RecordBatch, begin: int) -> list[Part]:
        self._checker.note_time(rows)
        given = rows
        rows, index = self._streams.admit(rows, self._checker.accepted)
        self._checker.accepted += given.num_rows
        first = self._next
        self._next += rows.num_rows
        if not rows.num_rows:
            return []
        events, chosen = self._reader.read(rows, first)
        if not len(chosen):
            return []
        kept = rows.select(self._columns)
        self._store.add(first + chosen, kept if len(chosen) == rows.num_rows else kept.take(pa.array(chosen)))
        parts: list[Part] = []
        at = 0
        memory = self._memory
        while at < len(chosen):
            reason, at = memory.advance(events, at)
            if reason == layout.DONE:
                break
            if reason == layout.CALL_FAILED:
                self._program.atoms.calls.raise_failure(self._program.tables.failure)
            if reason == layout.FULL_NODES:
                # The nodes found so far move away with their detections.
                self._close_part(parts)
            if reason == layout.DECREASED:
                row = int(index[chosen[at]])
                why = "an attribute that measures a window decreases"
                self._checker.refuse_late(given, row, begin + row, why)
                at += 1
                continue
            memory.make_room(reason, events, at)
        self._close_part(parts)
        self._last_bound = max(self._last_bound, int(events.bound[-1]))
        if self._store.crowded:
            bound = self._last_bound if self._program.global_window else layout.NO_BOUND
            self._store.forget(memory.live_positions(bound))
        if self._program.strings.crowded:
            forget_strings(self._program, memory)
        return parts

    def _close_part(self, parts: list[Part]) -> None:
        nodes, detections = self._memory.take_detections()
        if len(detections):
            parts.append(Part(nodes, detections, self._store.kept(), self._program.label_sets))
