"""Compile the kernels before they are needed."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from cerflow.engine.recognizer import Recognizer
from cerflow.language.parser import parse_query
from cerflow.schema import Schema

__all__ = ["warm_up"]


#: Collections of values that have to be cleaned up, and configurations that outgrow their first tables.
_QUERIES = (
    "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.v != y.v WITHIN 6 EVENTS",
    "SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v",
)
_EVENTS = 200


@cache
def warm_up() -> None:
    """Compile all kernels, or load them from the cache on disk if they were compiled there before.

    They are compiled once per machine. Processes that start together should not all do it: let one of them call this
    first, or call it when an image is built.
    """
    events = pa.table({"type": ["A", "B"] * _EVENTS, "v": range(2 * _EVENTS)})
    for text in _QUERIES:
        recognizer = Recognizer(parse_query(text), Schema(events.schema))
        matches = recognizer.push(events)
        matches.to_arrow()
        matches.count()
        recognizer.snapshot()
