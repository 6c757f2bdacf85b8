"""``cerflow check`` and ``cerflow explain``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from contextvars import copy_context

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.base.errors import QueryWarning, counted, dotted
from cerflow.base.schema import Schema, ValueKind
from cerflow.cli.commands.request import Inputs, load_query
from cerflow.cli.options import ExplainFormat, InputOptions, QueryOptions
from cerflow.cli.output.reporting import located, warn, width_of
from cerflow.engine.events.time_order import extent
from cerflow.language import formula as f
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.language.sremo import Terminal, Windowed
from cerflow.logic.analysis.columns import attributes_in

#: Operators between whose parts no event may lie.
_SIGNS: dict[type[Node], str] = {f.StrictSequence: ":", f.StrictIteration: ":+"}


def summarise_query(asked: QueryOptions, inputs: InputOptions) -> str:
    """The summary of a valid query; raises the error of an invalid one.

    Warns of probable mistakes: types that never occur, parts that never match, branches that add nothing.
    """
    query, path = load_query(asked), asked.query
    schema = times = None
    if inputs.inputs:
        events = Inputs.prepare(query, inputs).read()
        schema = events.schema
        query.check(schema)
        times = extent(events.table, schema)
        warn_of_types(query, schema.types_in(events.table))
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
    parts = ["ok"]
    for name, each in query.queries.items():
        if isinstance(query, Program):
            reads = ", ".join(each.tree.streams) or "the input"
            parts.append(f"\n{'query' if name is None else f'definition {name}'}, reads {reads}")
        parts += _summary(each, schema if isinstance(query, Query) else None)
    return "\n".join(parts if schema is None else [*parts, *_columns(schema)])


def explanation_of(asked: QueryOptions, inputs: InputOptions, form: ExplainFormat) -> str:
    """The explanation of a query, for the schema of the inputs if there are any."""
    # A run, which imports this module, explains nothing.
    from cerflow.look.explaining.text import WIDTH

    query, path = load_query(asked), asked.query
    schema = None
    if inputs.inputs:
        schema = Inputs.prepare(query, inputs).read().schema
    for warning in query.warnings(schema):
        warn(located(warning, path))
    terminal = copy_context()
    terminal.run(WIDTH.set, min(102, width_of(sys.stdout, 102)))
    return terminal.run(query.explain, form, schema)


def warn_of_types(query: Query | Program, occurring: Collection[str] | None) -> None:
    """Warn of each type that a query names and that does not occur; None stands for events without types."""
    if occurring is None:
        return
    for each in query.queries.values():
        for doubt in each.doubtful_types(occurring):
            warnings.warn(doubt, stacklevel=2)


def _gap(query: Query, events: pa.Table, schema: Schema) -> QueryWarning | None:
    """A warning if the query skips no events, but its keys also have events of types that it does not name."""
    nodes = list(walk(query.tree))
    if schema.untyped:
        return None
    strict = next((n for n in nodes if type(n) in _SIGNS or (isinstance(n, f.Repetition) and n.strict)), None)
    if strict is None or any(isinstance(n, f.AnyEvent | f.NotEvent | f.EventKind) for n in nodes):
        return None
    sign = _SIGNS.get(type(strict), ":{…}")
    if query.tree.streams and schema.stream is not None:
        streams = pa.array(query.tree.streams, pa.string())
        events = events.filter(pc.is_in(events.column(schema.stream).cast(pa.string()), value_set=streams))
    events = schema.reading(attributes_in(query.tree)).completed(events)
    types = events.column(schema.type).cast(pa.string())
    named = pc.is_in(types, value_set=pa.array(sorted(query.types_named()), pa.string()))
    keys = {
        f"key {k}": pc.coalesce(*(events.column(schema.column(name)).cast(pa.string()) for name in key))
        for k, key in enumerate(query.tree.partition)
    }
    table = pa.table({**keys, "named": named, "type": types}).drop_null()
    found = table.group_by(list(keys)).aggregate([("named", "any"), ("named", "all")])
    if not pc.any(pc.and_not(found.column("named_any"), found.column("named_all"))).as_py():
        return None
    others = pc.unique(table.filter(pc.invert(table.column("named"))).column("type")).to_pylist()
    few = ", ".join(f"'{name}'" for name in sorted(others)[:3]) + (", …" if len(others) > 3 else "")
    return QueryWarning(
        f"'{sign}' skips no events, but the input also has events of other types ({few})"
        + (" with the same keys" if keys else ""),
        span=strict.span,
        hint="If they should not count, put the others into a stream of their own and name it after FROM.",
    ).with_source(query.text)


def _columns(schema: Schema) -> list[str]:
    width = max((len(name) for name in schema.known_names), default=0)
    words = {name: schema.kind(name).value for name in schema.known_names}
    for name, word in words.items():
        if word in (ValueKind.STRING, ValueKind.OTHER):
            words[name] = "text" if word == ValueKind.STRING else str(schema.columns.field(name).type)
    return ["columns:", *(f"  {name:<{width}}  {word}" for name, word in words.items())]


def _summary(query: Query, schema: Schema | None) -> list[str]:
    tree, nodes = query.tree, list(walk(query.tree))
    labels = {n.label for n in nodes if isinstance(n, f.As | Terminal) and n.label is not None}
    labels |= {n.new for n in nodes if isinstance(n, f.Rename)}
    labels = labels.union(*(n.labels for n in nodes if isinstance(n, AutomatonFormula)))
    # Matches of the first-order reading have no labels.
    shown = sorted(labels) if query.reading == "second-order" else []
    windows = [] if tree.window is None else [show(tree.window)]
    windows += [f"{show(n.window)} for {_short(n.operand)}" for n in nodes if isinstance(n, f.Within | Windowed)]
    absences = [f"{show(n.window)} without {_short(n.right)}" for n in nodes if isinstance(n, f.NotFollowedBy)]
    keys = dotted(", ".join("/".join(key) for key in tree.partition))
    kept = query.keys_kept(schema) if tree.partition else None
    lines = {
        "event types": ", ".join(sorted(query.types_named())) or "any",
        "labels": ", ".join(shown) or "none of its own",
        "window": ", ".join(dict.fromkeys(windows)) or "none",
        "deadline": ", ".join(dict.fromkeys(absences)),
        "partitioned": keys,
        "keys": kept,
    }
    return [f"{name + ':':<12} {line}" for name, line in lines.items() if line]


def _short(node: Node) -> str:
    text = show(node, kinds=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
