"""How a query is to be evaluated on a DataFrame: which columns travel, what may run in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import pyarrow as pa

from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.recognize.columns_needed import columns_needed, needs_positions, separable_by_key
from cerflow.engine.results.report import CountForm
from cerflow.language.condition import Condition
from cerflow.pushdown.relevance import Relevance, relevant_events
from cerflow.query import Language, Query, as_query_text
from cerflow.schema import Schema
from cerflow.slices.division import Division, divided
from cerflow.spark.frames.tasks import pack
from cerflow.stream_inputs import EventRoles, schema_of

__all__ = ["JobPlan", "make_plan"]


@dataclass(frozen=True)
class JobPlan:
    """How a query is evaluated on a DataFrame.

    ``needed`` are the columns that the query reads or reports; ``keys`` the partition keys, each a tuple of columns
    of which the first that is not null counts. ``by_key`` says that substreams may be evaluated apart from each
    other, otherwise one task sees the whole stream. ``positions`` says that positions are reported or read.
    ``predicates`` are those that the query calls, packed to travel. ``division`` says whether and how the stream may be
    cut into slices, ``relevance`` which events have to be sent, and ``precomputed`` which conditions Spark evaluates so
    that less of them has to. ``counts`` and ``flat`` are forms of the result. No task lists more than ``max_matches``.
    """

    text: str
    language: Language
    schema: Schema
    sequence: str | None
    needed: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    by_key: bool
    positions: bool
    result: pa.Schema
    predicates: bytes | None
    division: Division
    relevance: Relevance
    precomputed: tuple[Condition, ...] = ()
    counts: CountForm = "decimal"
    flat: bool = False
    max_matches: int | None = None


def make_plan(
    query: Query,
    columns: pa.Schema,
    *,
    sequence: str | None = None,
    positions: bool = False,
    counts: CountForm = "decimal",
    flat: bool = False,
    max_matches: int | None = None,
    **roles: Unpack[EventRoles],
) -> JobPlan:
    """Check the query against the columns of the input and decide.

    Raises `InputError` for roles that are not in the input, `QueryError` if the query does not fit it and
    `UnsupportedQueryError` if the engine cannot evaluate it.
    """
    schema = schema_of(columns, **roles)
    result = query.plan(schema).report.shown("structs", None, flat, counts)
    # Orders nothing: it knows what to say of a sequence column that is not there.
    sort_by_time(columns.empty_table(), schema.time, sequence)
    select = query.tree
    # The plan's schema says which values must be held, the checker whether types are text.
    schema = RecordChecker(query.plan(schema).schema, "skip").schema
    by_key = separable_by_key(select, schema)
    numbering = positions or needs_positions(select, schema)
    keys = tuple(tuple(map(schema.column, key)) for key in select.partition)
    transducer = query.plan(schema).transducer
    return JobPlan(
        text=as_query_text(query),
        language=query.language,
        schema=schema,
        sequence=sequence,
        needed=columns_needed(select, schema),
        keys=keys,
        by_key=by_key,
        positions=numbering,
        result=result,
        predicates=pack(query),
        division=divided(select, transducer, schema),
        # What is numbered before is not counted any more.
        relevance=relevant_events(select, transducer, schema, counted=numbering and not by_key),
        counts=counts,
        flat=flat,
        max_matches=max_matches,
    )
