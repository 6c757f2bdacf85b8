"""Tasks that read only a part of the stream: slices, and partitions that are in the order of time.

A task checks all that its result relies on, and fails if the events are not those that were counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cerflow.engine.events.time_order import sort_by_time
from cerflow.errors import InputError
from cerflow.slices.pieces import Pieces, held
from cerflow.slices.runner import SliceRunner
from cerflow.slices.slice import GREATEST
from cerflow.spark.frames.axis import ROW_BITS, Axis
from cerflow.spark.frames.stamps import Stamps
from cerflow.spark.frames.tasks import Recognition, as_larger_tables, named
from cerflow.values.array_types import Ints
from cerflow.values.arrow_columns import numbers_of, one_array

CHANGED = (
    "the events are not those that were counted when the query was prepared; "
    "store or cache the DataFrame before it is matched"
)
#: The names of columns that are not in the input.
_SEQUENCE, _LAST = "\0sequence", "\0last"


@dataclass(frozen=True)
class OwnSlices:
    """A query for tasks that get slices: rows in order, and in the last column `SLICE` of `slice_frames`.

    ``first`` has the position of the first event of each slice, if positions are needed; ``counts`` has the number of
    each slice's own events, and ``found`` the key of an event before it, if the result relies on these.
    Slice ``ends`` is the last one of the stream.
    """

    recognition: Recognition
    first: tuple[int, ...] | None
    counts: tuple[int, ...] | None
    found: tuple[int | None, ...] | None = None
    ends: int | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recognise in the slices of one task, one after the other."""
        make: Callable[[int | None], SliceRunner] | None = None
        runner: SliceRunner | None = None
        current, own = -1, 0
        latest: pa.Table | None = None
        for rows in as_larger_tables(batches, [*_given(self.recognition, self.first), _LAST]):
            make = make or self.recognition.runners()
            codes = numbers_of(one_array(rows.column(_LAST)))
            rows = rows.drop_columns([_LAST])
            for begin, end in _runs(codes):
                number, is_own = divmod(int(codes[begin]), 2)
                if runner is None or number != current:
                    yield from self._finished(runner, current, own)
                    current, own, latest = number, 0, None
                    runner = make(None if self.first is None else self.first[number])
                some = rows.slice(begin, end - begin)
                if is_own:
                    if not own:
                        self._check_before(number, latest)
                    own += some.num_rows
                    yield from runner.report(some)
                else:
                    latest = some
                    runner.prepare(some)
        yield from self._finished(runner, current, own)

    def _check_before(self, number: int, latest: pa.Table | None) -> None:
        """Check that the event on which a slice relies is among those before its own; ``latest`` are the last ones."""
        key = None if self.found is None else self.found[number]
        if key is not None:
            time = self.recognition.time
            assert time is not None
            if latest is None or Axis(self.recognition.described).keys(latest.column(time))[-1] < key:
                raise InputError(CHANGED)

    def _finished(self, runner: SliceRunner | None, number: int, own: int) -> Iterator[pa.RecordBatch]:
        """The matches after all events of a slice, which are counted; without a runner there was no slice."""
        if runner is not None:
            if self.counts is not None and own != self.counts[number]:
                raise InputError(CHANGED)
            if number == self.ends:
                yield from runner.finish(self.recognition.until)


@dataclass(frozen=True)
class Stretch:
    """Rows of a partition that stand together, as they were counted: their pieces as they arrive.

    ``number`` orders the stretches of partition ``part``; ``offset`` is the number of events in stretches before.
    """

    part: int
    number: int
    pieces: Pieces
    offset: int


