"""Disjunctive normal form and safe form of first-order formulas (P1 §5.1, Theorem 1, Lemmas 2, B.8–B.12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.builder.given import of_formula
from cerflow.language.formula import Disjunction, Filter, Formula, Iteration, Selection, Strategy, Within
from cerflow.language.formula import Sequence as SequenceFormula
from cerflow.language.node import Node, fold, fold_only, walk, with_children
from cerflow.logic.analysis.first_order import check_first_order, defined_outside_iterations
from cerflow.theory.rewriting.repetitions import without_repetitions

#: Disjuncts without OR outside iterations, each with its vdef+.
_Disjuncts = list[tuple[Formula, frozenset[str]]]


@of_formula
def to_disjunctive_normal_form(formula: Formula) -> Formula:
    """An equivalent formula φ1 OR … OR φn in which every OR of the φi is inside a ``+``, and so on within that.

    May be exponentially larger. OR stays inside NEXT, LAST and MAX, which compare the matches of all branches.
    """
    disjuncts = _disjuncts(without_repetitions(formula), prune=False)
    return _either(f for f, _ in disjuncts)


@of_formula
def to_safe(formula: Formula) -> Formula | None:
    """An equivalent safe formula, or None if the formula cannot match.

    A variable that is defined on both sides of ``;`` would be two events at once, so such disjuncts are left out of
    the disjunctive normal form, innermost iterations first. The formula must be well-formed (strictly, erratum E9).
    Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` where a strategy stands around an OR
    that would have to be taken apart.
    """
    check_first_order(formula)
    disjuncts = _disjuncts(formula, prune=True)
    return _either(f for f, _ in disjuncts) if disjuncts else None


def _either(formulas: Iterable[Formula]) -> Formula:
    return reduce(Disjunction, formulas)


def _disjuncts(formula: Formula, *, prune: bool) -> _Disjuncts:
    def visit(_: int, current: Formula, parts: list[_Disjuncts]) -> _Disjuncts:
        match current:
            case Disjunction():
                return parts[0] + parts[1]
            case SequenceFormula():
                return _sequences(current, parts[0], parts[1], prune)
            case Iteration():
                return (
                    [(Iteration(_either(f for f, _ in parts[0]), span=current.span), frozenset())] if parts[0] else []
                )
            case Selection() if current.strategy is not Strategy.STRICT:
                if not parts[0]:
                    return []
                inner = _either(f for f, _ in parts[0])
                defined = frozenset[str]().union(*(names for _, names in parts[0]))
                return [(Selection(current.strategy, inner, current.by, span=current.span), defined)]
            case Filter() | Selection() | Within():
                rest = current.children[1:]
                return [(with_children(current, (f, *rest)), names) for f, names in parts[0]]
        return [(current, defined_outside_iterations(current))]

    return fold_only(formula, Formula, visit)


def _sequences(current: SequenceFormula, left: _Disjuncts, right: _Disjuncts, prune: bool) -> _Disjuncts:
    found: _Disjuncts = []
    for first, names1 in left:
        for second, names2 in right:
            if prune and names1 & names2:
                if _has_choice(first) or _has_choice(second):
                    raise UnsupportedQueryError(
                        f"variable '{min(names1 & names2)}' is bound twice along a sequence, and a strategy is "
                        "around the OR in which it is bound",
                        span=current.span,
                        hint="Give the variables of the branches different names.",
                    )
                continue
            found.append((SequenceFormula(first, second, span=current.span), names1 | names2))
    return found


def _has_choice(formula: Formula) -> bool:
    """Whether there is an OR inside NEXT, LAST or MAX but not inside an iteration there."""

    def visit(current: Node, below: Sequence[tuple[bool, bool]]) -> tuple[bool, bool]:
        # Whether there is an OR outside iterations, and whether one is inside a strategy.
        choice = any(c for c, _ in below) or isinstance(current, Disjunction)
        inside = any(i for _, i in below)
        if isinstance(current, Iteration):
            return False, False
        if isinstance(current, Selection):
            return choice, inside or choice
        return choice, inside

    return fold(formula, visit)[1] if any(isinstance(n, Selection) for n in walk(formula)) else False
