"""The kinds of expressions: numbers, strings, timestamps, durations, and which of them arithmetic combines."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn

import pyarrow as pa

from cerflow.base.errors import QueryError, Span, nearest
from cerflow.base.nested import field_type, joined, nested_names, parts_of
from cerflow.base.schema import Schema, ValueKind, kind_of
from cerflow.language import condition as c
from cerflow.language.lexicon import quote_attribute
from cerflow.language.node import Node, fold, walk
from cerflow.logic.analysis.kind_checks import a_kind, check_moment, check_ordered, check_string, kind_of_literal

_NUMBER, _TIME, _SPAN = ValueKind.FLOAT, ValueKind.TIMESTAMP, ValueKind.DURATION
#: The kind of a result where a timestamp or a duration is an operand; a number of either kind counts as a float.
TIME_ARITHMETIC: Mapping[tuple[str, ValueKind, ValueKind], ValueKind] = {
    ("-", _TIME, _TIME): _SPAN,
    ("-", _TIME, _SPAN): _TIME,
    ("+", _TIME, _SPAN): _TIME,
    ("+", _SPAN, _TIME): _TIME,
    ("+", _SPAN, _SPAN): _SPAN,
    ("-", _SPAN, _SPAN): _SPAN,
    ("*", _SPAN, _NUMBER): _SPAN,
    ("*", _NUMBER, _SPAN): _SPAN,
    ("/", _SPAN, _NUMBER): _SPAN,
    ("/", _SPAN, _SPAN): _NUMBER,
}
#: The operators with which a duration next to a numeric time is a number, too.
ADDITIVE = ("+", "-")


class Sort(NamedTuple):
    """The kind of an expression, None for NULL, which goes with everything.

    ``counts_time`` says that its numbers count what the numeric time column counts: the column itself, ``time(x)``,
    and what is added to them. ``zoned`` says of timestamps whether their columns have a time zone.
    """

    kind: ValueKind | None
    counts_time: bool = False
    zoned: bool | None = None

    @property
    def of_time(self) -> bool:
        """Whether it is a timestamp or a duration."""
        return self.kind in (ValueKind.TIMESTAMP, ValueKind.DURATION)

    @property
    def numeric(self) -> bool:
        """Whether it is a number."""
        return self.kind is not None and self.kind.numeric

    def counts_with(self, other: Sort) -> bool:
        """Whether one of both is a duration and the other a number that counts time."""
        pair = (self, other) if self.counts_time else (other, self)
        return pair[0].counts_time and pair[1].kind is ValueKind.DURATION


def kind_of_expression(expression: c.Expression, schema: Schema) -> ValueKind:
    """The kind of an expression's values; that of a bare NULL is ``OTHER``.

    Raises `QueryError` for unknown attributes and operands of the wrong kind.
    """
    found = fold(expression, lambda current, below: sort_of_node(current, below, schema))
    _refuse_others([(expression, found)], schema)
    return found.kind or ValueKind.OTHER


def _refuse_others(parts: Iterable[tuple[Node, Sort]], schema: Schema) -> None:
    """Raise `QueryError` for values of types that can only be tested for null."""
    for part, sort in parts:
        if sort.kind is ValueKind.OTHER:
            assert isinstance(part, c.Attribute)
            data_type = schema.columns.field(part.name).type
            raise QueryError(
                f"attribute '{part.name}' has type {data_type}, which expressions cannot use",
                span=part.span,
                hint=instead_of(part.name, data_type),
            )


def sort_of_node(current: Node, below: Sequence[Sort], schema: Schema) -> Sort:
    """The sort of an expression, given those of its children; NULL's for what is not an expression of the language.

    Only attributes that can be no more than tested for null are of the kind OTHER. Raises as `kind_of_expression`.
    """
    if not isinstance(current, c.IsNull):
        _refuse_others(zip(current.children, below), schema)
    match current:
        case c.Literal():
            return Sort(kind_of_literal(current))
        case c.Attribute():
            kind = kind_of_attribute(current.name, current, schema)
            if kind is ValueKind.OTHER and pa.types.is_null(schema.columns.field(current.name).type):
                return Sort(None)
            return Sort(kind, current.name == schema.time and kind.numeric, _zoned(current.name, schema))
        case c.Arithmetic():
            return _sort_of_arithmetic(current, below[0], below[1], schema)
        case c.Negative():
            if below[0].kind is ValueKind.DURATION:
                return below[0]
            return Sort(_numeric(below[0].kind, current.operand, "'-'", schema), below[0].counts_time)
        case c.Function("coalesce"):
            return common_sort("coalesce", current.arguments, below, schema)
        case c.If(_, then, otherwise):
            return common_sort("CASE", (then, otherwise), below[1:], schema)
        case c.TruthValue():
            return Sort(ValueKind.BOOLEAN)
        case c.Function() | c.Aggregate():
            given = _kind_of_call(current, below, schema)
            if current.name == "time":
                return Sort(given, schema.counts_time, None if schema.time is None else _zoned(schema.time, schema))
            signature = c.SIGNATURES[current.name]
            keeps = signature.gives is None or signature.durations
            first = below[0] if below else Sort(None)
            return Sort(given, keeps and first.counts_time, first.zoned if given is ValueKind.TIMESTAMP else None)
    # Expressions of automata may say themselves what they give.
    return Sort(getattr(current, "gives", None))


def instead_of(name: str, data_type: pa.DataType) -> str | None:
    """What to use instead of an attribute with several values; None for others."""
    if pa.types.is_struct(data_type) and data_type.num_fields:
        return f"Name one of its fields, such as {joined((name, data_type.field(0).name))}."
    return _way_out(data_type) if pa.types.is_nested(data_type) and not pa.types.is_struct(data_type) else None


def _zoned(name: str, schema: Schema) -> bool | None:
    """Whether a column of timestamps has a time zone; None for other columns."""
    if not schema.has(name) or schema.kind(name) is not ValueKind.TIMESTAMP:
        return None
    data_type = schema.columns.field(schema.column(name)).type
    return pa.types.is_timestamp(data_type) and data_type.tz is not None


def refuse_zones(place: Node, parts: Sequence[Node], schema: Schema) -> None:
    """Raise `QueryError` if some timestamps of the parts have a time zone and others have none."""
    named: dict[bool, str] = {}
    for current in (node for part in parts for node in walk(part)):
        time = isinstance(current, c.Function) and current.name == "time"
        name = schema.time if time else current.name if isinstance(current, c.Attribute) else None
        zoned = None if name is None else _zoned(name, schema)
        if name is not None and zoned is not None:
            named.setdefault(zoned, f"'{name}' is {schema.columns.field(schema.column(name)).type}")
    if len(named) == 2:
        raise QueryError(
            f"times with and without a time zone cannot be mixed: {named[False]}, but {named[True]}",
            span=place.span,
            hint="Cast one of the columns, in Arrow by assume_timezone or cast, in Spark by CAST(… AS TIMESTAMP).",
        )


def kind_of_attribute(name: str, place: Node, schema: Schema, what: str = "attribute") -> ValueKind:
    """The kind of an attribute; raises `QueryError` at a place if there is none of that name."""
    if schema.has(name):
        return schema.kind(name)
    # The event type can always be read as `type`.
    if name == "type" and not schema.untyped:
        return schema.kind(schema.type)
    raise _unknown(name, place, schema, what)


def _unknown(name: str, place: Node, schema: Schema, what: str) -> QueryError:
    """The error for an attribute that there is not, with the place of the first part of its name that is not there."""
    *above, last = parts_of(name)
    known = field_type(schema.columns, above) if above else None
    if above and known is None:
        rest = len(quote_attribute(last)) + 1
        shorter = joined(above)
        there = None if place.span is None else replace(place, span=Span(place.span.start, place.span.end - rest))
        if ".".join((*above, last)) in schema.columns.names:
            column = quote_attribute(".".join((*above, last)))
            return QueryError(
                f"unknown {what} '{above[0]}'", span=place.span, hint=f"The column is written in quotes: {column}."
            )
        error = _unknown(shorter, there or place, schema, what)
        if last in schema.known_names and getattr(place, "label", None) is None:
            error.hint = f"Write {quote_attribute(last)}, without a label."
        return error
    if not above:
        below = [name for name in nested_names(schema.columns) if parts_of(name)[-1] == last]
        return QueryError(
            f"unknown {what} '{last}'",
            span=place.span,
            suggestion=nearest(last, schema.known_names) or next(iter(below), None),
            hint=f"The attributes are {', '.join(schema.known_names)}.",
        )
    span = None if place.span is None else Span(place.span.end - len(quote_attribute(last)), place.span.end)
    if known is not None and pa.types.is_struct(known):
        fields = [field.name for field in known]
        return QueryError(
            f"'{joined(above)}' has no field '{last}'",
            span=span,
            suggestion=nearest(last, fields),
            hint=f"Its fields are {', '.join(fields)}.",
        )
    return QueryError(
        f"'{joined(above)}' has type {known}, so it has no field '{last}'", span=span, hint=_way_out(known)
    )


def _way_out(data_type: pa.DataType) -> str | None:
    """What to do about a value that holds several values, or text; None if there is nothing to do."""
    if pa.types.is_map(data_type):
        return "Make a column or a struct of the keys that are read: in Spark m['key'], in DuckDB m.key."
    if pa.types.is_nested(data_type):
        return (
            "A list has no single value: make one event of each element (explode in Spark, Polars and pandas, UNNEST "
            "in DuckDB), or a column of the one that is meant."
        )
    text = kind_of(data_type) is ValueKind.STRING
    return "If it holds JSON, make structs of it: from_json in Spark, str.json_decode in Polars." if text else None


def _sort_of_arithmetic(current: c.Arithmetic, left: Sort, right: Sort, schema: Schema) -> Sort:
    sign, kinds = current.operator, (left.kind, right.kind)
    if left.of_time or right.of_time:
        return _sort_of_time_arithmetic(current, left, right, schema)
    for operand, found in zip((current.left, current.right), kinds):
        _numeric(found, operand, f"'{sign}'", schema)
    if None in kinds:
        return Sort(None)
    # A time divided by a time counts nothing, and a remainder is not a time.
    both = left.counts_time and right.counts_time
    counts_time = (left.counts_time or right.counts_time) and sign != "%" and not (both and sign in "*/")
    return Sort(ValueKind.FLOAT if sign == "/" or ValueKind.FLOAT in kinds else ValueKind.INTEGER, counts_time)


def _sort_of_time_arithmetic(current: c.Arithmetic, left: Sort, right: Sort, schema: Schema) -> Sort:
    sign = current.operator
    sides = [(current.left, left), (current.right, right)]
    if left.counts_with(right) and sign in ADDITIVE:
        (duration,) = (side for side, sort in sides if sort.kind is ValueKind.DURATION)
        (number,) = (sort for _, sort in sides if sort.counts_time)
        whole = isinstance(duration, c.Literal) and isinstance(in_ticks(duration, schema), int)
        return Sort(number.kind if whole else ValueKind.FLOAT, True)
    if sign == "-" and {left.kind, right.kind} == {ValueKind.TIMESTAMP, ValueKind.STRING}:
        check_moment(current.left if left.kind is ValueKind.STRING else current.right, current, "-")
        return Sort(ValueKind.DURATION)
    if {left.zoned, right.zoned} == {True, False}:
        refuse_zones(current, (current.left, current.right), schema)
    kinds = [_NUMBER if sort.numeric else sort.kind for sort in (left, right)]
    if None in kinds:
        for known, *pair in TIME_ARITHMETIC:
            if known == sign and all(kind in (None, own) for kind, own in zip(kinds, pair)):
                return Sort(None)
    found = TIME_ARITHMETIC.get((sign, kinds[0], kinds[1]))  # type: ignore[arg-type]
    if found is None:
        refuse_mixture(
            f"'{sign}' cannot combine {a_kind(left.kind)} with {a_kind(right.kind)}", current, left, right, schema
        )
    return Sort(found, zoned=(left.zoned or right.zoned or False) if found is ValueKind.TIMESTAMP else None)


def in_ticks(duration: c.Literal, schema: Schema) -> int | float:
    """A duration as the number of what the numeric time column counts, see `Schema.ticks`."""
    assert isinstance(duration.value, datetime.timedelta)
    return schema.ticks(duration.value // datetime.timedelta(microseconds=1))


def refuse_mixture(reason: str, place: Node, left: Sort, right: Sort, schema: Schema) -> NoReturn:
    """Raise `QueryError` for a timestamp or duration next to something that does not fit it, with a remedy."""
    kinds = {left.kind, right.kind}
    if kinds == {ValueKind.TIMESTAMP}:
        hint = "The difference of two timestamps is a duration, and a timestamp and a duration can be added."
    elif ValueKind.STRING in kinds and ValueKind.DURATION in kinds:
        hint = "A duration is written 5 MINUTES, or INTERVAL '5' MINUTE."
    elif ValueKind.STRING in kinds:
        hint = "A string is a timestamp where it is compared with one or subtracted from one."
    elif kinds == {ValueKind.TIMESTAMP, ValueKind.DURATION}:
        hint = "Subtract a timestamp first: y.t - x.t is a duration."
    elif kinds == {ValueKind.DURATION}:
        hint = "The quotient of two durations is a number, as in d / 1 SECOND."
    elif any(sort.numeric for sort in (left, right)):
        hint = "A number becomes a duration with its unit, as in 5 MINUTES or x.n * 1 SECOND; d / 1 SECOND is a number."
        if schema.time is None:
            hint += " Without a time column time(x) is a position."
    else:
        hint = "Durations combine with timestamps, durations and numbers."
    raise QueryError(reason, span=place.span, hint=hint)


def _numeric(kind: ValueKind | None, operand: Node, what: str, schema: Schema) -> ValueKind | None:
    if kind is ValueKind.DECIMAL:
        raise inexact(operand, f"cannot be an operand of {what}", schema)
    if kind is not None and not kind.numeric:
        hint = {
            ValueKind.DURATION: "Divide the duration by a unit first, as in d / 1 SECOND.",
            ValueKind.TIMESTAMP: "Take the time since another one, as in x.t - '2024-01-01', and divide by a unit.",
        }.get(kind)
        raise QueryError(f"{what} needs numbers, but this is {a_kind(kind)}", span=operand.span, hint=hint)
    return kind


def inexact(operand: Node, why: str, schema: Schema) -> QueryError:
    """The error for what would not be exact with a decimal."""
    name = next(
        a.name for a in walk(operand) if isinstance(a, c.Attribute) and schema.kind(a.name) is ValueKind.DECIMAL
    )
    data_type = schema.columns.field(name).type
    return QueryError(
        f"attribute '{name}' has type {data_type}, whose values are compared exactly, with decimals and literals; "
        f"it {why}",
        span=operand.span,
        hint=f"Cast '{name}' to a decimal of at most 15 digits (or 18 without a fraction), to double or to bigint.",
    )


def _kind_of_call(call: c.Function | c.Aggregate, below: Sequence[Sort], schema: Schema) -> ValueKind | None:
    signature = c.SIGNATURES[call.name]
    if call.name == "time":
        return ValueKind.INTEGER if schema.time is None else schema.kind(schema.time)
    if not below:
        return signature.gives
    operand, kind = call.children[0], below[0].kind
    if call.name in ("min", "max"):
        check_ordered(kind, operand, call.name)
    if signature.durations and kind is ValueKind.DURATION:
        return kind
    match signature.takes:
        case ValueKind.STRING:
            texts = 2 if call.name == "||" else 1
            for operand, sort in zip(call.children[:texts], below):
                check_string(sort.kind, operand, call.name, "Conditions are joined by OR." if texts == 2 else None)
            for operand, sort in zip(call.children[texts:], below[texts:]):
                if sort.kind not in (None, ValueKind.INTEGER):
                    raise QueryError(
                        f"{call.name} counts characters by integers, but this is {a_kind(sort.kind)}", span=operand.span
                    )
        case ValueKind.TIMESTAMP if kind not in (None, ValueKind.TIMESTAMP):
            raise QueryError(f"{call.name} needs a timestamp, but this is {a_kind(kind)}", span=operand.span)
        case ValueKind.FLOAT:
            _numeric(kind, operand, call.name, schema)
    return signature.gives or kind


def common_sort(what: str, parts: Sequence[c.Expression], below: Sequence[Sort], schema: Schema) -> Sort:
    """The sort of a value that is one of several; raises `QueryError` if they are not of one kind."""
    found: Sort = Sort(None)
    for part, sort in zip(parts, below):
        if sort.kind is ValueKind.DECIMAL:
            raise inexact(part, f"cannot be a value of {what}", schema)
        if found.kind is None or sort.kind is None:
            kind = found.kind or sort.kind
        elif found.numeric and sort.numeric:
            kind = ValueKind.FLOAT if ValueKind.FLOAT in (found.kind, sort.kind) else ValueKind.INTEGER
        elif found.kind is sort.kind:
            kind = sort.kind
        else:
            raise QueryError(
                f"{what} takes values of one kind, but these are {a_kind(sort.kind)} and {a_kind(found.kind)}",
                span=part.span,
            )
        if {found.zoned, sort.zoned} == {True, False}:
            refuse_zones(part, parts, schema)
        zoned = sort.zoned if found.zoned is None else found.zoned
        found = Sort(kind, found.counts_time or sort.counts_time, zoned)
    return found
