"""Copies of trees with other parts, and names that a tree does not use yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any, NoReturn

from cerflow.base import limits
from cerflow.base.errors import Span, UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.condition import Condition, Some, with_labels
from cerflow.language.node import N, Node, rebuild, transform, walk, with_children
from cerflow.language.predicates.registry import is_about_set as is_of_set
from cerflow.logic.analysis.scopes import condition_labels, relation_names
from cerflow.logic.conditions.connectives import conjunction, conjuncts


def transformed(root: N, change: Callable[[int, Node], Node]) -> N:
    """The tree after ``change(occurrence, node)`` on every node, bottom-up.

    Occurrences count as in `walk`; the node handed over has its new children already. The result of ``change`` must be
    of a sort that may stand in its place.
    """
    occurrences = count()
    return rebuild(root, lambda current, below: change(next(occurrences), with_children(current, below)))


def with_conditions(formula: f.Formula, added: Mapping[int, Sequence[Condition]]) -> f.Formula:
    """The formula with more conditions in its filters, by occurrence; itself if there are none."""
    if not any(added.values()):
        return formula

    def change(index: int, current: Node) -> Node:
        more = added.get(index)
        if not isinstance(current, f.Filter) or not more:
            return current
        return replace(current, condition=conjunction([*conjuncts(current.condition), *more]))

    return transformed(formula, change)


def relabelled(root: N, names: Mapping[str, str]) -> N:
    """The condition or expression with other labels."""
    return with_labels(root, lambda label: label if label is None else names.get(label, label))


def with_own_labels(current: Node, new: Callable[[str], str]) -> Node:
    """An operator with other names for the labels that it gives, keeps, compares or reads by itself."""

    def reading(part: N, *own: str) -> N:
        return with_labels(part, lambda label: label if label is None or label in own else new(label))

    def renamed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(renamed, value))
        return new(value) if isinstance(value, str) else reading(value)

    match current:
        case f.Filter(_, condition):
            return replace(current, condition=reading(condition))
        case f.NotEvent(event, Condition() as condition):
            return replace(current, condition=reading(condition, event.name))
        case f.Formula() if current.naming:
            return replace(current, **{field: renamed(getattr(current, field)) for field in current.naming})
    return current


def without_some(condition: Condition) -> Condition:
    """The condition without SOME around its parts: equivalent if labels have one event each, or below NOT."""
    return transform(condition, lambda current: current.condition if isinstance(current, Some) else current)


def mentions_set(condition: Node) -> bool:
    """Whether some part of a condition reads all events of a label together."""
    return any(map(is_of_set, walk(condition)))


def size(tree: Node) -> int:
    """The number of nodes of a tree."""
    return sum(1 for _ in walk(tree))


def check_tree_size(nodes: int, span: Span | None) -> None:
    """Raise `UnsupportedQueryError` if a rewriting would give more nodes than `limits.REWRITTEN_NODES`."""
    if nodes > limits.REWRITTEN_NODES:
        raise UnsupportedQueryError(
            f"rewritten like this, the formula would have more than {limits.REWRITTEN_NODES} parts",
            span=span,
            hint="The rewriting multiplies choices (OR) with one another; rewrite smaller formulas one by one.",
        )


def one_event(formula: f.Formula) -> bool:
    """Whether each match is its last event alone."""
    while isinstance(formula, f.As | f.Filter | f.Selection):
        formula = formula.operand
    return isinstance(formula, f.SingleEvent)


def refuse_later_choices(formula: f.Formula) -> None:
    """Raise `UnsupportedQueryError` for NEXT, LAST and MAX after other events: the readings compare other matches.

    P1 §4 compares a match with all of the operand in the whole stream that end at the same event. Where the operand
    begins with the formula, these are its matches there.
    """
    pending: list[tuple[f.Formula, bool]] = [(formula, True)]
    while pending:
        current, first = pending.pop()
        compares = isinstance(current, f.Selection) and current.strategy.compares and not one_event(current.operand)
        if isinstance(current, f.Selection) and compares and not first:
            raise UnsupportedQueryError(
                f"in the first-order reading {current.strategy} compares with all matches in the whole stream that end "
                "at the same event (P1 §4), in the second-order reading with those after the events in front of it",
                span=current.span,
                hint=f"Put {current.strategy} around the whole formula. In Python, runner='semantics' does it here.",
            )
        below = [child for child in current.children if isinstance(child, f.Formula)]
        first = first and not isinstance(current, f.Iteration)
        pending += [(child, first and not (k and isinstance(current, f.Sequence))) for k, child in enumerate(below)]


def refuse_to_pass(strategy: f.Selection, what: str = "a condition", place: Node | None = None) -> NoReturn:
    """Raise `UnsupportedQueryError` for a condition that would be moved out of NEXT, LAST, MAX or ANY, or into it."""
    raise UnsupportedQueryError(
        f"{what} would have to pass {strategy.strategy}, which compares the matches that satisfy it with the others",
        span=(place.span if place is not None else None) or strategy.span,
        hint=f"Put the FILTER on the formula inside {strategy.strategy} if that is what is meant.",
    )


def refuse_any(current: Node) -> None:
    """Raise `UnsupportedQueryError` for ANY and BY, which choose other matches in the other reading."""
    if isinstance(current, f.Selection) and (current.strategy is f.Strategy.ANY or current.by):
        name = f"{current.strategy} BY" if current.by else "ANY"
        raise UnsupportedQueryError(
            f"{name} chooses a match by its labels, which are not the same in the first-order and the second-order "
            "reading",
            span=current.span,
            hint="NEXT, LAST and MAX without BY choose by the events alone.",
        )


def names_of(tree: Node) -> set[str]:
    """The labels, variables and event types that are mentioned anywhere in a tree."""
    found = set(condition_labels(tree))
    for current in walk(tree):
        if isinstance(current, f.Formula):
            found.update(current.names, (current.name,) if isinstance(current, f.EventType) else ())
    return found


@lru_cache(maxsize=64)
def labels_beside_types(tree: Node) -> frozenset[str]:
    """The labels, not named as types, that EVENT gives to an event whose type has such a name, too.

    Where no event has such a type, EVENT is one step of the automaton. A label that every EVENT has by AS is none.
    """
    nodes = [*walk(tree)]
    reading = sum(isinstance(node, f.OfAnyType) for node in nodes)
    named = Counter(node.label for node in nodes if isinstance(node, f.As) and isinstance(node.operand, f.OfAnyType))
    always = {label for label, times in named.items() if times == reading}
    return frozenset(names_of(tree) - relation_names(tree) - always) if reading else frozenset()


class FreshNames:
    """Hands out names that are neither taken nor handed out before."""

    def __init__(self, *trees: Node, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken).union(*map(names_of, trees))

    def like(self, name: str) -> str:
        """A new name that shows where it comes from: ``x'1``, ``x'2``, …"""
        base = name.split("'")[0] or "x"
        new = next(found for k in count(1) if (found := f"{base}'{k}") not in self._taken)
        self._taken.add(new)
        return new
