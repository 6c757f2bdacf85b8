"""Expressions and conditions evaluated on single events (spec §3), for constants, runs, decisions and single pushes.

`cerflow.theory.semantics` says the same in its own code, which tests compare with this; neither imports the other.
Aggregates and brackets have no value here; a predicate of sets is asked about the one event.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from cerflow.base.errors import InputError
from cerflow.base.events import Event, Value, as_value, microseconds_since_epoch, moment_at, parsed_moment
from cerflow.base.operators import RELATIONS, Operator
from cerflow.base.schema import ValueKind
from cerflow.base.text_patterns import found_in, like_expression, part_of_text
from cerflow.language import condition as c
from cerflow.language.lexicon import LARGEST_INTEGER
from cerflow.language.node import Node, fold
from cerflow.language.predicates.asking import Each, array_of, as_argument, ask, ask_of_each, ask_of_set
from cerflow.language.predicates.registry import PredicateKind, registered
from cerflow.logic.analysis.kinds import TIME_ARITHMETIC
from cerflow.logic.conditions import register_values as r
from cerflow.logic.conditions.guards import Satisfied, StreamTest, TypeTest, reads_events

#: Values that arithmetic does not take for numbers.
_TIMES = (datetime, timedelta)


def constant_value(root: Node) -> Value:
    """The value of an expression or condition that reads no event."""
    return value_on(root, {})


def value_on(root: Node, events: Mapping[str | None, Event | None]) -> Value:
    """The value of an expression, or the truth value of a condition (None for unknown).

    ``events`` maps each label to its event, and None to the current event; a label without event reads as null. Raises
    TypeError for an aggregate, a test on all events of a label, SOME and a bracket.
    """

    def value(current: Node, below: Sequence[Any]) -> Any:
        match current:
            case c.Attribute():
                event = events.get(current.label)
                return None if event is None else event.attribute(current.name)
            case c.LabelReference():
                return events.get(current.label)
            case TypeTest() | StreamTest():
                return _has_type(current, events.get(None))
            case c.Literal() | c.Constant():
                return as_value(current.value)
        return operation(current)(*below)

    found: Value = fold(root, value)
    return found


def operation(current: Node) -> Callable[..., Any]:
    """The function from the values of a node's operands to its own value; for IN the items may follow the operand.

    Raises TypeError for other nodes: leaves, aggregates, tests on all events of a label, SOME, brackets.
    """
    made = _OPERATIONS.get(type(current))
    if made is None:
        raise TypeError(f"{type(current).__name__} has no value on single events")
    return made(current)


def _has_type(test: TypeTest | StreamTest, event: Event | None) -> bool:
    """Whether an event has the type and comes from the stream of a test, where streams are distinguished."""
    if event is None or (isinstance(test, TypeTest) and event.type != test.type):
        return False
    return test.stream is None or event.stream in (None, test.stream)


# -- truth values ------------------------------------------------------------------------------------------------


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is None:
        return False if right is False else None
    return right if left else False


def _negatable(test: Callable[..., bool | None], negated: bool) -> Callable[..., bool | None]:
    return (lambda *values: _not(test(*values))) if negated else test


# -- comparisons and texts ---------------------------------------------------------------------------------------


def compare(relation: Operator, left: Value, right: Value) -> bool | None:
    """Compare two values: unknown with null, as floats with a float, exact with a decimal, texts by code points."""
    if left is None or right is None:
        return None
    if type(left) is not type(right):
        left, right = _alike(left, right), _alike(right, left)
    return bool(RELATIONS[relation](left, right))


def _alike(value: Any, other: Any) -> Any:
    """The value in the form in which it is compared with a value of another kind."""
    kinds = (type(value), type(other))
    if Decimal in kinds:
        # A float stands for the decimal number that it is written as.
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if isinstance(value, float) or isinstance(other, float):
        return float(value)
    if isinstance(value, str) and isinstance(other, datetime):
        return parsed_moment(value)
    return value


def _among(items: Sequence[Value], value: Value, *_: Value) -> bool | None:
    answers = {compare(Operator.EQ, value, item) for item in items}
    return True if True in answers else None if None in answers else False


def _between(low: bool, high: bool, value: Value, *ends: Value) -> bool | None:
    above = compare(Operator.LE, ends[0], value) if low else True
    return _and(above, compare(Operator.LE, value, ends[-1]) if high else True)


def _found(expression: str, text: str | None) -> bool | None:
    return None if text is None else bool(found_in([text], expression)[0])


# -- numbers -----------------------------------------------------------------------------------------------------


def arithmetic(sign: str, left: Any, right: Any) -> Value:
    """``left sign right`` of 64-bit integers or floats; null for a null, and for results that do not exist.

    Raises `InputError` for decimals.
    """
    if left is None or right is None:
        return None
    _check_computable(left)
    _check_computable(right)
    if isinstance(left, _TIMES) or isinstance(right, _TIMES):
        return time_arithmetic(sign, left, right)
    match sign:
        case "+" | "-" | "*":
            return _representable(_SIGNS[sign](left, right))
        case "/":
            return _representable(float(left) / float(right)) if right else None
        case "%" if not right:
            return None
        case "%" if isinstance(left, float) or isinstance(right, float):
            return None if math.isinf(left) else math.fmod(left, right)
        case "%":
            rest: int = left % right
            # The remainder has the sign of the dividend; in Python it has the sign of the divisor.
            return rest - right if rest and (left < 0) != (right < 0) else rest
    raise TypeError(f"there is no operator '{sign}'")


_SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _check_computable(value: Any) -> None:
    if isinstance(value, Decimal):
        raise InputError("decimals can be compared, but not used in arithmetic; make them floats or integers")


def _representable(number: Any) -> Value:
    if isinstance(number, float):
        return None if number != number else number
    return number if abs(number) <= LARGEST_INTEGER else None


def _negative(value: Any) -> Value:
    if isinstance(value, timedelta):
        return -value
    return None if value is None else _representable(-value) if isinstance(value, int) else -value


def _absolute(value: Any) -> Value:
    _check_computable(value)
    return abs(value) if isinstance(value, timedelta) else _representable(abs(value))


def _whole(away: Callable[[float], float], value: Any) -> Value:
    """A number without its fraction, plus the amount by which the fraction rounds it."""
    _check_computable(value)
    if isinstance(value, int):
        return value
    fraction, whole = math.modf(value)
    return whole + away(fraction)


def _word(high: bool, number: Any) -> int | float:
    if isinstance(number, float):
        return 0 if high else number
    size = abs(number or 0)
    word: int = size // r.WORD if high else size % r.WORD
    return -word if size != (number or 0) else word


def _joined_words(floating: bool, high: Any, low: Any) -> Value:
    if low is None:
        return None
    number = high * r.WORD + low
    return float(number) if floating else arithmetic("+", number, 0)


def _known(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, and null of null."""
    return lambda value: None if value is None else function(value)


