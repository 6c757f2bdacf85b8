"""Readings of a farm's sensors: temperature (T, degrees Celsius) and relative humidity (H, percent) of its plots."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cerflow.base.errors import ArgumentError

_START = np.datetime64("2024-07-01T06:00:00.000", "ms")
_SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("value", pa.float64()), ("time", pa.timestamp("ms"))])


def farm_readings() -> pa.Table:
    """Nine readings, one a minute; columns: ``type`` (T or H), ``id`` of the plot, ``value``, ``time``."""
    return pa.table(
        {
            "type": list("HTHHTTTHH"),
            "id": [2, 0, 0, 1, 1, 0, 1, 1, 0],
            "value": [25.0, 45.0, 20.0, 25.0, 40.0, 42.0, 25.0, 70.0, 18.0],
            "time": _START + np.arange(9) * np.timedelta64(60_000, "ms"),
        },
        schema=_SCHEMA,
    )


def sensors(events: int = 10_000, seed: int = 7, plots: int = 3) -> pa.Table:
    """A longer stream of the same shape as `farm_readings`: one reading every ten seconds on average.

    Temperature follows the hour of the day, humidity falls as temperature rises, and each plot has its own offset.
    The same arguments give the same table. Raises `ArgumentError` if ``events`` is negative or ``plots`` is not
    positive.
    """
    if events < 0 or plots < 1:
        raise ArgumentError(
            f"events must not be negative and plots must be positive, but they are {events} and {plots}"
        )
    random = np.random.default_rng(seed)
    elapsed = np.cumsum(random.exponential(10_000.0, size=events)).astype(np.int64)
    plot = random.integers(plots, size=events)
    hot = random.random(events) < 0.5
    hour = 6.0 + elapsed / 3_600_000
    offset = random.normal(scale=2.0, size=plots)[plot]
    temperature = 29.0 - 11.0 * np.cos((hour - 3.0) * (2 * np.pi / 24)) + offset + random.normal(scale=1.5, size=events)
    humidity = np.clip(95.0 - 1.7 * temperature + random.normal(scale=4.0, size=events), 0.0, 100.0)
    return pa.table(
        {
            "type": pa.array(["H", "T"]).take(pa.array(hot.astype(np.int8))),
            "id": plot,
            "value": np.round(np.where(hot, temperature, humidity), 1),
            "time": _START + elapsed.astype("timedelta64[ms]"),
        },
        schema=_SCHEMA,
    )
