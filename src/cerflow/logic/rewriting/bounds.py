"""Bounds that follow from other bounds: ``a.v > 9 AND b.v > a.v`` says that ``b.v > 9``, which one event decides.

A test on one event spares partial matches, and Spark and files can skip rows by it. A bound passes from one label to
another only if the other one has an event in every match: a condition always holds of a label without events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cerflow.base.graphs import settled_values
from cerflow.base.operators import MIRRORED, RELATIONS, Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.language import formula as f
from cerflow.language.condition import Attribute, Comparison, Condition, Expression, Literal
from cerflow.language.select import Select
from cerflow.logic.analysis.scopes import Labels, occurrences, resolve
from cerflow.logic.conditions.connectives import conjuncts_opened
from cerflow.logic.rewriting.rebuild import with_conditions

#: A label and an attribute.
_Place = tuple[str, str]
#: What holds of an attribute of all events of a label, if there are any.
_Bound = tuple[Operator, Literal]
_Bounds = Mapping[_Place, frozenset[_Bound]]
_NONE: frozenset[_Bound] = frozenset()
#: The strict operator first.
_LOWER, _UPPER = (Operator.GT, Operator.GE), (Operator.LT, Operator.LE)
#: What also holds of different integers that are the same float.
_LOOSE = {Operator.LT: Operator.LE, Operator.GT: Operator.GE}


def with_implied_bounds(select: Select, schema: Schema) -> Select:
    """The query with the bounds on single attributes that follow from its comparisons; itself if there are none."""
    labels = resolve(select.formula).labels
    added: dict[int, list[Condition]] = {}
    holding: dict[int, _Bounds] = {}
    for index, (formula, operands) in occurrences(select.formula).items():
        own = labels[index]
        known = _known(formula, own, [(labels[k], holding[k]) for k in operands])
        if isinstance(formula, f.Filter):
            known, added[index] = _followed(formula.condition, known, own, schema)
        holding[index] = {place: bounds for place, bounds in known.items() if place[0] in own.assigned}
    formula = with_conditions(select.formula, added)
    return select if formula is select.formula else replace(select, formula=formula)


def _known(current: f.Formula, labels: Labels, below: Sequence[tuple[Labels, _Bounds]]) -> _Bounds:
    """What holds of the labels of a formula, from what holds of those of its operands."""
    if isinstance(current, f.Combination):
        (left, one), (right, other) = below
        return {
            place: one.get(place, _NONE) & other.get(place, _NONE)
            if left.may_give(place[0]) and right.may_give(place[0])
            else one.get(place, _NONE) | other.get(place, _NONE)
            for place in one.keys() | other.keys()
        }
    if isinstance(current, f.As):
        known = {place: bounds for place, bounds in below[0][1].items() if place[0] != current.label}
        for (label, name), bounds in below[0][1].items() if labels.single else ():
            # The only event has all labels that are bound.
            if label in labels.bound:
                known[current.label, name] = known.get((current.label, name), _NONE) | bounds
        return known
    # Other complex events are those of the first operand, or consist of them.
    return below[0][1] if below and not isinstance(current, f.Rename | f.SingleEvent) else {}


def _followed(condition: Condition, known: _Bounds, labels: Labels, schema: Schema) -> tuple[_Bounds, list[Condition]]:
    """What holds after a filter with a condition, and of it what neither the condition says nor was known before."""
    bounds = {place: set(some) for place, some in known.items()}
    relations: list[tuple[_Place, Operator, _Place]] = []
    inside = conjuncts_opened(condition)
    for left, operator, right in [(i.left, i.operator, i.right) for i in inside if isinstance(i, Comparison)]:
        x, y = _place(left, labels, schema), _place(right, labels, schema)
        if x is not None and y is not None and x != y:
            relations += [(x, operator, y), (y, MIRRORED[operator], x)]
        elif x is not None and isinstance(right, Literal):
            bounds.setdefault(x, set()).add((operator, right))
        elif y is not None and isinstance(left, Literal):
            bounds.setdefault(y, set()).add((MIRRORED[operator], left))

    def along(relation: tuple[str, Operator, str], given: frozenset[_Bound]) -> frozenset[_Bound]:
        return frozenset(filter(None, (_passed(*relation, bound, schema) for bound in given)))

    def joined(own: frozenset[_Bound], more: frozenset[_Bound]) -> frozenset[_Bound]:
        for bound in sorted(more, key=str):
            own = own if any(_covers(one, bound) for one in own) else own | {bound}
        return own

    # A label without events bounds nothing.
    edges = [(y, x, (x[1], operator, y[1])) for x, operator, y in relations if y[0] in labels.bound]
    begin = {place: frozenset(some) for place, some in bounds.items()}
    settled = settled_values(begin, edges, along, joined)
    added = {x: sorted(settled[x] - begin.get(x, _NONE), key=str) for _, x, _ in edges if x in settled}
    return settled, [Comparison(sign, Attribute(*x), value) for x, some in added.items() for sign, value in some]


def _place(expression: Expression, labels: Labels, schema: Schema) -> _Place | None:
    """The label and attribute that an expression is; None for others, and for labels that are bound outside."""
    match expression:
        case Attribute(str(label), name) if label in labels.assigned and name in schema.attributes:
            return label, name
    return None


def _passed(x: str, operator: Operator, y: str, bound: _Bound, schema: Schema) -> _Bound | None:
    """The bound on attribute ``x`` that ``x operator y`` gives with a bound on ``y``; None if there is none.

    Comparisons with a float are on floats: two integers that differ may be the same float. So a comparison of integers
    excludes no value where the result is on floats.
    """
    given, literal = bound
    kinds, value = (schema.kind(x), schema.kind(y)), literal.value
    if all(kind.numeric for kind in kinds) and type(value) in (int, float):
        floats = (ValueKind.FLOAT in kinds, kinds[1] is ValueKind.FLOAT or type(value) is float)
        if any(floats):
            literal = Literal(float(value))  # type: ignore[arg-type]
            operator = operator if floats[0] else _LOOSE.get(operator, operator)
            given = given if floats[1] else _LOOSE.get(given, given)
            if Operator.NE in (operator, given) and not all(floats):
                return None
    elif schema.columns.field(x).type != schema.columns.field(y).type or type(value) is not str:
        return None
    if operator is Operator.EQ:
        return given, literal
    for side in (_LOWER, _UPPER):
        if operator in side and given in (*side, Operator.EQ):
            return side[0] if side[0] in (operator, given) else side[1], literal
    return None


def _covers(known: _Bound, asked: _Bound) -> bool:
    """Whether a bound holds wherever another one does, as far as that is plain."""
    if known == asked:
        return True
    one, other = known[1].value, asked[1].value
    if type(one) is not type(other) or not isinstance(one, int | float) or isinstance(one, bool):
        return False
    if known[0] is Operator.EQ:
        return bool(RELATIONS[asked[0]](one, other))
    for lower in (True, False):
        side = _LOWER if lower else _UPPER
        if known[0] in side and asked[0] in side:
            return (one > other) == lower if one != other else known[0] is side[0] or asked[0] is side[1]  # type: ignore[operator]
    return False
