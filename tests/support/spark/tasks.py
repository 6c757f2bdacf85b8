"""What Spark would do around the tasks of slices, done in-process: surveys, shuffles, partitions."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from cerflow.api.programs.program import Program, query_as_text
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.layout import NULL
from cerflow.engine.slices.cutting import (
    GREATEST,
    LEAST,
    Lookback,
    Pieces,
    keys_of,
    slices_at_home,
    slices_by_key,
)
from cerflow.engine.slices.division import Division
from cerflow.language.formula import AttributeWindow
from cerflow.spark.frames.events import ROW_BITS
from cerflow.spark.frames.tasks import OwnSlices, Recognition


class Simulation:
    """A query or program on a table that is cut in slices or partitions, all tasks run one after the other."""

    def __init__(self, query, schema, *, time, window, positions, stream=None, late=False, until=None):
        self.schema = Schema(schema, "type", time, stream)
        self.time, self.window, self.positions = time, window, positions
        self.division = Division(window, "", late)
        columns = schema.append(pa.field("number", pa.int64())) if positions else schema
        self.recognition = Recognition(
            query=query_as_text(query),
            language="ceql" if isinstance(query, Program) else query.language,
            schema=Schema(columns, "type", time, stream),
            type="type",
            position="number" if positions else None,
            positions=positions,
            until=None if until is None else clock_time(until, self.schema),
        )

    def keys(self, table, first=0):
        if self.time is None:
            return first + np.arange(table.num_rows)
        return keys_of(table.column(self.time))

    def measure(self, table):
        if not isinstance(self.window, AttributeWindow):
            return NULL
        return int(keys_of(table.column(self.window.attribute)).max())

    def pieces(self, tables):
        """What a survey finds: each table is (part, row within it, rows)."""
        rows = []
        for part, first, table in tables:
            if table.num_rows:
                keys = self.keys(table, (part << ROW_BITS) + first)
                rows.append((part, int(keys.min()), int(keys.max()), table.num_rows, self.measure(table)))
        return Pieces(*(np.array([row[k] for row in rows], np.int64) for k in range(5)))

    def lookback(self, pieces):
        return Lookback(self.division, self.schema, pieces, np.unique(np.concatenate([pieces.low, pieces.high])))

    def run(self, task, rows, batch):
        """The matches of a task, given its rows in batches."""
        found = list(task(iter(rows.to_batches(max_chunksize=batch))))
        return [match for some in found for match in some.to_pylist()]

    def task(self, slices, counted):
        if counted is not None:
            slices = [counted.counted(some, positions=self.positions) for some in slices]
        return OwnSlices(self.recognition, slices)

    def counted(self, tables, cuts):
        """What a survey counts between keys: each table is one partition in order."""
        rows = []
        for part, table in enumerate(tables):
            where = np.searchsorted(cuts, self.keys(table, part << ROW_BITS), side="right")
            for k in np.unique(where):
                at = np.flatnonzero(where == k)
                rows.append((part, int(at[0]), table.take(pa.array(at))))
        return self.pieces(rows)

    def shuffled(self, table, keys, slices, counted, batch):
        """The matches of slices to which the events of a table in order are shuffled."""
        rows = []
        for number, some in enumerate(slices):
            read = np.flatnonzero((keys >= some.begin) & (keys < some.stop))
            code = 2 * number + (keys[read] >= some.start)
            rows.append(table.select(self.schema.columns.names).take(pa.array(read)).append_column("code", [code]))
        # Several slices may share a task.
        return self.run(self.task(slices, counted), pa.concat_tables(rows), batch) if rows else []

    def at_home(self, part, table, keys, slices, counted, batch):
        """The matches of the slices at home in a partition, whose rows are in order."""
        homes = [some for some in slices if some.home is not None]
        number = np.searchsorted([some.start for some in slices[1:]], keys, side="right")
        codes = []
        for at in number:
            one, own = slices[at], slices[at].home is not None
            one = one if own or at + 1 == len(slices) else slices[at + 1]
            assert not own or one.home == part
            codes.append(2 * homes.index(one) + own if one.home == part else -1)
        rows = table.select(self.schema.columns.names).append_column("code", [pa.array(codes, pa.int64())])
        rows = rows.filter(pa.array(np.array(codes, np.int64) >= 0))
        return self.run(self.task(homes, counted), rows, batch) if homes else []

    def sliced(self, table, starts, *, batch, parts):
        """All matches of a table in order, cut at some keys; ``parts`` are keys between which events are counted."""
        keys = self.keys(table)
        pieces = self.counted([table], np.unique([*starts, *parts]))
        slices = slices_by_key(sorted(starts), self.lookback(pieces))
        counted = self.counted([table], np.unique([k for s in slices for k in (s.begin, s.start)]))
        return self.shuffled(table, keys, slices, counted, batch), slices

    def cut_up(self, tables, piece, borders=None):
        """Pieces of partitions, cut between their files, too."""
        rows = []
        for part, table in enumerate(tables):
            own = borders[part] if borders else ()
            cuts = sorted({*range(0, table.num_rows, piece), *(b for b in own if b < table.num_rows)})
            for at, after in pairwise([*cuts, table.num_rows]):
                rows.append((part, at, table.slice(at, after - at)))
        return self.pieces(rows)

    def partitioned(self, tables, *, piece, batch, sequence=None, borders=None, counts=True):
        """All matches of the slices of partitions that stay where they are, and of those between them.

        ``borders`` are the rows of each partition with which files begin.
        """
        pieces = self.cut_up(tables, piece, borders)
        slices = slices_at_home(self.lookback(pieces))
        assert [LEAST, *(s.stop for s in slices)] == [*(s.start for s in slices), GREATEST]
        tables = [sort_by_time(table, self.time, sequence) for table in tables]
        counted = self.counted(tables, np.unique([k for s in slices for k in (s.begin, s.start)])) if counts else None
        found = []
        for part, table in enumerate(tables):
            found += self.at_home(part, table, self.keys(table, part << ROW_BITS), slices, counted, batch)
        whole = pa.concat_tables(tables)
        keys = np.concatenate([self.keys(table, part << ROW_BITS) for part, table in enumerate(tables)])
        if self.time is not None:
            whole = sort_by_time(whole, self.time, sequence)
            keys = self.keys(whole)
        between = [some for some in slices if some.home is None]
        return found + self.shuffled(whole, keys, between, counted, batch), slices
