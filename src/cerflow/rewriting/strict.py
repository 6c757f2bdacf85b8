"""STRICT by strict sequences and iterations (P2 Proposition 6.4, Appendix C.3)."""

from __future__ import annotations

from cerflow.errors import UnsupportedQueryError
from cerflow.language.builder.given import of_formula
from cerflow.language.formula import (
    All,
    Exclusion,
    Formula,
    Iteration,
    Project,
    Selection,
    Sequence,
    Strategy,
    StrictIteration,
    StrictSequence,
)
from cerflow.language.node import Node, walk
from cerflow.rewriting.events import below
from cerflow.rewriting.rebuild import transformed
from cerflow.rewriting.repetitions import without_repetitions

__all__ = ["strict_to_sequences"]


@of_formula
def strict_to_sequences(formula: Formula) -> Formula:
    """The same complex events without STRICT: within it, ``;`` becomes ``:`` and ``+`` becomes ``:+``.

    Holds for conditions of any kind, and makes nothing larger. Raises `UnsupportedQueryError` for STRICT around
    PROJECT, whose events may lie between those that are left, around ALL, which may join two halves to an interval,
    and around NEXT, LAST and MAX, which choose before STRICT does.
    """
    formula = without_repetitions(formula)
    nodes = list(walk(formula))
    parts = below(formula)
    # Whether the formula at an occurrence must match an interval.
    strict: dict[int, bool] = {len(nodes) - 1: False}
    for index in range(len(nodes) - 1, -1, -1):
        if index not in strict:
            continue
        current, here = nodes[index], strict[index]
        if isinstance(current, Selection) and current.strategy is Strategy.STRICT:
            here = True
        elif here and isinstance(current, Project | All | Selection):
            name = current.strategy if isinstance(current, Selection) else type(current).__name__.upper()
            raise UnsupportedQueryError(
                f"STRICT stands around {name}, and no other operator says that its events are an interval",
                span=current.span,
                hint="Put STRICT on the formulas inside if that is what is meant.",
            )
        for place, part in enumerate(parts[index]):
            # The right side of UNLESS, WITHOUT and NOT FOLLOWED BY need not be an interval.
            strict[part] = here and not (place and isinstance(current, Exclusion))

    def change(index: int, current: Node) -> Node:
        match current:
            case Selection(strategy=Strategy.STRICT):
                return current.operand
            case Sequence() if strict[index]:
                return StrictSequence(current.left, current.right, span=current.span)
            case Iteration() if strict[index]:
                return StrictIteration(current.operand, span=current.span)
        return current

    return transformed(formula, change)
