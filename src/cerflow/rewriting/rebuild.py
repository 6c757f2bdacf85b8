"""Copies of trees with other parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, cast

from cerflow.language.condition import Attribute, Bracket, LabelReference
from cerflow.language.node import Node, fold

__all__ = ["rebuilt", "relabelled", "transformed"]

N = TypeVar("N", bound=Node)


def rebuilt(current: N, children: Sequence[Node]) -> N:
    """The node with other children, in the order of `Node.children`; itself if they are the same."""
    if all(new is old for new, old in zip(children, current.children)):
        return current
    remaining = iter(children)
    values: dict[str, Any] = {"span": current.span}
    for entry in fields(current):
        if entry.name == "span":
            continue
        value = getattr(current, entry.name)
        if isinstance(value, Node):
            value = next(remaining)
        elif isinstance(value, tuple):
            value = tuple(next(remaining) if isinstance(v, Node) else v for v in value)
        values[entry.name] = value
    return type(current)(**values)


def transformed(root: N, change: Callable[[int, Node], Node]) -> N:
    """The tree after ``change(occurrence, node)`` on every node, bottom-up.

    Occurrences count as in `walk`; the node handed over has its new children already. What ``change`` returns must be
    of a sort that may stand in its place.
    """
    index = -1

    def visit(current: Node, below: Sequence[Node]) -> Node:
        nonlocal index
        index += 1
        return change(index, rebuilt(current, below))

    return cast(N, fold(root, visit))


def relabelled(root: N, names: Mapping[str, str]) -> N:
    """A condition or expression that speaks of other labels."""

    def change(_: int, current: Node) -> Node:
        match current:
            case Attribute(label=str(label)) if label in names:
                return Attribute(names[label], current.name, span=current.span)
            case LabelReference(label=str(label)) if label in names:
                return LabelReference(names[label], span=current.span)
            case Bracket() if current.label in names:
                return Bracket(names[current.label], current.condition, span=current.span)
        return current

    return transformed(root, change)
