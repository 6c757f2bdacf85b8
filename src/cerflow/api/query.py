"""The main interface of the library: parse a query, match it, inspect it.

Queries are read and checked often where nothing is matched, so the engine is imported by the methods that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from html import escape
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Literal, Unpack

import pyarrow as pa

from cerflow.api.checked_query import CheckedQuery, Language, Reading
from cerflow.api.stream_inputs import EventRoles, schema_of
from cerflow.base.arrow_columns import with_plain_columns, without_views
from cerflow.base.errors import ArgumentError, Located, at_least_one, one_of
from cerflow.base.event_tables import supposed, to_table, unknown_types
from cerflow.base.schema import Schema
from cerflow.base.units import TimeUnit
from cerflow.language.formula import DurationWindow, Strategy
from cerflow.language.node import walk
from cerflow.language.parser import parse_query, parse_sremo
from cerflow.language.printer import show
from cerflow.logic.analysis.columns import attributes_in, columns_named
from cerflow.logic.analysis.types import check_types
from cerflow.logic.rewriting.rebuild import labels_beside_types
from cerflow.look.pictures.targets import picture, shown_or_told

if TYPE_CHECKING:
    from cerflow.engine.events.records import BadRecordPolicy
    from cerflow.engine.matches.matches import Matches
    from cerflow.engine.matches.unfolding import Part
    from cerflow.engine.recognize.recognizer import Recognizer
    from cerflow.look.explaining.facts import ExplainFormat
    from cerflow.look.pictures.svg import Theme
    from cerflow.look.studying.tracing import Trace
    from cerflow.look.studying.why_not import WhyNot
    from cerflow.theory.papers.model.automaton import Automaton

__all__ = ["Language", "Query", "Reading", "parse"]

Runner = Literal["engine", "semantics"]


def parse(text: str, *, language: Language = "ceql", reading: Reading = "second-order") -> Query:
    """Read a query.

    With ``language="sremo"`` the text is a regular expression with memory and output (SREMO), a query by itself:
    ``[type = 'T'] AS hot INTO r . [TRUE]* . [type = 'H' AND id = r.id] AS dry``.

    With ``reading="first-order"`` variables are those of first-order CEL: every AS labels an event type, filters may
    only use well-formed variables, and a variable bound twice along a sequence never matches (P1 §3, §5). Raises
    `QuerySyntaxError` if the text is not in the language, `QueryError` if names do not fit; both say where.
    """
    one_of(language, "language", "ceql", "sremo")
    tree = parse_sremo(text) if language == "sremo" else parse_query(text)
    return Query(tree, text=text, reading=reading, language=language)


class Query(CheckedQuery):
    """A query, checked as far as that is possible without knowing the events.

    A formula is a query for all its matches; an expression e of SREMO is the query ``SELECT * WHERE SREMO(e)``.
    ``tree`` is what is evaluated, ``text`` what it was read from (None for trees built in Python), and ``language`` the
    language of that text. Raises `QueryError` for labels that are unknown or not bound.
    """

    @property
    def queries(self) -> dict[str | None, Query]:
        """The query under no name, as a `Program` has its statements (for other parts of cerflow)."""
        return {None: self}

    @classmethod
    def from_automaton(
        cls,
        automaton: Automaton,
        *,
        detect: bool = False,
        within: str | None = None,
        partition_by: str | Sequence[str] = (),
        strategy: str = "ALL",
    ) -> Query:
        """A query with the matches of a CEA, UCEA, RMA or SRT of `cerflow.automata`; see its `reported_matches`.

        With ``detect`` it reports, without events, each n such that some S[m…n] is accepted, whatever is marked.
        ``within`` is a window as text (``"3 EVENTS"``, ``"5 MINUTES"``, ``"10 [v]"``), ``partition_by`` names the
        attributes of the key, ``strategy`` is ``"NEXT"``, ``"LAST"``, ``"MAX"``, ``"STRICT"`` or ``"ANY"``.

        In text the automaton is the formula ``AUTOMATON '…'`` with its `to_json`, and may be used like any other
        formula. Raises `QueryError` for conditions that registers cannot answer, `QuerySyntaxError` for an invalid
        window, and `ArgumentError` for another strategy.
        """
        from cerflow.theory.papers.translations.conversions import as_query

        if strategy not in list(Strategy):
            raise ArgumentError(f"strategy must be one of {', '.join(Strategy)}, not {strategy!r}")
        return cls(as_query(automaton, detect, within, partition_by, Strategy(strategy)))

    def _repr_html_(self) -> str:
        text = show(self.written) if self.text is None else dedent(self.text).strip()
        boxes, automaton = shown_or_told(lambda: self.to_svg("boxes")), shown_or_told(self.to_svg)
        return f"<pre>{escape(text)}</pre>\n{boxes}\n<br>\n{automaton}"

    def to_svg(self, drawing: Literal["automaton", "boxes"] = "automaton", *, theme: Theme = "auto") -> str:
        """A picture of the query's automaton or of its formula, as a text of SVG without fonts, scripts or references.

        States go from left to right, final ones in two circles, and the arrows into these are green; arrows that mark
        an event are blue. Long guards are folded, and shown in full under the pointer. ``drawing="boxes"`` draws the
        formula as nested boxes instead: a dotted connection allows other events in between, a solid one does not.

        Colours follow the page or the system with ``theme="auto"``, or are ``"light"`` or ``"dark"``. Raises
        `PictureError` if the picture would be too large, and for automata `UnsupportedQueryError` if the engine cannot
        evaluate the query and `PictureError` if the layout engine is not installed (the extra ``cerflow[pictures]``).
        """
        one_of(drawing, "drawing", "automaton", "boxes")
        if drawing == "boxes":
            from cerflow.look.pictures.formula_svg import formula_svg

            return formula_svg(self.written, theme=theme)
        from cerflow.automata.model.diagrams import transducer_diagram

        with Located(self.text):
            transducer = self._plans.transducer()
        return picture(transducer_diagram(transducer), "svg", title=show(self.written), theme=theme)

    def __reduce__(self) -> tuple[Callable[..., Query], tuple[object, ...]]:
        # Plans do not travel; the new process makes them when it needs them.
        if self.text is None:
            return partial(Query, reading=self.reading), (self.written,)
        return partial(parse, language=self.language, reading=self.reading), (self.text,)

    def match(
        self,
        events: Any,
        *,
        type: str | None = "type",
        time: str | None = None,
        time_unit: TimeUnit | None = None,
        sequence: str | None = None,
        stream: str | None = None,
        positions: bool = True,
        forget: timedelta | str | None = None,
        on_bad_record: BadRecordPolicy = "fail",
        runner: Runner = "engine",
        threads: int = 1,
        until: Any = None,
        memory: int | None = None,
        constant_type: str | None = None,
    ) -> Matches:
        """The matches of the query in a finite stream.

        >>> import cerflow
        >>> query = cerflow.parse("SELECT * WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25")
        >>> events = [{"type": "T", "value": 45}, {"type": "H", "value": 30}, {"type": "H", "value": 20}]
        >>> for match in query.match(events):
        ...     print([(event["labels"], event["value"]) for event in match["events"]])
        [(['T', 'hot'], 45), (['H', 'dry'], 20)]

        ``events`` is an Arrow table or record batch, anything that exports Arrow data (pandas, Polars), a list of
        record batches or a list of dicts; without rows there are no matches. ``type``, ``time`` and ``stream`` name
        the columns with an event's type, time and input stream. Types are text, integers or booleans. With
        ``type=None``, or without a column ``type``, events have no types, and a query names event kinds; or all events
        are of a ``constant_type``. With a time the events are ordered by it, ties by the column ``sequence`` and then
        by the order of the rows; without one only the order of the rows counts. ``time_unit`` says what times that are
        numbers count: ``"s"``, ``"ms"`` (unless given), ``"us"`` or ``"ns"``; timestamps need none, so giving one is an
        error. ``runner="semantics"`` evaluates by definition, for short streams and every construct: it lists all
        that a part matches before a WITHIN or FILTER around it, so ``A+`` takes twice as long with each A more.

        ``forget`` (a duration, or text such as ``"30 minutes"``) cuts the substream of each key into sessions: a key
        whose next event comes later than that after its last one starts again. So idle keys are forgotten; without
        PARTITION BY there is one substream, the whole stream.

        With ``threads`` the engine recognises slices of the stream in parallel, each with the events of one window
        before it. The matches are the same, in the order of their detection; those of one event may come in a different
        order. One thread processes queries that cannot be divided (`explain` says why), and streams that are short
        compared with the window.

        ``until``, a value of the time column, says that no event before it is missing: deadlines of NOT FOLLOWED BY at
        or before it have passed, too. Otherwise only events show that. ``memory`` bounds the bytes that recognition
        needs besides the events, for each thread; unless given, only the machine bounds them. Beyond it reading the
        result raises `MemoryLimitError`.

        Recognition starts when the result is read, and each reading recognises again. If it finds nothing, Python
        warnings name the event types of the query that never occur, and repeat the `warnings` of a query that can never
        match. Raises `QueryError` if the query does not fit the columns, `UnsupportedQueryError` if the runner cannot
        evaluate it, `InputError` if the events cannot be read, `BadRecordError` for an event that cannot be used (see
        `Recognizer`), and `ArgumentError` for less than one thread.
        """
        from cerflow.engine.evaluate.measures import clock_time
        from cerflow.engine.events.records import RecordChecker
        from cerflow.engine.events.time_order import extent, valid_in_order, with_ascending
        from cerflow.engine.matches.matches import Matches
        from cerflow.engine.recognize.columns_needed import holding
        from cerflow.engine.recognize.finite_stream import FiniteStream
        from cerflow.engine.recognize.planning import limit_of
        from cerflow.engine.results.report import Report

        one_of(runner, "runner", "engine", "semantics")
        threads = at_least_one(threads, "threads")
        table = to_table(events, needed=columns_named(self._tree, type, time, stream, sequence), views=True)
        roles: EventRoles = {"type": type, "time": time, "time_unit": time_unit, "stream": stream}
        if unknown_types(table):
            # The query cannot be compared with what is not known.
            columns = supposed(table.schema, {"type": type, "time": time, "stream": stream}, attributes_in(self._tree))
            schema = schema_of(columns, **roles)
            return Matches((), Report(self._tree, schema, positions=positions, position=None), limit_of(self._tree))
        schema = schema_of(without_views(table.schema), **(roles | {"forget": forget, "constant_type": constant_type}))
        with Located(self.text):
            if self._refused is None:
                self._plans.check(schema)
            else:
                check_types(self._tree, schema)
            schema = schema.reading(attributes_in(self._tree))
        # Before sorting, so that a refused event is named by its place in the input.
        checker = RecordChecker(holding(schema, [self._tree]), on_bad_record, in_order=False)
        found = valid_in_order(table, checker, sequence)
        table = found.table
        schema = with_ascending(schema.lacking(labels_beside_types(self._tree), table), self._tree, found)
        timed = any(isinstance(node, DurationWindow) for node in walk(self._tree))
        self.warn_of_doubts(schema, extent(table, schema, ordered=found.order is None) if timed else (None, None))
        clock = None if until is None else clock_time(until, schema)
        with Located(self.text):
            if runner == "semantics":
                from cerflow.api.reference import reference_matches

                shown = None if clock is None else clock[0].as_py()
                sets = self.reading == "first-order"
                tree = self.written if sets else self._tree
                table = with_plain_columns(found.whole)
                return reference_matches(tree, table, schema, positions=positions, until=shown, first_order=sets)
            # Made here, so that what cannot be evaluated fails now and not when the matches are read.
            plan = self._plans.plan(schema, positions=positions)
        whole = FiniteStream({"query": plan}, plan.schema, found, clock, memory=memory)
        parts: Iterable[Part] = whole
        if threads > 1:
            from cerflow.engine.slices.threads import parts_in_slices

            parts = parts_in_slices(plan, whole, threads) or whole
        none = partial(self.warn_of_no_match, schema, table)
        return Matches(parts, plan.report, plan.limit, stream=found, tell_none=none)

    def recognizer(
        self,
        schema: pa.Schema,
        *,
        position: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        memory: int | None = None,
        **roles: Unpack[EventRoles],
    ) -> Recognizer:
        """A recogniser for a stream of batches with this Arrow schema; see `Recognizer`, and for ``roles`` `match`."""
        from cerflow.engine.recognize.recognizer import Recognizer

        described = schema_of(schema, **roles)
        plan = self.plan(described, position, positions)
        return Recognizer(self.tree, described, on_bad_record=on_bad_record, plan=plan, memory=memory)

    def result_schema(self, schema: pa.Schema, *, positions: bool = True, **roles: Unpack[EventRoles]) -> pa.Schema:
        """The Arrow schema of the result for events of an Arrow schema; for the arguments see `match`."""
        from cerflow.engine.results.report import Report

        events = schema_of(schema, **roles).reading(attributes_in(self._tree))
        with Located(self.text):
            self._plans.check(events)
            return Report(self._tree, events, positions=positions, position=None).schema

    def trace(
        self, events: Any, *, sequence: str | None = None, until: Any = None, **roles: Unpack[EventRoles]
    ) -> Trace:
        """The steps of the query's automaton over a short stream: ``query.trace(events)[n]`` is what event n does.

        It shows the transitions that fire, and those that do not and which part of their guards fails; the live
        configurations with their registers and partial matches; and the partial matches that end, and why. Deadlines in
        time that pass are steps of their own: ``trace[n].before`` are those that event n shows, and ``trace.steps()``
        are all steps in their order. The arguments are those of `match`. Raises as `match`, and `UnsupportedQueryError`
        if there are too many configurations at once.
        """
        from cerflow.look.studying.samples import read_sample
        from cerflow.look.studying.tracing import Trace

        sample = read_sample(self, events, sequence=sequence, until=until, **roles)
        with Located(self.text):
            self._plans.check(sample.schema)
            return Trace(self.tree, sample)

    def why_not(
        self,
        events: Any,
        chosen: Iterable[int | tuple[str, int]],
        *,
        sequence: str | None = None,
        until: Any = None,
        **roles: Unpack[EventRoles],
    ) -> WhyNot:
        """Why some events of a short stream are not a match: the parts of the query without which they would be one.

        ``chosen`` are the positions of all events of the missing match, or pairs of label and position.

        >>> import cerflow
        >>> query = cerflow.parse("SELECT * WHERE (A AS x ; B) FILTER x.v > 5 WITHIN 10 EVENTS")
        >>> print(query.why_not([{"type": "A", "v": 3}, {"type": "B", "v": 7}], [0, 1]))
        x.v > 5: it does not hold; x.v = 3 at event 0

        The other arguments are those of `match`. Raises as `match`, and `ArgumentError` if a position does not exist.
        """
        from cerflow.look.studying.samples import read_sample
        from cerflow.look.studying.why_not import why_not

        sample = read_sample(self, events, sequence=sequence, until=until, **roles)
        with Located(self.text):
            self._plans.check(sample.schema)
            return why_not(self.tree, sample, chosen)

    def explain(self, format: ExplainFormat = "text", schema: Schema | None = None) -> str:
        """An explanation of how the query is evaluated: normal form, labels, automaton, registers, and conditions.

        ``format`` is ``"text"`` for people, ``"json"`` for programs, or a picture of the automaton: ``"svg"`` (see
        `to_svg`), ``"mermaid"`` for Markdown, ``"dot"`` for Graphviz; ``"boxes"`` is one of the formula. With a schema
        also how each condition is evaluated, and which columns are read. A query that the engine cannot evaluate yet
        is explained as far as possible, with the reason. Raises `QueryError` if the query does not fit the schema.
        """
        from cerflow.look.explaining.facts import explain_query

        schema = self._read_by(schema)
        with Located(self.text):
            return explain_query(
                self.written,
                self._tree,
                text=self.text,
                reading=self.reading,
                format=format,
                schema=schema,
                refused=self._refused,
            )


#: The columns of a match that are not attributes of its event.
PLACES = ("detected_at", "detected_time", "start", "end", "events")


@dataclass(frozen=True)
class Statement:
    """A definition of a program or (``name`` None) its last query, for the columns of some events.

    ``schema`` describes the events that it reads: those of ``definitions`` and of the streams ``inputs``. ``merged``
    says that these are distinguished by a column; otherwise the statement reads the input as it is. ``columns`` are the
    attributes of the events that a definition gives.
    """

    name: str | None
    query: Query
    schema: Schema
    definitions: tuple[str, ...]
    inputs: tuple[str, ...]
    merged: bool
    columns: pa.Schema

    @property
    def result_columns(self) -> list[str]:
        """The columns of a match that are attributes of its event."""
        return [name for name in self.query.plan(self.schema).report.schema.names if name not in PLACES]
