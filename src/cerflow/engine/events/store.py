"""The stored events, to which matches may still refer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers, rows_as_columns, rows_taken, without_views

#: The positions of a piece's rows, ascending; those of a batch kept whole are consecutive.
_Positions = Ints | range
_Pieces = tuple[list[_Positions], list[pa.RecordBatch]]


class Latest:
    """Events that came one by one, until they are joined to a piece; append-only."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.events: list[Mapping[str, Any]] = []

    def rows(self, positions: Ints, schema: pa.Schema) -> pa.RecordBatch:
        """The events at these positions."""
        at = np.searchsorted(self.positions, positions).tolist()
        return rows_as_columns([self.events[k] for k in at], schema)


class StoredEvents:
    """Some events by position in the stream, in pieces; each piece has ascending positions, one for each row.

    With an ``order`` there is one piece, in which the event at position k is row ``order[k]``.
    """

    def __init__(
        self,
        schema: pa.Schema,
        positions: Sequence[_Positions],
        pieces: Sequence[pa.RecordBatch],
        latest: Latest | None = None,
        order: Ints | None = None,
    ) -> None:
        self.schema = schema
        self._positions = positions
        self._pieces = pieces
        self._latest = latest
        self._order = order

    @cached_property
    def _starts(self) -> Ints:
        latest = [] if self._latest is None else self._latest.positions[:1]
        return np.array([*(p[0] for p in self._positions), *latest], np.int64)

    @property
    def positions(self) -> Ints:
        """The positions of all events."""
        return np.concatenate([np.zeros(0, np.int64), *self._positions])

    @property
    def rows(self) -> pa.Table:
        """All events."""
        return pa.Table.from_batches(self._pieces, self.schema) if self._order is None else self.at(self.positions)

    def at(self, positions: Ints) -> pa.Table:
        """The rows at these positions, which must all be kept; takes time for these rows only."""
        if not len(positions):
            return pa.Table.from_batches([], self.schema)
        whole = self.in_one_piece(positions)
        if whole is not None:
            return pa.Table.from_batches([rows_taken(*whole)], self.schema)
        piece = np.searchsorted(self._starts, positions, side="right") - 1
        order = np.argsort(piece, kind="stable")
        found, begins = np.unique(piece[order], return_index=True)
        bounds = zip(found.tolist(), begins.tolist(), [*begins.tolist()[1:], len(positions)])
        rows = [self._of_piece(k, positions[order[begin:end]]) for k, begin, end in bounds]
        table = pa.Table.from_batches(rows, self.schema)
        if len(rows) == 1:
            return table
        back = np.empty(len(positions), np.int64)
        back[order] = np.arange(len(positions))
        table = table if self._latest is None else table.unify_dictionaries()
        return table.combine_chunks().take(array_of_numbers(back))

    def _of_piece(self, number: int, positions: Ints) -> pa.RecordBatch:
        """The rows at these positions, which are all in the piece of this number, or among the latest events."""
        if self._latest is not None and number == len(self._pieces):
            return self._latest.rows(positions, self.schema)
        return rows_taken(self._pieces[number], _rows_at(self._positions[number], positions))

    def in_one_piece(self, positions: Ints) -> tuple[pa.RecordBatch, Ints] | None:
        """The piece that has all of these positions (at least one), and their rows in it, if there is one."""
        if self._latest is not None:
            return None
        first, last = np.searchsorted(self._starts, [positions.min(), positions.max()], side="right").tolist()
        if first != last:
            return None
        rows = _rows_at(self._positions[first - 1], positions)
        return self._pieces[first - 1], rows if self._order is None else self._order[rows]


def _rows_at(positions: _Positions, wanted: Ints) -> Ints:
    return wanted - positions.start if isinstance(positions, range) else np.searchsorted(positions, wanted)


