"""Matches (and refused rows) in the formats of output, batch by batch."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow import limits
from cerflow.cli.output.json_texts import field, json_lines, json_texts
from cerflow.cli.output.targets import STANDARD_OUTPUT, OutputStream, open_target
from cerflow.errors import InputError, OutputError
from cerflow.files.sources import SUFFIXES, InputFormat
from cerflow.values.arrow_columns import python_values


class OutputFormat(StrEnum):
    """Formats of output; in CSV, lists (the events of a match) are one column of JSON text."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"


_FORMATS = {
    InputFormat.CSV: OutputFormat.CSV,
    InputFormat.JSON: OutputFormat.JSONL,
    InputFormat.PARQUET: OutputFormat.PARQUET,
    InputFormat.ORC: OutputFormat.ORC,
}


class Sink(Protocol):
    """A writer of batches; ``size`` is the number of bytes written, without those still held back."""

    @property
    def size(self) -> int: ...  # noqa: D102  # said above

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""

    def close(self) -> None:
        """Write all that is held back; the stream below stays open."""


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
    return _FORMATS[found]


@contextmanager
def open_sink(target: str, output_format: OutputFormat, schema: pa.Schema) -> Iterator[Sink]:
    """A sink for rows of a schema; on an error inside the block the target stays as it was.

    Raises OutputError, which names the target, if it cannot be written to.
    """
    if target == STANDARD_OUTPUT and output_format in (OutputFormat.PARQUET, OutputFormat.ORC) and _terminal():
        raise OutputError(f"{output_format.value} is not for terminals; use --output PATH or --output-format jsonl")
    with open_target(target) as stream, _closing(_sink(stream, output_format, schema)) as sink:
        yield sink


def _terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def _closing(sink: _JsonLines | _Csv | _Columnar) -> Iterator[Sink]:
    try:
        yield sink
        sink.close()
    except BaseException:
        sink.abandon()
        raise


def _sink(stream: OutputStream, output_format: OutputFormat, schema: pa.Schema) -> _JsonLines | _Csv | _Columnar:
    kinds: dict[OutputFormat, type[_JsonLines] | type[_Csv] | type[_Columnar]] = {
        OutputFormat.JSONL: _JsonLines,
        OutputFormat.CSV: _Csv,
        OutputFormat.PARQUET: _Columnar,
        OutputFormat.ORC: _Orc,
    }
    return kinds[output_format](stream, schema)


class _Sized:
    def __init__(self, stream: OutputStream) -> None:
        self._stream = stream

    @property
    def size(self) -> int:
        return self._stream.tell()


class _JsonLines(_Sized):
    def __init__(self, stream: OutputStream, schema: pa.Schema) -> None:
        super().__init__(stream)
        self._schema = _readable(schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._stream.write(json_lines(_cast(batch, self._schema)))
        self._stream.flush()

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class _Csv(_Sized):
    def __init__(self, stream: OutputStream, schema: pa.Schema) -> None:
        super().__init__(stream)
        self._schema = _readable(schema)
        self._put([tuple(schema.names)])

    def write(self, batch: pa.RecordBatch) -> None:
        self._put(list(zip(*map(_fields, _cast(batch, self._schema).columns))))

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass

    def _put(self, rows: list[tuple[Any, ...]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._stream.write(text.getvalue().encode())
        self._stream.flush()


class _Columnar(_Sized):
    """Parquet or ORC."""

    def __init__(self, stream: OutputStream, schema: pa.Schema) -> None:
        super().__init__(stream)
        self._schema = schema
        self._writer = self._open(stream)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def _open(self, stream: OutputStream) -> Any:
        return pyarrow.parquet.ParquetWriter(stream, self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        # Every write makes a row group, and small ones make large, slow files.
        self._waiting.append(batch.cast(self._schema) if batch.schema != self._schema else batch)
        self._rows += batch.num_rows
        if self._rows >= limits.OUTPUT_ROW_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        # Otherwise the writer would write its footer when it is collected, to a stream that is closed by then.
        self._writer.is_open = False

    def _flush(self) -> None:
        if self._waiting:
            self._put(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting, self._rows = [], 0

    def _put(self, table: pa.Table) -> None:
        self._writer.write_table(table)


class _Orc(_Columnar):
    def _open(self, stream: OutputStream) -> Any:
        # The library ends the process if the stream fails while the writer is closed.
        stream.patient = True
        writer = pyarrow.orc.ORCWriter(stream)
        try:
            # The file gets its schema from the first table, so write an empty one in case there are no matches.
            writer.write(self._schema.empty_table())
        except pa.ArrowNotImplementedError as error:
            raise InputError(f"the result cannot be written as ORC: {error}") from error
        return writer

    def _put(self, table: pa.Table) -> None:
        self._writer.write(table)
        self._stream.check()

    def close(self) -> None:
        super().close()
        self._stream.check()


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


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch.cast(schema, safe=False) if batch.schema != schema else batch


def _fields(column: pa.Array) -> list[Any]:
    """The values of a column as fields of CSV."""
    if pa.types.is_nested(column.type.value_type if pa.types.is_dictionary(column.type) else column.type):
        texts: list[Any] = json_texts(column).to_pylist()
        return texts
    return [field(value) for value in python_values(column)]
