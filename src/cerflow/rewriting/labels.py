"""AS and renaming moved down to the events (P2 §C.2, C.4; erratum E16)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Many

from cerflow.analysis.scopes import Labels, Scopes, condition_labels, resolve
from cerflow.errors import UnsupportedQueryError
from cerflow.language.builder.given import of_formula
from cerflow.language.formula import (
    AnyEvent,
    As,
    EventType,
    Exclusion,
    Filter,
    Formula,
    NotEvent,
    Project,
    Rename,
    Selection,
    Strategy,
)
from cerflow.language.node import Node, fold, walk, with_children
from cerflow.rewriting.events import (
    Labelling,
    Operation,
    below,
    outer_labels,
    refuse_outer_labels,
    spread,
    stops_labels,
)
from cerflow.rewriting.names import FreshNames
from cerflow.rewriting.rebuild import relabelled, transformed
from cerflow.rewriting.repetitions import without_repetitions

__all__ = ["push_down_labels", "push_down_renames", "with_labels_replaced"]


@of_formula
def push_down_labels(formula: Formula) -> Formula:
    """The same complex events, with every AS on a formula that reads one event.

    A FILTER that reads the label of an AS around it means the events that had the label before, so these get another
    name, which is changed back around the FILTER; likewise below a renaming. AS stops at PROJECT, AND, ANY and a choice
    BY labels.

    Raises `QueryError` for a label that nothing binds, and `UnsupportedQueryError` where a condition reads a
    label that is bound outside of what it filters and that is moved.
    """
    formula = without_repetitions(formula)
    scopes = resolve(formula)
    labels = scopes.labels
    moving = (n.label for k, n in enumerate(walk(formula)) if isinstance(n, As) and not labels[k].single)
    refuse_outer_labels(formula, scopes, frozenset(moving))

    def moved(current: Formula) -> Many[Operation] | None:
        return (Labelling(current.label),) if isinstance(current, As) else None

    return _checked(formula, scopes, spread(_apart(formula, scopes), moved))


def _checked(formula: Formula, scopes: Scopes, changed: Formula) -> Formula:
    """The changed formula, if none of its conditions now reads a label that is bound further out."""
    before = [labels for _, labels in outer_labels(formula, scopes)]
    for (place, labels), original in zip(outer_labels(changed, resolve(changed)), before, strict=True):
        if labels != original:
            raise UnsupportedQueryError(
                f"a condition reads events of a type called '{min(labels - original)}', and the label would be "
                "bound around it",
                span=place.span,
                hint="Give the label another name.",
            )
    return changed


def _apart(formula: Formula, scopes: Scopes) -> Formula:
    """A label of a FILTER or a renaming that an AS further out gives to all events gets a name of its own."""
    given = _given_above(formula, scopes)
    fresh = FreshNames(formula)

    def change(index: int, current: Node) -> Node:
        above = given.get(index, frozenset())
        if isinstance(current, Filter) and not scopes.labels[index].single:
            own = {name: fresh.like(name) for name in sorted(condition_labels(current.condition).keys() & above)}
            if own:
                operand = with_labels_replaced(current.operand, own)
                found: Formula = Filter(operand, relabelled(current.condition, own), span=current.span)
                for name, new in own.items():
                    found = Rename(found, new, name)
                return found
        if isinstance(current, Rename) and current.old in above and not scopes.labels[index].single:
            new = fresh.like(current.old)
            return Rename(with_labels_replaced(current.operand, {current.old: new}), new, current.new)
        return current

    return transformed(formula, change)


def _given_above(formula: Formula, scopes: Scopes) -> dict[int, frozenset[str]]:
    """For each formula the labels of the AS around it that will be moved into it."""
    nodes = list(walk(formula))
    parts = below(formula)
    given: dict[int, frozenset[str]] = {len(nodes) - 1: frozenset()}
    for index in range(len(nodes) - 1, -1, -1):
        if index not in given:
            continue
        current, here = nodes[index], given[index]
        if isinstance(current, As) and not scopes.labels[index].single:
            here |= {current.label}
        elif stops_labels(current):
            here = frozenset()
        for place, part in enumerate(parts[index]):
            given[part] = frozenset() if place and isinstance(current, Exclusion) else here
    return given


@of_formula
def push_down_renames(formula: Formula) -> Formula:
    """The same complex events, with renamings moved down to the event types, EVENT and NOT.

    Renaming something to the label of an AS further in changes that label. A renaming stays around a FILTER where it
    would make events answer to a name of the condition that did not before, and around PROJECT, AND, ANY and a choice
    BY labels.

    Raises `QueryError` for a label that nothing binds, and `UnsupportedQueryError` where a condition reads a renamed
    label that is bound outside of its operand.
    """
    formula = without_repetitions(formula)
    scopes = resolve(formula)
    renamings = [n for n in walk(formula) if isinstance(n, Rename)]
    refuse_outer_labels(formula, scopes, frozenset(name for r in renamings for name in (r.old, r.new)))
    nodes = list(walk(formula))
    parts = below(formula)
    # The renamings around each occurrence, the innermost first.
    around: dict[int, tuple[tuple[str, str], ...]] = {len(nodes) - 1: ()}
    stay: set[int] = set()
    for index in range(len(nodes) - 1, -1, -1):
        if index not in around:
            continue
        current, here = nodes[index], around[index]
        match current:
            case EventType() | AnyEvent() | NotEvent():
                stay.add(index)
                continue
            case Rename() if current.old != current.new:
                here = ((current.old, current.new), *here)
            case Filter() if not _passes(current, scopes.labels[index], here):
                stay.add(index)
                here = ()
            case _ if stops_labels(current):
                stay.add(index)
                here = ()
        for place, part in enumerate(parts[index]):
            around[part] = () if place and isinstance(current, Exclusion) else here

    def change(index: int, current: Node) -> Node:
        if index in stay:
            assert isinstance(current, Formula)
            return _renamed(current, around[index], scopes.labels[index])
        match current:
            case Rename():
                return current.operand
            case As():
                return As(current.operand, _final(current.label, around[index]), span=current.span)
            case Filter():
                names = {name: _final(name, around[index]) for name in condition_labels(current.condition)}
                return Filter(current.operand, relabelled(current.condition, names), span=current.span)
        return current

    return _checked(formula, scopes, transformed(formula, change))


def _final(name: str, renamings: Many[tuple[str, str]]) -> str:
    for old, new in renamings:
        name = new if name == old else name
    return name


def _passes(current: Filter, operand: Labels, renamings: Many[tuple[str, str]]) -> bool:
    """Whether after the renamings the names of a condition mean the same events as before."""
    possible = set(operand.assigned)
    if operand.wildcard:
        possible.update(name for pair in renamings for name in pair)
    own = condition_labels(current.condition).keys()
    return not any(
        other != name and _final(other, renamings) == _final(name, renamings) for name in own for other in possible
    )


def _renamed(formula: Formula, renamings: Many[tuple[str, str]], labels: Labels) -> Formula:
    """The formula renamed, without renamings of labels that it does not give."""
    if isinstance(formula, EventType):
        new = _final(formula.name, renamings)
        return formula if new == formula.name else Rename(formula, formula.name, new)
    assigned = set(labels.assigned)
    for old, new in renamings:
        if old in assigned or labels.by_type(old):
            formula = Rename(formula, old, new)
            assigned = (assigned - {old}) | {new}
    return formula


def with_labels_replaced(formula: Formula, names: Mapping[str, str]) -> Formula:
    """ρ^{A→B}: the formula with other names for labels wherever it gives or reads them (P2 §C.2).

    Types of events are not changed: an event type of such a name is renamed, and so is what EVENT and NOT read
    (erratum E16). The new names must be new to the formula, and no condition in it may speak of an old one that is
    bound outside of it. Raises `UnsupportedQueryError` for ANY.
    """

    def new(name: str) -> str:
        return names.get(name, name)

    def visit(current: Node, below: Many[Node]) -> Node:
        match current:
            case EventType() if current.name in names:
                return Rename(current, current.name, names[current.name])
            case EventType():
                return current
            case AnyEvent() | NotEvent():
                renamed: Formula = current
                for name in sorted(names):
                    renamed = Rename(renamed, name, names[name])
                return renamed
        current = with_children(current, below)
        match current:
            case As():
                return As(current.operand, new(current.label), span=current.span)
            case Rename():
                return Rename(current.operand, new(current.old), new(current.new), span=current.span)
            case Filter():
                return Filter(current.operand, relabelled(current.condition, names), span=current.span)
            case Selection(strategy=Strategy.ANY):
                raise UnsupportedQueryError(
                    "labels in ANY would have to be renamed, but ANY chooses by them",
                    span=current.span,
                    hint="Give the labels different names.",
                )
            case Selection(strategy, operand, by):
                compared = tuple(relabelled(reference, names) for reference in by)
                return Selection(strategy, operand, compared, span=current.span)
            case Project():
                return Project(tuple(map(new, current.labels)), current.operand, span=current.span)
        return current

    found = fold(formula, visit)
    assert isinstance(found, Formula)
    return found
