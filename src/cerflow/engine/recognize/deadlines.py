"""The deadlines of NOT FOLLOWED BY: what a machine reads beside events, so that no key waits for an event of its own.

An event that may complete the left side opens a deadline. Once an event of whatever partition shows that it has
passed, the partition of the opening event reads a tick; see `cerflow.automata.model.clock`. The automaton knows whether
anything still waits for it there, so opening events are all that is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.engine.evaluate.measures import bounds, deadlines, event_times, measures
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.events.reader import EventReader
from cerflow.engine.events.store import EventStore, one_batch
from cerflow.engine.layout import NO_BOUND, NOT_BEGUN, NULL, EventArrays
from cerflow.engine.matches.moments import Moments
from cerflow.engine.state.validation import require
from cerflow.language.formula import DurationWindow
from cerflow.values.array_types import IntRows, Ints

__all__ = ["Deadlines", "ascending"]

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Opened:
    """Opening events in the order of the stream: their positions, and what the duration measures of them."""

    positions: Ints
    measures: Ints

    def joined(self, more: _Opened) -> _Opened:
        """These and later ones."""
        return _Opened(np.append(self.positions, more.positions), np.append(self.measures, more.measures))

    def divided(self, count: int) -> tuple[_Opened, _Opened]:
        """The first ``count``, and the others."""
        first = _Opened(self.positions[:count], self.measures[:count])
        return first, _Opened(self.positions[count:], self.measures[count:])


@dataclass(frozen=True)
class _Passed:
    """Deadlines that have passed, at most one for each row and partition, in the order of the rows.

    ``rows`` are those that show it, ``members`` the positions of events of the partitions.
    """

    rows: Ints
    keys: IntRows
    members: Ints

    def __getitem__(self, some: Ints) -> _Passed:
        return _Passed(self.rows[some], self.keys[some], self.members[some])


class Deadlines:
    """The open deadlines of one machine, whose events are in ``store``."""

    def __init__(self, reader: EventReader, store: EventStore) -> None:
        self._reader = reader
        self._tables = reader.tables
        self._store = store
        self._open = [_Opened(_NOTHING, _NOTHING) for _ in self._tables.deadlines]

    @property
    def positions(self) -> Ints:
        """The positions of the opening events, which must be kept; ascending."""
        return ascending(*(each.positions for each in self._open))

    # -- events ------------------------------------------------------------------------------------------------------

    def between(
        self, whole: BatchRows, events: EventArrays, at_rows: Ints, measured: Callable[[Ints], BatchRows]
    ) -> tuple[EventArrays, Ints, Moments]:
        """The relevant events of a batch, with ticks and pauses between them.

        ``whole`` are all events of the input, of which these are the rows ``at_rows``; ``measured`` gives the rows of
        some of them, by number. Returns also where each comes from (numbers of events; greater ones for what was
        added), and the moments that pauses are.
        """
        passed = self._passed(whole, events, at_rows, measured)
        at = np.searchsorted(at_rows, passed.rows)
        read = np.minimum(at, max(len(at_rows) - 1, 0))
        own = np.zeros(len(at), bool)
        if len(at_rows):
            own = (at_rows[read] == passed.rows) & (events.keys[read] == passed.keys).all(axis=1)
        # An event of the partition follows its tick, and stands for the moment.
        ticked = np.arange(len(at_rows)) if self._tables.reached else read[own]
        others = passed[np.flatnonzero(~own)]
        times = self._times(whole, others.rows)
        moments = Moments(pa.array(whole.positions_at(others.rows)[0]), times, others.members)
        columns = self._columns(whole, others.rows)
        woven, order = self._woven(events, ticked, at[~own], others.keys, columns, moments)
        return woven, order, moments

    def _passed(
        self, whole: BatchRows, events: EventArrays, at_rows: Ints, measured: Callable[[Ints], BatchRows]
    ) -> _Passed:
        opened = self._tables.opened
        found: list[_Passed] = []
        for k, window in enumerate(self._tables.deadlines):
            opening = np.flatnonzero(np.array([k in some for some in opened], bool)[events.signature])
            begins = measures(window, measured(opening), self._tables.schema)
            former = self._open[k]
            both = former.joined(_Opened(events.position[opening], begins))
            # Times do not decrease, so those that have passed come first.
            shows = np.searchsorted(bounds(window, whole, self._tables.schema), both.measures)
            count = int(np.searchsorted(shows, whole.count))
            over, self._open[k] = both.divided(count)
            new = max(count - len(former.positions), 0)
            keys = np.concatenate([self._keys(over.positions[: count - new]), events.keys[opening[:new]]])
            found.append(_Passed(shows[:count], keys, over.positions))
        return _once(found, events.keys.shape[1])

    def _keys(self, positions: Ints) -> IntRows:
        """The partition keys of some stored events."""
        stored = one_batch(self._store.kept().at(positions))
        return self._reader.key_words(BatchRows(stored, self._tables.schema, positions, self._reader.unit))[0]

    def _times(self, rows: BatchRows, some: Ints) -> pa.Array:
        time = self._tables.schema.time
        return pa.nulls(len(some)) if time is None else rows.batch.column(time).take(pa.array(some))

    # -- the clock -----------------------------------------------------------------------------------------------------

    def until(self, clock: pa.Array) -> tuple[EventArrays, Moments]:
        """The ticks and pauses up to a time before which no other event comes, and the moments that pauses are.

        ``clock`` is an array with that time.
        """
        schema = self._tables.schema
        now = self._at(clock)
        found: list[_Passed] = []
        times = [clock.slice(1)]
        for k, window in enumerate(self._tables.deadlines):
            count = int(np.searchsorted(self._open[k].measures, bounds(window, now, schema)[0], "right"))
            over, self._open[k] = self._open[k].divided(count)
            times.append(deadlines(window, over.measures, schema, self._reader.unit))
            found.append(_Passed(np.zeros(count, np.int64), self._keys(over.positions), over.positions))
        due = pa.concat_arrays(times)
        # Deadlines at one time are one moment; moments are numbered as rows are.
        _, first, number = np.unique(event_times(self._at(due), schema), return_index=True, return_inverse=True)
        due = due.take(pa.array(first))
        begins = np.cumsum([0, *(len(each.rows) for each in found)])
        numbered = [_Passed(number[b : b + len(f.rows)], f.keys, f.members) for b, f in zip(begins, found)]
        passed = _once(numbered, max(1, len(self._reader.keys)))
        moments = Moments(pa.nulls(len(passed.rows), pa.int64()), due.take(pa.array(passed.rows)), passed.members)
        columns = self._columns(self._at(due), passed.rows)
        nothing = np.zeros(len(passed.rows), np.int64)
        woven, _ = self._woven(_no_events(columns, passed.keys), _NOTHING, nothing, passed.keys, columns, moments)
        return woven, moments

    def _at(self, times: pa.Array) -> BatchRows:
        """Rows of which only the times are known."""
        schema = self._tables.schema
        assert schema.time is not None
        rows = pa.RecordBatch.from_arrays([times], names=[schema.time])
        return BatchRows(rows, schema, range(len(times)), self._reader.unit)

    # -- ticks and pauses ----------------------------------------------------------------------------------------------

    def _columns(self, rows: BatchRows, at: Ints) -> IntRows:
        """The event columns of ticks that some rows show, of which they read nothing but the time."""
        distinct, which = np.unique(at, return_inverse=True)
        here = rows.at(distinct)
        columns = np.full((len(at), max(1, len(self._tables.columns))), NULL)
        for k, column in enumerate(self._tables.columns):
            if isinstance(column.window, DurationWindow):
                make = bounds if column.bound else measures
                columns[:, k] = make(column.window, here, self._tables.schema)[which]
        return columns

    def _woven(
        self, events: EventArrays, ticked: Ints, places: Ints, keys: IntRows, columns: IntRows, moments: Moments
    ) -> tuple[EventArrays, Ints]:
        """Events, of which the ``ticked`` ones have a tick before them, and ticks with pauses of other partitions.

        ``places`` say which event each of the latter comes before. Returns also where each comes from: numbers of
        events, and greater ones for what was added.
        """
        n, own, other = len(events.signature), len(ticked), len(places)
        tick, pause = self._signatures()
        copied = events.columns[ticked]
        copied[:, self._tables.arrays.checked] = NULL
        added = own + 2 * other
        order = np.lexsort(
            (
                np.concatenate([np.full(n, 3), np.full(own, 2), np.zeros(other), np.ones(other)]),
                np.concatenate([np.full(n + own, other), np.arange(other), np.arange(other)]),
                np.concatenate([np.arange(n), ticked, places, places]),
            )
        )
        signature = np.repeat([tick, tick, pause], [own, other, other]).astype(np.int32)
        none = np.zeros(added, np.int64)
        whole = EventArrays(
            signature=np.append(events.signature, signature)[order],
            position=np.concatenate([events.position, np.full(own + other, -1), moments.positions])[order],
            measure=np.append(events.measure, np.full(added, NOT_BEGUN))[order],
            bound=np.append(events.bound, np.full(added, NO_BOUND))[order],
            keys=np.concatenate([events.keys, events.keys[ticked], keys, keys])[order],
            columns=np.concatenate([events.columns, copied, columns, columns])[order],
            moment=np.append(events.moment, none)[order],
            idle=np.append(events.idle, none)[order],
            ranks=events.ranks,
        )
        return whole, order

    def _signatures(self) -> list[int]:
        """The signatures of ticks and of pauses."""
        schema = self._tables.schema
        types = pa.array([TICK.type, PAUSE.type]).cast(schema.columns.field(schema.type).type)
        columns = [types if field.name == schema.type else pa.nulls(2, field.type) for field in schema.columns]
        things = pa.RecordBatch.from_arrays(columns, names=schema.columns.names)
        rows = BatchRows(things, schema, range(2), self._reader.unit)
        reader = self._reader.signatures
        found: list[int] = reader.read(rows, *reader.texts.classify(rows)).tolist()
        return found

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Ints]:
        """What a snapshot needs, beside the opening events."""
        return {_name(k): each.positions for k, each in enumerate(self._open)}

    def restorer(self, arrays: Mapping[str, Any], rows: pa.Table, kept: Ints) -> Callable[[], None]:
        """How to go on from a snapshot with these arrays and events, which are at positions ``kept``.

        Raises `SnapshotError` if the arrays name other events, or in another order.
        """
        restored: list[_Opened] = []
        for k, window in enumerate(self._tables.deadlines):
            positions = arrays.get(_name(k))
            require(isinstance(positions, np.ndarray) and positions.dtype == np.int64, f"it lacks deadline {k}")
            assert positions is not None
            require(positions.ndim == 1 and (positions[1:] > positions[:-1]).all(), "deadlines are out of order")
            require(np.isin(positions, kept).all(), "a deadline is that of an event that is not kept")
            opening = one_batch(rows.take(pa.array(np.searchsorted(kept, positions))))
            here = BatchRows(opening, self._tables.schema, positions, self._reader.unit)
            restored.append(_Opened(positions, measures(window, here, self._tables.schema)))

        def restore() -> None:
            self._open = restored

        return restore

    def checkpoint(self) -> Callable[[], None]:
        """How to go back to what is remembered now."""
        now = list(self._open)

        def undo() -> None:
            self._open = now

        return undo


def ascending(*positions: Ints) -> Ints:
    """All of these positions, each once; every array ascends."""
    # Merging what is sorted already costs much less than `np.unique`.
    whole = np.sort(np.concatenate([_NOTHING, *positions]), kind="stable")
    return whole[np.diff(whole, prepend=-1) > 0]


def _name(k: int) -> str:
    return f"deadline {k}"


def _once(passed: Sequence[_Passed], width: int) -> _Passed:
    """All in the order of the rows, one for each row and partition; keys have ``width`` words."""
    rows = np.concatenate([_NOTHING, *(each.rows for each in passed)])
    members = np.concatenate([_NOTHING, *(each.members for each in passed)])
    keys = np.concatenate([np.zeros((0, width), np.int64), *(each.keys for each in passed)])
    order = np.lexsort((members, *keys.T, rows))
    whole = _Passed(rows, keys, members)[order]
    differs = (np.diff(whole.rows) != 0) | (np.diff(whole.keys, axis=0) != 0).any(axis=1)
    latest = whole[np.flatnonzero(np.append(differs, [True] * bool(len(rows))))]
    return latest[np.lexsort((latest.members, latest.rows))]


def _no_events(columns: IntRows, keys: IntRows) -> EventArrays:
    none = np.zeros(0, np.int64)
    return EventArrays(
        np.zeros(0, np.int32), none, none, none, keys[:0], columns[:0], none, none, np.zeros(1, np.int64)
    )
