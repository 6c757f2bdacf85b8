"""The blocks of rows of a file of any format; values in directory names become additional columns.

Large files of text are cut into pieces that can be read in parallel: at line ends, if these are row ends.
"""

from __future__ import annotations

import codecs
import mmap
import sys
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.files.csv_blocks import csv_blocks
from cerflow.files.encodings import Content, FilePiece, path_of
from cerflow.files.json_blocks import json_blocks
from cerflow.files.raw_rows import Block
from cerflow.files.sources import COMPRESSIONS, InputFormat, Source, partition_values, refuse_double


def contents(source: Source) -> list[Content]:
    """The files of a source; what comes by standard input is read."""
    return list(source.files) if source.files else [sys.stdin.buffer.read()]


def name_of(content: Content) -> str:
    """The name of a file in messages."""
    path = path_of(content)
    return "standard input" if path is None else str(path)


def read_blocks(source: Source, content: Content, as_text: Collection[str]) -> Iterator[Block]:
    """The rows of a file, in order.

    CSV has columns of text; of JSON values in the columns ``as_text`` are JSON text, unless they are strings. Raises
    InputError if the file cannot be read at all.
    """
    name, path = name_of(content), path_of(content)
    partitions = {} if path is None else partition_values(source, path)
    with reading(name, source.format):
        for block in _blocks(source, content, name, as_text):
            table = block.table
            if partitions and path is not None:
                refuse_double(path, table.column_names, partitions)
                for column, value in partitions.items():
                    table = table.append_column(column, pa.repeat(pa.scalar(value, pa.string()), len(table)))
            yield replace(block, table=table)


@contextmanager
def reading(name: object, kind: InputFormat) -> Iterator[None]:
    """Turn what a library says of a file that it cannot read into an InputError."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        # Arrow's messages may run over several lines, the first says it.
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"cannot read {name} as {kind.value}: {first}") from error


def _blocks(source: Source, content: Content, name: str, as_text: Collection[str]) -> Iterator[Block]:
    if source.format is InputFormat.CSV:
        yield from csv_blocks(content, name, source.encoding)
    elif source.format is InputFormat.JSON:
        yield from json_blocks(content, name, source.encoding, as_text)
    else:
        reader = pa.BufferReader(content) if isinstance(content, bytes) else str(content)
        if source.format is InputFormat.PARQUET:
            table = pyarrow.parquet.ParquetFile(reader).read()
        else:
            table = pyarrow.orc.ORCFile(reader).read()
        yield Block(table, np.arange(len(table)))


def cut_file(source: Source, file: Path) -> list[Content]:
    """A file of CSV or JSON cut at line ends, or as a whole if it is small or cannot be cut.

    Files that are compressed, in another encoding than UTF-8, or a JSON array cannot be cut. If `has_quotes` of any
    piece of CSV, rows may have line breaks in them, and the file must be read as a whole.
    """
    size = file.stat().st_size
    if size <= limits.FILE_PIECE_BYTES or source.encoding != "utf-8" or file.suffix.lower() in COMPRESSIONS:
        return [file]
    with file.open("rb") as stream:
        head = _head(stream.read(limits.FILE_HEAD_BYTES), source.format)
        if head is None:
            return [file]
        places = range(limits.FILE_PIECE_BYTES, size, limits.FILE_PIECE_BYTES)
        cuts = [0, *(_line_after(stream, place) for place in places), size]
    return [FilePiece(file, a, b, head if a else b"") for a, b in pairwise(cuts) if a < b]


def has_quotes(piece: FilePiece) -> bool:
    """Whether there is a quotation mark in a piece."""
    with piece.path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b'"', piece.begin, piece.end) >= 0


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


def file_groups(source: Source, *, together: bool) -> list[tuple[Path, ...]]:
    """The Parquet or ORC files of a source, in groups with the same columns; without ``together`` each is a group.

    Spark reads several files in any order, so they can only be read together if a time orders the events.
    Raises InputError for files that cannot be read.
    """
    groups: dict[Hashable, list[Path]] = {}
    for number, file in enumerate(source.files):
        below = tuple(partition_values(source, file))
        names, kind = _columns(file, source.format)
        refuse_double(file, names, below)
        groups.setdefault((below, kind, 0 if together else number), []).append(file)
    return [tuple(files) for files in groups.values()]


def _columns(file: Path, input_format: InputFormat) -> tuple[Sequence[str], Hashable]:
    """The names of the columns of a file, and a value that is equal for files that Spark may read together."""
    with reading(file, input_format):
        parquet = input_format is InputFormat.PARQUET
        schema = pyarrow.parquet.read_schema(file) if parquet else pyarrow.orc.ORCFile(file).schema
    return schema.names, tuple((column.name, str(column.type)) for column in schema)
