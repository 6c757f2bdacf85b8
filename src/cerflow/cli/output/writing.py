"""Matches and refused rows in the formats of output, batch by batch."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.base import limits
from cerflow.base.errors import InputError, OutputError
from cerflow.cli.output.json_texts import csv_fields, json_lines
from cerflow.cli.output.targets import STANDARD_OUTPUT, OutputStream, open_target
from cerflow.files.sources import SUFFIXES, InputFormat

#: The same as in `cerflow.spark.run`, which cannot be imported without PySpark.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]


class OutputFormat(StrEnum):
    """Formats of output; in CSV, lists (the events of a match) are one column of JSON text."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"


def output_format_of(target: str, given: OutputFormat | None = None) -> OutputFormat:
    """The format that was given, else that of the suffix, else JSON lines for standard output; raises InputError."""
    if given is not None:
        return given
    if target == STANDARD_OUTPUT:
        return OutputFormat.JSONL
    found = SUFFIXES.get(Path(target).suffix.lower())
    if found is None:
        raise InputError(
            f"the output format does not follow from the name '{target}'; "
            f"give --output-format {'|'.join(f.value for f in OutputFormat)}"
        )
    return OutputFormat.JSONL if found is InputFormat.JSON else OutputFormat(found.value)


@contextmanager
def open_sink(target: str, output_format: OutputFormat, schema: pa.Schema) -> Iterator[Sink]:
    """A sink for rows of a schema; on an error inside the block the target stays as it was.

    Raises OutputError, which names the target, if it cannot be written to.
    """
    kind = _SINKS[output_format]
    if target == STANDARD_OUTPUT and issubclass(kind, _Columnar) and sys.stdout is not None and sys.stdout.isatty():
        raise OutputError(f"{output_format.value} is not for terminals; use --output PATH or --output-format jsonl")
    with open_target(target) as stream:
        sink = kind(stream, schema)
        try:
            yield sink
            sink.close()
        except BaseException:
            sink.abandon()
            raise


def write_table(target: str, output_format: OutputFormat, table: pa.Table) -> None:
    """Write a table; raises as `open_sink`."""
    with open_sink(target, output_format, table.schema) as sink:
        for batch in table.to_batches(max_chunksize=limits.OUTPUT_BATCH_ROWS):
            sink.write(batch)


class Sink:
    """A writer of batches to a stream, which stays open."""

    def __init__(self, stream: OutputStream, schema: pa.Schema) -> None:
        self._stream = stream
        self._schema = schema

    @property
    def size(self) -> int:
        """The number of bytes written, without those still held back."""
        return self._stream.tell()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""
        self._put(json_lines(batch))

    def close(self) -> None:
        """Write all that is held back."""

    def abandon(self) -> None:
        """Write nothing more."""

    def _put(self, data: bytes | memoryview) -> None:
        self._stream.write(data)
        self._stream.flush()


class _Csv(Sink):
    def __init__(self, stream: OutputStream, schema: pa.Schema) -> None:
        super().__init__(stream, schema)
        self._write_rows([tuple(schema.names)])

    def write(self, batch: pa.RecordBatch) -> None:
        self._write_rows(zip(*map(csv_fields, batch.columns)))

    def _write_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._put(text.getvalue().encode())


class _Columnar(Sink):
    """Parquet, or ORC."""

    def __init__(self, stream: OutputStream, schema: pa.Schema) -> None:
        super().__init__(stream, schema)
        self._writer = self._open(stream)
        self._waiting: list[pa.RecordBatch] = []

    def _open(self, stream: OutputStream) -> Any:
        return pyarrow.parquet.ParquetWriter(stream, self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        # Every write makes a row group, and small ones make large, slow files.
        self._waiting.append(batch.cast(self._schema))
        if sum(batch.num_rows for batch in self._waiting) >= limits.OUTPUT_ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        # Otherwise the writer would write its footer when it is collected, to a stream that is closed by then.
        self._writer.is_open = False

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting = []


class _Orc(_Columnar):
    def _open(self, stream: OutputStream) -> Any:
        # The library ends the process if the stream fails while the writer is closed.
        stream.patient = True
        writer = pyarrow.orc.ORCWriter(stream)
        try:
            # The file gets its schema from the first table, so write an empty one in case there are no matches.
            writer.write(pa.Table.from_batches([], self._schema))
        except pa.ArrowNotImplementedError as error:
            raise InputError(f"the result cannot be written as ORC: {error}") from error
        return writer

    def close(self) -> None:
        super().close()
        self._stream.check()

    def _flush(self) -> None:
        super()._flush()
        self._stream.check()


_SINKS = {OutputFormat.JSONL: Sink, OutputFormat.CSV: _Csv, OutputFormat.PARQUET: _Columnar, OutputFormat.ORC: _Orc}
