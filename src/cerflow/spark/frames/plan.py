"""The plan of a query or program for a DataFrame: columns, positions, one task or many, and how far back matches go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any, TypeVar, Unpack

import pyarrow as pa

from cerflow.api.programs.merged_streams import ProgramPlan
from cerflow.api.programs.program import Program, query_as_text
from cerflow.api.query import Query, Statement
from cerflow.api.stream_inputs import EventRoles, free_name, schema_of
from cerflow.base.nested import attribute_named
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.engine.events.records import RecordChecker
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.pushdown.relevance import Relevance, relevant_events
from cerflow.engine.recognize import columns_needed as needs
from cerflow.engine.results.report import CountForm
from cerflow.engine.slices.division import Division, divided
from cerflow.language.condition import Attribute, Comparison, Condition, In, Literal, Or
from cerflow.language.formula import DurationWindow
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.conditions.connectives import FALSE, TRUE
from cerflow.logic.conditions.propositions import simplified, substituted
from cerflow.logic.rewriting.keys import ImpliedKey, implied_keys, partitioned_by
from cerflow.spark.frames.tasks import Recognition, pack

_F = TypeVar("_F", bound=Callable[..., Any])
_REPORTED = "positions count the events of definitions, too, so one task has to see all (unless positions=False)"
_READ = "a statement reads positions, which count the events of definitions, too"
_NO_TIME = "without a time column, times are positions, which count the events of definitions, too"


@dataclass(frozen=True, kw_only=True)
class Demands:
    """The demands of a query or program on columns of some schema.

    ``needed`` are the columns that it reads or reports; ``keys`` the partition keys, each a tuple of columns whose
    first value that is not null counts. ``by_key`` says that substreams may be evaluated apart from each other,
    otherwise one task sees the whole stream. ``by_clock`` says that they may be if a clock shows deadlines, and
    ``positions`` that positions are reported or read. ``implied`` are keys that follow from conditions, which the query
    asks itself. ``division`` says whether and how the stream may be cut into
    slices, ``relevance`` which events have to be sent.
    """

    needed: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    by_key: bool
    positions: bool
    division: Division
    relevance: Relevance
    by_clock: bool = False
    implied: tuple[ImpliedKey, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JobPlan(Demands):
    """The plan of a query for a DataFrame; ``task`` is the work of tasks that would get all columns of ``schema``."""

    query: Query | Program
    schema: Schema
    sequence: str | None
    result: pa.Schema
    task: Recognition

    def recognition(self, *, numbered: bool = False) -> Recognition:
        """The work of tasks that get the columns needed, and with ``numbered`` one more with positions."""
        schema = self.schema
        columns = pa.schema([schema.columns.field(name) for name in self.needed])
        position = free_name("position", schema.columns.names) if numbered else None
        if position is not None:
            columns = columns.append(pa.field(position, pa.int64()))
        # Even the type may not be sent.
        type = schema.type if schema.type in self.needed else PRECOMPUTED
        sent = Schema(columns, type, schema.time, schema.stream, schema.time_unit, schema.forget)
        return replace(self.task, schema=sent, position=position)


class PlanArguments(EventRoles, total=False):
    """The arguments of `make_plan` that say what events mean, and which matches there are."""

    sequence: str | None
    positions: bool
    counts: CountForm
    flat: bool
    max_matches: int | None
    until: Any


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
    if sequence is not None:
        sequence = attribute_named(schema.columns, sequence)
        schema = schema.reading([sequence])
    # Raises the error for a missing sequence column.
    sort_by_time(schema.columns.empty_table(), schema.time, sequence)
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
    task = Recognition(
        query=query_as_text(query),
        language="ceql" if isinstance(query, Program) else query.language,
        schema=schema,
        type=schema.type,
        position=None,
        positions=demands.positions,
        predicates=pack(query),
        counts=counts,
        flat=flat,
        max_matches=max_matches,
        until=None if until is None else clock_time(until, schema),
    )
    result = report.shown("structs", None, flat, counts)
    return JobPlan(**vars(demands), query=query, schema=schema, sequence=sequence, result=result, task=task)


def showing_arguments(function: _F, without: Sequence[str] = ()) -> _F:
    """Show `PlanArguments`, with their defaults, in the signature of a function, for its help and for completion."""
    own, defaults = signature(function), {**signature(schema_of).parameters, **signature(make_plan).parameters}
    named = [parameter for parameter in own.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    shared = [defaults[name] for name in PlanArguments.__annotations__ if name not in without]
    function.__signature__ = own.replace(parameters=[*named, *shared])  # type: ignore[attr-defined]
    return function


def for_batches(plan: JobPlan) -> JobPlan:
    """The plan of a batch: keys that follow from conditions divide what nothing else does.

    A stream keeps its keys, as its state is divided by them.
    """
    if plan.by_key or plan.by_clock or isinstance(plan.query, Program):
        return plan
    keys = tuple(implied_keys(plan.query.tree, plan.schema))
    demands = demands_of_query(plan.query, plan.schema, positions=plan.positions, implied=keys)
    # Slices of time are tried before keys with a clock, but not always before other keys.
    divides = demands.by_clock or (demands.by_key and plan.division.window is None)
    return replace(plan, **vars(demands)) if keys and divides else plan


def demands_of_query(query: Query, schema: Schema, *, positions: bool, implied: tuple[ImpliedKey, ...] = ()) -> Demands:
    """The demands of a query; ``positions`` says whether it reports positions, ``implied`` are further keys."""
    select = query.tree
    keyed = partitioned_by(select, implied)
    by_key = needs.separable_by_key(keyed, schema)
    positions = positions or needs.needs_positions(select, schema)
    transducer = query.plan(schema).transducer
    return Demands(
        needed=needs.columns_needed(select, schema),
        keys=tuple(tuple(map(schema.column, key)) for key in keyed.partition),
        by_key=by_key,
        implied=implied,
        positions=positions,
        division=divided(select, transducer, schema),
        # By key, events are numbered before irrelevant ones are dropped.
        relevance=relevant_events(select, transducer, schema, counted=positions and not by_key),
        by_clock=not by_key and not positions and schema.forget is None and needs.separable_by_clock(keyed, schema),
    )


def demands_of_program(plan: ProgramPlan, *, positions: bool) -> Demands:
    """The demands of a program; ``positions`` says whether it reports positions."""
    schema, statements = plan.schema, plan.statements
    read = {schema.type, schema.time, schema.stream}
    read.update(*(needs.columns_needed(s.query.tree, s.schema) for s in statements))
    reading = [needs.needs_positions(s.query.tree, s.schema) for s in statements]
    why = _READ if any(reading) else _REPORTED if positions else _NO_TIME if schema.time is None else None
    positions = positions or reading[-1]
    keys = () if why else _common_keys(statements, schema)
    return Demands(
        needed=tuple(name for name in schema.attributes if name in read),
        keys=tuple(tuple(map(schema.column, key)) for key in keys),
        by_key=bool(keys) and all(needs.separable_by_key(s.query.tree, s.schema) for s in statements),
        positions=positions,
        division=Division(None, why) if why else _division(statements, schema),
        relevance=Relevance(TRUE, (why,)) if why else _relevance(statements, schema),
    )


def _common_keys(statements: Sequence[Statement], schema: Schema) -> list[tuple[str, ...]]:
    """The keys of PARTITION BY that all statements have; an event of a definition has the keys of its match.

    Events of other keys may still be needed to show deadlines.
    """
    if not all(needs.separable_by_key(s.query.tree, s.schema, clocked=True) for s in statements):
        return []
    roles = {schema.type, schema.time, schema.stream}
    return [
        key
        for key in dict.fromkeys(statements[-1].query.tree.partition)
        if all(schema.has(name) and schema.column(name) not in roles for name in key)
        and all(key in s.query.tree.partition for s in statements)
    ]


def _division(statements: Sequence[Statement], schema: Schema) -> Division:
    """A window of time that contains a match of the last statement and all input events that it depends on."""
    assert schema.time is not None
    if schema.kind(schema.time) is ValueKind.FLOAT:
        return Division(None, "windows of definitions are not added up where times are floats")
    lookback: dict[str | None, int] = {}
    for statement in statements:
        select = statement.query.tree
        transducer = statement.query.plan(statement.schema).transducer
        # LIMIT must choose the same matches in every slice, since other statements read them.
        found = divided(select, transducer, statement.schema, threads=statement.name is not None)
        of = f"the definition '{statement.name}'" if statement.name is not None else "the last query"
        if found.window is None:
            return Division(None, f"of {of}: {found.reason}")
        if found.late:
            # Not every event of the input is one that the statement reads, and so shows a deadline.
            return Division(None, f"of {of}: any event that it reads may show that a deadline has passed")
        if not isinstance(found.window, DurationWindow):
            return Division(None, f"the window of {of} is not a window of time")
        before = max((lookback[name] for name in statement.definitions), default=0)
        lookback[statement.name] = found.window.microseconds + before
    return Division(DurationWindow(lookback[None]), "no match goes back further than the windows of all statements")


def _relevance(statements: Sequence[Statement], schema: Schema) -> Relevance:
    found: list[Condition] = []
    reasons: dict[str, None] = {}
    for statement in statements:
        if statement.merged and not statement.inputs:
            continue
        transducer = statement.query.plan(statement.schema).transducer
        relevance = relevant_events(statement.query.tree, transducer, statement.schema, counted=False)
        found.append(_of_input(relevance.condition, statement, schema))
        reasons.update(dict.fromkeys(relevance.reasons))
    return Relevance(simplified(Or, found), tuple(reasons))


def _of_input(condition: Condition, statement: Statement, schema: Schema) -> Condition:
    """A proposition about the events that a statement reads, made for input events; it may be true of more events."""

    def known(leaf: Condition) -> Condition:
        names = attributes_in(leaf)
        stream = statement.schema.stream
        if stream is not None and stream != schema.stream and stream in names:
            # The input has no such column: all its events belong to the one stream that is not a definition.
            match leaf:
                case Comparison(Operator.EQ, Attribute(None), Literal(name)):
                    return TRUE if name == statement.inputs[0] else FALSE
                case In(Attribute(None), items, False):
                    return TRUE if Literal(statement.inputs[0]) in items else FALSE
            return TRUE
        # A column must have the same values in the input and in the events that the statement reads.
        if not all(map(schema.has, names)):
            return TRUE
        read, own = ([some.columns.field(some.column(n)).type for n in names] for some in (statement.schema, schema))
        return leaf if read == own else TRUE

    return substituted(condition, known)
