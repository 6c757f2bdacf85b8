"""One input file becomes an Arrow table as it stands, plus the lines that could not be split into columns."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet

from cerflow.cli.conversion import to_times
from cerflow.cli.sources import InputFormat, Source, partition_values, refuse_double
from cerflow.errors import InputError

__all__ = ["Malformed", "read_files"]

#: Number of the row in its file (from 0), its text, what is wrong with it.
Malformed = tuple[int, str, str]


def read_files(source: Source, text: Collection[str]) -> Iterable[tuple[str, pa.Table, list[Malformed]]]:
    """Name, table and malformed lines of each file of a source, in order.

    Columns in ``text`` stay text where the format has no types of its own (CSV). What the names of directories say of
    a file stands in columns of text. Raises InputError if a file cannot
    be read at all.
    """
    if not source.files:
        yield "standard input", *_guarded("standard input", source.format, sys.stdin.buffer.read(), text)
    for file in source.files:
        table, malformed = _guarded(str(file), source.format, file, text)
        partitions = partition_values(source, file)
        refuse_double(file, table.column_names, partitions)
        for name, value in partitions.items():
            table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), len(table)))
        yield str(file), table, malformed


def _guarded(
    name: str, input_format: InputFormat, content: Path | bytes, text: Collection[str]
) -> tuple[pa.Table, list[Malformed]]:
    try:
        if input_format is InputFormat.CSV:
            return _read_csv(content, text)
        if input_format is InputFormat.JSON:
            return _read_json(content, text)
        reader = pa.BufferReader(content) if isinstance(content, bytes) else str(content)
        if input_format is InputFormat.PARQUET:
            return pyarrow.parquet.ParquetFile(reader).read(), []
        return pyarrow.orc.ORCFile(reader).read(), []
    except (pa.ArrowException, OSError, UnicodeError) as error:
        # Arrow's messages may run over several lines, the first says it.
        raise InputError(f"cannot read {name} as {input_format.value}: {str(error).splitlines()[0]}") from error


def _open(content: Path | bytes) -> Any:
    if isinstance(content, bytes):
        return io.BytesIO(content)
    return pa.input_stream(str(content), compression="detect")


def _read_csv(content: Path | bytes, text: Collection[str]) -> tuple[pa.Table, list[Malformed]]:
    # Only an empty field is null: the word NA may be a name.
    convert = pyarrow.csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types=dict.fromkeys(text, pa.string()),
    )
    malformed: list[Malformed] = []
    try:
        table = pyarrow.csv.read_csv(_open(content), convert_options=convert)
    except pa.ArrowInvalid as error:
        if "CSV parse error" not in str(error):
            raise

        def refuse(row: Any) -> str:
            # The header is row 1.
            reason = f"{row.actual_columns} fields where {row.expected_columns} are expected"
            malformed.append((row.number - 2, row.text, reason))
            return "skip"

        table = pyarrow.csv.read_csv(
            _open(content),
            # Rows are only numbered when they are read by one thread.
            read_options=pyarrow.csv.ReadOptions(use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(invalid_row_handler=refuse),
            convert_options=convert,
        )
    return _in_microseconds(table), malformed


def _read_json(content: Path | bytes, text: Collection[str]) -> tuple[pa.Table, list[Malformed]]:
    malformed: list[Malformed] = []
    with _open(content) as stream:
        data = stream.read()
    try:
        table = pyarrow.json.read_json(io.BytesIO(data))
        moments = [f for f in table.schema if pa.types.is_timestamp(f.type)]
        if moments:
            # Arrow drops their zones, so they are read as text first.
            texts = pa.schema([f.with_type(pa.string()) for f in moments])
            again = pyarrow.json.read_json(
                io.BytesIO(data), parse_options=pyarrow.json.ParseOptions(explicit_schema=texts)
            )
            table = again.select(table.column_names)
    except pa.ArrowInvalid:
        # An array of objects, a broken line, or a column of mixed types: slower, but more patient.
        rows, malformed = _json_objects(data)
        table = _table_of(rows)
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and field.name not in text:
            times = to_times(table.column(index))
            found = pa.types.is_timestamp(times.values.type) and times.values.null_count < len(table)
            if found and not times.bad.any():
                table = table.set_column(index, field.name, times.values)
    return _in_microseconds(table), malformed


def _json_objects(data: bytes) -> tuple[list[dict[str, Any]], list[Malformed]]:
    rows: list[dict[str, Any]] = []
    malformed: list[Malformed] = []
    if data.lstrip()[:1] == b"[":
        try:
            values = json.loads(data)
        except json.JSONDecodeError as error:
            raise InputError(f"the JSON array is broken: {error}") from error
        texts = (json.dumps(value) for value in values)
    else:
        values = []
        texts = (line for line in data.decode().splitlines() if line.strip())
    for number, line in enumerate(texts):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            malformed.append((number, line, f"not JSON: {error.msg}"))
            continue
        if isinstance(value, dict):
            rows.append(value)
        else:
            malformed.append((number, line, "not a JSON object"))
    return rows, malformed


def _table_of(rows: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns.append(pa.array(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns.append(pa.array([v if v is None or isinstance(v, str) else json.dumps(v) for v in values]))
    return pa.table(dict(zip(names, columns)))


def _in_microseconds(table: pa.Table) -> pa.Table:
    """Text holds no type of timestamp, so what was inferred (seconds or nanoseconds) is brought to microseconds."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit != "us":
            column = pc.cast(table.column(index), pa.timestamp("us", tz=field.type.tz), safe=False)
            table = table.set_column(index, field.name, column)
    return table
