"""Tests and expressions on one event given as a mapping: functions made once, so that single events are cheap.

Their meaning is that of `cerflow.semantics`. An expression that reads more than plain values of the event has no such
function, and is evaluated on a batch of one event instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cerflow.conditions.evaluate import operation
from cerflow.conditions.guards import Satisfied
from cerflow.language.condition import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Constant,
    Expression,
    Function,
    If,
    In,
    IsNull,
    Literal,
    Negative,
    Not,
    Or,
)
from cerflow.language.node import Node, fold
from cerflow.schema import Kind, Schema
from cerflow.values.operators import RELATIONS

__all__ = ["Read", "scalar"]

#: Reads a value of an event whose plain values have the kinds of their columns.
Read = Callable[[Mapping[str, Any]], Any]

_PLAIN = (And, Arithmetic, Between, Comparison, If, In, IsNull, Negative, Not, Or)
_KINDS = (Kind.INTEGER, Kind.FLOAT, Kind.STRING, Kind.BOOLEAN)


def scalar(root: Expression | Any, schema: Schema) -> Read | None:
    """A function for a condition or expression on one event, or None if there is none.

    It returns None for null and for unknown. Floats must not be NaN.
    """

    def visit(current: Node, below: Sequence[Read | None]) -> Read | None:
        if any(read is None for read in below):
            return None
        operands: list[Read] = [read for read in below if read is not None]
        return _node(current, operands, schema)

    return fold(root, visit)


def _node(current: Node, operands: Sequence[Read], schema: Schema) -> Read | None:
    if isinstance(current, Attribute):
        name = schema.column(current.name)
        return (lambda event: event[name]) if schema.kind(name) in _KINDS else None
    if isinstance(current, Literal | Constant):
        value = current.value
        return lambda event: value
    if isinstance(current, Satisfied):
        (operand,) = operands
        return lambda event: operand(event) is True
    if isinstance(current, Comparison):
        return _comparison(current, operands, schema)
    if isinstance(current, In) and _is_looked_up(current, schema):
        return _among(current, operands[0])
    if isinstance(current, _PLAIN) or (isinstance(current, Function) and current.name not in ("position", "time")):
        return _computed(operation(current), operands[:1] if isinstance(current, In) else operands)
    return None


def _is_looked_up(current: In, schema: Schema) -> bool:
    """Whether all items have the same kind as the attribute that is looked up among them."""
    if not isinstance(current.operand, Attribute) or not schema.has(current.operand.name):
        return False
    kind = schema.kind(current.operand.name)
    of_kind = {Kind.INTEGER: int, Kind.STRING: str}.get(kind)
    return all(type(item.value) is of_kind for item in current.items)


def _among(current: In, operand: Read) -> Read:
    values = frozenset(item.value for item in current.items)

    def among(event: Mapping[str, Any]) -> bool | None:
        value = operand(event)
        return None if value is None else (value in values) != current.negated

    return among


def _comparison(current: Comparison, operands: Sequence[Read], schema: Schema) -> Read:
    left, right = current.left, current.right
    if isinstance(left, Attribute) and isinstance(right, Literal) and isinstance(right.value, int | float):
        kind = schema.kind(left.name) if schema.has(left.name) else Kind.OTHER
        value = float(right.value) if kind is Kind.FLOAT else right.value
        if kind is Kind.FLOAT or (kind is Kind.INTEGER and type(value) is int):
            name, test = left.name, RELATIONS[current.operator]

            def quick(event: Mapping[str, Any]) -> bool | None:
                found = event[name]
                return None if found is None else test(found, value)

            return quick
    return _computed(operation(current), operands)


def _computed(operate: Callable[..., Any], operands: Sequence[Read]) -> Read:
    if len(operands) == 1:
        (only,) = operands
        return lambda event: operate(only(event))
    if len(operands) == 2:
        left, right = operands
        return lambda event: operate(left(event), right(event))
    return lambda event: operate(*[read(event) for read in operands])
