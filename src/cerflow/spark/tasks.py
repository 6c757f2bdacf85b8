"""What a task does: Arrow batches of events in, Arrow batches of matches out, neither ever all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from cerflow.errors import BadRecordError
from cerflow.query import parse

__all__ = ["Recognition"]

#: Rows and bytes that are pushed at a time; Spark's own batches are small.
_ROWS = 1 << 16
_BYTES = 1 << 26
#: Rows of a result batch.
_RESULT_ROWS = 1 << 14
#: Characters of a value in a message.
_SHOWN = 60


@dataclass(frozen=True)
class Recognition:
    """A query for the tasks of `mapInArrow`. Each task parses and compiles it, so that no tree has to travel.

    ``schema`` is a serialised Arrow schema with the names of the columns in their order; ``position`` names the one
    with positions, if it is there.
    """

    query: str
    schema: bytes
    type: str
    time: str | None
    stream: str | None
    position: str | None
    positions: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Recognise in the events of one task, which come in the order of time."""
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        recognizer = None
        for rows in _grouped(batches, schema.names):
            if recognizer is None:
                recognizer = parse(self.query).recognizer(
                    schema,
                    type=self.type,
                    time=self.time,
                    stream=self.stream,
                    position=self.position,
                    positions=self.positions,
                    on_bad_record=self._refuse,
                )
            yield from recognizer.push(rows).to_batches(_RESULT_ROWS)

    def _refuse(self, rows: pa.Table) -> None:
        """Rows of a distributed input have no number, so the first one is named by its values."""
        *columns, _, reason = rows.column_names
        values = (f"{name}: {_text(rows.column(name)[0])}" for name in columns if name != self.position)
        raise BadRecordError(f"{{{', '.join(values)}}}", rows.column(reason)[0].as_py())


def _grouped(batches: Iterator[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    """The rows in larger batches."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield _table(waiting, names)
            waiting, rows, size = [], 0, 0
    if rows:
        yield _table(waiting, names)


def _table(batches: list[pa.RecordBatch], names: list[str]) -> pa.Table:
    """The batches under the names of the input; what Spark knows of nulls in a column is no part of its schema."""
    schema = pa.schema(zip(names, batches[0].schema.types))
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches])


def _text(value: pa.Scalar) -> str:
    found = value.as_py()
    if found is None:
        return "null"
    text = repr(found) if isinstance(found, str) else str(found)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
