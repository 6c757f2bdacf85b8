"""Locally parametrized normal form of first-order formulas (P1 §5.2, Theorem 2, Appendix B.2)."""

from __future__ import annotations

from cerflow.analysis.first_order import check_first_order, is_safe
from cerflow.analysis.scopes import condition_labels
from cerflow.conditions.clauses import clauses
from cerflow.language.condition import And, operands
from cerflow.language.formula import As, Filter, Formula
from cerflow.language.node import walk
from cerflow.rewriting.first_order.safe import to_safe
from cerflow.rewriting.first_order.waiting import Bringing

__all__ = ["is_locally_parametrized", "lp_normal_form"]


def lp_normal_form(formula: Formula) -> Formula | None:
    """An equivalent first-order formula in which conditions on one variable stand on the ``R AS x`` of that variable.

    Conditions on several variables stay where they are. A condition whose variable is bound in what it filters is
    simply pushed down (P1 §8.1); one that speaks of a variable bound further out is popped up first, and only where
    it stands in a branch of OR does that make the formula larger, exponentially at worst. None if the formula cannot
    match; it is made safe where it is not.

    Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` where a condition would have to pass
    NEXT, LAST or MAX, where `to_safe` does, and where the result would be too large.
    """
    check_first_order(formula)
    safe = formula if is_safe(formula) else to_safe(formula)
    return None if safe is None else Bringing(safe, relate=False).run()


def is_locally_parametrized(formula: Formula) -> bool:
    """Whether every condition on one variable stands on the assignment of that variable (P1 §5.2)."""
    return all(
        isinstance(current.operand, As) and condition_labels(part).keys() <= {current.operand.label}
        for current in walk(formula)
        if isinstance(current, Filter)
        for part in operands(current.condition, And)
        if all(len(condition_labels(atom)) <= 1 for clause in clauses(part) for atom in clause)
    )
