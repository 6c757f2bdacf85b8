"""The input streams of a query: which events are its input, and how they are numbered (spec §4, FROM)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, truths_of
from cerflow.base.schema import Schema
from cerflow.engine.results.report import POSITION
from cerflow.language.select import Select


class InputStreams:
    """Lets the events of the named streams through; without FROM all events.

    Positions are those of the whole input, so a column carries them if events of other streams are left out.
    ``schema`` and ``position`` describe the events that come out.
    """

    def __init__(self, select: Select, schema: Schema, position: str | None) -> None:
        self._column = schema.stream if select.streams else None
        self._names = array_of_texts(select.streams)
        self.schema = schema if self._column is not None else replace(schema, stream=None)
        self.position = position
        if self._column is not None and position is None:
            self.position = POSITION
            self.schema = replace(schema, columns=schema.columns.append(pa.field(POSITION, pa.int64())))

    def admit(self, rows: pa.RecordBatch, first: int) -> tuple[pa.RecordBatch, Ints | None]:
        """The rows of the named streams, and their indexes (None: all); the first row is number ``first`` of all."""
        if self._column is None:
            return rows, None
        mask = pc.is_in(rows.column(self._column).cast(pa.string()), value_set=self._names)
        index = np.flatnonzero(truths_of(mask))
        if self.position == POSITION:
            rows = rows.append_column(POSITION, array_of_numbers(np.arange(first, first + rows.num_rows)))
        return rows.take(array_of_numbers(index)), index
