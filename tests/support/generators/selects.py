"""Random queries: formulas with clauses around them (Hypothesis strategies)."""

from __future__ import annotations

from hypothesis import strategies as st

from cerflow.base.operators import Operator
from cerflow.language import formula as f
from cerflow.language import select as q
from cerflow.language.condition import (
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    Function,
    If,
    IsNull,
    LabelReference,
    Literal,
    Or,
    SetTest,
    TruthValue,
)
from cerflow.logic.analysis.scopes import labels_of
from support.generators.conditions import FIRST, Fragment, aggregate
from support.generators.limits import moved
from support.generators.queries import (
    Row,
    around,
    draw_by,
    draw_window,
    formulas,
    streams,
)


def _columns(draw: st.DrawFn, formula: f.Formula) -> list[q.ExpressionItem]:
    labels = labels_of(formula)
    found: list[q.ExpressionItem] = []
    if labels.bound:
        label = draw(st.sampled_from(sorted(labels.bound)))
        other = draw(st.sampled_from(sorted(labels.bound)))
        less = Comparison(Operator.LT, Attribute(label, "v"), Attribute(other, "w"))
        expressions: tuple[Expression, ...] = (
            Attribute(label, draw(st.sampled_from("vws"))),
            Arithmetic(draw(st.sampled_from("+-*/%")), Attribute(label, "v"), Attribute(other, "w")),
            Function("position", (LabelReference(label),)),
            Function("upper", (Attribute(label, "s"),)),
            Attribute(label, "type"),
            If(less, Attribute(label, "s"), Literal("p")),
            TruthValue(Or(less, IsNull(Attribute(other, "w")))),
        )
        found.append(q.ExpressionItem(draw(st.sampled_from(expressions)), "c1"))
    if labels.assigned:
        label = draw(st.sampled_from(sorted(labels.assigned)))
        selecting = draw(st.sampled_from(("min", "max", "first", "last")))
        aggregates_of: tuple[Expression, ...] = (
            aggregate(draw, label),
            Aggregate("count distinct", Attribute(label, draw(st.sampled_from("vwsk")))),
            TruthValue(SetTest("nondecreasing", Attribute(label, draw(st.sampled_from("vs"))))),
            Aggregate("stddev", Attribute(label, draw(st.sampled_from("vw")))),
            Aggregate(selecting, Attribute(label, draw(st.sampled_from(("s", "type", "t"))))),
            Function("length", (Aggregate(selecting, Function("lower", (Attribute(label, "s"),))),)),
            Arithmetic("-", aggregate(draw, label), aggregate(draw, label)),
        )
        found.append(q.ExpressionItem(draw(st.sampled_from(aggregates_of)), "c2"))
    return found


def _projection(draw: st.DrawFn, formula: f.Formula) -> q.Projection:
    assigned = sorted(labels_of(formula).assigned)
    match draw(st.integers(0, 7)):
        case 0:
            return q.Projection(q.ProjectionKind.NONE)
        case 1 | 2:
            return q.Projection(q.ProjectionKind.ITEMS, (q.CountItem("matches"),))
        case 3 | 4 | 5:
            kept = draw(st.lists(st.sampled_from(assigned), max_size=2, unique=True)) if assigned else []
            columns = _columns(draw, formula)
            items = [*map(q.LabelItem, kept), *columns]
            if columns and draw(st.booleans()):
                return q.Projection(q.ProjectionKind.ALL, tuple(columns))
            if items:
                return q.Projection(q.ProjectionKind.ITEMS, tuple(items))
    return q.Projection(q.ProjectionKind.ALL)


@st.composite
def selects(
    draw: st.DrawFn,
    fragment: Fragment = FIRST,
    *,
    strategies: bool = False,
    operator: str | None = None,
) -> q.Select:
    """Queries around formulas of a fragment; ``strategies`` adds STRICT and (perhaps BY labels) NEXT, LAST, MAX.

    With ``operator`` the formulas have that one of `OPERATORS`.
    """
    formula = draw(formulas(fragment) if operator is None else around(operator, fragment))
    chosen = [f.Strategy.ALL, f.Strategy.ALL, f.Strategy.ANY]
    if strategies:
        chosen += [f.Strategy.STRICT, f.Strategy.NEXT, f.Strategy.LAST, f.Strategy.MAX]
    projection = _projection(draw, formula)
    strategy = draw(st.sampled_from(chosen))
    return q.Select(
        formula,
        projection,
        strategy,
        partition=draw(st.sampled_from(((), (), (("k",),), (("k", "v"),), (("k",), ("s",))))),
        window=draw_window(draw) if draw(st.booleans()) else None,
        consume=draw(st.sampled_from((*q.Consumption, q.Consumption.NONE))),
        limit=draw(st.sampled_from((None, None, None, 1, 2))),
        by=draw_by(draw, formula) if strategy.compares and draw(st.booleans()) else (),
    )


@st.composite
def cases(
    draw: st.DrawFn,
    fragment: Fragment = FIRST,
    *,
    strategies: bool = False,
    operator: str | None = None,
    ends: bool = True,
) -> tuple[q.Select, list[Row]]:
    """A query and a stream in which it is likely to match; see `selects` and `streams`."""
    select = draw(selects(fragment, strategies=strategies, operator=operator))
    rows = draw(streams(nulls=fragment.nulls, like=select.formula, ends=ends))
    return moved(draw, select, rows, ends) if draw(st.integers(0, 9)) == 9 else (select, rows)
