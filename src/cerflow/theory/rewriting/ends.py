"""Formulas taken apart at their first or last block of adjacent events (P2 Appendix C.4.1).

A formula is the OR of its *pieces*: a block whose events are adjacent, and steps that put the rest of the
formula around it, the innermost first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile

from cerflow.base.errors import Span, UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.condition import And, Condition, Or
from cerflow.language.node import with_children
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels, labels_of
from cerflow.logic.conditions.connectives import clauses
from cerflow.logic.rewriting.rebuild import FreshNames, check_tree_size, mentions_set, size
from cerflow.theory.rewriting.labels import with_labels_replaced


@dataclass(frozen=True)
class _Around:
    """An operator around a piece, which takes the place of one of its operands."""

    operator: f.Sequence | f.Filter | f.Rename | f.Start
    place: int = 0

    def around(self, inner: f.Formula) -> f.Formula:
        if isinstance(self.operator, f.Filter):
            condition, labels = self.operator.condition, labels_of(inner)
            # A piece of the filtered formula need not give the labels that the formula gives.
            own = labels_of(self.operator.operand).assigned.intersection(condition_labels(condition))
            missing = frozenset() if labels.wildcard else own - labels.assigned
            left = _without_labels(condition, missing) if missing else condition
            return inner if left is None else f.Filter(inner, left)
        before, after = self.operator.children[: self.place], self.operator.children[self.place + 1 :]
        return with_children(self.operator, (*before, inner, *after))


def _without_labels(condition: Condition, missing: frozenset[str]) -> Condition | None:
    """The condition where no event has some labels: atoms on them hold; None if nothing is left of it."""
    kept: list[Condition] = []
    for clause in clauses(condition):
        idle = [atom for atom in clause if missing.intersection(condition_labels(atom))]
        if any(map(mentions_set, idle)):
            raise UnsupportedQueryError(
                f"{show(condition)} reads a set of events that a branch of OR next to ':' does not have",
                span=condition.span,
                hint="Put the condition on the branch of OR that has them.",
            )
        if not idle:
            kept.append(reduce(Or, clause))
    return reduce(And, kept) if kept else None


@dataclass(frozen=True)
class BlockEnd:
    """A block of adjacent events, and the steps around it."""

    block: f.Formula
    steps: tuple[_Around, ...] = ()

    def __call__(self, inner: f.Formula) -> f.Formula:
        """The piece with something else instead of its block."""
        return reduce(lambda found, step: step.around(found), self.steps, inner)

    def rest(self) -> f.Formula | None:
        """The formula before or after the block, None if there is none.

        It must not stand inside START, FILTER or a renaming.
        """
        found: f.Formula | None = None
        for step in self.steps:
            assert isinstance(step.operator, f.Sequence)
            found = (step.operator.right, step.operator.left)[step.place] if found is None else step.around(found)
        return found

    def names(self) -> set[str]:
        """The labels that would get another meaning in a formula that replaces the block."""
        found: set[str] = set()
        for step in self.steps:
            if isinstance(step.operator, f.Filter):
                found.update(condition_labels(step.operator.condition))
            elif isinstance(step.operator, f.Rename):
                found.add(step.operator.old)
        return found


def adjacent(*blocks: f.Formula) -> f.Formula:
    """The blocks next to each other, one after the other."""
    whole = reduce(f.Sequence, blocks)
    return whole if _is_event(whole) else f.Selection(f.Strategy.STRICT, whole)


def _is_event(formula: f.Formula) -> bool:
    while isinstance(formula, f.As | f.Rename | f.Filter):
        formula = formula.operand
    return isinstance(formula, f.SingleEvent)


def pieces(formula: f.Formula, *, first: bool) -> list[BlockEnd]:
    """The pieces of a formula without ``:`` and ``:+`` by its first or its last block.

    Raises `UnsupportedQueryError` for operators that cannot be taken apart.
    """
    # Blocks with the same steps around them are one; the steps around a choice are the same for all of its branches.
    blocks: dict[int, tuple[tuple[_Around, ...], list[f.Formula]]] = {}
    pending: list[tuple[f.Formula, tuple[_Around, ...]]] = [(formula, ())]
    while pending:
        current, steps = pending.pop()
        if _is_event(current):
            blocks.setdefault(id(steps), (steps, []))[1].append(current)
            continue
        match current:
            case f.Selection(strategy=f.Strategy.STRICT):
                blocks.setdefault(id(steps), (steps, []))[1].append(current.operand)
            case f.Disjunction():
                pending += [(current.right, steps), (current.left, steps)]
            case f.Sequence():
                end = current.left if first else current.right
                pending.append((end, (_Around(current, 0 if first else 1), *steps)))
            case f.Iteration():
                more = f.Sequence(current.operand, current) if first else f.Sequence(current, current.operand)
                pending += [(current.operand, (_Around(more, 0 if first else 1), *steps)), (current.operand, steps)]
            case f.Rename() | f.Filter():
                pending.append((current.operand, (_Around(current), *steps)))
            case f.Start():
                # After ``:`` everything starts where it begins.
                pending.append((current.operand, steps if first else (_Around(current), *steps)))
            case _:
                place = "first" if first else "last"
                name = current.strategy if isinstance(current, f.Selection) else type(current).__name__
                raise UnsupportedQueryError(
                    f"{name} is next to ':', and cannot be taken apart at its {place} event",
                    span=current.span or formula.span,
                    hint="Event types, FILTER, OR, ;, +, START and STRICT can.",
                )
    found = []
    for steps, alike in blocks.values():
        # Conditions and renamings next to the block read it alone.
        own = list(takewhile(lambda step: isinstance(step.operator, f.Filter | f.Rename), steps))
        block = reduce(lambda inner, step: step.around(inner), own, reduce(f.Disjunction, alike))
        found.append(BlockEnd(block, steps[len(own) :]))
    return found


def joined_strictly(
    left: f.Formula, right: f.Formula, fresh: FreshNames, outer: frozenset[str], span: Span | None
) -> f.Formula:
    """``left : right`` with STRICT instead of ``:``, for operands without ``:`` and ``:+``.

    ``fresh`` gives names that are new to the whole formula; ``outer`` are labels that some condition of it reads
    although they are bound outside of what it filters.
    """
    back: dict[str, str] = {}

    def apart(formula: f.Formula, others: Sequence[BlockEnd]) -> f.Formula:
        names = set[str]().union(*(piece.names() for piece in others))
        if not names:
            return formula
        labels = labels_of(formula)
        conflicts = sorted(names if labels.wildcard else names & labels.assigned)
        refused = outer.intersection(conflicts)
        if refused:
            raise UnsupportedQueryError(
                f"label '{min(refused)}' is read outside of the formula that binds it, and given on both sides of ':'",
                span=span,
                hint="Give the labels different names.",
            )
        own = {name: fresh.like(name) for name in conflicts}
        back.update({new: name for name, new in own.items()})
        return with_labels_replaced(formula, own)

    first = pieces(apart(right, pieces(left, first=False)), first=True)
    last = pieces(apart(left, first), first=False)
    if len(last) * len(first) > 1:
        check_tree_size(len(last) * len(first) * (size(left) + size(right)), span)
    found = reduce(f.Disjunction, (e(b(adjacent(e.block, b.block))) for e in last for b in first))
    for new, name in back.items():
        found = f.Rename(found, new, name)
    return found
