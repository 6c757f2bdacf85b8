"""Arithmetic on timestamps and durations as arithmetic on whole numbers of microseconds (spec §10).

So the engine computes with numbers alone. A timestamp that is only compared with timestamps stays one, so that no digit
of it is lost. Where the time column is a number, a duration next to it becomes a number of the column's units.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from cerflow.base.events import microseconds_since_epoch, parsed_moment
from cerflow.base.schema import Schema, ValueKind
from cerflow.language import condition as c
from cerflow.language.node import N, Node, fold, transform, walk, with_children
from cerflow.logic.analysis.kinds import ADDITIVE, Sort, in_ticks, sort_of_node
from cerflow.logic.conditions.register_values import Dated, DatePart, Microseconds, Whole


def with_times_as_numbers(tree: N, schema: Schema) -> N:
    """The same query, condition or expression without arithmetic on times, and `with_floats`; itself if it has none.

    It fits the schema. A value that is computed becomes its number of microseconds.
    """
    return cast(N, _form(tree, schema).tree)


def as_microseconds(expression: c.Expression, schema: Schema) -> c.Expression:
    """The number of microseconds of a timestamp or duration; any other value as it is, without arithmetic on times."""
    form = _form(expression, schema)
    return form.number if form.sort.of_time else cast(c.Expression, form.tree)


@dataclass(frozen=True)
class _Rewritten:
    """A tree without arithmetic on times, and the sort of the original.

    ``computed`` says that it gives the microseconds of what the original gives.
    """

    tree: Node
    sort: Sort
    computed: bool = False

    @property
    def number(self) -> c.Expression:
        """The microseconds of a timestamp or duration, or of a string that says a timestamp."""
        tree = self.tree
        if self.computed:
            return cast(c.Expression, tree)
        match tree:
            case c.Literal(str(text)):
                return c.Literal(microseconds_since_epoch(parsed_moment(text)), span=tree.span)
            case c.Literal(datetime.timedelta() as duration):
                return c.Literal(duration // datetime.timedelta(microseconds=1), span=tree.span, duration=duration)
            case c.Aggregate(name, argument):
                # Rounding down changes no order.
                return c.Aggregate(name, Microseconds(argument), span=tree.span)
            case c.Function("prev", (argument,)):
                return c.Function("prev", (Microseconds(argument),), span=tree.span)
        assert isinstance(tree, c.Attribute | c.Function)
        return Microseconds(tree, span=tree.span)


def _form(root: Node, schema: Schema, *, times: bool = True) -> _Rewritten:
    return fold(root, lambda current, below: _visit(current, below, schema, times))


def _visit(current: Node, below: Sequence[_Rewritten], schema: Schema, times: bool) -> _Rewritten:
    """A node with rewritten parts; without ``times`` only integers next to floats are rewritten."""
    if times and isinstance(current, c.Comparison | c.Between | c.In):
        return _Rewritten(with_children(current, _alike(below, schema)), Sort(None))
    trees = [form.tree for form in below]
    if not isinstance(current, c.Expression):
        return _Rewritten(with_children(current, trees), Sort(None))
    sort = sort_of_node(current, [form.sort for form in below], schema)
    if sort.kind is ValueKind.FLOAT and _is_choice(current):
        trees = [_as_float(form.tree) if form.sort.kind is ValueKind.INTEGER else form.tree for form in below]
    if not times:
        return _Rewritten(with_children(current, trees), sort)
    numbers = [form.number if form.sort.of_time else form.tree for form in below]
    match current:
        case c.Arithmetic() if any(form.sort.of_time for form in below):
            return _arithmetic(current, below, sort, schema)
        case c.Negative() | c.If() | c.Function("abs" | "coalesce") | c.Aggregate("sum") if sort.of_time:
            return _Rewritten(with_children(current, numbers), sort, computed=True)
        case c.Function(name) if name in c.DATE_PARTS:
            return _Rewritten(
                DatePart(cast(c.Expression, numbers[0]), name, zone_of(current, schema), span=current.span), sort
            )
        case c.Aggregate("avg") if sort.of_time:
            return _Rewritten(Whole(cast(c.Expression, with_children(current, numbers))), sort, computed=True)
    return _Rewritten(with_children(current, trees), sort, sort.of_time and any(form.computed for form in below))


def zone_of(expression: c.Expression, schema: Schema) -> str | None:
    """The time zone of the timestamps that an expression is made of; of several the first, None for none."""
    read = [n.name for n in walk(expression) if isinstance(n, c.Attribute)]
    read += [schema.time for n in walk(expression) if isinstance(n, c.Function) and n.name == "time" and schema.time]
    types = (schema.columns.field(schema.column(name)).type for name in read)
    return next((t.tz for t in types if pa.types.is_timestamp(t)), None)


def with_zones(tree: N, schema: Schema) -> N:
    """The same query in which each part of a date names its time zone as a second argument, if it has one."""

    def named(current: Node) -> Node:
        if isinstance(current, c.Function) and current.name in c.DATE_PARTS:
            zone = zone_of(current, schema)
            if zone is not None:
                return c.Function(current.name, (*current.arguments, c.Literal(zone)), span=current.span)
        return current

    return transform(tree, named)


def _arithmetic(current: c.Arithmetic, below: Sequence[_Rewritten], sort: Sort, schema: Schema) -> _Rewritten:
    if sort.counts_time and current.operator in ADDITIVE:
        return _Rewritten(with_children(current, _alike(below, schema)), sort)
    # A string compared with a timestamp is one.
    sides = [f.number if f.sort.of_time or f.sort.kind is ValueKind.STRING else f.tree for f in below]
    found = cast(c.Expression, with_children(current, sides))
    if sort.kind is ValueKind.TIMESTAMP:
        return _Rewritten(Dated(found), sort, computed=True)
    if sort.kind is ValueKind.DURATION:
        whole = current.operator != "/" and all(form.sort.kind is not ValueKind.FLOAT for form in below)
        return _Rewritten(found if whole else Whole(found), sort, computed=True)
    return _Rewritten(found, sort)


def _alike(sides: Sequence[_Rewritten], schema: Schema) -> list[Node]:
    """Values that are compared or added, in a form in which they can be."""
    durations = any(side.sort.kind is ValueKind.DURATION for side in sides)
    if durations and any(side.sort.counts_time for side in sides):
        return [_ticks(side, schema) if side.sort.kind is ValueKind.DURATION else side.tree for side in sides]
    if durations or any(side.computed for side in sides) or _beyond(sides, schema):
        return [side.number if side.sort.of_time or side.sort.kind is ValueKind.STRING else side.tree for side in sides]
    return [side.tree for side in sides]


def _beyond(sides: Sequence[_Rewritten], schema: Schema) -> bool:
    """Whether strings compared with timestamps exceed 64 bits of nanoseconds."""
    fine = any(pa.types.is_timestamp(f.type) and f.type.unit == "ns" for f in schema.columns)
    if not fine or all(side.sort.kind is not ValueKind.TIMESTAMP for side in sides):
        return False
    texts = [side.tree.value for side in sides if isinstance(side.tree, c.Literal) and isinstance(side.tree.value, str)]
    return any(abs(microseconds_since_epoch(parsed_moment(text))) * 1000 >= 2**63 for text in texts)


def _ticks(duration: _Rewritten, schema: Schema) -> c.Expression:
    """A duration as a number of what the numeric time column counts."""
    if isinstance(duration.tree, c.Literal):
        literal = duration.tree
        assert isinstance(literal.value, datetime.timedelta)
        return c.Literal(in_ticks(literal, schema), span=literal.span, duration=literal.value)
    size = schema.microseconds
    if size < 1:
        return c.Arithmetic("*", duration.number, c.Literal(float(1 / size)))
    return c.Arithmetic("/", duration.number, c.Literal(float(size)))


def with_floats(tree: N, schema: Schema) -> N:
    """The same query, condition or expression with floats where CASE and ``coalesce`` may give floats and integers.

    So a value has one kind whichever part gives it, as in SQL. The tree fits the schema; it is the same if no integer
    becomes a float.
    """
    return cast(N, _form(tree, schema, times=False).tree) if any(map(_is_choice, walk(tree))) else tree


def _is_choice(current: Node) -> bool:
    return isinstance(current, c.If) or (isinstance(current, c.Function) and current.name == "coalesce")


def _as_float(tree: Node) -> Node:
    if isinstance(tree, c.Literal):
        return c.Literal(float(cast(int, tree.value)), span=tree.span)
    return c.Arithmetic("*", cast(c.Expression, tree), c.Literal(1.0), span=tree.span)
