"""SREMO's selection strategies and ``unordered`` by their definitions, before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.language.node import Node, fold, with_children
from cerflow.language.sremo import (
    Alternation,
    AnyMatch,
    Concatenation,
    Epsilon,
    NextMatch,
    Optional,
    Plus,
    Sremo,
    Star,
    Unordered,
)
from cerflow.rewriting.sremo.any_match import rewrite_any
from cerflow.rewriting.sremo.next_match import rewrite_next
from cerflow.rewriting.sremo.unordered import rewrite_unordered

__all__ = ["expand", "without_strategies"]


def without_strategies(expression: Sremo) -> Sremo:
    """The same matches without ``any``, ``next`` and ``unordered``: strategies nest and mix, being only rewritings.

    Raises `UnsupportedQueryError` for ``unordered`` of too many operands.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        parts = [part for part in below if isinstance(part, Sremo)]
        match current:
            case AnyMatch():
                return rewrite_any(current, parts)
            case NextMatch():
                return rewrite_next(current, parts)
            case Unordered():
                return rewrite_unordered(current, parts)
        return with_children(current, below)

    rewritten = fold(expression, visit)
    assert isinstance(rewritten, Sremo)
    return rewritten


def expand(expression: Sremo) -> Sremo:
    """The same with no operators but terminals, EPSILON, EMPTY, ``. | * & !`` and WITHIN; raises as that does."""

    def visit(current: Node, below: Sequence[Node]) -> Node:
        if isinstance(current, Plus | Optional):
            (part,) = (p for p in below if isinstance(p, Sremo))
            return Concatenation(part, Star(part)) if isinstance(current, Plus) else Alternation(Epsilon(), part)
        return with_children(current, below)

    expanded = fold(without_strategies(expression), visit)
    assert isinstance(expanded, Sremo)
    return expanded