# -- times --------------------------------------------------------------------------------------------------------

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def microseconds_of(value: datetime | timedelta) -> int:
    """The microseconds of a duration, or of a timestamp since 1970, rounded down."""
    return microseconds_since_epoch(value) if isinstance(value, datetime) else value // timedelta(microseconds=1)


def date_part(part: str, zone: str | None, value: datetime | int) -> int | None:
    """A part of `DATE_PARTS` of a timestamp, or of microseconds since 1970, in a time zone (None: UTC)."""
    moment = moment_of(value) if isinstance(value, int) else value
    if moment is None:
        return None
    if zone is not None:
        moment = moment.astimezone(zone_called(zone))
    return moment.isoweekday() if part == "weekday" else int(getattr(moment, part))


def zone_called(zone: str) -> tzinfo:
    """The time zone of a name as Arrow writes it: of a region, or an offset such as ``+01:00``."""
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return ZoneInfo(zone)
    sign, hours, minutes = offset.groups()
    return timezone((1 if sign == "+" else -1) * timedelta(hours=int(hours), minutes=int(minutes)))


def duration_of(microseconds: int | None) -> timedelta | None:
    """The duration of this many microseconds, None beyond 64 bits."""
    if microseconds is None or abs(microseconds) > LARGEST_INTEGER:
        return None
    return timedelta(microseconds=microseconds)


def moment_of(microseconds: int) -> datetime | None:
    """The timestamp of this many microseconds since 1970, None beyond the years 1 to 9999."""
    return moment_at(microseconds) if r.FIRST_MOMENT <= microseconds <= r.LAST_MOMENT else None


def whole_number(value: float) -> int | None:
    """A float rounded to an integer, halves away from zero; None beyond 64 bits."""
    if not abs(value) < 2.0**63:
        return None
    whole = math.trunc(value)
    return whole + int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else whole


