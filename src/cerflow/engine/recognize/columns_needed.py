"""What a query needs: columns, positions of events, and whether one task must see all events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cerflow.automata.compile.deadlines import waits_for_time
from cerflow.base.schema import Schema, ValueKind
from cerflow.engine.evaluate.binding import readable, shows_events
from cerflow.engine.evaluate.ranges import EXACT_FLOATS, MEASURED, MOST
from cerflow.engine.results.report import Report, kept_labels
from cerflow.language.condition import MATCH_NUMBER, Function, calls
from cerflow.language.formula import AttributeWindow, DurationWindow, Selection, Strategy
from cerflow.language.node import walk
from cerflow.language.select import Consumption, CountItem, ProjectionKind, Select
from cerflow.logic.analysis.columns import attributes_in


def columns_needed(select: Select, schema: Schema) -> tuple[str, ...]:
    """The columns that a query reads or reports, in the order of the input.

    Other columns do not change the result. The query must fit the schema.
    """
    found = set(Report(select, schema, positions=False, position=None).stored)
    found.update(name for name in (schema.time, schema.stream) if name is not None)
    found |= attributes_in(select)
    if shows_events(select):
        found.update(readable(schema))
    return tuple(name for name in schema.attributes if name in found)


def holding(schema: Schema, selects: Iterable[Select]) -> Schema:
    """The schema with the nested attributes that some queries read, and the columns whose values they hold.

    See `Schema.reading` and `Schema.held`.
    """
    reads = [(select, attributes_in(select)) for select in selects]
    schema = schema.reading(name for _, found in reads for name in found)
    held: dict[str, int] = {}
    for select, found in reads:
        found |= frozenset(readable(schema)) if shows_events(select) else frozenset()
        held.update(dict.fromkeys(found - held.keys(), MOST))
        for key in select.partition:
            if schema.key_kind(key) is ValueKind.FLOAT:
                held.update(dict.fromkeys(key, EXACT_FLOATS))
        measured = [] if schema.forget is None else [schema.time]
        for node in walk(select):
            if isinstance(node, AttributeWindow) and schema.has(node.attribute):
                measured.append(schema.column(node.attribute))
            elif isinstance(node, DurationWindow):
                measured.append(schema.time)
        held |= {name: min(MEASURED, held.get(name, MOST)) for name in measured if name is not None}
    if schema.time is not None:
        held.setdefault(schema.time, MOST)
    return replace(schema, held=held)


def needs_positions(select: Select, schema: Schema) -> bool:
    """Whether conditions or computed columns read the position of an event in the whole stream (spec §3).

    Without a time column the time of an event is its position.
    """
    reading = ("position",) if schema.time is not None else ("position", "time")
    return any(isinstance(n, Function) and n.name in reading for n in walk(select))


def separable_by_key(select: Select, schema: Schema | None = None, *, clocked: bool = False) -> bool:
    """Whether the keys of a query may be recognised separately, even on different machines.

    With a schema, another system that brings the events of a key together must also find the same keys equal as the
    engine does. ``clocked`` says that a clock shows each substream that deadlines pass.
    """
    return keys_together(select, schema, clocked=clocked) is None


def keys_together(select: Select, schema: Schema | None = None, *, clocked: bool = False) -> str | None:
    """Why the keys of a query must be recognised together, see `separable_by_key`; None if they need not."""
    if not select.partition:
        return "without PARTITION BY every event may belong to every match"
    if select.consume is Consumption.ANY:
        return "CONSUME BY ANY consumes across keys"
    if waits_for_time(select.formula) and not clocked:
        return "events of one key show that deadlines of others have passed"
    if calls(select.projection, MATCH_NUMBER):
        return "MATCH_NUMBER() counts the matches of all keys"
    if schema is None or all(_surely_equal(key, schema) for key in select.partition):
        return None
    return "Spark might distinguish values that are one key for the engine"


def separable_by_clock(select: Select, schema: Schema | None = None) -> bool:
    """Whether keys may be recognised separately if a clock shows them each deadline.

    Deadlines that one event shows become several moments, which must make no difference.
    """
    chosen = select.strategy is not Strategy.ALL or any(isinstance(node, Selection) for node in walk(select.formula))
    limited = select.limit is not None or select.consume is not Consumption.NONE
    # Some matches become equal without the labels that are not reported.
    merged = select.projection.kind is ProjectionKind.NONE or kept_labels(select) is not None
    counted = any(isinstance(item, CountItem) for item in select.projection.items)
    return not (chosen or limited or merged or counted) and separable_by_key(select, schema, clocked=True)


def _surely_equal(key: tuple[str, ...], schema: Schema) -> bool:
    types = {schema.columns.field(schema.column(name)).type for name in key}
    # Other systems may compare times of several types in a session's time zone, and may round decimals.
    return len(types) == 1 or schema.key_kind(key) not in (ValueKind.TIMESTAMP, ValueKind.DURATION, ValueKind.DECIMAL)
