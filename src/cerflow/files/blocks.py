"""The blocks of rows of a file of any format; values in directory names become additional columns.

The columns of CSV are all text: a header, then a row a line or, within quotes, several. An empty field is null, ``""``
is an empty string, and blank lines are not rows. Large files of text are cut into pieces that can be read in parallel:
at line ends, if these are row ends.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet

from cerflow.base import limits
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError
from cerflow.files import raw_rows as raw
from cerflow.files.conversion import byte_range
from cerflow.files.json_blocks import json_blocks
from cerflow.files.sources import COMPRESSIONS, InputFormat, Source, partition_values


def contents(source: Source) -> list[raw.FilePart]:
    """The files of a source; what comes by standard input is read."""
    if source.files:
        return [raw.FilePart(file) for file in source.files]
    return [raw.FilePart(data=list(iter(lambda: sys.stdin.buffer.read(limits.READ_BYTES), b"")))]


def read_blocks(
    source: Source, content: raw.FilePart, as_text: Collection[str] = (), only: Callable[[pa.Field], bool] | None = None
) -> Iterator[raw.Block]:
    """The rows of a file, in order.

    CSV has columns of text; of JSON values in the columns ``as_text`` are JSON text, unless they are strings; of
    Parquet and ORC ``only`` some columns are read. Raises InputError if the file cannot be read at all.
    """
    path = content.path
    with reading(content.name, source.format):
        if source.format is InputFormat.CSV:
            found = csv_blocks(content, source.encoding, source.delimiter)
        elif source.format is InputFormat.JSON:
            found = json_blocks(content, source.encoding, as_text)
        else:
            schema, number, read = _opened(
                source, pa.BufferReader(b"".join(content.data)) if path is None else str(path)
            )
            names = None if only is None else [field.name for field in schema if only(field)]
            whole = read(range(content.begin, number if content.end is None else content.end), names)
            found = iter([raw.Block(whole, np.arange(len(whole)))])
        for block in found:
            yield block if path is None else replace(block, table=_with_partitions(block.table, source, path))


def schema_of_file(source: Source, file: Path) -> pa.Schema:
    """The columns of a Parquet or ORC file, with those that its directories give; raises InputError."""
    with reading(file, source.format):
        nothing = _opened(source, str(file))[0].empty_table()
    return _with_partitions(nothing, source, file).schema


def _with_partitions(table: pa.Table, source: Source, file: Path) -> pa.Table:
    """The table of a file with the columns that its directories give, which could have other values in the file."""
    for name, value in partition_values(source, file).items():
        if name in table.column_names:
            raise InputError(f"the column '{name}' is in {file} and in the name of its directory too")
        table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), len(table)))
    return table


@contextmanager
def reading(name: object, kind: InputFormat) -> Iterator[None]:
    """Turn what a library says of a file that it cannot read into an InputError."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        # Arrow's messages may run over several lines, the first says it.
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"cannot read {name} as {kind.value}: {first}") from error


def _opened(source: Source, file: Any) -> tuple[pa.Schema, int, Callable[[range, list[str] | None], pa.Table]]:
    """The columns of a Parquet or ORC file, the number of its row groups or stripes, and what reads some of them."""
    if source.format is InputFormat.PARQUET:
        parquet = pyarrow.parquet.ParquetFile(file)
        return parquet.schema_arrow, parquet.num_row_groups, parquet.read_row_groups
    orc = pyarrow.orc.ORCFile(file)

    def stripes(numbers: range, names: list[str] | None) -> pa.Table:
        found = [orc.read_stripe(number, names or None) for number in numbers]
        return pa.Table.from_batches(found) if found else orc.schema.empty_table()

    return orc.schema, orc.nstripes, stripes


