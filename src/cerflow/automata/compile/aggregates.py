"""The row that a register keeps for each aggregate and test on sets (spec §3), updated event by event.

The value of an aggregate is computed from a row of a register. The first event of the label *starts* the row, every
other event takes a *step*, and at the end the row is *finished*. Nulls do not count, and numbers are added in the order
of positions. Integers may leave 64 bits on the way if the final sum does not. The standard deviation follows Welford's
recurrence on the distances from the first value, so it differs from the mean of squares by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from cerflow.base.errors import UnsupportedQueryError
from cerflow.base.operators import Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, rebuild, walk, with_children
from cerflow.language.predicates.registry import calls_of_sets
from cerflow.logic.analysis.scopes import condition_labels
from cerflow.logic.conditions import guards
from cerflow.logic.conditions.register_values import DatePart, Joined, Known, SquareRoot, Word

Row = tuple[c.Expression, ...]

#: For each comparison, the aggregates of both sets that satisfy it if any of their values do.
_BOUNDS = {
    **dict.fromkeys((Operator.LT, Operator.LE), ("min", "max")),
    **dict.fromkeys((Operator.GT, Operator.GE), ("max", "min")),
}
_SELECTING = ("min", "max", "first", "last")
_ZERO, _ONE, _NULL = c.Literal(0), c.Literal(1), c.Literal(None)
_sum, _difference = partial(c.Arithmetic, "+"), partial(c.Arithmetic, "-")


def gather(condition: c.Condition, one: Container[str]) -> c.Condition:
    """Replace aggregates and tests on sets by `LabelAggregate` leaves, and predicates of sets by `Asked` leaves.

    Labels in ``one`` have exactly one event; there the condition on that event takes the place of the aggregate.
    """
    of_sets = calls_of_sets()

    def visit(current: Node, children: Sequence[Node]) -> Node:
        rebuilt = with_children(current, children)
        match rebuilt:
            case c.Aggregate(name, argument):
                label = _label_of(argument)
                if label in one:
                    return alone(name, argument)
                if name == c.COUNT_DISTINCT:
                    raise UnsupportedQueryError(
                        "count(distinct …) needs all values of the events of a label, and registers do not hold them",
                        span=current.span,
                        hint="Compute it in SELECT, or ask a predicate of the whole set: of_set=True.",
                    )
                return _gathered(name, label, argument)
            case c.SetTest(name, argument):
                label = _label_of(argument)
                if label in one:
                    # True, but unknown for null.
                    return c.Comparison(Operator.EQ, argument, argument)
                return c.Comparison(Operator.EQ, _gathered(name, label, argument), c.Literal(True))
            case c.PredicateCall() if rebuilt.name in of_sets:
                return _asked(rebuilt, one)
            case c.Function("lower" | "upper" | "length" | "substr") | DatePart() | c.Like() | c.Regexp():
                return _inside(rebuilt)
        return rebuilt

    return rebuild(guards.without_brackets(condition), visit)


def between_bounds(some: c.Some) -> c.Condition | None:
    """``SOME x, y: x.a < y.b`` as ``min(x.a) < max(y.b)``, which needs no choice; None for other forms."""
    condition = some.condition
    if not isinstance(condition, c.Comparison) or condition.operator not in _BOUNDS:
        return None
    labels = [list(condition_labels(side)) for side in (condition.left, condition.right)]
    if any(len(names) != 1 for names in labels) or labels[0] == labels[1]:
        return None
    left, right = _BOUNDS[condition.operator]
    return c.Comparison(condition.operator, c.Aggregate(left, condition.left), c.Aggregate(right, condition.right))


def _asked(call: c.PredicateCall, one: Container[str]) -> c.Condition:
    """A predicate of sets as an `Asked` leaf; as a condition on single events if all its labels have one event."""
    read = [next(iter(condition_labels(argument)), None) for argument in call.arguments]
    labels = dict.fromkeys(label for label in read if label is not None)
    gathered = tuple(label for label in labels if label not in one)
    if not gathered and len(labels) == 1:
        return call
    numbers = {label: k for k, label in enumerate([*gathered, *(n for n in labels if n in one)])}
    sets = tuple(-1 if label is None else numbers[label] for label in read)
    given = tuple(guards.bare(a) if k < len(gathered) else a for a, k in zip(call.arguments, sets))
    if not gathered:
        return guards.SetCall(call.name, call.arguments, sets, 0, None, 0)
    return c.Comparison(Operator.EQ, guards.Asked(call.name, gathered, given, sets), c.Literal(True))


def _label_of(argument: Node) -> str:
    """The only label that an aggregate or a test on a set reads."""
    labels = (n.label for n in walk(argument) if isinstance(n, c.Attribute | c.LabelReference))
    label = next(labels)
    assert label is not None
    return label


def _gathered(name: str, label: str, argument: c.Expression) -> guards.LabelAggregate:
    own = guards.bare(argument)
    return guards.LabelAggregate(name, label, own, own)


def _inside(function: Node) -> Node:
    """A function of strings on an aggregate, moved inside: applied to each event's value instead.

    Other aggregates give no strings; NULL in their place stays null.
    """
    operand, *others = function.children
    if not isinstance(operand, guards.LabelAggregate) or any(map(guards.reads_events, others)):
        return function
    applied = with_children(function, [operand.value, *others])
    value = c.TruthValue(applied) if isinstance(applied, c.Condition) else cast(c.Expression, applied)
    moved = replace(operand, value=value) if operand.name in _SELECTING else _NULL
    return c.Comparison(Operator.EQ, moved, c.Literal(True)) if isinstance(function, c.Condition) else moved


def alone(name: str, argument: c.Expression) -> c.Expression:
    """The value of an aggregate over one event."""
    match name:
        case "count" | "count distinct":
            return _ONE if isinstance(argument, c.LabelReference) else Known(argument)
        case "avg":
            return c.Arithmetic("/", argument, _ONE)
        case "stddev":
            return _NULL
    return argument


@dataclass(frozen=True)
class Accumulator:
    """How the row of a register is started, updated by an event, and finished."""

    start: Row
    step: Callable[[Row], Row]
    finish: Callable[[Row], c.Expression]


def accumulator(gathered: guards.LabelAggregate, most: int | None = None) -> Accumulator:
    """The accumulator of an aggregate; for a test on a set it remembers the latest value.

    A count may stop at ``most`` if greater counts make no difference.
    """
    argument, value = gathered.argument, gathered.value
    match gathered.name:
        case "count":
            return _counted(alone("count", argument), most)
        case "sum":
            return _summed(argument, lambda known: c.If(c.IsNull(argument), known, _ONE), lambda total, _: total)
        case "avg":
            return _summed(
                argument,
                lambda count: _sum(count, Known(argument)),
                lambda total, count: c.Arithmetic("/", total, count),
                floating=True,
            )
        case "stddev":
            return _deviation(argument)
        case "min" | "max":
            better = Operator.LT if gathered.name == "min" else Operator.GT
            return _best(better, tuple(dict.fromkeys((argument, value))))
        case "first":
            return Accumulator((value,), lambda former: former, _last)
        case "last":
            return Accumulator((value,), lambda _: (value,), _last)
    return Accumulator((argument,), lambda _: (argument,), _last)


def _last(row: Row) -> c.Expression:
    return row[-1]


def _counted(one: c.Expression, most: int | None) -> Accumulator:
    def step(former: Row) -> Row:
        more = _sum(former[0], one)
        return (more if most is None else c.If(c.Comparison(Operator.LT, former[0], c.Literal(most)), more, former[0]),)

    return Accumulator((one,), step, _last)


def _summed(
    argument: c.Expression,
    counted: Callable[[c.Expression], c.Expression],
    finish: Callable[[c.Expression, c.Expression], c.Expression],
    *,
    floating: bool = False,
) -> Accumulator:
    """A sum in two words, and (a bound on) the number of non-null values; the result without any is null."""
    high, low = Word(argument, True), Word(argument, False)
    return Accumulator(
        (high, low, Known(argument)),
        lambda former: (_sum(former[0], high), _sum(former[1], low), counted(former[2])),
        lambda row: c.If(
            c.Comparison(Operator.GT, row[2], _ZERO), finish(Joined(row[0], row[1], floating), row[2]), _NULL
        ),
    )


def _best(better: Operator, row: Row) -> Accumulator:
    """The row with the best first value so far."""

    def step(former: Row) -> Row:
        replaced = c.Or(c.IsNull(former[0]), guards.Satisfied(c.Comparison(better, row[0], former[0])))
        return tuple(c.If(replaced, new, old) for new, old in zip(row, former))

    return Accumulator(row, step, _last)


def _deviation(argument: c.Expression) -> Accumulator:
    """Number of values, the first of them; of the distances from it their mean and their squares around that."""
    value = c.Arithmetic("*", argument, c.Literal(1.0))
    missing = c.IsNull(argument)

    def step(former: Row) -> Row:
        count, origin, mean, squares = former
        more = _sum(count, Known(argument))
        begin = c.If(c.IsNull(origin), value, origin)
        away = _difference(value, begin)
        after = _sum(mean, c.Arithmetic("/", _difference(away, mean), more))
        around = c.Arithmetic("*", _difference(away, mean), _difference(away, after))
        return (more, begin, c.If(missing, mean, after), c.If(missing, squares, _sum(squares, around)))

    def finish(row: Row) -> c.Expression:
        variance = c.Arithmetic("/", row[3], _difference(row[0], _ONE))
        return c.If(c.Comparison(Operator.GT, row[0], _ONE), SquareRoot(variance), _NULL)

    return Accumulator((Known(argument), value, c.Literal(0.0), c.Literal(0.0)), step, finish)
