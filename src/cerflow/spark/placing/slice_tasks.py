"""Tasks that get slices of the stream.

A task checks all that its result relies on, and fails if the events are not those that were counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cerflow.base.arrow_columns import numbers_of, one_array
from cerflow.base.errors import InputError
from cerflow.engine.matches.row_limit import Bound
from cerflow.engine.slices.by_keys import Pieces, Slice
from cerflow.spark.frames.axis import Axis
from cerflow.spark.frames.tasks import Recognition, SliceRunner, as_larger_tables

CHANGED = (
    "the events are not those that were counted when the query was prepared; "
    "store or cache the DataFrame before it is matched"
)
#: The name of the last column, which is not in the input.
_LAST = "\0last"


class OwnSlice(NamedTuple):
    """What a task knows of a slice.

    ``first`` is the position of its first event, if positions are needed; ``own`` the number of its own events, and
    ``found`` the key of an event before it, if the result relies on these. ``last`` says that it ends the stream.
    """

    first: int | None = None
    own: int | None = None
    found: int | None = None
    last: bool = False


@dataclass(frozen=True)
class OwnSlices:
    """A query for tasks that get slices: rows in order, and in the last column `SLICE` of `ordering`."""

    recognition: Recognition
    slices: tuple[OwnSlice, ...]

    @classmethod
    def of(cls, recognition: Recognition, slices: Sequence[Slice[int]], counted: Pieces | None) -> OwnSlices:
        """The work on some slices of a stream.

        The pieces that were ``counted`` lie between the keys where slices begin, start and stop.
        """
        known = []
        for some in slices:
            first = own = None
            if counted is not None:
                before = counted.before(some.start)
                own = counted.before(some.stop) - before
                if recognition.position is not None:
                    # Of the events before its start a slice at home reads its own only.
                    first = before - counted.before(some.start, some.home) + counted.before(some.begin, some.home)
            known.append(OwnSlice(first, own, some.found, some.is_last))
        return cls(recognition, tuple(known))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recognise in the slices of one task, one after the other."""
        bound = Bound(self.recognition.max_matches)
        runner: SliceRunner | None = None
        current, own = OwnSlice(), 0
        latest: pa.Table | None = None
        # Positions are added here.
        names = [name for name in self.recognition.schema.columns.names if name != self.recognition.position]
        for rows in as_larger_tables(batches, [*names, _LAST]):
            codes = numbers_of(one_array(rows.column(_LAST)))
            rows = rows.drop_columns([_LAST])
            ends = [*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
            for begin, end in zip([0, *ends[:-1]], ends, strict=True):
                number, is_own = divmod(int(codes[begin]), 2)
                if runner is None or self.slices[number] is not current:
                    yield from self._finished(runner, current, own)
                    current, own, latest = self.slices[number], 0, None
                    runner = SliceRunner(self.recognition, bound, current.first)
                some = rows.slice(begin, end - begin)
                if is_own:
                    if not own:
                        self._check_before(current.found, latest)
                    own += some.num_rows
                    yield from runner.report(some)
                else:
                    latest = some
                    runner.prepare(some)
        yield from self._finished(runner, current, own)

    def _check_before(self, key: int | None, latest: pa.Table | None) -> None:
        """Check that the event on which a slice relies is among those before its own; ``latest`` are the last ones."""
        if key is not None:
            schema = self.recognition.schema
            if latest is None or Axis(schema).keys(latest.column(str(schema.time)))[-1] < key:
                raise InputError(CHANGED)

    def _finished(self, runner: SliceRunner | None, ended: OwnSlice, own: int) -> Iterator[pa.RecordBatch]:
        """The matches after all events of a slice, which are counted; without a runner there was no slice."""
        if runner is not None:
            if ended.own is not None and own != ended.own:
                raise InputError(CHANGED)
            if ended.last:
                yield from runner.finish()
