"""Which events a label in a condition means (spec §3).

An *occurrence* is a place in a tree, named by its index in `cerflow.language.node.walk` (children before parents);
the same subtree may occur twice and mean different things.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

from cerflow.base.errors import QueryError, nearest
from cerflow.language import formula as f
from cerflow.language.condition import Attribute, Bracket, Condition, LabelReference, Some
from cerflow.language.node import Node, fold_only, walk

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a formula.

    ``assigned`` may be given to some event; ``bound`` are given to exactly one event of every match; ``wildcard``
    says that EVENT or NOT can add the type of an event, whatever it is but ``never`` one of those; ``single`` that
    exactly one event is read; ``relations`` are the assigned labels that are names of event types.
    ``alone`` are labels that may be the only one of an event: names of event types, and labels that PROJECT lists.
    ``others`` is the number of events that EVENT and NOT may read without giving them any other label: none, one, or
    several (2).
    """

    assigned: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    relations: frozenset[str] = frozenset()
    wildcard: bool = False
    single: bool = False
    never: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    others: int = 0

    def also_by(self, other: Labels) -> frozenset[str]:
        """The names of types here that EVENT or NOT in another formula may also give."""
        return self.relations - other.never if other.wildcard else frozenset()

    def by_type(self, name: str) -> bool:
        """Whether EVENT or NOT may give this label, as the type of an event."""
        return self.wildcard and name not in self.never

    def may_give(self, name: str) -> bool:
        """Whether some event may have this label, also as its type."""
        return name in self.assigned or self.by_type(name)


@dataclass(frozen=True)
class Scopes:
    """The outcome of `resolve`.

    ``outer[k][label]`` is the occurrence of the formula that binds ``label`` for the filter (or NOT) at occurrence
    k; labels of that filter which are not in ``outer[k]`` are those its own operand assigns. ``labels[k]`` are the
    labels of the formula at occurrence k.
    """

    outer: dict[int, dict[str, int]]
    labels: dict[int, Labels]


def condition_labels(condition: Node) -> dict[str, Node]:
    """The labels that a condition or expression reads, each with the first node that names it."""
    found: dict[str, Node] = {}
    for current in walk(condition):
        if isinstance(current, Attribute | LabelReference | Bracket) and current.label is not None:
            found.setdefault(current.label, current)
    return found


def relation_names(tree: Node) -> frozenset[str]:
    """The names of event types that a formula or query mentions; event kinds are not among them."""
    return frozenset(n.name for n in walk(tree) if isinstance(n, f.EventType) and not isinstance(n, f.EventKind))


def _combine(_: int, current: f.Formula, below: Sequence[Labels]) -> Labels:
    match current:
        case f.EventType():
            name = frozenset((current.name,))
            relations = frozenset[str]() if isinstance(current, f.EventKind) else name
            return Labels(name, name, relations, single=True, alone=name)
        case f.OfAnyType():
            never = frozenset(current.hidden)
            if isinstance(current, f.NotEvent) and current.condition is None and current.event.stream is None:
                # With a condition, or from another stream, an event of the type may be read.
                never |= {current.event.name}
            return Labels(wildcard=True, single=True, never=never, others=1)
        case f.Embedded():
            return Labels(current.labels)
        case f.As():
            inner, label = below[0], frozenset((current.label,))
            bound = inner.bound | label if inner.single else inner.bound - label
            never = inner.never - label
            return Labels(inner.assigned | label, bound, inner.relations, inner.wildcard, inner.single, never)
        case f.Rename():
            renamed = _rename(below[0], current.old, current.new)
            alone = below[0].alone - {current.old} | (renamed.assigned & {current.new})
            return replace(renamed, alone=alone, others=below[0].others)
        case f.Project():
            kept = frozenset(current.labels)
            inner = below[0]
            # A wildcard still gives the kept labels to events of types with these names.
            assigned, bound, relations = (names & kept for names in (inner.assigned, inner.bound, inner.relations))
            alone = kept if inner.wildcard else assigned
            return Labels(assigned, bound, relations, inner.wildcard, never=inner.never, alone=alone)
        case f.Repeating():
            rarely, often = current.times
            inner = below[0] if often == 1 else replace(below[0], others=min(2, 2 * below[0].others))
            return inner if rarely == often == 1 else replace(inner, bound=frozenset(), single=False)
        case f.Combination():
            left, right = below
            twice = (left.assigned & right.assigned) | left.also_by(right) | right.also_by(left)
            either = isinstance(current, f.Disjunction)
            return Labels(
                left.assigned | right.assigned,
                left.bound & right.bound if either else (left.bound | right.bound) - twice,
                left.relations | right.relations,
                left.wildcard or right.wildcard,
                never=left.never & right.never if left.wildcard and right.wildcard else left.never | right.never,
                alone=left.alone | right.alone,
                others=int(min(2, current.counting.most(left.others, right.others))),
            )
        case f.Filter():
            return below[0]
    return replace(below[0], single=False)


def _rename(inner: Labels, old: str, new: str) -> Labels:
    if old == new:
        return inner

    def renamed(names: frozenset[str]) -> frozenset[str]:
        return (names - {old}) | {new} if old in names else names

    bound, assigned = renamed(inner.bound), renamed(inner.assigned)
    by_type = inner.by_type(old)
    # Two labels that get one name mean two events, unless only one event is read.
    if (by_type or old in inner.assigned) and new in inner.assigned and not inner.single:
        bound -= {new}
    if by_type:
        assigned |= {new}
    never = (inner.never | {old}) - {new} if by_type else inner.never
    return Labels(assigned, bound, inner.relations - {old}, inner.wildcard, inner.single, never)


