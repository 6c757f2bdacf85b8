"""A batch of events as the arrays that the kernels read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cerflow import limits
from cerflow.engine.evaluate.measures import bounds, event_times, idle_bounds, measures
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.evaluate.vectors import Vector
from cerflow.engine.events.signatures import Evaluation, SignatureReader
from cerflow.engine.events.text_tests import rows_of_classes
from cerflow.engine.layout import NO_BOUND, NOT_BEGUN, NULL, EventArrays
from cerflow.engine.matches.graph import CountedMatches
from cerflow.engine.scan.columns import ExportedBatch
from cerflow.engine.scan.decisions import TooManyDecisionsError
from cerflow.engine.scan.effects import CountedEvents
from cerflow.engine.scan.scan import BatchScan
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.language.formula import CountWindow
from cerflow.schema import ValueKind
from cerflow.values.array_types import IntRows, Ints, Mask, Smalls
from cerflow.values.arrow_columns import numbers_of

__all__ = ["EventReader", "whole_numbers"]


class EventReader:
    """Prepares batches for one set of tables.

    ``keys`` are the partition keys, each a choice of attributes. ``position`` names the column with the positions of
    events in the whole stream, if they are not counted here. With a ``scan`` that has the same tables
    it reads the batches; otherwise, and where that does not pay, columns are evaluated as a whole.
    """

    def __init__(
        self,
        tables: TransducerTables,
        keys: Sequence[tuple[str, ...]],
        position: str | None = None,
        evaluation: Evaluation | None = None,
        scan: BatchScan | None = None,
    ) -> None:
        self.tables = tables
        self.keys = keys
        self.position = position
        self.unit = tables.atoms.unit
        evaluation = Evaluation.of(tables) if evaluation is None else evaluation
        self.signatures = SignatureReader(tables, evaluation)
        self._asking = evaluation.asking
        self._scan = scan
        #: The matches of consecutive events that the last batch has by itself, beside the events that it gave.
        self.consecutive: CountedMatches | None = None
        #: The events of the last batch whose matches are counted.
        self.counted: CountedEvents | None = None

    def asks_for_states(self, rows: int) -> bool:
        """Whether `read` makes use of the states in which runs may be before a batch of this many rows."""
        scan = self._scan
        return scan is not None and (scan.follows or (scan.flows and rows >= limits.NARROWED_ROWS))

    @property
    def rows_at_once(self) -> int:
        """This many rows make a batch at most."""
        return limits.BATCH_ROWS if self._scan is None else self._scan.rows_at_once

    def rows(self, batch: pa.RecordBatch, first: int) -> BatchRows:
        """The rows of a batch that begins at position ``first`` of the stream."""
        positions = range(first, first + batch.num_rows)
        numbers = None if self.position is None else whole_numbers(batch.column(self.position))
        return BatchRows(batch, self.tables.schema, positions, self.unit, numbers)

    def read(
        self, batch: pa.RecordBatch, first: int, occupied: int = -1, exported: ExportedBatch | None = None
    ) -> tuple[EventArrays, int]:
        """The relevant events, and how many these are; the batch begins at position ``first`` of the stream.

        ``occupied`` are the states in which runs may be before it, as bits; ``exported`` says where it is. The arrays
        may have room for more events, and be used again by the next call.
        """
        scanned = self._scanned(batch, first, occupied, exported)
        if scanned is not None:
            return scanned
        events, some = self.evaluated(batch, first)
        return events, len(some)

    def _scanned(
        self, batch: pa.RecordBatch, first: int, occupied: int, exported: ExportedBatch | None
    ) -> tuple[EventArrays, int] | None:
        self.consecutive = self.counted = None
        if self._scan is None:
            return None
        try:
            found = self._scan.read(batch, first, occupied, exported)
            if found is not None:
                self.consecutive, self.counted = self._scan.consecutive, self._scan.counted
            return found
        except TooManyDecisionsError:
            self._scan = None
            return None

    def evaluated(self, batch: pa.RecordBatch, first: int) -> tuple[EventArrays, Ints]:
        """The same by columns, without a scan, with the row numbers of the events."""
        rows = self.rows(batch, first)
        classes, satisfied = self.signatures.texts.classify(rows)
        if self.tables.counted:
            return self.read_some(rows, np.arange(batch.num_rows), classes, satisfied)
        some = rows_of_classes(classes, [self.signatures.may_be_relevant(s) for s in satisfied])
        return self.read_some(rows, some, classes[some], satisfied)

    def read_some(
        self, rows: BatchRows, some: Ints, classes: Ints, satisfied: Sequence[frozenset[int]]
    ) -> tuple[EventArrays, Ints]:
        """The relevant events among ``some`` rows of a batch, and their row numbers.

        ``classes`` are the classes of these rows by their texts, ``satisfied`` the tests that hold in each class.
        """
        self.tables.forget_signatures()
        here = rows.at(some)
        signatures = self.signatures.read(here, classes, satisfied)
        words, known = self.key_words(here)
        wanted = np.ones(len(some), bool) if known is None else known
        if not self.tables.counted:
            wanted = wanted & np.array(self.tables.relevant, bool)[signatures]
        if not wanted.all():
            kept = np.flatnonzero(wanted)
            some, signatures, words, here = some[kept], signatures[kept], words[kept], here.at(kept)
        columns = np.zeros((len(some), max(1, len(self.tables.columns))), np.int64)
        for k in range(len(self.tables.columns)):
            columns[:, k] = self._column(k, here, signatures)
        measure, bound = self._window(here, len(some))
        schema = self.tables.schema
        forgets = schema.forget is not None
        events = EventArrays(
            signature=signatures,
            position=here.positions,
            measure=measure,
            bound=bound,
            keys=np.ascontiguousarray(words),
            columns=columns,
            moment=event_times(here, schema) if forgets else np.zeros(len(some), np.int64),
            left_out=np.zeros(len(some), np.int64),
            idle=idle_bounds(here, schema) if forgets else np.zeros(len(some), np.int64),
            ranks=self.tables.strings.ranks() if self.tables.atoms.ordered else np.zeros(1, np.int64),
        )
        return events, some

    # -- keys, columns, windows ----------------------------------------------------------------------------------

    def key_words(self, rows: BatchRows, keys: Sequence[tuple[str, ...]] | None = None) -> tuple[IntRows, Mask | None]:
        """The partition key of each event, or another one, as 64-bit words, and which events have one."""
        n, keys = rows.count, self.keys if keys is None else keys
        words = np.zeros((n, max(1, len(keys))), np.int64)
        if not keys:
            return words, None
        known = np.ones(n, bool)
        for k, names in enumerate(keys):
            value = np.zeros(n, np.int64)
            missing = np.ones(n, bool)
            vectors = [rows.attribute(name) for name in names]
            as_float = self.tables.schema.key_kind(names) is ValueKind.FLOAT
            for vector in vectors:
                bits = self._bits(vector, as_float)
                value = np.where(missing, bits, value)
                missing = missing & vector.missing()
            words[:, k] = value
            known &= ~missing
        return words, known

    def _bits(self, vector: Vector, as_float: bool) -> Ints:
        if vector.kind.coded:
            codes = self.tables.strings.codes(vector.dictionary)
            data = codes[vector.data] if len(codes) else np.zeros(vector.data.shape, np.int64)
            return Vector(ValueKind.INTEGER, data, vector.nulls).integers()
        if as_float:
            # Zero has one bit pattern, and so has null.
            floats = vector.floats() + 0.0
            return np.where(np.isnan(floats), np.nan, floats).view(np.int64)
        if vector.kind is ValueKind.FLOAT:
            # An expression without a kind, such as NULL / 2, is null everywhere.
            return np.full(vector.data.shape, NULL)
        return vector.integers()

    def _column(self, k: int, rows: BatchRows, signatures: Smalls) -> Ints:
        column = self.tables.columns[k]
        n = rows.count
        if column.window is not None:
            if self.tables.partitioned and isinstance(column.window, CountWindow):
                return np.zeros(n, np.int64)  # the kernel counts positions in the substream
            make = bounds if column.bound else measures
            return make(column.window, rows, self.tables.schema)
        assert column.expression is not None
        asked = self.tables.wanted(k)[signatures] if k in self._asking else None
        return np.broadcast_to(self._bits(rows.value(column.expression, asked), column.as_float), (n,))

    def _window(self, rows: BatchRows, n: int) -> tuple[Ints, Ints]:
        window = self.tables.transducer.window
        if window is None or (self.tables.partitioned and isinstance(window, CountWindow)):
            return np.zeros(n, np.int64), np.full(n, NO_BOUND)
        measure = measures(window, rows, self.tables.schema)
        bound = bounds(window, rows, self.tables.schema)
        if not n or (measure.min() != NULL and bound.min() != NULL):
            return measure, bound
        # An event without a measure can neither begin nor end a complex event, and makes none expire.
        return np.where(measure == NULL, NOT_BEGUN, measure), np.where(bound == NULL, NO_BOUND, bound)


def whole_numbers(column: pa.Array) -> Ints:
    """The numbers in a column of integers without null."""
    return numbers_of(column.cast(pa.int64()))
