"""Stock ticks of ten companies over one trading day, made from a seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cerflow.values.array_types import Floats, Ints

__all__ = ["COMPANIES", "stocks"]

#: Name, opening price, daily volatility (standard deviation of the logarithm), share of the trades.
COMPANIES = (
    ("AMAT", 21.30, 0.016, 0.08),
    ("CSCO", 24.60, 0.012, 0.12),
    ("DELL", 29.10, 0.015, 0.07),
    ("GOOG", 497.80, 0.014, 0.06),
    ("INTC", 27.85, 0.013, 0.14),
    ("MSFT", 36.40, 0.010, 0.15),
    ("ORCL", 22.75, 0.012, 0.08),
    ("QQQ", 51.20, 0.008, 0.16),
    ("RIMM", 117.45, 0.022, 0.08),
    ("YHOO", 26.05, 0.018, 0.06),
)

_DAY = np.datetime64("2024-03-15", "ms")
_OPEN = (9 * 60 + 30) * 60_000
_CLOSE = 16 * 60 * 60_000
_TICK = 0.01


def stocks(events: int = 200_000, seed: int = 7) -> pa.Table:
    """Trades of ten companies between 9:30 and 16:00 of one day, in order of time.

    The columns are ``type`` (BUY or SELL: the side that began the trade), ``id`` (1, 2, …), ``name``, ``volume``
    (shares, in lots of ten), ``price`` (dollars, a random walk for each company), ``time`` (timestamp in ms) and
    ``stock_time`` (ms since midnight). Trading is busier and trades are larger near the opening and the close.
    The same arguments give the same table. Raises ValueError if ``events`` is negative.
    """
    if events < 0:
        raise ValueError(f"the number of events must not be negative, but is {events}")
    random = np.random.default_rng(seed)
    moments = _moments(random, events)
    shares = np.array([share for *_, share in COMPANIES])
    company = random.choice(len(COMPANIES), size=events, p=shares / shares.sum())
    price, pressure = _walks(random, moments, company)
    buy = random.random(events) < 0.5 + 0.25 * pressure
    busy = _busyness(_day_fraction(moments))
    lots = random.lognormal(mean=2.3 + 0.35 * np.log(busy), sigma=1.0, size=events)
    volume = 10 * np.maximum(1, lots.astype(np.int64))
    names = pa.array([name for name, *_ in COMPANIES])
    return pa.table(
        {
            "type": pa.array(["SELL", "BUY"]).take(pa.array(buy.astype(np.int8))),
            "id": np.arange(1, events + 1, dtype=np.int64),
            "name": names.take(pa.array(company)),
            "volume": volume,
            "price": price,
            "time": pa.array(_DAY + moments.astype("timedelta64[ms]")),
            "stock_time": moments,
        }
    )


def _day_fraction(moments: Ints) -> Floats:
    return (moments - _OPEN) / (_CLOSE - _OPEN)


def _busyness(fraction: Floats) -> Floats:
    """The amount of trading at a fraction of the day, 1 on average: a U, higher at the opening than at the close."""
    shape = 0.55 + 1.6 * (1 - fraction) ** 6 + 1.3 * fraction**8
    return shape / (0.55 + 1.6 / 7 + 1.3 / 9)


def _moments(random: np.random.Generator, events: int) -> Ints:
    """Sorted times in ms since midnight: uniform quantiles mapped through the inverse of the cumulated busyness."""
    grid = np.linspace(0.0, 1.0, 2_001)
    weight = np.concatenate(([0.0], np.cumsum(_busyness(grid[:-1]))))
    quantiles = np.sort(random.random(events)) * weight[-1]
    fraction: Floats = np.interp(quantiles, weight, grid)
    moments: Ints = _OPEN + np.floor(fraction * (_CLOSE - _OPEN)).astype(np.int64)
    return moments


def _walks(random: np.random.Generator, moments: Ints, company: Ints) -> tuple[Floats, Floats]:
    """The price of each trade, and the direction of its last change in -1…1 (buyers push it up, sellers down)."""
    price = np.empty(len(moments))
    pressure = np.empty(len(moments))
    for index, (_, opening, volatility, _) in enumerate(COMPANIES):
        mine = np.flatnonzero(company == index)
        elapsed = np.diff(_day_fraction(moments[mine]), prepend=0.0)
        steps = random.normal(size=len(mine)) * volatility * np.sqrt(np.maximum(elapsed, 1e-9))
        price[mine] = opening * np.exp(np.cumsum(steps))
        pressure[mine] = np.sign(steps)
    return np.round(np.round(price / _TICK) * _TICK, 2), pressure
