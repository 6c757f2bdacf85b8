"""Tests on one event as Boolean combinations of atomic conditions, each true, false or unknown of an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from cerflow.base.operators import MIRRORED, NEGATED, Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, transform
from cerflow.logic.conditions.connectives import FALSE, TRUE, UNKNOWN, conjuncts, constant, folded, spelled_out
from cerflow.logic.conditions.evaluate import constant_value
from cerflow.logic.conditions.guards import Satisfied, TypeTest

#: The comparisons that are written as the negation of another one.
_NEGATIONS = (Operator.NE, Operator.GT, Operator.GE)


@lru_cache(maxsize=4096)
def normal(test: c.Condition) -> c.Condition:
    """The test, with equal atomic conditions written alike and constant parts evaluated."""
    return _of_test(transform(test, _simpler))


def settled(test: c.Condition, truths: Mapping[c.Condition, bool | None]) -> c.Condition:
    """A normal test in which the truth values of some atomic conditions are known."""

    def visit(current: Node) -> Node:
        if isinstance(current, c.Condition) and current in truths:
            return constant(truths[current])
        return _simpler(current)

    return _of_test(transform(test, visit))


def atomic_conditions(test: c.Condition) -> list[c.Condition]:
    """The atomic conditions of a normal test, in order of appearance."""
    parts = c.operands(test, c.And | c.Or | c.Not | Satisfied)
    return [part for part in parts if not (isinstance(part, c.Constant) or part == UNKNOWN)]


def _of_test(condition: Node) -> c.Condition:
    """The condition as a test, which only asks whether it is true: FALSE if it cannot be."""
    assert isinstance(condition, c.Condition)
    return FALSE if any(part in (UNKNOWN, FALSE) for part in conjuncts(condition)) else condition


def _simpler(current: Node) -> Node:
    match current:
        case c.Arithmetic() | c.Negative() | c.Function() if all(isinstance(n, c.Literal) for n in current.children):
            return c.Literal(constant_value(current), span=current.span)  # type: ignore[arg-type]
        case c.Comparison():
            return _comparison(current)
        case c.Between() | c.In(_, (_,)):
            return transform(spelled_out(current), _simpler)
        case c.If(condition, then, otherwise) if isinstance(condition, c.Constant) or condition == UNKNOWN:
            return then if condition == TRUE else otherwise
        case c.Like() | c.Regexp() | c.In() | c.IsNull():
            positive = _positive(replace(current, negated=False))
            return _negation(positive) if current.negated else positive
        case Satisfied():
            inner = _of_test(current.condition)
            # These conditions are never unknown.
            return inner if isinstance(inner, c.Constant | TypeTest | Satisfied | c.IsNull) else Satisfied(inner)
        case c.Or(left, right):
            return _negation(folded(c.And(_negation(left), _negation(right))))
    return folded(current)


def _negation(condition: Node) -> c.Condition:
    negated = folded(c.Not(condition))  # type: ignore[arg-type]
    assert isinstance(negated, c.Condition)
    return negated


def _comparison(current: c.Comparison) -> c.Condition:
    operator, left, right = current.operator, current.left, current.right
    if isinstance(left, c.TruthValue) and operator is Operator.EQ and right == c.Literal(True):
        return left.condition
    if isinstance(left, c.Literal):
        if isinstance(right, c.Literal):
            return constant(constant_value(current))
        operator, left, right = MIRRORED[operator], right, left
    if right == c.Literal(None):
        return UNKNOWN
    if operator in _NEGATIONS:
        return c.Not(c.Comparison(NEGATED[operator], left, right, span=current.span))
    return c.Comparison(operator, left, right, span=current.span)


def _positive(current: c.Like | c.Regexp | c.In | c.IsNull) -> c.Condition:
    match current:
        case c.Like(c.Literal()) | c.Regexp(c.Literal()) | c.In(c.Literal()) | c.IsNull(c.Literal()):
            return constant(constant_value(current))
        case c.IsNull(c.Function(_, (c.LabelReference(),))):
            return FALSE  # every event has a position and a time
    return current
