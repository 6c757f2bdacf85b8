"""A task reads the events of its slice in order, recognises them, and returns the matches of its slice.

Row groups come in the order of their least keys. An event is handed on as soon as no row group that is still to be read
can have one before it, so only row groups that overlap are in memory at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, zip_longest

import numpy as np
import pyarrow as pa

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers, numbers_of, one_array, pushed_together
from cerflow.base.errors import InputError
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.matches.counting import Bound
from cerflow.spark.frames.tasks import matches_of_slice
from cerflow.spark.source.row_groups import OrderedBatch, RowGroupReader, Task, Work


class InOrder:
    """The events of a task, ordered by their keys, then by the sequence, then by their place in the input.

    Row groups stand in the order of their least keys, those with the same one, or of which nothing is known, in that of
    the input. Raises `InputError` for events that are not where they were expected, and if too many have to wait.
    """

    def __init__(self, reader: RowGroupReader) -> None:
        self._reader, self._work = reader, reader.work
        self._waiting: list[OrderedBatch] = []
        self._latest: int | None = None

    def __iter__(self) -> Iterator[OrderedBatch]:
        # With a sequence, events of the same key stay together until all of them are known.
        apart = self._work.sequence is None
        last = (-1, -1)
        groups = self._reader.task.slice.groups
        for group, after in zip_longest(groups, groups[1:]):
            # The least key of the groups to come, if there are any and it is known.
            edge = None if after is None else after.least
            last = max(last, group.place)
            ties = apart and (after is None or edge is None or last < after.place)
            for piece in self._reader.pieces(group):
                self._waiting.append(piece)
                here = int(piece.keys[-1])
                if not piece.last and (edge is None or here < edge):
                    # The rest of this group begins here.
                    yield from self._taken(here, apart)
                elif edge is None:
                    # Nothing is known of what follows, but that it should not go back.
                    yield from self._taken(max(int(some.keys[-1]) for some in self._waiting), ties)
                else:
                    yield from self._taken(edge, ties)
                waiting = sum(len(some.keys) for some in self._waiting)
                if waiting > self._work.most_waiting:
                    raise InputError(
                        f"{waiting:,} events overlap in '{self._work.leading}', too many to be sorted in a task; "
                        "write the files in that order, or let cerflow.spark.match sort them"
                    )
        yield from self._taken(None, ties=True)

    def _taken(self, edge: int | None, ties: bool) -> Iterator[OrderedBatch]:
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
        mixed = self._work.sequence is not None or any(b.keys[0] < a.keys[-1] for a, b in pairwise(pieces))
        if pieces and mixed:
            pieces = [self._sorted(pieces)]
        for piece in pieces:
            if self._latest is not None and piece.keys[0] < self._latest:
                raise InputError(
                    f"the events are not in the order of '{self._work.leading}', and the files have no statistics "
                    "that say how they are; write the files in that order, or let cerflow.spark.match sort them"
                )
            self._latest = int(piece.keys[-1])
            for start in range(0, len(piece.keys), limits.PUSH_ROWS):
                yield piece.slice(start, min(start + limits.PUSH_ROWS, len(piece.keys)))

    def _sorted(self, pieces: list[OrderedBatch]) -> OrderedBatch:
        """Some pieces, in the order of the input, as one in the order of keys."""
        table = pa.Table.from_batches([piece.rows for piece in pieces])
        keys: Ints = np.concatenate([piece.keys for piece in pieces])
        if self._work.sequence is None:
            order = np.argsort(keys, kind="stable")
        else:
            ties = pa.table({"key": keys, "sequence": table.column(self._work.sequence), "row": np.arange(len(keys))})
            order = numbers_of(one_array(sort_by_time(ties, "key", "sequence").column("row")))
        if not (order[1:] > order[:-1]).all():
            table, keys = table.take(array_of_numbers(order)), keys[order]
        (rows,) = table.unify_dictionaries().combine_chunks().to_batches()
        return OrderedBatch(pieces[0].place, keys, rows, last=False)


def matches_of_tasks(work: Work, tasks: Sequence[Task], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of the tasks whose numbers come, one after the other, for `mapInArrow`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from matches_of(work, tasks[number])


def matches_of(work: Work, task: Task) -> Iterator[pa.RecordBatch]:
    """The matches of a task, in batches of the declared schema.

    Raises `InputError` if the files are not what was planned with, and `BadRecordError`.
    """
    some, recognition = task.slice, work.recognition
    reader = RowGroupReader(work, task)
    parts = _parts(reader)
    beginning = next(parts, None)
    if beginning is None:
        return
    if recognition.position is not None:
        # All events before the slice have been read, and dropped, when its first ones come.
        some = replace(some, first=some.before + reader.dropped)
    wrong = (
        f"the statistics of '{work.leading}' are wrong: no event has the time that they name; write the files "
        "again, or let cerflow.spark.match read them"
    )
    bound = Bound(recognition.max_matches)
    for found in matches_of_slice(recognition, some, chain([beginning], parts), bound, wrong):
        yield found.cast(work.result, safe=False)


def _parts(reader: RowGroupReader) -> Iterator[tuple[bool, pa.Table]]:
    """The events that a slice reads, in order, each part with whether it is the slice's own."""
    recognition, start = reader.work.recognition, reader.task.slice.start
    needed = [name for name in recognition.schema.columns.names if name != recognition.position]
    for pieces in pushed_together(InOrder(reader), lambda piece: (len(piece.keys), piece.rows.nbytes)):
        rows = pa.Table.from_batches([piece.rows.select(needed) for piece in pieces])
        before = int(np.searchsorted(np.concatenate([piece.keys for piece in pieces]), start))
        if before:
            yield False, rows.slice(0, before)
        if before < rows.num_rows:
            yield True, rows.slice(before)
