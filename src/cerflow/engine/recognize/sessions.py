"""Numbers the sessions of keys that start again after a pause, where a deadline may outlast a session (``forget=``).

Elsewhere a key has one partition, which the kernel empties when the key starts again. Here every session is a partition
of its own, whose key ends with the number of the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base.array_types import IntRows, Ints
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import event_times, idle_bounds
from cerflow.engine.events.reader import EventReader
from cerflow.engine.layout import NO_BOUND
from cerflow.engine.state.validation import require
from cerflow.language.formula import DurationWindow

#: The column with the number of each event's session, null for events without a key.
SESSION = "\0session"

_ARRAY = "sessions"


def with_sessions(schema: Schema, deadlines: Sequence[DurationWindow]) -> Schema:
    """The schema with the column of sessions, each of which is remembered until its deadlines have passed."""
    assert schema.forget is not None
    longest = max([schema.forget, *(window.microseconds for window in deadlines)])
    return replace(schema, columns=schema.columns.append(pa.field(SESSION, pa.int64())), forget=longest)


class Sessions:
    """Numbers the sessions of ``keys`` by their first events; ``schema`` says how long a pause ends one.

    ``_open`` has for each key, as the reader codes it, the time and the session of its last event.
    """

    #: See `cerflow.engine.recognize.transaction`.
    changes = ("_open", "_bound")

    def __init__(self, reader: EventReader, keys: Sequence[tuple[str, ...]], schema: Schema) -> None:
        self._reader = reader
        self._keys = keys
        self._schema = schema
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget all events."""
        self._open: dict[tuple[int, ...], tuple[int, int]] = {}
        #: Sessions whose last event is at or before this have ended; with more keys than these it is time to forget.
        self._bound = NO_BOUND
        self._many = 1024

    def added(self, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """The rows with the column of sessions; the first one is event number ``first``."""
        here = self._reader.rows(rows, first)
        words, known = self._reader.key_words(here, self._keys)
        some = np.arange(here.count) if known is None else np.flatnonzero(known)
        numbers = np.zeros(here.count, np.int64)
        if len(some):
            times, bounds = event_times(here, self._schema), idle_bounds(here, self._schema)
            self._forget()
            self._bound = int(bounds[-1])
            some = some[np.lexsort(words[some].T)]
            numbers[some] = self._numbered(words[some], times[some], bounds[some], first + some)
        return rows.append_column(SESSION, pa.array(numbers, mask=None if known is None else ~known))

    def _numbered(self, words: IntRows, times: Ints, bounds: Ints, positions: Ints) -> Ints:
        """The sessions of events that stand together by key, in the order of the stream."""
        begins = np.append(True, (words[1:] != words[:-1]).any(axis=1))
        fresh = np.append(True, times[:-1] <= bounds[1:])
        numbers = positions.copy()
        for k in np.flatnonzero(begins).tolist():
            time, number = self._open.get(tuple(words[k].tolist()), (NO_BOUND, 0))
            if time > bounds[k]:
                numbers[k] = number
        whole: Ints = numbers[np.maximum.accumulate(np.where(begins | fresh, np.arange(len(numbers)), 0))]
        ends = np.append(np.flatnonzero(begins)[1:], len(numbers)) - 1
        last = {tuple(words[k].tolist()): (int(times[k]), int(whole[k])) for k in ends.tolist()}
        self._open = {**self._open, **last}
        return whole

    def _forget(self) -> None:
        if len(self._open) > self._many:
            self._open = {key: last for key, last in self._open.items() if last[0] > self._bound}
            self._many = 1024 + 2 * len(self._open)

    def renumber(self, texts: Sequence[str]) -> None:
        """Code the keys again whose texts had these numbers."""
        tables = self._reader.tables
        coded = [kind.coded for kind in tables.key_kinds[: len(self._keys)]]
        self._open = {
            tuple(tables.strings.code(texts[w]) if c else w for w, c in zip(key, coded)) if any(coded) else key: last
            for key, last in self._open.items()
        }

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, IntRows]:
        """The array that a snapshot holds: a row for each key, with the time and the session of its last event."""
        rows = [[*key, *last] for key, last in self._open.items()]
        return {_ARRAY: np.array(rows, np.int64).reshape(len(rows), max(1, len(self._keys)) + 2)}

    def take_over(self, arrays: Mapping[str, Any], texts: int, count: int) -> None:
        """Continue from a snapshot with these arrays, this many ``texts`` and this many events.

        Raises `SnapshotError` if such sessions are impossible.
        """
        rows: Any = arrays.get(_ARRAY)
        width = max(1, len(self._keys))
        require(isinstance(rows, np.ndarray) and rows.dtype == np.int64, "it lacks the sessions of keys")
        require(rows.ndim == 2 and rows.shape[1] == width + 2, "sessions have other keys")
        for word, kind in enumerate(self._reader.tables.key_kinds[: len(self._keys)]):
            coded = rows[:, word]
            require(not kind.coded or bool(((coded >= 0) & (coded < texts)).all()), "a key is not text")
        numbers = rows[:, width + 1]
        require(bool(((numbers >= 0) & (numbers < count)).all()), "a session began with no event")
        self._open = {tuple(row[:width]): (row[width], row[width + 1]) for row in rows.tolist()}
        self._bound = NO_BOUND
