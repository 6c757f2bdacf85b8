"""Matches and refused rows in the formats of output, batch by batch; directories that Spark writes."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.base import limits
from cerflow.base.arrow_columns import python_values
from cerflow.base.errors import InputError, OutputError
from cerflow.cli.output.json_texts import field, json_lines, json_texts
from cerflow.cli.output.targets import STANDARD_OUTPUT, OutputStream, open_target
from cerflow.files.sources import SUFFIXES, InputFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
        self._put(json_lines(_cast(batch, _readable(self._schema))))

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
        self._write_rows(zip(*map(_fields, _cast(batch, _readable(self._schema)).columns)))

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
        self._waiting.append(_cast(batch, self._schema, safe=True))
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


def _readable(schema: pa.Schema) -> pa.Schema:
    """The schema with timestamps in microseconds, the unit of Python's datetime."""
    return pa.schema([pa.field(f.name, _microseconds(f.type)) for f in schema])


def _microseconds(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us", tz=data_type.tz)
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(f.name, _microseconds(f.type)) for f in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(_microseconds(data_type.value_type))
    return data_type


def _cast(batch: pa.RecordBatch, schema: pa.Schema, *, safe: bool = False) -> pa.RecordBatch:
    return batch.cast(schema, safe=safe) if batch.schema != schema else batch


def _fields(column: pa.Array) -> list[Any]:
    """The values of a column as fields of CSV."""
    if pa.types.is_nested(column.type.value_type if pa.types.is_dictionary(column.type) else column.type):
        texts: list[Any] = json_texts(column).to_pylist()
        return texts
    return [field(value) for value in python_values(column)]


#: The same as in `cerflow.spark.run`, which cannot be imported without PySpark.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]

#: Spark's names of formats where they differ, and options for its writers.
_NAMES = {OutputFormat.JSONL: "json"}
_OPTIONS = {OutputFormat.CSV: {"header": "true"}}


@dataclass(frozen=True)
class Directory:
    """A directory of files; raises ValueError for options that do not go together."""

    path: str
    mode: OutputMode = "error"
    partition_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.path == STANDARD_OUTPUT:
            raise ValueError("--output-mode and --partition-by are for directories; name one with --output PATH")
        if self.mode == "overwrite-partitions" and not self.partition_by:
            raise ValueError("--output-mode overwrite-partitions needs --partition-by COLUMN")

    def ignored(self, spark: SparkSession) -> bool:
        """Whether the mode says to leave an existing output alone; raises InputError if it must not exist."""
        from cerflow.spark.frames.output import exists

        if self.mode == "ignore":
            return exists(spark, self._uri)
        if self.mode == "error" and exists(spark, self._uri):
            raise InputError(f"'{self.path}' already exists; choose another --output-mode or remove it")
        return False

    def write(self, result: DataFrame, output_format: OutputFormat) -> int:
        """Write the rows of the result; returns their number."""
        from cerflow.spark.frames.output import write_frame

        return write_frame(
            result,
            self._uri,
            format=_NAMES.get(output_format, output_format.value),
            mode=self.mode,
            partition_by=self.partition_by,
            options=_OPTIONS.get(output_format),
        )

    @property
    def _uri(self) -> str:
        # A path without an address lies on this machine, as for inputs; other file systems have addresses.
        return self.path if "://" in self.path else f"file://{Path(self.path).absolute()}"
