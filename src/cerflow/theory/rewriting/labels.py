"""AS and renaming moved down to the events (P2 §C.2, C.4; erratum E16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.node import Node, rebuild, walk, with_children
from cerflow.logic.analysis.scopes import Labels, Scopes, condition_labels, handed_down, resolve
from cerflow.logic.rewriting.rebuild import FreshNames, relabelled, transformed, with_own_labels
from cerflow.theory.rewriting import events
from cerflow.theory.rewriting.repetitions import without_repetitions

#: Renamings around a formula, the innermost first.
_Renamings = tuple[tuple[str, str], ...]
_NO_RENAMINGS: _Renamings = ()


@of_formula
def push_down_labels(formula: f.Formula) -> f.Formula:
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
    moving = (n.label for k, n in enumerate(walk(formula)) if isinstance(n, f.As) and not labels[k].single)
    events.refuse_outer_labels(formula, scopes, frozenset(moving))

    def moved(current: f.Formula) -> Sequence[events.Operation] | None:
        return (current,) if isinstance(current, f.As) else None

    return _checked(formula, scopes, events.spread(_apart(formula, scopes), moved))


def _checked(formula: f.Formula, scopes: Scopes, changed: f.Formula) -> f.Formula:
    """The changed formula, if none of its conditions now reads a label that is bound further out."""
    before = [labels for _, labels in events.outer_labels(formula, scopes)]
    for (place, labels), original in zip(events.outer_labels(changed, resolve(changed)), before, strict=True):
        if labels != original:
            raise UnsupportedQueryError(
                f"a condition reads events of a type called '{min(labels - original)}', and the label would be "
                "bound around it",
                span=place.span,
                hint="Give the label another name.",
            )
    return changed


def _apart(formula: f.Formula, scopes: Scopes) -> f.Formula:
    """A label of a FILTER or a renaming that an AS further out gives to all events gets a name of its own."""
    fresh = FreshNames(formula)

    def enter(index: int, current: f.Formula, here: frozenset[str]) -> frozenset[str]:
        if isinstance(current, f.As) and not scopes.labels[index].single:
            return here | {current.label}
        return frozenset() if events.stops_labels(current) else here

    # The labels of the AS around each formula that will be moved into it.
    given = handed_down(formula, frozenset[str](), enter)

    def change(index: int, current: Node) -> Node:
        above = given.get(index, frozenset())
        if isinstance(current, f.Filter) and not scopes.labels[index].single:
            own = {name: fresh.like(name) for name in sorted(condition_labels(current.condition).keys() & above)}
            if own:
                operand = with_labels_replaced(current.operand, own)
                found: f.Formula = f.Filter(operand, relabelled(current.condition, own), span=current.span)
                for name, new in own.items():
                    found = f.Rename(found, new, name)
                return found
        if isinstance(current, f.Rename) and current.old in above and not scopes.labels[index].single:
            new = fresh.like(current.old)
            return f.Rename(with_labels_replaced(current.operand, {current.old: new}), new, current.new)
        return current

    return transformed(formula, change)


@of_formula
def push_down_renames(formula: f.Formula) -> f.Formula:
    """The same complex events, with renamings moved down to the event types, EVENT and NOT.

    Renaming something to the label of an AS further in changes that label. A renaming stays around a FILTER where it
    would make events answer to a name of the condition that did not before, and around PROJECT, AND, ANY and a choice
    BY labels.

    Raises `QueryError` for a label that nothing binds, and `UnsupportedQueryError` where a condition reads a renamed
    label that is bound outside of its operand.
    """
    formula = without_repetitions(formula)
    scopes = resolve(formula)
    renamings = [n for n in walk(formula) if isinstance(n, f.Rename)]
    events.refuse_outer_labels(formula, scopes, frozenset(name for r in renamings for name in (r.old, r.new)))
    stay: set[int] = set()

    def enter(index: int, current: f.Formula, here: _Renamings) -> _Renamings:
        if isinstance(current, f.Rename):
            return here if current.old == current.new else ((current.old, current.new), *here)
        passes = not isinstance(current, f.Filter) or _passes(current, scopes.labels[index], here)
        if passes and not isinstance(current, f.SingleEvent) and not events.stops_labels(current):
            return here
        stay.add(index)
        return ()

    around = handed_down(formula, _NO_RENAMINGS, enter)

    def change(index: int, current: Node) -> Node:
        if index in stay:
            assert isinstance(current, f.Formula)
            return _renamed(current, around[index], scopes.labels[index])
        if isinstance(current, f.Rename):
            return current.operand
        return with_own_labels(current, lambda name: _final(name, around[index])) if index in around else current

    return _checked(formula, scopes, transformed(formula, change))


def _final(name: str, renamings: Sequence[tuple[str, str]]) -> str:
    for old, new in renamings:
        name = new if name == old else name
    return name


def _passes(current: f.Filter, operand: Labels, renamings: Sequence[tuple[str, str]]) -> bool:
    """Whether after the renamings the names of a condition mean the same events as before."""
    possible = set(operand.assigned)
    if operand.wildcard:
        possible.update(name for pair in renamings for name in pair)
    own = condition_labels(current.condition).keys()
    return not any(
        other != name and _final(other, renamings) == _final(name, renamings) for name in own for other in possible
    )


def _renamed(formula: f.Formula, renamings: Sequence[tuple[str, str]], labels: Labels) -> f.Formula:
    """The formula renamed, without renamings of labels that it does not give."""
    if isinstance(formula, f.EventType):
        new = _final(formula.name, renamings)
        return formula if new == formula.name else f.Rename(formula, formula.name, new)
    assigned = set(labels.assigned)
    for old, new in renamings:
        if old in assigned or labels.by_type(old):
            formula = f.Rename(formula, old, new)
            assigned = (assigned - {old}) | {new}
    return formula


def with_labels_replaced(formula: f.Formula, names: Mapping[str, str]) -> f.Formula:
    """ρ^{A→B}: the formula with other names for labels wherever it gives or reads them (P2 §C.2).

    Types of events are not changed: an event type of such a name is renamed, and so is what EVENT and NOT read
    (erratum E16). The new names must be new to the formula, and no condition in it may speak of an old one that is
    bound outside of it. Raises `UnsupportedQueryError` for ANY.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        match current:
            case f.EventType() if current.name in names:
                return f.Rename(current, current.name, names[current.name])
            case f.EventType():
                return current
            case f.SingleEvent():
                renamed: f.Formula = current
                for name in sorted(names):
                    renamed = f.Rename(renamed, name, names[name])
                return renamed
            case f.Selection(strategy=f.Strategy.ANY):
                raise UnsupportedQueryError(
                    "labels in ANY would have to be renamed, but ANY chooses by them",
                    span=current.span,
                    hint="Give the labels different names.",
                )
        return with_own_labels(with_children(current, below), lambda name: names.get(name, name))

    return rebuild(formula, visit)
