"""Repetitions and optional parts written out with ``;``, ``:``, OR and ``+`` (spec §10)."""

from __future__ import annotations

from collections.abc import Sequence

from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language import formula as f
from cerflow.language.node import Node, rebuild, with_children
from cerflow.logic.rewriting.rebuild import check_tree_size, size


def without_repetitions(formula: f.Formula) -> f.Formula:
    """The same formula with all repetitions written out; itself if it has none.

    Raises `UnsupportedQueryError` if it becomes too large.
    """

    def visit(current: Node, below: Sequence[Node]) -> Node:
        rebuilt = with_children(current, below)
        match rebuilt:
            case f.Repetition():
                return _written_out(rebuilt)
            case f.Join():
                assert isinstance(current, f.Join)
                # The copies no longer say whether they can be absent.
                whole: f.Formula = rebuilt
                if f.can_be_absent(current.right):
                    whole = f.Disjunction(whole, rebuilt.left, span=current.span)
                if f.can_be_absent(current.left):
                    whole = f.Disjunction(whole, rebuilt.right, span=current.span)
                return whole
        return rebuilt

    written = rebuild(formula, visit)
    if written is not formula:
        check_tree_size(size(written), formula.span)
    return written


def _written_out(repetition: f.Repetition) -> f.Formula:
    once, least, most = repetition.operand, max(1, repetition.least), repetition.most
    if max(least, most or 0) > limits.REWRITTEN_NODES:
        raise UnsupportedQueryError(
            f"{most or least:,} repetitions would have to be written out",
            span=repetition.span,
            hint="Rewrite a formula with smaller bounds.",
        )
    join = f.StrictSequence if repetition.strict else f.Sequence
    whole = once
    if most is None:
        whole = (f.StrictIteration if repetition.strict else f.Iteration)(once, span=repetition.span)
    for k in range((most or least) - 1, 0, -1):
        whole = join(once, whole, span=repetition.span)
        if most is not None and k >= least:
            whole = f.Disjunction(once, whole, span=repetition.span)
    return whole
