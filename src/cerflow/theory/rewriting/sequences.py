"""``:`` and ``:+`` by STRICT, and STRICT by these (P2 Theorem 6.5, Propositions 6.3 and 6.4, Appendices C.2 to C.4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.node import Node, walk
from cerflow.logic.analysis.scopes import handed_down, occurrences, resolve
from cerflow.logic.rewriting.rebuild import FreshNames, transformed
from cerflow.theory.rewriting.ends import adjacent, joined_strictly, pieces
from cerflow.theory.rewriting.filters import push_down_filters
from cerflow.theory.rewriting.labels import outer_labels, push_down_labels
from cerflow.theory.rewriting.paths import Paths, paths_through
from cerflow.theory.rewriting.repetitions import without_repetitions

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
    found = frozenset(name for _, names in outer for name in names)
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
                return joined_strictly(current.left, current.right, fresh, outer, current.span)
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
    repeated = Paths() if block is None else Paths.of(block)
    some = repeated.repeated()
    edges: dict[tuple[tuple[str, int], tuple[str, int]], Paths] = {}
    inner: list[tuple[str, int]] = []
    start, end = ("start", 0), ("end", 0)

    def blocks(paths: Paths) -> Paths:
        assert paths.formula is not None
        return Paths.of(adjacent(paths.formula))

    for k, ((first, last), middle) in enumerate(gaps.items()):
        inner += [("in", k), ("out", k)]
        edges[start, ("in", k)] = blocks(some.then(Paths.of(first)))
        edges[("in", k), ("out", k)] = middle
        edges[("out", k), end] = blocks(Paths.of(last).then(some))
        for n, (following, _) in enumerate(gaps):
            between = Paths.of(last).then(some).then(Paths.of(following))
            edges[("out", k), ("in", n)] = blocks(between)
    paths = paths_through(edges, inner, span=formula.span).get((start, end), Paths())
    if some.formula is not None:
        paths = Paths.of(adjacent(some.formula)).or_(paths)
    found = paths.formula
    assert found is not None
    return found


def _with_and_without_gaps(formula: f.Formula) -> tuple[f.Formula | None, _Gaps]:
    """The block that has the matches without a gap, None if there are none, and the matches with gaps."""
    blocks: list[f.Formula] = []
    gaps: _Gaps = {}

    def gap(left: f.Formula, middle: Paths, right: f.Formula) -> None:
        for begin in pieces(left, first=True):
            for end in pieces(right, first=False):
                paths = _optional(begin.rest()).then(middle).then(_optional(end.rest()))
                gaps[begin.block, end.block] = gaps.get((begin.block, end.block), Paths()).or_(paths)

    pending = [formula]
    while pending:
        current = pending.pop()
        match current:
            case f.Disjunction():
                pending += [current.right, current.left]
            case f.Sequence():
                gap(current.left, Paths(empty=True), current.right)
            case f.Iteration():
                pending.append(current.operand)
                gap(current.operand, Paths.of(current).or_(Paths(empty=True)), current.operand)
            case _:
                # One event, or STRICT.
                blocks += [piece.block for piece in pieces(current, first=True)]
    return reduce(f.Disjunction, blocks) if blocks else None, gaps


def _optional(rest: f.Formula | None) -> Paths:
    return Paths(empty=True) if rest is None else Paths.of(rest)


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
