"""Types: whether a query fits the columns of its input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from cerflow.base.errors import QueryError, Span, nearest
from cerflow.base.nested import is_nested
from cerflow.base.operators import Operator
from cerflow.base.schema import Schema, ValueKind
from cerflow.language import condition as c
from cerflow.language import formula as f
from cerflow.language.automaton import TypeTest
from cerflow.language.event_kinds import kinds_in
from cerflow.language.node import Node, fold
from cerflow.language.printer import show
from cerflow.language.select import ExpressionItem, LabelItem, Select
from cerflow.language.sremo import with_fields
from cerflow.logic.analysis.checks import check_given
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.analysis.kind_checks import a_kind, check_moment, check_ordered, check_string
from cerflow.logic.analysis.kinds import (
    Sort,
    inexact,
    instead_of,
    kind_of_attribute,
    refuse_mixture,
    refuse_zones,
    sort_of_node,
)
from cerflow.logic.analysis.scopes import labels_of

#: A decimal that is written out as a text.
_NUMBER = re.compile(r"[+-]?[0-9]{1,100}(\.[0-9]{1,100})?", re.ASCII)


def check_types(select: Select, schema: Schema) -> None:
    """Whether a query that `check_query` accepts fits a schema.

    Raises `QueryError`, with the place, for unknown attributes and partition keys, values of kinds that cannot be
    compared or computed with, and windows on what is not a number or without times.
    """
    schema = schema.reading(attributes_in(select))
    select = with_fields(select, schema.attributes)
    _check_parts(select.formula, select, schema)
    if select.window is not None:
        _check_parts(select.window, select, schema)
    for number in range(len(select.partition)):
        _check_key(number, select, schema)
    for item in select.projection.items:
        if isinstance(item, LabelItem):
            if schema.untyped and item.label not in select.streams:
                check_given(item.label, item, replace(labels_of(select.formula), wildcard=False), select.formula)
            for name in item.attributes or ():
                kind_of_attribute(name, item, schema)
        elif isinstance(item, ExpressionItem):
            _check_parts(item, select, schema)


def _refuse_type(named: f.EventType | TypeTest, select: Select, schema: Schema) -> None:
    """Raise `QueryError` for the name of a type where events have none; those of definitions have."""
    name = named.name if isinstance(named, f.EventType) else named.type
    if name in select.streams:
        return
    could = [
        n for n in schema.known_names if n != schema.time and schema.kind(n) in (ValueKind.STRING, ValueKind.INTEGER)
    ]
    columns = f" (such as {', '.join(could[:5])})" if could else ""
    near = nearest(name, [n for n, condition in kinds_in(select.formula).items() if condition is not None])
    raise QueryError(
        f"'{name}' is named as the type of an event, but the events have no types",
        span=named.span,
        hint=f"Did you mean '{near}'?"
        if near
        else f"Name the column that holds them{columns} with type=… (--type-column), give all events one type with "
        f"constant_type='{name}' (--constant-type), or say which events are meant: DEFINE {name} AS condition.",
    )


def _check_parts(root: Node, select: Select, schema: Schema) -> None:
    """Whether the windows, conditions and names of types in a part of a query fit a schema."""

    def visit(current: Node, below: Sequence[Sort]) -> Sort:
        sort = sort_of_node(current, below, schema)
        match current:
            case f.EventType() | TypeTest() if schema.untyped and not isinstance(current, f.EventKind):
                _refuse_type(current, select, schema)
            case f.Window():
                _check_window(current, schema)
            case c.Comparison() | c.In() | c.Between():
                for comparison, other in zip(c.comparisons(current), below[1:]):
                    _check_comparison(comparison, (below[0], other), schema)
            case c.PatternTest():
                what = "LIKE" if isinstance(current, c.Like) else "REGEXP"
                check_string(below[0].kind, current.operand, what)
            case c.PredicateCall():
                for argument, given in zip(current.arguments, below):
                    _check_argument(argument, given)
            case c.SetTest():
                check_ordered(below[0].kind, current.argument, current.name)
        return sort

    fold(root, visit)


def _check_argument(argument: c.Expression, sort: Sort) -> None:
    """Whether a value can be handed to a predicate: times that are computed cannot."""
    given = argument
    if isinstance(argument, c.Aggregate) and argument.name in ("min", "max", "first", "last"):
        given = argument.argument
    plain = isinstance(given, c.Attribute | c.Literal) or (isinstance(given, c.Function) and given.name == "time")
    if sort.of_time and not plain:
        raise QueryError(
            "a predicate takes attributes and numbers, but this is a computed timestamp or duration",
            span=argument.span,
            hint="Pass a number, as in d / 1 SECOND, or the attributes themselves.",
        )


def _check_comparison(comparison: c.Comparison, sorts: tuple[Sort, Sort], schema: Schema) -> None:
    """Whether two values can be compared: numbers with numbers, timestamps also with strings that are written out.

    A duration is compared with durations, and with numbers that count time.
    """
    operator, left, right = comparison.operator, comparison.left, comparison.right
    kinds = sorts[0].kind, sorts[1].kind
    if {sort.zoned for sort in sorts} == {True, False}:
        refuse_zones(comparison, (left, right), schema)
    if None in kinds or all(sort.numeric for sort in sorts) or sorts[0].counts_with(sorts[1]):
        return
    if ValueKind.DECIMAL in kinds:
        _check_decimals((left, right), kinds, schema)
        return
    if set(kinds) == {ValueKind.TIMESTAMP, ValueKind.STRING}:
        check_moment(left if kinds[0] is ValueKind.STRING else right, comparison)
        return
    if kinds[0] is not kinds[1]:
        if comparison.span is not None and right == c.Literal(True) and right.span is None:
            reason = f"{show(left)} is {a_kind(kinds[0])}, but a condition is expected here"
            raise QueryError(reason, span=comparison.span, hint=f"Compare it with something, as in {show(left)} > 10.")
        reason = f"{a_kind(kinds[0])} cannot be compared with {a_kind(kinds[1])}"
        if any(sort.of_time for sort in sorts):
            refuse_mixture(reason, comparison, *sorts, schema)
        raise QueryError(reason, span=comparison.span, hint=_remedy(left, kinds[1]) or _remedy(right, kinds[0]))
    if kinds[0] is ValueKind.BOOLEAN and operator not in (Operator.EQ, Operator.NE):
        raise QueryError(f"booleans have no order, so '{operator}' cannot compare them", span=comparison.span)


def _remedy(value: c.Expression, kind: ValueKind | None) -> str | None:
    """How a literal is written as a value of another kind."""
    match value:
        case c.Literal(str(text)) if kind is not ValueKind.BOOLEAN and _NUMBER.fullmatch(text):
            return f"Write the number without quotes: {text}."
        case c.Literal() if kind is ValueKind.STRING:
            return f"Write it in quotes: '{show(value)}'."
        case c.Literal(str(text)) if kind is ValueKind.BOOLEAN and text.lower() in ("true", "false"):
            return f"Write {text.upper()}."
        case c.Literal(int(number)) if kind is ValueKind.BOOLEAN and number in (0, 1):
            return f"Write {'TRUE' if number else 'FALSE'}."
    return None


def _check_decimals(sides: Sequence[c.Expression], kinds: Sequence[ValueKind | None], schema: Schema) -> None:
    """Whether a decimal is compared with another one, or with a literal that says exactly which."""
    decimal, *_ = (side for side, kind in zip(sides, kinds) if kind is ValueKind.DECIMAL)
    for side, kind in zip(sides, kinds):
        if kind is ValueKind.DECIMAL:
            continue
        if not isinstance(side, c.Literal) or isinstance(side.value, bool):
            raise inexact(decimal, f"cannot be compared with {a_kind(kind)}", schema)
        if isinstance(side.value, str) and not _NUMBER.fullmatch(side.value):
            raise QueryError(f"'{side.value}' is not a number", span=side.span, hint="Write it as in '-12.50'.")
        if isinstance(side.value, c.Rounded):
            raise QueryError(
                "this number has more digits than a float holds, but decimals are compared exactly",
                span=side.span,
                hint="Write it in quotes.",
            )


def _check_window(window: f.Window, schema: Schema) -> None:
    if isinstance(window, f.DurationWindow) and schema.time is None:
        raise QueryError(
            "a window of time needs a time column, but none is named",
            span=window.span,
            hint="Name it with time=…, or use n EVENTS, or n [attribute].",
        )
    if isinstance(window, f.AttributeWindow):
        place, span = window, window.span
        if span is not None and is_nested(window.attribute):
            place = replace(window, span=Span(span.start, span.end - 1))  # without the bracket after the field
        kind = kind_of_attribute(window.attribute, place, schema)
        if not kind.numeric:
            if kind is ValueKind.DECIMAL:
                raise inexact(c.Attribute(None, window.attribute, span=window.span), "cannot measure a window", schema)
            raise QueryError(
                f"a window needs a numeric attribute, but '{window.attribute}' is {a_kind(kind)}", span=window.span
            )


def _check_key(number: int, select: Select, schema: Schema) -> None:
    key = select.partition[number]
    spans = select.key_spans[number] if select.key_spans else (select.span,) * len(key)
    kinds = []
    for name, span in zip(key, spans):
        kind = kind_of_attribute(name, replace(select, span=span), schema, "partition key")
        if kind is ValueKind.OTHER and not pa.types.is_null(schema.columns.field(name).type):
            column = schema.columns.field(name).type
            reason = f"partition key '{name}' has type {column}, which has no equality"
            raise QueryError(reason, span=span, hint=instead_of(name, column))
        kinds.append(kind)
    refuse_zones(select, [c.Attribute(None, name) for name in key], schema)
    known = [(name, kind) for name, kind in zip(key, kinds) if kind is not ValueKind.OTHER]
    if len({kind for _, kind in known}) > 1 and not all(kind.numeric for _, kind in known):
        first, kind = known[0]
        second, other = next(found for found in known if found[1] is not kind)
        raise QueryError(
            f"the attributes of one partition key must be of one kind, but '{first}' is {a_kind(kind)} "
            f"and '{second}' {a_kind(other)}",
            span=spans[key.index(second)],
        )
