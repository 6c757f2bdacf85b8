"""Push-down of filters on one label each: the locally parametrized form of second-order CEL (P2 Appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence as Many
from functools import reduce
from itertools import product

from cerflow.analysis.scopes import Labels, condition_labels, resolve
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import Condition, Or
from cerflow.language.formula import As, Disjunction, Filter, Formula, Rename
from cerflow.language.node import Node
from cerflow.language.printer import show
from cerflow.rewriting.clauses import clauses_asked
from cerflow.rewriting.events import Labelling, OnEvents, Operation, Renaming, refuse_outer_labels, spread
from cerflow.rewriting.rebuild import check_size, size, speaks_of_set, transformed

__all__ = ["push_down_filters"]


def push_down_filters(formula: Formula) -> Formula:
    """The same complex events, with every FILTER, AS and renaming on a formula that reads one event.

    Conditions on one label each hold of a complex event exactly if they hold of each of its events, so they move down
    to the event types, EVENT and NOT. A choice between conditions on several events becomes an OR of formulas first,
    which may make the formula exponentially larger. AS and renaming stop at PROJECT, AND, ANY and a choice BY labels.

    Raises `UnsupportedQueryError` for a condition that relates labels, speaks of a set of events, speaks of a label
    bound outside of what it filters, or would have to pass NEXT, LAST, MAX or ANY, and for a result that would be too
    large; `QueryError` for a label that nothing binds.
    """
    split = _without_choices(formula)
    scopes = resolve(split)
    refuse_outer_labels(split, scopes)

    def moved(current: Formula) -> Many[Operation] | None:
        match current:
            case As():
                return (Labelling(current.label),)
            case Rename():
                return (Renaming(current.old, current.new),)
            case Filter():
                return [_on_events(clause) for clause in clauses_asked(current.condition)]
        return None

    pushed = spread(split, moved)
    refuse_outer_labels(pushed, resolve(pushed))
    return pushed


def _without_choices(formula: Formula) -> Formula:
    """The formula with an OR of filters for every choice that is not made event by event."""
    labels = resolve(formula).labels

    def change(index: int, current: Node) -> Node:
        if not isinstance(current, Filter) or labels[index].single:
            return current
        kept: list[Condition] = []
        choices: list[list[Condition]] = []
        for clause in clauses_asked(current.condition):
            for atom in clause:
                _check_atom(atom)
            if len(clause) == 1 or _made_on_one_event(clause, labels[index]):
                kept.append(reduce(Or, clause))
            else:
                choices.append(list(clause))
        if not choices:
            return current
        whole: list[Formula] = []
        number = reduce(lambda count, choice: count * len(choice), choices, 1)
        check_size(number * size(current.operand), current.span)
        for chosen in product(*choices):
            branch = current.operand
            for condition in (*kept, *chosen):
                branch = Filter(branch, condition, span=current.span)
            whole.append(branch)
        return reduce(Disjunction, whole)

    return transformed(formula, change)


def _made_on_one_event(clause: Many[Condition], labels: Labels) -> bool:
    names = {name for atom in clause for name in condition_labels(atom)}
    # EVENT and NOT may give the name to a second event, as its type.
    unique = not labels.wildcard and len(names) == 1 and names <= labels.bound
    return unique and all(condition_labels(atom) for atom in clause)


def _check_atom(atom: Condition) -> None:
    if speaks_of_set(atom):
        reason = f"{show(atom)} speaks of a set of events, not of each event"
    elif len(condition_labels(atom)) > 1:
        reason = f"{show(atom)} relates several labels"
    else:
        return
    raise UnsupportedQueryError(
        f"{reason}, so it cannot be pushed down",
        span=atom.span,
        hint="Only conditions on one label, true of each of its events, can be pushed down to the events.",
    )


def _on_events(clause: Many[Condition]) -> OnEvents:
    names = {name for atom in clause for name in condition_labels(atom)}
    return OnEvents(next(iter(names), None), reduce(Or, clause))
