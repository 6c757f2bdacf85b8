"""The reference semantics as a runner: slow, for short streams, and right by definition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.query import Statement
from cerflow.base.arrow_columns import one_array, rows_as_columns, values_as_array
from cerflow.base.errors import InputError, UnsupportedQueryError
from cerflow.base.events import ComplexEvent, Stream, as_value, raw_time
from cerflow.base.graphs import gathered
from cerflow.base.nested import is_nested, root_of
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.base.units import DAY, MICROSECONDS
from cerflow.engine.matches.matches import ROWS, Matches
from cerflow.engine.matches.picking import NumberRange, Picker
from cerflow.engine.results.report import CountForm, Report
from cerflow.language.formula import UNNAMED, Formula
from cerflow.language.select import Select
from cerflow.language.sremo import with_fields
from cerflow.logic.rewriting.times import with_floats, with_zones
from cerflow.theory.semantics.complex_events import Time
from cerflow.theory.semantics.first_order import first_order_matches as first_order_matches
from cerflow.theory.semantics.formulas import Denotation
from cerflow.theory.semantics.formulas import formula_matches as formula_matches
from cerflow.theory.semantics.queries import Entry, Match, clocked, defined, evaluate, read_by
from cerflow.theory.semantics.sremo import sremo_derivations as sremo_derivations
from cerflow.theory.semantics.sremo import sremo_match_string as sremo_match_string
from cerflow.theory.semantics.sremo import sremo_matches as sremo_matches

#: The kinds of decimals that are other numbers to conditions.
_FORMS = {ValueKind.INTEGER: int, ValueKind.FLOAT: float}


class _Listed(Matches):
    def __init__(self, report: Report, table: pa.Table) -> None:
        super().__init__((), report, None)
        self._table = table

    def count(self) -> int:
        if not self._report.counts:
            return self.rows()
        return sum(int(n) for n in self._table.column(self._report.counts[0].name).to_pylist())

    def rows(self) -> int:
        return int(self._table.num_rows)

    def __bool__(self) -> bool:
        return self.rows() > 0

    def _chosen(self, picker: Picker) -> Matches:
        assert isinstance(picker, NumberRange)  # `_refuse` refuses all others
        rows = range(self._table.num_rows)[picker.begin : picker.stop : picker.step]
        table = self._table.take(pa.array(rows, pa.int64()))
        return _Listed(self._report, table)

    def _batches(self, schema: pa.Schema, counts: CountForm, max_rows: int = ROWS) -> Iterator[pa.RecordBatch]:
        flat = not set(schema.names) <= {*self._table.column_names}
        table = (_flat(self._table, self._report) if flat else self._table).select(schema.names)
        if self._report.counts:
            table = table.cast(schema)
        if "events" in schema.names and pa.types.is_dictionary(schema.field("events").type.value_type):
            table = table.set_column(schema.get_field_index("events"), "events", _encoded(table["events"]))
        yield from table.to_batches(max_rows)

    def _with_one_dictionary(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._batches(schema, "decimal")

    def _refuse(self, what: str) -> None:
        why = f"matches of the definitions cannot be {what}"
        raise UnsupportedQueryError(why, hint="Leave out runner='semantics'.")


def _flat(table: pa.Table, report: Report) -> pa.Table:
    """The events of each match as columns, straight from the lists of them."""
    lists = table["events"].to_pylist() if report.flat else []
    labels = {column.label for column in report.flat}
    for column in report.flat:
        values, label = [], column.label
        for events in lists:
            having = [e for e in events if (labels.isdisjoint(e["labels"]) if label is None else label in e["labels"])]
            found = [event[column.field] for event in having]
            values.append(found if column.several else next(iter(found), None))
        table = table.append_column(pa.field(column.name, column.type), [values_as_array(values, column.type)])
    return table


def _encoded(lists: pa.ChunkedArray) -> pa.Array:
    """Lists of events as lists of numbers of events that stand there once."""
    whole = one_array(lists)
    events = whole.flatten()
    numbers: dict[str, int] = {}
    indices = np.array([numbers.setdefault(repr(event), len(numbers)) for event in events.to_pylist()], np.int32)
    _, first = np.unique(indices, return_index=True)
    values = pa.DictionaryArray.from_arrays(pa.array(indices), events.take(pa.array(first)))
    sizes = pc.list_value_length(whole).to_numpy(zero_copy_only=False)
    return pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(sizes)), pa.int32()), values)


def reference_matches(
    select: Select,
    table: pa.Table,
    schema: Schema,
    *,
    positions: bool,
    until: Any = None,
    clocked: int = 0,
    first_order: bool = False,
) -> Matches:
    """Evaluate a query by the definitions of the spec; the table must be in the order of time.

    ``until`` is a value of the time column: no event before it is still to come. The last ``clocked`` events are
    matches that the clock detected. With ``first_order`` the formula is read as first-order CEL.
    """
    report = Report(select, schema, positions=positions, position=None)
    rows, stream = _read(table, schema)
    matches = evaluate(
        _fitting(select, schema),
        stream,
        forget=schema.forget,
        until=_raw(until),
        clocked=clocked,
        first_order=first_order,
    )
    writer = _Writer(report, rows)
    return _Listed(report, writer.table(list(map(writer.counted if report.counts else writer.listed, matches))))


def is_detected(formula: Formula, complex_event: ComplexEvent, table: pa.Table, schema: Schema) -> bool:
    """Whether a formula has a complex event at the last row of a table by definition."""
    stream = stream_of(table, schema)
    return complex_event in Denotation(_fitting(Select(formula), schema).formula, stream)(0, len(stream) - 1)


def stream_of(table: pa.Table, schema: Schema) -> Stream:
    """The rows of a table, in the order of their times, as events. Raises `InputError` for times out of range."""
    return _read(table, schema)[1]


def _read(table: pa.Table, schema: Schema) -> tuple[list[dict[str, Any]], Stream]:
    table = schema.completed(table)
    try:
        rows = table.to_pylist()
    except OverflowError as error:
        raise InputError(f"times are read one by one in the years 1 to 9999 only: {error}") from error
    # The semantics finds fields itself.
    own = [name for name in table.column_names if not is_nested(name) or root_of(name) not in table.column_names]
    values = _values(table.select(own), [{name: row[name] for name in own} for row in rows])
    return rows, Stream.from_dicts(
        values, type=schema.type, time=schema.time, time_unit=schema.time_unit, stream=schema.stream
    )


def reference_program(
    statements: Sequence[Statement], table: pa.Table, schema: Schema, *, positions: bool, until: Any = None
) -> Matches:
    """Evaluate a program by the definitions of the spec; the table must be in the order of time.

    ``until`` is a value of the time column: no event of the input before it is still to come.
    """
    last = statements[-1]
    rows = _values(table, table.to_pylist())
    stream = schema.stream
    time_type = pa.int64() if schema.time is None else table.schema.field(schema.time).type
    latest = [rows[-1][schema.time]] if rows and schema.time is not None else []

    def shown(time: Time) -> Any:
        # A statement need not have read the events that are later than a deadline.
        return max([_as_time(time, time_type), *latest])

    entries = [Entry((k,), None if stream is None else str(row[stream]), row) for k, row in enumerate(rows)]
    for number, statement in enumerate(statements[:-1], 1):
        assert statement.name is not None
        entries = defined(
            number,
            statement.name,
            _fitting(statement.query.tree, statement.schema),
            statement.inputs,
            entries,
            statement.result_columns,
            type=schema.type,
            time=schema.time,
            time_unit=schema.time_unit,
            forget=schema.forget,
            until=_raw(until),
            as_time=shown,
        )
    read = read_by(last.query.tree, last.inputs, entries)
    told_apart = {} if last.schema.stream is None else {last.schema.stream: [entry.stream for entry in read]}
    merged = pa.Table.from_pydict(
        {
            name: [_written(entry.row.get(name), last.schema.columns.field(name).type) for entry in read]
            for name in last.schema.attributes
        }
        | told_apart,
        last.schema.columns,
    )
    return reference_matches(
        last.query.tree, merged, last.schema, positions=positions, until=until, clocked=clocked(read, len(rows))
    )


def _fitting(select: Select, schema: Schema) -> Select:
    """The query with all that follows from columns: fields of structs, integers that become floats, time zones."""
    return with_zones(with_floats(with_fields(select, schema.attributes), schema), schema)


def _raw(time: Any) -> Time | None:
    return None if time is None else raw_time(as_value(time))


def _values(table: pa.Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with decimals that are integers or floats to conditions as these, and TRUE for what none can read."""
    fields = [f for f in table.schema if pa.types.is_decimal(f.type) or kind_of(f.type) is ValueKind.OTHER]
    changed = {f.name: [_readable(row[f.name], f.type) for row in rows] for f in fields}
    return [{**row, **{name: values[k] for name, values in changed.items()}} for k, row in enumerate(rows)]


