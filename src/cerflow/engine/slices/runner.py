"""One slice of a stream: the events before it are read first, then its own matches are reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.arrow_columns import array_of_numbers
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.row_limit import Bound
from cerflow.engine.results.report import CountForm


class Pushing(Protocol):
    """A recogniser, of a query or program."""

    def push(self, events: Any) -> Matches:
        """The matches that events detect."""

    def advance(self, time: Any) -> Matches:
        """The matches that are detected once no event before a time is to come."""


class SliceRunner:
    """A recogniser of its own for events that come in order, as rows of tables.

    ``bound`` is on the matches of all slices of a task; ``counts`` and ``flat`` are the form of the result. With
    ``first`` the events are numbered from there on, in a last column ``position``; else the rows have all columns.
    """

    def __init__(
        self,
        recognizer: Pushing,
        bound: Bound,
        counts: CountForm,
        flat: bool,
        *,
        position: str | None = None,
        first: int | None = None,
    ) -> None:
        assert first is None or position is not None
        self._recognizer = recognizer
        self._bound = bound
        self._counts: CountForm = counts
        self._flat = flat
        self._position = position
        self._next = first

    def prepare(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Read events whose matches another slice reports, without reporting any."""
        self._recognizer.push(self._numbered(rows))

    def report(self, rows: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The matches detected at some events, a bounded number at a time.

        Raises `TooManyMatchesError` before matches beyond the bound are listed.
        """
        yield from self._listed(self._recognizer.push(self._numbered(rows)))

    def finish(self, until: pa.Array | None) -> Iterator[pa.RecordBatch]:
        """The matches detected after all events, as no event before ``until`` is to come; see `report`."""
        if until is not None:
            yield from self._listed(self._recognizer.advance(until[0]))

    def _listed(self, matches: Matches) -> Iterator[pa.RecordBatch]:
        counted = matches.announced(self._bound.add)
        yield from counted.to_batches(limits.RESULT_ROWS, flat=self._flat, counts=self._counts)

    def _numbered(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        if self._next is None:
            return rows
        numbers = array_of_numbers(np.arange(self._next, self._next + rows.num_rows))
        self._next += rows.num_rows
        return rows.append_column(self._position, numbers)
