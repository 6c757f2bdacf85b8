"""A task reads the events of its slice, recognises them, and returns the matches of its slice."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from cerflow.api.query import Query, parse
from cerflow.api.stream_inputs import free_name
from cerflow.base.errors import InputError
from cerflow.engine.matches.row_limit import Bound
from cerflow.engine.recognize.recognizer import Recognizer
from cerflow.engine.slices.by_keys import Key
from cerflow.engine.slices.by_row_groups import GroupSlice
from cerflow.engine.slices.runner import SliceRunner
from cerflow.spark.source.files import DataFile
from cerflow.spark.source.key_shares import KeyShare
from cerflow.spark.source.options import Options
from cerflow.spark.source.reading import InOrder
from cerflow.spark.source.result import declared
from cerflow.spark.source.row_groups import RowGroupReader, Scan
from cerflow.spark.worker import prepare_worker


@dataclass(frozen=True)
class Work:
    """The facts that all tasks of a read share.

    ``needed`` are the columns that the query reads or reports. ``positions`` says that positions are reported or read.
    ``result`` is the schema of the matches as the engine gives them. No more than ``most_waiting`` events wait in a
    task to be put into order. ``until`` is an array with a time before which no more events come, if one is known.
    """

    options: Options
    scan: Scan
    needed: tuple[str, ...]
    positions: bool
    result: pa.Schema
    most_waiting: int
    until: pa.Array | None = None


@dataclass(frozen=True)
class Task:
    """A slice, and the files of its row groups by their numbers; with ``share`` only the events of some keys."""

    slice: GroupSlice
    files: Mapping[int, DataFile]
    share: KeyShare | None = None


def matches_of(work: bytes, task: bytes) -> Iterator[pa.RecordBatch]:
    """The matches of a task, in batches of the declared schema; work and task as they travel."""
    prepare_worker()
    return matches_in(*_unpacked(work), pickle.loads(task))


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


@lru_cache(maxsize=8)
def _unpacked(work: bytes) -> tuple[Work, Query]:
    """The work and its query, which is compiled once in each process that serves several tasks of it."""
    some: Work = pickle.loads(work)
    return some, parse(some.options.query, language=some.options.language)


def matches_in(work: Work, query: Query, task: Task) -> Iterator[pa.RecordBatch]:
    """The matches of a task; raises `InputError` if the files are not what was planned with, and `BadRecordError`."""
    some = task.slice
    reader = RowGroupReader(work.scan, task.files, some.begin, some.stop, task.share)
    _, schema = declared(work.result)
    recognizer, position = _recognizer(work, query)
    runner: SliceRunner | None = None
    latest: Key | None = None
    for piece in InOrder(work.scan, reader, some.groups, work.most_waiting):
        if runner is None:
            # All events before the slice have been read, and dropped, when its first ones come.
            first = None if position is None else some.before + reader.dropped
            given = work.options
            bound = Bound(given.max_matches)
            runner = SliceRunner(recognizer, bound, given.counts, given.flat, position=position, first=first)
        rows = piece.rows.select(work.needed)
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
        for found in runner.finish(work.until):
            yield _fitted(found, schema)


def _recognizer(work: Work, query: Query) -> tuple[Recognizer, str | None]:
    """A recogniser for the events of a task, and the name of the column with their positions, if there is one."""
    scan = work.scan
    columns = pa.schema([scan.columns.field(name) for name in work.needed])
    position = None
    if work.positions:
        position = free_name("position", columns.names)
        columns = columns.append(pa.field(position, pa.int64()))
    recognizer = query.recognizer(
        columns,
        type=scan.type,
        time=scan.time,
        time_unit=work.options.time_unit,
        stream=work.options.stream,
        position=position,
        positions=work.positions,
    )
    return recognizer, position


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of matches in exactly the declared schema."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    return batch.cast(schema, safe=False)
