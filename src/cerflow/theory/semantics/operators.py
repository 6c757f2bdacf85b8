"""Operators, functions, comparisons and aggregates on single values, with the nulls of SQL."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.errors import InputError
from cerflow.base.events import Value, as_value, parsed_moment
from cerflow.base.operators import ORDERS, RELATIONS, Operator
from cerflow.language import condition as c
from cerflow.language.node import Node, walk
from cerflow.language.predicates.asking import array_of, as_argument, ask, ask_of_each
from cerflow.language.predicates.registry import PredicateKind, registered
from cerflow.theory.semantics.times import MICROSECOND, duration, nearest_integer, numbers_of_time, time_arithmetic

_LOWEST, _HIGHEST = -(2**63) + 1, 2**63 - 1


def applied(current: Node, arguments: Sequence[Any]) -> Value:
    """The value of an operator, function or condition, given the values of its operands (for IN, of the left one)."""
    match current:
        case c.Arithmetic(sign, left, right):
            if sign in ("+", "-"):
                arguments = numbers_of_time((left, right), arguments)
            return arithmetic(sign, *arguments)
        case c.Negative():
            (value,) = arguments
            return arithmetic("-", 0, value) if isinstance(value, int) else None if value is None else -value
        case c.If():
            chosen: Value = arguments[1 if arguments[0] is True else 2]
            return chosen
        case c.TruthValue():
            truth: bool | None = arguments[0]
            return truth
        case c.Function("coalesce" | "substr" | "||"):
            return _of_several(current.name, arguments)
        case c.Function(_, (_, _)):
            moment, zone = arguments
            return _function(current.name, None if moment is None else moment.astimezone(_zone(zone)))
        case c.Function():
            return _function(current.name, arguments[0])
        case c.Comparison():
            return compare(current.operator, *numbers_of_time((current.left, current.right), arguments))
        case c.Like() | c.Regexp():
            matches = like if isinstance(current, c.Like) else regexp
            return _negated(None if arguments[0] is None else matches(arguments[0], current.pattern), current.negated)
        case c.In():
            items = [as_value(item.value) for item in current.items]
            operand, *items = numbers_of_time((current.operand, *current.items), [arguments[0], *items])
            tests = [compare(Operator.EQ, operand, item) for item in items]
            return _negated(_any(tests), current.negated)
        case c.Between():
            operand, *bounds = numbers_of_time(current.children, arguments)
            limits = ((Operator.GE, current.low), (Operator.LE, current.high))
            relations = [relation for relation, limit in limits if limit is not None]
            tests = [compare(relation, operand, bound) for relation, bound in zip(relations, bounds)]
            return _negated(_all(tests), current.negated)
        case c.IsNull():
            return (arguments[0] is None) != current.negated
        case c.PredicateCall():
            return _call(current, arguments)
        case c.Not():
            return _negated(arguments[0], True)
        case c.And():
            return _all(arguments)
        case c.Or():
            return _any(arguments)
    raise TypeError(f"{type(current).__name__} has no value")


def _all(tests: Sequence[bool | None]) -> bool | None:
    return False if False in tests else None if None in tests else True


def _any(tests: Sequence[bool | None]) -> bool | None:
    return True if True in tests else None if None in tests else False


def _negated(truth: bool | None, negated: bool) -> bool | None:
    return truth if truth is None or not negated else not truth


def compare(relation: Operator, left: Value, right: Value) -> bool | None:
    """Compare two values: unknown if one is null; as floats if one is a float; strings by code points.

    Beside a decimal, numbers and texts that are numerals count as exact decimals.
    """
    if left is None or right is None:
        return None
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return bool(RELATIONS[relation](_exact(left), _exact(right)))
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)  # type: ignore[arg-type]
    elif isinstance(left, datetime.datetime) and isinstance(right, str):
        right = _moment(right)
    elif isinstance(left, str) and isinstance(right, datetime.datetime):
        left = _moment(left)
    return bool(RELATIONS[relation](left, right))


def _exact(value: Any) -> Decimal:
    return Decimal(repr(value) if isinstance(value, float) else value)


@lru_cache(maxsize=1024)
def _moment(text: str) -> datetime.datetime:
    return parsed_moment(text)


def arithmetic(sign: str, left: Value, right: Value) -> Value:
    """``left sign right``: 64-bit integers or floats; null where the value does not exist."""
    if left is None or right is None:
        return None
    _refuse_decimals(left, right)
    if any(isinstance(v, datetime.datetime | datetime.timedelta) for v in (left, right)):
        return time_arithmetic(sign, left, right)
    assert isinstance(left, int | float)
    assert isinstance(right, int | float)
    if sign == "/":
        return None if right == 0 else _number(float(left) / float(right))
    if sign == "%":
        return _remainder(left, right)
    return _number({"+": operator.add, "-": operator.sub, "*": operator.mul}[sign](*_same_kind(left, right)))


def _refuse_decimals(*values: Value) -> None:
    if any(isinstance(value, Decimal) for value in values):
        raise InputError("decimals can be compared, but not used in arithmetic; make them floats or integers")


def _same_kind(left: int | float, right: int | float) -> tuple[int | float, int | float]:
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    return left, right


def _remainder(left: int | float, right: int | float) -> Value:
    left, right = _same_kind(left, right)
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return None if math.isinf(left) else math.fmod(left, right)


def _number(value: int | float) -> Value:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value if _LOWEST <= value <= _HIGHEST else None


def _of_several(name: str, arguments: Sequence[Any]) -> Value:
    if name == "coalesce":
        known = [argument for argument in arguments if argument is not None]
        return known[0] if known else None
    if any(argument is None for argument in arguments):
        return None
    if name == "||":
        return str(arguments[0]) + str(arguments[1])
    text, first, *length = arguments
    if length and length[0] < 0:
        return None
    end = first + length[0] if length else math.inf
    return "".join(character for place, character in enumerate(text, 1) if first <= place < end)


def _function(name: str, argument: Any) -> Value:
    if argument is None:
        return None
    match name:
        case "year" | "month" | "day" | "hour" | "minute" | "second":
            return int(getattr(argument, name))
        case "weekday":
            return argument.weekday() + 1  # type: ignore[no-any-return]
        case "position":
            return int(argument.position)
        case "time":
            return _number(argument.time) if argument.moment is None else argument.moment
        case "abs":
            _refuse_decimals(argument)
            return abs(argument) if isinstance(argument, datetime.timedelta) else _number(abs(argument))
        case "floor" | "ceil" | "round":
            _refuse_decimals(argument)
            return argument if isinstance(argument, int) or math.isinf(argument) else _rounded(name, argument)
        case "lower" | "upper":
            return str(getattr(argument, name)())
        case "length":
            return len(argument)
    raise TypeError(f"there is no function '{name}'")


def _zone(name: str) -> datetime.tzinfo:
    """The time zone of a region, or of an offset as in ``+01:00``."""
    if name[0] not in "+-":
        return ZoneInfo(name)
    zone = datetime.datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo
    assert zone is not None
    return zone


def _rounded(name: str, value: float) -> float:
    if name != "round":
        return float(math.floor(value) if name == "floor" else math.ceil(value))
    whole = math.trunc(value)
    # Adding one half first would round 0.49999999999999994 up.
    return float(whole + int(math.copysign(1, value)) if abs(value - whole) >= 0.5 else whole)


def like(text: str, pattern: str) -> bool:
    """SQL's LIKE on the whole string: ``%`` is any characters, ``_`` one, a backslash takes the next literally."""
    ends = {0}  # ends of the matches of the pattern read so far
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            ends = set(range(min(ends), len(text) + 1)) if ends else ends
            continue
        wanted = next(characters, "\\") if character == "\\" else character
        any_one = character == "_"
        ends = {end + 1 for end in ends if end < len(text) and (any_one or text[end] == wanted)}
    return len(text) in ends


