"""STRICT by strict sequences and iterations (P2 Proposition 6.4, Appendix C.3)."""

from __future__ import annotations

from cerflow.analysis.scopes import handed_down
from cerflow.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.node import Node
from cerflow.rewriting.rebuild import transformed
from cerflow.rewriting.repetitions import without_repetitions


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
