"""Power readings of the plugs of forty households, made from a seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["smart_homes"]

_START = np.datetime64("2024-09-01T00:00:00", "s")
_HOUSEHOLDS = 40
_PLUGS = 14
#: Readings per second, of all plugs together.
_RATE = 413.0
#: The share of readings of plugs that are in use.
_BUSY = 0.08


def smart_homes(events: int = 200_000, seed: int = 7) -> pa.Table:
    """Readings of the power that plugs draw, in order of time, about four hundred a second.

    The columns are ``type`` (LOAD), ``id`` (1, 2, …), ``household`` (0…39), ``plug`` (0…13), ``value`` (watts; most
    plugs are idle), ``time`` (timestamp in s) and ``timestamp`` (s since the first second).
    The same arguments give the same table. Raises ValueError if ``events`` is negative.
    """
    if events < 0:
        raise ValueError(f"the number of events must not be negative, but is {events}")
    random = np.random.default_rng(seed)
    moments = np.cumsum(random.exponential(1 / _RATE, size=events)).astype(np.int64)
    busy = random.random(events) < _BUSY
    idle = random.exponential(8.0, size=events)
    value = np.where(busy, 120.0 + random.exponential(400.0, size=events), np.minimum(idle, 100.0))
    return pa.table(
        {
            "type": pa.array(["LOAD"]).take(pa.array(np.zeros(events, dtype=np.int8))),
            "id": np.arange(1, events + 1, dtype=np.int64),
            "household": random.integers(_HOUSEHOLDS, size=events),
            "plug": random.integers(_PLUGS, size=events),
            "value": np.round(value, 3),
            "time": pa.array(_START + moments.astype("timedelta64[s]")),
            "timestamp": moments,
        }
    )