def aggregate(name: str, values: Sequence[Value]) -> Value:
    """An aggregate of values in the order of their positions.

    As in SQL, nulls do not count, and without values only counts are not null. ``first`` and ``last`` take the value
    of the first and the last event, null or not. ``stddev`` is the sample standard deviation: null for fewer than two
    values.
    """
    if name in ("first", "last"):
        return values[0 if name == "first" else -1] if values else None
    known: list[Any] = [v for v in values if v is not None]
    if name == "count":
        return len(known)
    if name == "count distinct":
        return len(set(known))
    if not known:
        return None
    match name:
        case "min" | "max":
            return (min if name == "min" else max)(known)  # type: ignore[no-any-return]
        case "sum" if isinstance(known[0], datetime.timedelta):
            return duration(sum(v // MICROSECOND for v in known))
        case "avg" if isinstance(known[0], datetime.timedelta):
            return duration(nearest_integer(float(sum(v // MICROSECOND for v in known)) / len(known)))
        case "sum":
            return _number(_sum(known))
        case "avg":
            return _number(float(_sum(known)) / len(known))
        case "stddev":
            if len(known) < 2:
                return None
            mean = float(_sum(known)) / len(known)
            away = [v - mean for v in known]
            return _number(math.sqrt(_sum([d * d for d in away]) / (len(known) - 1)))
    raise TypeError(f"there is no aggregate '{name}'")


def _sum(values: Sequence[int | float]) -> int | float:
    _refuse_decimals(*values)
    # The built-in sum rounds floats differently from addition one by one.
    return reduce(operator.add, values)


def _call(call: c.PredicateCall, arguments: Sequence[Any]) -> bool | None:
    """A call of a predicate on one event for each label."""
    predicate = registered(call.name)
    given = [as_argument(argument) for argument in arguments]
    if predicate.kind is PredicateKind.SCALAR:
        return ask(predicate, given)
    if any(argument is None for argument in arguments):
        return None
    of_event = [labels_read(argument) for argument in call.arguments]
    arrays = [array_of([value]) if labels else value for value, labels in zip(given, of_event)]
    true, unknown = ask_of_each(predicate, arrays, 1)
    return None if unknown[0] else bool(true[0])


def labels_read(root: Node) -> frozenset[str | None]:
    """The labels that an expression reads (None: the current event)."""
    return frozenset(n.label for n in walk(root) if isinstance(n, c.Attribute | c.LabelReference))


def in_order(name: str, values: Sequence[Value]) -> bool | None:
    """Whether values are in the order of a test such as ``increasing``; unknown if one is null.

    A single value is in order; a single null is unknown.
    """
    known = (None for value in values if value is None)
    return _all([*(compare(ORDERS[name], a, b) for a, b in pairwise(values)), *known])


def regexp(text: str, pattern: str) -> bool:
    """Whether a regular expression in RE2 syntax is found somewhere in the text."""
    return pc.match_substring_regex(pa.scalar(text), pattern).as_py() is True