class EventStore:
    """Keeps batches of events, and drops events that no match needs once there are many.

    Results remain valid: batches never change in place, and lists are only appended to, else replaced. As in merge
    sort, small pieces are joined to larger ones, so a stream of single events costs at most what one of large batches
    does. Single small batches stay whole, because taking rows out of one costs more than all its other work.
    """

    #: See `cerflow.engine.recognize.transaction`.
    changes = ("content",)

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._names = schema.names
        self._positions: list[_Positions] = []
        self._pieces: list[pa.RecordBatch] = []
        #: The needed positions of each of the last pieces, which are small batches.
        self._recent: list[Ints] = []
        self._recent_rows = 0
        self._latest = Latest()
        self._limit = limits.EVENT_SLACK
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def wants_cleaning(self) -> bool:
        """Whether to `forget`: since the last time more events came than were needed then."""
        return self._count > self._limit

    @property
    def bytes(self) -> int:
        """The approximate bytes of the kept events."""
        return sum(piece.nbytes for piece in self._pieces)

    def keep(self, first: int, rows: pa.RecordBatch, positions: Ints) -> None:
        """Keep the rows at these positions of a batch whose first row has position ``first``; they may change later."""
        if not len(positions):
            return
        # Rows may have more columns than the store, but in this order.
        kept = rows if rows.num_columns == len(self._names) else rows.select(self._names)
        count = rows.num_rows
        many = self._recent_rows + count > limits.WHOLE_BATCH_ROWS or len(self._recent) == limits.RECENT_BATCHES
        if many or self._latest.positions:
            self._join()
        if count < limits.WHOLE_BATCH_ROWS:
            self._recent.append(positions.copy())
            self._recent_rows += count
            self._count += len(positions)
        else:
            self._count += count
        self._positions.append(range(first, first + count))
        self._pieces.append(kept)

    def add_one(self, position: int, event: Mapping[str, Any]) -> None:
        """Keep an event, a mapping with at least the columns; its position is beyond all kept before."""
        if len(self._latest.positions) >= limits.SINGLE_EVENTS:
            self._join()
        self._latest.positions.append(position)
        self._latest.events.append(event)
        self._count += 1

    def drop_last(self) -> None:
        """Remove the single event that was added last."""
        self._latest.positions.pop()
        self._latest.events.pop()
        self._count -= 1

    def _join(self) -> None:
        """Make pieces of the small batches, and of the single events, which are later."""
        whole = len(self._pieces) - len(self._recent)
        kept = self._positions[:whole], self._pieces[:whole]
        places, batches = self._positions[whole:], self._pieces[whole:]
        if batches and _may_be_joined(batches):
            firsts, rows = np.array([place[0] for place in places]), batches[0]
            if len(batches) > 1:
                rows = pa.concat_batches(batches)
            before = np.cumsum([0, *map(len, places[:-1])])
            positions = np.concatenate(self._recent)
            chosen = positions - np.repeat(firsts - before, [*map(len, self._recent)])
            _append(kept, positions, rows if len(chosen) == rows.num_rows else rows.take(array_of_numbers(chosen)))
        else:
            for place, batch, some in zip(places, batches, self._recent):
                _append(kept, some, batch.take(array_of_numbers(some - place[0])))
        if self._latest.positions:
            positions = np.array(self._latest.positions, np.int64)
            _append(kept, positions, self._latest.rows(positions, self.schema))
        # Set last, as Arrow may raise an error.
        self._positions, self._pieces = kept
        self._recent, self._recent_rows, self._latest = [], 0, Latest()

    def add(self, positions: Ints, rows: pa.RecordBatch) -> None:
        """Keep events; their positions are beyond all kept before."""
        self._join()
        _append((self._positions, self._pieces), positions, rows)
        self._count += len(positions)

    def forget(self, needed: Ints) -> None:
        """Keep only the events at ``needed`` (ascending)."""
        self._join()
        kept: _Pieces = ([], [])
        ends = np.searchsorted(needed, [positions[0] for positions in self._positions[1:]]).tolist()
        for positions, piece, begin, end in zip(self._positions, self._pieces, [0, *ends], [*ends, len(needed)]):
            wanted = needed[begin:end]
            _append(kept, wanted, piece.take(array_of_numbers(_rows_at(positions, wanted))))
        self._positions, self._pieces = kept
        self._count = len(needed)
        self._limit = 2 * self._count + limits.EVENT_SLACK

    def clear(self) -> None:
        """Forget all events, and number the next ones from 0 on."""
        self.forget(np.zeros(0, np.int64))

    def take_over(self, events: pa.Table, positions: Ints) -> None:
        """Keep these events instead of all others."""
        self.forget(np.zeros(0, np.int64))
        at = 0
        for batch in events.combine_chunks().to_batches():
            self.add(positions[at : at + batch.num_rows], batch)
            at += batch.num_rows

    @property
    def content(self) -> tuple[Any, ...]:
        """What is kept, to go back to it: lists that only become longer, their lengths, and other counts."""
        if self._latest.positions:
            self._join()
        lists = self._positions, self._pieces, self._recent
        return lists, len(self._pieces), len(self._recent), (self._recent_rows, self._count, self._limit)

    @content.setter
    def content(self, content: tuple[Any, ...]) -> None:
        (positions, pieces, recent), count, small, (self._recent_rows, self._count, self._limit) = content
        self._positions, self._pieces, self._recent = positions[:count], pieces[:count], recent[:small]
        self._latest = Latest()

    def kept(self) -> StoredEvents:
        """The current content."""
        latest = self._latest if self._latest.positions else None
        return StoredEvents(self.schema, self._positions, self._pieces, latest)


class _InTable(EventStore):
    """The events of a finite stream, whose table exists anyway; nothing is copied or dropped."""

    def keep(self, first: int, rows: pa.RecordBatch, chosen: Ints) -> None:
        """Do nothing: the events are kept already."""

    def forget(self, needed: Ints) -> None:
        """Do nothing: the table exists anyway."""


