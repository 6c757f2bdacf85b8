"""Event kinds, ``DEFINE name AS condition`` (spec §11): names that may be used like event types."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from cerflow.base import limits
from cerflow.base.errors import QueryError, Span, UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.formula import EventKind, EventType, OfAnyType
from cerflow.language.node import N, Node, rebuild, transform, walk, walk_into, with_children


def refuse_twice(name: str, known: Container[str], span: Span | None) -> None:
    """Raise `QueryError` if a name is defined already."""
    if name in known:
        raise QueryError(f"'{name}' is defined twice", span=span, hint="Give one of them another name.")


def check_kind(condition: c.Condition) -> None:
    """Raise `QueryError` for what reads more than the current event: labels, aggregates, SOME, prev, MATCH_NUMBER."""
    for current in walk(condition):
        match current:
            case c.Attribute(label=str(label)) | c.LabelReference(label=str(label)) | c.Bracket(label=label):
                raise QueryError(
                    f"the condition of an event kind reads the event alone, so it cannot read the label '{label}'",
                    span=current.span,
                    hint="Write the attribute alone, as in DEFINE failed AS result = 'failed'.",
                )
            case c.Aggregate() | c.SetTest() | c.Some() | c.Function("prev"):
                name = "SOME" if isinstance(current, c.Some) else current.name
                raise QueryError(f"an event kind is about one event, so {name} cannot be used here", span=current.span)
            case c.Function(name) if name == c.MATCH_NUMBER:
                raise QueryError("an event kind is about one event, which has no match", span=current.span)


def written_out(condition: c.Condition, above: Mapping[str, c.Condition]) -> c.Condition:
    """The condition of a kind, with the kinds ``above`` it that it names written out.

    A kind is true or false, and never unknown. Raises as `check_kind`, and `UnsupportedQueryError` if the condition
    becomes too large.
    """
    check_kind(condition)
    named = [n for n in walk(condition) if isinstance(n, c.Attribute) and _is_kind(n, above)]
    if not named:
        return condition
    size = sum(1 for n in named for _ in walk(above[n.name]))
    if size > limits.QUERY_PARTS:
        raise UnsupportedQueryError(
            f"with the kinds that it names written out this condition has {size:,} parts; at most "
            f"{limits.QUERY_PARTS:,} are allowed",
            span=condition.span,
        )

    # Where only its truth counts, unknown is as good as false.
    plain = {id(n) for n in walk_into(condition, lambda n: isinstance(n, c.And | c.Or))}

    def visit(current: Node, below: Sequence[Node]) -> Node:
        match current:
            case c.Comparison(Operator.EQ, c.Attribute() as named, c.Literal(True)) if _is_kind(named, above):
                if id(current) in plain:
                    return above[named.name]
            case c.Attribute() if _is_kind(current, above):
                return c.If(above[current.name], c.Literal(True), c.Literal(False), span=current.span)
        return with_children(current, below)

    return rebuild(condition, visit)


def _is_kind(attribute: c.Attribute, above: Container[str]) -> bool:
    return attribute.label is None and not attribute.quoted and attribute.name in above


def kinds_in(tree: Node) -> dict[str, c.Condition | None]:
    """The event kinds that a tree knows, with their conditions; None for one whose name only hides that of a type."""
    found: dict[str, c.Condition | None] = {}
    for current in walk(tree):
        match current:
            case EventKind():
                found[current.name] = current.condition
            case OfAnyType():
                for name in current.hidden:
                    found.setdefault(name, None)
    return found


def with_kinds(tree: N, declared: Mapping[str, c.Condition] | None = None) -> N:
    """The formula or query with the names of event kinds standing for them: those declared, and those in the tree.

    The name of a kind hides a type of that name. Raises `QueryError` for two kinds of one name.
    """
    kinds = dict(declared or {})
    for current in walk(tree):
        if isinstance(current, EventKind) and kinds.setdefault(current.name, current.condition) != current.condition:
            raise QueryError(f"two event kinds have the name '{current.name}'", span=current.span)
    if not kinds:
        return tree

    def visit(current: Node) -> Node:
        match current:
            case EventKind():
                return current
            case EventType(name, stream) if name in kinds:
                return EventKind(name, stream, condition=kinds[name], span=current.span)
            case OfAnyType():
                return replace(current, hidden=tuple(sorted({*current.hidden, *kinds})))
        return current

    return transform(tree, visit)
