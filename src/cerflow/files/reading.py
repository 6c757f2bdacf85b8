"""Reads input files into one table of valid events, and bad rows with the reason into another.

Lines of CSV and JSON from a pipe become events as they arrive; the first lines determine the types of columns.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike, fspath

import numpy as np
import pyarrow as pa

from cerflow.api.stream_inputs import Input, common_schema, fitted_table, free_name, in_common_unit, refuse_partly_typed
from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.errors import ArgumentError, BadRecordError, InputError, nearest
from cerflow.base.schema import UNTYPED, Schema
from cerflow.engine.events.records import BadRecordPolicy
from cerflow.files import input_plans
from cerflow.files.blocks import contents, read_blocks
from cerflow.files.column_types import ColumnType, NoValueFitsError, type_named
from cerflow.files.conversion import plain_text
from cerflow.files.input_plans import ColumnRoles, FileSurvey, InputPlan, SplitRows, survey
from cerflow.files.raw_rows import Block, FilePart, RowPieces
from cerflow.files.sources import InputFormat, Source, source_name, source_of, text_form

_REMEDY = "; types follow from the first lines, --column-type {column}=… gives another"


@dataclass(frozen=True)
class ReadEvents:
    """The events of the inputs as a table.

    ``rows`` numbers the rows of ``table`` in the whole input, from 0; None if nothing was refused. ``refused`` has
    the columns ``row``, ``reason``, ``text`` (the line, if it could not even be split) and the attributes as text.
    ``schema`` says which columns have a role; that of the streams is there if there are several. ``remarks`` are
    sentences about what is probably not meant.
    """

    table: pa.Table
    rows: Ints | None
    refused: pa.Table | None
    schema: Schema
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class InputsPlan:
    """How to read all inputs: the plan of each, and the columns of the table that they become.

    ``roles`` says which of these have a role. ``remarks`` are as in `ReadEvents`.
    """

    plans: tuple[InputPlan, ...]
    schema: pa.Schema
    roles: Schema
    remarks: tuple[str, ...]

    @classmethod
    def of(
        cls,
        inputs: Sequence[Input[Source]],
        columns: ColumnRoles,
        surveys: Sequence[Sequence[FileSurvey]],
        named: bool,
        remedy: str = "",
    ) -> InputsPlan:
        """The plan after all files of all inputs have been looked at; raises InputError as `read_inputs`.

        With a ``remedy``, see `InputPlan`, these are the first rows of more.
        """
        plans = [InputPlan.of(one, columns, found, len(inputs) > 1, remedy) for one, found in zip(inputs, surveys)]
        input_plans.refuse_unknown_types(plans)
        schemas = []
        for plan, found in zip(plans, surveys):
            for file in found:
                name = file.name if len(found) > 1 else source_name(plan.one.events)
                nothing = pa.Table.from_batches([], plan.columns_of(file.schema))
                schemas.append((name, _in_common_unit(nothing, plan, name).schema))
        refuse_partly_typed(((name, schema.names) for name, schema in schemas), columns.type)
        schema = columns.completed(common_schema(schemas), any(not file.columns for found in surveys for file in found))
        stream = free_name("stream", schema.names) if named else None
        if stream is not None:
            schema = schema.append(pa.field(stream, pa.string()))
        said = [] if any(file.rows for found in surveys for file in found) else ["the input has no rows"]
        said += [
            f"the column '{name}' is read as integers, so '{value}' is {int(value)}; "
            f"the column type text (--column-type {name}=text) keeps values as they are"
            for plan in plans
            for name, value in plan.padded.items()
        ]
        return cls(tuple(plans), schema, columns.schema(schema, stream), tuple(said))

    def part(self, plan: InputPlan, block: Block, offset: int, file: str) -> SplitRows:
        """The rows of a block in the columns of the table; ``offset`` is the number of rows before the file."""
        several = len(self.plans) > 1 or len(plan.one.events.files) > 1
        found = plan.part(block, offset, file if several else None)
        name = file if len(plan.one.events.files) > 1 else source_name(plan.one.events)
        table = _in_common_unit(found.table, plan, name)
        stream = self.roles.stream
        if stream is not None:
            table = table.append_column(stream, pa.repeat(pa.scalar(source_name(plan.one.events)), len(table)))
        return replace(found, table=fitted_table(table, self.schema, name))


def _in_common_unit(table: pa.Table, plan: InputPlan, name: str) -> pa.Table:
    return in_common_unit(table, plan.one.time_unit, plan.columns.roles, name) if table.column_names else table


def read_inputs(inputs: Sequence[Input[Source]], columns: ColumnRoles, *, named: bool = False) -> ReadEvents:
    """Read all inputs one after the other; with ``named`` a column tells which stream an event is from.

    Raises InputError if a file cannot be read, lacks a column with a role, or has a column in which not a single
    value is what the query takes it for, and if the columns of the inputs do not fit together.
    """
    read = [
        [(file, [*read_blocks(one.events, file, input_plans.texts(one, columns))]) for file in contents(one.events)]
        for one in inputs
    ]
    surveys = [[survey(one, columns, *file) for file in files] for one, files in zip(inputs, read)]
    plan = InputsPlan.of(inputs, columns, surveys, named)
    parts: list[SplitRows] = []
    offset = 0
    for own, surveyed, files in zip(plan.plans, surveys, read):
        schemas = [block.table.schema for _, blocks in files for block in blocks]
        kinds = [schema.field(name).type for schema in schemas for name in own.as_text if name in schema.names]
        as_asked = all(pa.types.is_string(kind) or pa.types.is_null(kind) for kind in kinds)
        for found, (file, blocks) in zip(surveyed, files):
            # Columns that are to be JSON text may have been read as something else.
            for block in blocks if as_asked else read_blocks(own.one.events, file, own.as_text):
                parts.append(plan.part(own, block, offset, found.name))
            offset += found.rows
            blocks.clear()
    # Pieces without rows would be batches of their own.
    table = pa.concat_tables([part.table for part in parts if len(part.table)] or [plan.schema.empty_table()])
    refused = [part.refused for part in parts if part.refused is not None]
    if not refused:
        return ReadEvents(table, None, None, plan.roles, plan.remarks)
    rows = np.concatenate([part.rows for part in parts])
    together = pa.concat_tables(refused, promote_options="permissive").sort_by("row")
    return ReadEvents(table, rows, together, plan.roles, plan.remarks)


def as_refused(table: pa.Table) -> pa.Table:
    """Refused rows in the form of `ReadEvents`: ``row``, ``reason``, ``text``, then every other column as text."""
    head = {
        name: table.column(name).cast(kind) if name in table.column_names else pa.nulls(len(table), kind)
        for name, kind in input_plans.REFUSED
    }
    rest = {
        name: pa.chunked_array([plain_text(chunk) for chunk in table.column(name).chunks], pa.string())
        for name in table.column_names
        if name not in head
    }
    return pa.table(head | rest)


def read_result(source: Source) -> pa.Table:
    """The matches that ``cerflow run`` wrote to a file; raises `InputError` if it cannot be read."""
    read = read_inputs([Input(source)], ColumnRoles(UNTYPED))
    if read.refused is not None:
        row, reason = (read.refused.column(name)[0].as_py() for name in ("row", "reason"))
        raise InputError(f"{source.path}, row {row}: {reason}")
    return read.table


_Path = str | PathLike[str]


def read_events(
    path_or_paths: _Path | Sequence[_Path],
    *,
    format: str | None = None,
    encoding: str = "utf-8",
    delimiter: str = ",",
    decimal_point: str = ".",
    time_format: str | None = None,
    column_types: Mapping[str, ColumnType] | None = None,
    type: str | None = "type",
    time: str | None = None,
    on_bad_record: BadRecordPolicy = "fail",
) -> pa.Table:
    """The events of files of CSV, JSON, Parquet or ORC, read as ``cerflow run`` reads them.

    A path is that of a file, a directory of files, or a pattern; compressed files (``.gz``, ``.bz2``, ``.zst``,
    ``.lz4``) are unpacked. ``format`` (``"csv"``, ``"json"``, ``"parquet"``, ``"orc"``) follows from the name unless it
    is given; ``encoding`` is that of CSV and JSON. ``delimiter`` separates the columns of CSV. Where text is read as
    numbers, the ``decimal_point`` may be ``","``; where it is read as times, ``time_format`` is their form
    (``"%d.%m.%Y %H:%M:%S"``, as of `datetime.strptime`), unless it is ISO 8601. ``column_types`` gives the types of
    columns (``"text"``, ``"integer"``, ``"float"``, ``"timestamp"``, ``"boolean"``) that must not follow from their
    values: ``column_types={"zip": "text"}`` keeps 00501 and 501 apart. ``type`` and ``time`` name the columns with
    these roles; with ``type=None``, and without a column ``"type"``, events have no types.

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
    form = text_form(encoding, delimiter, decimal_point, time_format)
    sources = [source_of(fspath(path), chosen, form, types) for path in paths]
    events = read_inputs([Input(source) for source in sources], ColumnRoles(UNTYPED if type is None else type, time))
    if events.refused is not None:
        if callable(on_bad_record):
            on_bad_record(events.refused)
        elif on_bad_record == "fail":
            raise BadRecordError(*(events.refused.column(name)[0].as_py() for name in ("row", "reason")))
    return events.table


