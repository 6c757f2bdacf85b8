"""The plan of a query or program for a DataFrame: which columns are sent, and what may run in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import pyarrow as pa

from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.results.report import CountForm
from cerflow.language.condition import Condition
from cerflow.programs.program import Program, query_as_text
from cerflow.pushdown.relevance import Relevance
from cerflow.query import Language, Query
from cerflow.schema import Schema
from cerflow.slices.division import Division
from cerflow.spark.frames.demands import demands_of_program, demands_of_query
from cerflow.spark.frames.tasks import pack
from cerflow.stream_inputs import EventRoles, schema_of
from cerflow.values.nested import attribute_named


@dataclass(frozen=True)
class JobPlan:
    """The plan of a query for a DataFrame.

    ``needed`` are the columns that the query reads or reports; ``keys`` the partition keys, each a tuple of columns
    whose first value that is not null counts. ``by_key`` says that substreams may be evaluated apart from each other,
    otherwise one task sees the whole stream. ``by_clock`` says that they may be if a clock shows deadlines, and
    ``positions`` that positions are reported or read.
    ``predicates`` are those that the query calls, packed to travel. ``division`` says whether and how the stream may be
    cut into slices, ``relevance`` which events have to be sent, and ``precomputed`` which conditions Spark evaluates so
    that less of them has to. ``counts`` and ``flat`` are forms of the result. No task lists more than ``max_matches``.
    ``until`` is an array with a time before which no more events come, if one is known.
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
    until: pa.Array | None = None
    by_clock: bool = False


def make_plan(
    query: Query | Program,
    columns: pa.Schema,
    *,
    sequence: str | None = None,
    positions: bool = False,
    counts: CountForm = "decimal",
    flat: bool = False,
    max_matches: int | None = None,
    until: object = None,
    **roles: Unpack[EventRoles],
) -> JobPlan:
    """Check a query against the columns of the input, and make its plan.

    Raises `InputError` for roles that are not in the input, `QueryError` if the query does not fit it and
    `UnsupportedQueryError` if the engine cannot evaluate it.
    """
    schema = schema_of(columns, **roles)
    sequence = None if sequence is None else attribute_named(schema.columns, sequence)
    # Raises the error for a missing sequence column.
    sort_by_time(columns.empty_table(), schema.time, sequence)
    if isinstance(query, Program):
        plan = query.plan(schema)
        demands = demands_of_program(plan, positions=positions)
        report, schema = plan.last(demands.positions).report, plan.schema
    else:
        # The plan's schema says which values must be held.
        schema = query.plan(schema).schema
        demands = demands_of_query(query, schema, positions=positions)
        report = query.plan(schema, positions=demands.positions).report
    # Raises if the type column holds no text.
    RecordChecker(schema, "skip")
    return JobPlan(
        text=query_as_text(query),
        language="ceql" if isinstance(query, Program) else query.language,
        schema=schema,
        sequence=sequence,
        needed=demands.needed,
        keys=demands.keys,
        by_key=demands.by_key,
        positions=demands.positions,
        result=report.shown("structs", None, flat, counts),
        predicates=pack(query),
        division=demands.division,
        relevance=demands.relevance,
        counts=counts,
        flat=flat,
        max_matches=max_matches,
        until=None if until is None else clock_time(until, schema),
        by_clock=demands.by_clock,
    )
