"""Room for events that the kernels look at."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cerflow.engine.layout import NO_BOUND, EventArrays
from cerflow.engine.tables.transducer_tables import TransducerTables
from cerflow.values.array_types import Ints

__all__ = ["room_for"]


@lru_cache(maxsize=4)
def _unbounded(events: int) -> Ints:
    bounds = np.full(events, NO_BOUND)
    bounds.flags.writeable = False
    return bounds


def room_for(tables: TransducerTables, events: int, *, windowed: bool) -> EventArrays:
    """Arrays for so many events; ``windowed`` says that each is given a measure and a bound.

    Each is given a signature and a position, too; the rest is zero. Memory that is not filled here costs nothing where
    no event is written to it.
    """
    never_written = np.zeros(events, np.int64)
    return EventArrays(
        signature=np.empty(events, np.int32),
        position=np.empty(events, np.int64),
        measure=np.empty(events, np.int64) if windowed else never_written,
        bound=np.empty(events, np.int64) if windowed else _unbounded(events),
        keys=np.zeros((events, max(1, len(tables.key_kinds))), np.int64),
        columns=np.zeros((events, max(1, len(tables.columns))), np.int64),
        moment=never_written,
        left_out=np.zeros(events, np.int64),
        idle=never_written,
        ranks=np.zeros(1, np.int64),
    )
