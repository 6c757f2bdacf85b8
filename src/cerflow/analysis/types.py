"""Types: whether a query fits the columns of its input."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from cerflow.errors import QueryError, nearest
from cerflow.language.condition import (
    Aggregate,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    Condition,
    Expression,
    Function,
    In,
    IsNull,
    LabelReference,
    Like,
    Literal,
    Negative,
    PredicateCall,
    Regexp,
    Rounded,
    SetTest,
    comparisons,
)
from cerflow.language.formula import AttributeWindow, DurationWindow, Filter, NotEvent, Window, Within
from cerflow.language.node import Node, fold, walk
from cerflow.language.select import ExpressionItem, LabelItem, Select
from cerflow.language.sremo import Regular, Sremo, Terminal, Windowed
from cerflow.schema import Kind, Schema
from cerflow.values.operators import Operator

__all__ = ["check_sremo_types", "check_types", "kind_of_expression"]

#: A decimal that is written out as a text.
_NUMBER = re.compile(r"[+-]?[0-9]{1,100}(\.[0-9]{1,100})?", re.ASCII)


def check_types(select: Select, schema: Schema) -> None:
    """Whether a query that `check_query` accepts fits a schema.

    Raises `QueryError`, with the place, for unknown attributes and partition keys, values of kinds that cannot be
    compared or computed with, and windows on what is no number or without times.
    """
    for current in walk(select.formula):
        if isinstance(current, Filter | NotEvent) and current.condition is not None:
            _check_condition(current.condition, schema)
        elif isinstance(current, Within):
            _check_window(current.window, schema)
        elif isinstance(current, Regular):
            check_sremo_types(current.expression, schema)
    if select.window is not None:
        _check_window(select.window, schema)
    for key in select.partition:
        _check_key(key, select, schema)
    for item in select.projection.items:
        if isinstance(item, LabelItem):
            for name in item.attributes or ():
                _kind_of_attribute(name, item, schema)
        elif isinstance(item, ExpressionItem):
            kind_of_expression(item.expression, schema)


def check_sremo_types(expression: Sremo, schema: Schema) -> None:
    """Whether a SREMO expression that `check_sremo` accepts fits a schema; raises as `check_types` does."""
    for current in walk(expression):
        if isinstance(current, Terminal):
            _check_condition(current.condition, schema)
        elif isinstance(current, Windowed):
            _check_window(current.window, schema)


def kind_of_expression(expression: Expression, schema: Schema) -> Kind:
    """The kind of an expression's values; ``OTHER`` for a bare NULL.

    Raises `QueryError` for unknown attributes and operands of the wrong kind.
    """
    return _kind(expression, schema) or Kind.OTHER


def _kind(expression: Expression, schema: Schema) -> Kind | None:
    """The kind of an expression's values; None for NULL, which goes with everything."""

    def visit(current: Node, below: Sequence[Kind | None]) -> Kind | None:
        match current:
            case Literal():
                return _kind_of_literal(current)
            case Attribute():
                kind = _kind_of_attribute(current.name, current, schema)
                if kind is Kind.OTHER:
                    data_type = schema.columns.field(current.name).type
                    if pa.types.is_null(data_type):
                        return None
                    raise QueryError(
                        f"attribute '{current.name}' has type {data_type}, which cannot be computed with",
                        span=current.span,
                    )
                return kind
            case Arithmetic():
                for operand, found in zip((current.left, current.right), below):
                    _numeric(found, operand, f"'{current.operator}'", schema)
                if None in below:
                    return None
                if current.operator == "/" or Kind.FLOAT in below:
                    return Kind.FLOAT
                return Kind.INTEGER
            case Negative():
                return _numeric(below[0], current.operand, "'-'", schema)
            case Function():
                return _kind_of_function(current, below[0], schema)
            case Aggregate():
                return _kind_of_aggregate(current, below[0], schema)
        return None

    return fold(expression, visit)


def _kind_of_literal(literal: Literal) -> Kind | None:
    match literal.value:
        case None:
            return None
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case float():
            return Kind.FLOAT
        case str():
            return Kind.STRING


