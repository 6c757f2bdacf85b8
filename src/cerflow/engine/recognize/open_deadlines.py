"""The events whose deadlines are open, in the order of the stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cerflow.base.array_types import IntRows, Ints


@dataclass(frozen=True)
class Opened:
    """Opening events in the order of the stream: their positions, and their measures for the duration."""

    positions: Ints
    measures: Ints


class OpenDeadlines:
    """The opening events of one duration whose deadlines are open, with room after them.

    Events are added at the end and removed at the front, so an earlier state is a slice of an array.
    """

    def __init__(self, opened: Opened | None = None) -> None:
        rows = np.zeros((2, 0), np.int64) if opened is None else np.stack([opened.positions, opened.measures])
        #: Two rows, of positions and measures; the first event, and the end.
        self.state: tuple[IntRows, int, int] = rows, 0, rows.shape[1]

    def __len__(self) -> int:
        return self.state[2] - self.state[1]

    @property
    def opened(self) -> Opened:
        """The events."""
        rows, begin, end = self.state
        return Opened(rows[0, begin:end], rows[1, begin:end])

    @property
    def first(self) -> int:
        """The measure of the first event; there must be one."""
        rows, begin, _ = self.state
        return int(rows[1, begin])

    def add(self, positions: Ints | int, measures: Ints | int, count: int) -> None:
        """Add later events."""
        rows, begin, end = self.state
        if end + count > rows.shape[1]:
            # Views of the old rows remain valid.
            old, rows = rows[:, begin:end], np.empty((2, 64 + 2 * (end - begin + count)), np.int64)
            rows[:, : end - begin] = old
            begin, end = 0, end - begin
        rows[0, end : end + count] = positions
        rows[1, end : end + count] = measures
        self.state = rows, begin, end + count

    def take(self, count: int) -> Opened:
        """Remove the first events."""
        rows, begin, end = self.state
        self.state = rows, begin + count, end
        return Opened(rows[0, begin : begin + count], rows[1, begin : begin + count])
