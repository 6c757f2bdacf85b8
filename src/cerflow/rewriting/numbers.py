"""Integers in places where floats may occur, as floats: the values of CASE and ``coalesce``.

So the value has one kind whichever part gives it, as in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from cerflow.analysis.kinds import Sort, sort_of_node
from cerflow.language.condition import Arithmetic, Attribute, Expression, Function, If, Literal
from cerflow.language.node import Node, fold, walk, with_children
from cerflow.schema import Schema, ValueKind

N = TypeVar("N", bound=Node)


def with_floats(tree: N, schema: Schema) -> N:
    """The same query, condition or expression, which fits the schema; itself if no integer becomes a float."""
    if not any(map(_is_choice, walk(tree))):
        return tree
    return cast(N, fold(tree, lambda current, below: _visit(current, below, schema))[0])


def _is_choice(current: Node) -> bool:
    return isinstance(current, If) or (isinstance(current, Function) and current.name == "coalesce")


def _visit(current: Node, below: Sequence[tuple[Node, Sort]], schema: Schema) -> tuple[Node, Sort]:
    trees = [tree for tree, _ in below]
    unread = (
        isinstance(current, Attribute) and schema.has(current.name) and schema.kind(current.name) is ValueKind.OTHER
    )
    if unread or not isinstance(current, Expression):
        return with_children(current, trees), Sort(None)
    sort = sort_of_node(current, [known for _, known in below], schema)
    if sort.kind is ValueKind.FLOAT and _is_choice(current):
        trees = [_as_float(tree) if known.kind is ValueKind.INTEGER else tree for tree, known in below]
    return with_children(current, trees), sort


def _as_float(tree: Node) -> Node:
    if isinstance(tree, Literal):
        return Literal(float(cast(int, tree.value)), span=tree.span)
    return Arithmetic("*", cast(Expression, tree), Literal(1.0), span=tree.span)
