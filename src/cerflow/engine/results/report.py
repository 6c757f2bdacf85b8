"""The form of a query's result: its Arrow schema, and the input columns that fill it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

from cerflow.base.arrow_columns import without_codes
from cerflow.base.errors import ArgumentError, did_you_mean, expect
from cerflow.base.nested import is_nested, unnested, untaken
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.binding import readable, shows_events
from cerflow.engine.evaluate.precomputed_conditions import PRECOMPUTED
from cerflow.engine.evaluate.rows import finest_unit
from cerflow.language import condition as c
from cerflow.language.automaton import AutomatonFormula
from cerflow.language.formula import UNNAMED, As, EventType, Project, Rename
from cerflow.language.node import walk
from cerflow.language.predicates.registry import predicates_in
from cerflow.language.select import BOOKKEEPING, CountItem, ExpressionItem, LabelItem, Select
from cerflow.language.sremo import Terminal
from cerflow.logic.analysis.columns import attributes_in
from cerflow.logic.analysis.kinds import kind_of_expression
from cerflow.logic.analysis.multiplicity import label_counts
from cerflow.logic.analysis.scopes import condition_labels, labels_of
from cerflow.logic.rewriting.times import zone_of

#: The forms of a match's events: with their attributes, or as numbers in a dictionary of events.
EventForm = Literal["structs", "dictionary"]

#: The forms of numbers of matches: decimals of up to 38 digits, or text of any length.
CountForm = Literal["decimal", "text"]

#: The stored column with an event's position in the whole stream, if the caller numbers events.
POSITION = "\0position"

#: The columns of a result that are positions, absent where events are not numbered.
_COUNTED = ("detected_at", "start", "end")

#: Counts of matches can be exponential in the length of the stream.
COUNT_TYPE = pa.decimal128(38, 0)

#: The types of computed columns.
ARROW_TYPES = {
    ValueKind.INTEGER: pa.int64(),
    ValueKind.FLOAT: pa.float64(),
    ValueKind.STRING: pa.string(),
    ValueKind.BOOLEAN: pa.bool_(),
    ValueKind.TIMESTAMP: pa.timestamp("us"),
    ValueKind.DURATION: pa.duration("us"),
    # Decimals keep their own type; operations do not compute them.
    ValueKind.DECIMAL: pa.null(),
    ValueKind.OTHER: pa.null(),
}

#: The aggregates whose value is one of the values.
SELECTING = ("min", "max", "first", "last")


def selected_attribute(expression: c.Expression) -> c.Attribute | None:
    """The attribute whose values an expression takes unchanged: ``x.a``, ``first(x.a)``, ``max(x.a)``, …"""
    if isinstance(expression, c.Aggregate) and expression.name in SELECTING:
        expression = expression.argument
    return expression if isinstance(expression, c.Attribute) else None


def kept_labels(select: Select) -> frozenset[str] | None:
    """The labels that distinguish matches: those listed and those that computed columns read; None for all."""
    items = select.projection.items
    listed = [item.label for item in items if isinstance(item, LabelItem)]
    if not listed:
        return None
    computed = [item for item in items if isinstance(item, ExpressionItem)]
    return frozenset([*listed, *(label for item in computed for label in condition_labels(item.expression))])


class Report:
    """The columns of the result of one query, and the attributes that fill them."""

    def __init__(self, select: Select, schema: Schema, *, positions: bool, position: str | None) -> None:
        self.select = select
        self.events = schema
        self.numbered = positions
        self.position = position
        items = select.projection.items
        self.counts = [i for i in items if isinstance(i, CountItem)]
        self.computed = [i for i in items if isinstance(i, ExpressionItem)]
        self.listed = [i for i in items if isinstance(i, LabelItem)]
        self.attributes = self._reported_attributes()
        #: The labels that distinguish matches, None for all; see the language guide on SELECT.
        self.keep = kept_labels(select)
        #: Whether matches are numbered, see `MATCH_NUMBER`.
        self.numbers_matches = c.calls(select.projection, c.MATCH_NUMBER)
        #: The predicates that computed columns call; later registrations do not change them.
        self.predicates = {predicate.name: predicate for predicate in predicates_in(select.projection)}
        self.time_type = pa.int64() if schema.time is None else schema.columns.field(schema.time).type
        #: The columns before the partition keys.
        leading = [n for n in BOOKKEEPING if not (self.counts and n in ("start", "end", "start_time"))]
        self.leading = [name for name in leading if positions or name not in _COUNTED]
        taken = {"position", "labels", "type"}
        #: The fields of the attributes in reported events.
        self.event_fields = {name: untaken(unnested(name), taken) for name in self.attributes}
        self.schema = pa.schema(self._fields())

    def _reported_attributes(self) -> list[str]:
        """The attributes of reported events, in the order of the input; the type has a field of its own."""
        if not self.select.projection.has_events:
            return []
        wanted: set[str] | None = None
        if self.listed and all(item.attributes is not None for item in self.listed):
            wanted = {name for item in self.listed for name in item.attributes or ()}
        names = [n for n in self.events.attributes if n not in (self.events.type, self.position, PRECOMPUTED)]
        return [n for n in names if (not is_nested(n) if wanted is None else n in wanted)]

    @property
    def stored(self) -> list[str]:
        """The input columns that results need, at least one."""
        return [n for n in self.events.attributes if n in self.shown_columns or n == self.events.type]

    @property
    def shown_columns(self) -> frozenset[str]:
        """The input columns that results need."""
        found = set(self.attributes)
        if self.select.projection.has_events:
            found.add(self.events.type)
        if self.events.time is not None:
            found.add(self.events.time)
        for key in self.select.partition:
            found.update(map(self.events.column, key))
        for item in self.computed:
            found.update(map(self.events.column, attributes_in(item.expression)))
            if shows_events(item.expression):
                found.update(readable(self.events, self.position))
        if self.position is not None:
            found.add(self.position)
        return frozenset(found)

    def _fields(self) -> list[pa.Field]:
        fields = [pa.field(n, pa.int64() if n in _COUNTED else self.time_type) for n in self.leading]
        fields += [pa.field(n, self.key_type(key)) for n, key in zip(self.select.key_columns, self.select.partition)]
        if self.counts:
            return fields + [pa.field(item.name, COUNT_TYPE) for item in self.counts]
        fields += [pa.field(item.name, self._computed_type(item.expression)) for item in self.computed]
        if self.select.projection.has_events:
            fields.append(pa.field("events", pa.list_(self.event_type)))
        return fields

    def _computed_type(self, expression: c.Expression) -> pa.DataType:
        attribute = selected_attribute(expression)
        if attribute is not None:
            if attribute.name == "type" and not self.events.has("type"):
                return pa.string()
            return without_codes(self.events.columns.field(attribute.name).type)
        kind = kind_of_expression(expression, self.events)
        if kind is ValueKind.TIMESTAMP:
            # Timestamps keep the time zone of their attributes.
            return pa.timestamp("us", zone_of(expression, self.events))
        return ARROW_TYPES[kind]

    @cached_property
    def event_type(self) -> pa.StructType:
        """The type of a reported event."""
        fields = [("position", pa.int64())] if self.numbered else []
        fields += [("labels", pa.list_(pa.string())), ("type", pa.string())]
        held = [(field, self.events.columns.field(name).type) for name, field in self.event_fields.items()]
        return pa.struct([*fields, *held])

    def key_type(self, key: tuple[str, ...]) -> pa.DataType:
        """The type of a key: one type for all values of its attributes, float64 where integers meet floats."""
        types = [without_codes(self.events.columns.field(self.events.column(name)).type) for name in key]
        types = [t for t in types if not pa.types.is_null(t)] or types
        return types[0] if len(set(types)) == 1 else _common(self.events.key_kind(key), types, finest_unit(self.events))

    @cached_property
    def flat(self) -> list[FlatColumn]:
        """The columns of the flat form, which replace ``events``.

        They are named ``label_field``. A name that is taken gets an underscore; upper and lower case count as equal, as
        in SQL.
        """
        if not self.select.projection.has_events:
            return []
        fields: list[tuple[str, str | None]] = [("position", None)] if self.numbered else []
        fields += [] if self.events.untyped else [("type", None)]
        fields += [(field, name) for name, field in self.event_fields.items()]
        taken, found = {name.casefold() for name in (*self.schema.names, "events")}, list[FlatColumn]()
        for label, several, attributes in _labels(self.select):
            for field, attribute in fields:
                if attribute is None or attributes is None or attribute in attributes:
                    name = untaken(f"{label or OTHERS}_{field}", taken, str.casefold)
                    value_type = self.event_type.field(field).type
                    found.append(FlatColumn(name, label, field, attribute, several, value_type))
        return found

    def shown(
        self, events: EventForm, columns: Sequence[str] | None, flat: bool = False, counts: CountForm = "decimal"
    ) -> pa.Schema:
        """The schema of some columns, with events and counts in a form; raises `ArgumentError` for unknown ones.

        In the flat form, which people read, what the query asks for comes first: keys, computed columns and labels.
        """
        if counts not in ("decimal", "text"):
            raise ArgumentError(f"counts must be 'decimal' or 'text', not {counts!r}")
        if events not in ("structs", "dictionary"):
            raise ArgumentError(f"events must be 'structs' or 'dictionary', not {events!r}")
        if flat and events == "dictionary":
            raise ArgumentError("the flat form has no events that could be a dictionary: give flat or events, not both")
        fields = list(self.schema)
        if events == "dictionary" and self.select.projection.has_events:
            fields[-1] = pa.field("events", pa.list_(pa.dictionary(pa.int32(), self.event_type)))
        if counts == "text" and self.counts:
            fields[-len(self.counts) :] = [pa.field(item.name, pa.string()) for item in self.counts]
        if flat:
            asked = [field for field in fields[len(self.leading) :] if field.name != "events"]
            fields = [*asked, *(pa.field(own.name, own.type) for own in self.flat), *fields[: len(self.leading)]]
        if columns is not None:
            expect(columns, (list, tuple, set, frozenset), "columns must be a list of names")
            if not columns:
                raise ArgumentError("columns must name at least one column")
        names = [field.name for field in fields]
        for name in columns or ():
            if name not in names:
                raise ArgumentError(f"the result has no column '{name}'{did_you_mean(name, names)}")
        return pa.schema([field for field in fields if columns is None or field.name in columns])


def _common(kind: ValueKind, types: Sequence[pa.DataType], unit: str) -> pa.DataType:
    """A common type for values of several types of a kind; int64 holds all valid integers."""
    if kind is ValueKind.DECIMAL:
        scale = max(t.scale for t in types)
        digits = scale + max(t.precision - t.scale for t in types)
        return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(min(76, digits), scale)
    if kind is ValueKind.TIMESTAMP:
        zones = {t.tz for t in types if pa.types.is_timestamp(t)}
        return pa.timestamp(unit, zones.pop() if len(zones) == 1 else "UTC")
    return ARROW_TYPES[kind]


# -- the flat form: a column for every label and every field of its events; that follows from the query alone ----------

#: Instead of a label, for events of EVENT and NOT without one of the other labels.
OTHERS = "EVENT"


@dataclass(frozen=True)
class FlatColumn:
    """A column with a ``field`` of the event with a label, or a list if there may be ``several`` such events.

    The label None stands for events that have none of the labels with columns. ``attribute`` is the column of the
    input; it is None for the position and the type.
    """

    name: str
    label: str | None
    field: str
    attribute: str | None
    several: bool
    value_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        """The type of the column."""
        return pa.list_(self.value_type) if self.several else self.value_type


def _labels(select: Select) -> list[tuple[str | None, bool, frozenset[str] | None]]:
    """The labels with columns, whether each may have several events, and the attributes that are shown (None: all)."""
    known = labels_of(select.formula)
    repeated = label_counts(select.formula)

    def several(label: str) -> bool:
        return label in repeated.several or (label not in known.assigned and repeated.types)

    listed: dict[str, frozenset[str] | None] = {}
    for item in select.projection.items:
        if isinstance(item, LabelItem):
            before = listed.get(item.label, frozenset())
            listed[item.label] = None if item.attributes is None or before is None else before.union(item.attributes)
    if listed:
        return [(label, several(label), attributes) for label, attributes in listed.items()]
    # The name of an event type adds nothing if its events always have another label, too.
    shown = (known.assigned - known.relations) | known.alone
    found: list[tuple[str | None, bool, frozenset[str] | None]]
    found = [(None if label == UNNAMED else label, several(label), None) for label in _in_order(select, shown)]
    return [*found, (None, known.others > 1, None)] if known.others else found


def _in_order(select: Select, labels: Iterable[str]) -> list[str]:
    """The labels in the order of the query's text."""
    named: dict[str, None] = {}
    for current in walk(select.formula):
        match current:
            case EventType():
                # The name may occur under a label first, and alone only later.
                named.pop(current.name, None)
                named[current.name] = None
            case As(label=label) | Rename(new=label) | Terminal(label=str(label)):
                named[label] = None
            case Project():
                named.update(dict.fromkeys(current.labels))
            case AutomatonFormula():
                named.update(dict.fromkeys(sorted(current.labels)))
    return [label for label in named if label in labels]
