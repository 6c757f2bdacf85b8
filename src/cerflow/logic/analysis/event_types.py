"""The event types that a query names, and those that never occur."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from cerflow.base import limits
from cerflow.base.errors import QueryWarning, Span, nearest
from cerflow.base.operators import Operator
from cerflow.language.condition import Attribute, Comparison, Expression, In, Literal
from cerflow.language.formula import EventKind, EventType
from cerflow.language.node import Node, walk
from cerflow.language.sremo import Terminal

#: The type of the event read, in SREMO.
_TYPE = Attribute(None, "type")


def types_named_in(tree: Node) -> dict[str, Span | None]:
    """The types that a formula or query names, each with its first place; event kinds are not among them.

    In SREMO these are the texts that the type of the event is compared with.
    """
    found: dict[str, Span | None] = {}
    for node in walk(tree):
        if isinstance(node, EventType) and not isinstance(node, EventKind):
            found.setdefault(node.name, node.span)
        elif isinstance(node, Terminal):
            for part in walk(node.condition):
                if isinstance(part, Comparison) and part.operator is Operator.EQ and part.left == _TYPE:
                    found = dict(_texts((part.right,))) | found
                elif isinstance(part, In) and part.operand == _TYPE:
                    found = dict(_texts(part.items)) | found
    return found


def doubtful_types(
    named: Mapping[str, Span | None], occurring: Collection[str], text: str | None, *, where: str = "input"
) -> list[QueryWarning]:
    """A warning for each named type that no event has, with a similar one; ``text`` is that of the query."""
    few = len(occurring) <= limits.TYPES_LOOKED_FOR
    warnings = []
    for name, span in named.items():
        if name in occurring:
            continue
        near = nearest(name, occurring) if few else None
        hint = f"The types are {', '.join(sorted(occurring))}." if few and occurring else None
        warning = QueryWarning(
            f"no event of the {where} has the type '{name}'",
            span=span,
            hint=f"Did you mean '{near}'?" if near else hint,
        )
        if text is not None:
            warning.with_source(text)
        warnings.append(warning)
    return warnings


def _texts(expressions: Iterable[Expression]) -> Iterator[tuple[str, Span | None]]:
    return ((e.value, e.span) for e in expressions if isinstance(e, Literal) and isinstance(e.value, str))
