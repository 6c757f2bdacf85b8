"""Checks a whole batch at once: whether every row is valid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cerflow.engine.kernels.base.calling import Row
from cerflow.engine.kernels.base.shared_arrays import SharedArrays
from cerflow.engine.kernels.table import all_usable
from cerflow.engine.layout import NULL
from cerflow.engine.scan import layout
from cerflow.engine.scan.columns import ExportedBatch, layout_of, layout_of_text
from cerflow.engine.scan.layout import ScanArrays
from cerflow.schema import Schema, ValueKind


class BatchCheck:
    """Checks batches of one schema; ``rows`` are those of `ScanArrays.tests`, each with the row of its column."""

    def __init__(self, rows: list[tuple[list[int], list[int]]], *, timed: bool, floating: bool) -> None:
        none = np.zeros(0, np.int64)
        wide = np.zeros((0, 1), np.int64)
        self._control = np.zeros(layout.CONTROLS, np.int64)
        self._arrays = ScanArrays(
            control=self._control,
            columns=np.array([column for _, column in rows], np.int64),
            texts=np.zeros((0, layout.TEXT_WORDS), np.int64),
            nodes=wide,
            next=none,
            outcomes=wide,
            together=none,
            tests=np.array([test for test, _ in rows], np.int64),
            outputs=wide,
            code=np.zeros((0, 2), np.int32),
            constants=none,
            stack=none,
            fixes=wide,
            chosen=none,
            at=none,
            noted=np.zeros((0, layout.NOTE_WORDS), np.int32),
            groups=wide,
            members=wide,
            slots=none,
            places=none,
            links=wide,
            admits=np.zeros(0, np.int64),
            before=np.zeros(0, np.int32),
            numbers=np.zeros(0, np.int64),
            allowed=np.zeros(0, np.int64),
            rows=np.zeros(0, np.int64),
            wide=np.zeros((0, 0), np.int64),
            follows=wide,
            ways=np.zeros(0, np.uint8),
            led=none,
            effects=wide,
            moves=wide,
            runs=wide,
            ends=np.zeros(0, np.uint8),
            hits=np.zeros(0, np.uint8),
            steps=none,
            reach=wide,
            leads=wide,
            bit_leads=none,
            masks=np.zeros(0, np.uint8),
            useful=np.zeros(0, np.uint8),
            keyed=wide,
            flows=wide,
            slot_of=np.zeros(0, np.int32),
            entered=none,
            decided=wide,
        )
        self._shared = SharedArrays()
        self._shared.hold(self._arrays)
        self._row = Row(all_usable, self._shared.address)
        self._timed, self._floating = timed, floating
        #: The last batch whose rows were all usable, where it is, and the time of its last row.
        self._passed: tuple[pa.RecordBatch | None, ExportedBatch | None, int | float | None] = (None, None, None)

    def passes(self, batch: pa.RecordBatch, latest: int | float | None) -> bool:
        """Whether all rows of a batch are usable, ``latest`` being the time before them (None: there is none)."""
        if self._floating:
            before = np.float64(-np.inf if latest is None else latest).view(np.int64)
            self._control[layout.LATEST] = before
        else:
            self._control[layout.LATEST] = NULL if latest is None else latest
        exported, words = ExportedBatch(batch), self._row.words
        words[1], words[2] = exported.address, batch.num_rows
        if not self._row.call():
            return False
        last = self._control[layout.LATEST]
        time = None if not self._timed else float(last.view(np.float64)) if self._floating else int(last)
        self._passed = (batch, exported, time)
        return True

    def known(self, batch: pa.RecordBatch) -> tuple[ExportedBatch | None, int | float | None]:
        """Where a batch is, and the time of its last row, if it is the one that passed last."""
        passed, exported, time = self._passed
        return (exported, time) if batch is passed else (None, None)


def batch_check(schema: Schema, limits: Mapping[str, int]) -> BatchCheck | None:
    """The check for a schema; ``limits`` are the greatest magnitudes of its columns (see `ranges.limits`).

    None if some column cannot be read.
    """
    rows = [_row(schema, schema.type, layout.IS_KNOWN)]
    floating = schema.time is not None and schema.kind(schema.time) is ValueKind.FLOAT
    # The order shows that 64-bit integers are within range.
    plain = schema.time is not None and schema.columns.field(schema.time).type == pa.int64()
    apart = [name for name in limits if not plain or name != schema.time]
    rows += [_row(schema, name, layout.IS_WITHIN, limits[name]) for name in apart]
    if schema.time is not None:
        most = limits.get(schema.time, 0) if plain else 0
        rows.append(_row(schema, schema.time, layout.IS_LATER_FLOAT if floating else layout.IS_LATER, most))
    rows += [_row(schema, f.name, layout.IS_PLAIN) for f in schema.columns if pa.types.is_dictionary(f.type)]
    found = [row for row in rows if row is not None]
    if len(found) < len(rows):
        return None
    for number, (test, _) in enumerate(found):
        test[layout.K_WHAT] = number
    return BatchCheck(found, timed=schema.time is not None, floating=floating)


def _row(schema: Schema, name: str, kind: int, most: int = 0) -> tuple[list[int], list[int]] | None:
    """A check, and the row of `ScanArrays.columns` that it reads; values are as they lie, but for days."""
    data_type = schema.columns.field(name).type
    found = layout_of(data_type, getattr(data_type, "unit", "ms"))
    if kind == layout.IS_PLAIN:
        found = layout_of(data_type.index_type, "ms")
    elif kind == layout.IS_KNOWN:
        index = layout_of_text(data_type)
        found = found if index is None else (index, 1)
    if found is None:
        return None
    column = [0] * layout.COLUMN_WORDS
    column[layout.C_CHILD] = schema.columns.names.index(name)
    column[layout.C_LAYOUT], column[layout.C_FACTOR] = found
    if pa.types.is_duration(data_type):
        column[layout.C_FACTOR] = 1
    column[layout.C_FLOAT] = schema.kind(name) is ValueKind.FLOAT
    return [kind, 0, 0, most], column
