"""Which columns of its input a query reads, and which it reads as numbers or as text.

Files without types (CSV, JSON lines) are read accordingly: a column of digits that is compared with a string stays
text, and a stray word in a column that is compared with a number spoils its row, not the whole run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from cerflow.base.nested import is_nested, root_of
from cerflow.base.schema import ValueKind
from cerflow.language import condition as c
from cerflow.language.formula import As, AttributeWindow, EventKind, EventType, Rename
from cerflow.language.node import Node, walk
from cerflow.language.select import LabelItem, Select
from cerflow.language.sremo import Regular, possible_fields
from cerflow.logic.analysis.demands import KindDemands

#: The names in this many trees are remembered: a set of queries asks for those of all its queries again and again.
_REMEMBERED = 1024


@dataclass(frozen=True)
class ColumnUsage:
    """Names of columns by use; a column is in one of the sets at most, and in ``names``, all that the query reads.

    ``numbers`` are computed with or compared with numbers, ``text`` with strings, ``booleans`` with truth values; of
    ``ordered`` only the order of their values is known to count.
    """

    numbers: frozenset[str] = frozenset()
    text: frozenset[str] = frozenset()
    ordered: frozenset[str] = frozenset()
    booleans: frozenset[str] = frozenset()
    names: frozenset[str] = field(default=frozenset(), compare=False)


@lru_cache(_REMEMBERED)
def attributes_in(tree: Node) -> frozenset[str]:
    """The attributes that a tree reads: in conditions, expressions and windows, as keys, and nested ones as results."""
    found = set()
    for node in walk(tree):
        if isinstance(node, c.Attribute):
            found.add(node.name)
        elif isinstance(node, Regular):
            # Events show whether they are fields.
            found.update(possible.as_field.name for possible in possible_fields(node))
        elif isinstance(node, Select):
            found.update(name for key in node.partition for name in key)
        elif isinstance(node, AttributeWindow):
            found.add(node.attribute)
        elif isinstance(node, LabelItem):
            found.update(filter(is_nested, node.attributes or ()))
    return frozenset(found)


def columns_named(tree: Node, *roles: object) -> set[str] | None:
    """The columns that a query reads, or reports by their names, and those with a role; None for all of them.

    Roles that are not names are left to whoever checks the arguments, and may be fields of the columns named here.
    """
    reported = _reported_in(tree)
    if reported is None:
        return None
    found = attributes_in(tree) | reported
    for role in roles:
        if isinstance(role, str):
            found |= {role, role.partition(".")[0]}
    return set(map(root_of, found))


@lru_cache(_REMEMBERED)
def _reported_in(tree: Node) -> frozenset[str] | None:
    """The attributes that a query reports by their names; None if a predicate gets whole events."""
    nodes = list(walk(tree))
    if any(isinstance(node, c.LabelReference) for node in nodes):
        return None
    return frozenset(name for node in nodes if isinstance(node, LabelItem) for name in node.attributes or ())


def columns_by_type(tree: Node) -> dict[str, frozenset[str] | None]:
    """The columns that a query expects to have values, and of events of which types; None stands for all types.

    Columns that the query tests for null, or has another value for, are not among them.
    """
    nodes = list(walk(tree))
    named = {n.name for n in nodes if isinstance(n, EventType)}
    # Events of a kind may be of any type.
    kinds = {n.name for n in nodes if isinstance(n, EventKind)}
    labels = {name: {name} for name in named}
    for n in nodes:
        if isinstance(n, As):
            found = {inner.name for inner in walk(n.operand) if isinstance(inner, EventType)}
            # Other formulas read events of any type.
            labels.setdefault(n.label, set()).update(found or named)
        elif isinstance(n, Rename):
            labels[n.new] = set(named)
    read: list[tuple[str, str | None]] = [
        (name, None) for n in nodes if isinstance(n, Select) for key in n.partition for name in key
    ]
    read += [(n.attribute, None) for n in nodes if isinstance(n, AttributeWindow)]
    items = [n for n in nodes if isinstance(n, LabelItem)]
    read += [(name, n.label) for n in items for name in n.attributes or ()]
    read += [(n.name, n.label) for n in nodes if isinstance(n, c.Attribute)]
    by_column: dict[str, frozenset[str] | None] = {}
    for column, label in read:
        types = labels.get(label, named) if label is not None else named
        before = by_column.get(column, frozenset())
        by_column[column] = before | types if types and not kinds & types and before is not None else None
    optional = set[str]()
    for n in nodes:
        if isinstance(n, c.IsNull) or (isinstance(n, c.Function) and n.name == "coalesce"):
            optional |= attributes_in(n)
    return {column: types for column, types in by_column.items() if column not in optional}


def usage_of(tree: Node) -> ColumnUsage:
    """The uses of the columns that a query reads; columns with contradicting uses are in ``names`` alone."""
    demands = KindDemands(durations=False)
    demands.read(tree)
    uses = {name: demands.of(name).keys() & {ValueKind.FLOAT, ValueKind.STRING} for name in demands.names}
    rest = {name for name, use in uses.items() if not use}
    ordered = rest & demands.ordered
    items = (node for node in walk(tree) if isinstance(node, LabelItem))
    return ColumnUsage(
        numbers=frozenset(name for name, use in uses.items() if use == {ValueKind.FLOAT}),
        # A string that looks like a date may be meant for a column of timestamps.
        text=frozenset(name for name, use in uses.items() if use == {ValueKind.STRING}),
        ordered=frozenset(ordered),
        booleans=frozenset(name for name in rest - ordered if ValueKind.BOOLEAN in demands.of(name)),
        names=frozenset(attributes_in(tree).union(*(item.attributes or () for item in items))),
    )
