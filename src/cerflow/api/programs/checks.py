"""Checks of programs that need no schema: which statement reads which, and what attributes definitions give."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from cerflow.base.errors import QueryError, UnsupportedQueryError, nearest
from cerflow.language.condition import Attribute
from cerflow.language.event_kinds import refuse_twice
from cerflow.language.formula import AnyEvent, As, EventType
from cerflow.language.node import Node, transform, walk
from cerflow.language.select import CountItem, ExpressionItem, Select, Statements


def check_statements(tree: Statements) -> None:
    """Raises `QueryError` for names, references and attributes that are wrong, and `UnsupportedQueryError`."""
    defined: dict[str, Select] = {}
    everything = [definition.name for definition in tree.definitions]
    for definition in tree.definitions:
        name, select = definition.name, definition.select
        refuse_twice(name, defined, definition.span)
        for stream in select.streams:
            if stream == name:
                raise QueryError(
                    f"the definition '{name}' reads itself",
                    span=select.span,
                    hint="Repetitions are written with +, or {n,m}.",
                )
            if stream in everything and stream not in defined:
                raise QueryError(
                    f"'{name}' reads '{stream}', which is defined below it",
                    span=select.span,
                    hint=f"Move DEFINE {stream} above DEFINE {name}; definitions cannot read each other in a circle.",
                )
        for item in select.projection.items:
            if isinstance(item, CountItem):
                raise UnsupportedQueryError(
                    f"'{name}' counts matches, so it has none that could be events",
                    span=item.span,
                    hint="Select values of each match instead; the query that reads them can count.",
                )
        _check_attributes(select, defined)
        defined[name] = select
    _check_attributes(tree.query, defined)


def reading_input(select: Select, names: set[str]) -> Select:
    """The query, with attributes that only events of the definitions ``names`` have under names of no column."""
    labels = _definitions_of_labels(select, [name for name in select.streams if name in names])
    only = bool(select.streams) and names.issuperset(select.streams)

    def renamed(node: Node) -> Node:
        if isinstance(node, Attribute) and (only or None not in labels.get(str(node.label), {None})):
            return replace(node, name=f"\0{node.name}")
        return node

    changed = transform(select, renamed)
    return replace(changed, partition=()) if only else changed


def _definitions_of_labels(select: Select, read: Collection[str]) -> dict[str, set[str | None]]:
    """The definitions whose events a label stands for, with None if it may be one of the input."""
    labels: dict[str, set[str | None]] = {name: {name} for name in read}
    for node in walk(select.formula):
        if isinstance(node, As):
            for event in walk(node.operand):
                if isinstance(event, EventType | AnyEvent):
                    labels.setdefault(node.label, set()).add(_definition_of(event, read))
        elif isinstance(node, EventType) and node.name in read and _definition_of(node, read) is None:
            labels[node.name].add(None)
    return labels


def _check_attributes(select: Select, defined: Mapping[str, Select]) -> None:
    """Raises `QueryError` for attributes that are read of a definition's events only, which do not have them."""
    read = {name: defined[name] for name in select.streams if name in defined}
    labels = _definitions_of_labels(select, read)
    for node in walk(select):
        if not isinstance(node, Attribute) or node.label is None:
            continue
        names = labels.get(str(node.label), {None})
        known = [_attributes(read[name]) for name in names if name is not None]
        if None in names or not known or any(node.name in some for some in known):
            continue
        name = next(iter(names))
        offered = sorted(known[0])
        near = nearest(node.name, offered)
        raise QueryError(
            f"events of '{name}' have no attribute '{node.name}'",
            span=node.span,
            hint=(f"Did you mean {near}? " if near else "")
            + f"It may compute one, SELECT … AS {node.name}; the time of an event is time({node.label}).",
        )


def _definition_of(event: EventType | AnyEvent, read: Collection[str]) -> str | None:
    """The definition whose events are meant, None if others may be."""
    if event.stream is not None:
        return event.stream if event.stream in read else None
    return event.name if isinstance(event, EventType) and event.name in read else None


def _attributes(select: Select) -> set[str]:
    found = {"type", "start_time", "end_time", *select.key_columns}
    return found | {item.name for item in select.projection.items if isinstance(item, ExpressionItem)}
