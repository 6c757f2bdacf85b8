"""Single events: their values as in columns, and functions made once for tests and expressions on them, for speed.

The meaning of the functions is that of `cerflow.theory.semantics`. An expression that reads more than plain values of
the event does not have one, and is evaluated on a batch of one event. A timestamp or duration is the integer that its
column holds, which Arrow accepts for such columns, too.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from cerflow.base.operators import RELATIONS
from cerflow.base.schema import Schema, ValueKind
from cerflow.base.units import MICROSECONDS
from cerflow.engine.evaluate.ranges import ticks
from cerflow.engine.evaluate.rows import finest_unit, instant
from cerflow.language import condition as c
from cerflow.language.node import Node, fold, transform, with_children
from cerflow.logic.analysis.kinds import kind_of_expression
from cerflow.logic.conditions.evaluate import operation
from cerflow.logic.conditions.guards import Satisfied
from cerflow.logic.conditions.register_values import Dated, DatePart, Known, Microseconds, Whole, Word

_EPOCH = datetime.datetime(1970, 1, 1)
_UTC_EPOCH = _EPOCH.replace(tzinfo=datetime.UTC)
#: Time zones that give the offset from UTC at every moment.
_ZONES = (datetime.timezone, ZoneInfo)
#: The greatest number of microseconds that surely fits durations and timestamps in nanoseconds.
_MOST = 2**63 // 1000 - 1


class PlainType(NamedTuple):
    """How the values of a column are given: as a Python type (None: none), and how they become the column's own.

    The function returns None for values that a batch must check: numbers beyond ``most``, and NaN. Without function and
    ``most`` all values of the type fit.
    """

    python: type | None
    taken: Callable[[Any], Any] | None = None
    most: float | None = None


def plain_type_of(data_type: pa.DataType, unit: str) -> PlainType:
    """The form of values of an Arrow type; ``unit`` is the finest unit of timestamps in the schema."""
    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    if pa.types.is_signed_integer(data_type):
        # The least 64-bit integer stands for null.
        return PlainType(int, most=2 ** (data_type.bit_width - 1) - 1)
    if pa.types.is_float64(data_type):
        return PlainType(float, most=math.inf)
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return PlainType(str)
    if pa.types.is_boolean(data_type):
        return PlainType(bool)
    if pa.types.is_timestamp(data_type):
        return PlainType(datetime.datetime, _in_own_unit(_since_1970, data_type.unit, unit == "ns"))
    if pa.types.is_duration(data_type):
        return PlainType(datetime.timedelta, _in_own_unit(_length, data_type.unit, data_type.unit == "ns"))
    return PlainType(None)


def in_units(name: str, schema: Schema, unit: str) -> Callable[[int], int] | None:
    """The function from times in a column to integers as `column_vector` has them; None if both are equal."""
    data_type = schema.columns.field(name).type
    if schema.kind(name) is ValueKind.TIMESTAMP and pa.types.is_timestamp(data_type):
        factor = ticks(data_type, unit)
        return None if factor == 1 else lambda value: value * factor
    if schema.kind(name) is ValueKind.DURATION and data_type.unit != "us":
        size = MICROSECONDS[data_type.unit]
        return lambda value: value * size.numerator // size.denominator
    return None


def _in_own_unit(microseconds: Callable[[Any], int | None], unit: str, limited: bool) -> Callable[[Any], int | None]:
    """The function from times to numbers of a unit; ``limited`` says that these must fit 64 bits as nanoseconds."""
    if unit == "us" and not limited:
        return microseconds
    size = MICROSECONDS[unit]

    def taken(value: Any) -> int | None:
        found = microseconds(value)
        # Arrow rounds what is not a whole number of units.
        if found is None or (limited and abs(found) > _MOST) or found % size:
            return None
        return int(found / size)

    return taken


def _since_1970(value: datetime.datetime) -> int | None:
    zone = value.tzinfo
    if zone is None:
        since = value - _EPOCH
    elif isinstance(zone, _ZONES):
        since = value - _UTC_EPOCH
    else:
        return None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _length(value: datetime.timedelta) -> int | None:
    found = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    return found if abs(found) < 2**62 else None


#: Reads a value of an event whose plain values have the types of their columns; times are integers, see `in_units`.
Read = Callable[[Mapping[str, Any]], Any]

_PLAIN = (
    *(c.And, c.Arithmetic, c.Between, c.Comparison, c.If, c.In, c.IsNull, c.Negative, c.Not, c.Or, c.TruthValue),
    *(Dated, DatePart, Known, Satisfied, Whole, Word),
)
_KINDS = (ValueKind.INTEGER, ValueKind.FLOAT, ValueKind.STRING, ValueKind.BOOLEAN)
_TIMES = (ValueKind.TIMESTAMP, ValueKind.DURATION)


def scalar(root: c.Expression | Any, schema: Schema) -> Read | None:
    """A function for a condition or expression on one event, or None if there is none.

    It returns None for null and for unknown. Floats must not be NaN. Timestamps and durations are integers as in
    `cerflow.engine.evaluate.vectors`, and the tree must not compute with them except by `Microseconds`.
    """
    unit = finest_unit(schema)

    def visit(current: Node, below: Sequence[Read | None]) -> Read | None:
        if isinstance(current, c.Function) and current.name == "time":
            return None if schema.time is None else _attribute(schema.time, schema, unit)
        operands = [read for read in below if read is not None]
        return _node(current, operands, schema, unit) if len(operands) == len(below) else None

    return fold(transform(root, lambda current: _with_numbers(current, schema, unit)), visit)


def _with_numbers(current: Node, schema: Schema, unit: str) -> Node:
    """A comparison with times whose literals are integers, too."""
    timed = isinstance(current, c.Comparison | c.Between | c.In) and any(_is_time(e, schema) for e in current.children)
    if not timed:
        return current

    def number(child: Node) -> Node:
        match child:
            case c.Literal(str(text)):
                return c.Literal(instant(text, unit))
            case c.Literal(timedelta() as duration):
                return c.Literal(duration // timedelta(microseconds=1))
        return child

    return with_children(current, [*map(number, current.children)])


def _is_time(tree: Node, schema: Schema) -> bool:
    if isinstance(tree, c.Function) and tree.name == "time":
        return schema.time is not None and schema.kind(schema.time) in _TIMES
    return isinstance(tree, c.Attribute) and schema.has(tree.name) and schema.kind(tree.name) in _TIMES


def _node(current: Node, operands: Sequence[Read], schema: Schema, unit: str) -> Read | None:
    if isinstance(current, c.Attribute):
        return _attribute(schema.column(current.name), schema, unit)
    if isinstance(current, c.Literal | c.Constant):
        value = current.value
        return lambda event: value
    if isinstance(current, Microseconds):
        return _microseconds(current.expression, operands[0], schema, unit)
    if isinstance(current, c.Comparison):
        return _comparison(current, operands, schema)
    if isinstance(current, c.In) and _is_looked_up(current, schema):
        return _among(current, operands[0])
    if isinstance(current, _PLAIN) or (isinstance(current, c.Function) and current.name != "position"):
        return _computed(operation(current), operands[:1] if isinstance(current, c.In) else operands)
    return None


def _attribute(name: str, schema: Schema, unit: str) -> Read | None:
    kind = schema.kind(name)
    if kind not in _KINDS and kind not in _TIMES:
        return None
    change = in_units(name, schema, unit)
    if change is None:
        return lambda event: event[name]
    return _computed(lambda value: None if value is None else change(value), [lambda event: event[name]])


def _microseconds(expression: c.Expression, operand: Read, schema: Schema, unit: str) -> Read:
    size = MICROSECONDS[unit].denominator
    if size == 1 or kind_of_expression(expression, schema) is not ValueKind.TIMESTAMP:
        return operand
    return _computed(lambda value: None if value is None else value // size, [operand])


def _is_looked_up(current: c.In, schema: Schema) -> bool:
    """Whether all items have the same kind as the attribute that is looked up among them."""
    if not isinstance(current.operand, c.Attribute) or not schema.has(current.operand.name):
        return False
    kind = schema.kind(current.operand.name)
    own = {ValueKind.INTEGER: int, ValueKind.STRING: str, ValueKind.TIMESTAMP: int, ValueKind.DURATION: int}.get(kind)
    return all(type(item.value) is own for item in current.items)


def _among(current: c.In, operand: Read) -> Read:
    values = frozenset(item.value for item in current.items)

    def among(event: Mapping[str, Any]) -> bool | None:
        value = operand(event)
        return None if value is None else (value in values) != current.negated

    return among


def _comparison(current: c.Comparison, operands: Sequence[Read], schema: Schema) -> Read:
    left, right = current.left, current.right
    if isinstance(left, c.Attribute) and isinstance(right, c.Literal) and isinstance(right.value, int | float):
        kind = schema.kind(left.name) if schema.has(left.name) else ValueKind.OTHER
        value = float(right.value) if kind is ValueKind.FLOAT else right.value
        if kind is ValueKind.FLOAT or (kind is ValueKind.INTEGER and type(value) is int):
            name, test = left.name, RELATIONS[current.operator]

            def quick(event: Mapping[str, Any]) -> bool | None:
                found = event[name]
                return None if found is None else test(found, value)

            return quick
    return _computed(operation(current), operands)


def _computed(operate: Callable[..., Any], operands: Sequence[Read]) -> Read:
    if len(operands) == 1:
        (only,) = operands
        return lambda event: operate(only(event))
    if len(operands) == 2:
        left, right = operands
        return lambda event: operate(left(event), right(event))
    return lambda event: operate(*[read(event) for read in operands])
