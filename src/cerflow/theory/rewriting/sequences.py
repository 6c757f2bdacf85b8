"""``:`` and ``:+`` by STRICT, and STRICT by these (P2 Theorem 6.5, Propositions 6.3 and 6.4, Appendices C.2 to C.4).

For that formulas are taken apart at their first or last block of adjacent events (Appendix C.4.1). A formula is the OR
of its *pieces*: a block whose events are adjacent, and steps that put the rest of the formula around it, the innermost
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import And, Condition, Or
from cerflow.language.node import Node, walk, walk_into, with_children
from cerflow.language.printer import show
from cerflow.logic.analysis.scopes import condition_labels, handed_down, labels_of, occurrences, resolve
from cerflow.logic.conditions.connectives import clauses
from cerflow.logic.rewriting.rebuild import FreshNames, check_tree_size, mentions_set, size, transformed
from cerflow.theory.rewriting.filters import push_down_filters
from cerflow.theory.rewriting.labels import outer_labels, push_down_labels, with_labels_replaced
from cerflow.theory.rewriting.regular import Paths, paths_through, without_repetitions

#: Matches with a gap: the blocks before and after it, and what is in the gap.
_Gaps = dict[tuple[f.Formula, f.Formula], Paths]


@of_formula
def sequences_to_strict(formula: f.Formula) -> f.Formula:
    """The same complex events without ``:``, by STRICT around the events that must be adjacent (Theorem 6.5).

    Holds for conditions of any kind. Each side of ``:`` is taken apart at the event next to it; a condition on a side
    comes to stand around more than that, so labels that both sides give are distinguished by new names, which are
    changed back around it. Choices (OR) on both sides are multiplied with one another.

    Raises `UnsupportedQueryError` for ``:+``, for operators next to ``:`` that cannot be taken apart (PROJECT, AND,
    ALL, UNLESS, WITHOUT, NEXT, LAST, MAX, WITHIN), and for a result that would be too large.
    """
    formula = without_repetitions(formula)
    for current in walk(formula):
        if isinstance(current, f.StrictIteration):
            raise UnsupportedQueryError(
                "':+' cannot be written with STRICT in general",
                span=current.span,
                hint="If every condition in it is on one label, eliminate_strict_iteration does it.",
            )
    if not any(isinstance(n, f.StrictSequence) for n in walk(formula)):
        return formula
    prepared = push_down_labels(formula)
    return _joined_everywhere(prepared, _read_from_outside(prepared))


def _read_from_outside(formula: f.Formula) -> frozenset[str]:
    """The labels that some condition reads although they are bound outside of its operand."""
    outer = outer_labels(formula)
    found = frozenset[str]().union(*(names for _, names in outer))
    hidden = found.intersection(n.old for n in walk(formula) if isinstance(n, f.Rename))
    if hidden or (found and any(isinstance(n, f.Project) for n in walk(formula))):
        place, names = next((p, n) for p, n in outer if n & (hidden or found))
        raise UnsupportedQueryError(
            f"a condition reads '{min(names)}', which is bound outside of the filtered formula, and labels are renamed "
            "or projected away",
            span=place.span,
            hint="Put the condition around a formula that contains all labels that it reads.",
        )
    return found


def _joined_everywhere(formula: f.Formula, outer: frozenset[str]) -> f.Formula:
    _refuse_projection(formula)
    fresh = FreshNames(formula)

    def change(_: int, current: Node) -> Node:
        match current:
            case f.StrictSequence():
                return _joined_strictly(current, fresh, outer)
            case f.StrictIteration():
                return _iterated(current.operand)
        return current

    return transformed(formula, change)


def _refuse_projection(formula: f.Formula) -> None:
    """Refuse PROJECT in ``:`` and ``:+``: an event that it leaves out may lie between the others."""
    for _, current in _inside(formula, f.StrictSequence, f.StrictIteration):
        if isinstance(current, f.Project):
            raise UnsupportedQueryError(
                "PROJECT is next to ':' or in ':+'; events that are left out may come between the others",
                span=current.span,
                hint="Put PROJECT around the whole.",
            )


def _inside(formula: f.Formula, *kinds: type[f.Formula]) -> Iterator[tuple[int, f.Formula]]:
    """The formulas within those of some kind, with their occurrences."""
    inside = handed_down(formula, False, lambda _, current, here: here or isinstance(current, kinds), first_only=())
    yield from ((k, place.formula) for k, place in reversed(occurrences(formula).items()) if inside[k])


@of_formula
def eliminate_strict_iteration(formula: f.Formula) -> f.Formula:
    """The same complex events without ``:+`` and ``:``, by STRICT (Proposition 6.3).

    In a ``:+`` every condition must be on one label: conditions are pushed down to the events first (P2 A.1), so that
    what is left is a regular expression with gaps between adjacent events; it is brought into a form in which gaps
    stand between blocks of adjacent events only. That may make it exponentially larger.

    Raises `UnsupportedQueryError` as `push_down_filters` does for what stands in ``:+``, and as `sequences_to_strict`
    does.
    """
    formula = without_repetitions(formula)
    _check_iterations(formula)
    inner = {index for index, _ in _inside(formula, f.StrictIteration)}

    def change(index: int, current: Node) -> Node:
        if not isinstance(current, f.StrictIteration) or index in inner:
            return current
        return _joined_everywhere(push_down_filters(current), frozenset())

    return sequences_to_strict(transformed(formula, change))


def _check_iterations(formula: f.Formula) -> None:
    _refuse_projection(formula)
    outer = resolve(formula).outer
    for index, current in _inside(formula, f.StrictIteration):
        if outer.get(index):
            raise UnsupportedQueryError(
                f"a condition in ':+' reads '{min(outer[index])}', which is bound outside of the filtered formula",
                span=current.span,
                hint="In ':+' only conditions on one label, given by the filtered formula, can be rewritten.",
            )
        if isinstance(current, f.Start):
            raise UnsupportedQueryError(
                "START is in ':+', where it holds for all repetitions but the first",
                span=current.span,
                hint="Put START around the whole.",
            )


def _iterated(formula: f.Formula) -> f.Formula:
    """``formula :+``, where FILTER, AS and renaming stand on single events.

    With b the matches without a gap and pᵢ # mᵢ # sᵢ those with gaps, these are the repetitions of b, and the paths
    from a pᵢ to an sⱼ on which sᵢ b* pⱼ are adjacent.
    """
    block, gaps = _with_and_without_gaps(formula)
    some = Paths(block).repeated()

    def adjacent(*parts: Paths) -> Paths:
        whole = reduce(Paths.then, parts).formula
        return Paths(whole and _adjacent(whole))

    start, end = ("start", 0), ("end", 0)
    edges: list[tuple[tuple[str, int], tuple[str, int], Paths]] = []
    for k, ((first, last), middle) in enumerate(gaps.items()):
        edges += [
            (start, ("in", k), adjacent(some, Paths(first))),
            (("in", k), ("out", k), middle),
            (("out", k), end, adjacent(Paths(last), some)),
            *((("out", k), ("in", n), adjacent(Paths(last), some, Paths(other))) for n, (other, _) in enumerate(gaps)),
        ]
    inner = [(side, k) for k in range(len(gaps)) for side in ("in", "out")]
    with_gaps = paths_through(edges, inner, span=formula.span).get((start, end), Paths())
    found = adjacent(some).or_(with_gaps).formula
    assert found is not None
    return found


def _with_and_without_gaps(formula: f.Formula) -> tuple[f.Formula | None, _Gaps]:
    """The block that has the matches without a gap, None if there are none, and the matches with gaps."""
    blocks: list[f.Formula] = []
    gaps: _Gaps = {}

    def gap(left: f.Formula, middle: Paths, right: f.Formula) -> None:
        for begin in _pieces(left, first=True):
            for end in _pieces(right, first=False):
                paths = begin.rest().then(middle).then(end.rest())
                gaps[begin.block, end.block] = gaps.get((begin.block, end.block), Paths()).or_(paths)

    for current in walk_into(formula, lambda current: isinstance(current, f.Disjunction | f.Iteration)):
        match current:
            case f.Sequence():
                gap(current.left, Paths(empty=True), current.right)
            case f.Iteration():
                gap(current.operand, Paths(current).or_(Paths(empty=True)), current.operand)
            case f.Formula() if not isinstance(current, f.Disjunction):
                # One event, or STRICT.
                blocks += [piece.block for piece in _pieces(current, first=True)]
    return reduce(f.Disjunction, blocks) if blocks else None, gaps


@of_formula
def strict_to_sequences(formula: f.Formula) -> f.Formula:
    """The same complex events without STRICT: within it, ``;`` becomes ``:`` and ``+`` becomes ``:+``.

    Holds for conditions of any kind, and makes nothing larger. Raises `UnsupportedQueryError` for STRICT around
    PROJECT, whose events may lie between those that are left, around ALL, which may join two halves to an interval,
    and around NEXT, LAST and MAX, which choose before STRICT does.
    """
    formula = without_repetitions(formula)

    def enter(_: int, current: f.Formula, here: bool) -> bool:
        if isinstance(current, f.Selection) and current.strategy is f.Strategy.STRICT:
            return True
        if here and isinstance(current, f.Project | f.All | f.Selection):
            name = current.strategy if isinstance(current, f.Selection) else type(current).__name__.upper()
            raise UnsupportedQueryError(
                f"STRICT is around {name}, and no other operator says that its events are an interval",
                span=current.span,
                hint="Put STRICT on the formulas inside if that is what is meant.",
            )
        return here

    # Whether the formula at an occurrence must match an interval.
    strict = handed_down(formula, False, enter)

    def change(index: int, current: Node) -> Node:
        match current:
            case f.Selection(strategy=f.Strategy.STRICT):
                return current.operand
            case f.Sequence() if strict[index]:
                return f.StrictSequence(current.left, current.right, span=current.span)
            case f.Iteration() if strict[index]:
                return f.StrictIteration(current.operand, span=current.span)
        return current

    return transformed(formula, change)


#: An operator around a piece, which takes the place of its first or its last operand.
_Step = f.Sequence | f.Filter | f.Rename | f.Start


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
class _BlockEnd:
    """The first or the last block of adjacent events of a formula, and the steps around it."""

    block: f.Formula
    steps: tuple[_Step, ...]
    first: bool

    def __call__(self, inner: f.Formula) -> f.Formula:
        """The piece with something else instead of its block."""
        return reduce(self._around, self.steps, inner)

    def _around(self, inner: f.Formula, step: _Step) -> f.Formula:
        if isinstance(step, f.Sequence):
            return with_children(step, (inner, step.right) if self.first else (step.left, inner))
        if not isinstance(step, f.Filter):
            return with_children(step, (inner,))
        condition, labels = step.condition, labels_of(inner)
        # A piece of the filtered formula need not give the labels that the formula gives.
        own = labels_of(step.operand).assigned.intersection(condition_labels(condition))
        missing = frozenset() if labels.wildcard else own - labels.assigned
        left = _without_labels(condition, missing) if missing else condition
        return inner if left is None else f.Filter(inner, left)

    def rest(self) -> Paths:
        """What stands before or after the block, perhaps nothing; not inside START, FILTER or a renaming."""
        found: f.Formula | None = None
        for step in self.steps:
            assert isinstance(step, f.Sequence)
            found = (step.right if self.first else step.left) if found is None else self._around(found, step)
        return Paths(empty=True) if found is None else Paths(found)

    def names(self) -> set[str]:
        """The labels that would get another meaning in a formula that replaces the block."""
        read = (condition_labels(step.condition) for step in self.steps if isinstance(step, f.Filter))
        return {step.old for step in self.steps if isinstance(step, f.Rename)}.union(*read)


def _adjacent(*blocks: f.Formula) -> f.Formula:
    """The blocks next to each other, one after the other."""
    whole = reduce(f.Sequence, blocks)
    return whole if _is_event(whole) else f.Selection(f.Strategy.STRICT, whole)


def _is_event(formula: f.Formula) -> bool:
    while isinstance(formula, f.As | f.Rename | f.Filter):
        formula = formula.operand
    return isinstance(formula, f.SingleEvent)


def _pieces(formula: f.Formula, *, first: bool) -> list[_BlockEnd]:
    """The pieces of a formula without ``:`` and ``:+`` by its first or its last block.

    Raises `UnsupportedQueryError` for operators that cannot be taken apart.
    """
    # Blocks with the same steps around them are one; the steps around a choice are the same for all of its branches.
    blocks: dict[int, tuple[tuple[_Step, ...], list[f.Formula]]] = {}
    pending: list[tuple[f.Formula, tuple[_Step, ...]]] = [(formula, ())]
    while pending:
        current, steps = pending.pop()
        match current:
            case _ if _is_event(current):
                blocks.setdefault(id(steps), (steps, []))[1].append(current)
            case f.Selection(strategy=f.Strategy.STRICT):
                blocks.setdefault(id(steps), (steps, []))[1].append(current.operand)
            case f.Disjunction():
                pending += [(current.right, steps), (current.left, steps)]
            case f.Sequence():
                pending.append((current.left if first else current.right, (current, *steps)))
            case f.Iteration():
                more = f.Sequence(current.operand, current) if first else f.Sequence(current, current.operand)
                pending += [(current.operand, (more, *steps)), (current.operand, steps)]
            case f.Rename() | f.Filter():
                pending.append((current.operand, (current, *steps)))
            case f.Start():
                # After ``:`` everything starts where it begins.
                pending.append((current.operand, steps if first else (current, *steps)))
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
        own = tuple(takewhile(lambda step: isinstance(step, f.Filter | f.Rename), steps))
        block = reduce(f.Disjunction, alike)
        found.append(_BlockEnd(_BlockEnd(block, own, first)(block), steps[len(own) :], first))
    return found


def _joined_strictly(joined: f.StrictSequence, fresh: FreshNames, outer: frozenset[str]) -> f.Formula:
    """``left : right`` with STRICT instead of ``:``, for operands without ``:`` and ``:+``.

    ``fresh`` gives names that are new to the whole formula; ``outer`` are labels that some condition of it reads
    although they are bound outside of what it filters.
    """
    back: dict[str, str] = {}

    def apart(formula: f.Formula, others: Sequence[_BlockEnd]) -> f.Formula:
        names = set[str]().union(*(piece.names() for piece in others))
        labels = labels_of(formula)
        conflicts = sorted(names if labels.wildcard else names & labels.assigned)
        refused = outer.intersection(conflicts)
        if refused:
            raise UnsupportedQueryError(
                f"label '{min(refused)}' is read outside of the formula that binds it, and given on both sides of ':'",
                span=joined.span,
                hint="Give the labels different names.",
            )
        own = {name: fresh.like(name) for name in conflicts}
        back.update({new: name for name, new in own.items()})
        return with_labels_replaced(formula, own) if own else formula

    left, right = joined.left, joined.right
    first = _pieces(apart(right, _pieces(left, first=False)), first=True)
    last = _pieces(apart(left, first), first=False)
    if len(last) * len(first) > 1:
        check_tree_size(len(last) * len(first) * (size(left) + size(right)), joined.span)
    found = reduce(f.Disjunction, (e(b(_adjacent(e.block, b.block))) for e in last for b in first))
    for new, name in back.items():
        found = f.Rename(found, new, name)
    return found