@dataclass(frozen=True)
class PartitionsInOrder:
    """A query for tasks that get partitions as they are; the last column has the number of the partition.

    `OwnSlices` reports the matches detected between the pairs of ``edges`` (keys, each pair without the second one).
    ``stretches`` come in the order of time. With ``in_order`` their rows come in order, otherwise the task orders them
    and holds as few as possible; with ``sequence`` the last column but one orders rows of one time. ``numbered`` says
    that positions are needed, ``ends`` that the last stretch ends the stream, and no slice does.
    Unless ``counted`` there is no column with the number of the partition: the time of a row tells its piece.
    With ``stamps`` two columns come as one.
    """

    recognition: Recognition
    stretches: tuple[Stretch, ...]
    edges: tuple[int, ...]
    sequence: bool
    in_order: bool
    numbered: bool
    ends: bool = False
    counted: bool = True
    stamps: Stamps | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recognise in the stretches of one partition (or several), one after the other."""
        batches = batches if self.stamps is None else self.stamps.restored(batches)
        make: Callable[[int | None], SliceRunner] | None = None
        reading: _Reading | None = None
        names = [
            *_given(self.recognition, 0 if self.numbered else None),
            *([_SEQUENCE] if self.sequence else []),
        ]
        if self.counted:
            found = _in_pieces(batches, [*names, _LAST], self._by_part())
        else:
            found = _in_ranges(batches, names, self.recognition, self.stretches)
        for stretch, piece, rows in found:
            make = make or self.recognition.runners()
            if reading is None or reading.stretch is not stretch:
                if reading is not None:
                    yield from reading.finish()
                reading = _Reading(self, stretch, make(stretch.offset if self.numbered else None))
            yield from reading.push(piece, rows)
        if reading is not None:
            yield from reading.finish()

    def _by_part(self) -> Mapping[int, list[Stretch]]:
        found: dict[int, list[Stretch]] = {}
        for stretch in sorted(self.stretches, key=lambda stretch: stretch.number):
            found.setdefault(stretch.part, []).append(stretch)
        return found


class _Reading:
    """One stretch as its pieces come."""

    def __init__(self, task: PartitionsInOrder, stretch: Stretch, runner: SliceRunner) -> None:
        recognition = task.recognition
        self.stretch = stretch
        self._pieces = stretch.pieces
        self._axis = Axis(recognition.described)
        self._time = recognition.time
        self._sequence = _SEQUENCE if task.sequence else None
        self._edges = np.array(task.edges, np.int64)
        self._in_order = task.in_order
        to_come = (
            None if task.in_order else held(stretch.pieces, ties=self._sequence is None, most=stretch.pieces.total)
        )
        following = np.zeros(0, np.int64) if to_come is None else to_come[1:]
        self._to_come: Ints = np.append(following, GREATEST)
        self._runner = runner
        self._until = recognition.until if task.ends and stretch is task.stretches[-1] else None
        self._count = 0
        self._waiting: list[pa.Table] = []

    def push(self, piece: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """The matches that are detected after the rows of one more piece have been read."""
        keys = self._keys(rows)
        self._check(piece, keys)
        self._count += rows.num_rows
        if not self._in_order:
            rows = pa.concat_tables([*self._waiting, rows]) if self._waiting else rows
            rows = sort_by_time(rows, self._time, self._sequence)
            keys = self._keys(rows)
            following = self._to_come[piece]
            ready = int(np.searchsorted(keys, following, side="right" if self._sequence is None else "left"))
            self._waiting = [rows.slice(ready)] if ready < rows.num_rows else []
            rows, keys = rows.slice(0, ready), keys[:ready]
        yield from self._recognize(rows, keys)

    def _keys(self, rows: pa.Table) -> Ints:
        if self._time is None:
            return (self.stretch.part << ROW_BITS) + self._count + np.arange(rows.num_rows)
        return self._axis.keys(rows.column(self._time))

    def _check(self, piece: int, keys: Ints) -> None:
        """Check that the rows are those that were counted; if they were sorted since, check only their whole range."""
        pieces = self._pieces
        if self._in_order and self._time is not None:
            low, high = pieces.low.min(), pieces.high.max()
        else:
            low, high = pieces.low[piece], pieces.high[piece]
        if keys.min() < low or keys.max() > high:
            raise InputError(CHANGED)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The matches in what is left, and after it."""
        for rows in self._waiting:
            yield from self._recognize(rows, self._keys(rows))
        yield from self._runner.finish(self._until)

    def _recognize(self, rows: pa.Table, keys: Ints) -> Iterator[pa.RecordBatch]:
        rows = rows if self._sequence is None else rows.drop_columns([self._sequence])
        at = 0
        bounds = [*np.searchsorted(keys, self._edges, side="left").tolist(), rows.num_rows]
        for k, bound in enumerate(bounds):
            if bound > at:
                some = rows.slice(at, bound - at)
                if k % 2:
                    self._runner.prepare(some)
                else:
                    yield from self._runner.report(some)
                at = bound


