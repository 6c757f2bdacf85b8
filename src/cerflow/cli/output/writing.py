"""Matches and refused rows in the formats of output, batch by batch.

JSON is written column by column: each distinct value is written once, and Arrow puts the texts together.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.orc import ORCWriter
from pyarrow.parquet import ParquetWriter

from cerflow.base import limits
from cerflow.base.arrow_columns import array_of_numbers, array_of_texts, numbers_of, python_values
from cerflow.base.errors import InputError, OutputError
from cerflow.cli.output.targets import STANDARD_OUTPUT, OutputStream, open_target
from cerflow.files.sources import SUFFIXES, InputFormat

#: The same as in `cerflow.spark.run`, which cannot be imported without PySpark.
OutputMode = Literal["error", "overwrite", "append", "ignore", "overwrite-partitions"]
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_TEXT = pa.large_string()
#: So few values are written one by one.
_FEW = 32


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
    columnar = output_format in (OutputFormat.PARQUET, OutputFormat.ORC)
    if target == STANDARD_OUTPUT and columnar and sys.stdout.isatty():
        raise OutputError(f"{output_format.value} is not for terminals; use --output PATH or --output-format jsonl")
    with open_target(target) as stream:
        if not columnar:
            text_of = _csv_lines if output_format is OutputFormat.CSV else _json_lines
            if output_format is OutputFormat.CSV:
                stream.put(_csv_text([schema.names]))
            yield Sink(stream, lambda batch: stream.put(text_of(batch)))
            return
        writer = _orc_writer(stream, schema) if output_format is OutputFormat.ORC else ParquetWriter(stream, schema)
        try:
            groups = _GroupWriter(stream, writer, schema)
            yield Sink(stream, groups.write)
            groups.flush()
            writer.close()
        except BaseException:
            # Otherwise it would write its footer when it is collected, to a stream that is closed by then.
            writer.is_open = False
            raise


def write_table(target: str, output_format: OutputFormat, table: pa.Table) -> None:
    """Write a table; raises as `open_sink`."""
    with open_sink(target, output_format, table.schema) as sink:
        for batch in table.to_batches(max_chunksize=limits.OUTPUT_BATCH_ROWS):
            sink.write(batch)


class Sink(NamedTuple):
    """What writes batches to a stream."""

    stream: OutputStream
    write: Callable[[pa.RecordBatch], None]


class _GroupWriter:
    """Writes batches together: every write makes a row group, and small ones make large, slow files."""

    def __init__(self, stream: OutputStream, writer: Any, schema: pa.Schema) -> None:
        self._stream = stream
        self._writer = writer
        self._schema = schema
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch, perhaps later."""
        self._waiting.append(batch.cast(self._schema))
        if sum(batch.num_rows for batch in self._waiting) >= limits.OUTPUT_ROW_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._writer.write(pa.Table.from_batches(self._waiting, self._schema))
            self._stream.check()
        self._waiting = []


def _orc_writer(stream: OutputStream, schema: pa.Schema) -> ORCWriter:
    writer = ORCWriter(stream)
    try:
        # The file gets its schema from the first table, so write an empty one in case there are no matches.
        writer.write(schema.empty_table())
    except pa.ArrowNotImplementedError as error:
        raise InputError(f"the result cannot be written as ORC: {error}") from error
    return writer


def _csv_lines(batch: pa.RecordBatch) -> bytes:
    return _csv_text(zip(*map(_csv_fields, batch.columns)))


