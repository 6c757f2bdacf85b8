"""Queries written in Python instead of text; they are the same trees.

::

    from cerflow.builder import event, label, select, window

    hot, dry = label("hot"), label("dry")
    pattern = (event("T").as_(hot) >> event("H").as_(dry)).filter((hot.value > 40) & (hot.id == dry.id))
    query = select(pattern, streams=["readings"], within=window(minutes=10))

Everything is an immutable value; `Expr.tree` is the syntax tree, ``repr`` code that builds the value again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from types import NoneType
from typing import Unpack, overload

from cerflow.base.errors import ArgumentError, QueryError, expect, nearest
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language import select as s
from cerflow.language.builder.common import Expr, WindowArguments, attribute_name, checked_name, window
from cerflow.language.builder.conditions import (
    AnyCondition,
    Label,
    ValueExpr,
    condition_tree,
    label_name,
    require_labels,
)
from cerflow.language.builder.functions import aggregate
from cerflow.language.builder.sremo import SremoExpr
from cerflow.language.event_kinds import written_out
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.parser import parse_formula
from cerflow.language.sremo import Regular, names_told_apart


def _operator(kind: type[_Binary]) -> Callable[[FormulaExpr, FormulaExpr], FormulaExpr]:
    return lambda one, two: FormulaExpr(kind(one.tree, two.tree)) if isinstance(two, FormulaExpr) else NotImplemented


class FormulaExpr(Expr[f.Formula]):
    """A formula; ``>>`` is ``;``, ``|`` is OR, ``&`` is AND, and they bind in this order, as in the text."""

    __slots__ = ()
    _function = "formula"

    __rshift__, __or__, __and__ = _operator(f.Sequence), _operator(f.Disjunction), _operator(f.Conjunction)

    def then(self, other: FormulaExpr) -> FormulaExpr:
        """``φ : ψ``: ψ follows φ without a gap."""
        return self._method(f.StrictSequence, other)

    def all_(self, other: FormulaExpr) -> FormulaExpr:
        """``φ ALL ψ``: both, in any order and interleaved."""
        return self._method(f.All, other)

    def unless(self, other: FormulaExpr) -> FormulaExpr:
        """``φ UNLESS ψ``."""
        return self._method(f.Unless, other)

    def without(self, other: FormulaExpr) -> FormulaExpr:
        """``φ WITHOUT ψ``."""
        return self._method(f.Without, other)

    def not_followed_by(
        self,
        other: FormulaExpr,
        size: int | float | timedelta | None = None,
        attribute: str | None = None,
        **bound: Unpack[WindowArguments],
    ) -> FormulaExpr:
        """``φ NOT FOLLOWED BY ψ FOR window``; after the formula the arguments are those of `window`."""
        return FormulaExpr(f.NotFollowedBy(self.tree, _formula(other), window(size, attribute, **bound)))

    def as_(self, name: Label | str) -> FormulaExpr:
        """``φ AS name``."""
        return FormulaExpr(f.As(self.tree, label_name(name)))

    def rename(self, old: Label | str, new: Label | str) -> FormulaExpr:
        """``φ [old -> new]``."""
        return FormulaExpr(f.Rename(self.tree, label_name(old), label_name(new)))

    def filter(self, condition: AnyCondition) -> FormulaExpr:
        """``φ FILTER condition``; raises QueryError if an attribute outside brackets has no label."""
        return FormulaExpr(f.Filter(self.tree, require_labels(condition_tree(condition))))

    def plus(self) -> FormulaExpr:
        """``φ+``."""
        return FormulaExpr(f.Iteration(self.tree))

    def strict_plus(self) -> FormulaExpr:
        """``φ :+``."""
        return FormulaExpr(f.StrictIteration(self.tree))

    def repeated(self, least: int, most: int | None = None, *, strict: bool = False) -> FormulaExpr:
        """``φ{least,most}``, or with ``strict`` ``φ:{least,most}``; without ``most`` as often as one likes."""
        expect(least, int, "the least number of repetitions must be a whole number")
        expect(most, (int, NoneType), "the greatest number of repetitions must be a whole number or None")
        if least < 0:
            raise ArgumentError(f"the least number of repetitions must not be negative, but is {least}")
        return FormulaExpr(f.Repetition(self.tree, least, most, strict))

    def optional(self) -> FormulaExpr:
        """``φ?``: an operand of a sequence or ALL that may be absent."""
        return FormulaExpr(f.Repetition(self.tree, 0, 1))

    def project(self, *labels: Label | str) -> FormulaExpr:
        """``PROJECT labels (φ)``."""
        if not labels:
            raise ArgumentError("project needs at least one label")
        return FormulaExpr(f.Project(tuple(map(label_name, labels)), self.tree))

    def within(
        self,
        size: int | float | timedelta | None = None,
        attribute: str | None = None,
        **bound: Unpack[WindowArguments],
    ) -> FormulaExpr:
        """``φ WITHIN window``; the arguments are those of `window`."""
        return FormulaExpr(f.Within(self.tree, window(size, attribute, **bound)))

    def _method(self, operator: type[_Binary], other: FormulaExpr) -> FormulaExpr:
        return FormulaExpr(operator(self.tree, _formula(other)))


#: A label, or several.
Labels = Label | str | Iterable[Label | str]
_Binary = f.Sequence | f.Disjunction | f.Conjunction | f.StrictSequence | f.All | f.Unless | f.Without


def event(name: str, stream: str | None = None, *, kind: AnyCondition | None = None) -> FormulaExpr:
    """``name`` or ``stream>name``: one event of that type; with ``kind`` one on which that condition is true.

    ``event("failed", kind=attribute("v") > 1)`` is ``failed`` below ``DEFINE failed AS v > 1``.
    Raises `QueryError` if the condition reads more than the event itself.
    """
    return FormulaExpr(_event_type(name, stream, kind))


def any_event(stream: str | None = None) -> FormulaExpr:
    """``EVENT`` or ``stream>EVENT``: one event of any type."""
    return FormulaExpr(f.AnyEvent(None if stream is None else checked_name(stream, "a stream")))


def not_event(
    name: str, condition: AnyCondition | None = None, *, stream: str | None = None, kind: AnyCondition | None = None
) -> FormulaExpr:
    """``NOT(name FILTER condition)``: one event that is not of that type or kind or does not satisfy the condition."""
    tree = None if condition is None else require_labels(condition_tree(condition))
    return FormulaExpr(f.NotEvent(_event_type(name, stream, kind), tree))


def formula(source: str | SremoExpr) -> FormulaExpr:
    """A formula read from text, or ``SREMO(e)`` of an expression."""
    return FormulaExpr(parse_formula(source) if isinstance(source, str) else _formula(source))


def start(operand: FormulaExpr) -> FormulaExpr:
    """``START(φ)``."""
    return FormulaExpr(f.Start(_formula(operand)))


def strict(operand: FormulaExpr) -> FormulaExpr:
    """``STRICT(φ)``."""
    return FormulaExpr(f.Selection(f.Strategy.STRICT, _formula(operand)))


def next_(operand: FormulaExpr, *, by: Labels = ()) -> FormulaExpr:
    """``NEXT(φ)``; ``NEXT BY x, y (φ)`` with the label or labels ``by``."""
    return FormulaExpr(f.Selection(f.Strategy.NEXT, _formula(operand), _compared(by)))


def any_(operand: FormulaExpr) -> FormulaExpr:
    """``ANY(φ)``."""
    return FormulaExpr(f.Selection(f.Strategy.ANY, _formula(operand)))


@overload
def last(operand: FormulaExpr, *, by: Labels = ()) -> FormulaExpr: ...
@overload
def last(operand: ValueExpr) -> ValueExpr: ...
def last(operand: FormulaExpr | ValueExpr, *, by: Labels = ()) -> FormulaExpr | ValueExpr:
    """``LAST(φ)`` of a formula, ``LAST BY x, y (φ)`` with labels ``by``; of a value ``last(x.a)``, its last one."""
    if isinstance(operand, ValueExpr):
        return _aggregate("last", operand, by)
    return FormulaExpr(f.Selection(f.Strategy.LAST, _formula(operand), _compared(by)))


@overload
def max_(operand: FormulaExpr, *, by: Labels = ()) -> FormulaExpr: ...
@overload
def max_(operand: ValueExpr) -> ValueExpr: ...
def max_(operand: FormulaExpr | ValueExpr, *, by: Labels = ()) -> FormulaExpr | ValueExpr:
    """``MAX(φ)`` of a formula, ``MAX BY x, y (φ)`` with labels ``by``; of a value ``max(x.a)``."""
    if isinstance(operand, ValueExpr):
        return _aggregate("max", operand, by)
    return FormulaExpr(f.Selection(f.Strategy.MAX, _formula(operand), _compared(by)))


def item(name: Label | str, *attributes: str | ValueExpr) -> s.LabelItem:
    """``label`` or ``label[attribute, …]``, an item for `select`; a nested attribute is ``this.device.os``."""
    return s.LabelItem(label_name(name), tuple(attribute_name(a, "an attribute") for a in attributes) or None)


def count_matches(name: str = "count") -> s.CountItem:
    """``COUNT(*) AS name``, an item for `select`."""
    return s.CountItem(checked_name(name, "the name of a computed column"))


def statements(query: s.Select, definitions: Mapping[str, s.Select]) -> s.Statements:
    """``DEFINE name AS SELECT … ; SELECT …`` for `cerflow.Program`: definitions by name, and the query after them."""
    expect(query, s.Select, "a program ends with a query, made by select")
    expect(definitions, Mapping, "the definitions of a program are a dict of queries by name")
    for each in definitions.values():
        expect(each, s.Select, "a definition is a query, made by select")
    found = tuple(s.Definition(checked_name(name, "a definition"), each) for name, each in definitions.items())
    return s.Statements(found, query)


def select(
    pattern: FormulaExpr | SremoExpr,
    *items: Label | str | ValueExpr | s.LabelItem | s.ExpressionItem | s.CountItem,
    events: bool = True,
    strategy: str = "ALL",
    by: Labels = (),
    streams: Iterable[str] = (),
    partition_by: Iterable[str | ValueExpr | Iterable[str | ValueExpr]] = (),
    within: f.Window | None = None,
    consume_by: str = "NONE",
    limit: int | None = None,
) -> s.Select:
    """The query ``SELECT … WHERE pattern …`` (spec §4).

    The pattern is a formula, or an expression e of SREMO for ``SREMO(e)``. ``items`` are labels, `item`, attributes and
    aggregates of them, ``value.as_(name)`` and `count_matches`; none of them means ``*``, and ``events=False`` means
    ``SELECT NONE``. ``"*"`` before values reports the events, too. ``by`` are the labels of
    ``SELECT NEXT BY x, y …``. A key in ``partition_by`` is an attribute (``"id"``, nested
    ``this.device.id``) or alternatives of one key.
    """
    if items and not events:
        raise ArgumentError("SELECT NONE takes no items")
    starred = bool(items) and isinstance(items[0], str) and items[0] == "*"
    items = items[1:] if starred else items
    if starred and not all(isinstance(item, s.ExpressionItem | ValueExpr) for item in items):
        raise ArgumentError("only named values may accompany '*': value.as_('name')")
    listed = s.ProjectionKind.ITEMS if items and not starred else s.ProjectionKind.ALL
    kind = listed if events else s.ProjectionKind.NONE
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
        raise ArgumentError(f"limit must be an integer, not {type(limit).__name__}")
    if limit is not None and not 1 <= limit <= LARGEST_INTEGER:
        raise QueryError("limit must be a positive integer of 64 bits")
    if within is not None and not isinstance(within, f.Window):
        raise ArgumentError("within takes a window: window(minutes=10)")
    for many in (streams, partition_by):
        if isinstance(many, str):
            raise ArgumentError(f"a list of names is expected, not the string {many!r}")
    return s.Select(
        formula=_formula(pattern),
        projection=s.Projection(kind, tuple(map(_item, items))),
        strategy=f.Strategy(_choice(strategy, [*f.Strategy], "strategy")),
        streams=tuple(checked_name(name, "a stream") for name in streams),
        partition=tuple(map(_key, partition_by)),
        window=within,
        consume=s.Consumption(_choice(consume_by, [*s.Consumption], "consumption policy")),
        limit=limit,
        by=_compared(by),
    )


def _compared(by: Labels) -> tuple[c.LabelReference, ...]:
    labels = (by,) if isinstance(by, str | Label) else tuple(by)
    return tuple(c.LabelReference(label_name(each)) for each in labels)


def _aggregate(name: str, operand: ValueExpr, by: Labels) -> ValueExpr:
    if by != ():
        raise ArgumentError(f"{name} of a value compares no matches, so it takes no 'by'")
    return aggregate(name, operand)


def _formula(given: object) -> f.Formula:
    if isinstance(given, SremoExpr):
        return names_told_apart(Regular(given.tree))
    if not isinstance(given, FormulaExpr):
        raise ArgumentError(f"a formula such as event('A') is expected here, not {type(given).__name__}")
    return given.tree


def _event_type(name: str, stream: str | None, kind: AnyCondition | None = None) -> f.EventType:
    name, stream = checked_name(name, "an event type"), None if stream is None else checked_name(stream, "a stream")
    if kind is None:
        return f.EventType(name, stream)
    return f.EventKind(name, stream, condition=written_out(condition_tree(kind), {}))


def _item(
    given: Label | str | ValueExpr | s.LabelItem | s.ExpressionItem | s.CountItem,
) -> s.LabelItem | s.ExpressionItem | s.CountItem:
    if isinstance(given, s.LabelItem | s.ExpressionItem | s.CountItem):
        return given
    if isinstance(given, ValueExpr):
        name = s.column_name(given.tree)
        if name is None:
            raise ArgumentError("a value needs a name to be selected: value.as_('name')")
        return given.as_(name)
    return s.LabelItem(label_name(given))


def _key(given: str | ValueExpr | Iterable[str | ValueExpr]) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str | ValueExpr) else tuple(given)
    if not names:
        raise QueryError("a partition key needs at least one attribute")
    return tuple(attribute_name(name, "an attribute") for name in names)


def _choice(given: str, known: list[str], what: str) -> str:
    word = checked_name(given, f"a {what}").upper()
    if word not in known:
        raise QueryError(f"there is no {what} '{given}'", suggestion=nearest(given, known))
    return word
