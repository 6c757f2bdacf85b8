"""Functions, aggregates and predicates of labels, written in Python: ``count(x)``, ``sum_(x.price)``, ``time(x)``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from cerflow.base.errors import ArgumentError, QueryError
from cerflow.language import condition as c
from cerflow.language.builder.common import checked_name
from cerflow.language.builder.conditions import ConditionExpr, Label, ValueExpr, literal


def predicate(name: str, *arguments: Label | ValueExpr | str | int | float | timedelta | None) -> ConditionExpr:
    """``name(x, y.price, 3, …)``: a registered predicate over the events of labels, or over values.

    A string is the name of a label; ``literal("…")`` is one as a value.
    """
    return ConditionExpr(c.PredicateCall(checked_name(name, "a predicate"), tuple(map(_argument, arguments))))


def _argument(given: Label | ValueExpr | str | int | float | timedelta | None) -> c.Expression:
    if isinstance(given, Label | str):
        return _reference(given)
    return given.tree if isinstance(given, ValueExpr) else literal(given).tree


def position(of: Label | str) -> ValueExpr:
    """``position(x)``: the position of an event."""
    return ValueExpr(c.Function("position", (_reference(of),)))


def time(of: Label | str) -> ValueExpr:
    """``time(x)``: the time of an event."""
    return ValueExpr(c.Function("time", (_reference(of),)))


def prev(of: ValueExpr) -> ValueExpr:
    """``prev(e)``: the value on the event of the label before this one, as in ``x[this.v > prev(this.v)]``."""
    if not isinstance(of, ValueExpr):
        raise ArgumentError(f"prev takes a value such as this.price, not {type(of).__name__}")
    return ValueExpr(c.Function("prev", (of.tree,)))


def count(of: Label | str | ValueExpr) -> ValueExpr:
    """``count(x)``: how many events a label has."""
    if not isinstance(of, ValueExpr):
        return ValueExpr(c.Aggregate("count", _reference(of)))
    if isinstance(of.tree, c.Attribute) and of.tree.label is None:
        raise QueryError(f"count takes a label, and '{of.tree.name}' has none")
    return aggregate("count", of)


def count_distinct(of: ValueExpr) -> ValueExpr:
    """``count(distinct x.a)``: how many different values the events of a label have."""
    return aggregate(c.COUNT_DISTINCT, of)


def match_number() -> ValueExpr:
    """``MATCH_NUMBER()``: the number of the match, from 1 on, for `select`."""
    return ValueExpr(c.Function(c.MATCH_NUMBER, ()))


def aggregate(name: str, of: ValueExpr) -> ValueExpr:
    """The aggregate of that name over the events of the label in ``of``."""
    if not isinstance(of, ValueExpr):
        raise ArgumentError(f"{name} takes a value such as x.price, not {type(of).__name__}")
    return ValueExpr(c.Aggregate(name, of.tree))


def _aggregate(name: str) -> Callable[[ValueExpr], ValueExpr]:
    def of_values(of: ValueExpr) -> ValueExpr:
        return aggregate(name, of)

    of_values.__doc__ = f"``{name}(x.a)``."
    return of_values


def _set_test(name: str) -> Callable[[ValueExpr], ConditionExpr]:
    def test(of: ValueExpr) -> ConditionExpr:
        if not isinstance(of, ValueExpr):
            raise ArgumentError(f"{name} takes a value such as x.price, not {type(of).__name__}")
        return ConditionExpr(c.SetTest(name, of.tree))

    test.__doc__ = f"``{name}(x.a)``: a test of the values in the order of their positions."
    return test


#: The value at the first event is ``first``, that at the last one ``last`` of `cerflow.language.builder.formulas`.
sum_, avg, min_ = _aggregate("sum"), _aggregate("avg"), _aggregate("min")
first, stddev = _aggregate("first"), _aggregate("stddev")
#: Whether the values strictly increase from event to event, and so on.
increasing, decreasing = _set_test("increasing"), _set_test("decreasing")
nondecreasing, nonincreasing = _set_test("nondecreasing"), _set_test("nonincreasing")


def _reference(given: Label | str) -> c.LabelReference:
    if isinstance(given, Label):
        return c.LabelReference(given._name)
    return c.LabelReference(checked_name(given, "a label"))
