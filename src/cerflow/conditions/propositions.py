"""Conditions on one event as plain two-valued propositions: AND and OR of what is true of the event and what is not.

A *leaf* is an atomic condition c, which says that c is true, or ``NOT satisfied(c)``, which says that it is false
or unknown. So no negation stands anywhere else, and a leaf that somebody cannot decide may be taken for TRUE: what is
left is satisfied by more events, never by fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from cerflow import limits
from cerflow.conditions.connectives import FALSE, TRUE
from cerflow.conditions.guards import Satisfied, TypeTest
from cerflow.language.condition import (
    And,
    Between,
    Comparison,
    Condition,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Regexp,
    operands,
)
from cerflow.language.node import Node, fold
from cerflow.values.operators import NEGATED

__all__ = [
    "is_not_true",
    "is_true",
    "leaves_of",
    "opposite",
    "simplified_conjunction",
    "simplified_disjunction",
    "substituted",
    "translated",
    "weakened",
]


@dataclass(frozen=True)
class _Forms:
    """The propositions that a condition is true, not true, false, and not false."""

    true: Condition
    not_true: Condition
    false: Condition
    not_false: Condition


def is_true(condition: Condition) -> Condition:
    """The proposition that a condition is true."""
    return _simplified(_forms(condition).true)


def is_not_true(condition: Condition) -> Condition:
    """The proposition that a condition is false or unknown."""
    return _simplified(_forms(condition).not_true)


def _forms(condition: Condition) -> _Forms:
    def visit(current: Node, below: Sequence[_Forms | None]) -> _Forms | None:
        if not isinstance(current, Condition):
            return None
        given = [forms for forms in below if forms is not None]
        match current:
            case Constant():
                held, refused = (TRUE, FALSE) if current.value else (FALSE, TRUE)
                return _Forms(held, refused, refused, held)
            case Not():
                (inner,) = given
                return _Forms(inner.false, inner.not_false, inner.true, inner.not_true)
            case Satisfied():
                (inner,) = given
                return _Forms(inner.true, inner.not_true, inner.not_true, inner.true)
            case And() | Or():
                left, right = given
                same: type[And | Or] = type(current)
                dual = Or if same is And else And
                return _Forms(
                    same(left.true, right.true),
                    dual(left.not_true, right.not_true),
                    dual(left.false, right.false),
                    same(left.not_false, right.not_false),
                )
        return _atomic(current)

    forms = fold(condition, visit)
    assert forms is not None
    return forms


def _atomic(condition: Condition) -> _Forms:
    match condition:
        case TypeTest():
            # Never unknown.
            refused: Condition = Not(Satisfied(condition))
            return _Forms(condition, refused, refused, condition)
        case IsNull():
            refused = replace(condition, negated=not condition.negated)
            return _Forms(condition, refused, refused, condition)
        case Comparison():
            false: Condition = replace(condition, operator=NEGATED[condition.operator])
        case Like() | Regexp() | In() | Between():
            false = replace(condition, negated=not condition.negated)
        case _:
            false = Not(condition)
    return _Forms(condition, Not(Satisfied(condition)), false, Not(Satisfied(false)))


def leaves_of(proposition: Condition) -> list[Condition]:
    """The distinct leaves, from left to right."""
    return [leaf for leaf in operands(proposition, And | Or) if not isinstance(leaf, Constant)]


def opposite(leaf: Condition) -> Condition:
    """The leaf that holds of exactly the other events."""
    if isinstance(leaf, Not) and isinstance(leaf.operand, Satisfied):
        return leaf.operand.condition
    return is_not_true(leaf)


def translated(proposition: Condition, leaf: Callable[[Condition], Any]) -> Any:
    """The proposition in a system that joins conditions by ``&`` and ``|``.

    ``leaf`` translates leaves, TRUE and FALSE.
    """
    done: list[Any] = []
    stack = [(proposition, False)]
    while stack:
        current, ready = stack.pop()
        if not isinstance(current, And | Or):
            done.append(leaf(current))
        elif ready:
            right, left = done.pop(), done.pop()
            done.append(left & right if isinstance(current, And) else left | right)
        else:
            stack += [(current, True), (current.right, False), (current.left, False)]
    return done[0]


def substituted(proposition: Condition, replacement: Callable[[Condition], Condition]) -> Condition:
    """The proposition with other propositions in the place of its leaves, simplified."""
    done: list[Condition | _Open] = []
    stack = [(proposition, False)]
    while stack:
        current, ready = stack.pop()
        if not isinstance(current, And | Or):
            done.append(current if isinstance(current, Constant) else replacement(current))
        elif ready:
            right, left = done.pop(), done.pop()
            done.append(_Open.of(type(current), left, right))
        else:
            stack += [(current, True), (current.right, False), (current.left, False)]
    return _closed(done[0])


def _simplified(proposition: Condition) -> Condition:
    return substituted(proposition, lambda leaf: leaf)


@dataclass(frozen=True)
class _Open:
    """A conjunction or disjunction that grows, so that a long one is simplified only once."""

    join: type[And | Or]
    parts: list[Condition]

    @classmethod
    def of(cls, join: type[And | Or], left: Condition | _Open, right: Condition | _Open) -> _Open:
        """Both sides joined; the left one is extended in place if it has the same join."""
        if isinstance(left, _Open) and left.join is join:
            whole = left
        else:
            whole = cls(join, [_closed(left)])
        whole.parts.extend(right.parts if isinstance(right, _Open) and right.join is join else [_closed(right)])
        return whole


def _closed(proposition: Condition | _Open) -> Condition:
    if not isinstance(proposition, _Open):
        return proposition
    return (
        simplified_conjunction(proposition.parts)
        if proposition.join is And
        else simplified_disjunction(proposition.parts)
    )


def weakened(proposition: Condition, decidable: Callable[[Condition], bool]) -> Condition:
    """The proposition with TRUE for leaves that are not decidable: it holds of the same events, and perhaps of more."""
    return substituted(proposition, lambda leaf: leaf if decidable(leaf) else TRUE)


def simplified_conjunction(parts: Sequence[Condition]) -> Condition:
    """The conjunction, simplified: leaves that a part decides are replaced in all other parts."""
    return _joined(parts, And, TRUE, FALSE)


def simplified_disjunction(parts: Sequence[Condition]) -> Condition:
    """The disjunction, simplified alike; alternatives that imply others are left out."""
    return _joined(parts, Or, FALSE, TRUE)


def _joined(parts: Sequence[Condition], join: type[And | Or], neutral: Constant, absorbing: Constant) -> Condition:
    joined = list(dict.fromkeys(p for part in parts for p in operands(part, join) if p != neutral))
    if absorbing in joined:
        return absorbing
    compound = [p for p in joined if isinstance(p, And | Or)]
    settled: dict[Condition, Condition] = {}
    for leaf in joined:
        if not isinstance(leaf, And | Or):
            settled[leaf] = neutral
            settled[opposite(leaf)] = absorbing
    if any(settled[p] == absorbing for p in joined if p in settled):
        return absorbing
    changed: dict[Condition, Condition] = {
        p: substituted(p, lambda leaf: settled.get(leaf, leaf))
        for p in compound
        if settled and len(own := leaves_of(p)) <= limits.SIMPLIFIED_LEAVES and any(leaf in settled for leaf in own)
    }
    if changed:
        return _joined([changed.get(p, p) for p in joined], join, neutral, absorbing)
    joined = _needed(joined, And if join is Or else Or)
    return reduce(join, joined) if joined else neutral


def _needed(joined: list[Condition], inner: type[And | Or]) -> list[Condition]:
    """The operands without those that have all parts of another operand and more."""
    if not 1 < len(joined) <= limits.COMPARED_ALTERNATIVES:
        return joined
    parts = [frozenset(operands(p, inner)) for p in joined]
    return [p for p, own in zip(joined, parts) if not any(other < own for other in parts)]