def _kind_of_attribute(name: str, place: Node, schema: Schema) -> Kind:
    if name in schema.attributes:
        return schema.kind(name)
    # The event type can always be read as `type`.
    if name == "type":
        return schema.kind(schema.type)
    raise QueryError(
        f"unknown attribute '{name}'",
        span=place.span,
        suggestion=nearest(name, schema.attributes),
        hint=f"The attributes are {', '.join(schema.attributes)}.",
    )


def _a(kind: Kind | None) -> str:
    return f"{'an' if kind is Kind.INTEGER else 'a'} {kind}"


def _numeric(kind: Kind | None, operand: Node, what: str, schema: Schema) -> Kind | None:
    if kind is Kind.DECIMAL:
        raise _inexact(operand, f"cannot be computed with by {what}", schema)
    if kind is not None and not kind.numeric:
        raise QueryError(f"{what} needs numbers, but this is {_a(kind)}", span=operand.span)
    return kind


def _inexact(operand: Node, why: str, schema: Schema) -> QueryError:
    """The error for an operation that would not be exact with a decimal."""
    name = next(a.name for a in walk(operand) if isinstance(a, Attribute) and schema.kind(a.name) is Kind.DECIMAL)
    data_type = schema.columns.field(name).type
    return QueryError(
        f"attribute '{name}' has type {data_type}, whose values are compared exactly, with decimals and literals; "
        f"it {why}",
        span=operand.span,
        hint=f"Cast '{name}' to a decimal of at most 15 digits (or 18 without a fraction), to double or to bigint.",
    )


def _string(kind: Kind | None, operand: Node, what: str) -> None:
    if kind not in (None, Kind.STRING):
        raise QueryError(f"{what} needs a string, but this is {_a(kind)}", span=operand.span)


def _kind_of_function(function: Function, argument: Kind | None, schema: Schema) -> Kind | None:
    operand = function.arguments[0]
    match function.name:
        case "position":
            return Kind.INTEGER
        case "prev":
            return argument
        case "time":
            return Kind.FLOAT if schema.time is not None and schema.kind(schema.time) is Kind.FLOAT else Kind.INTEGER
        case "lower" | "upper":
            _string(argument, operand, function.name)
            return Kind.STRING
        case "length":
            _string(argument, operand, function.name)
            return Kind.INTEGER
    return _numeric(argument, operand, function.name, schema)


def _kind_of_aggregate(aggregate: Aggregate, argument: Kind | None, schema: Schema) -> Kind | None:
    match aggregate.name:
        case "count":
            return Kind.INTEGER
        case "avg" | "stddev":
            _numeric(argument, aggregate.argument, aggregate.name, schema)
            return Kind.FLOAT
        case "sum":
            return _numeric(argument, aggregate.argument, aggregate.name, schema)
        case "min" | "max":
            _ordered(argument, aggregate.argument, aggregate.name)
    return argument


def _ordered(kind: Kind | None, operand: Node, what: str) -> None:
    if kind is Kind.BOOLEAN:
        raise QueryError(f"{what} needs values that have an order, but this is a boolean", span=operand.span)


def _check_condition(condition: Condition, schema: Schema) -> None:
    for current in walk(condition):
        match current:
            case Comparison() | In() | Between():
                for comparison in comparisons(current):
                    _check_comparison(comparison, schema)
            case Like() | Regexp():
                what = "LIKE" if isinstance(current, Like) else "REGEXP"
                _string(_kind(current.operand, schema), current.operand, what)
            case IsNull():
                for place in _attributes(current.operand):
                    _kind_of_attribute(place.name, place, schema)
                if not isinstance(current.operand, Attribute):
                    _kind(current.operand, schema)
            case PredicateCall():
                for argument in current.arguments:
                    if not isinstance(argument, LabelReference):
                        _kind(argument, schema)
            case SetTest():
                _ordered(_kind(current.argument, schema), current.argument, current.name)


def _attributes(expression: Node) -> Iterator[Attribute]:
    return (current for current in walk(expression) if isinstance(current, Attribute))


