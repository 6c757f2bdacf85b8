"""One row group after another: its relevant events, in batches.

The columns that decide which events these are, and where they belong, are read first; the others follow in batches, and
not at all where no event is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cerflow.base import limits
from cerflow.base.array_types import Ints, Mask
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, one_array, truths_of
from cerflow.base.errors import BadRecordError, InputError
from cerflow.base.nested import field_type, field_values, parts_of, root_of
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.evaluate.vectors import Vector
from cerflow.engine.slices.cutting import GroupSlice, RowGroup, keys_of
from cerflow.spark.frames.tasks import Recognition
from cerflow.spark.source.files import DataFile, opened


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
    return np.array([crc32(text.encode()) for text in vector.dictionary], np.int64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The words with all bits mixed (the last steps of SplitMix64), so that any number of tasks gets even shares."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    found: NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return found


@dataclass(frozen=True)
class Work:
    """The facts that all tasks of a read share.

    ``columns`` are all columns that are read, in the types of what is handed on: text that repeats as dictionaries.
    ``recognition`` gets those that it needs. Events are ordered by ``leading``, ties by ``sequence`` if there is one,
    then as they stand in the input; without ``leading`` by the latter alone. No more than ``most_waiting`` events wait
    in a task to be put into order. ``skip`` leaves out events without a type or a time, else they are errors. All
    relevant events have one of ``types``; None if they may have others. If the files do not have the column of types,
    it is the text of the values of ``typed_by``. ``result`` is the schema of the matches as Spark takes them.
    """

    recognition: Recognition
    columns: pa.Schema
    leading: str | None
    sequence: str | None
    most_waiting: int
    skip: bool
    types: tuple[str, ...] | None
    typed_by: pa.Field | None
    result: pa.Schema

    def source(self, name: str) -> str:
        """The column of the files from which a column is made."""
        return self.typed_by.name if self.typed_by is not None and name == self.recognition.type else name


@dataclass(frozen=True)
class Task:
    """A slice, and the files of its row groups by their numbers; with ``share`` only the events of some keys."""

    slice: GroupSlice
    files: Mapping[int, DataFile]
    share: KeyShare | None = None


@dataclass(frozen=True)
class OrderedBatch:
    """Events in the order of their keys, from the row group at ``place``; ``last`` says that none follow from it."""

    place: tuple[int, int]
    keys: Ints
    rows: pa.RecordBatch
    last: bool

    def slice(self, start: int, stop: int) -> OrderedBatch:
        """Some of them, without a copy."""
        return OrderedBatch(self.place, self.keys[start:stop], self.rows.slice(start, stop - start), self.last)


class RowGroupReader:
    """Reads the events of a task, one row group after the other.

    ``dropped`` counts the valid events before those that its slice needs in what was read so far.
    """

    def __init__(self, work: Work, task: Task) -> None:
        self.work, self.task, self.dropped = work, task, 0
        self._shared = [] if task.share is None else task.share.columns
        head = dict.fromkeys(name for name in (work.recognition.type, work.leading) if name is not None)
        self._head = [name for name in head if name not in self._shared]
        self._body = [name for name in work.columns.names if name not in head and name not in self._shared]
        self._open: tuple[int, pq.ParquetFile] | None = None

    def pieces(self, group: RowGroup) -> Iterator[OrderedBatch]:
        """The wanted events of a row group, in the order of their keys.

        Raises `BadRecordError` for an event that cannot be used, unless these are skipped, and `InputError` if the
        file is not what was planned with.
        """
        file = self._file(group)
        shared = self._read(group, file, self._shared)
        begin, stop, share = self.task.slice.begin, self.task.slice.stop, self.task.share
        own = None if share is None else share.own(shared.columns)
        if own is not None and not own.any():
            # Other tasks read these events, and check them.
            return
        head = _beside(shared, self._read(group, file, self._head))
        valid = self._valid(group, head)
        keys = self._keys(group, head)
        self._check(group, keys if valid.all() else keys[valid])
        wanted = valid
        # Without bounds there is one slice.
        if group.least is not None and group.least < begin:
            self.dropped += int((wanted & (keys < begin)).sum())
            wanted = wanted & (keys >= begin)
        if group.greatest is not None and group.greatest >= stop:
            wanted = wanted & (keys < stop)
        if own is not None:
            wanted = wanted & own
        rows, types = np.flatnonzero(wanted), self.work.types
        # The dictionary of a group has its types only.
        there = head.column(self.work.recognition.type).dictionary
        if not len(rows) or (types is not None and not pc.is_in(there, array_of_texts(types)).true_count):
            return
        read = keys[rows] if len(rows) < group.rows else keys
        if (read[1:] >= read[:-1]).all():
            yield from self._streamed(group, file, head, keys, rows)
        else:
            order = rows[np.argsort(read, kind="stable")]
            whole = _beside(head, self._read(group, file, self._body)).take(array_of_numbers(order))
            yield OrderedBatch(group.place, keys[order], whole.select(self.work.columns.names), last=True)

    def _streamed(
        self, group: RowGroup, file: pq.ParquetFile, head: pa.RecordBatch, keys: Ints, rows: Ints
    ) -> Iterator[OrderedBatch]:
        """The chosen rows of a group, whose keys ascend."""
        at, stored = 0, self._stored(file, self._body)
        for read in file.iter_batches(
            limits.SOURCE_BATCH_ROWS, row_groups=[group.index], columns=stored, use_threads=False
        ):
            low, high = np.searchsorted(rows, (at, at + read.num_rows))
            if low < high:
                body = self._fitted(group, pa.Table.from_batches([read]), self._body)
                batch, some = _beside(head.slice(at, read.num_rows), body), keys[at : at + read.num_rows]
                if high - low < read.num_rows:
                    chosen = rows[low:high] - at
                    batch, some = batch.take(array_of_numbers(chosen)), some[chosen]
                batch = batch.select(self.work.columns.names)
                yield OrderedBatch(group.place, some, batch, last=high == len(rows))
            at += read.num_rows
            if high == len(rows):
                return

    def _read(self, group: RowGroup, file: pq.ParquetFile, names: Sequence[str]) -> pa.RecordBatch:
        table = file.read_row_group(group.index, columns=self._stored(file, names), use_threads=False)
        if table.num_rows != group.rows:
            raise InputError(f"'{self._path(group)}' has changed since it was planned to read it")
        return self._fitted(group, table, names)

    def _stored(self, file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
        there = file.schema_arrow.names
        # Of structs, only the fields that are read.
        wanted = dict.fromkeys(map(self.work.source, names))
        return [".".join(parts_of(name)) for name in wanted if root_of(name) in there]

    def _fitted(self, group: RowGroup, table: pa.Table, names: Sequence[str]) -> pa.RecordBatch:
        """Columns in the types that are wanted: as read, from the names of directories, or null."""
        constants = dict(self.task.files[group.file].constants)
        found = []
        for name in names:
            data_type, source = self.work.columns.field(name).type, self.work.source(name)
            encoded, typed_by = pa.types.is_dictionary(data_type), self.work.typed_by if source != name else None
            parts = parts_of(source)
            if field_type(table.schema, parts) is not None:
                whole = table.column(parts[0])
                column = one_array(whole if len(parts) == 1 else field_values(whole, source))
            else:
                own = data_type.value_type if encoded else data_type
                constant = pa.scalar(constants.get(source), pa.string()).cast(
                    own if typed_by is None else typed_by.type
                )
                column = pa.repeat(constant, table.num_rows)
            if typed_by is not None:
                column = column.cast(pa.string())
            if encoded and not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            found.append(column if column.type == data_type else column.cast(data_type))
        return pa.RecordBatch.from_arrays(found, names=list(names))

    def _valid(self, group: RowGroup, head: pa.RecordBatch) -> Mask:
        """Which events of a group can be used."""
        work, valid = self.work, np.ones(group.rows, bool)
        for name, what in ((work.recognition.type, "event type"), (work.recognition.schema.time, "time")):
            if name is not None:
                missing = _missing(head.column(name))
                if missing.any() and not work.skip:
                    row = group.first + int(np.argmax(missing))
                    raise BadRecordError(f"{row} of '{self._path(group)}'", f"no {what} in '{work.source(name)}'")
                valid &= ~missing
        return valid

    def _keys(self, group: RowGroup, head: pa.RecordBatch) -> Ints:
        leading = self.work.leading
        if leading is None:
            assert group.least is not None
            return np.arange(group.least, group.least + group.rows)
        if leading != self.work.recognition.schema.time and _missing(head.column(leading)).any():
            raise InputError(
                f"'{leading}' is null in '{self._path(group)}'; an order without a time needs it everywhere"
            )
        return keys_of(head.column(leading))

    def _check(self, group: RowGroup, keys: Ints) -> None:
        if group.least is None or group.greatest is None or not len(keys):
            return
        if keys.min() < group.least or keys.max() > group.greatest:
            raise InputError(
                f"the statistics of '{self.work.leading}' in row group {group.index} of "
                f"'{self._path(group)}' are wrong; write the file again, or let cerflow.spark.match read it"
            )

    def _path(self, group: RowGroup) -> str:
        return self.task.files[group.file].path

    def _file(self, group: RowGroup) -> pq.ParquetFile:
        if self._open is None or self._open[0] != group.file:
            texts = [field.name for field in self.work.columns if pa.types.is_dictionary(field.type)]
            self._open = (group.file, opened(self.task.files[group.file], texts))
        return self._open[1]


def _missing(column: pa.Array) -> Mask:
    return truths_of(pc.is_null(column, nan_is_null=True))


def _beside(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], names=[*left.schema.names, *right.schema.names])
