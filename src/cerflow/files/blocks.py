"""The blocks of rows of a file of any format; values in directory names become additional columns.

Large files of text are cut into pieces that can be read in parallel: at line ends, if these are row ends.
"""

from __future__ import annotations

import codecs
import mmap
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.files.csv_blocks import csv_blocks
from cerflow.files.encodings import FilePart
from cerflow.files.json_blocks import json_blocks
from cerflow.files.raw_rows import Block
from cerflow.files.sources import COMPRESSIONS, InputFormat, Source, partition_values, refuse_double


def contents(source: Source) -> list[FilePart]:
    """The files of a source; what comes by standard input is read."""
    if source.files:
        return [FilePart(file) for file in source.files]
    return [FilePart(data=list(iter(lambda: sys.stdin.buffer.read(limits.READ_BYTES), b"")))]


def read_blocks(
    source: Source, content: FilePart, as_text: Collection[str] = (), only: Callable[[pa.Field], bool] | None = None
) -> Iterator[Block]:
    """The rows of a file, in order.

    CSV has columns of text; of JSON values in the columns ``as_text`` are JSON text, unless they are strings; of
    Parquet and ORC ``only`` some columns are read. Raises InputError if the file cannot be read at all.
    """
    path = content.path
    partitions = {} if path is None else partition_values(source, path)
    with reading(content.name, source.format):
        for block in _blocks(source, content, as_text, only):
            table = block.table
            for column, value in partitions.items():
                table = table.append_column(column, pa.repeat(pa.scalar(value, pa.string()), len(table)))
            if path is not None:
                refuse_double(path, block.table.column_names, partitions)
            yield replace(block, table=table)


def schema_of_file(source: Source, file: Path) -> pa.Schema:
    """The columns of a Parquet or ORC file, with those that its directories give; raises InputError."""
    partitions = partition_values(source, file)
    with reading(file, source.format):
        schema = _opened(source, str(file))[0]
    refuse_double(file, schema.names, partitions)
    return pa.schema([*schema, *((name, pa.string()) for name in partitions)])


@contextmanager
def reading(name: object, kind: InputFormat) -> Iterator[None]:
    """Turn what a library says of a file that it cannot read into an InputError."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        # Arrow's messages may run over several lines, the first says it.
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"cannot read {name} as {kind.value}: {first}") from error


def _blocks(
    source: Source, content: FilePart, as_text: Collection[str], only: Callable[[pa.Field], bool] | None
) -> Iterator[Block]:
    if source.format is InputFormat.CSV:
        yield from csv_blocks(content, source.encoding)
    elif source.format is InputFormat.JSON:
        yield from json_blocks(content, source.encoding, as_text)
    else:
        schema, _, read = _opened(
            source, pa.BufferReader(b"".join(content.data)) if content.path is None else str(content.path)
        )
        names = None if only is None else [field.name for field in schema if only(field)]
        table = read(content, names)
        yield Block(table, np.arange(len(table)))


def _opened(source: Source, file: Any) -> tuple[pa.Schema, int, Callable[[FilePart, list[str] | None], pa.Table]]:
    """The columns of a Parquet or ORC file, the number of its row groups or stripes, and what reads some of them."""
    if source.format is InputFormat.PARQUET:
        parquet = pyarrow.parquet.ParquetFile(file)

        def read_groups(content: FilePart, names: list[str] | None) -> pa.Table:
            if content.end is None:
                return parquet.read(names)
            return parquet.read_row_groups(range(content.begin, content.end), names)

        return parquet.schema_arrow, parquet.num_row_groups, read_groups
    orc = pyarrow.orc.ORCFile(file)

    def read_stripes(content: FilePart, names: list[str] | None) -> pa.Table:
        if content.end is None:
            return orc.read(names or None)
        stripes = [orc.read_stripe(number, names or None) for number in range(content.begin, content.end)]
        return pa.Table.from_batches(stripes)

    return orc.schema, orc.nstripes, read_stripes


def cut_file(source: Source, file: Path) -> list[FilePart]:
    """A file in pieces of whole rows, or as a whole if it is small or cannot be cut.

    Files that are compressed, in another encoding than UTF-8, or a JSON array cannot be cut. If `has_quotes` of any
    piece of CSV, rows may have line breaks in them, and the file must be read as a whole.
    """
    size = file.stat().st_size
    whole = [FilePart(file)]
    if size <= limits.FILE_PIECE_BYTES:
        return whole
    if not source.has_no_schema:
        with reading(file, source.format):
            number = _opened(source, str(file))[1]
        cuts = [*range(0, number, max(1, number * limits.FILE_PIECE_BYTES // size)), number]
        return [FilePart(file, a, b) for a, b in pairwise(cuts)] or whole
    if source.encoding != "utf-8" or file.suffix.lower() in COMPRESSIONS:
        return whole
    with file.open("rb") as stream:
        head = _head(stream.read(limits.FILE_HEAD_BYTES), source.format)
        if head is None:
            return whole
        places = range(limits.FILE_PIECE_BYTES, size, limits.FILE_PIECE_BYTES)
        cuts = [0, *(_line_after(stream, place) for place in places), size]
    return [FilePart(file, a, b, head if a else b"") for a, b in pairwise(cuts) if a < b]


def has_quotes(piece: FilePart) -> bool:
    """Whether there is a quotation mark in a piece of a file."""
    with open(str(piece.path), "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b'"', piece.begin, piece.end or len(data)) >= 0


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
