"""Push-down of filters on one label each: the locally parametrized form of second-order CEL (P2 Appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from math import prod

from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import Condition, Constant, Not, Or, Some
from cerflow.language.formula import As, Disjunction, Filter, Formula, Rename
from cerflow.language.node import Node, fold_only
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import Labels, condition_labels, labels_of, resolve
from cerflow.logic.conditions.connectives import asked, clauses_asked, negated, spelled_out
from cerflow.logic.rewriting.rebuild import check_tree_size, mentions_set, size, transformed
from cerflow.theory.rewriting.labels import Operation, refuse_outer_labels, spread
from cerflow.theory.rewriting.regular import without_repetitions


@of_formula
def push_down_filters(formula: Formula) -> Formula:
    """The same complex events, with every FILTER, AS and renaming on a formula that reads one event.

    Conditions on one label each hold of a complex event exactly if they hold of each of its events, so they move down
    to the event types, EVENT and NOT. A choice between conditions on several events becomes an OR of formulas first,
    which may make the formula exponentially larger. AS and renaming stop at PROJECT, AND, ANY and a choice BY labels.
    SOME passes OR, and where its label has exactly one event, it is a condition on that event.

    Raises `UnsupportedQueryError` for a condition that relates labels, speaks of a set of events, speaks of a label
    bound outside of what it filters, or would have to pass NEXT, LAST, MAX or ANY, for SOME of a label that may have
    several events, and for a result that would be too large; `QueryError` for a label that nothing binds.
    """
    split = _without_choices(without_repetitions(formula))
    refuse_outer_labels(split)
    split = _some_in_branches(split)

    def moved(current: Formula) -> Sequence[Operation] | None:
        match current:
            case As() | Rename():
                return (current,)
            case Filter():
                return [reduce(Or, clause) for clause in clauses_asked(current.condition)]
        return None

    pushed = spread(split, moved)
    refuse_outer_labels(pushed)
    return pushed


def _without_choices(formula: Formula) -> Formula:
    """The formula with an OR of filters for every choice that is not made event by event; SOMEs stand alone."""
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
        if not choices and not any(map(_is_some, kept)):
            return current
        check_tree_size(prod(map(len, choices)) * size(current.operand), current.span)

        def filtered(operand: Formula, condition: Condition) -> Formula:
            return Filter(operand, condition, span=current.span)

        return reduce(Disjunction, (reduce(filtered, (*kept, *one), current.operand) for one in product(*choices)))

    return transformed(formula, change)


def _made_on_one_event(clause: Sequence[Condition], labels: Labels) -> bool:
    names = {frozenset(condition_labels(atom)) for atom in clause}
    # EVENT and NOT may give the name to a second event, as its type.
    return not labels.wildcard and len(names) == 1 and all(len(own) == 1 and own <= labels.bound for own in names)


def _some_in_branches(formula: Formula) -> Formula:
    """The formula with every SOME that may be about several events on the branches of the OR that it filters."""
    labels = resolve(formula).labels

    def change(index: int, current: Node) -> Node:
        if not isinstance(current, Filter) or not _is_some(current.condition) or labels[index].single:
            return current
        atom = current.condition
        if _made_on_one_event((atom,), labels[index]):
            return current
        return reduce(Disjunction, (_with_some(branch, atom, current) for branch in _branches(current.operand)))

    return transformed(formula, change)


def _with_some(branch: Formula, atom: Condition, written: Filter) -> Formula:
    labels = labels_of(branch)
    if not all(map(labels.may_give, condition_labels(atom))):
        # Without events of a label SOME is false.
        return branch if isinstance(atom, Not) else Filter(branch, Constant(False), span=written.span)
    found = Filter(branch, atom, span=written.span)
    if not labels.single and not _made_on_one_event((atom,), labels):
        raise UnsupportedQueryError(
            f"{show(atom)} may be about several events, so it cannot be pushed down",
            span=atom.span or written.span,
            hint="SOME passes OR, but not ; or +: one part of a sequence with such an event is enough.",
        )
    return found


def _branches(formula: Formula) -> list[Formula]:
    """Formulas whose OR means the same, with AS, renaming and FILTER around each of them."""

    def visit(_: int, current: Formula, below: list[list[Formula]]) -> list[Formula]:
        match current:
            case Disjunction():
                return below[0] + below[1]
            case As() | Rename() | Filter():
                asked = condition_labels(current.condition) if isinstance(current, Filter) else {}
                # A condition may speak of events of other branches.
                about = [not asked or all(map(labels_of(branch).may_give, asked)) for branch in below[0]]
                return [replace(current, operand=b) if own else b for b, own in zip(below[0], about)]
        return [current]

    return fold_only(formula, Formula, visit)


def _is_some(condition: Condition) -> bool:
    return isinstance(condition.operand if isinstance(condition, Not) else condition, Some)


def _check_atom(atom: Condition) -> None:
    of_set = mentions_set(atom)
    if not _is_some(atom) and (of_set or len(condition_labels(atom)) > 1):
        reason = "reads a set of events, not each event" if of_set else "relates several labels"
        raise UnsupportedQueryError(
            f"{show(atom)} {reason}, so it cannot be pushed down",
            span=atom.span,
            hint="Only conditions on one label, true of each of its events, can be pushed down to the events.",
        )


def told(condition: Condition, wanted: bool = True, or_unknown: bool = False) -> Condition:
    """The condition of the language that is true where another one is ``wanted`` (true or false), ``or_unknown``."""
    return asked(condition, _told, reduce, wanted, or_unknown)


def _told(atom: Condition, wanted: bool, or_unknown: bool) -> Condition:
    said = atom if wanted else negated(atom)
    match atom:
        case c.In() | c.Between() if or_unknown:
            return told(spelled_out(atom), wanted, or_unknown)
        case c.Comparison() | c.Like() | c.Regexp() if or_unknown:
            # They are unknown where one of their operands is null.
            sides = (n for n in atom.children if isinstance(n, c.Expression))
            nulls = (c.IsNull(s) for s in sides if not isinstance(s, c.Literal) or s.value is None)
            return reduce(Or, nulls, said)
        case _ if not or_unknown or isinstance(atom, c.IsNull | Constant):
            return said
    other = negated(atom) if wanted else atom
    return c.Comparison(Operator.EQ, c.If(other, c.Literal(0), c.Literal(1)), c.Literal(1))
