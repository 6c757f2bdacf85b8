"""Memory for the events that kernels read."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cerflow.base.array_types import IntRows, Ints
from cerflow.engine.layout import NO_BOUND, EventArrays
from cerflow.engine.tables.transducer_tables import TransducerTables


@lru_cache(maxsize=8)
def _alike(events: int, value: int = 0) -> Ints:
    values = np.full(events, value)
    values.flags.writeable = False
    return values


def room_for(tables: TransducerTables, events: int, *, windowed: bool, narrowed: bool) -> EventArrays:
    """Arrays for this many events, each of which gets a signature and a position.

    ``windowed`` says that each gets a measure and a bound, too, ``narrowed`` that some are left out before others. All
    rooms share the values that events do not set; kernels may write zeros over zeros there.
    """

    def room(width: int) -> IntRows:
        return np.zeros((events, width), np.int64) if width else never_written.reshape(events, 1)

    never_written = _alike(events)
    return EventArrays(
        signature=np.empty(events, np.int32),
        position=np.empty(events, np.int64),
        measure=np.empty(events, np.int64) if windowed else never_written,
        bound=np.empty(events, np.int64) if windowed else _alike(events, NO_BOUND),
        keys=room(len(tables.key_kinds)),
        columns=room(len(tables.columns)),
        moment=never_written,
        left_out=np.zeros(events, np.int64) if narrowed else never_written,
        idle=never_written,
        ranks=np.zeros(1, np.int64),
    )


def some_events(events: EventArrays, which: slice | Ints) -> EventArrays:
    """Some of the events, by number."""
    return events._replace(**{name: getattr(events, name)[which] for name in EventArrays._fields[:-1]})
