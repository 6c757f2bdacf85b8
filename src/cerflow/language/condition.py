"""Conditions and the expressions they compare (spec §3).

In a bracket ``x[…]`` and in the terminals of SREMO an attribute may stand alone; it is then read on the event at
hand and has ``label=None``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from datetime import timedelta
from types import UnionType
from typing import NamedTuple, TypeVar

from cerflow.base.errors import QueryError, QuerySyntaxError, Span
from cerflow.base.nested import joined
from cerflow.base.operators import Operator
from cerflow.base.schema import ValueKind
from cerflow.language.node import N, Node, nested_operands, node, transform, walk

R = TypeVar("R")

#: Parts of timestamps, in the time zone of their column; Monday is weekday 1.
DATE_PARTS = ("year", "month", "day", "hour", "minute", "second", "weekday")
#: Scalar functions of one expression.
FUNCTIONS = ("abs", "floor", "ceil", "round", "lower", "upper", "length", *DATE_PARTS)
#: Scalar functions of several expressions, with the least and the largest number of them (None: any number).
LONGER_FUNCTIONS: dict[str, tuple[int, int | None]] = {"coalesce": (1, None), "substr": (2, 3)}
#: Aggregates over the events of a label.
AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last", "stddev")
#: ``count(distinct e)`` as the name of an aggregate, which nobody can write.
COUNT_DISTINCT = "count distinct"
#: The function without arguments that numbers matches.
MATCH_NUMBER = "match_number"
#: Tests on the events of a label, in the order of their positions.
SET_TESTS = ("increasing", "decreasing", "nondecreasing", "nonincreasing")


class Signature(NamedTuple):
    """The kind that a function or aggregate takes (None: any), and the kind that it gives (None: as its argument).

    FLOAT stands for all numbers as an argument; with ``durations`` a duration is taken, too, and given back.
    """

    takes: ValueKind | None = None
    gives: ValueKind | None = None
    durations: bool = False


_NUMBER, _TEXT, _INTEGER = ValueKind.FLOAT, ValueKind.STRING, ValueKind.INTEGER
#: By the name of the function or aggregate. What `time` gives, the schema says.
SIGNATURES: dict[str, Signature] = {
    **dict.fromkeys(("abs", "sum"), Signature(_NUMBER, durations=True)),
    "avg": Signature(_NUMBER, _NUMBER, durations=True),
    "stddev": Signature(_NUMBER, _NUMBER),
    **dict.fromkeys(("floor", "ceil", "round"), Signature(_NUMBER)),
    **dict.fromkeys(("lower", "upper", "substr", "||"), Signature(_TEXT, _TEXT)),
    "length": Signature(_TEXT, _INTEGER),
    **dict.fromkeys(DATE_PARTS, Signature(ValueKind.TIMESTAMP, _INTEGER)),
    **dict.fromkeys(("position", "count", COUNT_DISTINCT, MATCH_NUMBER), Signature(gives=_INTEGER)),
    **dict.fromkeys(("time", "prev", "coalesce", "min", "max", "first", "last"), Signature()),
}


class Expression(Node):
    """A value computed from events."""


class Rounded(float):
    """A number that was written with more digits than a float can hold."""


@node
class Literal(Expression):
    """A number, string, boolean, duration or NULL.

    ``duration`` is the duration that a number was made from. It is shown instead of the number, and takes no part in
    equality.
    """

    value: int | float | str | bool | timedelta | None
    duration: timedelta | None = field(default=None, kw_only=True, compare=False)


@node
class Attribute(Expression):
    """``label.name``; with ``label=None`` the attribute of the current event.

    The name of a nested attribute is that of `cerflow.base.nested`. ``quoted`` says that a name without label stands
    in double quotes, so that it is not an event kind; ``doubtful`` that in a bracket or terminal of a text the label
    may be the column of a nested attribute.
    """

    label: str | None
    name: str
    quoted: bool = field(default=False, kw_only=True, compare=False)
    doubtful: bool = field(default=False, kw_only=True, compare=False)

    @property
    def as_field(self) -> Attribute:
        """``a.b`` as the field b of the attribute a of the current event."""
        return self if self.label is None else Attribute(None, joined((self.label, self.name)), span=self.span)


@node
class LabelReference(Expression):
    """A label as an argument: ``position(x)``, ``time(x)``, ``count(x)``, ``p(x, y)``; None is the current event."""

    label: str | None


@node
class Arithmetic(Expression):
    """``left op right`` with op one of ``+ - * / %``."""

    operator: str
    left: Expression
    right: Expression


@node
class Negative(Expression):
    """Unary minus."""

    operand: Expression


@node
class Function(Expression):
    """A function of `FUNCTIONS` or `LONGER_FUNCTIONS`, ``position(x)``, ``time(x)`` or ``prev(e)``, in lower case.

    The function called ``||`` joins two strings; that called `MATCH_NUMBER` has no argument and stands in SELECT.
    """

    name: str
    arguments: tuple[Expression, ...]


@node
class Aggregate(Expression):
    """An aggregate of `AGGREGATES` or `COUNT_DISTINCT` over all events of the one label in ``argument``."""

    name: str
    argument: Expression


class Condition(Node):
    """A condition on a complex event, or on an event in a bracket."""


@node
class If(Expression):
    """``CASE WHEN condition THEN then ELSE otherwise END``; further ``WHEN`` are nested in ``otherwise``.

    A condition that is unknown counts as false.
    """

    condition: Condition
    then: Expression
    otherwise: Expression


@node
class TruthValue(Expression):
    """The truth value of a condition as a boolean, null if unknown: a computed column, or a value to be stored."""

    condition: Condition


@node
class Constant(Condition):
    """``TRUE`` or ``FALSE``."""

    value: bool


@node
class Comparison(Condition):
    """``left op right``."""

    operator: Operator
    left: Expression
    right: Expression


@node
class PatternTest(Condition):
    """A test of a string by a pattern, perhaps negated."""

    operand: Expression
    pattern: str
    negated: bool = False


class Like(PatternTest):
    """``operand [NOT] LIKE 'pattern'``: ``%`` any characters, ``_`` one, a backslash takes the next literally."""


class Regexp(PatternTest):
    """``operand [NOT] REGEXP 'pattern'``: the regular expression is found somewhere in the string."""


@node
class In(Condition):
    """``operand [NOT] IN (items)``."""

    operand: Expression
    items: tuple[Literal, ...]
    negated: bool = False


@node
class Between(Condition):
    """``operand [NOT] BETWEEN low AND high``, ``IN {low..high}``, ``IN RANGE(low, high)``; both ends belong to it."""

    operand: Expression
    low: Expression | None
    high: Expression | None
    negated: bool = False


@node
class IsNull(Condition):
    """``operand IS [NOT] NULL``."""

    operand: Expression
    negated: bool = False


@node
class PredicateCall(Condition):
    """``name(x, y.price, …)``: a registered predicate over whole events (labels) and values."""

    name: str
    arguments: tuple[Expression, ...]


@node
class SetTest(Condition):
    """A test of `SET_TESTS` on all events of the one label in ``argument``."""

    name: str
    argument: Expression


@node
class Bracket(Condition):
    """``label[condition]``: the condition is evaluated event by event, with bare attributes read on the event."""

    label: str
    condition: Condition


@node
class Some(Condition):
    """``SOME x, y: condition``: some choice of one event for each label satisfies the condition."""

    labels: tuple[str, ...]
    condition: Condition


@node
class Not(Condition):
    """Negation."""

    operand: Condition


@node
class And(Condition):
    """Conjunction."""

    left: Condition
    right: Condition


@node
class Or(Condition):
    """Disjunction."""

    left: Condition
    right: Condition


def check_arity(
    name: str, count: int, span: Span | None, error: type[QuerySyntaxError | QueryError] = QuerySyntaxError
) -> None:
    """Raise an error if a function, aggregate or test of sets has another number of arguments than it takes."""
    least, most = LONGER_FUNCTIONS.get(name, (0, 0) if name == MATCH_NUMBER else (1, 1))
    if count < least or (most is not None and count > most):
        one = "a label" if name in ("position", "time") else "one argument"
        takes = {0: "no argument", 1: one}.get(least if least == most else -1, f"{least} or {most} arguments")
        takes = f"at least {least} arguments" if most is None else takes
        raise error(f"{name} takes {takes}, but {count or 'nothing'} {'are' if count else 'is'} given", span=span)


def comparisons(condition: Node) -> list[Comparison]:
    """The comparisons that IN joins by OR and BETWEEN by AND, before negation; a comparison itself; none of others."""
    match condition:
        case Comparison():
            return [condition]
        case In(operand, items):
            return [Comparison(Operator.EQ, operand, item, span=item.span) for item in items]
        case Between(operand, low, high):
            ends = ((Operator.GE, low), (Operator.LE, high))
            return [Comparison(sign, operand, end, span=end.span) for sign, end in ends if end is not None]
    return []


def operands(condition: Condition, connectives: type | UnionType) -> list[Condition]:
    """The distinct conditions that nested connectives of some kinds combine, from left to right."""
    return list(dict.fromkeys(nested_operands(condition, connectives)))


def combined(
    condition: Condition,
    atom: Callable[[Condition, bool], R],
    join: Callable[[type[And | Or], list[R]], R],
    atomic: Callable[[Condition, bool], bool] = lambda current, _: not isinstance(current, And | Or | Not),
) -> R:
    """Compute a value for what AND, OR and NOT combine, bottom-up.

    NOT is pushed inwards: the atoms come with False below an odd number of NOTs, where AND and OR change places.
    ``join`` gets the values of all that nested ANDs combine, or nested ORs. ``atomic`` says what else is an atom.
    """
    done: list[R] = []
    # With the AND or OR around each; None joins the values from some place on.
    stack: list[tuple[Condition | None, bool, type[And | Or] | None, int]] = [(condition, True, None, 0)]
    while stack:
        current, positive, around, begin = stack.pop()
        if current is None:
            assert around is not None
            done[begin:] = [join(around, done[begin:])]
        elif atomic(current, positive):
            done.append(atom(current, positive))
        elif isinstance(current, Not):
            stack.append((current.operand, not positive, around, 0))
        else:
            assert isinstance(current, And | Or)
            sign: type[And | Or] = And if isinstance(current, And) == positive else Or
            if sign is not around:
                stack.append((None, True, sign, len(done)))
            stack += [(current.right, positive, sign, 0), (current.left, positive, sign, 0)]
    return done[0]


def with_labels(tree: N, label: Callable[[str | None], str | None]) -> N:
    """The condition or expression with ``label`` of each label; None is the current event, which no bracket names."""

    def visit(current: Node) -> Node:
        match current:
            case Attribute(own, name) if label(own) != own:
                return Attribute(label(own), name, span=current.span)
            case LabelReference(own) if label(own) != own:
                return LabelReference(label(own), span=current.span)
            case Bracket(own, condition) if label(own) != own:
                return Bracket(label(own) or own, condition, span=current.span)
            case Some(labels, condition):
                return Some(tuple(label(own) or own for own in labels), condition, span=current.span)
        return current

    return transform(tree, visit)


def calls(tree: Node, name: str) -> bool:
    """Whether a tree calls a function: `MATCH_NUMBER` for the numbers of matches, ``prev`` for the event before."""
    return any(isinstance(current, Function) and current.name == name for current in walk(tree))
