"""What ``--input`` names: files, directories of files, standard input; and the format of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cerflow.errors import InputError

__all__ = ["STANDARD_INPUT", "InputFormat", "Source", "parse_source", "stem"]

STANDARD_INPUT = "-"

_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")
_NAMED = re.compile(r"([^\W\d]\w*)=(.+)", re.DOTALL)


class InputFormat(StrEnum):
    """Formats of input files; JSON is one object a line, or one array of objects."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ORC = "orc"


_SUFFIXES = {
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

    ``path`` is what the user wrote; standard input is the path ``-`` and has no files.
    """

    path: str
    format: InputFormat
    files: tuple[Path, ...]
    name: str | None = None


def parse_source(text: str, input_format: InputFormat | None = None) -> Source:
    """The source that ``PATH`` or ``name=PATH`` names.

    The format follows from the suffix unless it is given. Raises InputError if there is no such file or directory, or
    if the format is unknown.
    """
    path, name = text, None
    named = _NAMED.fullmatch(text)
    # A path may have a sign of equality itself, as partitioned directories do.
    if named and not Path(text).exists():
        name, path = named.groups()
    if path == STANDARD_INPUT:
        if input_format is None:
            raise InputError("the format of standard input must be given with --input-format")
        return Source(path, input_format, (), name)
    files = _files(Path(path))
    return Source(path, input_format or _format_of(path, files[0]), files, name)


def stem(source: Source) -> str:
    """The name of a stream without a given name: that of its file without suffixes."""
    return Path(source.path).name.split(".")[0] if source.path != STANDARD_INPUT else "stdin"


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_dir():
        # Names with a dot or an underscore in front are by-products of the writers, such as _SUCCESS.
        found = (f for f in sorted(path.rglob("*")) if f.is_file())
        files = tuple(f for f in found if not any(p[0] in "._" for p in f.relative_to(path).parts))
        if not files:
            raise InputError(f"the directory '{path}' has no files to read")
        return files
    if not path.exists():
        raise InputError(f"there is no file or directory '{path}'")
    return (path,)


def _format_of(path: str, first: Path) -> InputFormat:
    suffixes = [s.lower() for s in first.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise InputError(
            f"the format of '{path}' does not follow from its name; "
            f"say --input-format {'|'.join(f.value for f in InputFormat)}"
        )
    return found
