"""Programs: queries that read what other queries find."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Unpack

import pyarrow as pa

from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.events.time_order import extent, usable_in_order
from cerflow.engine.matches.matches import Matches
from cerflow.engine.recognize.columns_needed import holding
from cerflow.errors import Located, QueryError, QueryWarning, UnsupportedQueryError, at_least_one, expect, nearest
from cerflow.explaining.facts import ExplainFormat
from cerflow.language.condition import Attribute
from cerflow.language.formula import AnyEvent, As, EventType
from cerflow.language.node import Node, transform, walk
from cerflow.language.parser import parse_statements
from cerflow.language.printer import show
from cerflow.language.select import CountItem, Definition, ExpressionItem, Select, Statements
from cerflow.programs.explanation import explain_program
from cerflow.programs.merged_streams import Statement, statements_for
from cerflow.programs.recognizer import ProgramRecognizer, merged_events, refuse_clock
from cerflow.query import Query, Runner, parse
from cerflow.reference import reference_program
from cerflow.schema import Schema
from cerflow.stream_inputs import EventRoles, schema_of
from cerflow.values.event_tables import to_table, unknown_types

__all__ = ["Program", "parse_program", "query_alone"]


def parse_program(text: str) -> Program:
    """Read definitions and the query behind them: ``DEFINE dip AS SELECT … ; SELECT … FROM dip, stocks WHERE …``.

    A text of one query is a program, too. Raises `QuerySyntaxError` and `QueryError` as `parse` does.
    """
    return Program(parse_statements(text), text=text)


class Program:
    """A query together with definitions, whose matches are events to it and to the definitions below them.

    Every match of a definition is an event of the stream and of the type that the definition names. Its attributes
    are the computed columns, the partition keys, ``start_time`` and ``end_time``; its time is that of the event that
    detected the match, directly behind which it stands. A statement reads the streams that its FROM names, and
    positions count the events of these; without FROM it reads the input.

    >>> import cerflow
    >>> program = cerflow.parse_program('''
    ...     DEFINE rise AS SELECT b.v - a.v AS by FROM numbers WHERE A AS a : A AS b FILTER b.v > a.v;
    ...     SELECT x.by AS first, y.by AS second FROM rise WHERE rise AS x : rise AS y FILTER y.by > x.by
    ... ''')
    >>> events = [{"type": "A", "v": v} for v in (1, 2, 5, 4, 6)]
    >>> [(match["first"], match["second"]) for match in program.match(events)]
    [(1, 3)]

    ``definitions`` are the queries by name, ``query`` is the last one. Raises `QueryError`, with the place, for a name
    that is defined twice, a definition that reads itself or one below it, and attributes that a definition does not
    have; `UnsupportedQueryError` for a definition that only counts matches.
    """

    def __init__(self, tree: Statements, *, text: str | None = None) -> None:
        expect(tree, Statements, "a Program is made of a tree; cerflow.parse_program reads a text")
        self.tree = tree
        self.text = text
        with Located(text):
            _check(tree)
        names = {d.name for d in tree.definitions}
        self.definitions: Mapping[str, Query] = {
            d.name: Query(_plain(d.select, names), text=text) for d in tree.definitions
        }
        self.query = Query(_plain(tree.query, names), text=text)

    def __repr__(self) -> str:
        return f"<Program {show(self.tree)}>"

    @property
    def reading_input(self) -> Statements:
        """The statements, with attributes that only events of definitions have under names that no column has."""
        names = {d.name for d in self.tree.definitions}
        definitions = tuple(replace(d, select=_reading_input(d.select, names)) for d in self.tree.definitions)
        return Statements(definitions, _reading_input(self.tree.query, names))

    @property
    def unused(self) -> tuple[Definition, ...]:
        """The definitions that the last query does not read, nor any that it reads."""
        used = self._used()
        return tuple(d for d in self.tree.definitions if d.name not in used)

    def _used(self) -> set[str]:
        used: set[str] = set(self.query.tree.streams)
        for name, query in reversed([*self.definitions.items()]):
            if name in used:
                used.update(query.tree.streams)
        return used

    def _statements(self, events: Schema) -> list[Statement]:
        used = self._used()
        queries: dict[str | None, Query] = {n: query for n, query in self.definitions.items() if n in used}
        queries[None] = self.query
        with Located(self.text):
            return statements_for(queries, events)

    def match(
        self,
        events: Any,
        *,
        sequence: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        runner: Runner = "engine",
        threads: int = 1,
        until: Any = None,
        **roles: Unpack[EventRoles],
    ) -> Matches:
        """The matches of the last query in a finite stream.

        Arguments and errors are those of `Query.match`. The definitions are evaluated at once, the last query when the
        result is read, then with ``threads``. If no column tells streams apart, the names of streams that are not
        defined mean the input; raises `InputError` if a statement that reads a definition has several of them.
        """
        if runner not in ("engine", "semantics"):
            raise ValueError(f"runner must be 'engine' or 'semantics', not {runner!r}")
        threads = at_least_one(threads, "threads")
        table = to_table(events)
        if unknown_types(table):
            return self.query.match(table, positions=positions, **roles)
        schema = schema_of(table.schema, **roles)
        statements = self._statements(schema)
        table, _ = usable_in_order(
            table, RecordChecker(self._holding(statements, schema), on_bad_record, in_order=False), sequence
        )
        if schema.stream is not None:
            self._check_streams(statements, table, schema.stream)
        if until is not None:
            refuse_clock(statements)
        if runner == "semantics":
            return reference_program(statements, table, schema, positions=positions, until=until)
        for statement in statements[:-1]:
            statement.query.warn_of_times(schema, extent(table, schema))
        roles["stream"] = statements[-1].schema.stream
        merged = merged_events(statements, schema, table)
        return self.query.match(merged, positions=positions, threads=threads, until=until, **roles)

    def _holding(self, statements: list[Statement], schema: Schema) -> Schema:
        held = dict(holding(schema, []).held)
        for statement in statements:
            found = holding(statement.schema, [statement.tree]).held
            held |= {name: most for name, most in found.items() if schema.has(name)}
        return Schema(schema.columns, schema.type, schema.time, schema.stream, schema.time_unit, schema.forget, held)

    def _check_streams(self, statements: list[Statement], table: pa.Table, stream: str) -> None:
        """Raises `QueryError` for a stream that does not occur, if its name is nearly that of a definition."""
        occurring = {str(name) for name in table.column(stream).unique().to_pylist()}
        for statement in statements:
            for name in statement.inputs:
                near = None if name in occurring else nearest(name, [*self.definitions])
                if near is not None:
                    place = statement.query.written.span
                    error = QueryError(f"there is no stream '{name}'", span=place, hint=f"Did you mean {near}?")
                    raise error if self.text is None else error.with_source(self.text)

    def recognizer(
        self,
        schema: pa.Schema,
        *,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        **roles: Unpack[EventRoles],
    ) -> ProgramRecognizer:
        """A recogniser for a stream of batches with this Arrow schema; see `Query.recognizer`.

        ``on_bad_record`` is for events of the input. A push fails if a definition gives an event that a statement
        cannot use; then nothing of it has been processed.
        """
        described = schema_of(schema, **roles)
        statements = self._statements(described)
        checked = self._holding(statements, described)
        return ProgramRecognizer(statements, checked, show(self.tree), on_bad_record, positions=positions)

    def restore(self, data: bytes, schema: pa.Schema, **arguments: Any) -> ProgramRecognizer:
        """The recogniser that a snapshot was taken of, made with the same arguments as by `recognizer`.

        Raises `SnapshotError` if the bytes are no snapshot, or one of another program, columns or version.
        """
        recognizer = self.recognizer(schema, **arguments)
        recognizer.take_over(data)
        return recognizer

    def check(self, schema: Schema | None = None) -> None:
        """Whether the engine can evaluate all statements (on events of a schema); raises as `Query.check`."""
        if schema is None:
            for query in (*self.definitions.values(), self.query):
                query.check()
            return
        for statement in self._statements(schema):
            statement.query.check(statement.schema)

    def warnings(
        self, schema: Schema | None = None, times: tuple[float | None, float | None] | None = None
    ) -> tuple[QueryWarning, ...]:
        """What is probably not meant: definitions that nobody reads, and all that `Query.warnings` tells."""
        schemas = {} if schema is None else {s.name: s.schema for s in self._statements(schema)}
        found = [self._unused_warning(definition) for definition in self.unused]
        for name, query in (*self.definitions.items(), (None, self.query)):
            found += query.warnings(schemas.get(name), times)
        return tuple(found)

    def _unused_warning(self, definition: Definition) -> QueryWarning:
        given = {name for query in (*self.definitions.values(), self.query) for name in query.tree.streams}
        near = nearest(definition.name, given - self.definitions.keys())
        hint = f"; did you mean it by FROM {near}?" if near else "; FROM names the streams that a query reads"
        warning = QueryWarning(f"nothing reads the definition '{definition.name}'{hint}", span=definition.span)
        if self.text is not None:
            warning.with_source(self.text)
        return warning

    def explain(self, format: ExplainFormat = "text", schema: Schema | None = None) -> str:
        """Which statement reads which, and each of them as `Query.explain` explains it."""
        schemas = {} if schema is None else {s.name: s.schema for s in self._statements(schema)}
        return explain_program(self.definitions, self.query, schemas, format)


def _plain(select: Select, names: set[str]) -> Select:
    """The query with the events of any type of a definition as those of its one type."""

    def typed(node: Node) -> Node:
        if isinstance(node, AnyEvent) and node.stream in names:
            return EventType(node.stream, node.stream, span=node.span)
        return node

    changed = transform(select, typed)
    assert isinstance(changed, Select)
    return changed


def _check(tree: Statements) -> None:
    defined: dict[str, Select] = {}
    everything = [definition.name for definition in tree.definitions]
    for definition in tree.definitions:
        name, select = definition.name, definition.select
        if name in defined:
            raise QueryError(f"'{name}' is defined twice", span=definition.span, hint="Give one of them another name.")
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


def query_alone(query: Query | Program | str) -> Query:
    """The query that is given as a text, as itself or as a program without definitions, for what takes no others.

    Raises `UnsupportedQueryError` for a program with definitions, with the place of the first.
    """
    if isinstance(query, str):
        return parse(query)
    if isinstance(query, Query):
        return query
    if query.definitions:
        error = UnsupportedQueryError(
            "Spark cannot place the events of definitions in the stream yet",
            span=query.tree.definitions[0].span,
            hint="Match the program in one process: cerflow.Program.match, or cerflow run --runner local.",
        )
        raise error if query.text is None else error.with_source(query.text)
    return Query(query.query.written)


def _reading_input(select: Select, names: set[str]) -> Select:
    labels = _definitions_of_labels(select, [name for name in select.streams if name in names])
    only = bool(select.streams) and names.issuperset(select.streams)

    def renamed(node: Node) -> Node:
        if isinstance(node, Attribute) and (only or None not in labels.get(str(node.label), {None})):
            return replace(node, name=f"\0{node.name}")
        return node

    changed = transform(select, renamed)
    assert isinstance(changed, Select)
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
    found = {"type", "start_time", "end_time", *(key[0] for key in select.partition)}
    return found | {item.name for item in select.projection.items if isinstance(item, ExpressionItem)}
