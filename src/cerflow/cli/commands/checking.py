"""``cerflow check`` and ``cerflow explain``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal as TypingLiteral

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.cli.commands.mappings import ColumnOptions
from cerflow.cli.commands.request import Inputs, load_query
from cerflow.cli.output.reporting import count, located, warn
from cerflow.engine.events.time_order import extent
from cerflow.errors import nearest
from cerflow.files.reading import ReadEvents, read_inputs
from cerflow.files.sources import InputFormat
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Expression,
    In,
    Literal,
)
from cerflow.language.formula import As, EventType, Rename, Window
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.sremo import Terminal
from cerflow.query import Language, Query
from cerflow.schema import Kind, Schema
from cerflow.values.operators import Operator

__all__ = ["event_types", "explain_query", "summarise_query", "types_in", "warn_of_types"]

ExplainFormatName = TypingLiteral["text", "json", "dot"]

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
) -> str:
    """The summary of a sound query; raises the error of one that is not.

    Warns of what is probably not meant: types that never occur, parts that never match, branches that add nothing.
    """
    query = load_query(path, expression, language)
    schema = None
    times = None
    if inputs:
        events, schema = _read(query, inputs, input_format, options)
        query.check(schema)
        times = extent(events.table, schema)
        warn_of_types(event_types(query), types_in(events.table, schema.type))
        for remark in events.remarks:
            warn(remark)
        if events.refused is not None:
            row, reason = (events.refused.column(name)[0] for name in ("row", "reason"))
            warn(f"{count(len(events.refused), 'row')} of the input cannot be used; the first is row {row}: {reason}")
    else:
        query.check()
    for warning in query.warnings(schema, times):
        warn(located(warning, path))
    return _summary(query, schema) + (_columns(schema) if schema is not None else "")


def explain_query(
    path: str | None,
    expression: str | None,
    inputs: Sequence[str],
    input_format: InputFormat | None,
    options: ColumnOptions,
    form: ExplainFormatName,
    *,
    language: Language | None = None,
) -> str:
    """The explanation of a query, for the schema of the inputs if there are any."""
    query = load_query(path, expression, language)
    schema = None
    if inputs:
        _, schema = _read(query, inputs, input_format, options)
    for warning in query.warnings(schema):
        warn(located(warning, path))
    return query.explain(form, schema=schema)


def _read(
    query: Query, inputs: Sequence[str], input_format: InputFormat | None, options: ColumnOptions
) -> tuple[ReadEvents, Schema]:
    found = Inputs.prepare(query, inputs, input_format, options)
    columns = found.columns
    events = read_inputs(found.inputs, columns, named=found.named)
    return events, columns.schema(events.table.schema, events.stream)


def types_in(events: pa.Table, type_column: str) -> frozenset[str]:
    """The types that events have."""
    return frozenset(str(v) for v in pc.unique(events.column(type_column)).to_pylist())


def warn_of_types(named: Iterable[str], occurring: Collection[str]) -> None:
    """Say which of the types that a query names no event has, and what was perhaps meant."""
    for name in sorted(set(named).difference(occurring)):
        near = nearest(name, occurring)
        warn(f"no event of the input has the type '{name}'" + (f"; did you mean '{near}'?" if near else ""))


def event_types(query: Query) -> set[str]:
    """The types that a query names: of SREMO those that the type of the event read is compared with."""
    found = {n.name for n in walk(query.tree) if isinstance(n, EventType)}
    for terminal in (n for n in walk(query.tree) if isinstance(n, Terminal)):
        for n in walk(terminal.condition):
            if isinstance(n, Comparison) and n.operator is Operator.EQ and n.left == _TYPE:
                found.update(_texts((n.right,)))
            elif isinstance(n, In) and n.operand == _TYPE:
                found.update(_texts(n.items))
    return found


def _texts(expressions: Iterable[Expression]) -> Iterator[str]:
    return (e.value for e in expressions if isinstance(e, Literal) and isinstance(e.value, str))


def _columns(schema: Schema) -> str:
    """The columns of the input with the types that they are read as, one a line."""
    words = {Kind.STRING: "text", Kind.OTHER: ""}
    width = max((len(field.name) for field in schema.columns), default=0)
    lines = ["columns:"]
    for field in schema.columns:
        word = words.get(schema.kind(field.name), schema.kind(field.name).value) or str(field.type)
        lines.append(f"  {field.name:<{width}}  {word}")
    return "\n" + "\n".join(lines)


def _summary(query: Query, schema: Schema | None) -> str:
    nodes = list(walk(query.tree))
    types = sorted(event_types(query))
    given = {n.label for n in nodes if isinstance(n, As)} | {n.new for n in nodes if isinstance(n, Rename)}
    labels = sorted(given | {n.label for n in nodes if isinstance(n, Terminal) and n.label is not None})
    windows = list(dict.fromkeys(show(n) for n in nodes if isinstance(n, Window)))
    lines = [
        "ok",
        f"event types: {', '.join(types) or 'any'}",
        f"labels:      {', '.join(labels) or 'none of its own'}",
        f"window:      {', '.join(windows) or 'none'}",
    ]
    if query.tree.partition:
        lines.append(f"partitioned: {', '.join('/'.join(key) for key in query.tree.partition)}")
        kept = query.keys_kept(schema)
        if kept is not None:
            lines.append(f"keys:        {kept}")
    return "\n".join(lines)
