"""The Parquet files of some paths, in order, on any filesystem that Arrow knows, and the columns in their footers."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.base.graphs import gathered

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class DataFile:
    """A file as it was found: ``root`` is a URI of its filesystem ("" for local files), ``path`` its place there.

    ``size`` (bytes) and ``changed`` (nanoseconds since the epoch, 0 where that is not known) tell whether it is still
    the same when it is read. ``constants`` are the values of directories called ``name=value`` above it. With ``part``,
    a range of bytes, only the row groups whose middle lies there belong to it, as Spark divides files.
    """

    root: str
    path: str
    size: int
    changed: int
    constants: tuple[tuple[str, str | None], ...] = ()
    part: tuple[int, int] | None = None


def find_files(paths: Sequence[str]) -> list[DataFile]:
    """The files of paths: files, directories and patterns, each with or without the scheme of a filesystem.

    They come in the order of the paths; files of a directory or pattern come in the order of their names. Names in a
    directory that begin with ``_`` or ``.`` are left out, as is usual. Raises `InputError` for missing files.
    """
    found = [file for path in paths for file in _found(path)]
    if not found:
        raise InputError(f"there are no Parquet files in '{paths[0]}'")
    return found


def _found(path: str) -> Iterator[DataFile]:
    root, base, pattern = _placed(path)
    system = filesystem_of(root)
    if pattern is None:
        found = [system.get_file_info(base)]
    else:
        found = [info for info in _matching(system, base, pattern) if not _hidden(info.base_name)]
    if not found or found[0].type == fs.FileType.NotFound:
        raise InputError(f"nothing matches '{path}'" if pattern else f"there is no file '{path}'")
    for info in found:
        yield from _below(system, root, info)


def _below(system: fs.FileSystem, root: str, info: fs.FileInfo) -> Iterator[DataFile]:
    if info.type != fs.FileType.Directory:
        yield DataFile(root, info.path, info.size, info.mtime_ns or 0)
        return
    # Tasks, which find no files, do without this.
    from cerflow.files.sources import values_of_directories

    below = system.get_file_info(fs.FileSelector(info.path, recursive=True))
    for file in sorted(below, key=lambda f: f.path):
        steps = file.path[len(info.path) :].strip("/").split("/")
        if file.type == fs.FileType.File and not any(map(_hidden, steps)):
            values = tuple(values_of_directories(steps[:-1]).items())
            yield DataFile(root, file.path, file.size, file.mtime_ns or 0, values)


def _hidden(name: str) -> bool:
    return name.startswith((".", "_")) and "=" not in name


def _placed(path: str) -> tuple[str, str, str | None]:
    """A path as the URI of its filesystem, where it begins there, and the pattern if it is one."""
    if "://" not in path and not path.startswith("file:"):
        whole = os.path.abspath(path)
        wild = glob.has_magic(path) and not os.path.exists(whole)
        return "", whole, whole if wild else None
    fixed = re.split(r"[*?\[]", path, maxsplit=1)[0]
    known = fixed if fixed == path else fixed[: fixed.rfind("/")]
    try:
        _, base = fs.FileSystem.from_uri(known)
    except (pa.ArrowInvalid, OSError, NotImplementedError) as error:
        raise InputError(f"cannot open '{path}': {error}") from error
    pattern = None if fixed == path else base + path[len(known) :]
    return ("" if path.startswith("file:") else known), base, pattern


def _matching(system: fs.FileSystem, base: str, pattern: str) -> list[fs.FileInfo]:
    if isinstance(system, fs.LocalFileSystem):
        return list(system.get_file_info(sorted(glob.glob(pattern))))
    depth = pattern.count("/")
    infos = system.get_file_info(fs.FileSelector(base, recursive=True))
    # A star stands for a part of one name.
    fitting = [
        info
        for info in infos
        if info.path.count("/") == depth and all(map(fnmatchcase, info.path.split("/"), pattern.split("/")))
    ]
    return sorted(fitting, key=lambda info: info.path)


@lru_cache(maxsize=16)
def filesystem_of(root: str) -> fs.FileSystem:
    """The filesystem of a `DataFile`."""
    return fs.FileSystem.from_uri(root)[0] if root else fs.LocalFileSystem()


def each(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The function of all items, several at a time: they wait for files."""
    if len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(limits.FOOTERS_AT_ONCE, len(items))) as pool:
        return list(pool.map(function, items))


@lru_cache(maxsize=64)
def metadata_of(file: DataFile) -> pq.FileMetaData:
    """The footer of a file; raises `InputError` if it is not a Parquet file."""
    try:
        return pq.read_metadata(file.path, filesystem=filesystem_of(file.root))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"cannot read '{file.path}' as Parquet: {error}") from error


def opened(file: DataFile, dictionaries: Sequence[str]) -> pq.ParquetFile:
    """A file to be read, with some columns of text as dictionaries; raises `InputError` if it has changed."""
    system = filesystem_of(file.root)
    info = system.get_file_info(file.path)
    if (info.size, info.mtime_ns or 0) != (file.size, file.changed):
        raise InputError(f"'{file.path}' has changed since it was planned to read it; load it again")
    local = isinstance(system, fs.LocalFileSystem)
    footer = metadata_of(file)
    there = {footer.schema.column(k).path for k in range(len(footer.schema.names))}
    return pq.ParquetFile(
        file.path,
        filesystem=system,
        metadata=footer,
        read_dictionary=[name for name in dictionaries if name in there],
        memory_map=local,
        # Far away, the pieces of a row group are fetched together.
        pre_buffer=not local,
        coerce_int96_timestamp_unit="us",
    )


def columns_of(files: Sequence[DataFile]) -> tuple[pa.Schema, bool]:
    """The columns of all files, in the types in which they are read, and whether all files have the same.

    Those that a file lacks are null there. Raises `InputError` if the files do not go together.
    """
    footers = each(metadata_of, files)
    schemas = dict.fromkeys(_readable(footer) for footer in footers)
    try:
        whole = pa.unify_schemas(list(schemas), promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the files do not have the same columns: {error}") from error
    for name, values in gathered(pair for file in files for pair in file.constants).items():
        if name not in whole.names:
            whole = whole.append(pa.field(name, _type_of([value for value in values if value is not None])))
    return whole, len(schemas) == 1


def _readable(footer: pq.FileMetaData) -> pa.Schema:
    schema = footer.schema.to_arrow_schema()
    instants = {
        footer.schema.column(k).path
        for k in range(len(footer.schema.names))
        if footer.schema.column(k).physical_type == "INT96"
    }
    fields = []
    for field in schema:
        data_type = field.type
        if pa.types.is_dictionary(data_type):
            data_type = data_type.value_type
        if pa.types.is_string_view(data_type) or pa.types.is_large_string(data_type):
            data_type = pa.string()
        if field.name in instants:
            # The old timestamps of Spark and Hive are points in time.
            data_type = pa.timestamp("us", "UTC")
        fields.append(pa.field(field.name, data_type))
    return pa.schema(fields)


def _type_of(values: Sequence[str]) -> pa.DataType:
    for convert, data_type in ((int, pa.int64()), (date.fromisoformat, pa.date32())):
        with suppress(ValueError):
            for value in values:
                convert(value)
            return data_type
    return pa.string()
