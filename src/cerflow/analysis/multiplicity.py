"""Which labels of a formula may stand for more than one event of a match."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass

from cerflow.analysis.scopes import Labels, Scopes
from cerflow.language.formula import (
    All,
    As,
    Conjunction,
    Disjunction,
    Formula,
    Iteration,
    Project,
    Rename,
    Sequence,
    StrictIteration,
    StrictSequence,
    Unless,
    Without,
)
from cerflow.language.node import Node, fold
from cerflow.language.sremo import Regular

__all__ = ["Multiplicity", "multiplicity"]


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """``several`` are labels that may be given to several events of one match.

    ``types`` says that so may be the name of an event type that the formula does not mention, because EVENT or NOT can
    read several events of it.
    """

    several: frozenset[str] = frozenset()
    types: bool = False


def multiplicity(formula: Formula, scopes: Scopes) -> Multiplicity:
    """Fold a formula to the labels that may have several events; ``scopes`` as `resolve` found them."""
    labels = scopes.labels
    index = -1

    def visit(current: Node, below: Many[tuple[Multiplicity, Labels] | None]) -> tuple[Multiplicity, Labels] | None:
        nonlocal index
        index += 1
        if not isinstance(current, Formula):
            return None
        parts = [part for part in below if part is not None]
        if isinstance(current, Regular):
            return Multiplicity(labels[index].assigned), labels[index]
        return _combine(current, parts), labels[index]

    found = fold(formula, visit)
    assert found is not None
    return found[0]


def _combine(current: Formula, parts: list[tuple[Multiplicity, Labels]]) -> Multiplicity:
    if not parts:
        return Multiplicity()
    inner, labels = parts[0]
    match current:
        case As():
            # Reading one event, the label is that event's, whatever else it is called.
            return inner if labels.single else Multiplicity(inner.several | {current.label}, inner.types)
        case Rename() if current.old != current.new:
            several = frozenset(current.new if a == current.old else a for a in inner.several)
            if not labels.single and (labels.wildcard or {current.old, current.new} <= labels.assigned):
                several |= {current.new}
            return Multiplicity(several, inner.types)
        case Project():
            kept = frozenset(current.labels)
            return Multiplicity(kept if inner.types else inner.several & kept)
        case Iteration() | StrictIteration():
            return Multiplicity(labels.assigned, labels.wildcard)
        case Disjunction():
            return Multiplicity(inner.several | parts[1][0].several, inner.types or parts[1][0].types)
        case Conjunction():
            # The complex event is one of both sides.
            other, other_labels = parts[1]
            several = (
                (inner.several & other.several)
                | (inner.several - other_labels.assigned)
                | (other.several - labels.assigned)
            )
            return Multiplicity(several, inner.types and other.types)
        case Sequence() | StrictSequence() | All():
            other, other_labels = parts[1]
            several = inner.several | other.several | (labels.assigned & other_labels.assigned)
            # EVENT and NOT may read an event of a type that is named elsewhere.
            if labels.wildcard:
                several |= other_labels.relations
            if other_labels.wildcard:
                several |= labels.relations
            return Multiplicity(several, inner.types or other.types or (labels.wildcard and other_labels.wildcard))
        case Unless() | Without():
            return inner
    return inner
