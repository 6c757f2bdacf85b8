"""Conditions and values written in Python: ``x = label("x")``, ``(x.price > 10) & x.name.like("A%")``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, NoReturn, TypeAlias, TypeVar

from cerflow.base.errors import ArgumentError, QueryError, did_you_mean, expect, nearest
from cerflow.base.nested import joined, parts_of
from cerflow.base.operators import Operator
from cerflow.base.text_patterns import check_like, check_regexp
from cerflow.language import condition as c
from cerflow.language.builder.common import Expr, checked_name
from cerflow.language.grammar.grammars import refuse_surrogates
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import N, walk, walk_into
from cerflow.language.parser import parse_condition, parse_expression
from cerflow.language.select import ExpressionItem

#: An operator whose left side is a value; it is a method of values.
_Operator: TypeAlias = "Callable[[ValueExpr, AnyValue], T]"
_Connective: TypeAlias = "Callable[[ConditionExpr, AnyCondition], ConditionExpr]"
T = TypeVar("T")

#: What is written here for methods of other libraries that are called otherwise.
_INSTEAD = {
    **dict.fromkeys(("contains", "startswith", "starts_with", "endswith", "ends_with"), "write like('%abc%')"),
    **dict.fromkeys(("eq", "equals", "ne", "lt", "le", "gt", "ge"), "write ==, !=, <, <=, > or >="),
    **dict.fromkeys(("isnan", "is_nan", "isna", "isnull"), "write is_null(); NaN counts as null"),
    **dict.fromkeys(("notna", "notnull"), "write is_not_null()"),
    **dict.fromkeys(("in_", "is_in"), "write isin([…])"),
    "alias": "write as_('name')",
    "len": "write length()",
}


def _arithmetic(sign: str) -> tuple[_Operator[ValueExpr], _Operator[ValueExpr]]:
    """``value sign other``, and ``other sign value``."""
    return (
        lambda one, other: ValueExpr(c.Arithmetic(sign, one.tree, _value(other))),
        lambda one, other: ValueExpr(c.Arithmetic(sign, _value(other), one.tree)),
    )


def _comparison(operator: Operator) -> _Operator[ConditionExpr]:
    def compare(one: ValueExpr, other: AnyValue) -> ConditionExpr:
        if other is None:
            raise ArgumentError(
                "a comparison with None is never true, as null is unknown: write value.is_null() or value.is_not_null()"
            )
        return ConditionExpr(c.Comparison(operator, one.tree, _value(other)))

    return compare


def _connective(kind: type[c.And | c.Or]) -> tuple[_Connective, _Connective]:
    """``condition sign other``, and ``other sign condition``."""
    return (
        lambda one, other: ConditionExpr(kind(one.tree, condition_tree(other))),
        lambda one, other: ConditionExpr(kind(condition_tree(other), one.tree)),
    )


def _function_of(name: str) -> Callable[[ValueExpr], ValueExpr]:
    def call(value: ValueExpr) -> ValueExpr:
        return ValueExpr(c.Function(name, (value.tree,)))

    call.__doc__ = f"``{name}(value)``."
    return call


class ValueExpr(Expr[c.Expression]):
    """A value computed from events; comparisons give conditions, also ``==`` and ``!=``.

    Of an attribute, ``x.device.os`` and ``x.device["os"]`` are fields; one that is called as a method here, such as
    ``lower``, is ``x.device["lower"]``.
    """

    __slots__ = ()
    __iter__ = None
    _function = "value"
    __hash__ = None  # type: ignore[assignment]  # == gives a condition, so values cannot be keys

    def __getattr__(self, name: str) -> ValueExpr:
        if name.startswith("_") or not isinstance(self.tree, c.Attribute):
            # Python looks for many names with an underscore by itself.
            raise AttributeError(name if name[:1] == "_" else _no_method(name), name=name, obj=self)
        return self[name]

    def __call__(self, *arguments: object, **named: object) -> NoReturn:
        """Refuse a method that there is not, which is taken for a field."""
        name = parts_of(self.tree.name)[-1] if isinstance(self.tree, c.Attribute) else None
        raise ArgumentError("a value cannot be called" if name is None else _no_method(name))

    def __getitem__(self, name: str) -> ValueExpr:
        if not isinstance(self.tree, c.Attribute):
            raise ArgumentError("only an attribute has fields, as in x.device['os']")
        return ValueExpr(c.Attribute(self.tree.label, joined((self.tree.name, checked_name(name, "a field")))))

    __add__, __radd__ = _arithmetic("+")
    __sub__, __rsub__ = _arithmetic("-")
    __mul__, __rmul__ = _arithmetic("*")
    __truediv__, __rtruediv__ = _arithmetic("/")
    __mod__, __rmod__ = _arithmetic("%")

    def __neg__(self) -> ValueExpr:
        return ValueExpr(c.Negative(self.tree))

    __eq__, __ne__ = _comparison(Operator.EQ), _comparison(Operator.NE)  # type: ignore[assignment]
    __lt__, __le__ = _comparison(Operator.LT), _comparison(Operator.LE)
    __gt__, __ge__ = _comparison(Operator.GT), _comparison(Operator.GE)

    def like(self, pattern: str, *, negated: bool = False) -> ConditionExpr:
        """``value [NOT] LIKE pattern``: ``%`` any characters, ``_`` one, a backslash takes the next literally."""
        check_like(_text(pattern))
        return ConditionExpr(c.Like(self.tree, pattern, negated))

    def regexp(self, pattern: str, *, negated: bool = False) -> ConditionExpr:
        """``value [NOT] REGEXP pattern``; raises QueryError if the regular expression cannot be read."""
        check_regexp(_text(pattern))
        return ConditionExpr(c.Regexp(self.tree, pattern, negated))

    def isin(
        self, items: Iterable[int | float | str | bool | timedelta | None], *, negated: bool = False
    ) -> ConditionExpr:
        """``value [NOT] IN (items)``."""
        if isinstance(items, str):
            raise ArgumentError("isin takes a collection of values, not one string")
        expect(items, Iterable, "isin takes a collection of values")
        return ConditionExpr(c.In(self.tree, tuple(_literal(item) for item in items), negated))

    def between(
        self, low: AnyValue | None = None, high: AnyValue | None = None, *, negated: bool = False
    ) -> ConditionExpr:
        """``value [NOT] BETWEEN low AND high``, both ends included; an end that is None is open."""
        lower, upper = (None if end is None else _value(end) for end in (low, high))
        return ConditionExpr(c.Between(self.tree, lower, upper, negated))

    def is_null(self) -> ConditionExpr:
        """``value IS NULL``."""
        return ConditionExpr(c.IsNull(self.tree))

    def is_not_null(self) -> ConditionExpr:
        """``value IS NOT NULL``."""
        return ConditionExpr(c.IsNull(self.tree, negated=True))

    abs, floor, ceil, round = _function_of("abs"), _function_of("floor"), _function_of("ceil"), _function_of("round")
    lower, upper, length = _function_of("lower"), _function_of("upper"), _function_of("length")

    def substr(self, first: AnyValue, length: AnyValue | None = None) -> ValueExpr:
        """``substr(value, first[, length])``: characters from the first-th on, counted from 1."""
        places = (first,) if length is None else (first, length)
        return ValueExpr(c.Function("substr", (self.tree, *map(_value, places))))

    def concat(self, other: AnyValue) -> ValueExpr:
        """``value || other``: two strings, one after the other."""
        return ValueExpr(c.Function("||", (self.tree, _value(other))))

    def date_part(self, part: str) -> ValueExpr:
        """``year(value)``, ``month``, ``day``, ``hour``, ``minute``, ``second`` or ``weekday`` (Monday is 1)."""
        if part not in c.DATE_PARTS:
            raise QueryError(f"there is no part '{part}' of a date", suggestion=nearest(part, c.DATE_PARTS))
        return _function_of(part)(self)

    def coalesce(self, *others: AnyValue) -> ValueExpr:
        """``coalesce(value, …)``: the first value that is not null."""
        return ValueExpr(c.Function("coalesce", (self.tree, *map(_value, others))))

    def as_(self, name: str) -> ExpressionItem:
        """``value AS name``, an item for `select`."""
        require_labels(self.tree)
        return ExpressionItem(self.tree, checked_name(name, "the name of a computed column"))


def _no_method(name: str) -> str:
    methods = [method for method in vars(ValueExpr) if method[0] != "_"]
    instead = _INSTEAD.get(name.lower())
    return f"a value has no method '{name}'" + (f": {instead}" if instead else did_you_mean(name, methods, "methods"))


class ConditionExpr(Expr[c.Condition]):
    """A condition; ``&``, ``|`` and ``~`` are AND, OR and NOT."""

    __slots__ = ()
    _function = "condition"

    __and__, __rand__ = _connective(c.And)
    __or__, __ror__ = _connective(c.Or)

    def __invert__(self) -> ConditionExpr:
        return ConditionExpr(c.Not(self.tree))

    def as_(self, name: str) -> ExpressionItem:
        """``(condition) AS name``, a boolean column for `select`."""
        return ValueExpr(c.TruthValue(self.tree)).as_(name)


#: Arguments that are accepted as values.
AnyValue: TypeAlias = "ValueExpr | int | float | str | bool | timedelta | None"
#: Arguments that are accepted as conditions.
AnyCondition: TypeAlias = "ConditionExpr | c.Condition | bool"


class Label:
    """A label: ``x.price`` and ``x["price"]`` are attributes of its events, ``x[condition]`` is a bracket."""

    __slots__ = ("_name",)
    _name: str | None

    def __init__(self, name: str | None) -> None:
        object.__setattr__(self, "_name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a label is immutable")

    def __getattr__(self, name: str) -> ValueExpr:
        if name.startswith("_"):
            # Python looks for many such names by itself; an attribute like that is x["_name"].
            raise AttributeError(name)
        return ValueExpr(c.Attribute(self._name, name))

    def __getitem__(self, key: str | AnyCondition) -> Any:
        if isinstance(key, str):
            return ValueExpr(c.Attribute(self._name, checked_name(key, "an attribute")))
        inside = inner_condition(key)
        if self._name is None:
            raise ArgumentError("a bracket needs a label: the current event has none")
        return ConditionExpr(c.Bracket(self._name, inside))

    __iter__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Label) and self._name == other._name

    def __hash__(self) -> int:
        return hash(("label", self._name))

    def __reduce__(self) -> tuple[type[Label], tuple[str | None]]:
        return Label, (self._name,)

    def __repr__(self) -> str:
        return "this" if self._name is None else f"label({self._name!r})"


#: The current event, inside brackets and in SREMO: ``this.price`` is an attribute without a label.
this = Label(None)


def label(name: str) -> Label:
    """A label to write conditions with: ``x = label("x")``, then ``x.price > 10``."""
    return Label(checked_name(name, "a label"))


def attribute(name: str) -> ValueExpr:
    """An attribute of the current event, for ``x[…]`` and SREMO; the same as ``this[name]``."""
    return ValueExpr(c.Attribute(None, checked_name(name, "an attribute")))


def literal(value: int | float | str | bool | timedelta | None) -> ValueExpr:
    """A number, string, boolean, duration or NULL as a value.

    It is needed only where Python sees no other value to operate with.
    """
    return ValueExpr(_literal(value))


def case(*branches: tuple[AnyCondition, AnyValue], otherwise: AnyValue = None) -> ValueExpr:
    """``CASE WHEN c THEN a WHEN d THEN b ELSE e END`` is ``case((c, a), (d, b), otherwise=e)``."""
    if not branches or not all(isinstance(branch, tuple) and len(branch) == 2 for branch in branches):
        raise ArgumentError("case takes pairs of a condition and a value, as in case((x.price > 10, 'high'))")
    tree = _value(otherwise)
    for condition, chosen in reversed(branches):
        tree = c.If(condition_tree(condition), _value(chosen), tree)
    return ValueExpr(tree)


def true() -> ConditionExpr:
    """``TRUE``."""
    return ConditionExpr(c.Constant(True))


def false() -> ConditionExpr:
    """``FALSE``."""
    return ConditionExpr(c.Constant(False))


def some(*labels: Label | str) -> Callable[[AnyCondition], ConditionExpr]:
    """``SOME x, y: c`` is ``some(x, y)(c)``: some choice of one event for each label satisfies the condition."""
    if not labels:
        raise ArgumentError("some takes the labels of which events are chosen, as in some(x)(x.price > 10)")
    names = tuple(map(label_name, labels))
    return lambda inside: ConditionExpr(c.Some(names, require_labels(condition_tree(inside))))


def label_name(given: Label | str) -> str:
    """The name of a label, which may be given as a string."""
    if isinstance(given, Label) and given._name is None:
        raise ArgumentError("a label is needed here: the current event has none")
    return checked_name(given._name if isinstance(given, Label) else given, "a label")


def condition(text: str) -> ConditionExpr:
    """A condition read from text; attributes may stand without a label, for use in ``x[…]`` and SREMO."""
    return ConditionExpr(parse_condition(text, bare_attributes=True))


def value(text: str) -> ValueExpr:
    """A value read from text, as `condition`."""
    return ValueExpr(parse_expression(text, bare_attributes=True))


def condition_tree(given: AnyCondition) -> c.Condition:
    """The syntax tree of an argument that is accepted as a condition; raises TypeError for others."""
    if isinstance(given, bool):
        return c.Constant(given)
    if isinstance(given, ConditionExpr):
        return given.tree
    if isinstance(given, c.Condition):
        return given
    raise ArgumentError(f"a condition is expected here, not {type(given).__name__}")


def inner_condition(given: AnyCondition) -> c.Condition:
    """The syntax tree of a condition for a bracket or terminal; raises QueryError if it has a bracket itself."""
    tree = condition_tree(given)
    if any(isinstance(node, c.Bracket) for node in walk(tree)):
        raise QueryError("brackets cannot be nested")
    return tree


def require_labels(tree: N) -> N:
    """The condition or value, if all its attributes outside brackets have labels; else QueryError."""
    for found in walk_into(tree, lambda node: not isinstance(node, c.Bracket)):
        if isinstance(found, c.Attribute) and found.label is None:
            raise QueryError(f"the attribute '{found.name}' needs a label here")
        if isinstance(found, c.LabelReference) and found.label is None:
            raise QueryError("there is no current event outside a bracket")
    return tree


def _text(pattern: str) -> str:
    if not isinstance(pattern, str):
        raise ArgumentError(f"a pattern must be a string, not {type(pattern).__name__}")
    return pattern


def _literal(given: int | float | str | bool | timedelta | None) -> c.Literal:
    if given is not None and not isinstance(given, int | float | str | bool | timedelta):
        raise ArgumentError(
            f"a number, string, boolean, timedelta or None is expected here, not {type(given).__name__}"
        )
    if isinstance(given, timedelta):
        microseconds = given // timedelta(microseconds=1)
        if abs(microseconds) > LARGEST_INTEGER:
            raise QueryError(f"the microseconds of the duration {given} do not fit into 64 bits")
        return c.Literal(timedelta(microseconds=microseconds))
    if isinstance(given, int) and not -LARGEST_INTEGER - 1 <= given <= LARGEST_INTEGER:
        raise QueryError(f"the integer {given} does not fit into 64 bits")
    if isinstance(given, float) and not abs(given) < float("inf"):
        raise QueryError("a query cannot hold a number that is infinite or not a number")
    if isinstance(given, str):
        refuse_surrogates(given)
    # Subclasses, such as NumPy's float64, become the plain types that the parser gives.
    for kind in (bool, int, float, str):
        if isinstance(given, kind):
            return c.Literal(kind(given))
    return c.Literal(None)


def _value(given: AnyValue) -> c.Expression:
    return given.tree if isinstance(given, ValueExpr) else _literal(given)
