"""Input files become one table of usable events; rows that cannot be used are set aside with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.cli.conversion import Converted, to_numbers, to_times
from cerflow.cli.files import Malformed, read_files
from cerflow.cli.mappings import label, names_in_files
from cerflow.cli.sources import Source
from cerflow.cli.usage import Usage
from cerflow.errors import InputError
from cerflow.schema import Kind, Schema, kind_of
from cerflow.stream_inputs import Input, Roles, column_names, common_schema, fitted, free_name

__all__ = ["REFUSED", "Columns", "Events", "as_refused", "read_events"]

#: The columns that stand before the attributes in a table of refused rows.
REFUSED = (("row", pa.int64()), ("reason", pa.string()), ("text", pa.string()))


@dataclass(frozen=True)
class Columns:
    """The names of the columns with a role in all inputs together, and how the query uses the others."""

    type: str = "type"
    time: str | None = None
    sequence: str | None = None
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def of(cls, roles: Roles, usage: Usage) -> Columns:
        """The columns with these roles."""
        return cls(roles["type"], roles.get("time"), roles.get("sequence"), usage)

    @property
    def roles(self) -> Roles:
        """The columns with a role."""
        roles: Roles = {"type": self.type}
        if self.time is not None:
            roles["time"] = self.time
        if self.sequence is not None:
            roles["sequence"] = self.sequence
        return roles

    @property
    def text(self) -> frozenset[str]:
        """The columns that are text whatever stands in them."""
        return (self.usage.text | {self.type}) - {self.time, self.sequence}


@dataclass(frozen=True)
class Events:
    """What was read.

    ``rows`` numbers the rows of ``table`` in the whole input, from 0; None if nothing was refused. ``refused`` has
    the columns ``row``, ``reason``, ``text`` (the line, if it could not even be split) and the attributes as text.
    ``stream`` is the column with the name of each event's stream, if there are several.
    """

    table: pa.Table
    rows: npt.NDArray[np.int64] | None
    refused: pa.Table | None
    stream: str | None


@dataclass
class _Part:
    name: str
    table: pa.Table
    rows: npt.NDArray[np.int64] | None
    refused: list[pa.Table]


def read_events(inputs: Sequence[Input[Source]], columns: Columns, *, named: bool = False) -> Events:
    """Read all inputs one after the other; with ``named`` a column tells which stream an event is from.

    Raises InputError if a file cannot be read, lacks a column with a role, or has a column in which not a single
    value is what the query takes it for, and if the columns of the inputs do not fit together.
    """
    parts: list[_Part] = []
    streams: list[str] = []
    several = len(inputs) > 1 or any(len(one.events.files) > 1 for one in inputs)
    offset = 0
    for one in inputs:
        text = names_in_files(one, columns.roles, columns.text)
        for name, table, malformed in read_files(one.events, text):
            table = _renamed(table, one, columns, label(one.events) if len(inputs) > 1 else None)
            count = len(table) + len(malformed)
            part = name if len(one.events.files) > 1 else label(one.events)
            parts.append(_usable(table, malformed, columns, offset, name if several else None, part))
            streams.append(label(one.events))
            offset += count
    schema = _settled(common_schema((part.name, part.table.schema) for part in parts), columns)
    tables = [fitted(part.table, schema, part.name) for part in parts]
    stream = None
    if named:
        stream = free_name("stream", schema.names)
        pairs = zip(tables, streams)
        tables = [table.append_column(stream, pa.repeat(pa.scalar(name), len(table))) for table, name in pairs]
    table = pa.concat_tables(tables)
    Schema(table.schema, type=columns.type, time=columns.time, stream=stream)
    refused = [r for p in parts for r in p.refused]
    if not refused:
        return Events(table, None, None, stream)
    rows = np.concatenate([p.rows for p in parts if p.rows is not None])
    together = pa.concat_tables(refused, promote_options="permissive").sort_by("row")
    return Events(table, rows, together, stream)


def _renamed(table: pa.Table, one: Input[Source], columns: Columns, name: str | None) -> pa.Table:
    names = column_names(table.column_names, one, columns.roles, name)
    if one.constant_type is not None:
        constant = pa.repeat(pa.scalar(one.constant_type), len(table))
        table = table.append_column(free_name("type", table.column_names), constant)
    return table.rename_columns(list(names))


def _settled(schema: pa.Schema, columns: Columns) -> pa.Schema:
    """The schema with types for columns that have no value in any input."""
    fields = []
    for column in schema:
        if pa.types.is_null(column.type):
            if column.name == columns.time:
                column = column.with_type(pa.timestamp("us"))
            else:
                numbers = columns.usage.numbers | columns.usage.ordered
                column = column.with_type(pa.float64() if column.name in numbers else pa.string())
        fields.append(column)
    return pa.schema(fields)


def as_refused(table: pa.Table) -> pa.Table:
    """Refused rows in the form of `Events`: ``row``, ``reason``, ``text``, then every other column as text."""
    head = {
        name: table.column(name).cast(kind) if name in table.column_names else pa.nulls(len(table), kind)
        for name, kind in REFUSED
    }
    rest = {f.name: _as_text(table.column(f.name)) for f in table.schema if f.name not in head}
    return pa.table(head | rest)


def _usable(
    table: pa.Table, malformed: list[Malformed], columns: Columns, offset: int, name: str | None, part: str
) -> _Part:
    """Convert the columns of a file, and split off the rows that cannot be used."""
    broken = [m[0] for m in malformed]
    # Empty lines are counted by some readers, so a number may lie beyond the rows.
    last = max([len(table) + len(malformed), *(b + 1 for b in broken)])
    numbers = np.setdiff1d(np.arange(last), broken)[: len(table)]
    original = table
    reasons: dict[int, list[str]] = {}
    for index, column in enumerate(table.column_names):
        found = _converted(table.column(index), column, columns)
        if found is None:
            continue
        what, converted = found
        if converted.hopeless:
            raise InputError(f"no value of the column '{column}' is {what}" + (f" in {name}" if name else ""))
        table = table.set_column(index, column, converted.values)
        for row in np.flatnonzero(converted.bad).tolist():
            value = original.column(index)[row].as_py()
            reasons.setdefault(row, []).append(f"{column} is not {what}: '{value}'")
    for role, column in (("type", columns.type), ("time", columns.time)):
        if column is not None:
            for row in _nulls(table.column(column)):
                if row not in reasons:
                    reasons[row] = [f"the {role} is null"]
    refused: list[pa.Table] = []
    if malformed:
        rows = [offset + b for b in broken]
        refused.append(_refused(rows, [m[2] for m in malformed], [m[1] for m in malformed], name, offset))
    if reasons:
        bad = np.array(sorted(reasons))
        rows = [offset + int(numbers[row]) for row in bad]
        head = _refused(rows, ["; ".join(reasons[row]) for row in bad.tolist()], None, name, offset)
        taken = original.take(pa.array(bad))
        for attribute in taken.column_names:
            text = _as_text(taken.column(attribute))
            head = head.append_column(free_name(attribute, head.column_names), text)
        refused.append(head)
        table = table.filter(pa.array(~np.isin(np.arange(len(table)), bad)))
        numbers = np.delete(numbers, bad)
    return _Part(part, table, numbers + offset, refused)


def _converted(column: pa.ChunkedArray, name: str, columns: Columns) -> tuple[str, Converted] | None:
    """The column as what it is used for and the name of that, or None if it may stay as it is."""
    usage = columns.usage
    if name == columns.type and kind_of(column.type) is Kind.INTEGER:
        return "a type", Converted(column.cast(pa.string()).combine_chunks(), np.zeros(len(column), dtype=np.bool_))
    if kind_of(column.type) is not Kind.STRING:
        return None
    if name == columns.time:
        return "a time", to_times(column)
    if name in usage.numbers:
        return "a number", to_numbers(column)
    if name in usage.ordered or name == columns.sequence:
        # Two columns of words may be ordered too: only if most values are numbers the others are mistakes.
        found = to_numbers(column)
        if 2 * int(found.bad.sum()) < len(column) - column.null_count:
            return "a number", found
    return None


def _nulls(column: pa.ChunkedArray) -> list[int]:
    if pa.types.is_floating(column.type):
        missing = pc.is_null(column, nan_is_null=True)
    elif column.null_count:
        missing = pc.is_null(column)
    else:
        return []
    found: list[int] = np.flatnonzero(missing.to_numpy()).tolist()
    return found


def _refused(rows: list[int], reasons: list[str], texts: list[str] | None, name: str | None, offset: int) -> pa.Table:
    if name is not None:
        reasons = [f"{reason} (row {row - offset} of {name})" for row, reason in zip(rows, reasons)]
    return pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "reason": pa.array(reasons, pa.string()),
            "text": pa.array(texts, pa.string()) if texts else pa.nulls(len(rows), pa.string()),
        }
    )


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    try:
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
