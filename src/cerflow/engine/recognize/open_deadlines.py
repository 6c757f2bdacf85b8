"""The events whose deadlines are open, in the order of the stream."""

from __future__ import annotations

import numpy as np

from cerflow.base.array_types import IntRows

#: The rows of `OpenDeadlines.opened`: positions, measures for the duration, and from here on the words of the keys.
POSITION, MEASURE, KEY = range(3)


class OpenDeadlines:
    """The opening events of one duration whose deadlines are open, a column for each, with room after them.

    Events are added at the end and removed at the front, so an earlier state is a slice of an array.
    """

    #: See `cerflow.engine.recognize.transaction`.
    changes = ("state",)

    def __init__(self, opened: IntRows) -> None:
        self.replace(opened)

    def replace(self, opened: IntRows) -> None:
        """Have these events instead of all others."""
        #: The array; the first event, and the end.
        self.state: tuple[IntRows, int, int] = opened, 0, opened.shape[1]

    def __len__(self) -> int:
        return self.state[2] - self.state[1]

    @property
    def opened(self) -> IntRows:
        """The events."""
        rows, begin, end = self.state
        return rows[:, begin:end]

    @property
    def first(self) -> int:
        """The measure of the first event; there must be one."""
        rows, begin, _ = self.state
        return int(rows[MEASURE, begin])

    def add(self, events: IntRows) -> None:
        """Add later events."""
        self._room(events.shape[1])[:] = events

    def add_one(self, *words: int) -> None:
        """Add a later event."""
        self._room(1)[:, 0] = words

    def _room(self, count: int) -> IntRows:
        rows, begin, end = self.state
        if end + count > rows.shape[1]:
            # Views of the old rows remain valid.
            old, rows = rows[:, begin:end], np.empty((len(rows), 64 + 2 * (end - begin + count)), np.int64)
            rows[:, : end - begin] = old
            begin, end = 0, end - begin
        self.state = rows, begin, end + count
        return rows[:, end : end + count]

    def take(self, count: int) -> IntRows:
        """Remove and return the first events."""
        rows, begin, end = self.state
        self.state = rows, begin + count, end
        return rows[:, begin : begin + count]
