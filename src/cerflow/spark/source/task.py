"""A task reads the events of its slice, recognises them, and returns the matches of its slice."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cerflow.base.errors import InputError
from cerflow.engine.matches.row_limit import Bound
from cerflow.engine.slices.by_keys import Key
from cerflow.engine.slices.by_row_groups import GroupSlice
from cerflow.spark.frames.tasks import Recognition, SliceRunner
from cerflow.spark.source.files import DataFile
from cerflow.spark.source.key_shares import KeyShare
from cerflow.spark.source.reading import InOrder
from cerflow.spark.source.result import declared
from cerflow.spark.source.row_groups import RowGroupReader, Scan


@dataclass(frozen=True)
class Work:
    """The facts that all tasks of a read share.

    ``recognition`` gets the columns needed in the types in which ``scan`` reads them. ``result`` is the schema of the
    matches as the engine gives them. No more than ``most_waiting`` events wait in a task to be put into order.
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


def matches_of(work: bytes, task: bytes) -> Iterator[pa.RecordBatch]:
    """The matches of a task, in batches of the declared schema; work and task as they travel."""
    return matches_in(pickle.loads(work), pickle.loads(task))


@dataclass(frozen=True)
class NumberedTasks:
    """A function for `mapInArrow` over numbers of tasks: the matches of one after the other."""

    work: bytes
    tasks: Sequence[bytes]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches of the tasks whose numbers come."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from matches_of(self.work, self.tasks[number])


def matches_in(work: Work, task: Task) -> Iterator[pa.RecordBatch]:
    """The matches of a task; raises `InputError` if the files are not what was planned with, and `BadRecordError`."""
    some, recognition = task.slice, work.recognition
    reader = RowGroupReader(work.scan, task.files, some.begin, some.stop, task.share)
    _, schema = declared(work.result)
    needed = [name for name in recognition.schema.columns.names if name != recognition.position]
    runner: SliceRunner | None = None
    latest: Key | None = None
    for piece in InOrder(work.scan, reader, some.groups, work.most_waiting):
        # All events before the slice have been read, and dropped, when its first ones come.
        if runner is None:
            first = None if recognition.position is None else some.before + reader.dropped
            runner = SliceRunner(recognition, Bound(recognition.max_matches), first)
        rows = piece.rows.select(needed)
        own = 0 if piece.keys[0] >= some.start else int(np.searchsorted(piece.keys, some.start, "left"))
        if own:
            latest = piece.keys[own - 1].item()
            runner.prepare(rows.slice(0, own))
        if own < rows.num_rows:
            if some.found is not None and (latest is None or latest < some.found):
                raise InputError(
                    f"the statistics of '{work.scan.leading}' are wrong: they name {some.found}, which no event has; "
                    "write the files again, or let cerflow.spark.match read them"
                )
            for found in runner.report(rows.slice(own)):
                yield _fitted(found, schema)
    if runner is not None and some.is_last:
        for found in runner.finish():
            yield _fitted(found, schema)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of matches in exactly the declared schema."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    return batch.cast(schema, safe=False)
