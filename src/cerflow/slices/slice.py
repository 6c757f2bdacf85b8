"""A slice of a stream: its own events, and the earlier ones that may be in their matches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: Keys before and after all events, where keys are 64-bit integers.
LEAST, GREATEST = -(2**63) + 1, 2**63 - 1

Place = TypeVar("Place")


@dataclass(frozen=True)
class Slice(Generic[Place]):
    """Events from ``begin`` on are recognised, matches detected in ``[start, stop)`` are reported.

    The places are numbers of rows, or keys: values that order the events. If ``begin`` relies on an event before
    ``start`` that was found there, ``found`` is its place.
    """

    begin: Place
    start: Place
    stop: Place
    found: Place | None = field(default=None, kw_only=True)
