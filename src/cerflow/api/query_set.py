"""Many queries over one pass of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from itertools import islice
from typing import Any, Unpack

import pyarrow as pa

from cerflow.api.query import Query, parse
from cerflow.api.stream_inputs import EventRoles, columns_wanted, schema_of
from cerflow.base import limits
from cerflow.base.errors import ArgumentError, expect, noted
from cerflow.base.event_tables import to_table, unknown_types
from cerflow.base.graphs import gathered
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.records import BadRecordPolicy, RecordChecker
from cerflow.engine.events.time_order import extent, valid_in_order
from cerflow.engine.matches.matches import Matches
from cerflow.engine.matches.unfolding import RereadParts
from cerflow.engine.recognize.columns_needed import holding
from cerflow.engine.recognize.finite_stream import FiniteStream
from cerflow.engine.recognize.plan import Plan
from cerflow.engine.recognize.recognizer import SetRecognizer
from cerflow.logic.rewriting.rebuild import labels_beside_types
from cerflow.look.pictures.diagram import reading_diagram
from cerflow.look.pictures.svg import Theme
from cerflow.look.pictures.targets import picture

__all__ = ["QuerySet"]


class QuerySet(Mapping[str, Query]):
    """Queries by name that are evaluated together, over one pass of the events.

    They share common work: checking and reading the events, testing each distinct text (types above all), and storing
    the events that matches refer to. The cost of a query grows with the events that may be relevant to it by their
    texts. Results are those of the single queries. Takes queries or their texts; raises ValueError if there are none
    and `QuerySyntaxError` or `QueryError` for a text that is not a query.

    >>> alarms = QuerySet({"hot": "SELECT * WHERE T AS x FILTER x.v > 40", "dry": "SELECT * WHERE H AS x"})
    >>> found = alarms.match([{"type": "T", "v": 45}, {"type": "H", "v": 20}])
    >>> {name: matches.count() for name, matches in found.items()}
    {'hot': 1, 'dry': 1}
    """

    def __init__(self, queries: Mapping[str, Query | str]) -> None:
        expect(queries, Mapping, "a set of queries is made of a dict of queries or texts by name")
        if not queries:
            raise ArgumentError("a set of queries needs at least one")
        self._queries: dict[str, Query] = {}
        for name, query in queries.items():
            expect(name, str, "the name of a query must be text")
            with noted(f"in the query '{name}'"):
                expect(query, (Query, str), f"the query '{name}' must be a Query or a text")
                self._queries[name] = parse(query) if isinstance(query, str) else query

    def __getitem__(self, name: str) -> Query:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __repr__(self) -> str:
        return f"<QuerySet {', '.join(self)}>"

    def _repr_html_(self) -> str:
        shown = [f"<h4>{escape(name)}</h4>\n{self[name]._repr_html_()}" for name in islice(self, limits.DRAWN_QUERIES)]
        more = len(self) - len(shown)
        return "\n".join([*shown, *([f"<p>and {more} more queries</p>"] if more else [])])

    def to_svg(self, *, theme: Theme = "auto") -> str:
        """A picture of the streams and the queries that read them; for ``theme`` and errors see `Query.to_svg`."""
        drawn = reading_diagram("queries", {name: query.reads for name, query in self.items()})
        return picture(drawn, "svg", title="queries", theme=theme)

    def match(
        self,
        events: Any,
        *,
        sequence: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        until: Any = None,
        memory: int | None = None,
        **roles: Unpack[EventRoles],
    ) -> dict[str, Matches]:
        """The matches of each query in a finite stream; the arguments are those of `Query.match`.

        Recognition starts when the first result is read; then all queries read the events in one pass, and their
        matches are kept in shared form, however many there are. Raises as `Query.match` does.
        """
        table = to_table(events, needed=columns_wanted((query.tree for query in self.values()), sequence, roles))
        if unknown_types(table):
            return {name: query.match(table, positions=positions, **roles) for name, query in self.items()}
        schema = schema_of(table.schema, **roles)
        schema = schema.lacking(set[str]().union(*(labels_beside_types(query.tree) for query in self.values())), table)
        plans = self._plans(schema, None, positions)
        times = extent(table, schema)
        for query in self.values():
            query.warn_of_doubts(schema, times)
        checker = RecordChecker(self._holding(schema), on_bad_record, in_order=False)
        clock = None if until is None else clock_time(until, schema)
        found = valid_in_order(table, checker, sequence)
        stream = FiniteStream(plans, checker.schema, found, clock, memory=memory)
        parts = cache(lambda: gathered((name, part) for name, parts in stream.detected() for part in parts))

        def parts_of(name: str) -> RereadParts:
            return RereadParts(lambda: iter(parts().get(name, ())))

        return {name: Matches(parts_of(name), plan.report, plan.limit, stream=found) for name, plan in plans.items()}

    def recognizer(
        self,
        schema: pa.Schema,
        *,
        position: str | None = None,
        positions: bool = True,
        on_bad_record: BadRecordPolicy = "fail",
        memory: int | None = None,
        **roles: Unpack[EventRoles],
    ) -> SetRecognizer:
        """A recogniser for a stream of batches with this Arrow schema; see `Query.recognizer`."""
        described = schema_of(schema, **roles)
        plans = self._plans(described, position, positions)
        return SetRecognizer(plans, self._holding(described), on_bad_record, memory)

    def restore(self, data: bytes, schema: pa.Schema, **arguments: Any) -> SetRecognizer:
        """The recogniser that a snapshot was taken of, made with the same arguments as by `recognizer`.

        Raises `SnapshotError` if the bytes are not a snapshot, or one of other queries, columns or another version.
        """
        recognizer = self.recognizer(schema, **arguments)
        recognizer.take_over(data)
        return recognizer

    def _holding(self, schema: Schema) -> Schema:
        return holding(schema, [query.tree for query in self.values()])

    def _plans(self, schema: Schema, position: str | None, positions: bool) -> dict[str, Plan]:
        plans: dict[str, Plan] = {}
        for name, query in self.items():
            with noted(f"in the query '{name}'"):
                plans[name] = query.plan(schema, position, positions)
        return plans
