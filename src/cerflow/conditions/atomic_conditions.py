"""Tests on one event as Boolean combinations of atomic conditions, each true, false or unknown of an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from cerflow.conditions.connectives import FALSE, TRUE, UNKNOWN, conjuncts, constant, folded, spelled_out
from cerflow.conditions.evaluate import constant_value
from cerflow.conditions.guards import Satisfied, TypeTest
from cerflow.language.condition import (
    And,
    Arithmetic,
    Between,
    Comparison,
    Condition,
    Constant,
    Expression,
    Function,
    If,
    In,
    IsNull,
    LabelReference,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Regexp,
    TruthValue,
    operands,
)
from cerflow.language.node import Node, transform
from cerflow.values.operators import MIRRORED, NEGATED, Operator

#: The comparisons that are written as the negation of another one.
_NEGATIONS = (Operator.NE, Operator.GT, Operator.GE)


@lru_cache(maxsize=4096)
def normal(test: Condition) -> Condition:
    """The test, with equal atomic conditions written alike and constant parts evaluated."""
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
    return [c for c in operands(test, And | Or | Not | Satisfied) if not (isinstance(c, Constant) or c == UNKNOWN)]


def _of_test(condition: Node) -> Condition:
    """The condition as a test, which only asks whether it is true: FALSE if it cannot be."""
    assert isinstance(condition, Condition)
    return FALSE if any(part in (UNKNOWN, FALSE) for part in conjuncts(condition)) else condition


def _simpler(current: Node) -> Node:
    match current:
        case Arithmetic() | Negative() | Function():
            return _computed(current)
        case Comparison():
            return _comparison(current)
        case Between() | In(_, (_,)):
            return transform(spelled_out(current), _simpler)
        case If(condition, then, otherwise) if isinstance(condition, Constant) or condition == UNKNOWN:
            return then if condition == TRUE else otherwise
        case Like() | Regexp() | In() | IsNull():
            positive = _positive(replace(current, negated=False))
            return _negation(positive) if current.negated else positive
        case Satisfied():
            inner = _of_test(current.condition)
            # These conditions are never unknown.
            return inner if isinstance(inner, Constant | TypeTest | Satisfied | IsNull) else Satisfied(inner)
        case Or(left, right):
            return _negation(folded(And(_negation(left), _negation(right))))
    return folded(current)


def _negation(condition: Node) -> Condition:
    negated = folded(Not(condition))  # type: ignore[arg-type]
    assert isinstance(negated, Condition)
    return negated


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
            return constant(constant_value(current))
        operator, left, right = MIRRORED[operator], right, left
    if right == Literal(None):
        return UNKNOWN
    if operator in _NEGATIONS:
        return Not(Comparison(NEGATED[operator], left, right, span=current.span))
    return Comparison(operator, left, right, span=current.span)


def _positive(current: Like | Regexp | In | IsNull) -> Condition:
    match current:
        case Like(Literal()) | Regexp(Literal()) | In(Literal()) | IsNull(Literal()):
            return constant(constant_value(current))
        case IsNull(Function(_, (LabelReference(),))):
            return FALSE  # every event has a position and a time
    return current
