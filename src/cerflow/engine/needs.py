"""What a query needs of its input: which columns, where events stand in the whole stream, and whether together."""

from __future__ import annotations

import pyarrow as pa

from cerflow.engine.binding import readable
from cerflow.engine.results import Report
from cerflow.language.condition import Attribute, Function, LabelReference, PredicateCall
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import walk
from cerflow.language.select import Consumption, Select
from cerflow.schema import Kind, Schema

__all__ = ["columns_needed", "needs_positions", "separable_by_key"]

#: Decimal numbers of so many digits are the same 64-bit floats to any other system and to the engine.
_EXACT_DIGITS = 15


def columns_needed(select: Select, schema: Schema) -> tuple[str, ...]:
    """The columns that a query reads or reports, in the order of the input.

    Recognising on these columns alone gives the same result. The query must fit the schema.
    """
    found = set(Report(select, schema, positions=False, position=None).stored)
    found.update(name for name in (schema.time, schema.stream) if name is not None)
    for current in walk(select):
        if isinstance(current, Attribute):
            found.add(current.name)
        elif isinstance(current, AttributeWindow):
            found.add(current.attribute)
        elif isinstance(current, PredicateCall) and any(isinstance(a, LabelReference) for a in current.arguments):
            found.update(readable(schema))
    return tuple(name for name in schema.attributes if name in found)


def needs_positions(select: Select, schema: Schema) -> bool:
    """Whether conditions or computed columns read the position of an event in the whole stream (spec §3).

    Without a time column the time of an event is its position.
    """
    reading = ("position",) if schema.time is not None else ("position", "time")
    return any(isinstance(n, Function) and n.name in reading for n in walk(select))


def separable_by_key(select: Select, schema: Schema | None = None) -> bool:
    """Whether the substreams of different keys may be recognised apart from each other, even on different machines.

    With a schema also whether values that are one key to the engine are equal to any other system that brings the
    events of a key together.
    """
    if not select.partition or select.consume is Consumption.ANY:
        return False
    return schema is None or all(_surely_equal(key, schema) for key in select.partition)


def _surely_equal(key: tuple[str, ...], schema: Schema) -> bool:
    columns = [schema.type if name == "type" and name not in schema.attributes else name for name in key]
    types = {schema.columns.field(name).type for name in columns}
    if any(schema.kind(name) is Kind.TIMESTAMP for name in columns):
        # Elsewhere times of different types may be compared in the time zone of a session.
        return len(types) == 1
    return not any(pa.types.is_decimal(t) and t.precision > _EXACT_DIGITS for t in types)