def time_arithmetic(sign: str, left: Any, right: Any) -> datetime | timedelta | float | None:
    """``left sign right`` where one is a timestamp or a duration, and neither is null; null where it is too large.

    Raises `InputError` for kinds that do not go together.
    """
    if sign == "-":
        left, right = _said_beside(left, right), _said_beside(right, left)
    kinds = (_kind_beside_time(left), _kind_beside_time(right))
    gives = TIME_ARITHMETIC.get((sign, *kinds))
    if gives is None or isinstance(left, str) or isinstance(right, str):
        raise InputError(f"'{sign}' cannot combine {type(left).__name__} with {type(right).__name__}")
    a, b = (microseconds_of(v) if isinstance(v, _TIMES) else v for v in (left, right))
    match sign:
        case "*":
            exact = isinstance(a, int) and isinstance(b, int)
            return duration_of(int(a * b) if exact else whole_number(float(a) * float(b)))
        case "/":
            quotient = float(a) / float(b) if b else None
            return quotient if quotient is None or gives is ValueKind.FLOAT else duration_of(whole_number(quotient))
    total = a + b if sign == "+" else a - b
    return moment_of(total) if gives is ValueKind.TIMESTAMP else duration_of(total)


def _kind_beside_time(value: Any) -> ValueKind:
    if isinstance(value, _TIMES):
        return ValueKind.TIMESTAMP if isinstance(value, datetime) else ValueKind.DURATION
    return ValueKind.FLOAT


def _said_beside(value: Any, other: Any) -> Any:
    """The timestamp that a string means next to a timestamp; other values as they are."""
    said = isinstance(value, str) and isinstance(other, datetime)
    return parsed_moment(value) if said else value


# -- functions and predicates ------------------------------------------------------------------------------------


#: Zeros are positive, as integers are.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "position": _known(lambda event: event.position),
    "time": _known(lambda event: event.moment or _representable(event.time)),
    "abs": _known(_absolute),
    "floor": _known(partial(_whole, lambda fraction: -1.0 if fraction < 0 else 0.0)),
    "ceil": _known(partial(_whole, lambda fraction: 1.0 if fraction > 0 else 0.0)),
    "round": _known(partial(_whole, lambda fraction: math.copysign(1.0, fraction) if abs(fraction) >= 0.5 else 0.0)),
    "lower": _known(str.lower),
    "upper": _known(str.upper),
    "length": _known(len),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "substr": lambda *operands: None if None in operands else part_of_text(*operands),
    "||": lambda left, right: None if left is None or right is None else left + right,
    **{part: _known(partial(date_part, part, None)) for part in c.DATE_PARTS},
}


def _call(call: c.PredicateCall, *arguments: Any) -> bool | None:
    predicate = registered(call.name)
    given = [(as_argument(value), reads_events(argument)) for value, argument in zip(arguments, call.arguments)]
    match predicate.kind:
        case PredicateKind.SCALAR:
            return ask(predicate, [value for value, _ in given])
        case PredicateKind.SET:
            return ask_of_set(predicate, [Each([value]) if of_event else value for value, of_event in given])
    if None in arguments:
        return None
    true, unknown = ask_of_each(predicate, [array_of([v]) if of_event else v for v, of_event in given], 1)
    return None if unknown[0] else bool(true[0])


_OPERATIONS: dict[type[Node], Callable[[Any], Callable[..., Any]]] = {
    c.Arithmetic: lambda node: partial(arithmetic, node.operator),
    c.Negative: lambda _: _negative,
    c.Function: lambda node: _FUNCTIONS[node.name],
    c.If: lambda _: lambda condition, then, otherwise: then if condition is True else otherwise,
    c.TruthValue: lambda _: lambda truth: truth,
    Satisfied: lambda _: lambda truth: truth is True,
    r.Known: lambda _: lambda value: int(value is not None),
    r.Word: lambda node: partial(_word, node.high),
    r.Joined: lambda node: partial(_joined_words, node.floating),
    r.SquareRoot: lambda _: _known(math.sqrt),
    r.Microseconds: lambda _: _known(microseconds_of),
    r.Dated: lambda _: _known(lambda number: number if r.FIRST_MOMENT <= number <= r.LAST_MOMENT else None),
    r.Whole: lambda _: _known(whole_number),
    r.DatePart: lambda node: _known(partial(date_part, node.part, node.zone)),
    c.Comparison: lambda node: partial(compare, node.operator),
    c.Like: lambda node: _negatable(partial(_found, like_expression(node.pattern)), node.negated),
    c.Regexp: lambda node: _negatable(partial(_found, node.pattern), node.negated),
    c.In: lambda node: _negatable(partial(_among, [as_value(item.value) for item in node.items]), node.negated),
    c.Between: lambda node: _negatable(partial(_between, node.low is not None, node.high is not None), node.negated),
    c.IsNull: lambda node: lambda value: (value is None) != node.negated,
    c.PredicateCall: lambda node: partial(_call, node),
    c.Not: lambda _: _not,
    c.And: lambda _: _and,
    c.Or: lambda _: lambda left, right: _not(_and(_not(left), _not(right))),
}
