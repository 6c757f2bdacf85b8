"""The events that matches may still refer to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["EventStore", "Kept"]

Ints = NDArray[np.int64]


class Kept:
    """Some events by their position in the stream: ``positions`` ascends, ``rows`` has a row for each."""

    def __init__(self, positions: Ints, rows: pa.Table) -> None:
        self.positions = positions
        self.rows = rows

    def at(self, positions: Ints) -> pa.Table:
        """The rows of these positions (all of them must be kept)."""
        return self.rows.take(pa.array(np.searchsorted(self.positions, positions)))


class EventStore:
    """Keeps batches of events, and forgets the ones no match needs once they are many.

    What was handed out stays valid: nothing is changed in place.
    """

    #: Events kept before it is worth to look for those that can go.
    SLACK = 65_536

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._positions: list[Ints] = []
        self._tables: list[pa.RecordBatch] = []
        self._count = 0
        self._limit = self.SLACK

    @property
    def crowded(self) -> bool:
        """Whether it is time to `forget`."""
        return self._count > self._limit

    def add(self, positions: Ints, rows: pa.RecordBatch) -> None:
        """Keep events; their positions are beyond all kept before."""
        if len(positions):
            self._positions.append(positions)
            self._tables.append(rows)
            self._count += len(positions)

    def forget(self, needed: Ints) -> None:
        """Keep only the events at ``needed`` (ascending)."""
        kept = self.kept()
        found = np.searchsorted(kept.positions, needed)
        rows = kept.rows.take(pa.array(found)).combine_chunks()
        self._positions = [needed]
        self._tables = rows.to_batches() if rows.num_rows else [_empty(self.schema)]
        self._count = len(needed)
        self._limit = 2 * self._count + self.SLACK

    def kept(self) -> Kept:
        """What is kept now."""
        if len(self._positions) != 1 or len(self._tables) != 1:
            joined = pa.Table.from_batches(self._tables, self.schema).combine_chunks()
            self._tables = joined.to_batches() or [_empty(self.schema)]
            self._positions = [np.concatenate(self._positions or [np.zeros(0, np.int64)])]
        return Kept(self._positions[0], pa.Table.from_batches(self._tables, self.schema))


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
