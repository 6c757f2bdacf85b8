"""Statements of programs: checks that need no schema, and the columns and the order of the events of definitions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.query import PLACES, Query, Statement
from cerflow.api.stream_inputs import common_schema, fitted_table, free_name
from cerflow.base.array_types import Ints
from cerflow.base.errors import InputError, QueryError, UnsupportedQueryError, nearest
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import event_times
from cerflow.engine.evaluate.ranges import MOST, limits
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.matches.matches import Matches
from cerflow.engine.recognize.columns_needed import holding
from cerflow.engine.recognize.plan import Plan
from cerflow.language.condition import Attribute, PredicateCall
from cerflow.language.event_kinds import refuse_twice
from cerflow.language.formula import AnyEvent, As, EventType
from cerflow.language.node import Node, transform, walk
from cerflow.language.select import CountItem, ExpressionItem, Select, Statements


def check_statements(tree: Statements) -> None:
    """Raises `QueryError` for names, references and attributes that are wrong, and `UnsupportedQueryError`."""
    defined: dict[str, Select] = {}
    everything = [definition.name for definition in tree.definitions]
    for definition in tree.definitions:
        name, select = definition.name, definition.select
        refuse_twice(name, defined, definition.span)
        for stream in select.streams:
            if stream == name:
                raise QueryError(
                    f"the definition '{name}' reads itself",
                    span=select.span,
                    hint="Repetitions are written with +, or {n,m}.",
                )
            if stream in everything and stream not in defined:
                raise QueryError(
                    f"'{name}' reads '{stream}', which is defined below it",
                    span=select.span,
                    hint=f"Move DEFINE {stream} above DEFINE {name}; definitions cannot read each other in a circle.",
                )
        for item in select.projection.items:
            if isinstance(item, CountItem):
                raise UnsupportedQueryError(
                    f"'{name}' counts matches, so it has none that could be events",
                    span=item.span,
                    hint="Select values of each match instead; the query that reads them can count.",
                )
        _check_attributes(select, defined)
        defined[name] = select
    _check_attributes(tree.query, defined)


def reading_input(select: Select, names: set[str]) -> Select:
    """The query, with attributes that only events of the definitions ``names`` have under names of no column."""
    labels = _definitions_of_labels(select, [name for name in select.streams if name in names])
    only = bool(select.streams) and names.issuperset(select.streams)

    def renamed(node: Node) -> Node:
        if isinstance(node, Attribute) and (only or None not in labels.get(str(node.label), {None})):
            return replace(node, name=f"\0{node.name}")
        return node

    changed = transform(select, renamed)
    return replace(changed, partition=()) if only else changed


def _definitions_of_labels(select: Select, read: Collection[str]) -> dict[str, set[str | None]]:
    """The definitions whose events a label stands for, with None if it may be one of the input."""
    labels: dict[str, set[str | None]] = {name: {name} for name in read}
    for node in walk(select.formula):
        if isinstance(node, As):
            for event in walk(node.operand):
                if isinstance(event, EventType | AnyEvent):
                    labels.setdefault(node.label, set()).add(_definition_of(event, read))
        elif isinstance(node, EventType) and node.name in read and _definition_of(node, read) is None:
            labels[node.name].add(None)
    return labels


def _check_attributes(select: Select, defined: Mapping[str, Select]) -> None:
    """Raises `QueryError` for attributes that are read of a definition's events only, which do not have them."""
    read = {name: defined[name] for name in select.streams if name in defined}
    labels = _definitions_of_labels(select, read)
    for node in walk(select):
        if not isinstance(node, Attribute) or node.label is None:
            continue
        names = labels.get(str(node.label), {None})
        known = [_attributes(read[name]) for name in names if name is not None]
        if None in names or not known or any(node.name in some for some in known):
            continue
        name = next(iter(names))
        offered = sorted(known[0])
        near = nearest(node.name, offered)
        raise QueryError(
            f"events of '{name}' have no attribute '{node.name}'",
            span=node.span,
            hint=(f"Did you mean {near}? " if near else "")
            + f"It may compute one, SELECT … AS {node.name}; the time of an event is time({node.label}).",
        )


def _definition_of(event: EventType | AnyEvent, read: Collection[str]) -> str | None:
    """The definition whose events are meant, None if others may be."""
    if event.stream is not None:
        return event.stream if event.stream in read else None
    return event.name if isinstance(event, EventType) and event.name in read else None


def _attributes(select: Select) -> set[str]:
    found = {"type", "start_time", "end_time", *select.key_columns}
    return found | {item.name for item in select.projection.items if isinstance(item, ExpressionItem)}


