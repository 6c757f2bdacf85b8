"""Tests on one event as Boolean combinations of atomic conditions, each true, false or unknown of an event."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from cerflow.conditions.evaluate import constant_value
from cerflow.conditions.guards import Satisfied, TruthValue, TypeTest, conjuncts
from cerflow.language.condition import (
    And,
    Arithmetic,
    Between,
    Comparison,
    Condition,
    Constant,
    Expression,
    Function,
    In,
    IsNull,
    LabelReference,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Regexp,
)
from cerflow.language.node import Node, transform
from cerflow.values.operators import MIRRORED, NEGATED, Operator

__all__ = ["FALSE", "TRUE", "UNKNOWN", "atomic_conditions", "constant", "normal", "settled"]

TRUE = Constant(True)
FALSE = Constant(False)
#: A condition that is neither true nor false of any event.
UNKNOWN = Comparison(Operator.EQ, Literal(None), Literal(None))

#: The comparisons that are written as the negation of another one.
_NEGATIONS = (Operator.NE, Operator.GT, Operator.GE)


def constant(truth: bool | None) -> Condition:
    """The condition that has this truth value of every event."""
    return UNKNOWN if truth is None else TRUE if truth else FALSE


@lru_cache(maxsize=4096)
def normal(test: Condition) -> Condition:
    """The test, with equal atomic conditions written in one way and constant parts evaluated."""
    return _of_test(transform(test, _simpler))


def settled(test: Condition, truths: Mapping[Condition, bool | None]) -> Condition:
    """A normal test in which the truth values of some atomic conditions are known."""

    def visit(current: Node) -> Node:
        if isinstance(current, Condition) and current in truths:
            return constant(truths[current])
        return _simpler(current)

    return _of_test(transform(test, visit))


def atomic_conditions(test: Condition) -> list[Condition]:
    """The atomic conditions of a normal test, in order of appearance."""
    found: dict[Condition, None] = {}
    stack: list[Node] = [test]
    while stack:
        current = stack.pop()
        if isinstance(current, And | Or | Not | Satisfied):
            stack.extend(reversed(current.children))
        elif isinstance(current, Condition) and not _is_constant(current):
            found[current] = None
    return list(found)


def _is_constant(condition: Condition) -> bool:
    return isinstance(condition, Constant) or condition == UNKNOWN


def _of_test(condition: Node) -> Condition:
    """A test asks whether a condition is true: one that cannot become true is false."""
    assert isinstance(condition, Condition)
    return FALSE if any(part in (UNKNOWN, FALSE) for part in conjuncts(condition)) else condition


def _simpler(current: Node) -> Node:
    match current:
        case Arithmetic() | Negative() | Function():
            return _computed(current)
        case Comparison():
            return _comparison(current)
        case Like() | Regexp() | In() | IsNull() if current.negated:
            positive = type(current)(*(getattr(current, name) for name in _fields(current)), span=current.span)
            return _negation(_positive(positive))
        case Like() | Regexp() | In() | IsNull():
            return _positive(current)
        case Between():
            return _between(current)
        case Satisfied():
            inner = _of_test(current.condition)
            # These are never unknown.
            return inner if isinstance(inner, Constant | TypeTest | Satisfied | IsNull) else Satisfied(inner)
        case Not():
            return _negation(current.operand)
        case And():
            return _both(current.left, current.right)
        case Or():
            return _negation(_both(_negation(current.left), _negation(current.right)))
    return current


def _fields(current: Like | Regexp | In | IsNull) -> tuple[str, ...]:
    match current:
        case Like() | Regexp():
            return ("operand", "pattern")
        case In():
            return ("operand", "items")
        case IsNull():
            return ("operand",)


def _computed(current: Expression) -> Expression:
    """The value of an expression that reads no event."""
    if all(isinstance(child, Literal) for child in current.children):
        return Literal(constant_value(current), span=current.span)  # type: ignore[arg-type]
    return current


def _comparison(current: Comparison) -> Condition:
    operator, left, right = current.operator, current.left, current.right
    if isinstance(left, TruthValue) and operator is Operator.EQ and right == Literal(True):
        return left.condition
    if isinstance(left, Literal):
        if isinstance(right, Literal):
            truth = constant_value(current)
            return constant(truth if truth is None else bool(truth))
        operator, left, right = MIRRORED[operator], right, left
    if right == Literal(None):
        return UNKNOWN
    if operator in _NEGATIONS:
        return Not(Comparison(NEGATED[operator], left, right, span=current.span))
    return Comparison(operator, left, right, span=current.span)


def _positive(current: Like | Regexp | In | IsNull) -> Condition:
    if isinstance(current.operand, Literal):
        truth = constant_value(current)
        return constant(truth if truth is None else bool(truth))
    if isinstance(current, In) and len(current.items) == 1:
        return _comparison(Comparison(Operator.EQ, current.operand, current.items[0], span=current.span))
    if isinstance(current, IsNull) and isinstance(current.operand, Function):
        inner = current.operand.arguments[0]
        if isinstance(inner, LabelReference):
            return FALSE  # every event has a position and a time
    return current


def _between(current: Between) -> Condition:
    parts = [
        _comparison(Comparison(operator, current.operand, bound, span=current.span))
        for operator, bound in ((Operator.GE, current.low), (Operator.LE, current.high))
        if bound is not None
    ]
    whole = parts[0] if len(parts) == 1 else _both(parts[0], parts[1])
    return _negation(whole) if current.negated else whole


def _negation(condition: Condition) -> Condition:
    if isinstance(condition, Constant):
        return Constant(not condition.value)
    if isinstance(condition, Not):
        return condition.operand
    return condition if condition == UNKNOWN else Not(condition)


def _both(left: Condition, right: Condition) -> Condition:
    if FALSE in (left, right):
        return FALSE
    if left in (TRUE, right):
        return right
    return left if right == TRUE else And(left, right)
