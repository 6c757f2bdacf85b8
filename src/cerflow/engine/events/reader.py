"""A batch of events as the arrays that the kernels read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import IntRows, Ints, Mask, Smalls
from cerflow.base.arrow_columns import numbers_of
from cerflow.base.schema import ValueKind
from cerflow.engine.evaluate.measures import bounds, event_times, idle_bounds, measures
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.evaluate.vectors import Vector
from cerflow.engine.events.signatures import Evaluation
from cerflow.engine.layout import NO_BOUND, NOT_BEGUN, NULL, EventArrays
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.program.compiler import computed_column
from cerflow.engine.scan.scan import BatchScan
from cerflow.engine.tables.event_room import some_events
from cerflow.language.condition import Condition
from cerflow.language.formula import CountWindow
from cerflow.logic.conditions.guards import TypeTest


class EventReader:
    """Prepares batches for one set of tables.

    ``keys`` are the partition keys, each a choice of attributes. ``position`` names the column with the positions of
    events in the whole stream, unless they are counted here. A ``scan`` with the same tables reads the batches, and
    knows what it found besides events; conditions that its programs cannot express are evaluated here, by columns.
    """

    def __init__(
        self, scan: BatchScan, keys: Sequence[tuple[str, ...]], evaluation: Evaluation, position: str | None = None
    ) -> None:
        self.tables = scan.tables
        self.keys = keys
        self.position = position
        self.unit = scan.tables.atoms.unit
        self.evaluation = evaluation
        #: The scan of the last batch.
        self.scan = scan
        #: That for large batches.
        self._large = scan
        #: Whether anything is evaluated by columns.
        program, pauses = scan.program, self.tables.schema.forget is not None
        self.by_columns = bool(program.computed) or any(program.filled) or pauses

    def choose_scan(self, batch: ExportedBatch, rows: int, occupied: Callable[[], int]) -> BatchScan:
        """Choose the scan for a batch of so many ``rows``, before which runs are in the states ``occupied``."""
        ending, small = self.scan.ending, rows < limits.NARROWED_ROWS
        program, types = self._large.program, self._large.program.absent
        # An event has a type that is taken for absent, or runs are where only such an event leads.
        if not small and types and (batch.has(self.tables.schema.type, types) or occupied() & ~program.states):
            # Where there is an event of such a type, more will come.
            self._large = self._large.whole
        self.scan = self._large.whole if small else self._large
        self.scan.ending = ending
        return self.scan

    @property
    def whole(self) -> BatchScan:
        """The scan for any event."""
        return self._large.whole

    def rows(self, batch: pa.RecordBatch, first: int) -> BatchRows:
        """The rows of a batch that begins at position ``first`` of the stream."""
        positions = range(first, first + batch.num_rows)
        numbers = None if self.position is None else whole_numbers(batch.column(self.position))
        return BatchRows(batch, self.tables.schema, positions, self.unit, numbers)

    def read(
        self,
        batch: pa.RecordBatch,
        first: int,
        occupied: int = -1,
        exported: ExportedBatch | None = None,
        carried: int | None = None,
    ) -> tuple[EventArrays, int]:
        """The relevant events, and their number; the batch begins at position ``first`` of the stream.

        See `cerflow.engine.scan.scan.BatchScan.read` for the arguments. The arrays may have room for more events, and
        be used again by the next call.
        """
        if not self.by_columns:
            return self.scan.read(batch, first, occupied, exported, carried)
        rows = self.rows(batch, first)
        for number, truth in self._computed(rows).items():
            batch, exported = batch.append_column(computed_column(number), pa.array(truth.view(np.int8))), None
        events, count = self.scan.read(batch, first, occupied, exported, carried)
        return self._filled(rows, first, some_events(events, slice(count)))

    def _computed(self, rows: BatchRows) -> dict[int, Mask]:
        """Where tests hold that programs cannot compute, as far as that makes a difference."""
        computed, evaluation, asks = self.scan.program.computed, self.evaluation, self.tables.tests
        known: dict[int, Mask] = {}

        @cache
        def held(tests: frozenset[int]) -> Ints:
            """The rows for which some tests hold; each is asked of those that are left, types first."""
            left: Ints | None = None
            for test in sorted(tests, key=lambda k: (k not in known, not isinstance(asks[k], TypeTest), k)):
                if left is not None and test not in known:
                    left = left[_truths(rows.at(left), asks[test])]
                    continue
                if test not in known:
                    known[test] = _truths(rows, asks[test])
                left = np.flatnonzero(known[test]) if left is None else left[known[test][left]]
            return np.arange(rows.count) if left is None else left

        # Call predicates last, and only for rows that satisfy all other tests of some transition.
        for number in sorted(computed, key=lambda number: number in evaluation.before):
            before = evaluation.before.get(number)
            if before is None:
                before = [frozenset(tests - computed.keys()) for tests in self.tables.moves.other_tests(number)]
            asked = np.zeros(rows.count, bool)
            for tests in before:
                asked[held(tests)] = True
            some = np.flatnonzero(asked)
            if len(some):
                asked[some] = _truths(rows.at(some), asks[number])
            known[number] = asked
        return {number: known[number] for number in computed}

    def _filled(self, rows: BatchRows, first: int, events: EventArrays) -> tuple[EventArrays, int]:
        """The events with the values that only they need; events without a key are left out."""
        filled, schema = self.scan.program.filled, self.tables.schema
        here = rows.at(events.position - first)
        if filled.keys:
            words, known = self.key_words(here)
            if known is not None and not known.all():
                kept = np.flatnonzero(known)
                words, here = words[kept], here.at(kept)
                events = some_events(events, kept)
            events = events._replace(keys=np.ascontiguousarray(words))
        for k in filled.columns:
            events.columns[:, k] = self._column(k, here, events.signature)
        if filled.window:
            measure, bound = self._window(here)
            events = events._replace(measure=measure, bound=bound)
        if schema.forget is not None:
            events = events._replace(moment=event_times(here, schema), idle=idle_bounds(here, schema))
        if self.tables.atoms.ordered:
            events = events._replace(ranks=self.tables.strings.ranks())
        return events, here.count

    def signatures(self, rows: BatchRows) -> list[int]:
        """The signatures of a few events."""
        return self.tables.signatures(rows.held(enumerate(self.tables.tests)))

    # -- keys, columns, windows ----------------------------------------------------------------------------------

    def key_words(self, rows: BatchRows, keys: Sequence[tuple[str, ...]] | None = None) -> tuple[IntRows, Mask | None]:
        """The partition key of each event, or another one, as 64-bit words, and which events have one."""
        n, keys = rows.count, self.keys if keys is None else keys
        words = np.zeros((n, max(1, len(keys))), np.int64)
        if not keys:
            return words, None
        known = np.ones(n, bool)
        for k, names in enumerate(keys):
            missing = np.ones(n, bool)
            as_float = self.tables.schema.key_kind(names) is ValueKind.FLOAT
            for vector in map(rows.attribute, names):
                words[:, k] = np.where(missing, self._bits(vector, as_float), words[:, k])
                missing = missing & vector.missing()
            known &= ~missing
        return words, known

    def _bits(self, vector: Vector, as_float: bool) -> Ints:
        if vector.kind.coded:
            codes = self.tables.strings.codes(vector.dictionary)
            data = codes[vector.data] if len(codes) else np.zeros(vector.data.shape, np.int64)
            return Vector(ValueKind.INTEGER, data, vector.nulls).integers()
        if as_float:
            # Zero and null each have one bit pattern.
            floats = vector.floats() + 0.0
            return np.where(np.isnan(floats), np.nan, floats).view(np.int64)
        if vector.kind is ValueKind.FLOAT:
            # An expression without a kind, such as NULL / 2, is null everywhere.
            return np.full(vector.data.shape, NULL)
        return vector.integers()

    def _column(self, k: int, rows: BatchRows, signatures: Smalls) -> Ints:
        column = self.tables.columns[k]
        if column.window is not None:
            if self.tables.partitioned and isinstance(column.window, CountWindow):
                return np.zeros(rows.count, np.int64)  # the kernel counts positions in the substream
            return (bounds if column.bound else measures)(column.window, rows, self.tables.schema)
        assert column.expression is not None
        asked = self.tables.wanted(k)[signatures] if k in self.evaluation.asking else None
        return np.broadcast_to(self._bits(rows.value(column.expression, asked), column.as_float), (rows.count,))

    def _window(self, rows: BatchRows) -> tuple[Ints, Ints]:
        window = self.tables.transducer.window
        assert window is not None
        measure = measures(window, rows, self.tables.schema)
        bound = bounds(window, rows, self.tables.schema)
        # An event without a measure cannot begin or end a complex event, and expires nothing.
        return np.where(measure == NULL, NOT_BEGUN, measure), np.where(bound == NULL, NO_BOUND, bound)


def _truths(rows: BatchRows, test: Condition) -> Mask:
    """Where a test is true."""
    return np.broadcast_to(rows.truth(test).true, (rows.count,))


def whole_numbers(column: pa.Array) -> Ints:
    """The numbers of an integer column without nulls."""
    return numbers_of(column.cast(pa.int64()))
