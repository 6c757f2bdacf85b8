"""Which files of an input Spark may read at once: those whose columns are the same, or it would mix them up."""

from __future__ import annotations

import csv
from collections.abc import Hashable
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.cli.sources import InputFormat, Source, partition_values
from cerflow.errors import InputError

__all__ = ["file_groups", "is_array"]


def file_groups(source: Source, *, together: bool) -> list[tuple[Path, ...]]:
    """The files of a source in groups that have the same columns; unless ``together``, each file by itself.

    Spark reads several files in an order of its own, so they can only be read together if a time orders the events.
    Raises InputError for files that cannot be read.
    """
    groups: dict[Hashable, list[Path]] = {}
    for number, file in enumerate(source.files):
        below = tuple(partition_values(source, file))
        groups.setdefault((below, _columns(file, source.format), 0 if together else number), []).append(file)
    return [tuple(files) for files in groups.values()]


def is_array(file: Path) -> bool:
    """Whether a JSON file is one array, which Spark must be told."""
    with pa.input_stream(str(file), compression="detect") as stream:
        return bool(stream.read(1024).lstrip()[:1] == b"[")


def _columns(file: Path, input_format: InputFormat) -> Hashable:
    """What tells the columns of a file apart from those of others."""
    try:
        if input_format is InputFormat.PARQUET:
            schema = pyarrow.parquet.read_schema(file)
        elif input_format is InputFormat.ORC:
            schema = pyarrow.orc.ORCFile(file).schema
        elif input_format is InputFormat.JSON:
            return is_array(file)
        else:
            return _header(file)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"cannot read {file} as {input_format.value}: {str(error).splitlines()[0]}") from error
    return tuple((column.name, str(column.type)) for column in schema)


def _header(file: Path) -> tuple[str, ...]:
    line = b""
    with pa.input_stream(str(file), compression="detect") as stream:
        while b"\n" not in line:
            more = stream.read(1 << 16)
            if not more:
                break
            line += more
    names = next(csv.reader([line.split(b"\n")[0].decode("utf-8-sig")]), [])
    if not names:
        raise InputError(f"cannot read {file} as csv: it is empty")
    return tuple(names)
