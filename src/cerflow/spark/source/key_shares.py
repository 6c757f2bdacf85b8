"""Which of several tasks recognises the events of a key: by a hash that is the same in every process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.base.array_types import Ints, Mask
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.evaluate.vectors import Vector


@dataclass(frozen=True)
class KeyShare:
    """The keys of task ``number`` of ``tasks``; ``keys`` are tuples of columns whose first value not null counts."""

    keys: tuple[tuple[str, ...], ...]
    number: int
    tasks: int

    @property
    def columns(self) -> list[str]:
        """The columns that decide."""
        return list(dict.fromkeys(name for key in self.keys for name in key))

    def own(self, columns: Sequence[pa.Array]) -> Mask:
        """Which events belong to the task, given the columns that decide."""
        batch = pa.RecordBatch.from_arrays(list(columns), names=self.columns)
        # No role matters here.
        schema = Schema(batch.schema, self.columns[0])
        rows = BatchRows(batch, schema, range(batch.num_rows), finest_unit(schema))
        first = rows.attribute(self.columns[0])
        if len(self.columns) == 1 and first.kind.coded and len(first.dictionary):
            # Each text is looked at once.
            own: Mask = self._among(_hashes(first).view(np.uint64))[first.data]
            return own
        found = np.zeros(batch.num_rows, np.uint64)
        for names in self.keys:
            words, missing = np.zeros(batch.num_rows, np.int64), np.ones(batch.num_rows, bool)
            for vector in map(rows.attribute, names):
                words = np.where(missing, _words(vector, schema.key_kind(names) is ValueKind.FLOAT), words)
                missing = missing & vector.missing()
            found = np.bitwise_xor(_mixed(found), words.view(np.uint64))
        return self._among(found)

    def _among(self, words: NDArray[np.uint64]) -> Mask:
        own: Mask = _mixed(words) % np.uint64(self.tasks) == self.number
        return own


def _words(vector: Vector, as_float: bool) -> Ints:
    """A 64-bit word for each value, the same for values that are equal to the engine."""
    if vector.kind.coded:
        hashes = _hashes(vector)
        return hashes[vector.data] if len(hashes) else np.zeros(vector.data.shape, np.int64)
    if as_float:
        # Zero has two bit patterns.
        floats: Ints = (vector.floats() + 0.0).view(np.int64)
        return floats
    return vector.data.astype(np.int64)


def _hashes(vector: Vector) -> Ints:
    """A word for each text of a dictionary."""
    return np.array([crc32(text.encode()) for text in vector.dictionary], np.int64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The words with all bits mixed (the last steps of SplitMix64), so that any number of tasks gets even shares."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    found: NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return found
