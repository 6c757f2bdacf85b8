"""AND, OR and NOT: conditions joined, taken apart, negated, and with truth values worked in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeVar

from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, rebuild, with_children
from cerflow.logic.conditions.guards import Satisfied, TypeTest

R = TypeVar("R")

TRUE = c.Constant(True)
FALSE = c.Constant(False)
#: A condition that is neither true nor false of any event.
UNKNOWN = c.Comparison(Operator.EQ, c.Literal(None), c.Literal(None))


def constant(truth: object) -> c.Condition:
    """The condition that has this truth value of every event."""
    return UNKNOWN if truth is None else c.Constant(bool(truth))


def conjuncts(condition: c.Condition) -> list[c.Condition]:
    """The distinct operands of nested ANDs; none for TRUE."""
    return [part for part in c.operands(condition, c.And) if part != TRUE]


def conjunction(parts: Iterable[c.Condition]) -> c.Condition:
    """The AND of distinct conditions, in order; TRUE for none."""
    first, *others = dict.fromkeys(parts) or (TRUE,)
    for part in others:
        first = c.And(first, part)
    return first


def folded(current: Node) -> Node:
    """AND, OR, NOT and `Satisfied` without operands that are constants; other nodes as they are."""
    match current:
        case c.And(left, right) | c.Or(left, right):
            neutral, absorbing = (TRUE, FALSE) if isinstance(current, c.And) else (FALSE, TRUE)
            if absorbing in (left, right):
                return absorbing
            if left in (neutral, right):
                return right
            return left if right == neutral else current
        case c.Not(c.Constant(value)):
            return c.Constant(not value)
        case c.Not(c.Not(operand)):
            return operand
        case c.Not(operand) if operand == UNKNOWN:
            return UNKNOWN
        case Satisfied(c.Constant() as truth):
            return truth
    return current


def with_atoms(condition: c.Condition, change: Callable[[c.Condition], c.Condition]) -> c.Condition:
    """The condition with other conditions for what AND, OR, NOT and `Satisfied` combine, and constants worked in."""

    def visit(current: Node, below: Sequence[Node]) -> Node:
        if isinstance(current, c.And | c.Or | c.Not | Satisfied):
            return folded(with_children(current, below))
        # Conditions inside a value, as in CASE, stay as they are.
        return change(current) if isinstance(current, c.Condition) else current

    return rebuild(condition, visit)


def asked(
    condition: c.Condition,
    atom: Callable[[c.Condition, bool, bool], R],
    join: Callable[[type[c.And | c.Or], list[R]], R],
    wanted: bool = True,
    or_unknown: bool = False,
) -> R:
    """Ask whether a condition is ``wanted`` (true or false), ``or_unknown``, by asking what AND, OR and NOT combine.

    ``atom`` gets what is asked of an atomic condition as well; what `Satisfied` is about is asked in its place.
    """

    def of_part(part: c.Condition, wanted: bool) -> R:
        if isinstance(part, Satisfied):
            # It is false where its condition is false or unknown.
            return asked(part.condition, atom, join, wanted, not wanted)
        return atom(part, wanted, or_unknown)

    return c.combined(condition if wanted else c.Not(condition), of_part, join)


def spelled_out(condition: c.In | c.Between) -> c.Condition:
    """IN or BETWEEN as comparisons."""
    join: type[c.And | c.Or] = c.Or if isinstance(condition, c.In) else c.And
    parts: list[c.Condition] = [*c.comparisons(condition)]
    whole = reduce(join, parts) if parts else c.Constant(join is c.And)
    return c.Not(whole) if condition.negated else whole


def not_true(condition: c.Condition) -> c.Condition:
    """The condition that is true of an event where another one is false or unknown."""
    match condition:
        case c.Constant(value):
            return c.Constant(not value)
        case c.Not(Satisfied(inner)) | c.Not(TypeTest() as inner):
            return inner
        case c.IsNull(_, negated):
            return replace(condition, negated=not negated)
        case TypeTest():
            return c.Not(condition)
    return c.Not(Satisfied(condition))


def two_valued(condition: c.Condition) -> tuple[c.Condition, bool]:
    """The condition that a test asks about, and whether it is to be true or not true (false or unknown)."""
    positive = True
    current = condition
    while True:
        if isinstance(current, Satisfied):
            current = current.condition
        elif isinstance(current, c.Not) and isinstance(current.operand, Satisfied | TypeTest):
            # NOT before anything else asks for false, which is more than not true.
            positive = not positive
            current = current.operand
        elif isinstance(current, c.IsNull) and current.negated:
            positive = not positive
            current = c.IsNull(current.operand)
        else:
            return current, positive
