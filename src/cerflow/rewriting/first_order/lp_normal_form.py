"""Locally parametrized normal form of first-order formulas (P1 §5.2, Theorem 2, Appendix B.2)."""

from __future__ import annotations

from cerflow.analysis.first_order import check_first_order, is_safe
from cerflow.language.builder.given import of_formula
from cerflow.language.formula import Formula
from cerflow.rewriting.first_order.safe import to_safe
from cerflow.rewriting.first_order.waiting import Bringing


@of_formula
def lp_normal_form(formula: Formula) -> Formula | None:
    """An equivalent first-order formula in which conditions on one variable stand on the ``R AS x`` of that variable.

    Conditions on several variables stay where they are. A condition whose variable is bound in what it filters is
    simply pushed down (P1 §8.1); one that speaks of a variable bound further out is popped up first, and only where
    it stands in a branch of OR does that make the formula larger, exponentially at worst. None if the formula cannot
    match; it is made safe where it is not.

    Out of NEXT, LAST and MAX a condition on a variable bound outside is popped up, too: the formula is split into the
    cases that it holds and that it does not, since the strategy chooses other matches then. Into them no condition on
    several events goes, as it would be asked of the matches that are compared.

    Raises `QueryError` as `check_first_order` does, and `UnsupportedQueryError` where a condition would have to go into
    NEXT, LAST or MAX, where `to_safe` does, and where the result would be too large.
    """
    check_first_order(formula)
    safe = formula if is_safe(formula) else to_safe(formula)
    return None if safe is None else Bringing(safe, relate=False).run()
