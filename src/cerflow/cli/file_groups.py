"""Which files of an input Spark may read at once: those whose columns are the same, or it would mix them up."""

from __future__ import annotations

import csv
import json
from collections.abc import Hashable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.cli.sources import InputFormat, Source, partition_values, refuse_double
from cerflow.errors import InputError

__all__ = ["file_groups", "is_array", "json_names"]

#: As much of a JSON file as is read to see the order of its names.
_GLANCE = 1 << 20


def file_groups(source: Source, *, together: bool) -> list[tuple[Path, ...]]:
    """The files of a source in groups that have the same columns; unless ``together``, each file by itself.

    Spark reads several files in an order of its own, so they can only be read together if a time orders the events.
    Raises InputError for files that cannot be read.
    """
    groups: dict[Hashable, list[Path]] = {}
    for number, file in enumerate(source.files):
        below = tuple(partition_values(source, file))
        names, kind = _columns(file, source.format)
        refuse_double(file, names, below)
        groups.setdefault((below, kind, 0 if together else number), []).append(file)
    return [tuple(files) for files in groups.values()]


def is_array(file: Path) -> bool:
    """Whether a JSON file is one array, which Spark must be told."""
    with pa.input_stream(str(file), compression="detect") as stream:
        return bool(stream.read(1024).lstrip()[:1] == b"[")


def json_names(file: Path) -> list[str]:
    """The names in the first objects of a JSON file, in the order in which they appear; Spark sorts them."""
    with pa.input_stream(str(file), compression="detect") as stream:
        text = stream.read(_GLANCE).decode(errors="replace")
    decoder = json.JSONDecoder()
    names: dict[str, None] = {}
    place = text.find("{")
    while place >= 0:
        try:
            found, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            # The last one, which is not whole, or a broken line.
            place = text.find("\n{", place + 1)
            place += place >= 0
            continue
        names.update(dict.fromkeys(found))
        place = text.find("{", end)
    return list(names)


def _columns(file: Path, input_format: InputFormat) -> tuple[Sequence[str], Hashable]:
    """The names of the columns of a file, and what tells it apart from others that Spark must not mix it up with."""
    try:
        if input_format is InputFormat.PARQUET:
            schema = pyarrow.parquet.read_schema(file)
        elif input_format is InputFormat.ORC:
            schema = pyarrow.orc.ORCFile(file).schema
        elif input_format is InputFormat.JSON:
            return json_names(file), is_array(file)
        else:
            return (header := _header(file)), header
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise InputError(f"cannot read {file} as {input_format.value}: {str(error).splitlines()[0]}") from error
    return schema.names, tuple((column.name, str(column.type)) for column in schema)


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
