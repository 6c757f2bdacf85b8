"""Whether tests on one event can hold together, where that is cheap to decide.

The answer "contradictory" is certain; "not contradictory" only means that no contradiction was found.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from cerflow.base.events import is_moment
from cerflow.base.operators import NEGATED, Operator
from cerflow.language.condition import And, Attribute, Comparison, Condition, Constant, In, IsNull, Literal, Not
from cerflow.logic.conditions.connectives import conjuncts
from cerflow.logic.conditions.guards import Satisfied, TypeTest

_NEVER = frozenset({Constant(False), Not(Constant(True))})
#: A number that an attribute is compared with, and whether it is excluded itself.
_Bound = tuple[int | float, bool]


def contradicts(tests: Iterable[Condition]) -> bool:
    """Whether no event can satisfy all of these tests."""
    held = dict.fromkeys(tests)
    refused: set[Condition] = set()
    types: set[str] = set()
    nulls: dict[str, set[bool]] = {}
    values: dict[str, set[Literal]] = {}
    low: dict[str, _Bound] = {}
    high: dict[str, _Bound] = {}
    for test in held:
        if test in _NEVER:
            return True
        match test:
            case Not(operand):
                refused |= {operand, operand.condition} if isinstance(operand, Satisfied) else {operand}
                continue
            case TypeTest(name):
                types.add(name)
            case IsNull(Attribute(_, name), negated):
                nulls.setdefault(name, set()).add(not negated)
            case Comparison(operator, left, right):
                refused.add(_negated(test))
                for side in (left, right):
                    if isinstance(side, Attribute):
                        nulls.setdefault(side.name, set()).add(False)
                if isinstance(left, Attribute) and left.label is None and isinstance(right, Literal):
                    _tighten(left.name, operator, right.value, low, high)
        name, literals = _allowed(test)
        if literals and all(isinstance(one.value, str) and not is_moment(one.value) for one in literals):
            # Two strings may stand for the same moment; any others are different.
            words = {Literal(one.value) for one in literals}
            values[name] = values.get(name, words) & words
    if not refused.isdisjoint(held) or len(types) > 1 or any(len(found) > 1 for found in nulls.values()):
        return True
    if any(isinstance(one, And) and held.keys() >= set(conjuncts(one)) for one in refused):
        return True
    # A refused test on the whole type contradicts a test for that type.
    if any(isinstance(one, TypeTest) and one.stream is None and one.type in types for one in refused):
        return True
    return not all(values.values()) or any(_empty(low[name], high[name]) for name in low.keys() & high.keys())


@lru_cache(1000)
def _negated(test: Comparison) -> Comparison:
    return Comparison(NEGATED[test.operator], test.left, test.right)


def _allowed(test: Condition) -> tuple[str, tuple[Literal, ...]]:
    """The attribute that a test restricts to some values, and these; none for other tests."""
    match test:
        case Comparison(Operator.EQ, Attribute(None, name), Literal() as literal):
            return name, (literal,)
        case Comparison(Operator.EQ, Literal() as literal, Attribute(None, name)):
            return name, (literal,)
        case In(Attribute(None, name), items, False):
            return name, items
    return "", ()


def _tighten(name: str, operator: Operator, value: object, low: dict[str, _Bound], high: dict[str, _Bound]) -> None:
    """Tighten the bounds of an attribute that is compared with a number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if operator in (Operator.GT, Operator.GE, Operator.EQ):
        bound = (value, operator is Operator.GT)
        low[name] = max(low.get(name, bound), bound)
    if operator in (Operator.LT, Operator.LE, Operator.EQ):
        bound = (value, operator is Operator.LT)
        high[name] = min(high.get(name, bound), bound, key=lambda b: (b[0], not b[1]))


def _empty(low: _Bound, high: _Bound) -> bool:
    # Integers are rounded when they are compared with floats, so bounds must differ after rounding.
    if float(low[0]) > float(high[0]):
        return True
    return type(low[0]) is type(high[0]) and low[0] == high[0] and (low[1] or high[1])
