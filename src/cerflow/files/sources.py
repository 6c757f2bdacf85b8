"""The sources that ``--input`` names: files, directories of files, standard input; and the format of each."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypedDict
from urllib.parse import unquote

import pyarrow as pa

from cerflow.base.errors import InputError
from cerflow.files.conversion import USUAL, Notation, notation_of
from cerflow.files.raw_rows import delimiter_named, encoding_named

STANDARD_INPUT = "-"

#: Suffixes of compressed files, after that of the format, and how many times larger their rows usually are.
COMPRESSIONS = {".gz": 8, ".bz2": 10, ".zst": 8, ".lz4": 4}
#: The name of null in partitioned directories.
_NULL = "__HIVE_DEFAULT_PARTITION__"


class InputFormat(StrEnum):
    """Formats of input files; JSON is one object a line, or one array of objects."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ORC = "orc"


#: The suffixes of each format.
SUFFIXES = {
    ".csv": InputFormat.CSV,
    ".json": InputFormat.JSON,
    ".jsonl": InputFormat.JSON,
    ".ndjson": InputFormat.JSON,
    ".parquet": InputFormat.PARQUET,
    ".pq": InputFormat.PARQUET,
    ".orc": InputFormat.ORC,
}


@dataclass(frozen=True)
class Source:
    """One ``--input``: its files in the order they are read, their format, and the name of the stream, if given.

    ``path`` is what the user wrote; standard input is the path ``-`` and has no files. ``root`` is the directory
    below which names of directories like ``day=1`` say more of the events in them (`partition_values`). ``encoding``
    is that of CSV and JSON, ``delimiter`` separates the columns of CSV, ``notation`` is that of numbers and times in
    text; ``column_types`` are the types of columns that the user has given.
    """

    path: str
    format: InputFormat
    files: tuple[Path, ...]
    name: str | None = None
    root: Path | None = None
    encoding: str = "utf-8"
    delimiter: str = ","
    notation: Notation = USUAL
    column_types: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def has_no_schema(self) -> bool:
        """Whether the types of columns follow from their values."""
        return self.format in (InputFormat.CSV, InputFormat.JSON)


def named_path(text: str) -> tuple[str | None, str]:
    """The name and the path of ``PATH`` or ``name=PATH``."""
    name, _, path = text.partition("=")
    # A path may have a sign of equality itself, as partitioned directories do.
    return (name, path) if path and name.isidentifier() and not Path(text).exists() else (None, text)


class TextForm(TypedDict, total=False):
    """How text is read: fields of `Source`."""

    encoding: str
    delimiter: str
    notation: Notation


def text_form(
    encoding: str = "utf-8", delimiter: str = ",", decimal_point: str = ".", time_format: str | None = None
) -> TextForm:
    """How text is read, by words of users; raises InputError."""
    notation = notation_of(decimal_point, time_format)
    return TextForm(encoding=encoding_named(encoding), delimiter=delimiter_named(delimiter), notation=notation)


def parse_source(text: str, input_format: InputFormat | None = None, form: TextForm | None = None) -> Source:
    """The source that ``PATH`` or ``name=PATH`` names.

    The format follows from the suffix unless it is given. Raises InputError if there is no such file or directory, or
    if the format is unknown.
    """
    name, path = named_path(text)
    if path == STANDARD_INPUT:
        if input_format is None:
            raise InputError("the format of standard input must be given with --input-format")
        return Source(path, input_format, (), name, **form or {})
    return source_of(path, input_format, form, name=name)


def source_of(
    path: str,
    input_format: InputFormat | None = None,
    form: TextForm | None = None,
    column_types: Mapping[str, pa.DataType] | None = None,
    *,
    name: str | None = None,
) -> Source:
    """The source at a path, which may be a file, a directory or a pattern; raises InputError as `parse_source`."""
    try:
        root, files = _files(path)
    except OSError as error:  # a name that is too long, a directory that is closed
        raise InputError(f"'{path}' cannot be read: {error.strerror}") from error
    chosen = input_format or _format_of(path, files[0])
    return Source(path, chosen, files, name, root, column_types=column_types or {}, **form or {})


def source_name(source: Source) -> str:
    """The name of the stream that an input is: the one given, else that of its file without suffixes."""
    return source.name or (Path(source.path).name.split(".")[0] if source.path != STANDARD_INPUT else "stdin")


def partition_values(source: Source, file: Path) -> dict[str, str | None]:
    """The columns that the directories of a file give: ``day=2024-03-15/hour=7/…`` gives two, of text."""
    if source.root is None or source.root not in file.parents:
        return {}
    return values_of_directories(file.relative_to(source.root).parts[:-1])


def values_of_directories(names: Iterable[str]) -> dict[str, str | None]:
    """The values of directories that are called ``name=value``, as Hive and Spark write them."""
    parts = (name.partition("=") for name in names)
    return {unquote(name): None if value == _NULL else unquote(value) for name, equals, value in parts if equals}


def is_hidden(path: Path) -> bool:
    """Whether a dot or an underscore begins a name: by-products of writers, such as _SUCCESS, are not read."""
    return any(name[0] in "._" for name in path.parts)


def _files(path: str) -> tuple[Path | None, tuple[Path, ...]]:
    """The root and the files of a path, which may be a pattern if there is nothing of that very name."""
    if Path(path).exists():
        return _below(Path(path))
    if not glob.has_magic(path):
        raise InputError(f"there is no file or directory '{path}'")
    found = [Path(one) for one in sorted(glob.glob(path, recursive=True))]
    files = tuple(dict.fromkeys(file for one in found for file in _below(one)[1]))
    if not files:
        raise InputError(f"no file or directory matches '{path}'")
    fixed = Path(path).parts
    first = next(k for k, part in enumerate(fixed) if glob.has_magic(part))
    return Path(*fixed[:first]), files


def _below(path: Path) -> tuple[Path | None, tuple[Path, ...]]:
    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"'{path}' is a pipe or a device; read it by standard input: --input - < {path}")
        return None, (path,)
    files = tuple(f for f in sorted(path.rglob("*")) if f.is_file() and not is_hidden(f.relative_to(path)))
    if not files:
        raise InputError(f"the directory '{path}' has no files to read")
    return path, files


def _format_of(path: str, first: Path) -> InputFormat:
    named = first.with_suffix("") if first.suffix.lower() in COMPRESSIONS else first
    found = SUFFIXES.get(named.suffix.lower())
    if found is None:
        raise InputError(
            f"the format of '{path}' is not clear from its name; "
            f"say --input-format {'|'.join(f.value for f in InputFormat)}"
        )
    return found
