"""The properties of first-order formulas that the papers define, each with the part of a formula that lacks it.

Also formulas that have them: disjunctive normal form and safe form (P1 §5.1, Theorem 1, Lemmas 2, B.8–B.12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.condition import And, operands
from cerflow.language.node import Node, fold_only, walk, walk_into
from cerflow.language.printer import show
from cerflow.logic.analysis import first_order
from cerflow.logic.analysis.first_order import Property
from cerflow.logic.analysis.scopes import condition_labels, occurrences, of_operands
from cerflow.logic.conditions.connectives import clauses
from cerflow.theory.rewriting.regular import without_repetitions


@of_formula
def is_locally_parametrized(formula: f.Formula) -> Property:
    """Whether every condition on one variable stands on the assignment of that variable (P1 §5.2)."""
    for current in walk(formula):
        if not isinstance(current, f.Filter):
            continue
        for part in operands(current.condition, And):
            names = condition_labels(part).keys()
            stands_on_it = isinstance(current.operand, f.As) and names <= {current.operand.label}
            if not stands_on_it and all(len(condition_labels(atom)) <= 1 for c in clauses(part) for atom in c):
                return Property(False, current, f"{show(part)} is not on the assignment of its variable")
    return Property()


@of_formula
def is_bounded(formula: f.Formula) -> Property:
    """Whether a CEPL formula is bounded (003 Definition 3), so that registers for one event each suffice.

    It is well-formed, filters read only variables that their own operand binds, and the sides of ``;`` mention
    different variables.
    """
    found = first_order.is_well_formed(formula, strict=False)
    if not found:
        return found
    places = occurrences(formula)

    def names(_: int, current: f.Formula, below: Sequence[frozenset[str]]) -> frozenset[str]:
        own = {current.label} if isinstance(current, f.As) else first_order.condition_variables(current)
        return frozenset(own).union(*below)

    #: var(φ), the variables that are mentioned.
    mentioned = of_operands(places, names)
    for current, parts in places.values():
        match current:
            case f.Filter():
                bound = first_order.bound_variables(current.operand)
                for name in sorted(first_order.condition_variables(current) - bound):
                    return Property(False, current, f"the filtered formula does not bind '{name}'")
            case f.Sequence():
                left, right = (mentioned[k] for k in parts)
                for name in sorted(left & right):
                    return Property(False, current, f"both sides of ; mention '{name}'")
            case f.EventType() | f.As() | f.Disjunction() | f.Iteration():
                pass
            case _:
                return Property(False, current, f"CEPL has no {type(current).__name__}")
    return Property()


#: Disjuncts without OR outside iterations, each with its vdef+.
_Disjuncts = list[tuple[f.Formula, frozenset[str]]]


@of_formula
def disjunctive_normal_form(formula: f.Formula) -> f.Formula:
    """An equivalent formula φ1 OR … OR φn in which every OR of the φi is inside a ``+``, and so on within that.

    May be exponentially larger. OR stays inside NEXT, LAST and MAX, which compare the matches of all branches.
    """
    disjuncts = _disjuncts(without_repetitions(formula), prune=False)
    return reduce(f.Disjunction, (one for one, _ in disjuncts))


@of_formula
def safe_form(formula: f.Formula) -> f.Formula | None:
    """An equivalent safe formula, or None if the formula cannot match.

    A variable that is defined on both sides of ``;`` would be two events at once, so such disjuncts are left out of
    the disjunctive normal form, innermost iterations first. The formula must be well-formed (strictly, erratum E9).
    Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` where a strategy stands around an OR
    that would have to be taken apart.
    """
    first_order.check_first_order(formula)
    disjuncts = _disjuncts(formula, prune=True)
    return reduce(f.Disjunction, (one for one, _ in disjuncts)) if disjuncts else None


def _disjuncts(formula: f.Formula, *, prune: bool) -> _Disjuncts:
    def visit(_: int, current: f.Formula, parts: list[_Disjuncts]) -> _Disjuncts:
        match current:
            case f.Disjunction():
                return parts[0] + parts[1]
            case f.Sequence():
                return _sequences(current, parts[0], parts[1], prune)
            case f.Filter() | f.Within() | f.Selection(f.Strategy.STRICT):
                return [(replace(current, operand=one), names) for one, names in parts[0]]
            case f.Iteration() | f.Selection():
                if not parts[0]:
                    return []
                whole = replace(current, operand=reduce(f.Disjunction, (one for one, _ in parts[0])))
                defined = [] if isinstance(current, f.Iteration) else [names for _, names in parts[0]]
                return [(whole, frozenset[str]().union(*defined))]
        return [(current, first_order.defined_variables(current, outside_iterations=True))]

    return fold_only(formula, f.Formula, visit)


def _sequences(current: f.Sequence, left: _Disjuncts, right: _Disjuncts, prune: bool) -> _Disjuncts:
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
            found.append((f.Sequence(first, second, span=current.span), names1 | names2))
    return found


def _has_choice(formula: f.Formula) -> bool:
    """Whether there is an OR inside NEXT, LAST or MAX but not inside an iteration."""

    def outside_iterations(root: Node) -> Iterator[Node]:
        return walk_into(root, lambda current: not isinstance(current, f.Iteration))

    strategies = (n for n in outside_iterations(formula) if isinstance(n, f.Selection))
    return any(isinstance(n, f.Disjunction) for strategy in strategies for n in outside_iterations(strategy))
