"""Functions that the Python builders of conditions, formulas and SREMO share."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Generic, NoReturn, TypedDict, TypeVar

from cerflow.base.errors import ArgumentError, QueryError
from cerflow.base.units import DURATION_UNITS
from cerflow.language.condition import Attribute, Expression
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Window
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import Node
from cerflow.language.printer import show

T = TypeVar("T", bound=Node)


class Expr(Generic[T]):
    """An immutable value around a syntax tree, with operators that give larger ones.

    ``repr`` is Python code that builds the value again. There is no truth value: ``and``, ``or`` and ``not`` cannot be
    overloaded, so they raise an error instead of quietly dropping one side.
    """

    __slots__ = ("_tree",)
    _tree: T

    def __init__(self, tree: T) -> None:
        object.__setattr__(self, "_tree", tree)

    @property
    def tree(self) -> T:
        """The syntax tree, the same that the parser gives for the text."""
        return self._tree

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expr):
            return NotImplemented
        return type(self) is type(other) and self._tree == other._tree

    def __hash__(self) -> int:
        return hash(self._tree)

    def __bool__(self) -> NoReturn:
        raise ArgumentError(
            "this has no truth value before events are matched: use & | ~ and not `and`, `or`, `not`, with comparisons "
            "in parentheses, and write a < b < c as (a < b) & (b < c)"
        )

    def __reduce__(self) -> tuple[type[Expr[T]], tuple[T]]:
        return type(self), (self._tree,)

    def __repr__(self) -> str:
        return f"{type(self)._function}({show(self._tree)!r})"

    def __str__(self) -> str:
        return show(self._tree)

    #: Name of the function that reads the text.
    _function = "Expr"


def checked_name(name: object, what: str) -> str:
    """The name, if it is a string that is not empty; else an error that says ``what`` it should name."""
    if not isinstance(name, str):
        raise ArgumentError(f"{what} must be a string, not {type(name).__name__}")
    if not name:
        raise QueryError(f"{what} cannot be empty")
    return name


def attribute_name(given: object, what: str) -> str:
    """The name of an attribute: a string that names a column, or ``this.device.os``, which may be nested."""
    tree = given.tree if isinstance(given, Expr) else None
    return tree.name if isinstance(tree, Attribute) and tree.label is None else checked_name(given, what)


class WindowArguments(TypedDict, total=False):
    """The keywords of `window`."""

    events: int | None
    days: int | float
    hours: int | float
    minutes: int | float
    seconds: int | float
    milliseconds: int | float


def window(
    size: int | float | timedelta | None = None,
    attribute: str | Expr[Expression] | None = None,
    *,
    events: int | None = None,
    days: int | float = 0,
    hours: int | float = 0,
    minutes: int | float = 0,
    seconds: int | float = 0,
    milliseconds: int | float = 0,
) -> Window:
    """A window: ``window(events=5)``, ``window(minutes=10)``, ``window(timedelta(…))`` or ``window(500, "attribute")``.

    A nested attribute is ``this.device.at``.

    Raises QueryError if it is not larger than zero, not a whole number of microseconds, or too large.
    """
    amounts = (days, hours, minutes, seconds, milliseconds)
    given = (events is not None) + any(amount != 0 for amount in amounts) + (size is not None)
    if given != 1 or (attribute is not None and size is None):
        raise ArgumentError("give one of these: events=…, a duration, or a size and the name of an attribute")
    if events is not None:
        if isinstance(events, bool) or not isinstance(events, int):
            raise ArgumentError(f"events must be an integer, not {type(events).__name__}")
        return CountWindow(_positive(events))
    if isinstance(size, timedelta):
        if attribute is not None:
            raise ArgumentError("a timedelta takes no attribute")
        return DurationWindow(_positive(size // timedelta(microseconds=1)))
    if size is not None:
        if attribute is None:
            raise ArgumentError("a number needs the name of an attribute: window(500, 'stock_time')")
        if isinstance(size, bool) or not isinstance(size, int | float):
            raise ArgumentError(f"the size of a window must be a number, not {type(size).__name__}")
        plain = int(size) if isinstance(size, int) else float(size)
        return AttributeWindow(_positive(plain), attribute_name(attribute, "the attribute of a window"))
    # A float stands for the decimal it is written as: 0.1 means one tenth.
    total = sum(
        (Fraction(str(_finite(n))) * factor for n, factor in zip(amounts, DURATION_UNITS.values())), Fraction(0)
    )
    if total.denominator != 1:
        raise QueryError("a duration must be a whole number of microseconds")
    return DurationWindow(_positive(total.numerator))


N = TypeVar("N", int, float)


def _finite(number: N) -> N:
    if not -LARGEST_INTEGER <= number <= LARGEST_INTEGER:
        raise QueryError("a window must be a finite number within 64 bits")
    return number


def _positive(number: N) -> N:
    if not number > 0:
        raise QueryError("a window must be larger than zero")
    if isinstance(number, int) and number > LARGEST_INTEGER:
        raise QueryError("a window must fit into 64 bits")
    if number == float("inf"):
        raise QueryError("a window must be finite")
    return number
