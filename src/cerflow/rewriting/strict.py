"""STRICT by strict sequences and iterations (P2 Proposition 6.4, Appendix C.3)."""

from __future__ import annotations

from cerflow.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.builder.given import of_formula
from cerflow.language.node import Node, walk
from cerflow.rewriting.events import below
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
    nodes = list(walk(formula))
    parts = below(formula)
    # Whether the formula at an occurrence must match an interval.
    strict: dict[int, bool] = {len(nodes) - 1: False}
    for index in range(len(nodes) - 1, -1, -1):
        if index not in strict:
            continue
        current, here = nodes[index], strict[index]
        if isinstance(current, f.Selection) and current.strategy is f.Strategy.STRICT:
            here = True
        elif here and isinstance(current, f.Project | f.All | f.Selection):
            name = current.strategy if isinstance(current, f.Selection) else type(current).__name__.upper()
            raise UnsupportedQueryError(
                f"STRICT is around {name}, and no other operator says that its events are an interval",
                span=current.span,
                hint="Put STRICT on the formulas inside if that is what is meant.",
            )
        for place, part in enumerate(parts[index]):
            # The right side of UNLESS, WITHOUT and NOT FOLLOWED BY need not be an interval.
            strict[part] = here and not (place and isinstance(current, f.Exclusion))

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
