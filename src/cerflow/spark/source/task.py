"""A task reads the events of its slice in order, recognises them, and returns the matches of its slice.

Row groups come in the order of their least keys. An event is handed on as soon as no row group that is still to be read
can have one before it, so only row groups that overlap are in memory at the same time.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.arrow_columns import array_of_numbers, numbers_of, one_array, pushed_together
from cerflow.base.errors import InputError
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.matches.counting import Bound
from cerflow.engine.slices.by_keys import Key, Keys
from cerflow.engine.slices.by_row_groups import GroupSlice, RowGroup
from cerflow.spark.frames.tasks import OwnSlice, Recognition, SliceRunner
from cerflow.spark.source.files import DataFile
from cerflow.spark.source.row_groups import KeyShare, OrderedBatch, RowGroupReader, Scan


@dataclass
class InOrder:
    """The events of row groups, ordered by their keys, then by the sequence, then by their place in the input.

    ``groups`` stand in the order of their least keys, those with the same one, or of which nothing is known, in that of
    the input. Raises `InputError` for events that are not where they were expected, and for more than ``most_waiting``
    of them that would have to wait.
    """

    scan: Scan
    reader: RowGroupReader
    groups: Sequence[RowGroup]
    most_waiting: int

    def __post_init__(self) -> None:
        self._waiting: list[OrderedBatch] = []
        self._latest: Key | None = None
        # With a sequence, events of the same key stay together until all of them are known.
        self._ties = self.scan.sequence is None

    def __iter__(self) -> Iterator[OrderedBatch]:
        for group, (edge, ties) in zip(self.groups, self._edges()):
            for piece in self.reader.pieces(group):
                self._waiting.append(piece)
                here: Key = piece.keys[-1].item()
                if not piece.last and (edge is None or here < edge):
                    # The rest of this group begins here.
                    yield from self._taken(here, self._ties)
                elif edge is None:
                    # Nothing is known of what follows, but that it should not go back.
                    yield from self._taken(max(some.keys[-1].item() for some in self._waiting), ties)
                else:
                    yield from self._taken(edge, ties)
                waiting = sum(len(some.keys) for some in self._waiting)
                if waiting > self.most_waiting:
                    raise InputError(
                        f"{waiting:,} events overlap in '{self.scan.leading}', too many to be sorted in a task; "
                        "write the files in that order, or let cerflow.spark.match sort them"
                    )
        yield from self._taken(None, ties=True)

    def _edges(self) -> list[tuple[Key | None, bool]]:
        """For each row group the least key of those after it, and whether events of that very key may go before them.

        The key is None if there are no such groups or nothing is known of them.
        """
        edges: list[tuple[Key | None, bool]] = []
        last = (-1, -1)
        for group, after in zip(self.groups, [*self.groups[1:], None]):
            last = max(last, group.place)
            edge = None if after is None else after.least
            edges.append((edge, self._ties and (after is None or edge is None or last < after.place)))
        return edges

    def _taken(self, edge: Key | None, ties: bool) -> Iterator[OrderedBatch]:
        """The events that may continue before those with key ``edge``, also others of that key if ``ties``."""
        done: list[OrderedBatch] = []
        left: list[OrderedBatch] = []
        for piece in self._waiting:
            size = len(piece.keys)
            cut = size if edge is None else int(np.searchsorted(piece.keys, edge, "right" if ties else "left"))
            if cut:
                done.append(piece.slice(0, cut))
            if cut < size:
                left.append(piece.slice(cut, size))
        self._waiting = left
        pieces = sorted(done, key=lambda some: some.place)
        mixed = self.scan.sequence is not None or any(b.keys[0] < a.keys[-1] for a, b in pairwise(pieces))
        if pieces and mixed:
            pieces = [self._sorted(pieces)]
        for piece in pieces:
            if self._latest is not None and piece.keys[0] < self._latest:
                raise InputError(
                    f"the events are not in the order of '{self.scan.leading}', and the files have no statistics "
                    "that say how they are; write the files in that order, or let cerflow.spark.match sort them"
                )
            self._latest = piece.keys[-1].item()
            for start in range(0, len(piece.keys), limits.PUSH_ROWS):
                yield piece.slice(start, min(start + limits.PUSH_ROWS, len(piece.keys)))

    def _sorted(self, pieces: list[OrderedBatch]) -> OrderedBatch:
        """Some pieces, in the order of the input, as one in the order of keys."""
        table = pa.Table.from_batches([piece.rows for piece in pieces])
        keys: Keys = np.concatenate([piece.keys for piece in pieces])
        if self.scan.sequence is None:
            order = np.argsort(keys, kind="stable")
        else:
            ties = pa.table({"key": keys, "sequence": table.column(self.scan.sequence), "row": np.arange(len(keys))})
            order = numbers_of(one_array(sort_by_time(ties, "key", "sequence").column("row")))
        if not (order[1:] > order[:-1]).all():
            table, keys = table.take(array_of_numbers(order)), keys[order]
        (rows,) = table.unify_dictionaries().combine_chunks().to_batches()
        return OrderedBatch(pieces[0].place, keys, rows, last=False)


@dataclass(frozen=True)
class Work:
    """The facts that all tasks of a read share.

    ``recognition`` gets the columns needed in the types in which ``scan`` reads them. ``result`` is the schema of the
    matches as Spark takes them. No more than ``most_waiting`` events wait in a task to be put into order.
    """

    recognition: Recognition
    scan: Scan
    result: pa.Schema
    most_waiting: int


@dataclass(frozen=True)
class Task:
    """A slice, and the files of its row groups by their numbers; with ``share`` only the events of some keys."""

    slice: GroupSlice
    files: Mapping[int, DataFile]
    share: KeyShare | None = None


def matches_of_tasks(
    work: bytes, tasks: Sequence[bytes], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The matches of the tasks whose numbers come, one after the other, for `mapInArrow`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from matches_of(work, tasks[number])


def matches_of(packed_work: bytes, packed_task: bytes) -> Iterator[pa.RecordBatch]:
    """The matches of a task, in batches of the declared schema; work and task as they travel.

    Raises `InputError` if the files are not what was planned with, and `BadRecordError`.
    """
    work: Work = pickle.loads(packed_work)
    task: Task = pickle.loads(packed_task)
    some, recognition = task.slice, work.recognition
    reader = RowGroupReader(work.scan, task.files, some.begin, some.stop, task.share)
    needed = [name for name in recognition.schema.columns.names if name != recognition.position]
    runner: SliceRunner | None = None
    latest: Key | None = None
    ordered = InOrder(work.scan, reader, some.groups, work.most_waiting)
    for pieces in pushed_together(ordered, lambda piece: (len(piece.keys), piece.rows.nbytes)):
        # All events before the slice have been read, and dropped, when its first ones come.
        if runner is None:
            first = None if recognition.position is None else some.before + reader.dropped
            runner = SliceRunner(recognition, Bound(recognition.max_matches), OwnSlice(first, last=some.is_last))
        rows = pa.Table.from_batches([piece.rows.select(needed) for piece in pieces])
        keys: Keys = np.concatenate([piece.keys for piece in pieces])
        own = 0 if keys[0] >= some.start else int(np.searchsorted(keys, some.start, "left"))
        if own:
            latest = keys[own - 1].item()
            runner.prepare(rows.slice(0, own))
        if own < rows.num_rows:
            if some.found is not None and (latest is None or latest < some.found):
                raise InputError(
                    f"the statistics of '{work.scan.leading}' are wrong: they name {some.found}, which no event has; "
                    "write the files again, or let cerflow.spark.match read them"
                )
            for found in runner.report(rows.slice(own)):
                yield found.cast(work.result, safe=False)
    if runner is not None:
        for found in runner.finish():
            yield found.cast(work.result, safe=False)