@dataclass(frozen=True)
class ProgramPlan:
    """The statements of a program for the columns of its events, each after those that it reads.

    ``schema`` describes the events of the input, and says which of their columns must be held.
    """

    statements: tuple[Statement, ...]
    schema: Schema

    @classmethod
    def of(cls, statements: Sequence[Statement], events: Schema) -> ProgramPlan:
        """The plan of some statements for a schema; raises as `cerflow.engine.recognize.plan.Plan`."""
        held = dict(holding(events, []).held)
        for statement in statements:
            found = statement.query.plan(statement.schema).schema.held
            held |= {name: min(most, held.get(name, most)) for name, most in found.items() if events.has(name)}
        return cls(tuple(statements), replace(events, held=held))

    def last(self, positions: bool = True) -> Plan:
        """The plan of the query, with or without positions."""
        last = self.statements[-1]
        return last.query.plan(last.schema, None, positions)

    @property
    def may_refuse(self) -> bool:
        """Whether a statement may fail for what a definition gives it: a value beyond its range, or a predicate.

        Computed values, like those of the input, fit 64 bits; so a statement must hold less, or in other types.
        """
        given = {statement.name: statement.columns for statement in self.statements}
        for statement in self.statements:
            read = statement.query.plan(statement.schema).schema
            sources = [self.schema.columns, *(given[name] for name in statement.definitions)]
            if any(isinstance(node, PredicateCall) for node in walk(statement.query.tree)):
                return True
            if statement.merged and any(
                limits(read).get(field.name, MOST) < MOST - (field.name == read.time)
                or any(field.name in some.names and some.field(field.name).type != field.type for some in sources)
                for field in read.columns
                if field.name != read.stream
            ):
                return True
        return False


def statements_for(queries: Mapping[str | None, Query], events: Schema) -> list[Statement]:
    """The statements of a program for the columns of its events; raises `InputError` and the errors of queries."""
    found: dict[str | None, Statement] = {}
    for name, query in queries.items():
        definitions = tuple(n for n in dict.fromkeys(query.tree.streams) if n in queries)
        inputs = tuple(n for n in dict.fromkeys(query.tree.streams) if n not in queries)
        merged = bool(query.tree.streams) and (bool(definitions) or events.stream is not None)
        schema = events
        if merged:
            if events.stream is None and len(inputs) > 1:
                raise InputError(
                    f"the query names the streams {' and '.join(inputs)}, but no column says which stream an event "
                    "is of; name it by stream= (--input NAME=PATH), or name one input only"
                )
            read = [("the input", pa.schema([f for f in events.columns if f.name != events.stream]))] if inputs else []
            merged_columns = common_schema([*read, *((n, found[n].columns) for n in definitions)])
            stream = events.stream or free_name("stream", merged_columns.names)
            # If types tell streams apart, events of definitions have their names as both.
            others = [field for field in merged_columns if field.name != stream]
            schema = replace(events, columns=pa.schema([*others, (stream, pa.string())]), stream=stream)
        columns = pa.schema([]) if name is None else _columns_of(name, query, schema, events)
        found[name] = Statement(name, query, schema, definitions, inputs, merged, columns)
    return list(found.values())


def _columns_of(name: str, query: Query, read: Schema, events: Schema) -> pa.Schema:
    """The attributes of the events of a definition; raises `QueryError` for one that has the name of a role."""
    fields = [pa.field(events.type, pa.string())]
    if events.time is not None:
        fields.append(events.columns.field(events.time))
    roles = {events.type: "type", events.time: "time", events.stream: "stream"}
    for field in query.plan(read).report.schema:
        if field.name in PLACES:
            continue
        if field.name in roles:
            raise QueryError(
                f"'{field.name}' is the column with the {roles[field.name]} of events, so the events of '{name}' "
                "cannot have an attribute of that name",
                span=query.written.projection.span or query.written.formula.span,
                hint="Give the computed column another name: … AS name.",
            )
        fields.append(field)
    return pa.schema(fields)


#: Stands for the definitions that an event does not go back to, but a later one; and for those after its own.
_OTHERS, _NONE = np.iinfo(np.int64).max, -1


