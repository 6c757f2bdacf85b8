"""The recogniser of a program: events in, the matches of its last query out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.programs.merged_streams import Merging, ProgramPlan
from cerflow.api.query import Statement
from cerflow.base.errors import InUseError, SnapshotError, noted
from cerflow.base.event_tables import as_rows
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.event_row import as_batch
from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.events.store import EventStore
from cerflow.engine.matches.matches import Matches
from cerflow.engine.recognize.recognizer import Recognizer, StreamRecognizer
from cerflow.engine.recognize.transaction import Transaction
from cerflow.engine.state import snapshot
from cerflow.engine.state.snapshot import Contents
from cerflow.engine.state.validation import check_counts


def merged_events(
    statements: Sequence[Statement], schema: Schema, events: pa.Table, until: Any = None, memory: int | None = None
) -> tuple[pa.Table, pa.Table]:
    """The events that the last statement reads, of a whole stream that is in order; raises as `ProgramRecognizer`.

    The second table has those that the clock detects up to the time ``until``.
    """
    latest = events.column(schema.time)[-1] if schema.time is not None and len(events) else None
    definitions = statements[:-1]
    recognizers = [_recognizer(statement, memory) for statement in definitions]
    merging = Merging(events, schema)
    found = _read_by_last(merging, statements, recognizers)
    for statement in definitions:
        if not len(merging.added[statement.name]):
            statement.query.warn_of_no_match(statement.schema, merging.read(statement)[0])
    if until is None:
        return found, found[:0]
    return found, _read_by_last(Merging(events[:0], schema, latest), statements, recognizers, until)


def merged_parts(statements: Sequence[Statement], schema: Schema, events: pa.Table, rows: int) -> Iterator[pa.Table]:
    """The events that the last statement reads, each time those of this many more rows of a whole stream in order."""
    latest = None
    recognizers = [_recognizer(statement) for statement in statements[:-1]]
    for first in range(0, len(events), rows):
        part = events.slice(first, rows)
        yield _read_by_last(Merging(part, schema, latest), statements, recognizers)
        latest = None if schema.time is None else part.column(schema.time)[-1]


def _recognizer(statement: Statement, memory: int | None = None, positions: bool = True) -> Recognizer:
    plan = statement.query.plan(statement.schema, positions=positions)
    return Recognizer(statement.query.tree, statement.schema, plan=plan, memory=memory)


def _read_by_last(
    merging: Merging, statements: Sequence[Statement], recognizers: Iterable[Recognizer], time: Any = None
) -> pa.Table:
    """The events that the last statement reads, after the matches of the others have been added.

    With a ``time`` those that are known then, too.
    """
    for statement, recognizer in zip(statements, recognizers):
        read, places = merging.read(statement)
        first = recognizer.events
        with noted(f"in the definition '{statement.name}', rows counted among the events that it reads"):
            matches = recognizer.push(read) if time is None else recognizer.advance_over(read, time)
        merging.add(statement, matches, places, first)
    return merging.read(statements[-1])[0]


class ProgramRecognizer(StreamRecognizer):
    """Recognises the matches of a program in a stream that arrives in batches; see `Program.recognizer`.

    It holds a recogniser of each statement. Like a `Recognizer` it is for one caller at a time.
    """

    def __init__(
        self,
        plan: ProgramPlan,
        text: str,
        on_bad_record: BadRecordPolicy,
        *,
        positions: bool = True,
        memory: int | None = None,
    ) -> None:
        self._made_of = (plan, text, on_bad_record, positions, memory)
        self._statements = plan.statements
        self._text = text
        self._checker = RecordChecker(plan.schema, on_bad_record)
        *definitions, last = plan.statements
        self._recognizers = [_recognizer(statement, memory) for statement in definitions]
        self._recognizers.append(_recognizer(last, memory, positions))
        self._may_fail = memory is not None or plan.may_refuse or any(each.may_fail for each in self._recognizers)
        self._prompt = False
        self._in_use = Lock()

    def __copy__(self) -> Self:
        """See `Recognizer.__copy__`."""
        plan, text, policy, positions, memory = self._made_of
        copied = type(self)(plan, text, policy, positions=positions, memory=memory)
        copied._prompt = self._prompt
        copied.take_over(self.snapshot())
        return copied

    @property
    def live(self) -> dict[str, int]:
        """How much is remembered, as `Recognizer.live` says it, by all statements together."""
        each = [recognizer.live for recognizer in self._recognizers]
        return {name: sum(live[name] for live in each) for name in each[0]}

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the matches."""
        return self._recognizers[-1].schema

    def run_clock(self) -> None:
        """See `Recognizer.run_clock`."""
        self._prompt = True
        for recognizer in self._recognizers:
            recognizer.run_clock()

    @property
    def next_deadline(self) -> pa.Scalar | None:
        """See `Recognizer.next_deadline`."""
        times = [time for recognizer in self._recognizers if (time := recognizer.next_deadline) is not None]
        return pc.min(pa.array(times)) if times else None

    def push(self, events: Any) -> Matches:
        """Process events; returns the matches of the last query that they detect. See `Recognizer.push`."""
        with self._alone():
            columns, given = self._checker.schema.columns, self._checker.schema.given
            rows = as_batch(events, given) if isinstance(events, Mapping) else as_rows(events, given)
            counts, latest = Transaction([self._checker]), self._checker.latest_time
            valid = self._checker.accept(rows) if rows.num_rows else None
            # The last one goes back by itself.
            with counts, self._wholly(self._recognizers[:-1], rows.num_rows):
                if valid is not None:
                    self._checker.accept_rows(valid)
                table = pa.Table.from_batches([] if valid is None else [valid], columns)
                # A clock that runs has shown the times of these events to all statements.
                shown = table.column(self._checker.schema.time)[-1] if self._prompt and len(table) else None
                return self._recognize(table, shown, latest)

    def _recognize(self, events: pa.Table, time: Any, latest: pa.Scalar | None) -> Matches:
        """The matches of the last query in events, and then (not None) at a ``time`` that the clock shows."""
        *definitions, last = self._recognizers
        merging = Merging(events, self._checker.schema, latest)
        read = _read_by_last(merging, self._statements, definitions, time)
        return last.push(read) if time is None else last.advance_over(read, time)

    def _wholly(self, recognizers: Sequence[Recognizer], rows: int) -> ExitStack:
        """Where its block fails, let the recognisers go back, if that was foreseen or costs little."""
        stack = ExitStack()
        for each in recognizers:
            stack.enter_context(each.transaction(rows, foreseen=self._may_fail))
        return stack

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._in_use.acquire(blocking=False):
            raise InUseError("the recogniser")
        try:
            yield
        finally:
            self._in_use.release()

    def advance(self, time: Any) -> Matches:
        """Let the time pass; returns the matches of the last query. See `Recognizer.advance`.

        A match of a definition that the clock detects is an event at its deadline.
        """
        with self._alone():
            clock = clock_time(time, self._checker.schema)
            with Transaction([self._checker]), self._wholly(self._recognizers, 1):
                found = self._recognize(self._checker.schema.columns.empty_table(), clock[0], self._checker.latest_time)
                self._checker.accept_time(clock)
                return found

    def snapshot(self) -> bytes:
        """All that is remembered, as bytes; see `Program.restore`. Matches handed out before are not part of it."""
        with self._alone():
            arrays = snapshot.arrays_of_parts(recognizer.snapshot() for recognizer in self._recognizers)
            nothing = EventStore(pa.schema([])).kept()
            header = {**self._checker.counts, "program": self._text}
            return snapshot.write_snapshot(snapshot.PROGRAM, Contents(header, arrays, nothing.rows, nothing.positions))

    def take_over(self, data: bytes) -> None:
        """Continue from a snapshot of the same program, instead of the present state.

        Raises `SnapshotError` if it is of another one; then nothing has changed.
        """
        whole = snapshot.read_snapshot(snapshot.PROGRAM, data)
        header = whole.description
        if header.get("program") != self._text:
            raise SnapshotError(f"the snapshot is of another program: {header.get('program')!s:.2000}")
        check_counts(header, self._checker.schema)
        restored = []
        for k, (statement, old) in enumerate(zip(self._statements, self._recognizers, strict=True)):
            part = snapshot.part_in(whole, k, f"statement {k + 1}")
            new = Recognizer.restore(statement.query, part, memory=self._made_of[4])
            if not new.reads_as(old):
                raise SnapshotError("the snapshot is of events with other columns")
            restored.append(new)
        self._recognizers = restored
        if self._prompt:
            self.run_clock()
        self._checker.take_over(header)
