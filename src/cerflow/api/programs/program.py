"""Programs: queries that read what other queries find."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from cerflow.api.programs.merged_streams import ProgramPlan, check_statements, reading_input, statements_for
from cerflow.api.programs.recognizer import ProgramRecognizer, merged_events
from cerflow.api.query import Language, Query, Runner, Statement, parse
from cerflow.api.stream_inputs import EventRoles, columns_wanted, schema_of
from cerflow.base import errors
from cerflow.base.event_tables import to_table, unknown_types
from cerflow.base.graphs import reached
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.events.time_order import EventsInOrder, extent, valid_in_order
from cerflow.engine.matches.matches import Matches
from cerflow.engine.recognize.finite_stream import FiniteStream
from cerflow.language.formula import AnyEvent, EventType
from cerflow.language.node import Node, transform
from cerflow.language.parser import parse_statements
from cerflow.language.printer import show
from cerflow.language.select import Definition, Select, Statements
from cerflow.logic.analysis.columns import attributes_in
from cerflow.look.pictures.targets import picture, shown_or_told

if TYPE_CHECKING:
    from cerflow.look.explaining.facts import ExplainFormat
    from cerflow.look.pictures.svg import Theme
    from cerflow.look.studying.tracing import Trace
    from cerflow.look.studying.why_not import WhyNot


def parse_program(text: str) -> Program:
    """Read definitions and the query after them: ``DEFINE dip AS SELECT … ; SELECT … FROM dip, stocks WHERE …``.

    A text of one query is a program, too. Raises `QuerySyntaxError` and `QueryError` as `parse` does.
    """
    return Program(parse_statements(text), text=text)


class Program:
    """A query together with definitions, whose matches are events to it and to the definitions below them.

    Every match of a definition is an event of the stream and of the type that the definition names. Its attributes
    are the computed columns, the partition keys, ``start_time`` and ``end_time``; its time is that of the event that
    detected the match, and it comes directly after that event. A statement reads the streams that its FROM names, and
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
        errors.expect(tree, Statements, "a Program is made of a tree; cerflow.parse_program reads a text")
        self.tree = tree
        self.text = text
        with errors.Located(text):
            check_statements(tree)
        names = {d.name for d in tree.definitions}
        self.definitions: Mapping[str, Query] = {
            d.name: Query(_plain(d.select, names), text=text) for d in tree.definitions
        }
        self.query = Query(_plain(tree.query, names), text=text)
        #: The definitions by name, and last the query under no name (for other parts of cerflow).
        self.queries: dict[str | None, Query] = dict([*self.definitions.items(), (None, self.query)])

    def __repr__(self) -> str:
        return f"<Program {show(self.tree)}>"

    def to_svg(self, *, theme: Theme = "auto") -> str:
        """A picture of the streams and the statements that read them; for ``theme`` and errors see `Query.to_svg`."""
        from cerflow.api.programs.studied import program_diagram

        return picture(program_diagram(self.queries), "svg", title="program", theme=theme)

    def _repr_html_(self) -> str:
        return shown_or_told(self.to_svg)

    @property
    def reading_input(self) -> Statements:
        """The statements, with attributes that only events of definitions have under names that no column has."""
        names = {d.name for d in self.tree.definitions}
        definitions = tuple(replace(d, select=reading_input(d.select, names)) for d in self.tree.definitions)
        return Statements(definitions, reading_input(self.tree.query, names))

    @property
    def unused(self) -> tuple[Definition, ...]:
        """The definitions that the last query does not read, nor any that it reads."""
        used = self._used()
        return tuple(d for d in self.tree.definitions if d.name not in used)

    def _used(self) -> Collection[str]:
        """The streams that the last query reads, and those that the definitions among them read."""
        above = self.definitions
        return reached(self.query.tree.streams, lambda name: above[name].tree.streams if name in above else ())

    def plan(self, events: Schema) -> ProgramPlan:
        """The program made ready for events of a schema (for other parts of cerflow); raises as `recognizer` does."""
        used = self._used()
        queries = {name: query for name, query in self.queries.items() if name is None or name in used}
        events = events.reading(attributes_in(self.tree))
        with errors.Located(self.text):
            return ProgramPlan.of(statements_for(queries, events), events)

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
        memory: int | None = None,
        **roles: Unpack[EventRoles],
    ) -> Matches:
        """The matches of the last query in a finite stream.

        Arguments and errors are those of `Query.match`. The definitions are evaluated at once, the last query when the
        result is read, then with ``threads``. A match of a definition that ``until`` detects is an event at its
        deadline. If no column distinguishes streams, the names of streams that are not defined mean the input; raises
        `InputError` if a statement that reads a definition has several of them.
        """
        errors.one_of(runner, "runner", "engine", "semantics")
        threads = errors.at_least_one(threads, "threads")
        table = to_table(events, needed=columns_wanted([self.tree], sequence, roles))
        if unknown_types(table):
            return self.query.match(table, positions=positions, **roles)
        schema = schema_of(table.schema, **roles).reading(attributes_in(self.tree))
        plan = self.plan(schema)
        statements = plan.statements
        table = valid_in_order(table, RecordChecker(plan.schema, on_bad_record, in_order=False), sequence).whole
        if schema.stream is not None:
            self._check_streams(statements, table, schema.stream)
        clock = None if until is None else clock_time(until, schema)[0].as_py()
        if runner == "semantics":
            from cerflow.api.reference import reference_program

            return reference_program(statements, table, schema, positions=positions, until=clock)
        for statement in statements[:-1]:
            statement.query.warn_of_doubts(schema, extent(table, schema))
        last = statements[-1]
        merged, clocked = merged_events(statements, schema, table, clock, memory)
        if not len(clocked):
            roles["stream"] = last.schema.stream
            return self.query.match(merged, positions=positions, threads=threads, until=until, memory=memory, **roles)
        made = last.query.plan(last.schema, positions=positions)
        merged = EventsInOrder(pa.concat_tables([merged, clocked]))
        whole = FiniteStream(
            {"query": made}, made.schema, merged, clock_time(until, schema), clocked=len(clocked), memory=memory
        )
        return Matches(whole, made.report, made.limit, stream=merged)

    def _check_streams(self, statements: Sequence[Statement], table: pa.Table, stream: str) -> None:
        """Raises `QueryError` for a stream that does not occur, if its name is nearly that of a definition."""
        occurring = {str(name) for name in table.column(stream).unique().to_pylist()}
        for statement in statements:
            for name in statement.inputs:
                near = None if name in occurring else errors.nearest(name, [*self.definitions])
                if near is not None:
                    place, hint = statement.query.written.span, f"Did you mean {near}?"
                    raise errors.QueryError(f"there is no stream '{name}'", span=place, hint=hint).with_source(
                        self.text
                    )

    def recognizer(
        self,
        schema: pa.Schema,
        *,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        memory: int | None = None,
        **roles: Unpack[EventRoles],
    ) -> ProgramRecognizer:
        """A recogniser for a stream of batches with this Arrow schema; see `Query.recognizer`.

        ``on_bad_record`` is for events of the input. A push fails if a definition gives an event that a statement
        cannot use; then nothing of it has been processed. Each statement may use ``memory``.
        """
        return self.recognizer_for(schema_of(schema, **roles), on_bad_record, positions=positions, memory=memory)

    def recognizer_for(
        self, events: Schema, on_bad_record: BadRecordPolicy, *, positions: bool, memory: int | None = None
    ) -> ProgramRecognizer:
        """A recogniser for events of a schema (for other parts of cerflow); see `recognizer`."""
        plan = self.plan(events)
        return ProgramRecognizer(plan, show(self.tree), on_bad_record, positions=positions, memory=memory)

    def restore(self, data: bytes, schema: pa.Schema, **arguments: Any) -> ProgramRecognizer:
        """The recogniser that a snapshot was taken of, made with the same arguments as by `recognizer`.

        Raises `SnapshotError` if the bytes are not a snapshot, or one of another program, columns or version.
        """
        recognizer = self.recognizer(schema, **arguments)
        recognizer.take_over(data)
        return recognizer

    def check(self, schema: Schema | None = None) -> None:
        """Whether the engine can evaluate all statements (on events of a schema); raises as `Query.check`."""
        if schema is None:
            for query in self.queries.values():
                query.check()
            return
        for statement in self.plan(schema).statements:
            statement.query.check(statement.schema)

    def warnings(
        self, schema: Schema | None = None, times: tuple[float | None, float | None] | None = None
    ) -> tuple[errors.QueryWarning, ...]:
        """Warnings of probable mistakes: definitions that no statement reads, and all warnings of `Query.warnings`."""
        schemas = {} if schema is None else {s.name: s.schema for s in self.plan(schema).statements}
        found = [self._unused_warning(definition) for definition in self.unused]
        for name, query in self.queries.items():
            found += query.warnings(schemas.get(name), times)
        return tuple(found)

    def _unused_warning(self, definition: Definition) -> errors.QueryWarning:
        given = {name for query in self.queries.values() for name in query.tree.streams}
        near = errors.nearest(definition.name, given - self.definitions.keys())
        hint = f"; did you mean FROM {near}?" if near else "; FROM names the streams that a query reads"
        reason = f"nothing reads the definition '{definition.name}'{hint}"
        return errors.QueryWarning(reason, span=definition.span).with_source(self.text)

    def warn_of_doubts(self, schema: Schema, times: tuple[float | None, float | None]) -> None:
        """Give what is doubtful before matching (see `Query.warnings`) as Python warnings."""
        for query in self.queries.values():
            query.warn_of_doubts(schema, times)

    def trace(
        self,
        events: Any,
        of: str | None = None,
        *,
        sequence: str | None = None,
        until: Any = None,
        **roles: Unpack[EventRoles],
    ) -> Trace:
        """The steps of the last query, or of the definition ``of``, over a short stream; see `Query.trace`.

        The matches of the definitions that it reads are events among the others; positions count all that it reads.
        """
        from cerflow.api.programs.studied import studied
        from cerflow.look.studying.tracing import Trace

        query, sample = studied(self.queries, events, of, sequence=sequence, until=until, **roles)
        with errors.Located(self.text):
            return Trace(query.tree, sample)

    def why_not(
        self,
        events: Any,
        chosen: Iterable[int | tuple[str, int]],
        of: str | None = None,
        *,
        sequence: str | None = None,
        until: Any = None,
        **roles: Unpack[EventRoles],
    ) -> WhyNot:
        """Why some events do not match the last query, or the definition ``of``; see `trace`, `Query.why_not`."""
        from cerflow.api.programs.studied import studied
        from cerflow.look.studying.why_not import why_not

        query, sample = studied(self.queries, events, of, sequence=sequence, until=until, **roles)
        with errors.Located(self.text):
            return why_not(query.tree, sample, chosen)

    def explain(self, format: ExplainFormat = "text", schema: Schema | None = None) -> str:
        """Which statement reads which, and each of them as `Query.explain` explains it."""
        from cerflow.api.programs.studied import explain_program

        schemas = {} if schema is None else {s.name: s.schema for s in self.plan(schema).statements}
        return explain_program(self.queries, schemas, format)


