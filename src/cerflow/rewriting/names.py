"""Names that a formula does not use yet."""

from __future__ import annotations

from collections.abc import Iterable

from cerflow.analysis.scopes import condition_labels
from cerflow.language.formula import EventType, Formula
from cerflow.language.node import Node, walk


def names_of(tree: Node) -> set[str]:
    """The labels, variables and event types that are mentioned anywhere in a tree."""
    found = set(condition_labels(tree))
    for current in walk(tree):
        if isinstance(current, Formula):
            found.update(current.names, (current.name,) if isinstance(current, EventType) else ())
    return found


class FreshNames:
    """Hands out names that are neither taken nor handed out before."""

    def __init__(self, *trees: Node, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken).union(*map(names_of, trees))
        self._counted: dict[str, int] = {}

    def like(self, name: str) -> str:
        """A new name that shows where it comes from: ``x'1``, ``x'2``, …"""
        base = name.split("'")[0] or "x"
        number = self._counted.get(base, 0) + 1
        while f"{base}'{number}" in self._taken:
            number += 1
        self._counted[base] = number
        self._taken.add(f"{base}'{number}")
        return f"{base}'{number}"
