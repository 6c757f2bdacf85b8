"""AND, OR and NOT: conditions joined, taken apart, negated, and with truth values worked in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce

from cerflow.conditions.guards import Satisfied, TypeTest
from cerflow.language.condition import (
    And,
    Between,
    Comparison,
    Condition,
    Constant,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    comparisons,
    operands,
)
from cerflow.language.node import Node, fold, with_children
from cerflow.values.operators import Operator

__all__ = [
    "FALSE",
    "TRUE",
    "UNKNOWN",
    "conjunction",
    "conjuncts",
    "constant",
    "folded",
    "not_true",
    "spelled_out",
    "two_valued",
    "with_atoms",
]

TRUE = Constant(True)
FALSE = Constant(False)
#: A condition that is neither true nor false of any event.
UNKNOWN = Comparison(Operator.EQ, Literal(None), Literal(None))


def constant(truth: object) -> Condition:
    """The condition that has this truth value of every event."""
    return UNKNOWN if truth is None else Constant(bool(truth))


def conjuncts(condition: Condition) -> list[Condition]:
    """The distinct operands of nested ANDs; none for TRUE."""
    return [part for part in operands(condition, And) if part != TRUE]


def conjunction(parts: Iterable[Condition]) -> Condition:
    """The AND of distinct conditions, in order; TRUE for none."""
    first, *others = dict.fromkeys(parts) or (TRUE,)
    for part in others:
        first = And(first, part)
    return first


def folded(current: Node) -> Node:
    """AND, OR, NOT and `Satisfied` without operands that are constants; other nodes as they are."""
    match current:
        case And(left, right) | Or(left, right):
            neutral, absorbing = (TRUE, FALSE) if isinstance(current, And) else (FALSE, TRUE)
            if absorbing in (left, right):
                return absorbing
            if left in (neutral, right):
                return right
            return left if right == neutral else current
        case Not(Constant(value)):
            return Constant(not value)
        case Not(Not(operand)):
            return operand
        case Not(operand) if operand == UNKNOWN:
            return UNKNOWN
        case Satisfied(Constant() as truth):
            return truth
    return current


def with_atoms(condition: Condition, change: Callable[[Condition], Condition]) -> Condition:
    """The condition with other conditions for what AND, OR, NOT and `Satisfied` combine, and constants worked in."""

    def visit(current: Node, below: Sequence[Node]) -> Node:
        if isinstance(current, And | Or | Not | Satisfied):
            return folded(with_children(current, below))
        # Conditions inside a value, as in CASE, stay as they are.
        return change(current) if isinstance(current, Condition) else current

    whole: Node = fold(condition, visit)
    assert isinstance(whole, Condition)
    return whole


def spelled_out(condition: In | Between) -> Condition:
    """IN or BETWEEN as comparisons."""
    join: type[And | Or] = Or if isinstance(condition, In) else And
    parts: list[Condition] = [*comparisons(condition)]
    whole = reduce(join, parts) if parts else Constant(join is And)
    return Not(whole) if condition.negated else whole


def not_true(condition: Condition) -> Condition:
    """The condition that is true of an event where another one is false or unknown."""
    match condition:
        case Constant(value):
            return Constant(not value)
        case Not(Satisfied(inner)) | Not(TypeTest() as inner):
            return inner
        case IsNull(_, negated):
            return replace(condition, negated=not negated)
        case TypeTest():
            return Not(condition)
    return Not(Satisfied(condition))


def two_valued(condition: Condition) -> tuple[Condition, bool]:
    """The condition that a test asks about, and whether it is to be true or not true (false or unknown)."""
    positive = True
    current = condition
    while True:
        if isinstance(current, Satisfied):
            current = current.condition
        elif isinstance(current, Not) and isinstance(current.operand, Satisfied | TypeTest):
            # NOT before anything else asks for false, which is more than not true.
            positive = not positive
            current = current.operand
        elif isinstance(current, IsNull) and current.negated:
            positive = not positive
            current = IsNull(current.operand)
        else:
            return current, positive
