"""The row that a register keeps for each aggregate and test on sets (spec §3), updated event by event.

The value of an aggregate is computed from a row of a register. The first event of the label *starts* the row, every
other event takes a *step*, and at the end the row is *finished*. Nulls do not count, and numbers are added in the order
of positions. Integers may leave 64 bits on the way if the final sum does not. The standard deviation follows Welford's
recurrence on the distances from the first value, so it differs from the mean of squares by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from cerflow.analysis.scopes import condition_labels
from cerflow.conditions.guards import (
    Asked,
    LabelAggregate,
    Satisfied,
    SetCall,
    bare,
    reads_events,
    without_brackets,
)
from cerflow.conditions.register_values import DatePart, Joined, Known, SquareRoot, Word
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import (
    COUNT_DISTINCT,
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    Condition,
    Expression,
    Function,
    If,
    IsNull,
    LabelReference,
    Like,
    Literal,
    Or,
    PredicateCall,
    Regexp,
    SetTest,
    Some,
    TruthValue,
)
from cerflow.language.node import Node, fold, transform, walk, with_children
from cerflow.predicates.registry import calls_of_sets
from cerflow.values.operators import Operator

__all__ = ["Accumulator", "accumulator", "alone", "between_bounds", "gather", "value_of_no_events", "without_some"]

Row = tuple[Expression, ...]

#: For each comparison, the aggregates of both sets that satisfy it if any of their values do.
_BOUNDS = {
    Operator.LT: ("min", "max"),
    Operator.LE: ("min", "max"),
    Operator.GT: ("max", "min"),
    Operator.GE: ("max", "min"),
}
_SELECTING = ("min", "max", "first", "last")
_ZERO, _ONE, _NULL = Literal(0), Literal(1), Literal(None)


def gather(condition: Condition, one: Container[str]) -> Condition:
    """Replace aggregates and tests on sets by `LabelAggregate` leaves, and predicates of sets by `Asked` leaves.

    Labels in ``one`` have exactly one event; there the condition on that event takes the place of the aggregate.
    """
    of_sets = calls_of_sets()

    def visit(current: Node, children: list[Node]) -> Node:
        rebuilt = with_children(current, children)
        match rebuilt:
            case Aggregate(name, argument):
                label = _label_of(argument)
                if label in one:
                    return alone(name, argument)
                if name == COUNT_DISTINCT:
                    raise UnsupportedQueryError(
                        "count(distinct …) needs all values of the events of a label, and registers do not hold them",
                        span=current.span,
                        hint="Compute it in SELECT, or ask a predicate of the whole set: of_set=True.",
                    )
                return _gathered(name, label, argument)
            case SetTest(name, argument):
                label = _label_of(argument)
                if label in one:
                    # True, but unknown for null.
                    return Comparison(Operator.EQ, argument, argument)
                return Comparison(Operator.EQ, _gathered(name, label, argument), Literal(True))
            case PredicateCall() if rebuilt.name in of_sets:
                return _asked(rebuilt, one)
            case Function(name, (Expression() as operand,)) if name in ("lower", "upper", "length"):
                return _inside(operand, lambda value: Function(name, (value,))) or rebuilt
            case Function("substr", (Expression() as operand, *places)) if not any(map(reads_events, places)):
                return _inside(operand, lambda value: Function("substr", (value, *places))) or rebuilt
            case DatePart(operand, part, zone):
                return _inside(operand, lambda value: DatePart(value, part, zone)) or rebuilt
            case Like(operand, pattern, negated):
                moved = _inside(operand, lambda value: TruthValue(Like(value, pattern, negated)))
            case Regexp(operand, pattern, negated):
                moved = _inside(operand, lambda value: TruthValue(Regexp(value, pattern, negated)))
            case _:
                return rebuilt
        return rebuilt if moved is None else Comparison(Operator.EQ, moved, Literal(True))

    result = fold(without_brackets(condition), visit)  # type: ignore[arg-type]
    assert isinstance(result, Condition)
    return result


def without_some(condition: Condition) -> Condition:
    """The condition without SOME around its parts: equivalent if labels have one event each, or below NOT."""
    result = transform(condition, lambda current: current.condition if isinstance(current, Some) else current)
    assert isinstance(result, Condition)
    return result


def between_bounds(some: Some) -> Condition | None:
    """``SOME x, y: x.a < y.b`` as ``min(x.a) < max(y.b)``, which needs no choice; None for other forms."""
    condition = some.condition
    if not isinstance(condition, Comparison) or condition.operator not in _BOUNDS:
        return None
    labels = [list(condition_labels(side)) for side in (condition.left, condition.right)]
    if any(len(names) != 1 for names in labels) or labels[0] == labels[1]:
        return None
    left, right = _BOUNDS[condition.operator]
    return Comparison(condition.operator, Aggregate(left, condition.left), Aggregate(right, condition.right))


def _asked(call: PredicateCall, one: Container[str]) -> Condition:
    """A predicate of sets as an `Asked` leaf; as a condition on single events if all its labels have one event."""
    read = [next(iter(condition_labels(argument)), None) for argument in call.arguments]
    labels = dict.fromkeys(label for label in read if label is not None)
    gathered = tuple(label for label in labels if label not in one)
    if not gathered and len(labels) == 1:
        return call
    numbers = {label: k for k, label in enumerate([*gathered, *(n for n in labels if n in one)])}
    sets = tuple(-1 if label is None else numbers[label] for label in read)
    given = tuple(bare(a) if k < len(gathered) else a for a, k in zip(call.arguments, sets))
    if not gathered:
        return SetCall(call.name, call.arguments, sets, 0, None, 0)
    return Comparison(Operator.EQ, Asked(call.name, gathered, given, sets), Literal(True))  # type: ignore[arg-type]


def _label_of(argument: Node) -> str:
    """The only label that an aggregate or a test on a set reads."""
    labels = (n.label for n in walk(argument) if isinstance(n, Attribute | LabelReference))
    label = next(labels)
    assert label is not None
    return label


def _gathered(name: str, label: str, argument: Expression) -> LabelAggregate:
    own = bare(argument)
    assert isinstance(own, Expression)
    return LabelAggregate(name, label, own, own)


def _inside(operand: Expression, function: Callable[[Expression], Expression]) -> Expression | None:
    """A function of strings on an aggregate, moved inside: applied to each event's value instead.

    Other aggregates give no strings; NULL in their place stays null. None if it is not an aggregate.
    """
    if not isinstance(operand, LabelAggregate):
        return None
    if operand.name not in _SELECTING:
        return _NULL
    return LabelAggregate(operand.name, operand.label, operand.argument, function(operand.value))


def alone(name: str, argument: Expression) -> Expression:
    """The value of an aggregate over one event."""
    match name:
        case "count" | "count distinct":
            return _ONE if isinstance(argument, LabelReference) else Known(argument)
        case "avg":
            return Arithmetic("/", argument, _ONE)
        case "stddev":
            return _NULL
    return argument


def value_of_no_events(name: str) -> Literal:
    """The value of an aggregate over no events."""
    return _ZERO if name == "count" else _NULL


@dataclass(frozen=True)
class Accumulator:
    """How the row of a register is started, updated by an event, and finished."""

    start: Row
    step: Callable[[Row], Row]
    finish: Callable[[Row], Expression]


def accumulator(gathered: LabelAggregate, most: int | None = None) -> Accumulator:
    """The accumulator of an aggregate; for a test on a set it remembers the latest value.

    A count may stop at ``most`` if greater counts make no difference.
    """
    argument, value = gathered.argument, gathered.value
    match gathered.name:
        case "count":
            return _counted(alone("count", argument), most)
        case "sum":
            return _summed(argument, lambda known: If(IsNull(argument), known, _ONE), lambda total, _: total)
        case "avg":
            return _summed(
                argument,
                lambda count: _sum(count, Known(argument)),
                lambda total, count: Arithmetic("/", total, count),
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


def _last(row: Row) -> Expression:
    return row[-1]


def _sum(left: Expression, right: Expression) -> Arithmetic:
    return Arithmetic("+", left, right)


def _difference(left: Expression, right: Expression) -> Arithmetic:
    return Arithmetic("-", left, right)


def _counted(one: Expression, most: int | None) -> Accumulator:
    def step(former: Row) -> Row:
        more = _sum(former[0], one)
        return (more if most is None else If(Comparison(Operator.LT, former[0], Literal(most)), more, former[0]),)

    return Accumulator((one,), step, _last)


def _summed(
    argument: Expression,
    counted: Callable[[Expression], Expression],
    finish: Callable[[Expression, Expression], Expression],
    *,
    floating: bool = False,
) -> Accumulator:
    """A sum in two words, and (a bound on) the number of non-null values; the result without any is null."""
    high, low = Word(argument, True), Word(argument, False)
    return Accumulator(
        (high, low, Known(argument)),
        lambda former: (_sum(former[0], high), _sum(former[1], low), counted(former[2])),
        lambda row: If(Comparison(Operator.GT, row[2], _ZERO), finish(Joined(row[0], row[1], floating), row[2]), _NULL),
    )


def _best(better: Operator, row: Row) -> Accumulator:
    """The row with the best first value so far."""

    def step(former: Row) -> Row:
        replaced = Or(IsNull(former[0]), Satisfied(Comparison(better, row[0], former[0])))
        return tuple(If(replaced, new, old) for new, old in zip(row, former))

    return Accumulator(row, step, _last)


def _deviation(argument: Expression) -> Accumulator:
    """Number of values, the first of them; of the distances from it their mean and their squares around that."""
    value = Arithmetic("*", argument, Literal(1.0))
    missing = IsNull(argument)

    def step(former: Row) -> Row:
        count, origin, mean, squares = former
        more = _sum(count, Known(argument))
        begin = If(IsNull(origin), value, origin)
        away = _difference(value, begin)
        after = _sum(mean, Arithmetic("/", _difference(away, mean), more))
        around = Arithmetic("*", _difference(away, mean), _difference(away, after))
        return (more, begin, If(missing, mean, after), If(missing, squares, _sum(squares, around)))

    def finish(row: Row) -> Expression:
        variance = Arithmetic("/", row[3], _difference(row[0], _ONE))
        return If(Comparison(Operator.GT, row[0], _ONE), SquareRoot(variance), _NULL)

    return Accumulator((Known(argument), value, Literal(0.0), Literal(0.0)), step, finish)
