"""Compile the kernels before they are needed."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

import pyarrow as pa

from cerflow.engine.kernels.advance import advance
from cerflow.engine.recognizer import Recognizer
from cerflow.language.parser import parse_query
from cerflow.schema import Schema

__all__ = ["compiled", "warm_up"]


#: Collections of values that have to be cleaned up, and configurations that outgrow their first tables.
_QUERIES = (
    "SELECT * WHERE (A+ AS x ; B AS y) FILTER x.v != y.v WITHIN 6 EVENTS",
    "SELECT * WHERE A AS x ; B AS y FILTER x.v = y.v",
)
_EVENTS = 200


def compiled() -> bool:
    """Whether kernels of this machine are on disk already (of this version or another)."""
    folder = Path(advance.stats.cache_path)
    return any(folder.glob("advance.advance-*.nbi"))


@cache
def warm_up() -> None:
    """Compile all kernels that recognise and unfold, or load them from the cache on disk if they are there.

    They are compiled once per machine. Processes that start together should not all do it: let one of them call this
    first, or call it when an image is built.
    """
    if not compiled():
        logging.getLogger("cerflow").info("compiling the engine for this machine; this happens once")
    events = pa.table({"type": ["A", "B"] * _EVENTS, "v": range(2 * _EVENTS)})
    for text in _QUERIES:
        recognizer = Recognizer(parse_query(text), Schema(events.schema))
        matches = recognizer.push(events)
        matches.to_arrow()
        matches.count()
        recognizer.snapshot()