def _readable(value: Any, data_type: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(data_type):
        return {f.name: _readable(value[f.name], f.type) for f in data_type}
    if pa.types.is_decimal(data_type) and kind_of(data_type) in _FORMS:
        # The nearest float, which Arrow's cast may miss.
        return _FORMS[kind_of(data_type)](value)
    return True if kind_of(data_type) is ValueKind.OTHER else value


def _written(value: Any, data_type: pa.DataType) -> Any:
    """What `_readable` was given, for Arrow: it makes no decimals of floats."""
    if pa.types.is_struct(data_type) and value is not None:
        return {f.name: _written(value[f.name], f.type) for f in data_type}
    return Decimal(repr(value)) if pa.types.is_decimal(data_type) and isinstance(value, float) else value


def _as_time(raw: Time, data_type: pa.DataType) -> Any:
    """A raw time as a value of a time column, rounded up to what the column counts."""
    if isinstance(raw, float):
        return raw
    if not pa.types.is_temporal(data_type):
        return math.ceil(raw)
    size = MICROSECONDS[data_type.unit] if pa.types.is_timestamp(data_type) else DAY
    whole = math.ceil(raw / Fraction(size))
    if pa.types.is_timestamp(data_type):
        return pa.scalar(whole, pa.int64()).cast(data_type).as_py()
    return pa.scalar(whole, pa.int32()).cast(pa.date32()).as_py()


@dataclass(frozen=True)
class _Writer:
    report: Report
    rows: list[dict[str, Any]]

    def table(self, rows: list[dict[str, Any]]) -> pa.Table:
        schema = self.report.schema
        # To the semantics some decimals are floats.
        decimals = {f.name: f.type for f in schema if pa.types.is_decimal(f.type)}
        for row in rows:
            row |= {n: pa.scalar(row[n]).cast(t).as_py() for n, t in decimals.items() if isinstance(row.get(n), float)}
        return pa.Table.from_batches([rows_as_columns(rows, schema)])

    def time(self, position: int | None) -> Any:
        if position is None:
            return None
        time = self.report.events.time
        if time is None:
            return position if self.report.numbered else None
        return self.rows[position][time]

    def detected(self, match: Match) -> dict[str, Any]:
        """The columns of the detection; the deadline is rounded up to the unit of the time column."""
        if match.deadline is None:
            time = self.time(match.detected_at)
        else:
            time = _as_time(match.deadline, self.report.time_type)
        return {"detected_at": match.detected_at, "detected_time": time}

    def keys(self, match: Match) -> dict[str, Any]:
        names = [f.name for f in self.report.schema][len(self.report.leading) :]
        return dict(zip(names, match.key))

    def counted(self, match: Match) -> dict[str, Any]:
        detected = self.detected(match)
        return {**detected, "end_time": detected["detected_time"], **self.keys(match), **dict(match.columns)}

    def listed(self, match: Match) -> dict[str, Any]:
        support = sorted(match.positions)
        first, last = (support[0], support[-1]) if support else (None, None)
        labels = gathered((position, label) for label, position in match.complex_event)
        events = (
            {"events": [self.event(p, labels[p]) for p in support]} if self.report.select.projection.has_events else {}
        )
        return {
            **self.detected(match),
            "start": first,
            "end": last,
            "start_time": self.time(first),
            "end_time": self.time(last),
            **self.keys(match),
            **dict(match.columns),
            **events,
        }

    def event(self, position: int, labels: Sequence[str]) -> dict[str, Any]:
        row = self.rows[position]
        shown = self.report.listed
        fields = self.report.event_fields
        result: dict[str, Any] = {"position": position, "labels": sorted({*labels} - {UNNAMED})}
        kind = row[self.report.events.type]
        result["type"] = None if kind == UNNAMED else kind
        for name, field in fields.items():
            limits = [item.attributes for item in shown if item.label in labels]
            visible = not shown or any(a is None or name in a for a in limits)
            result[field] = row[name] if visible else None
        return result
