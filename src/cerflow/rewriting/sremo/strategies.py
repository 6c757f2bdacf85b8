"""SREMO's selection strategies and ``unordered`` by their definitions, before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.language import sremo as r
from cerflow.language.node import Node, fold, with_children
from cerflow.rewriting.sremo.any_match import rewrite_any
from cerflow.rewriting.sremo.next_match import rewrite_next
from cerflow.rewriting.sremo.unordered import rewrite_unordered


def without_strategies(expression: r.Sremo) -> r.Sremo:
    """The same matches without ``any``, ``next`` and ``unordered``: strategies nest and mix, being only rewritings.

    Raises `UnsupportedQueryError` for ``unordered`` of too many operands.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        parts = [part for part in below if isinstance(part, r.Sremo)]
        match current:
            case r.AnyMatch():
                return rewrite_any(current, parts)
            case r.NextMatch():
                return rewrite_next(current, parts)
            case r.Unordered():
                return rewrite_unordered(current, parts)
        return with_children(current, below)

    rewritten = fold(expression, visit)
    assert isinstance(rewritten, r.Sremo)
    return rewritten


def expand(expression: r.Sremo) -> r.Sremo:
    """The same with no operators but terminals, EPSILON, EMPTY, ``. | * & !`` and WITHIN; raises as that does."""

    def visit(current: Node, below: Sequence[Node]) -> Node:
        if isinstance(current, r.Plus | r.Optional):
            (part,) = (p for p in below if isinstance(p, r.Sremo))
            return (
                r.Concatenation(part, r.Star(part)) if isinstance(current, r.Plus) else r.Alternation(r.Epsilon(), part)
            )
        return with_children(current, below)

    expanded = fold(without_strategies(expression), visit)
    assert isinstance(expanded, r.Sremo)
    return expanded