def _plain(select: Select, names: set[str]) -> Select:
    """The query with the events of any type of a definition as those of its one type."""

    def typed(node: Node) -> Node:
        if isinstance(node, AnyEvent) and node.stream in names:
            return EventType(node.stream, node.stream, span=node.span)
        return node

    return transform(select, typed)


def read_query(text: str, language: Language = "ceql") -> Query | Program:
    """Read a query, or a program if there are definitions; raises the errors of `parse`."""
    if language == "ceql" and re.search(r"\bDEFINE\b", text, re.IGNORECASE):
        program = parse_program(text)
        if program.definitions:
            return program
    return parse(text, language=language)


class MatchOptions(EventRoles, total=False):
    """The arguments of `Query.match` besides the events."""

    sequence: str | None
    positions: bool
    on_bad_record: BadRecordPolicy
    runner: Runner
    threads: int
    until: Any
    memory: int | None


def match(query: Query | Program | str, events: Any, **options: Unpack[MatchOptions]) -> Matches:
    """The matches of a query in a finite stream; the query first, as in `cerflow.spark.match`.

    >>> import cerflow
    >>> events = [{"type": "T", "value": 45}, {"type": "H", "value": 20}]
    >>> cerflow.match("SELECT hot.value, dry.value WHERE T AS hot ; H AS dry", events).to_pandas()["dry_value"].tolist()
    [20]

    The query is a text, perhaps with definitions, or what `parse` and `parse_program` give. Arguments and errors are
    those of `Query.match`, and for a text those of `parse`, too. To match several tables parse the text once.
    """
    errors.expect(
        query, (Query, Program, str), "the query is the first argument, and must be text, a Query or a Program"
    )
    return without_definitions(query).match(events, **options)


def without_definitions(query: Query | Program | str) -> Query | Program:
    """A query that is given as a text, as itself or as a program; a program without definitions as its one query."""
    if isinstance(query, str):
        return read_query(query)
    if isinstance(query, Program) and not query.definitions:
        return Query(query.query.written)
    return query


def query_as_text(query: Query | Program) -> str:
    """A text that `read_query` reads in the query's language, and that means the same.

    Raises `UnsupportedQueryError` for what was built in Python and no text gives.
    """
    if query.text is not None and (isinstance(query, Program) or query.reading == "second-order"):
        return query.text
    text = show(query.tree)
    with suppress(errors.QueryError, errors.QuerySyntaxError):  # a tree with names or values that no text gives
        again = parse(text) if isinstance(query, Query) else parse_program(text)
        if again.tree == query.tree:
            return text
    raise errors.UnsupportedQueryError(
        "this query cannot be written as text, so it cannot be sent to the tasks of Spark"
    )
