"""``cerflow check`` and ``cerflow explain``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal as TypingLiteral

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.analysis.scopes import relation_names
from cerflow.cli.commands.mappings import ColumnOptions
from cerflow.cli.commands.request import Inputs, load_query
from cerflow.cli.output.reporting import located, warn
from cerflow.engine.events.time_order import extent
from cerflow.errors import QueryWarning, counted, nearest
from cerflow.files.reading import ReadEvents, read_inputs
from cerflow.files.sources import InputFormat
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Expression,
    In,
    Literal,
)
from cerflow.language.formula import (
    AnyEvent,
    As,
    EventKind,
    NotEvent,
    NotFollowedBy,
    Rename,
    Repetition,
    StrictIteration,
    StrictSequence,
    Within,
)
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.language.sremo import Terminal, Windowed
from cerflow.programs.program import Program
from cerflow.query import Language, Query, Reading
from cerflow.schema import Schema, ValueKind
from cerflow.values.operators import Operator

__all__ = ["event_types", "explanation_of", "summarise_query", "types_in", "warn_of_types"]

ExplainFormatName = TypingLiteral["text", "json", "dot", "mermaid", "svg", "boxes"]

#: Operators between whose parts no event may lie.
_SIGNS: dict[type[Node], str] = {StrictSequence: ":", StrictIteration: ":+"}
#: The type of the event read, in SREMO.
_TYPE = Attribute(None, "type")


def summarise_query(
    path: str | None,
    expression: str | None,
    inputs: Sequence[str],
    input_format: InputFormat | None,
    options: ColumnOptions,
    *,
    language: Language | None = None,
    reading: Reading = "second-order",
) -> str:
    """The summary of a sound query; raises the error of an unsound one.

    Warns of probable mistakes: types that never occur, parts that never match, branches that add nothing.
    """
    query = load_query(path, expression, language, reading)
    schema = None
    times = None
    if inputs:
        events, schema = _read(query, inputs, input_format, options)
        query.check(schema)
        times = extent(events.table, schema)
        warn_of_types(event_types(query), types_in(events.table, schema.type))
        gap = _gap(query, events.table, schema) if isinstance(query, Query) else None
        if gap is not None:
            warn(located(gap, path))
        for remark in events.remarks:
            warn(remark)
        if events.refused is not None:
            row, reason = (events.refused.column(name)[0] for name in ("row", "reason"))
            warn(f"{counted(len(events.refused), 'row')} of the input cannot be used; the first is row {row}: {reason}")
    else:
        query.check()
    for warning in query.warnings(schema, times):
        warn(located(warning, path))
    return _summary_of(query, schema) + (_columns(schema) if schema is not None else "")


def explanation_of(
    path: str | None,
    expression: str | None,
    inputs: Sequence[str],
    input_format: InputFormat | None,
    options: ColumnOptions,
    form: ExplainFormatName,
    *,
    language: Language | None = None,
    reading: Reading = "second-order",
) -> str:
    """The explanation of a query, for the schema of the inputs if there are any."""
    query = load_query(path, expression, language, reading)
    schema = None
    if inputs:
        _, schema = _read(query, inputs, input_format, options)
    for warning in query.warnings(schema):
        warn(located(warning, path))
    return query.explain(form, schema=schema)


def _read(
    query: Query | Program, inputs: Sequence[str], input_format: InputFormat | None, options: ColumnOptions
) -> tuple[ReadEvents, Schema]:
    found = Inputs.prepare(query, inputs, input_format, options)
    columns = found.columns
    events = read_inputs(found.inputs, columns, named=found.named)
    return events, columns.schema(events.table.schema, events.stream)


def types_in(events: pa.Table, type_column: str) -> frozenset[str]:
    """The types of the events."""
    return frozenset(str(v) for v in pc.unique(events.column(type_column)).to_pylist())


def warn_of_types(named: Iterable[str], occurring: Collection[str]) -> None:
    """Warn of each named type that no event has, and suggest a similar one."""
    for name in sorted(set(named).difference(occurring)):
        near = nearest(name, occurring)
        warn(f"no event of the input has the type '{name}'" + (f"; did you mean '{near}'?" if near else ""))


def event_types(query: Query | Program) -> set[str]:
    """The types of input events that a query names; in SREMO, the texts that the type of the event is compared with."""
    if isinstance(query, Program):
        statements = [*query.definitions.values(), query.query]
        return set[str]().union(*map(event_types, statements)).difference(query.definitions)
    found = set(relation_names(query.tree))
    for terminal in (n for n in walk(query.tree) if isinstance(n, Terminal)):
        for n in walk(terminal.condition):
            if isinstance(n, Comparison) and n.operator is Operator.EQ and n.left == _TYPE:
                found.update(_texts((n.right,)))
            elif isinstance(n, In) and n.operand == _TYPE:
                found.update(_texts(n.items))
    return found


def _gap(query: Query, events: pa.Table, schema: Schema) -> QueryWarning | None:
    """A warning if the query skips no events, but its keys also have events of types that it does not name."""
    nodes = list(walk(query.tree))
    strict = next((n for n in nodes if type(n) in _SIGNS or (isinstance(n, Repetition) and n.strict)), None)
    if strict is None or any(isinstance(n, AnyEvent | NotEvent | EventKind) for n in nodes):
        return None
    sign = _SIGNS.get(type(strict), ":{…}")
    if query.tree.streams and schema.stream is not None:
        streams = pa.array(query.tree.streams, pa.string())
        events = events.filter(pc.is_in(events.column(schema.stream).cast(pa.string()), value_set=streams))
    types = events.column(schema.type).cast(pa.string())
    named = pc.is_in(types, value_set=pa.array(sorted(event_types(query)), pa.string()))
    keys = {
        f"key {k}": pc.coalesce(*(events.column(schema.column(name)).cast(pa.string()) for name in key))
        for k, key in enumerate(query.tree.partition)
    }
    table = pa.table({**keys, "named": named, "type": types}).drop_null()
    found = table.group_by(list(keys)).aggregate([("named", "any"), ("named", "all")])
    if not pc.any(pc.and_not(found.column("named_any"), found.column("named_all"))).as_py():
        return None
    others = types_in(table.filter(pc.invert(table.column("named"))), "type")
    few = ", ".join(f"'{name}'" for name in sorted(others)[:3]) + (", …" if len(others) > 3 else "")
    warning = QueryWarning(
        f"'{sign}' skips no events, but the input also has events of other types ({few})"
        + (" with the same keys" if keys else ""),
        span=strict.span,
        hint="If they should not count, put the others into a stream of their own and name it behind FROM.",
    )
    if query.text is not None:
        warning.with_source(query.text)
    return warning


def _texts(expressions: Iterable[Expression]) -> Iterator[str]:
    return (e.value for e in expressions if isinstance(e, Literal) and isinstance(e.value, str))


def _columns(schema: Schema) -> str:
    """The columns of the input and their types, one per line."""
    words = {ValueKind.STRING: "text", ValueKind.OTHER: ""}
    width = max((len(field.name) for field in schema.columns), default=0)
    lines = ["columns:"]
    for field in schema.columns:
        word = words.get(schema.kind(field.name), schema.kind(field.name).value) or str(field.type)
        lines.append(f"  {field.name:<{width}}  {word}")
    return "\n" + "\n".join(lines)


def _summary_of(query: Query | Program, schema: Schema | None) -> str:
    if isinstance(query, Query):
        return f"ok\n{_summary(query, schema)}"
    parts = ["ok"]
    for name, each in (*query.definitions.items(), (None, query.query)):
        reads = ", ".join(each.tree.streams) or "the input"
        parts += [f"\n{'query' if name is None else f'definition {name}'}, reads {reads}", _summary(each, None)]
    return "\n".join(parts)


def _summary(query: Query, schema: Schema | None) -> str:
    nodes = list(walk(query.tree))
    types = sorted(event_types(query))
    given = {n.label for n in nodes if isinstance(n, As)} | {n.new for n in nodes if isinstance(n, Rename)}
    given |= {n.label for n in nodes if isinstance(n, Terminal) and n.label is not None}
    given = given.union(*(n.labels for n in nodes if isinstance(n, AutomatonFormula)))
    # Matches of the first-order reading have no labels.
    labels = sorted(given) if query.reading == "second-order" else []
    windows = [] if query.tree.window is None else [show(query.tree.window)]
    windows += [f"{show(n.window)} for {_short(show(n.operand))}" for n in nodes if isinstance(n, Within | Windowed)]
    lines = [
        f"event types: {', '.join(types) or 'any'}",
        f"labels:      {', '.join(labels) or 'none of its own'}",
        f"window:      {', '.join(dict.fromkeys(windows)) or 'none'}",
    ]
    absences = [f"{show(n.window)} without {_short(show(n.right))}" for n in nodes if isinstance(n, NotFollowedBy)]
    if absences:
        lines.append(f"deadline:    {', '.join(dict.fromkeys(absences))}")
    if query.tree.partition:
        lines.append(f"partitioned: {', '.join('/'.join(key) for key in query.tree.partition)}")
        kept = query.keys_kept(schema)
        if kept is not None:
            lines.append(f"keys:        {kept}")
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