def cut_file(source: Source, file: Path) -> list[raw.FilePart]:
    """A file in pieces of whole rows, or as a whole if it is small or cannot be cut.

    Files that are compressed, in another encoding than UTF-8, or a JSON array cannot be cut. If `has_quotes` of any
    piece of CSV, rows may have line breaks in them, and the file must be read as a whole.
    """
    size = file.stat().st_size
    whole = [raw.FilePart(file)]
    if size <= limits.FILE_PIECE_BYTES:
        return whole
    if not source.has_no_schema:
        with reading(file, source.format):
            number = _opened(source, str(file))[1]
        cuts = [*range(0, number, max(1, number * limits.FILE_PIECE_BYTES // size)), number]
        return [raw.FilePart(file, a, b) for a, b in pairwise(cuts)] or whole
    if source.encoding != "utf-8" or file.suffix.lower() in COMPRESSIONS:
        return whole
    with file.open("rb") as stream:
        head = _head(stream.read(limits.FILE_HEAD_BYTES), source.format)
        if head is None:
            return whole
        places = range(limits.FILE_PIECE_BYTES, size, limits.FILE_PIECE_BYTES)
        cuts = [0, *(_line_after(stream, place) for place in places), size]
    return [raw.FilePart(file, a, b, head if a else b"") for a, b in pairwise(cuts) if a < b]


def has_quotes(piece: raw.FilePart) -> bool:
    """Whether there is a quotation mark in a piece of a file."""
    return any(b'"' in data for data in raw.unpacked_bytes(piece))


def _head(beginning: bytes, kind: InputFormat) -> bytes | None:
    """The header of CSV, nothing for JSON; None if the file cannot be cut."""
    if kind is InputFormat.JSON:
        first = beginning.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        return b"" if first not in (b"", b"[") else None
    header = beginning[: beginning.find(b"\n") + 1]
    names = header.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    # Blank lines before the header, and lines that end at a carriage return alone, are left to the reader of files.
    return header if names and b"\r" not in names else None


def _line_after(stream: BinaryIO, place: int) -> int:
    """Where the first line begins that does not begin before a place."""
    stream.seek(place - 1)
    while (line := stream.readline(limits.READ_BYTES)) and not line.endswith(b"\n"):
        pass
    return stream.tell()


def csv_blocks(content: raw.FilePart, encoding: str, delimiter: str = ",") -> Iterator[raw.Block]:
    """The blocks of a file; none if it is empty, and one without rows if there is only a header."""
    advice = raw.wrong_encoding(content, encoding)
    problem = f"of {content.name} is not {encoding}"
    names: list[str] = []
    pieces = raw.RowPieces(content, encoding, "csv", delimiter)
    for piece in pieces:
        begin = 0
        if not names and piece.strip(b"\r\n"):
            begin = len(raw.header_of(piece, delimiter.encode()))
            try:
                names = _read_csv(piece[:begin], delimiter).column_names
            except pa.ArrowInvalid as error:
                # It has a quotation mark that is not closed.
                raise pieces.too_long() from error
            if any(re.search(raw.MARKS, one) for one in names):
                raise pieces.error(f"the header is not {encoding}; {advice}")
            double = next((n for n in names if names.count(n) > 1), None)
            if double is not None:
                raise pieces.error(f"the header has the column '{double}' more than once")
        rows = piece[begin:]
        if names and rows.strip(b"\r\n"):
            block = _csv_block(rows, delimiter, names, pieces.done, problem, advice)
            pieces.done += len(block.rows) + len(block.malformed)
            yield block
    if names and not pieces.done:
        yield raw.Block(pa.table({name: pa.array([], pa.string()) for name in names}), np.array([], np.int64))


def _read_csv(data: bytes, delimiter: str, names: list[str] | None = None, refuse: Any = None) -> pa.Table:
    return pyarrow.csv.read_csv(
        pa.BufferReader(data),
        # Rows are only numbered when they are read by one thread.
        pyarrow.csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse),
        # Only an empty field is null: the word NA may be a name.
        pyarrow.csv.ConvertOptions(
            check_utf8=False,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types=dict.fromkeys(names or (), pa.string()),
        ),
    )


def _csv_block(data: bytes, delimiter: str, names: list[str], number: int, problem: str, advice: str) -> raw.Block:
    malformed: list[raw.Malformed] = []

    def refuse(row: Any) -> str:
        reason = f"{row.actual_columns} fields where {row.expected_columns} are expected"
        malformed.append((number + row.number - 1, raw.readable_text(row.text), reason))
        return "skip"

    table = _read_csv(data, delimiter, names, refuse)
    rows = np.arange(number, number + len(table) + len(malformed))
    rows = np.setdiff1d(rows, [row for row, _, _ in malformed]) if malformed else rows
    columns: dict[str, pa.Array] = {}
    spoilt: dict[int, list[str]] = {}
    for name, column in zip(names, table.columns):
        columns[name], wrong = _checked(one_array(column))
        for place in wrong:
            spoilt.setdefault(place, []).append(f"{name} {problem}: '{columns[name][place].as_py()}'; {advice}")
    last = columns[names[-1]][-1].as_py() if len(table) else None
    broken = last is not None and ("\n" in last or "\r" in last)
    open_ended = broken and raw.end_of_rows(data, delimiter.encode()) < len(data)
    if open_ended and not data.rstrip(b"\r\n").endswith(b'"'):
        spoilt.setdefault(len(table) - 1, []).append("a quotation mark is opened and never closed")
    return raw.Block(pa.table(columns), rows, spoilt, malformed)


def _checked(column: pa.Array) -> tuple[pa.Array, list[int]]:
    """Text, and the places of what could not be decoded (which is shown as it can be)."""
    # Nearly always a look at the bytes is enough.
    if byte_range(column)[1] < raw.MARK_BYTES[0]:
        return column, []
    wrong = np.flatnonzero(pc.match_substring_regex(column, raw.MARKS).fill_null(False).to_numpy(zero_copy_only=False))
    if not len(wrong):
        return column, []
    return pa.array([v if v is None else raw.readable_text(v) for v in column.to_pylist()], pa.string()), wrong.tolist()
