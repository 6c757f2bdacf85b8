"""Which columns of its input a query needs, and whether it needs to know where events stand in the whole stream."""

from __future__ import annotations

from cerflow.engine.results import Report
from cerflow.language.condition import Attribute, Function
from cerflow.language.formula import AttributeWindow
from cerflow.language.node import walk
from cerflow.language.select import Select
from cerflow.schema import Schema

__all__ = ["columns_needed", "needs_positions"]


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
    return tuple(name for name in schema.attributes if name in found)


def needs_positions(select: Select, schema: Schema) -> bool:
    """Whether conditions or computed columns read the position of an event in the whole stream (spec §3).

    Without a time column the time of an event is its position.
    """
    reading = ("position",) if schema.time is not None else ("position", "time")
    return any(isinstance(n, Function) and n.name in reading for n in walk(select))
