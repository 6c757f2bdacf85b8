"""The deadlines of NOT FOLLOWED BY: a machine reads ticks too, so keys do not wait for events of their own.

An event that may complete the left side opens a deadline. Once an event of any partition shows that the deadline has
passed, the partition of the opening event reads a tick; see `cerflow.automata.model.clock`. The automaton knows
whether anything still waits for the tick, so only opening events are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.automata.model.clock import PAUSE, TICK
from cerflow.base.array_types import IntRows, Ints
from cerflow.base.schema import ValueKind
from cerflow.engine.declared_arrays import empty_arrays
from cerflow.engine.evaluate.measures import Duration, column_times, event_times
from cerflow.engine.evaluate.ranges import MOST
from cerflow.engine.evaluate.rows import BatchRows
from cerflow.engine.events.reader import EventReader
from cerflow.engine.events.store import one_batch
from cerflow.engine.kernels.base.shared_arrays import SharedArrays
from cerflow.engine.kernels.table import weave
from cerflow.engine.layout import NULL, EventArrays
from cerflow.engine.matches.graph import Moments
from cerflow.engine.state.validation import require
from cerflow.language.formula import DurationWindow

_NOTHING = np.zeros(0, np.int64)
#: The positions and times of rows.
_Shown = tuple[pa.Array, pa.Array]
#: Greater than every measure.
_NEVER = 2**63
#: The rows of `OpenDeadlines.opened`: positions, measures for the duration, and from here on the words of the keys.
POSITION, MEASURE, KEY = range(3)


class OpenDeadlines:
    """The opening events of one duration whose deadlines are open, a column for each, with room after them.

    Events are added at the end and removed at the front, so an earlier state is a slice of an array.
    """

    #: See `cerflow.engine.recognize.transaction`.
    changes = ("state",)

    def __init__(self, opened: IntRows) -> None:
        #: The array; the first event, and the end.
        self.state: tuple[IntRows, int, int] = opened, 0, opened.shape[1]

    def __len__(self) -> int:
        return self.state[2] - self.state[1]

    @property
    def opened(self) -> IntRows:
        """The events."""
        rows, begin, end = self.state
        return rows[:, begin:end]

    def added(self, count: int) -> IntRows:
        """Add later events, which are to be written to the result."""
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


class Deadlines:
    """The open deadlines of one machine.

    If ``prompt`` is set, the clock shows each deadline before a later event does: each has a moment of its own.
    """

    #: See `cerflow.engine.recognize.transaction`.
    changes = ("queues", "_due")

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self._tables = tables = reader.tables
        self._schema, self._unit = tables.schema, reader.unit
        self._width = max(1, len(reader.keys))
        self.prompt = False
        #: No events; and the arrays that `woven_in` writes.
        self.none = self._room = self._events(0)
        #: By these the kernel finds the events that it reads, and the arrays that it writes.
        self._shared = SharedArrays(), SharedArrays()
        #: The signatures of ticks and pauses, which are those of this list, as the tables may forget signatures.
        self._things: tuple[list[bool], list[int]] = ([], [])
        self._durations = [*map(self._duration, tables.deadlines)]
        #: The units of measures in a 1 of the time column.
        self.step = self._durations[0].step if self._durations else 1
        #: The event columns that measure time, each with its window where it has the bound of that.
        self.measured = [
            (k, self._duration(column.window) if column.bound else None)
            for k, column in enumerate(tables.columns)
            if isinstance(column.window, DurationWindow)
        ]
        self._columns = np.array([k for k, _ in self.measured], np.int64)
        self.begin_anew()

    def _duration(self, window: DurationWindow) -> Duration:
        return Duration(window, self._schema, self._unit)

    def _events(self, count: int) -> EventArrays:
        sizes = {"events": count, "key words": self._width, "columns": max(1, len(self._tables.columns))}
        return empty_arrays(EventArrays, sizes)

    def begin_anew(self) -> None:
        """Forget all events."""
        #: The opening events for each duration.
        self.queues = [OpenDeadlines(np.zeros((KEY + self._width, 0), np.int64)) for _ in self._tables.deadlines]
        #: The least measure at which a deadline has passed, None if it is not known.
        self._due: int | None = None

    @property
    def positions(self) -> Ints:
        """The positions of the opening events, which must be kept; ascending."""
        return ascending(*(queue.opened[POSITION] for queue in self.queues))

    @property
    def carried(self) -> int | None:
        """The measure of the first duration's last open deadline (`NULL`: none is); None if the clock is prompt.

        It is None, too, if no deadline is a duration.
        """
        if self.prompt or not self.queues:
            return None
        measures = self.queues[0].opened[MEASURE]
        return int(measures[-1]) if len(measures) else NULL

    # -- events ------------------------------------------------------------------------------------------------------

    def add(self, events: EventArrays, times: Ints, at_rows: Ints) -> None:
        """Remember events that open deadlines; they are ``at_rows``, whose ``times`` are given."""
        for k, queue in enumerate(self.queues):
            opening = np.flatnonzero(np.array([k in some for some in self._tables.opened], bool)[events.signature])
            if len(opening):
                added = events.position[opening], times[at_rows[opening]], events.keys[opening].T
                queue.added(len(opening))[:] = np.vstack(added)
        self._due = None

    def times(self, rows: BatchRows) -> Ints:
        """The times of rows in the units of deadlines; an empty array without a time column."""
        return _NOTHING if self._schema.time is None else event_times(rows, self._schema)

    def until(self, clock: pa.Array) -> tuple[EventArrays, int, Moments | None]:
        """The ticks and pauses up to a time before which no more events come, their number, and the pauses' moments.

        ``clock`` is an array with that time.
        """
        assert self._schema.time is not None
        rows = pa.RecordBatch.from_arrays([clock], names=[self._schema.time])
        times = self.times(BatchRows(rows, self._schema, range(len(clock)), self._unit))
        return self.woven_in(times, self.none, _NOTHING, None)[:3]

    def woven_in(
        self, times: Ints, events: EventArrays, at_rows: Ints, moments: Callable[[Ints], _Shown] | None
    ) -> tuple[EventArrays, int, Moments | None, Ints]:
        """Events with the ticks and pauses of the deadlines that rows at these times show to have passed.

        The events are those in the rows ``at_rows``; ``moments`` gives the positions and times of rows. If it is None,
        or the clock is prompt, that has shown the deadlines before. Returns what the machine reads, valid until the
        next call, and how much that is; the moments of the pauses (None: no deadline has passed); and the number of the
        event that each comes from (greater numbers for ticks and pauses).
        """
        passed, ticked = self._passed(times), self._tables.reached
        if not len(passed) and not ticked:
            return events, len(at_rows), None, np.arange(len(at_rows))
        most = len(at_rows) * (1 + ticked) + 2 * len(passed)
        if most > len(self._room.signature):
            self._room = self._events(2 * most)
        if self._room.ranks is not events.ranks:
            self._room = self._room._replace(ranks=events.ranks)
        apart = moments is None or self.prompt
        here, there = self._shared
        here.hold(events)
        there.hold(self._room)
        measured, checked = self._columns, self._tables.arrays.checked
        read, pauses = np.empty((most, 2), np.int64), np.empty((len(passed), 2), np.int64)
        how = *self.signatures(), apart, ticked
        count, paused = weave(here.address, there.address, at_rows, passed, measured, checked, *how, read, pauses)
        (sources, together), (rows, members) = read[:count].T, pauses[:paused].T
        if moments is None or apart:
            shown = pa.nulls(paused, pa.int64()), column_times(rows, self._schema, self._unit)
        else:
            shown = moments(rows)
        return self._room, count, Moments(*shown, members, together), sources

    def _passed(self, times: Ints) -> IntRows:
        """The deadlines that these times show to have passed, which are open no longer; see `weave` for the columns."""
        found = [np.zeros((KEY + 2 + self._width + len(self.measured), 0), np.int64)]
        for queue, duration in zip(self.queues, self._durations):
            if not queue:
                continue
            # Times do not decrease, so those that have passed come first.
            bounds = duration.bounds(times)
            count = int(queue.opened[MEASURE].searchsorted(bounds[-1], "right"))
            if count:
                over = queue.take(count)
                rows = bounds.searchsorted(over[MEASURE])
                after = duration.deadlines(over[MEASURE])
                measured = [after if size is None else size.bounds(after) for _, size in self.measured]
                found.append(np.array([rows, rows, after, over[POSITION], *over[KEY:], *measured]))
                self._due = None
        return np.ascontiguousarray(np.concatenate(found, axis=1).T)

    # -- single events -----------------------------------------------------------------------------------------------

    @cached_property
    def takes_one(self) -> bool:
        """Whether single events may come by `open`: times are integers, and all that is measured is time."""
        time, tables = self._schema.time, self._tables
        if time is None or self._schema.kind(time) not in (ValueKind.INTEGER, ValueKind.TIMESTAMP):
            return False
        sizes = [d.whole for d in (*self._durations, *(d for _, d in self.measured)) if d is not None]
        return max(sizes, default=0) <= MOST and not tables.reached and not len(tables.arrays.checked)

    def open(self, signature: int, position: int, now: int, words: tuple[int, ...]) -> None:
        """Remember a single event and its measure if it opens deadlines."""
        for k in self._tables.opened[signature]:
            self.queues[k].added(1)[:, 0] = position, now, *words
            self._due = min(self.due, now + self._durations[k].whole)

    @property
    def due(self) -> int:
        """The least measure of an event that shows a deadline to have passed."""
        if self._due is None:
            opened = (
                int(queue.opened[MEASURE, 0]) + duration.whole
                for queue, duration in zip(self.queues, self._durations)
                if queue
            )
            self._due = min(opened, default=_NEVER)
        return self._due

    # -- the clock -----------------------------------------------------------------------------------------------------

    @property
    def next(self) -> pa.Scalar | None:
        """The earliest time at which an open deadline passes; None without one."""
        first = [d.deadlines(queue.opened[MEASURE, :1]) for d, queue in zip(self._durations, self.queues) if queue]
        return column_times(np.min(first, axis=0), self._schema, self._unit)[0] if first else None

    def signatures(self) -> list[int]:
        """The signatures of ticks and of pauses."""
        known, found = self._things
        if known is self._tables.relevant:
            return found
        schema = self._schema
        types = pa.array([TICK.type, PAUSE.type]).cast(schema.columns.field(schema.type).type)
        columns = [types if field.name == schema.type else pa.nulls(2, field.type) for field in schema.columns]
        things = pa.RecordBatch.from_arrays(columns, names=schema.columns.names)
        rows = BatchRows(things, schema, range(2), self._unit)
        self._things = self._tables.relevant, self._reader.signatures(rows)
        return self._things[1]

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def renumber(self, texts: Sequence[str]) -> None:
        """Code the partitions of opening events again whose texts had these numbers."""
        opened = [queue.opened.copy() for queue in self.queues]
        for word, kind in enumerate(self._tables.key_kinds):
            for rows in opened if kind.coded else ():
                rows[KEY + word] = self._tables.strings.codes([texts[k] for k in rows[KEY + word].tolist()])
        self.queues = list(map(OpenDeadlines, opened))

    def arrays(self) -> dict[str, Ints]:
        """The arrays that a snapshot holds besides the opening events: their positions, for each deadline."""
        return {f"deadline {k}": queue.opened[POSITION] for k, queue in enumerate(self.queues)}

    def take_over(self, arrays: Mapping[str, Any], rows: pa.Table, kept: Ints) -> None:
        """Continue from a snapshot with these arrays, and events at the positions ``kept``, whose strings are known.

        Raises `SnapshotError` if the arrays name other events, or are out of order.
        """
        self.begin_anew()
        for k in range(len(self._durations)):
            positions: Any = arrays.get(f"deadline {k}")
            require(isinstance(positions, np.ndarray) and positions.dtype == np.int64, f"it lacks deadline {k}")
            require(positions.ndim == 1 and (positions[1:] > positions[:-1]).all(), "deadlines are out of order")
            require(np.isin(positions, kept).all(), "a deadline is that of an event that is not kept")
            opening = one_batch(rows.take(pa.array(np.searchsorted(kept, positions))))
            here = BatchRows(opening, self._schema, positions, self._unit)
            begins, words = self.times(here), self._reader.key_words(here)[0]
            self.queues[k] = OpenDeadlines(np.vstack([positions, begins, words.T]))


def ascending(*positions: Ints) -> Ints:
    """All of these positions in order, each once; every array must be ascending."""
    # A stable sort merges sorted stretches, which costs much less than `np.unique`.
    whole = np.sort(np.concatenate([_NOTHING, *positions]), kind="stable")
    return whole[np.diff(whole, prepend=-1) > 0]
