"""Events of files as a table, for Python: as the command line reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath

import pyarrow as pa

from cerflow.engine.events.records import BadRecordPolicy
from cerflow.errors import ArgumentError, BadRecordError, InputError, nearest
from cerflow.files.column_types import ColumnType, type_named
from cerflow.files.input_plans import ColumnRoles
from cerflow.files.reading import read_inputs
from cerflow.files.sources import InputFormat, source_of
from cerflow.schema import UNTYPED
from cerflow.stream_inputs import Input

_Path = str | PathLike[str]


def read_events(
    path_or_paths: _Path | Sequence[_Path],
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    column_types: Mapping[str, ColumnType] | None = None,
    type: str | None = "type",
    time: str | None = None,
    on_bad_record: BadRecordPolicy = "fail",
) -> pa.Table:
    """The events of files of CSV, JSON, Parquet or ORC, read as ``cerflow run`` reads them.

    A path is that of a file, a directory of files, or a pattern; compressed files (``.gz``, ``.bz2``, ``.zst``,
    ``.lz4``) are unpacked. ``format`` (``"csv"``, ``"json"``, ``"parquet"``, ``"orc"``) follows from the name unless it
    is given; ``encoding`` is that of CSV and JSON. ``column_types`` gives the types of columns (``"text"``,
    ``"integer"``, ``"float"``, ``"timestamp"``, ``"boolean"``) that must not follow from their values:
    ``column_types={"zip": "text"}`` keeps 00501 and 501 apart. ``type`` and ``time`` name the columns with these roles;
    with ``type=None``, and without a column ``"type"``, events have no types.

    ``on_bad_record`` is ``"fail"``, ``"skip"``, or a function that gets tables of the rows that cannot be used, with
    the columns ``row``, ``reason``, ``text`` (the line, if it could not be split) and the attributes as text.

    Raises `InputError` for files that cannot be read, and `BadRecordError` for the first row that cannot be used.

    >>> cerflow.read_events("ticks.csv", time="at")  # doctest: +SKIP
    """
    if not callable(on_bad_record) and on_bad_record not in ("fail", "skip"):
        raise ArgumentError(f"on_bad_record must be 'fail', 'skip' or a callable, not {on_bad_record!r}")
    if format is not None and format not in list(InputFormat):
        near = nearest(format, list(InputFormat))
        hint = f"; did you mean '{near}'?" if near else ""
        raise InputError(f"there is no format '{format}'{hint}; the formats are {', '.join(InputFormat)}")
    paths = [path_or_paths] if isinstance(path_or_paths, str | PathLike) else list(path_or_paths)
    if not paths:
        raise InputError("there is no path to read events from")
    types = {name: type_named(kind) for name, kind in (column_types or {}).items()}
    chosen = InputFormat(format) if format is not None else None
    sources = [source_of(fspath(path), chosen, encoding, types) for path in paths]
    events = read_inputs([Input(source) for source in sources], ColumnRoles(UNTYPED if type is None else type, time))
    if events.refused is not None:
        if callable(on_bad_record):
            on_bad_record(events.refused)
        elif on_bad_record == "fail":
            raise BadRecordError(*(events.refused.column(name)[0].as_py() for name in ("row", "reason")))
    return events.table
