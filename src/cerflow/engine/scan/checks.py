"""Checks a whole batch at once: whether every row is valid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.kernels.base.calling import Row
from cerflow.engine.kernels.base.shared_arrays import SharedArrays
from cerflow.engine.kernels.table import all_valid
from cerflow.engine.layout import NULL
from cerflow.engine.scan import layout
from cerflow.engine.scan.columns import ExportedBatch, column_row, layout_of, layout_of_text
from cerflow.engine.scan.first_arrays import no_arrays, no_words


class BatchCheck:
    """Checks batches of one schema; ``rows`` are those of `ScanArrays.tests`, each with the row of its column."""

    def __init__(self, rows: list[tuple[list[int], list[int]]], *, timed: bool, floating: bool) -> None:
        self._control = np.zeros(layout.CONTROLS, np.int64)
        self._shared = SharedArrays(no_words())
        self._shared.replace(
            no_arrays(),
            control=self._control,
            columns=np.array([column for _, column in rows], np.int64),
            tests=np.array([test for test, _ in rows], np.int64),
        )
        self._row = Row(all_valid, self._shared.address)
        self._timed, self._floating = timed, floating
        #: The last batch whose rows were all valid, where it is, and the time of its last row.
        self._passed: tuple[pa.RecordBatch | None, ExportedBatch | None, int | float | None] = (None, None, None)

    def passes(self, batch: pa.RecordBatch, latest: int | float | None) -> bool:
        """Whether all rows of a batch are valid, ``latest`` being the time before them (None: there is none)."""
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
    time = None if schema.time is None else schema.columns.field(schema.time).type
    # The order shows that 64-bit integers are within range.
    plain = time is not None and (time == pa.int64() or pa.types.is_timestamp(time))
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
    if found is None or found[0] == layout.DECIMAL:
        return None
    how, factor = found
    floating, child = schema.kind(name) is ValueKind.FLOAT, schema.columns.names.index(name)
    factor = 1 if pa.types.is_duration(data_type) else factor
    return [kind, 0, 0, most], column_row(how, factor, floating=floating, child=child)
