"""Whether tests on one event can hold together, decided where that is cheap and certain.

The answer "contradictory" is certain; "not contradictory" only means that no contradiction was found.
"""

from __future__ import annotations

from collections.abc import Iterable

from cerflow.automata.guards import TypeTest
from cerflow.language.condition import (
    Attribute,
    Comparison,
    Condition,
    Constant,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
)

__all__ = ["contradicts"]

_Number = int | float


def contradicts(tests: Iterable[Condition]) -> bool:
    """Whether no event can satisfy all of these tests."""
    held: set[Condition] = set()
    refused: set[Condition] = set()
    types: set[str] = set()
    known: set[str] = set()
    unknown: set[str] = set()
    values: dict[str, set[Literal]] = {}
    low: dict[str, tuple[_Number, bool]] = {}
    high: dict[str, tuple[_Number, bool]] = {}
    for test in tests:
        if test == Constant(False) or test == Not(Constant(True)):
            return True
        if isinstance(test, Not):
            refused.add(test.operand)
            continue
        held.add(test)
        if isinstance(test, TypeTest):
            types.add(test.type)
        if isinstance(test, IsNull) and isinstance(test.operand, Attribute):
            (known if test.negated else unknown).add(test.operand.name)
        elif isinstance(test, Comparison):
            known.update(side.name for side in (test.left, test.right) if isinstance(side, Attribute))
        allowed = _allowed(test)
        if allowed is not None:
            name, literals = allowed
            values[name] = values[name] & literals if name in values else literals
        if isinstance(test, Comparison):
            _bound(test, low, high)
    if held & refused or len(types) > 1 or known & unknown:
        return True
    # A refused test on the whole type cannot stand beside a test for that type.
    if any(isinstance(t, TypeTest) and t.stream is None and t.type in types for t in refused):
        return True
    if any(not literals for literals in values.values()):
        return True
    return any(_empty(low[name], high[name]) for name in low.keys() & high.keys())


def _allowed(test: Condition) -> tuple[str, set[Literal]] | None:
    """The attribute that a test restricts to certain strings, and those."""
    match test:
        case Comparison(Operator.EQ, Attribute(None, name), Literal(value) as literal) if isinstance(value, str):
            return name, {Literal(literal.value)}
        case Comparison(Operator.EQ, Literal(value) as literal, Attribute(None, name)) if isinstance(value, str):
            return name, {Literal(literal.value)}
        case In(Attribute(None, name), items, False) if all(isinstance(i.value, str) for i in items):
            return name, {Literal(i.value) for i in items}
        case _:
            return None


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
    return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))
