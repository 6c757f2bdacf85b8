"""What Spark would do around the tasks of slices, done in-process: surveys, shuffles, partitions."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cerflow.engine.evaluate.measures import clock_time, measures
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.layout import NULL
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow
from cerflow.programs.program import Program, query_as_text
from cerflow.schema import Schema
from cerflow.slices.by_keys import boundaries, slices_by_key
from cerflow.slices.lookback import AttributeLookback, CountLookback, LateLookback, TimeLookback
from cerflow.slices.pieces import Pieces, follow_each_other, stretches
from cerflow.slices.slice import GREATEST
from cerflow.spark.frames.axis import ROW_BITS, Axis
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.frames.tasks import Recognition
from cerflow.spark.placing.slice_frames import found_before
from cerflow.spark.placing.slice_tasks import OwnSlices, PartitionsInOrder, Stretch
from cerflow.spark.placing.survey import _rows, bounds_of


class Simulation:
    """A query or program on a table that is cut in slices or partitions, all tasks run one after the other."""

    def __init__(self, query, schema, *, time, window, positions, stream=None, late=False, until=None):
        self.schema = Schema(schema, "type", time, stream)
        self.axis = Axis(self.schema)
        self.events = EventColumns(self.schema)
        self.time, self.window, self.positions, self.late = time, window, positions, late
        columns = schema.append(pa.field("number", pa.int64())) if positions else schema
        self.recognition = Recognition(
            query=query_as_text(query),
            language="ceql" if isinstance(query, Program) else query.language,
            schema=columns.serialize().to_pybytes(),
            type="type",
            time=time,
            stream=stream,
            position="number" if positions else None,
            positions=positions,
            until=None if until is None else clock_time(until, self.schema),
        )

    def keys(self, table, first=0):
        if self.time is None:
            return first + np.arange(table.num_rows)
        return self.axis.keys(table.column(self.time))

    def measure(self, table):
        if not isinstance(self.window, AttributeWindow):
            return NULL
        found = measures(self.window, _rows(table.column(self.window.attribute), self.window, self.events), self.schema)
        return int(found.max())

    def pieces(self, tables):
        """What a survey finds: each table is (part, row within it, rows)."""
        rows = []
        for part, first, table in tables:
            if table.num_rows:
                keys = self.keys(table, (part << ROW_BITS) + first)
                rows.append((part, int(keys.min()), int(keys.max()), table.num_rows, self.measure(table)))
        return Pieces(*(np.array([row[k] for row in rows], np.int64) for k in range(5)))

    def lookback(self, pieces):
        match self.window:
            case DurationWindow():
                lookback = TimeLookback(partial(self.axis.bounds, self.window))
                return LateLookback(lookback, np.concatenate([pieces.low, pieces.high])) if self.late else lookback
            case CountWindow(events=events):
                return CountLookback(events, pieces)
        return AttributeLookback(bounds_of(self.window, self.events), pieces)

    def run(self, task, rows, batch):
        """The matches of a task, given its rows in batches."""
        found = list(task(iter(rows.to_batches(max_chunksize=batch))))
        return [match for some in found for match in some.to_pylist()]

    def slice_rows(self, table, keys, slices):
        """For each slice how many rows precede those that it reads, and these, with what tasks are told of them."""
        for number, some in enumerate(slices):
            read = np.flatnonzero((keys >= some.begin) & (keys < some.stop))
            code = 2 * number + (keys[read] >= some.start)
            taken = table.select(self.schema.columns.names).take(pa.array(read))
            yield int((keys < some.begin).sum()), taken.append_column("code", pa.array(code))

    def sliced(self, table, starts, *, batch, parts):
        """All matches of a table in order, cut at some keys; ``parts`` are keys between which events are counted."""
        keys = self.keys(table)
        where = np.searchsorted(np.unique([*starts, *parts]), keys, side="right")
        pieces = self.pieces(
            (int(k), int(np.flatnonzero(where == k)[0]), table.filter(pa.array(where == k))) for k in np.unique(where)
        )
        slices = slices_by_key(sorted(starts), self.lookback(pieces), int(keys.min()), int(keys.max()))
        rows = list(self.slice_rows(table, keys, slices))
        first = tuple(before for before, _ in rows) if self.positions else None
        counts = tuple(int(((keys >= s.start) & (keys < s.stop)).sum()) for s in slices)
        task = OwnSlices(self.recognition, first, counts, found_before(slices), len(slices) - 1)
        # Several slices may share a task.
        return self.run(task, pa.concat_tables(some for _, some in rows), batch), slices

    def cut_up(self, tables, piece, borders):
        """Pieces of partitions, cut between their files, too, and the file of each piece."""
        rows, files = [], []
        for part, table in enumerate(tables):
            own = borders[part] if borders else ()
            cuts = sorted({*range(0, table.num_rows, piece), *(b for b in own if b < table.num_rows)})
            for at, after in pairwise([*cuts, table.num_rows]):
                rows.append((part, at, table.slice(at, after - at)))
                files.append(sum(b <= at for b in own))
        return self.pieces(rows), np.array(files, np.int64)

    def partitioned(self, tables, *, piece, batch, sequence=None, in_order_already=False, borders=None, kept=None):
        """All matches of partitions that stay where they are, and of the slices between them.

        ``borders`` are the rows of each partition with which files begin. If some rows of each are ``kept`` only, the
        pieces are those of all rows, uncounted; None if they do not follow each other in time.
        """
        tables = [sort_by_time(t, self.time, sequence) if in_order_already else t for t in tables]
        pieces, files = self.cut_up(tables, piece, borders)
        part, pieces = pieces.part, replace(pieces, part=stretches(pieces, files))
        if kept is not None:
            if not follow_each_other(pieces, pieces.part):
                return None
            tables = [table.filter(pa.array(some, pa.bool_())) for table, some in zip(tables, kept, strict=True)]
        between = boundaries(pieces, self.lookback(pieces))
        ends = len(between) - 1 if between and between[-1].stop == GREATEST else None
        lying, offset = [], 0
        for number in pieces.parts():
            own = pieces.of(number)
            lying.append(Stretch(int(part[pieces.part == number][0]), number, own, offset))
            offset += own.total
        task = PartitionsInOrder(
            recognition=self.recognition,
            stretches=tuple(lying),
            edges=tuple(key for s in between for key in (s.start, s.stop)),
            sequence=sequence is not None,
            in_order=in_order_already or self.time is None,
            numbered=self.positions,
            ends=ends is None,
            counted=kept is None,
        )
        found = []
        for part, table in enumerate(tables):
            rows = table.select(self.schema.columns.names)
            rows = rows if sequence is None else rows.append_column("sequence", table.column(sequence))
            if kept is None:
                rows = rows.append_column("part", pa.array([part] * table.num_rows, pa.int32()))
            found += self.run(task, rows, batch)
        whole = pa.concat_tables(tables)
        keys = np.concatenate([self.keys(t, part << ROW_BITS) for part, t in enumerate(tables)])
        if self.time is not None:
            order = pa.array(np.argsort(keys, kind="stable")) if sequence is None else None
            whole = sort_by_time(whole, self.time, sequence) if order is None else whole.take(order)
            keys = self.keys(whole)
        rows = list(self.slice_rows(whole, keys, between))
        if rows:
            first = tuple(before for before, _ in rows) if self.positions else None
            task = OwnSlices(self.recognition, first, None, found_before(between), ends)
            found += self.run(task, pa.concat_tables(r for _, r in rows), batch)
        return found, between
