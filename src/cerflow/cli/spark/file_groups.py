"""Groups the files of an input that Spark may read together: those with the same columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from cerflow.errors import InputError
from cerflow.files.sources import InputFormat, Source, partition_values, refuse_double


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
    try:
        if input_format is InputFormat.PARQUET:
            schema = pyarrow.parquet.read_schema(file)
        else:
            schema = pyarrow.orc.ORCFile(file).schema
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {file} as {input_format.value}: {str(error).splitlines()[0]}") from error
    return schema.names, tuple((column.name, str(column.type)) for column in schema)
