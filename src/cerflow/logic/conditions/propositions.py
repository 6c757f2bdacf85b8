"""Conditions on one event as plain two-valued propositions: AND and OR of what is true of the event and what is not.

A *leaf* is an atomic condition c, which says that c is true, or ``NOT satisfied(c)``, which says that it is false
or unknown. So no negation stands anywhere else, and a leaf that somebody cannot decide may be taken for TRUE: what is
left is satisfied by more events, never by fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import Any

from cerflow.base import limits
from cerflow.language import condition as c
from cerflow.logic.conditions.connectives import FALSE, TRUE, asked, negated
from cerflow.logic.conditions.guards import Satisfied, TypeTest


def is_true(condition: c.Condition) -> c.Condition:
    """The proposition that a condition is true."""
    return asked(condition, _leaf, simplified)


def is_not_true(condition: c.Condition) -> c.Condition:
    """The proposition that a condition is false or unknown."""
    return asked(condition, _leaf, simplified, wanted=False, or_unknown=True)


def _leaf(atom: c.Condition, wanted: bool, or_unknown: bool) -> c.Condition:
    match atom:
        case c.Constant(value):
            return c.Constant(value == wanted)
        case TypeTest():
            # Never unknown.
            return atom if wanted else c.Not(Satisfied(atom))
        case c.IsNull():
            return replace(atom, negated=atom.negated == wanted)
    if wanted == or_unknown:
        # What is true where it is false.
        if isinstance(atom, c.PatternTest | c.In | c.Between):
            atom = replace(atom, negated=not atom.negated)
        else:
            atom = negated(atom)
    return c.Not(Satisfied(atom)) if or_unknown else atom


def leaves_of(proposition: c.Condition) -> list[c.Condition]:
    """The distinct leaves, from left to right."""
    return [leaf for leaf in c.operands(proposition, c.And | c.Or) if not isinstance(leaf, c.Constant)]


def opposite(leaf: c.Condition) -> c.Condition:
    """The leaf that holds of exactly the other events."""
    if isinstance(leaf, c.Not) and isinstance(leaf.operand, Satisfied):
        return leaf.operand.condition
    return is_not_true(leaf)


def translated(proposition: c.Condition, leaf: Callable[[c.Condition], Any]) -> Any:
    """The proposition in a system that joins conditions by ``&`` and ``|``.

    ``leaf`` translates leaves, TRUE and FALSE.
    """
    return c.combined(
        proposition,
        lambda current, _: leaf(current),
        lambda join, parts: reduce(and_ if join is c.And else or_, parts),
        _is_leaf,
    )


def _is_leaf(proposition: c.Condition, _: bool) -> bool:
    return not isinstance(proposition, c.And | c.Or)


def substituted(proposition: c.Condition, replacement: Callable[[c.Condition], c.Condition]) -> c.Condition:
    """The proposition with other propositions in the place of its leaves, simplified."""

    def changed(leaf: c.Condition, _: bool) -> c.Condition:
        return leaf if isinstance(leaf, c.Constant) else replacement(leaf)

    return c.combined(proposition, changed, simplified, _is_leaf)


def weakened(proposition: c.Condition, decidable: Callable[[c.Condition], bool]) -> c.Condition:
    """The proposition with TRUE for leaves that are not decidable: it holds of the same events, and perhaps of more."""
    return substituted(proposition, lambda leaf: leaf if decidable(leaf) else TRUE)


def simplified(join: type[c.And | c.Or], parts: Sequence[c.Condition]) -> c.Condition:
    """The conjunction or disjunction, simplified: leaves that a part decides are replaced in all other parts.

    Alternatives of a disjunction that imply others are left out, and so are parts of a conjunction that others imply.
    """
    neutral, absorbing = (TRUE, FALSE) if join is c.And else (FALSE, TRUE)
    joined = list(dict.fromkeys(p for part in parts for p in c.operands(part, join) if p != neutral))
    if absorbing in joined:
        return absorbing
    compound = [p for p in joined if isinstance(p, c.And | c.Or)]
    settled: dict[c.Condition, c.Condition] = {}
    for leaf in joined:
        if not isinstance(leaf, c.And | c.Or):
            settled[leaf] = neutral
            settled[opposite(leaf)] = absorbing
    if any(settled[p] == absorbing for p in joined if p in settled):
        return absorbing
    changed: dict[c.Condition, c.Condition] = {
        p: substituted(p, lambda leaf: settled.get(leaf, leaf))
        for p in compound
        if settled and len(own := leaves_of(p)) <= limits.SIMPLIFIED_LEAVES and any(leaf in settled for leaf in own)
    }
    if changed:
        return simplified(join, [changed.get(p, p) for p in joined])
    joined = _needed(joined, c.And if join is c.Or else c.Or)
    return reduce(join, joined) if joined else neutral


def _needed(joined: list[c.Condition], inner: type[c.And | c.Or]) -> list[c.Condition]:
    """The operands without those that have all parts of another operand and more."""
    if not 1 < len(joined) <= limits.COMPARED_ALTERNATIVES:
        return joined
    parts = [frozenset(c.operands(p, inner)) for p in joined]
    return [p for p, own in zip(joined, parts) if not any(other < own for other in parts)]
