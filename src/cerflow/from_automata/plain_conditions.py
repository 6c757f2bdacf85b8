"""Tests of transitions as conditions of the language: without types, and without `Satisfied`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from cerflow.conditions.connectives import spelled_out, with_atoms
from cerflow.conditions.guards import (
    InWindow,
    LabelAggregate,
    Measure,
    Of,
    Satisfied,
    SetCall,
    Stored,
    StreamTest,
    TypeTest,
)
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import (
    And,
    Between,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    PredicateCall,
    Regexp,
    TruthValue,
)
from cerflow.language.node import Node, walk
from cerflow.language.printer import show
from cerflow.rewriting.rebuild import mentions_set
from cerflow.values.operators import Operator

__all__ = ["as_language_condition", "assuming"]

#: Tests that a condition of the language cannot express.
_BEYOND = Stored | Of | Measure | InWindow | TruthValue | TypeTest | StreamTest | LabelAggregate | SetCall


def assuming(test: Condition, types: Mapping[TypeTest, bool]) -> Condition:
    """The test, given the tests of the type that hold (all others do not), with constants simplified."""

    def known(atom: Condition) -> Condition:
        match atom:
            case TypeTest():
                return Constant(types.get(atom, False))
            case Comparison(Operator.EQ, TruthValue(condition), Literal(True)):
                return condition
        return atom

    return with_atoms(test, known)


def as_language_condition(test: Condition) -> Condition:
    """A condition of the language, with bare attributes, that is true for exactly the events that satisfy the test.

    Raises `UnsupportedQueryError` for tests that read more than the current event, and for a registered predicate that
    is tested for not being true, as opposed to being false.
    """
    if mentions_set(test) or any(isinstance(n, _BEYOND) for n in walk(test)):
        raise UnsupportedQueryError(f"{show(test)} is not a condition on one event")
    # The wanted truth values of a condition: true, or false; with or without unknown.
    order: list[tuple[Node, bool, bool]] = []
    stack: list[tuple[Node, bool, bool]] = [(test, True, False)]
    while stack:
        current, wanted, or_unknown = stack.pop()
        match current:
            case Not():
                stack.append((current.operand, not wanted, or_unknown))
            case Satisfied():
                # Two-valued: not true where the condition is false or unknown.
                stack.append((current.condition, wanted, not wanted))
            case And() | Or():
                order.append((current, wanted, or_unknown))
                stack += [(current.left, wanted, or_unknown), (current.right, wanted, or_unknown)]
            case In() | Between() if or_unknown:
                stack.append((spelled_out(current), wanted, or_unknown))
            case _:
                order.append((current, wanted, or_unknown))
    done: list[Condition] = []
    for current, wanted, or_unknown in reversed(order):
        if isinstance(current, And | Or):
            right, left = done.pop(), done.pop()
            done.append(And(left, right) if isinstance(current, And) == wanted else Or(left, right))
            continue
        assert isinstance(current, Condition)
        said = current if wanted else Not(current)
        unknown = _unknown(current) if or_unknown else None
        done.append(said if unknown is None else Or(said, unknown))
    return done[0]


def _unknown(atom: Condition) -> Condition | None:
    """When an atom is neither true nor false; None if never."""
    sides: tuple[Expression, ...]
    match atom:
        case Comparison():
            sides = (atom.left, atom.right)
        case Like() | Regexp():
            sides = (atom.operand,)
        case PredicateCall():
            raise UnsupportedQueryError(
                f"the language cannot express that {show(atom)} is unknown",
                hint="A registered predicate under NOT cannot be translated back.",
            )
        case _:
            sides = ()
    nulls: list[Condition] = [IsNull(s) for s in sides if not (isinstance(s, Literal) and s.value is not None)]
    return reduce(Or, nulls) if nulls else None
