"""AS, renaming and conditions on one label moved down to the events (P2 §C.2, C.4; erratum E16).

What ``φ AS A``, ``φ [A -> B]`` and a condition on one label do to a complex event, they do to each of its events by
itself. So they can be moved down to the formulas that read one event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import And, Condition
from cerflow.language.node import Node, rebuild, walk, with_children
from cerflow.logic.analysis.scopes import Labels, condition_labels, handed_down, occurrences, relation_names, resolve
from cerflow.logic.rewriting.rebuild import FreshNames, refuse_to_pass, relabelled, transformed, with_own_labels
from cerflow.theory.rewriting.regular import without_repetitions

#: What is done to each event: a label or a renaming as the operator says, or a condition on at most one label, which
#: every event of that label satisfies by itself.
Operation = f.As | f.Rename | Condition
#: Operations that go on below a formula, the first one first.
_Waiting = tuple[Operation, ...]


def spread(formula: f.Formula, moved: Callable[[f.Formula], Sequence[Operation] | None]) -> f.Formula:
    """Move operators down to the formulas that read one event.

    ``moved`` gives the operations that an operator consists of, the first one first, or None if it stays; it must be
    true of those that stay that they may change places with those that are moved. Neither AS nor renaming can pass
    PROJECT, AND, ANY and a choice BY labels, so there they stay, and conditions pass with the labels that they have
    inside. Raises `UnsupportedQueryError` for a condition that would have to pass a strategy.
    """
    labels = resolve(formula).labels
    places = occurrences(formula)
    fresh = FreshNames(formula)
    given = {n.label if isinstance(n, f.As) else n.new for n in walk(formula) if isinstance(n, f.As | f.Rename)}
    types = relation_names(formula) - given
    gone: set[int] = set()
    here: dict[int, Sequence[Operation]] = {}

    def enter(index: int, current: f.Formula, waiting: _Waiting) -> _Waiting:
        if labels[index].single:
            here[index] = waiting
            return ()
        operations = moved(current)
        if operations is not None:
            gone.add(index)
            return (*operations, *waiting)
        if isinstance(current, f.Selection) and current.strategy is not f.Strategy.STRICT:
            for operation in waiting:
                if isinstance(operation, Condition):
                    refuse_to_pass(current, place=operation)
            if stops_labels(current):
                here[index], waiting = waiting, ()
        elif stops_labels(current):
            here[index], waiting = _divided(current, waiting, labels[places[index].operands[0]])
        return waiting

    # What both sides of AND must satisfy, one of them may check.
    begin: _Waiting = ()
    handed_down(formula, begin, enter, first_only=(f.Exclusion, f.Conjunction))

    def change(index: int, current: Node) -> Node:
        if index in gone:
            return current.children[0]
        if not here.get(index):
            return current
        return _applied(cast(f.Formula, current), here[index], labels[index], fresh, types)

    return transformed(formula, change)


def stops_labels(current: Node) -> bool:
    """Whether AS and renaming around an operator cannot be moved into it.

    PROJECT leaves out what they would need; AND compares labels, ANY and BY choose by them.
    """
    return isinstance(current, f.Project | f.Conjunction) or (
        isinstance(current, f.Selection) and (current.strategy is f.Strategy.ANY or bool(current.by))
    )


def _divided(current: f.Formula, waiting: _Waiting, inner: Labels) -> tuple[list[Operation], _Waiting]:
    """The operators that stay around PROJECT or AND, and the conditions that pass, as they read inside."""
    outside: list[Operation] = []
    inside: list[Operation] = []
    for operation in waiting:
        if not isinstance(operation, Condition):
            outside.append(operation)
            continue
        label = _label_of(operation)
        names: frozenset[str | None] = frozenset((label,))
        everything = False
        for before in reversed(outside):
            if isinstance(before, f.As):
                everything = everything or before.label in names
            elif isinstance(before, f.Rename) and before.old != before.new:
                names = (names - {before.old}) | (frozenset((before.old,)) if before.new in names else frozenset())
        if everything:
            names |= _all_names(current, inner)
        elif isinstance(current, f.Project):
            names &= {*current.labels, None}
        for name in sorted(names, key=str, reverse=True):
            renamed = {} if label is None or name is None else {label: name}
            inside.insert(0, relabelled(operation, renamed))
    return outside, tuple(inside)


def _label_of(condition: Condition) -> str | None:
    return next(iter(condition_labels(condition)), None)


def _all_names(current: f.Formula, inner: Labels) -> frozenset[str]:
    if isinstance(current, f.Project):
        return frozenset(current.labels)
    if inner.wildcard:
        raise UnsupportedQueryError(
            "a condition on all events of an AND would have to pass it, but what it joins may have any label",
            span=current.span,
            hint="Name the event types instead of EVENT or NOT.",
        )
    return inner.assigned


def _applied(
    event: f.Formula, operations: Sequence[Operation], labels: Labels, fresh: FreshNames, types: frozenset[str]
) -> f.Formula:
    """The needed operations on a formula that reads one event (or stays around PROJECT or AND).

    ``types`` are names that an event has only as its type, so that no formula but its type binds them.
    """
    assigned = set(labels.assigned)
    always = set(labels.bound if labels.single else ())
    for operation in operations:
        match operation:
            case f.As(_, label):
                if label not in always:
                    event = f.As(event, label)
                assigned.add(label)
                always |= {label} if labels.single else set()
            case f.Rename(_, old, new):
                if old != new and (old in assigned or labels.by_type(old)):
                    event = f.Rename(event, old, new)
                    assigned = (assigned - {old}) | {new}
                    always = (always - {old}) | {new} if old in always else always
            case Condition():
                name = _label_of(operation)
                if name is None or name in assigned or (labels.by_type(name) and name in types):
                    event = _filtered(event, operation)
                elif labels.by_type(name):
                    # A type may have the name of a label; a formula around may bind that name.
                    own = fresh.like(name)
                    renamed = f.Filter(f.Rename(event, name, own), relabelled(operation, {name: own}))
                    event = f.Rename(renamed, own, name)
    return event


def _filtered(event: f.Formula, condition: Condition) -> f.Formula:
    if isinstance(event, f.Filter):
        return f.Filter(event.operand, And(event.condition, condition), span=event.span)
    return f.Filter(event, condition)


def outer_labels(formula: f.Formula) -> list[tuple[Node, frozenset[str]]]:
    """Each FILTER and NOT with the labels of its condition that are bound outside of its operand."""
    outer = resolve(formula).outer
    return [
        (current, frozenset(outer.get(index, ())))
        for index, current in enumerate(walk(formula))
        if isinstance(current, f.Filter | f.NotEvent)
    ]


def refuse_outer_labels(formula: f.Formula, names: frozenset[str] | None = None) -> None:
    """Raise `UnsupportedQueryError` if a condition reads a label (one of ``names``) that is bound further out."""
    for current, outer in outer_labels(formula):
        refused = outer if names is None else outer & names
        if refused:
            name = min(refused)
            raise UnsupportedQueryError(
                f"a condition reads '{name}', which is bound outside of the filtered formula",
                span=current.span,
                hint=f"Put the condition around a formula that contains '{name}' and all other labels that it reads.",
            )


#: Renamings around a formula, the innermost first.
_Renamings = tuple[f.Rename, ...]


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
    labels = resolve(formula).labels
    moving = (n.label for k, n in enumerate(walk(formula)) if isinstance(n, f.As) and not labels[k].single)
    refuse_outer_labels(formula, frozenset(moving))

    pushed = spread(_apart(formula), lambda current: (current,) if isinstance(current, f.As) else None)
    return _checked(formula, pushed)


def _checked(formula: f.Formula, changed: f.Formula) -> f.Formula:
    """The changed formula, if none of its conditions now reads a label that is bound further out."""
    for (_, original), (place, labels) in zip(outer_labels(formula), outer_labels(changed), strict=True):
        if labels != original:
            raise UnsupportedQueryError(
                f"a condition reads events of a type called '{min(labels - original)}', and the label would be "
                "bound around it",
                span=place.span,
                hint="Give the label another name.",
            )
    return changed


def _apart(formula: f.Formula) -> f.Formula:
    """A label of a FILTER or a renaming that an AS further out gives to all events gets a name of its own."""
    fresh = FreshNames(formula)
    labels = resolve(formula).labels

    def enter(index: int, current: f.Formula, here: frozenset[str]) -> frozenset[str]:
        if isinstance(current, f.As) and not labels[index].single:
            return here | {current.label}
        return frozenset() if stops_labels(current) else here

    # The labels of the AS around each formula that will be moved into it.
    given = handed_down(formula, frozenset[str](), enter)

    def change(index: int, current: Node) -> Node:
        if not isinstance(current, f.Filter | f.Rename) or labels[index].single:
            return current
        above = given.get(index, frozenset())
        if isinstance(current, f.Filter):
            own = {name: fresh.like(name) for name in sorted(condition_labels(current.condition).keys() & above)}
            if own:
                operand = with_labels_replaced(current.operand, own)
                found: f.Formula = f.Filter(operand, relabelled(current.condition, own), span=current.span)
                for name, new in own.items():
                    found = f.Rename(found, new, name)
                return found
        elif current.old in above:
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
    labels = resolve(formula).labels
    renamings = [n for n in walk(formula) if isinstance(n, f.Rename)]
    refuse_outer_labels(formula, frozenset(name for r in renamings for name in (r.old, r.new)))
    fresh = FreshNames(formula)
    stay: set[int] = set()

    def enter(index: int, current: f.Formula, here: _Renamings) -> _Renamings:
        if isinstance(current, f.Rename):
            return here if current.old == current.new else (current, *here)
        passes = not isinstance(current, f.Filter) or _passes(current, labels[index], here)
        if passes and not isinstance(current, f.SingleEvent) and not stops_labels(current):
            return here
        stay.add(index)
        return ()

    begin: _Renamings = ()
    around = handed_down(formula, begin, enter)

    def change(index: int, current: Node) -> Node:
        if index in stay and isinstance(current, f.EventType):
            new = _final(current.name, around[index])
            return current if new == current.name else f.Rename(current, current.name, new)
        if index in stay:
            # Without renamings of labels that the formula does not give.
            return _applied(cast(f.Formula, current), around[index], labels[index], fresh, frozenset())
        if isinstance(current, f.Rename):
            return current.operand
        return with_own_labels(current, lambda name: _final(name, around[index])) if index in around else current

    return _checked(formula, transformed(formula, change))


def _final(name: str, renamings: _Renamings) -> str:
    for renaming in renamings:
        name = renaming.new if name == renaming.old else name
    return name


def _passes(current: f.Filter, operand: Labels, renamings: _Renamings) -> bool:
    """Whether after the renamings the names of a condition mean the same events as before."""
    possible = set(operand.assigned)
    if operand.wildcard:
        possible.update(name for renaming in renamings for name in (renaming.old, renaming.new))
    own = condition_labels(current.condition).keys()
    return not any(
        other != name and _final(other, renamings) == _final(name, renamings) for name in own for other in possible
    )


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