class Merging:
    """The events of one stretch of a stream, to which definitions add theirs.

    An event of a definition stands after the event that detected it and what goes back to that already. A deadline that
    the clock shows stands in front of the events at or after it, and for the event that detects. ``latest`` is the
    latest time before; no event of a definition is earlier.

    Events have numbers, first those of the input. ``_stands`` says where each further one stands, in columns that are
    compared one after the other: twice the number of the event of the input, and 1 more unless a deadline before that
    is meant, whose time follows; then for every definition the number among its events of the one that this one goes
    back to, or is.
    """

    def __init__(self, events: pa.Table, schema: Schema, latest: pa.Scalar | None = None) -> None:
        self._input = events
        self._latest = latest
        self._schema = schema
        #: The events that each definition has added.
        self.added: dict[str | None, pa.Table] = {}
        self._numbers: dict[str, Ints] = {}
        self._stands = np.zeros((0, 2), np.int64)

    def read(self, statement: Statement) -> tuple[pa.Table, Ints]:
        """The events that a statement reads, in their order, and their numbers."""
        if not statement.merged:
            return self._input, np.arange(len(self._input))
        columns = statement.schema.columns
        if not statement.inputs and not any(len(self.added[name]) for name in statement.definitions):
            return columns.empty_table(), np.zeros(0, np.int64)
        own = pa.schema([field for field in columns if field.name != statement.schema.stream])
        parts, numbers = [], []
        for name, table, of in self._streams(statement):
            part = fitted_table(table, own, name)
            parts.append(part.append_column(statement.schema.stream, pa.repeat(pa.scalar(name), len(part))))
            numbers.append(of)
        every = np.concatenate(numbers)
        order = np.lexsort(self._where(every).T[::-1])
        table = pa.concat_tables([part.select(columns.names) for part in parts]).take(pa.array(order))
        return table, every[order]

    def _streams(self, statement: Statement) -> Iterable[tuple[str, pa.Table, Ints]]:
        every = np.arange(len(self._input))
        if statement.inputs and self._schema.stream is None:
            yield statement.inputs[0], self._input, every
        elif statement.inputs:
            names = self._input.column(self._schema.stream).cast(pa.string())
            for name in statement.inputs:
                rows = np.flatnonzero(np.asarray(pc.equal(names, name).fill_null(False)))
                yield name, self._input.take(pa.array(rows)), every[rows]
        for name in statement.definitions:
            yield name, self.added[name], self._numbers[name]

    def _where(self, numbers: Ints) -> Ints:
        """Where events stand: rows as in ``_stands``."""
        added = numbers >= len(self._input)
        stands = np.full((len(numbers), self._stands.shape[1]), _NONE)
        stands[:, 0], stands[:, 1] = 2 * numbers + 1, 0
        stands[added] = self._stands[numbers[added] - len(self._input)]
        return stands

    def add(self, statement: Statement, matches: Matches, numbers: Ints, first: int) -> None:
        """Add the matches of a definition as events.

        ``numbers`` are those of the events that it read; ``first`` is the position of the first of them.
        """
        assert statement.name is not None
        if not matches:
            # Most pushes of few events find nothing.
            self._numbers[statement.name] = np.zeros(0, np.int64)
            self._stands = np.column_stack([self._stands, np.full(len(self._stands), _NONE)])
            self.added[statement.name] = statement.columns.empty_table()
            return
        time = self._schema.time
        start = ["start"] if "start" in matches.schema.names else []
        wanted = ["detected_at", *start, *statement.result_columns]
        found = matches.to_arrow(columns=[*wanted, *(["detected_time"] if time is not None else [])])
        if self._latest is not None:
            # A statement need not have read the events that are later than a deadline.
            at = found.schema.get_field_index("detected_time")
            # Arrow has no max_element_wise of timestamps with a zone.
            times = found.column(at)
            times = pc.if_else(pc.less(times, self._latest), self._latest, times)
            found = found.set_column(at, "detected_time", times)
        above = self._detecting(found, numbers, first)
        own = np.empty(len(found), np.int64)
        # Those without events come first.
        order = np.argsort(found.column("start").fill_null(-1), kind="stable") if start else np.arange(len(found))
        own[order] = np.arange(len(found))
        between = np.where(above[:, 2:] == _NONE, _OTHERS, above[:, 2:])
        before = np.column_stack([self._stands, np.full(len(self._stands), _NONE)])
        self._numbers[statement.name] = len(self._input) + len(before) + np.arange(len(found))
        self._stands = np.concatenate([before, np.column_stack([above[:, :2], between, own])])
        columns = {self._schema.type: pa.repeat(pa.scalar(statement.name), len(found))}
        if time is not None:
            columns[time] = found.column("detected_time")
        columns |= {name: found.column(name) for name in statement.result_columns}
        self.added[statement.name] = pa.table(columns).select(statement.columns.names).cast(statement.columns)

    def _detecting(self, found: pa.Table, numbers: Ints, first: int) -> Ints:
        """Where what detected each match stands."""
        detected = found.column("detected_at")
        by_clock = np.asarray(detected.is_null())
        stands = np.full((len(found), self._stands.shape[1]), _NONE)
        stands[~by_clock] = self._where(numbers[detected.drop_null().to_numpy() - first])
        if by_clock.any():
            assert self._schema.time is not None
            shown = self._times(found.column("detected_time").filter(pa.array(by_clock)))
            stands[by_clock, 0] = 2 * np.searchsorted(self._times(self._input.column(self._schema.time)), shown)
            stands[by_clock, 1] = shown
        return stands

    def _times(self, column: pa.ChunkedArray) -> Ints:
        rows = pa.table({self._schema.time: column}).combine_chunks().to_batches()
        unit = finest_unit(self._schema)
        found = [event_times(BatchRows(each, self._schema, range(len(each)), unit), self._schema) for each in rows]
        return np.concatenate([np.zeros(0, np.int64), *found])