def labels_of(formula: f.Formula) -> Labels:
    """The labels of a formula (bound of spec §3, P1 §5.1)."""
    return fold_only(formula, f.Formula, _combine)


class Occurrence(NamedTuple):
    """A formula at a place in another one, and the occurrences of its operands."""

    formula: f.Formula
    operands: list[int]


def occurrences(root: f.Formula) -> dict[int, Occurrence]:
    """All formulas in one, itself included, by their occurrences: operands before what they are operands of."""
    found: dict[int, Occurrence] = {}

    def visit(index: int, current: f.Formula, operands: list[int]) -> int:
        found[index] = Occurrence(current, operands)
        return index

    fold_only(root, f.Formula, visit)
    return found


def of_operands(places: Mapping[int, Occurrence], visit: Callable[[int, f.Formula, Sequence[T]], T]) -> dict[int, T]:
    """For each occurrence of a formula its value, from those of its operands."""
    found: dict[int, T] = {}
    for index, (current, operands) in places.items():
        found[index] = visit(index, current, [found[k] for k in operands])
    return found


def above(places: Mapping[int, Occurrence]) -> dict[int, int]:
    """The occurrence directly above each occurrence but the last."""
    return {operand: index for index, place in places.items() for operand in place.operands}


def handed_down(
    formula: f.Formula,
    start: T,
    enter: Callable[[int, f.Formula, T], T],
    *,
    first_only: tuple[type[f.Formula], ...] = (f.Exclusion,),
) -> dict[int, T]:
    """For each occurrence of a formula, the value that the formula around it hands down; the whole gets ``start``.

    ``enter`` says what a formula hands on to those below it. Of those ``first_only`` the second operand gets ``start``:
    the right side of UNLESS, WITHOUT and NOT FOLLOWED BY is not part of the complex event.
    """
    places = occurrences(formula)
    given = {max(places): start}
    for index, (current, operands) in reversed(places.items()):
        handed = enter(index, current, given[index])
        for place, operand in enumerate(operands):
            given[operand] = start if place and isinstance(current, first_only) else handed
    return given


@lru_cache(maxsize=8)  # a query is resolved by one part of the engine after the other
def resolve(formula: f.Formula) -> Scopes:
    """Find for every label of every filter the events it means.

    Raises `QueryError` for a label that the filtered formula does not assign and no enclosing formula binds, and for
    one under SOME that is not among its labels and need not have exactly one event.
    """
    places = occurrences(formula)
    labels = of_operands(places, _combine)
    parents = above(places)
    outer: dict[int, dict[str, int]] = {}
    known = frozenset().union(*(entry.assigned for entry in labels.values()))
    for index, (current, _) in places.items():
        condition = current.condition if isinstance(current, f.Filter | f.NotEvent) else None
        if condition is None:
            continue
        if isinstance(current, f.NotEvent):
            own, wildcard = frozenset((current.event.name,)), False
        else:
            own, wildcard = labels[index].assigned, labels[index].wildcard
        bindings: dict[str, int] = {}
        for label, place in condition_labels(condition).items():
            if label in own:
                continue
            binder = parents.get(index)
            while binder is not None and label not in labels[binder].bound:
                binder = parents.get(binder)
            if binder is not None:
                bindings[label] = binder
            elif not wildcard:
                raise _unbound(label, place, known, formula)
        outer[index] = bindings
        _check_some(condition, bindings.keys() | (own if isinstance(current, f.NotEvent) else labels[index].bound))
    return Scopes(outer, labels)


def _check_some(condition: Condition, single: Set[str]) -> None:
    """Check SOME, which chooses an event for each of its labels: other labels below it must have one event."""
    for some in walk(condition):
        if not isinstance(some, Some):
            continue
        for label, place in condition_labels(some.condition).items():
            if label not in some.labels and label not in single:
                raise QueryError(
                    f"'{label}' may have several events or none here, and SOME does not list it",
                    span=place.span,
                    hint=f"To ask for some event of it, too, write SOME {', '.join((*some.labels, label))}: …; "
                    "'for all' inside SOME cannot be written.",
                )


def excluded_label(label: str, formula: f.Formula) -> str | None:
    """That no match has an event of a label which only parts give that are excluded; None for other labels."""
    if label in labels_of(formula).assigned:
        return None
    if not any(isinstance(n, f.Exclusion) and label in labels_of(n.right).assigned for n in walk(formula)):
        return None
    return f"'{label}' is in an excluded part, so no match has it; a condition on it belongs in that part."


def _unbound(label: str, place: Node, known: frozenset[str], formula: f.Formula) -> QueryError:
    if label not in known:
        hint = f"The labels of the formula are {', '.join(sorted(known))}."
        if isinstance(place, LabelReference):
            hint += f" A name alone as an argument is a label; an attribute is written with one, as in x.{label}."
        return QueryError(f"unknown label '{label}'", span=place.span, suggestion=nearest(label, known), hint=hint)
    return QueryError(
        f"label '{label}' is not bound here: the filtered formula does not assign it, and no enclosing formula gives "
        "it exactly one event",
        span=place.span,
        hint=excluded_label(label, formula)
        or "A label under + or in one branch of OR may have many events or none; move the FILTER to a formula that "
        f"contains the whole of '{label}'.",
    )
