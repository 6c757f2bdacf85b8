"""A sample of a file: the whole file, or the first part of a large one."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from glob import has_magic
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow.dataset import dataset

from cerflow.api.stream_inputs import Input, schema_of, streams
from cerflow.base import limits
from cerflow.base.arrow_columns import with_plain_columns
from cerflow.base.errors import InputError, dotted
from cerflow.base.nested import attribute_named, field_type, nested_names, parts_of
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.base.units import TimeUnit
from cerflow.engine.events.time_order import sort_by_time
from cerflow.files.blocks import read_blocks, schema_of_file
from cerflow.files.raw_rows import FilePart
from cerflow.files.reading import read_events
from cerflow.files.sources import Source, source_of
from cerflow.look.studying.wording import cell, shown_time

#: The sample that the studio brings.
SAMPLE = Path(__file__).with_name("sample.csv")
_TOLD: dict[str, dict[str, str]] = tomllib.loads(SAMPLE.with_suffix(".toml").read_text("utf-8"))
#: What queries find in it, and the queries; what the constructs of the language mean, and what keys do.
QUERIES, CONSTRUCTS, KEYS = _TOLD["queries"], _TOLD["constructs"], _TOLD["keys"]
_TYPE_NAMES = ("type", "event_type", "eventtype", "event", "kind", "name")
_TIME_NAMES = ("time", "timestamp", "ts", "t", "at", "datetime", "event_time", "stock_time")


@dataclass(frozen=True)
class LoadedEvents:
    """Events of a file in the order of their times; ``remarks`` say what is not there, such as the rest of the file.

    They were read from ``source``; ``path`` is what the user knows.

    The events of several files have the names of their ``inputs`` in the column ``stream``. Events have no types if
    ``type`` is None.
    """

    path: Path
    source: Path
    table: pa.Table
    columns: tuple[str, ...]
    type: str | None
    time: str | None
    time_unit: TimeUnit | None
    remarks: tuple[str, ...] = ()
    stream: str | None = None
    inputs: Mapping[str, LoadedEvents] = field(default_factory=dict)

    @property
    def roles(self) -> dict[str, Any]:
        """The columns with a role, as `Query.match` takes them."""
        given = {"time": self.time, "time_unit": self.time_unit, "stream": self.stream}
        return {"type": self.type} | {name: value for name, value in given.items() if value is not None}

    @property
    def title(self) -> str:
        """The names of the files, and of the inputs if there are several."""
        return ", ".join(f"{name}={one.path.name}" for name, one in self.inputs.items()) or self.path.name

    @cached_property
    def schema(self) -> Schema:
        """The columns of the events."""
        return schema_of(self.table.schema, **self.roles)

    @cached_property
    def extent(self) -> str:
        """The first time and the last, in words."""
        if self.time is None or not self.table.num_rows:
            return ""
        column = self.schema.completed(self.table).column(self.schema.time)
        ends = pc.min_max(column).as_py()
        if ends["min"] is None:
            return ""
        first, last = (shown_time(ends[name], self.time_unit) for name in ("min", "max"))
        return f", from {first} to {last}"

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """For each column its type, how many values are null, how many differ, the least and the greatest."""
        return [
            {"column": name, "kind": _KINDS.get(kind_of(column.type)) or str(column.type).partition("<")[0]}
            | {"nulls": f"{column.null_count:,}"}
            | _measured(column, self.time_unit, name == self.time)
            for name, column in zip(self.table.column_names, with_plain_columns(self.table).columns)
        ]

    @cached_property
    def types(self) -> list[str]:
        """The event types that occur, the most frequent first; none if events have no types."""
        if self.type is None:
            return []
        counts = pc.value_counts(self.schema.completed(self.table).column(self.schema.type)).to_pylist()
        ordered = sorted(counts, key=lambda entry: -entry["counts"])
        return [str(entry["values"]) for entry in ordered[: limits.TYPES_LOOKED_FOR]]


#: Kinds of columns in words; others have the name of their type.
_KINDS = {
    ValueKind.TIMESTAMP: "time",
    ValueKind.INTEGER: "whole number",
    ValueKind.FLOAT: "number",
    ValueKind.DECIMAL: "number",
    ValueKind.STRING: "text",
}


def _measured(column: pa.ChunkedArray, unit: TimeUnit | None, timed: bool) -> dict[str, str]:
    try:
        different = f"{pc.count_distinct(column).as_py():,}"
        ends = pc.min_max(column).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return {}  # lists and structs have no order
    told = {"least": ends["min"], "greatest": ends["max"]}
    shown = {k: shown_time(v, unit) if timed and v is not None else str(cell(v)) for k, v in told.items()}
    return {"different": different, **shown}


def load_events(
    path: Path,
    *,
    type: str | None = None,
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    shown: Path | None = None,
) -> LoadedEvents:
    """The events of a file, or the first part of a large one, or of all files of a folder or a pattern.

    Columns that are not named are guessed by their names; ``""`` stands for none. Without a column of types, events
    have no types. ``shown`` is the name of the file for the user. Raises `InputError` for files that cannot be read.
    """
    try:
        if not path.exists() and not has_magic(str(path)):
            raise InputError(f"there is no file {path}")
        found = source_of(str(path))
        with tempfile.TemporaryDirectory() as folder:
            read, remarks = _beginning(found, Path(folder))
            names = _columns(found)
            chosen = _guess(names, _TYPE_NAMES) if type is None else type or None
            timed = _guess(names, _TIME_NAMES) if time is None else time or None
            refused: list[pa.Table] = []
            table = read_events(read, type=chosen, time=timed, on_bad_record=refused.append)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if refused:
        lost = sum(part.num_rows for part in refused)
        reason = refused[0].column("reason")[0].as_py()
        remarks = [*remarks, f"{lost:,} rows cannot be used and are left out, the first because {reason}"]
    kind = None if timed is None else field_type(table.schema, parts_of(attribute_named(table.schema, timed)))
    if kind is not None and pa.types.is_temporal(kind):
        time_unit = None
    table = sort_by_time(table, timed, None).combine_chunks()
    names += map(dotted, nested_names(table.schema))
    if not table.num_rows:
        raise InputError(f"{shown or path} has no events: its columns are {', '.join(names)}, and no row follows")
    return LoadedEvents(shown or path, path, table, tuple(names), chosen, timed, time_unit, tuple(remarks))


def together(inputs: Mapping[str, LoadedEvents]) -> LoadedEvents:
    """The events of several files as one stream, for queries ``FROM a, b``; raises as `cerflow.streams`."""
    every = {n: Input(e.table, type=e.type, time=e.time, time_unit=e.time_unit) for n, e in inputs.items()}
    read = streams(every)
    roles = read.roles
    table = sort_by_time(read.events, roles.get("time"), None).combine_chunks()
    first, columns = next(iter(inputs.values())), tuple(table.column_names)
    kind = roles["type"] if roles["type"] in columns else None
    remarks = tuple(f"{name}: {remark}" for name, one in inputs.items() for remark in one.remarks)
    joined = replace(first, table=table, columns=columns, type=kind, remarks=remarks, inputs=dict(inputs))
    return replace(joined, time=roles.get("time"), time_unit=roles.get("time_unit"), stream=roles["stream"])


def _guess(names: list[str], likely: tuple[str, ...]) -> str | None:
    return next((name for one in likely for name in names if name.casefold() == one), None)


def _beginning(source: Source, folder: Path) -> tuple[str, list[str]]:
    """What is small enough to be loaded: the given files, or a copy of the first part of one with a remark.

    The files of a folder or a pattern are all loaded, and so have to be small together.
    """
    path, most = source.files[0], limits.STUDIO_BYTES >> 20
    if source.root is not None:
        size = sum(file.stat().st_size for file in source.files)
        if size > limits.STUDIO_BYTES:
            raise InputError(
                f"the {len(source.files):,} files have {size >> 20:,} MB together; the studio loads at most {most} MB"
            )
        return source.path, []
    if not source.has_no_schema:
        data = dataset(path, format=source.format.value)
        rows = data.count_rows()
        if rows <= limits.STUDIO_ROWS:
            return source.path, []
        begin = folder / "beginning.parquet"
        pyarrow.parquet.write_table(data.head(limits.STUDIO_ROWS), begin)
        return str(begin), [f"the file has {rows:,} rows; only the first {limits.STUDIO_ROWS:,} are loaded"]
    with pa.input_stream(source.path, compression="detect") as stream:
        text = stream.read(limits.STUDIO_BYTES)
        if len(text) < limits.STUDIO_BYTES or not stream.read(1):
            return source.path, []
    lines = text[: text.rfind(b"\n") + 1]
    if not lines:
        raise InputError(f"{path} cannot be read: there is no line break in its first {most} MB")
    begin = folder / f"beginning.{source.format.value}"
    begin.write_bytes(lines)
    return str(begin), [f"the file is large, so only its first {most} MB are loaded"]


def _columns(source: Source) -> list[str]:
    """The names of the columns of the first file; raises `InputError` if there are none."""
    if not source.has_no_schema:
        return list(schema_of_file(source, source.files[0]).names)
    reason = "it has no rows"
    for block in read_blocks(source, FilePart(source.files[0])):
        if block.table.column_names:
            return list(block.table.column_names)
        for row, _, wrong in block.malformed[:1]:
            reason = f"row {row}: {wrong}"
    raise InputError(f"{source.path} cannot be read: {reason}")