class WholeTable(_InTable):
    """All events of a finite stream: event k is row ``order[k]`` of a table, or row k without an order.

    Views of texts become texts when they are read.
    """

    def __init__(self, table: pa.Table, order: Ints | None = None) -> None:
        super().__init__(without_views(table.schema))
        table = table.unify_dictionaries()
        # Empty chunks give empty batches.
        pieces = [piece for piece in table.to_batches() if piece.num_rows]
        if len(pieces) > 1 and (order is not None or len(pieces) * limits.CHUNK_ROWS > table.num_rows):
            pieces = table.combine_chunks().to_batches()
        if len(pieces) > 1 and order is not None:
            # More texts than one array holds.
            pieces, order = table.take(array_of_numbers(order)).to_batches(), None
        self._order = order
        first = 0
        for piece in pieces:
            self._positions.append(range(first, first + piece.num_rows))
            self._pieces.append(piece)
            first += piece.num_rows

    def with_numbers(self, schema: pa.Schema, name: str) -> StoredEvents:
        """All events, with the columns of a schema, among them their numbers by this ``name`` if it is there."""
        pieces = []
        for piece, place in zip(self._pieces, self._positions):
            if name in schema.names:
                numbers = np.arange(place[0], place[0] + len(place))
                if self._order is not None:
                    numbers[self._order] = numbers.copy()
                piece = piece.append_column(name, array_of_numbers(numbers))
            pieces.append(piece.select(schema.names))
        schema = without_views(pieces[0].schema if pieces else schema)
        return StoredEvents(schema, self._positions, pieces, order=self._order)

    def kept(self) -> StoredEvents:
        """The current content."""
        return StoredEvents(self.schema, self._positions, self._pieces, order=self._order)


class ChosenEvents(_InTable):
    """Some events of a whole table, with numbers of their own.

    A column ``position`` has their numbers in the table.
    """

    def __init__(self, schema: pa.Schema, table: WholeTable, position: str) -> None:
        super().__init__(schema)
        self._table, self._position = table, position
        self._numbers: list[Ints] = []

    def choose(self, numbers: Ints) -> None:
        """Let the next events be those with these ``numbers`` in the table."""
        self._numbers.append(numbers)

    def clear(self) -> None:
        """Forget which events there were."""
        self._numbers = []

    @property
    def content(self) -> tuple[Any, ...]:
        """How many batches there were, to go back to them."""
        return (len(self._numbers),)

    @content.setter
    def content(self, content: tuple[Any, ...]) -> None:
        self._numbers = self._numbers[: content[0]]

    @cached_property
    def numbered(self) -> StoredEvents:
        """The events of the table, with its columns that are kept and their numbers."""
        return self._table.with_numbers(self.schema, self._position)

    def kept(self) -> StoredEvents:
        """The current content."""
        return _StoredChoice(self, self._numbers)


class _StoredChoice(StoredEvents):
    """The events with some ``numbers`` in a whole table, batch by batch."""

    def __init__(self, store: ChosenEvents, numbers: Sequence[Ints]) -> None:
        super().__init__(without_views(store.schema), [], [])
        self._store, self._numbers = store, [*numbers]
        self._ends = np.cumsum([*map(len, numbers)], dtype=np.int64)

    @property
    def positions(self) -> Ints:
        return np.arange(self._ends[-1] if len(self._ends) else 0)

    @property
    def rows(self) -> pa.Table:
        return self.at(self.positions)

    def at(self, positions: Ints) -> pa.Table:
        return self._store.numbered.at(self._in_table(positions))

    def in_one_piece(self, positions: Ints) -> tuple[pa.RecordBatch, Ints] | None:
        return self._store.numbered.in_one_piece(self._in_table(positions))

    def _in_table(self, positions: Ints) -> Ints:
        """The numbers in the table of the events at these positions."""
        batches = np.searchsorted(self._ends, positions, side="right")
        found = np.empty(len(positions), np.int64)
        for k in np.unique(batches).tolist():
            own = batches == k
            found[own] = self._numbers[k][positions[own] - (self._ends[k - 1] if k else 0)]
        return found


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as one record batch."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)


def _append(kept: _Pieces, positions: Ints, rows: pa.RecordBatch) -> None:
    """Add a piece, joined to earlier ones that are not much larger."""
    if not len(positions):
        return
    before, pieces = kept
    left = len(pieces)
    while left and len(before[left - 1]) < 2 * len(positions):
        earlier, piece = before[left - 1], pieces[left - 1]
        if isinstance(earlier, range) or not _may_be_joined([piece, rows]):
            break
        positions, rows = np.concatenate([earlier, positions]), pa.concat_batches([piece, rows])
        left -= 1
    before[left:], pieces[left:] = [positions], [rows]


def _may_be_joined(pieces: list[pa.RecordBatch]) -> bool:
    # This counts shared buffers once for each slice, but takes a tenth of the time.
    most: int = sum(piece.get_total_buffer_size() for piece in pieces)
    if most > limits.JOINED_BYTES:
        most = sum(piece.nbytes for piece in pieces)
    return most <= limits.JOINED_BYTES
