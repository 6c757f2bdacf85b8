"""Conditions on single events that follow from bounds on the least and greatest values of a label.

``min(r.v) > 9`` holds only if each event of r has ``v > 9 OR v IS NULL``, so a run ends where this fails, not where the
filter is asked. The same goes for labels before r, as in ``min(r.v) - a.v > 9``, and for neighbours in matches
without gaps: ``max(r.v) - min(r.v) < 9`` bounds ``v - prev(v)`` and ``prev(v) - v``.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from cerflow.base.operators import Operator
from cerflow.base.schema import Schema
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language.node import Node, fold, transform, walk, walk_into
from cerflow.language.select import Select
from cerflow.logic.analysis.scopes import condition_labels, occurrences, resolve
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.rewriting.implied import is_gapless, label_orders
from cerflow.logic.rewriting.rebuild import with_conditions

#: The aggregates of an expression, and whether it grows with each; None if it may grow and fall.
_Growth = dict[c.Aggregate, bool] | None
#: Comparisons that hold for greater values of the left side, or for lesser ones: the strict one first.
_SIDES = {True: (Operator.GT, Operator.GE), False: (Operator.LT, Operator.LE)}


def with_implied_values(select: Select, schema: Schema) -> Select:
    """The query with the conditions on single events that its filters imply; itself if there are none."""
    if not any(isinstance(current, c.Aggregate) for current in walk(select.formula)):
        return select
    labels = resolve(select.formula).labels
    before = label_orders(select.formula, labels, {name for own in labels.values() for name in own.assigned})
    added: dict[int, list[c.Condition]] = {}
    for index, (formula, _) in occurrences(select.formula).items():
        if isinstance(formula, f.Filter):
            some = [p for p in conjuncts(formula.condition) if isinstance(p, c.Comparison)]
            gapless = is_gapless(formula.operand)
            added[index] = [new for part in some for new in _implied(part, before[index], schema, gapless=gapless)]
    formula = with_conditions(select.formula, added)
    return select if formula is select.formula else replace(select, formula=formula)


def _implied(part: c.Comparison, before: Set[tuple[str, str]], schema: Schema, *, gapless: bool) -> list[c.Condition]:
    """What a comparison of aggregates implies, given the pairs of labels of which one comes ``before`` the other."""
    left, right = _growth(part.left), _growth(part.right)
    if left is None or right is None or left.keys() & right.keys():
        return []
    growth = left | {aggregate: not grows for aggregate, grows in right.items()}
    names = {aggregate.argument.name for aggregate in growth if isinstance(aggregate.argument, c.Attribute)}
    labels = {label for aggregate in growth for label in condition_labels(aggregate)}
    side = next((s for s in _SIDES if all((a.name == "min") == (grows == s) for a, grows in growth.items())), None)
    if side is None or len(labels) != 1 or not names <= {*schema.attributes}:
        return []
    (label,) = labels
    operator = _SIDES[side][1] if part.operator is Operator.EQ else part.operator
    outside = walk_into(part, lambda node: not isinstance(node, c.Aggregate))
    others = {n.label for n in outside if isinstance(n, c.Attribute | c.LabelReference) and n.label is not None}
    if operator not in _SIDES[side] or any((other, label) not in before for other in others):
        return []
    found: list[c.Condition] = []
    kinds = {aggregate.name for aggregate in growth}
    # One event has all values, or two neighbours have them; a bracket with prev reads no other label.
    neighbours = gapless and not others
    for earlier in sorted(kinds) if len(kinds) > 1 and neighbours else [""] if len(kinds) == 1 else []:

        def of_event(current: Node, earlier: str = earlier) -> Node:
            if not isinstance(current, c.Aggregate) or not isinstance(current.argument, c.Attribute):
                return current
            value = replace(current.argument, label=None)
            return c.Function("prev", (value,)) if current.name == earlier else value

        changed = [transform(expression, of_event) for expression in (part.left, part.right)]
        one, other = [expression for expression in changed if isinstance(expression, c.Expression)]
        condition: c.Condition = c.Comparison(operator, one, other)
        for expression, given in ((one, left), (other, right)):
            condition = c.Or(condition, c.IsNull(expression)) if given else condition
        found.append(c.Bracket(label, condition))
    return found


def _growth(expression: c.Expression) -> _Growth:
    """The aggregates of an expression, and whether it grows with each, as far as that is plain."""
    return fold(expression, _of_operands)


def _of_operands(current: Node, below: Sequence[_Growth]) -> _Growth:
    if isinstance(current, c.Aggregate):
        plain = current.name in ("min", "max") and isinstance(current.argument, c.Attribute)
        return {current: True} if plain else None
    if None in below:
        return None
    some = [growth for growth in below if growth is not None]
    if not any(some):
        return {}
    match current:
        case c.Arithmetic("+" | "-" as sign, _, _) if not some[0].keys() & some[1].keys():
            return some[0] | {a: grows == (sign == "+") for a, grows in some[1].items()}
        case c.Arithmetic("*" | "/", _, c.Literal(int() | float() as factor)) if factor:
            return {a: grows == (factor > 0) for a, grows in some[0].items()}
        case c.Arithmetic("*", c.Literal(int() | float() as factor), _) if factor:
            return {a: grows == (factor > 0) for a, grows in some[1].items()}
        case c.Negative():
            return {a: not grows for a, grows in some[0].items()}
    return None
