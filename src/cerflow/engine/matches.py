"""Matches: found, kept shared, and unfolded only when somebody reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cerflow.engine import layout
from cerflow.engine.counting import count_detections
from cerflow.engine.kernels.unfold import OUTPUT_FULL, UNFOLDED, unfold
from cerflow.engine.results import Report, Unfolded
from cerflow.engine.store import Kept

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Matches", "Part"]

Ints = NDArray[np.int64]

#: Matches per record batch, unless asked otherwise.
ROWS = 65_536
NO_LIMIT = 2**62


@dataclass(frozen=True)
class Part:
    """Detections with the nodes and events they refer to; one event's detections are never divided."""

    nodes: Ints
    detections: Ints
    kept: Kept
    label_sets: list[frozenset[str]]


class Matches:
    """The matches of a query, in the order of their detection.

    Nothing is unfolded before it is asked for, and then in batches of bounded size, so there may be more matches
    than fit in memory. Iterating gives one dict per match, with the columns of ``schema``.
    """

    def __init__(self, parts: Iterable[Part], report: Report, limit: int | None) -> None:
        self._parts = parts
        self._report = report
        self._limit = limit

    @property
    def parts(self) -> Iterable[Part]:
        """What was found, before unfolding (for other parts of cerflow)."""
        return self._parts

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result (spec §6)."""
        return self._report.schema

    def count(self) -> int:
        """The number of matches, computed on the shared graph without unfolding them."""
        return sum(sum(numbers) for part in self._parts for _, numbers in [count_detections(part, self._limit)])

    def to_batches(self, max_rows: int = ROWS) -> Iterator[pa.RecordBatch]:
        """Unfold the matches into record batches of at most ``max_rows`` rows."""
        if max_rows < 1:
            raise ValueError("max_rows must be at least 1")
        for part in self._parts:
            if self._report.counts:
                yield from self._counted(part, max_rows)
            else:
                for found in _unfold(part, NO_LIMIT if self._limit is None else self._limit, max_rows):
                    yield self._report.batch(found, part.label_sets, part.kept)

    def _counted(self, part: Part, max_rows: int) -> Iterator[pa.RecordBatch]:
        detected, numbers = count_detections(part, self._limit)
        for start in range(0, len(detected), max_rows):
            stop = start + max_rows
            yield self._report.counted(detected[start:stop], numbers[start:stop], part.kept)

    def to_arrow(self) -> pa.Table:
        """All matches as a table."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """All matches as a pandas data frame (pandas must be installed)."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """All matches as a list of dicts."""
        return list(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.to_batches(4096):
            yield from batch.to_pylist()

    def __repr__(self) -> str:
        return f"<Matches with columns {', '.join(self.schema.names)}>"


def _unfold(part: Part, limit: int, max_rows: int) -> Iterator[Unfolded]:
    """Unfold the detections of a part, at most ``max_rows`` matches at a time."""
    small = part.nodes.view(np.int32)
    cursor = np.zeros(4, np.int64)
    stack = np.zeros((256, 2), np.int64)
    path = np.zeros((64, 2), np.int64)
    offsets = np.zeros(max_rows + 1, np.int64)
    owner = np.zeros(max_rows, np.int64)
    positions = np.zeros(8 * max_rows + 64, np.int64)
    labels = np.zeros(len(positions), np.int32)
    while True:
        reason, matches = unfold(
            part.nodes,
            small,
            part.detections,
            len(part.detections),
            limit,
            cursor,
            stack,
            path,
            offsets,
            positions,
            labels,
            owner,
        )
        if matches:
            entries = int(offsets[matches])
            detected = part.detections[owner[:matches], layout.D_POSITION]
            yield Unfolded(
                detected, offsets[: matches + 1].copy(), positions[:entries].copy(), labels[:entries].astype(np.int64)
            )
        if reason == UNFOLDED:
            return
        if reason == OUTPUT_FULL:
            if matches == 0:
                # One match is longer than the whole buffer.
                positions = np.zeros(2 * len(positions), np.int64)
                labels = np.zeros(len(positions), np.int32)
        else:
            stack = np.concatenate([stack, np.zeros_like(stack)])
            path = np.concatenate([path, np.zeros_like(path)])