def _csv_text(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _json_lines(batch: pa.RecordBatch) -> memoryview:
    lines = _joined(_known(_json_texts(batch.to_struct_array())), "\n")
    end = int(np.frombuffer(lines.buffers()[1], np.int64)[len(lines)])
    return memoryview(lines.buffers()[2])[:end]


def _json_texts(column: pa.Array) -> pa.Array:
    """The values in JSON, null where they are null."""
    kind = column.type
    if pa.types.is_struct(kind):
        names = [_json(field.name) for field in kind]
        # Where the whole is null, its fields may be anything.
        texts_of_fields = map(_known, map(_json_texts, column.flatten()))
        parts = [(f"{', ' * (k > 0)}{name}: ", texts) for k, (name, texts) in enumerate(zip(names, texts_of_fields))]
        texts = (
            _joined("{", *(part for pair in parts for part in pair), "}")
            if parts
            else pa.repeat(_texts(["{}"])[0], len(column))
        )
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        ends = numbers_of(column.offsets).astype(np.int64)
        values = _known(_json_texts(column.values[ends[0] : ends[-1]]))
        lists = pa.LargeListArray.from_arrays(array_of_numbers(ends - ends[0]), values)
        texts = _joined("[", pc.binary_join(lists, _texts([", "])[0]), "]")
    else:
        return _texts_of_distinct(column)
    return pc.if_else(column.is_valid(), texts, pa.nulls(1, _TEXT)[0]) if column.null_count else texts


def _texts_of_distinct(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        return _json_texts(column.dictionary_decode())
    if len(column) < _FEW and not pa.types.is_dictionary(column.type):
        return _texts_of(column)
    try:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    except pa.ArrowNotImplementedError:
        return _texts_of(column)
    values = encoded.dictionary
    return (_json_texts(values) if pa.types.is_nested(values.type) else _texts_of(values)).take(encoded.indices)


def _texts_of(column: pa.Array) -> pa.Array:
    return _texts([None if value is None else _json(value) for value in _values(column)])


def _values(column: pa.Array) -> list[Any]:
    # Python's datetime counts microseconds.
    in_time = pa.types.is_timestamp(column.type)
    return python_values(column.cast(pa.timestamp("us", column.type.tz), safe=False) if in_time else column)


def _csv_fields(column: pa.Array) -> list[Any]:
    if pa.types.is_nested(column.type.value_type if pa.types.is_dictionary(column.type) else column.type):
        texts: list[Any] = _json_texts(column).to_pylist()
        return texts
    return [_field(value) for value in _values(column)]


def _texts(texts: Sequence[str | None]) -> pa.Array:
    # Unlike `pa.array` and `pa.scalar` this does not import pandas.
    return array_of_texts(texts).cast(_TEXT)


def _known(texts: pa.Array) -> pa.Array:
    return texts.fill_null(_texts(["null"])[0]) if texts.null_count else texts


def _joined(*parts: pa.Array | str) -> pa.Array:
    """Texts that are put together; one of the parts is an array."""
    given = [_texts([part])[0] if isinstance(part, str) else part for part in (*parts, "")]
    return pc.binary_join_element_wise(*given)


def _json(value: Any) -> str:
    """A value in JSON; of what JSON has not, infinity is text and NaN is null."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_json(name)}: {_json(field)}' for name, field in value.items())}}}"
    if isinstance(value, Decimal):
        return _digits(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "null" if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return _ENCODER.encode(value if value is None or isinstance(value, str | int | float) else _plain(value))


def _field(value: Any) -> Any:
    """A value in CSV."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str | int | float):
        return value
    return _digits(value) if isinstance(value, Decimal) else _plain(value)


def _digits(value: Decimal) -> str:
    """A decimal as a number: as Python writes it, unless that has other digits."""
    if value == value.to_integral_value():
        return str(int(value))
    plain = repr(float(value))
    return plain if Decimal(plain) == value else f"{value:f}"


def _plain(value: Any) -> str:
    """A value without a notation in JSON and CSV: times and durations in ISO 8601, the rest as Python shows it."""
    if isinstance(value, datetime):
        in_thousandths = value.microsecond and value.microsecond % 1000 == 0
        text = value.isoformat(timespec="milliseconds" if in_thousandths else "auto")
        return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _duration(value: timedelta) -> str:
    """A duration in ISO 8601 with all its microseconds: ``PT5M``, ``P1DT2.5S``, ``-PT1H``."""
    days, seconds = abs(value).days, abs(value).seconds
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    rest = f".{abs(value).microseconds:06}".rstrip("0").rstrip(".")
    clock = "".join(f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M")) if amount)
    clock += f"{seconds}{rest}S" if seconds or rest or not (days or clock) else ""
    return "-" * (value < timedelta(0)) + "P" + f"{days}D" * bool(days) + ("T" + clock) * bool(clock)
