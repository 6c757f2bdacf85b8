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
from cerflow.cli.sources import Source, stem
from cerflow.cli.usage import Usage
from cerflow.errors import InputError, nearest
from cerflow.schema import Kind, Schema, kind_of

__all__ = ["Columns", "Events", "as_refused", "read_events", "require_columns"]

#: The columns that stand before the attributes in a table of refused rows.
REFUSED = (("row", pa.int64()), ("reason", pa.string()), ("text", pa.string()))


@dataclass(frozen=True)
class Columns:
    """The names of the columns with a role (`cerflow.schema.Schema`), and how the query uses the others."""

    type: str = "type"
    time: str | None = None
    sequence: str | None = None
    usage: Usage = field(default_factory=Usage)

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
    table: pa.Table
    rows: npt.NDArray[np.int64] | None
    refused: list[pa.Table]


def read_events(sources: Sequence[Source], columns: Columns, *, named: bool = False) -> Events:
    """Read all sources one after the other; with ``named`` a column tells which stream an event is from.

    Raises InputError if a file cannot be read, lacks a column with a role, or has a column in which not a single
    value is what the query takes it for.
    """
    stream = None
    parts: list[_Part] = []
    several = len(sources) > 1 or any(len(s.files) > 1 for s in sources)
    offset = 0
    for source in sources:
        for name, table, malformed in read_files(source, columns.text):
            require_columns(table.column_names, columns)
            if named:
                stream = stream or _free_name("stream", table.column_names)
                table = table.append_column(stream, pa.array([source.name or stem(source)] * len(table), pa.string()))
            count = len(table) + len(malformed)
            parts.append(_usable(table, malformed, columns, offset, name if several else None))
            offset += count
    try:
        table = pa.concat_tables([p.table for p in parts], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the inputs do not fit together: {str(error).splitlines()[0]}") from error
    Schema(table.schema, type=columns.type, time=columns.time, stream=stream)
    refused = [r for p in parts for r in p.refused]
    if not refused:
        return Events(table, None, None, stream)
    rows = np.concatenate([p.rows for p in parts if p.rows is not None])
    together = pa.concat_tables(refused, promote_options="permissive").sort_by("row")
    return Events(table, rows, together, stream)


def require_columns(names: Sequence[str], columns: Columns) -> None:
    """Raise InputError, with the nearest name, if a column with a role is not among the names."""
    Schema(pa.schema([(n, pa.int64()) for n in names]), type=columns.type, time=columns.time)
    if columns.sequence is not None and columns.sequence not in names:
        near = nearest(columns.sequence, names)
        hint = f"; did you mean '{near}'?" if near else f"; the columns are {', '.join(names)}"
        raise InputError(f"the sequence column '{columns.sequence}' is not in the input{hint}")


def as_refused(table: pa.Table) -> pa.Table:
    """Refused rows in the form of `Events`: ``row``, ``reason``, ``text``, then every other column as text."""
    head = {
        name: table.column(name).cast(kind) if name in table.column_names else pa.nulls(len(table), kind)
        for name, kind in REFUSED
    }
    rest = {f.name: _as_text(table.column(f.name)) for f in table.schema if f.name not in head}
    return pa.table(head | rest)


def _usable(table: pa.Table, malformed: list[Malformed], columns: Columns, offset: int, name: str | None) -> _Part:
    """Convert the columns, and split off the rows that cannot be used."""
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
            head = head.append_column(_free_name(attribute, head.column_names), text)
        refused.append(head)
        table = table.filter(pa.array(~np.isin(np.arange(len(table)), bad)))
        numbers = np.delete(numbers, bad)
    return _Part(table, numbers + offset, refused)


def _converted(column: pa.ChunkedArray, name: str, columns: Columns) -> tuple[str, Converted] | None:
    """The column as what it is used for and the name of that, or None if it may stay as it is."""
    usage = columns.usage
    if pa.types.is_null(column.type):
        if name == columns.time:
            kind = pa.timestamp("us")
        elif name in usage.numbers | usage.ordered:
            kind = pa.float64()
        else:
            kind = pa.string()
        return "anything", Converted(pa.nulls(len(column), kind), np.zeros(len(column), dtype=np.bool_))
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


def _free_name(wish: str, taken: Sequence[str]) -> str:
    while wish in taken:
        wish = f"_{wish}"
    return wish
