"""Compile the kernels before they are needed."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from cerflow.engine.recognizer import Recognizer
from cerflow.language.parser import parse_query
from cerflow.schema import Schema

__all__ = ["warm_up"]


@cache
def warm_up() -> None:
    """Compile all kernels, or load them from the cache on disk if they were compiled there before.

    They are compiled once per machine. Processes that start together should not all do it: let one of them call this
    first, or call it when an image is built.
    """
    events = pa.table({"type": ["A", "B"]})
    recognizer = Recognizer(parse_query("SELECT * WHERE A ; B"), Schema(events.schema))
    matches = recognizer.push(events)
    matches.to_arrow()
    matches.count()