def _check_comparison(comparison: Comparison, schema: Schema) -> None:
    """Whether two values can be compared: numbers with numbers, timestamps also with strings that are written out."""
    operator, left, right = comparison.operator, comparison.left, comparison.right
    kinds = _kind(left, schema), _kind(right, schema)
    if None in kinds or all(kind is not None and kind.numeric for kind in kinds):
        return
    if Kind.DECIMAL in kinds:
        _check_decimals((left, right), kinds, schema)
        return
    if set(kinds) == {Kind.TIMESTAMP, Kind.STRING}:
        _check_moment(left if kinds[0] is Kind.STRING else right)
        return
    if kinds[0] is not kinds[1]:
        raise QueryError(f"{_a(kinds[0])} cannot be compared with {_a(kinds[1])}", span=comparison.span)
    if kinds[0] is Kind.BOOLEAN and operator not in (Operator.EQ, Operator.NE):
        raise QueryError(f"booleans have no order, so '{operator}' cannot compare them", span=comparison.span)


def _check_decimals(sides: Sequence[Expression], kinds: Sequence[Kind | None], schema: Schema) -> None:
    """Whether a decimal is compared with another one, or with a literal that says exactly which."""
    decimal, *_ = (side for side, kind in zip(sides, kinds) if kind is Kind.DECIMAL)
    for side, kind in zip(sides, kinds):
        if kind is Kind.DECIMAL:
            continue
        if not isinstance(side, Literal) or isinstance(side.value, bool):
            raise _inexact(decimal, f"cannot be compared with {_a(kind)}", schema)
        if isinstance(side.value, str) and not _NUMBER.fullmatch(side.value):
            raise QueryError(f"'{side.value}' is no number", span=side.span, hint="Write it as in '-12.50'.")
        if isinstance(side.value, Rounded):
            raise QueryError(
                "this number has more digits than a float holds, but decimals are compared exactly",
                span=side.span,
                hint="Write it in quotes.",
            )


def _check_moment(expression: Expression) -> None:
    if not isinstance(expression, Literal):
        raise QueryError("a timestamp cannot be compared with a string", span=expression.span)
    try:
        datetime.datetime.fromisoformat(str(expression.value))
    except ValueError:
        raise QueryError(
            f"'{expression.value}' is no timestamp",
            span=expression.span,
            hint="Write it as in '2024-02-29', '2024-02-29 13:45:00' or '2024-02-29T13:45:00+01:00'.",
        ) from None


def _check_window(window: Window, schema: Schema) -> None:
    if isinstance(window, DurationWindow) and schema.time is None:
        raise QueryError(
            "a window of time needs a time column, but none is named",
            span=window.span,
            hint="Name it with time=…, or use n EVENTS, or n [attribute].",
        )
    if isinstance(window, AttributeWindow):
        kind = _kind_of_attribute(window.attribute, window, schema)
        if not kind.numeric:
            if kind is Kind.DECIMAL:
                raise _inexact(Attribute(None, window.attribute, span=window.span), "cannot measure a window", schema)
            raise QueryError(
                f"a window needs a numeric attribute, but '{window.attribute}' is {_a(kind)}", span=window.span
            )


def _check_key(key: tuple[str, ...], select: Select, schema: Schema) -> None:
    kinds = []
    for name in key:
        if name not in schema.attributes and name != "type":
            raise QueryError(
                f"unknown partition key '{name}'",
                span=select.span,
                suggestion=nearest(name, schema.attributes),
                hint=f"The attributes are {', '.join(schema.attributes)}.",
            )
        kind = _kind_of_attribute(name, select, schema)
        if kind is Kind.OTHER and not pa.types.is_null(schema.columns.field(name).type):
            column = schema.columns.field(name).type
            raise QueryError(f"partition key '{name}' has type {column}, which has no equality", span=select.span)
        kinds.append(kind)
    known = [(name, kind) for name, kind in zip(key, kinds) if kind is not Kind.OTHER]
    if len({kind for _, kind in known}) > 1 and not all(kind.numeric for _, kind in known):
        first, kind = known[0]
        second, other = next(found for found in known if found[1] is not kind)
        raise QueryError(
            f"the attributes of one partition key must be of one kind, but '{first}' is {_a(kind)} "
            f"and '{second}' {_a(other)}",
            span=select.span,
        )
