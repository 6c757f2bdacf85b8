"""The reference semantics as a runner: slow, for short streams, and right by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.engine.matches import ROWS, Matches
from cerflow.engine.planning import limit_of
from cerflow.engine.results import EventForm, Report
from cerflow.errors import UnsupportedQueryError
from cerflow.language.select import ProjectionKind, Select
from cerflow.schema import Schema
from cerflow.semantics.events import Stream
from cerflow.semantics.queries import Match, evaluate

__all__ = ["reference_matches"]


class _Listed(Matches):
    """Matches that are already a table."""

    def __init__(self, report: Report, table: pa.Table, count: int) -> None:
        super().__init__((), report, None)
        self._table = table
        self._count = count

    def count(self) -> int:
        return self._count

    def to_batches(
        self, max_rows: int = ROWS, *, events: EventForm = "structs", columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        schema = self._report.shown(events, columns)
        table = self._table.select(schema.names)
        if "events" in schema.names and events == "dictionary":
            table = table.set_column(schema.get_field_index("events"), "events", _encoded(table["events"]))
        yield from table.to_batches(max_rows)

    def to_arrow(self, *, events: EventForm = "structs", columns: Sequence[str] | None = None) -> pa.Table:
        schema = self._report.shown(events, columns)
        return pa.Table.from_batches(self.to_batches(events=events, columns=columns), schema)

    def _refuse(self, what: str) -> None:
        why = f"matches of the definitions cannot be {what}"
        raise UnsupportedQueryError(why, hint="Leave out runner='semantics'.")


def _encoded(lists: pa.ChunkedArray) -> pa.Array:
    """Lists of events as lists of numbers of events that stand there once."""
    whole = lists.combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    events = whole.flatten()
    numbers: dict[str, int] = {}
    first: list[int] = []
    indices = []
    for k, event in enumerate(events.to_pylist()):
        number = numbers.setdefault(repr(event), len(first))
        if number == len(first):
            first.append(k)
        indices.append(number)
    values = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), events.take(pa.array(first, pa.int64())))
    sizes = pc.list_value_length(whole).to_numpy(zero_copy_only=False)
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(sizes)), pa.int32()), values)


def reference_matches(select: Select, table: pa.Table, schema: Schema, *, positions: bool) -> Matches:
    """Evaluate a query by the definitions of the spec; the table must be in the order of time."""
    report = Report(select, schema, positions=positions, position=None)
    rows = table.to_pylist()
    stream = Stream.from_dicts(rows, type=schema.type, time=schema.time, stream=schema.stream)
    matches = evaluate(select, stream)
    if select.projection.kind is ProjectionKind.NONE:
        matches = list({m.detected_at: m for m in matches}.values())
    writer = _Writer(select, report, rows, positions)
    if report.counts:
        return _Listed(report, writer.table([writer.counted(m) for m in matches]), _total(matches))
    limit = limit_of(select)
    taken: Counter[int] = Counter()
    listed = []
    for match in matches:
        if limit is None or taken[match.detected_at] < limit:
            taken[match.detected_at] += 1
            listed.append(writer.listed(match))
    return _Listed(report, writer.table(listed), len(listed))


def _total(matches: list[Match]) -> int:
    return sum(int(value) for m in matches for _, value in m.columns[:1] if isinstance(value, int))


def _decimal(value: Any, data_type: pa.DataType) -> Any:
    return pa.scalar(value).cast(data_type).as_py() if isinstance(value, float) else value


class _Writer:
    """Matches of the semantics as rows of the result schema."""

    def __init__(self, select: Select, report: Report, rows: list[dict[str, Any]], positions: bool) -> None:
        self.select = select
        self.report = report
        self.rows = rows
        self.positions = positions

    def table(self, rows: list[dict[str, Any]]) -> pa.Table:
        schema = self.report.schema
        # The semantics knows no decimals, only the floats that they are.
        decimals = [f.name for f in schema if pa.types.is_decimal(f.type)]
        plain = [{**row, **{n: _decimal(row.get(n), schema.field(n).type) for n in decimals}} for row in rows]
        return pa.Table.from_pylist(plain, schema)

    def place(self, position: int | None) -> int | None:
        return position if self.positions else None

    def time(self, position: int | None) -> Any:
        if position is None:
            return None
        time = self.report.events.time
        return self.place(position) if time is None else self.rows[position][time]

    def keys(self, match: Match) -> dict[str, Any]:
        names = [f.name for f in self.report.schema][len(self.report.leading) :]
        return dict(zip(names, match.key))

    def counted(self, match: Match) -> dict[str, Any]:
        at = {"detected_at": self.place(match.detected_at), "end_time": self.time(match.detected_at)}
        return {**at, **self.keys(match), **dict(match.columns)}

    def listed(self, match: Match) -> dict[str, Any]:
        support = sorted(match.positions)
        first, last = (support[0], support[-1]) if support else (None, None)
        labels: dict[int, set[str]] = {}
        for label, position in match.complex_event:
            labels.setdefault(position, set()).add(label)
        return {
            "detected_at": self.place(match.detected_at),
            "start": self.place(first),
            "end": self.place(last),
            "start_time": self.time(first),
            "end_time": self.time(last),
            **self.keys(match),
            **dict(match.columns),
            "events": [self.event(p, labels[p]) for p in support],
        }

    def event(self, position: int, labels: set[str]) -> dict[str, Any]:
        row = self.rows[position]
        shown = {i.label: i.attributes for i in self.report.listed}
        fields = self.report.event_fields
        result: dict[str, Any] = {"position": self.place(position), "labels": sorted(labels)}
        result["type"] = row[self.report.events.type]
        for name, field in fields.items():
            limits = [shown[label] for label in labels if label in shown]
            visible = not shown or any(a is None or name in a for a in limits)
            result[field] = row[name] if visible else None
        return result