def arrives(source: Source) -> bool:
    """Whether lines of a source come by a pipe or a device, so that nobody knows when the next one does."""
    if source.files or not source.has_no_schema:
        return False
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):  # somebody has put another object in its place
        return False


def arriving_events(
    one: Input[Source], columns: ColumnRoles, *, patient: bool, say: Callable[[str], None]
) -> Iterator[SplitRows]:
    """The events of standard input as they arrive, after a table without events that shows their columns.

    The types of columns follow from the rows that come first. Columns of JSON that come later are left out, which
    ``say`` is told, unless the query reads them or they have a declared type. If ``patient``, rows that cannot be
    events do not decide: the types follow from later ones. Raises InputError as `read_inputs` does.
    """
    source = one.events
    pieces = RowPieces(FilePart(data=standard_input()), source.encoding, source.format.value, source.delimiter)
    coming = iter(pieces)
    held, plan = b"", None
    while plan is None:
        piece = next(coming, None)
        held += piece or b""
        plan = _plan(one, columns, held, last=piece is None, patient=patient)
    (own,) = plan.plans
    left_out: set[str] = set()
    yield SplitRows(plan.schema.empty_table(), np.array([], np.int64), None)
    for block in read_blocks(source, FilePart(data=chain((held,), coming), decoded=True), own.as_text):
        unknown = [column for column in block.table.column_names if column not in own.names]
        for column in set(unknown) - left_out:
            say(f"'{column}' is left out, because the first lines lack it; --column-type {column}=… keeps it")
        left_out.update(unknown)
        yield plan.part(own, replace(block, table=block.table.drop_columns(unknown)), 0, "standard input")
        pieces.done += len(block.table) + len(block.malformed)


def _plan(one: Input[Source], columns: ColumnRoles, data: bytes, *, last: bool, patient: bool) -> InputsPlan | None:
    """The plan for all rows by the first ones; None as long as these do not say enough."""
    found = survey(one, columns, FilePart(data=[data], decoded=True))
    if found.rows == found.broken and not last:
        return None
    try:
        return InputsPlan.of([one], columns, [[found]], False, remedy=_REMEDY)
    except NoValueFitsError:
        if last or not patient or len(data) > limits.READ_BYTES:
            raise
        return None


def standard_input() -> Iterator[bytes]:
    """What stands in standard input, as it comes."""
    number = sys.stdin.fileno()

    def has_more() -> bool:
        return os.name == "posix" and bool(select.select([number], [], [], 0)[0])

    try:
        while found := os.read(number, limits.READ_BYTES):
            # A writer that is fast gets few large pieces instead of many small ones.
            while len(found) < limits.READ_BYTES and has_more() and (more := os.read(number, limits.READ_BYTES)):
                found += more
            yield found
    except OSError as error:
        raise InputError(f"cannot read standard input: {error.strerror}") from error
