"""The blocks of rows of a file of any format; the values in directory names become additional columns."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.errors import InputError
from cerflow.files.csv_blocks import csv_blocks
from cerflow.files.encodings import Content, path_of
from cerflow.files.json_blocks import json_blocks
from cerflow.files.raw_rows import Block
from cerflow.files.sources import InputFormat, Source, partition_values, refuse_double


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
