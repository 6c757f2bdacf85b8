"""Readings of sensors, made from a seed: of a farm's plots, and of the plugs of forty households."""

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


_FIRST_SECOND = np.datetime64("2024-09-01T00:00:00", "s")
_HOUSEHOLDS = 40
_PLUGS = 14
#: Readings per second, of all plugs together.
_RATE = 413.0
#: The share of readings of plugs that are in use.
_BUSY = 0.08
#: The probability of a wave, and the number of households that begin to draw power one after another, each more than
#: the one before. Below: the least and greatest number of readings between them.
_WAVES, _WAVE = 6e-6, 24
_APART = (15, 90)


def smart_homes(events: int = 200_000, seed: int = 7) -> pa.Table:
    """Readings of the power that plugs draw, in order of time, about four hundred a second.

    The columns are ``type`` (LOAD), ``id`` (1, 2, …), ``household`` (0…39), ``plug`` (0…13), ``value`` (watts; most
    plugs are idle), ``time`` (timestamp in s) and ``timestamp`` (s since the first second).
    The patterns of the paper on symbolic register transducers (§7) match about as often as in its readings: those of
    few steps by chance, longer ones in waves, in which one household after another draws power.
    The same arguments give the same table. Raises `ArgumentError` if ``events`` is negative.
    """
    if events < 0:
        raise ArgumentError(f"the number of events must not be negative, but is {events}")
    random = np.random.default_rng(seed)
    moments = np.cumsum(random.exponential(1 / _RATE, size=events)).astype(np.int64)
    busy = random.random(events) < _BUSY
    idle = random.exponential(8.0, size=events)
    household = random.integers(_HOUSEHOLDS, size=events)
    value = np.where(busy, 120.0 + random.exponential(400.0, size=events), np.minimum(idle, 100.0))
    for start in random.integers(max(events, 1), size=round(events * _WAVES)):
        wave = start + random.integers(*_APART) * np.arange(_WAVE)
        inside = wave < events
        household[wave[inside]] = np.arange(_WAVE)[inside]
        value[wave[inside]] = 300.0 + 10.0 * np.arange(_WAVE)[inside]
    return pa.table(
        {
            "type": pa.array(["LOAD"]).take(pa.array(np.zeros(events, dtype=np.int8))),
            "id": np.arange(1, events + 1, dtype=np.int64),
            "household": household,
            "plug": random.integers(_PLUGS, size=events),
            "value": np.round(value, 3),
            "time": pa.array(_FIRST_SECOND + moments.astype("timedelta64[s]")),
            "timestamp": moments,
        }
    )