def _given(recognition: Recognition, numbered: object) -> list[str]:
    """The names of the columns that come from Spark: positions are added here."""
    names: Sequence[str] = recognition.columns.names
    return [name for name in names if numbered is None or name != recognition.position]


def _runs(codes: Ints) -> Iterator[tuple[int, int]]:
    """The ranges of equal values that stand together."""
    ends = [*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    yield from zip([0, *ends[:-1]], ends, strict=True)


def _in_pieces(
    batches: Iterator[pa.RecordBatch], names: list[str], stretches: Mapping[int, Sequence[Stretch]]
) -> Iterator[tuple[Stretch, int, pa.Table]]:
    """The rows of partitions in tables of a piece each, with the number of this piece of the stretch.

    Raises `InputError` if there are not as many as counted.
    """
    waiting: list[pa.RecordBatch] = []
    part = -1
    to_come: Iterator[tuple[Stretch, int, int]] = iter(())
    piece: tuple[Stretch, int, int] | None = None
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        parts = numbers_of(batch.column(batch.num_columns - 1))
        for begin, end in _runs(parts):
            if parts[begin] != part:
                if piece is not None:
                    raise InputError(CHANGED)
                part = int(parts[begin])
                own = stretches.get(part, ())
                to_come = ((s, number, count) for s in own for number, count in enumerate(s.pieces.count.tolist()))
                piece = next(to_come, None)
            at = begin
            while at < end:
                if piece is None:
                    raise InputError(CHANGED)
                stretch, number, count = piece
                some = batch.slice(at, min(end - at, count - rows))
                waiting.append(some)
                rows += some.num_rows
                at += some.num_rows
                if rows == count:
                    yield stretch, number, named(waiting, names).drop_columns([_LAST])
                    waiting, rows, piece = [], 0, next(to_come, None)
    if piece is not None:
        raise InputError(CHANGED)


def _in_ranges(
    batches: Iterator[pa.RecordBatch], names: list[str], recognition: Recognition, stretches: Sequence[Stretch]
) -> Iterator[tuple[Stretch, int, pa.Table]]:
    """The same for pieces that were not counted, and that follow each other in time; some may have no rows.

    Raises `InputError` if rows do not belong to the stretches of one partition, in the order of their pieces.
    """
    time = recognition.time
    assert time is not None
    axis, place = Axis(recognition.described), names.index(time)
    pieces = [(some, number) for some in stretches for number in range(len(some.pieces.count))]
    low, high = (np.concatenate([getattr(some.pieces, end) for some in stretches]) for end in ("low", "high"))
    waiting: list[pa.RecordBatch] = []
    begun: list[Stretch] = []
    at = -1
    for batch in batches:
        keys = axis.keys(batch.column(place))
        begin = 0
        while begin < len(keys):
            misfits = np.flatnonzero((keys[begin:] < low[at]) | (keys[begin:] > high[at])) if at >= 0 else [0]
            count = int(misfits[0]) if len(misfits) else len(keys) - begin
            if count:
                waiting.append(batch.slice(begin, count))
                begin += count
                continue
            if waiting:
                yield *pieces[at], named(waiting, names)
                waiting = []
            before, at = at, int(np.searchsorted(high, keys[begin]))
            if at == len(high) or keys[begin] < low[at]:
                raise InputError(CHANGED)
            stretch, _ = pieces[at]
            if begun and stretch is begun[-1]:
                if at < before:
                    raise InputError(CHANGED)
            elif any(stretch is some for some in begun) or (begun and stretch.part != begun[-1].part):
                raise InputError(CHANGED)
            else:
                begun.append(stretch)
    if waiting:
        yield *pieces[at], named(waiting, names)
