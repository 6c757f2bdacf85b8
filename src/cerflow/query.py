"""The front door of the library: parse a query, match it, look at it."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from cerflow.analysis.checks import check_query
from cerflow.analysis.first_order import check_first_order
from cerflow.analysis.scopes import relation_names
from cerflow.analysis.types import check_types
from cerflow.automata.remarks import remarks
from cerflow.engine.finite import FiniteStream
from cerflow.engine.matches import Matches
from cerflow.engine.parallel import in_slices
from cerflow.engine.plan import Plan, Plans
from cerflow.engine.recognizer import Recognizer
from cerflow.engine.records import BadRecordPolicy, RecordChecker
from cerflow.engine.results import Report
from cerflow.errors import QueryError, QuerySyntaxError, QueryWarning, UnsupportedQueryError
from cerflow.explain import ExplainFormat, explain_query
from cerflow.inputs import in_order, to_table
from cerflow.language.condition import Constant
from cerflow.language.formula import CountWindow, EventType, Filter, Formula
from cerflow.language.node import walk
from cerflow.language.parser import parse_query
from cerflow.language.printer import show
from cerflow.language.select import Select, sole_expression
from cerflow.language.sremo import Regular, Sremo
from cerflow.language.sremo_parser import parse_sremo
from cerflow.reference import reference_matches
from cerflow.rewriting.first_order import from_first_order
from cerflow.schema import Schema

__all__ = ["Language", "Query", "Reading", "parse", "query_text"]

Language = Literal["ceql", "sremo"]
Reading = Literal["second-order", "first-order"]
Runner = Literal["engine", "semantics"]


def parse(text: str, *, language: Language = "ceql", reading: Reading = "second-order") -> Query:
    """Read a query.

    With ``language="sremo"`` the text is a regular expression with memory and output (spec §5), a query by itself:
    ``[type = 'T'] AS hot INTO r . [TRUE]* . [type = 'H' AND id = r.id] AS dry``.

    With ``reading="first-order"`` variables are those of first-order CEL: every AS stands on an event type, filters
    may only use well-formed variables, and a variable bound twice along a sequence never matches (P1 §3, §5).
    Raises `QuerySyntaxError` if the text is not in the language, `QueryError` if names do not fit; both say where.
    """
    if language == "sremo":
        return Query(parse_sremo(text), text=text, reading=reading)
    if language != "ceql":
        raise ValueError(f"language must be 'ceql' or 'sremo', not {language!r}")
    return Query(parse_query(text), text=text, reading=reading)


def query_text(query: Query) -> str:
    """A text that `parse` reads in the query's language, and that means the same.

    Raises `UnsupportedQueryError` for a query built in Python that no text gives.
    """
    if query.text is not None and query.reading == "second-order":
        return query.text
    text = show(query.tree)
    try:
        if parse(text, language=query.language).tree == query.tree:
            return text
    except (QueryError, QuerySyntaxError):
        pass  # an expression of SREMO in the middle of a query
    raise UnsupportedQueryError("this query cannot be written as text, so it cannot be sent to the tasks of Spark")


class Query:
    """A query, checked as far as that is possible without knowing the events.

    An expression of SREMO is a query too. ``tree`` is what is evaluated, ``text`` what it was read from (None for
    trees built in Python). Raises `QueryError` for labels that are unknown or not bound.
    """

    def __init__(self, tree: Select | Sremo, *, text: str | None = None, reading: Reading = "second-order") -> None:
        if reading not in ("second-order", "first-order"):
            raise ValueError(f"reading must be 'second-order' or 'first-order', not {reading!r}")
        if isinstance(tree, Sremo):
            tree = Select(Regular(tree, span=tree.span))
        if reading == "first-order" and any(isinstance(n, Regular) for n in walk(tree)):
            raise ValueError("the first-order reading is for formulas, not for SREMO")
        self.text = text
        self.reading = reading
        self.written = tree
        with _Located(text):
            self.tree = tree if reading == "second-order" else _first_order(tree)
            check_query(self.tree)
        self._plans = Plans(self.tree)

    def __repr__(self) -> str:
        return f"<Query {show(self.written)}>"

    @property
    def language(self) -> Language:
        """The language of the query as a whole: an expression of SREMO, or SELECT … WHERE …."""
        return "ceql" if sole_expression(self.tree) is None else "sremo"

    def match(
        self,
        events: Any,
        *,
        type: str = "type",
        time: str | None = None,
        sequence: str | None = None,
        stream: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        runner: Runner = "engine",
        threads: int = 1,
    ) -> Matches:
        """The matches of the query in a finite stream.

        ``events`` is an Arrow table or record batch, anything that exports Arrow data (pandas, Polars), a list of
        record batches or a list of dicts. ``type``, ``time`` and ``stream`` name the columns with an event's type,
        time and input stream. With a time the events are ordered by it, ties by the column ``sequence`` and then as
        they came; without one the order of the rows counts. Numbers as times are milliseconds. ``runner="semantics"``
        evaluates by definition (for short streams and every construct).

        With ``threads`` the engine recognises slices of the stream side by side, each with the events of one window
        before it. The matches are the same, in the order of their detection; those of one event may come in
        another order. What cannot be divided so (`explain` says why), and a stream that is short compared with the
        window, is left to one thread.

        Nothing is recognised before the result is read, and every reading recognises anew. Raises `QueryError` if
        the query does not fit the columns, `UnsupportedQueryError` if the runner cannot evaluate it, `InputError` if
        the events cannot be read, `BadRecordError` for an event that cannot be used (see `Recognizer`), and
        `ValueError` for less than one thread.
        """
        if runner not in ("engine", "semantics"):
            raise ValueError(f"runner must be 'engine' or 'semantics', not {runner!r}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        table = to_table(events)
        schema = Schema(table.schema, type, time, stream)
        with _Located(self.text):
            check_types(self.tree, schema)
        # Before sorting, so that a refused event is named by its place in the input.
        table = in_order(RecordChecker(schema, on_bad_record, in_order=False).usable(table), time, sequence)
        with _Located(self.text):
            if runner == "semantics":
                return reference_matches(self.tree, table, schema, positions=positions)
            # Made here, so that what cannot be evaluated fails now and not when the matches are read.
            plan = self._plans.plan(schema, positions=positions)
        whole = FiniteStream(plan, table)
        return Matches(in_slices(whole, threads) or whole, plan.report, plan.limit)

    def plan(self, schema: Schema, position: str | None = None, positions: bool = True) -> Plan:
        """The query made ready for events of a schema (for other parts of cerflow); raises as `recognizer` does."""
        with _Located(self.text):
            return self._plans.plan(schema, position, positions)

    def recognizer(
        self,
        schema: pa.Schema,
        *,
        type: str = "type",
        time: str | None = None,
        stream: str | None = None,
        position: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
    ) -> Recognizer:
        """A recogniser for a stream of batches with this Arrow schema; see `Recognizer`."""
        with _Located(self.text):
            described = Schema(schema, type, time, stream)
            return Recognizer(
                self.tree,
                described,
                position=position,
                positions=positions,
                on_bad_record=on_bad_record,
                plan=self._plans.plan(described, position, positions),
            )

    def result_schema(
        self, schema: pa.Schema, *, type: str = "type", time: str | None = None, stream: str | None = None
    ) -> pa.Schema:
        """The Arrow schema of the result for events of an Arrow schema (spec §6)."""
        events = Schema(schema, type, time, stream)
        with _Located(self.text):
            check_types(self.tree, events)
            return Report(self.tree, events, positions=True, position=None).schema

    def check(self, schema: Schema | None = None) -> None:
        """Whether the engine can evaluate the query (on events of a schema).

        Raises `QueryError` or `UnsupportedQueryError`, with the place.
        """
        with _Located(self.text):
            if schema is None:
                self._plans.transducer()
            else:
                self._plans.plan(schema)

    def warnings(self, schema: Schema | None = None) -> tuple[QueryWarning, ...]:
        """What is probably not meant: parts of the query that can never match, branches of OR that add nothing.

        Only what is certain for all events (of a schema) and found out within a fraction of a second is told, so
        there may be more that nothing is said of. The window counts if it is one of events. Raises `QueryError` if
        the query does not fit the schema.
        """
        window = self.tree.window if isinstance(self.tree.window, CountWindow) else None
        # Of the branches that safe forms have, the user knows nothing.
        branches = self.reading == "second-order"
        with _Located(self.text):
            if schema is not None:
                check_types(self.tree, schema)
            found = remarks(self.tree.formula, window=window, branches=branches, schema=schema)
        warnings = [QueryWarning(r.text, span=r.span or self.written.formula.span) for r in found]
        if self.text is not None:
            for warning in warnings:
                warning.with_source(self.text)
        return tuple(warnings)

    def explain(self, format: ExplainFormat = "text", schema: Schema | None = None) -> str:
        """What the query means to the engine: normal form, labels, automaton, registers, and what is evaluated where.

        ``format`` is ``"text"`` for people, ``"json"`` for programs, or ``"dot"``, the automaton for Graphviz. With a
        schema also how each condition is evaluated, and which columns are read. A query that the engine cannot
        evaluate yet is explained as far as possible, with the reason. Raises `QueryError` if the query does not fit
        the schema.
        """
        with _Located(self.text):
            return explain_query(
                self.written, self.tree, text=self.text, reading=self.reading, format=format, schema=schema
            )


class _Located:
    """Errors about a query learn their place in its text."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.text is not None and isinstance(error, QueryError | UnsupportedQueryError):
            error.with_source(self.text)


def _first_order(tree: Select) -> Select:
    check_first_order(tree.formula)
    formula = from_first_order(tree.formula)
    if formula is None:
        formula = _nothing(tree.formula)
    return Select(
        formula, tree.projection, tree.strategy, tree.streams, tree.partition, tree.window, tree.consume, tree.limit
    )


def _nothing(formula: Formula) -> Formula:
    """A formula that never matches, in place of one that is unsatisfiable."""
    return Filter(EventType(min(relation_names(formula))), Constant(False))
