"""Tests of transitions as conditions of the language: without types, and without `Satisfied`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.connectives import asked, spelled_out, with_atoms
from cerflow.logic.rewriting.rebuild import mentions_set

#: Tests that a condition of the language cannot express.
_BEYOND = (
    guards.Stored
    | guards.Of
    | guards.Measure
    | guards.InWindow
    | c.TruthValue
    | guards.TypeTest
    | guards.StreamTest
    | guards.LabelAggregate
    | guards.SetCall
)


def assuming(test: c.Condition, types: Mapping[guards.TypeTest, bool]) -> c.Condition:
    """The test, given the tests of the type that hold (all others do not), with constants simplified."""

    def known(atom: c.Condition) -> c.Condition:
        match atom:
            case guards.TypeTest():
                return c.Constant(types.get(atom, False))
            case c.Comparison(Operator.EQ, c.TruthValue(condition), c.Literal(True)):
                return condition
        return atom

    return with_atoms(test, known)


def as_language_condition(test: c.Condition) -> c.Condition:
    """A condition of the language, with bare attributes, that is true for exactly the events that satisfy the test.

    Raises `UnsupportedQueryError` for tests that read more than the current event, and for a registered predicate that
    is tested for not being true, as opposed to being false.
    """
    if mentions_set(test) or any(isinstance(n, _BEYOND) for n in walk(test)):
        raise UnsupportedQueryError(f"{show(test)} is not a condition on one event")
    return asked(test, _said, _join)


def _join(sign: type[c.And | c.Or], left: c.Condition, right: c.Condition) -> c.Condition:
    return sign(left, right)


def _said(atom: c.Condition, wanted: bool, or_unknown: bool) -> c.Condition:
    if or_unknown and isinstance(atom, c.In | c.Between):
        return asked(spelled_out(atom), _said, _join, wanted, or_unknown)
    said = atom if wanted else c.Not(atom)
    unknown = _unknown(atom) if or_unknown else None
    return said if unknown is None else c.Or(said, unknown)


def _unknown(atom: c.Condition) -> c.Condition | None:
    """When an atom is neither true nor false; None if never."""
    sides: tuple[c.Expression, ...]
    match atom:
        case c.Comparison():
            sides = (atom.left, atom.right)
        case c.Like() | c.Regexp():
            sides = (atom.operand,)
        case c.PredicateCall():
            raise UnsupportedQueryError(
                f"the language cannot express that {show(atom)} is unknown",
                hint="A registered predicate under NOT cannot be translated back.",
            )
        case _:
            sides = ()
    nulls: list[c.Condition] = [c.IsNull(s) for s in sides if not (isinstance(s, c.Literal) and s.value is not None)]
    return reduce(c.Or, nulls) if nulls else None
