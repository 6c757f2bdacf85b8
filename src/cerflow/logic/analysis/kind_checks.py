"""The uses that values of a kind allow, and the names of kinds in messages."""

from __future__ import annotations

from datetime import timedelta

from cerflow.base.errors import QueryError
from cerflow.base.events import parsed_moment
from cerflow.base.schema import ValueKind
from cerflow.language.condition import Expression, Literal
from cerflow.language.node import Node

#: The kinds of literals by their types; a truth value is an integer to Python.
_LITERALS = {
    bool: ValueKind.BOOLEAN,
    int: ValueKind.INTEGER,
    float: ValueKind.FLOAT,
    str: ValueKind.STRING,
    timedelta: ValueKind.DURATION,
}


def kind_of_literal(literal: Literal) -> ValueKind | None:
    """The kind of a literal, None for NULL."""
    return next((kind for type_, kind in _LITERALS.items() if isinstance(literal.value, type_)), None)


def a_kind(kind: ValueKind | None) -> str:
    """The name of a kind with its article."""
    return f"{'an' if kind is ValueKind.INTEGER else 'a'} {'NULL' if kind is None else kind}"


def check_string(kind: ValueKind | None, operand: Node, what: str, hint: str | None = None) -> None:
    """Raise `QueryError` for an operand of another kind than a string."""
    if kind not in (None, ValueKind.STRING):
        raise QueryError(f"{what} needs a string, but this is {a_kind(kind)}", span=operand.span, hint=hint)


def check_ordered(kind: ValueKind | None, operand: Node, what: str) -> None:
    """Raise `QueryError` for values that have no order."""
    if kind is ValueKind.BOOLEAN:
        raise QueryError(f"{what} needs values that have an order, but this is a boolean", span=operand.span)


def check_moment(expression: Expression, place: Node, sign: str | None = None) -> None:
    """Raise `QueryError` for a string compared with a timestamp that is not a literal, or not a time."""
    if not isinstance(expression, Literal):
        verb = "be compared with a string" if sign is None else "meet a string"
        raise QueryError(
            f"a timestamp cannot {verb}",
            span=expression.span or place.span,
            hint="Only a string that is written out, as in '2024-02-29', is a timestamp.",
        )
    try:
        parsed_moment(str(expression.value))
    except ValueError as error:
        why = f": {error}" if str(error).startswith("i") else ""
        raise QueryError(
            f"'{expression.value}' is not a timestamp{why}",
            span=expression.span,
            hint="Write it as in '2024-02-29', '2024-02-29 13:45:00' or '2024-02-29T13:45:00+01:00'.",
        ) from None
