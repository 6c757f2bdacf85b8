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

_Number = int | float
_NEVER = frozenset({Constant(False), Not(Constant(True))})


def contradicts(tests: Iterable[Condition]) -> bool:
    """Whether no event can satisfy all of these tests."""
    tests = list(tests)
    held: set[Condition] = set()
    refused: set[Condition] = set()
    types: set[str] = set()
    known: set[str] = set()
    unknown: set[str] = set()
    values: dict[str, set[Literal]] = {}
    low: dict[str, tuple[_Number, bool]] = {}
    high: dict[str, tuple[_Number, bool]] = {}
    for test in tests:
        if test in _NEVER:
            return True
        held.add(test)
        if isinstance(test, Not):
            refused.add(test.operand)
            if isinstance(test.operand, Satisfied):
                refused.add(test.operand.condition)
            continue
        if isinstance(test, TypeTest):
            types.add(test.type)
        if isinstance(test, IsNull) and isinstance(test.operand, Attribute):
            (known if test.negated else unknown).add(test.operand.name)
        elif isinstance(test, Comparison):
            refused.add(_negated(test))
            known.update(side.name for side in (test.left, test.right) if isinstance(side, Attribute))
        allowed = _allowed(test)
        if allowed is not None:
            name, literals = allowed
            values[name] = values[name] & literals if name in values else literals
        if isinstance(test, Comparison):
            _bound(test, low, high)
    if held & refused or len(types) > 1 or known & unknown:
        return True
    together = [set(conjuncts(c)) for c in refused if isinstance(c, And)]
    if together and any(parts <= set(tests) for parts in together):
        return True
    # A refused test on the whole type contradicts a test for that type.
    if any(isinstance(t, TypeTest) and t.stream is None and t.type in types for t in refused):
        return True
    if any(not literals for literals in values.values()):
        return True
    return any(_empty(low[name], high[name]) for name in low.keys() & high.keys())


@lru_cache(1000)
def _negated(test: Comparison) -> Comparison:
    return Comparison(NEGATED[test.operator], test.left, test.right)


def _allowed(test: Condition) -> tuple[str, set[Literal]] | None:
    """The attribute that a test restricts to some strings, and these strings."""
    literals: tuple[Literal, ...]
    match test:
        case Comparison(Operator.EQ, Attribute(None, name), Literal() as literal):
            literals = (literal,)
        case Comparison(Operator.EQ, Literal() as literal, Attribute(None, name)):
            literals = (literal,)
        case In(Attribute(None, name), items, False):
            literals = items
        case _:
            return None
    return (name, {Literal(i.value) for i in literals}) if all(map(_is_word, literals)) else None


def _is_word(literal: Literal) -> bool:
    """Whether a string equals no other; two strings may stand for the same moment."""
    return isinstance(literal.value, str) and not is_moment(literal.value)


def _bound(test: Comparison, low: dict[str, tuple[_Number, bool]], high: dict[str, tuple[_Number, bool]]) -> None:
    """Tighten the bounds (value, open?) of an attribute compared with a number."""
    match test:
        case Comparison(operator, Attribute(None, name), Literal(value)) if _is_number(value):
            pass
        case _:
            return
    assert isinstance(value, int | float)
    if operator in (Operator.GT, Operator.GE, Operator.EQ):
        bound = (value, operator is Operator.GT)
        low[name] = max(low.get(name, bound), bound)
    if operator in (Operator.LT, Operator.LE, Operator.EQ):
        bound = (value, operator is Operator.LT)
        old = high.get(name, bound)
        high[name] = min(old, bound, key=lambda b: (b[0], not b[1]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _empty(low: tuple[_Number, bool], high: tuple[_Number, bool]) -> bool:
    # Integers are rounded when they are compared with floats, so bounds must differ after rounding.
    if float(low[0]) > float(high[0]):
        return True
    return type(low[0]) is type(high[0]) and low[0] == high[0] and (low[1] or high[1])
