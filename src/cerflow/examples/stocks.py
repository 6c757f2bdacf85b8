"""Stock ticks of ten companies over one trading day, made from a seed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerflow.errors import ArgumentError
from cerflow.values.array_types import Floats, Ints

__all__ = ["COMPANIES", "stocks"]

Booleans = npt.NDArray[np.bool_]

#: Name, usual price, how far the price goes from it (standard deviation of the logarithm), share of the orders.
COMPANIES = (
    ("AMAT", 18.72, 0.007, 0.080),
    ("CSCO", 22.42, 0.006, 0.095),
    ("DELL", 35.38, 0.005, 0.070),
    ("INTC", 27.65, 0.006, 0.120),
    ("IPIX", 11.40, 0.015, 0.190),
    ("MSFT", 26.01, 0.002, 0.105),
    ("ORCL", 11.10, 0.006, 0.075),
    ("QQQ", 36.15, 0.003, 0.130),
    ("RIMM", 114.20, 0.012, 0.075),
    ("YHOO", 11.15, 0.012, 0.060),
)
_NUMBERS = {name: number for number, (name, *_) in enumerate(COMPANIES)}
#: The orders of a basket, one soon after another: in each line the first and the last are sold, the others bought.
_BASKET = (
    *("INTC", "RIMM", "QQQ", "MSFT"),
    *("IPIX", "AMAT", "CSCO", "ORCL"),
    *("YHOO", "DELL", "ORCL", "ORCL"),
    *("MSFT", "INTC", "RIMM", "AMAT"),
)
#: The share of orders that are the first of a basket.
_BASKETS = 0.000134

_DAY = np.datetime64("2024-03-15", "ms")
_OPEN = (9 * 60 + 30) * 60_000
_CLOSE = 16 * 60 * 60_000
_TICK = 0.01

#: The share of flurries that are large, orders of such a flurry and of others on average, and ms between these.
_LARGE_FLURRIES = 0.015
_LARGE, _SMALL = 31.0, 1.5
_LARGE_GAP, _SMALL_GAP = 31.0, 600.0
#: The share of flurries after which the market turns from buying to selling or back, and the shares of orders on its
#: side, of large flurries and of small ones.
_TURNS = 0.05
_ONE_SIDED = (0.985, 0.89)
#: Milliseconds between the orders of a basket, from the fastest to the slowest.
_BASKET_GAPS = (12.0, 85.0)
#: The shares of orders that are filled by one trade, by two, and so on.
_FILLS = (0.56, 0.34, 0.10)
#: The share of QQQ's orders that are traded in blocks, the shares of a block, and the blocks of an order.
_BLOCKS, _BLOCK, _BLOCK_FILLS = 0.011, 4000, 4
#: A price has forgotten most of where it was after this part of a day.
_MEMORY = 1 / 120


def stocks(events: int = 200_000, seed: int = 7) -> pa.Table:
    """Trades of ten companies between 9:30 and 16:00 of one day, in order of time.

    The columns are ``type`` (BUY or SELL: the side that began the trade), ``id`` (1, 2, …), ``name``, ``volume``
    (shares, in lots of ten; some of QQQ in blocks of 4,000), ``price`` (dollars), ``time`` (timestamp in ms) and
    ``stock_time`` (ms since midnight). The patterns of the paper on symbolic register transducers (§7) match about as
    often as in its ticks, and companies cost as much as there; but YHOO costs about as much as ORCL, so that longer
    patterns match, too. Orders come in flurries, most of one flurry on one side; they are filled by one or more
    trades. A few are baskets, which sell and buy the companies in a fixed order. Trading is busier and trades are
    larger near the opening and the close. How often rare patterns match depends on ``seed``: iterations up to ten times
    as often or as seldom as with the default, and the paper's q4, which needs high prices of three companies at once,
    not at all with some.
    The same arguments give the same table. Raises `ArgumentError` if ``events`` is negative.
    """
    if events < 0:
        raise ArgumentError(f"the number of events must not be negative, but is {events}")
    random = np.random.default_rng(seed)
    flurry, company, buy, block, fills, gaps = _orders(random, events)
    since = np.cumsum(gaps)
    first = np.searchsorted(flurry, flurry)
    moments = _moments(random, int(flurry.max(initial=-1)) + 1)[flurry] + (since - since[first]).astype(np.int64)
    # Every trade of an order has its moment; what is beyond the number of events is left out.
    order = np.repeat(np.arange(len(fills)), fills)[:events]
    order = order[np.argsort(moments[order], kind="stable")]
    moments, company, buy, block = np.minimum(moments[order], _CLOSE - 1), company[order], buy[order], block[order]
    busy = _busyness(_day_fraction(moments))
    lots = random.lognormal(mean=2.3 + 0.35 * np.log(busy), sigma=1.0, size=events)
    names = pa.array([name for name, *_ in COMPANIES])
    return pa.table(
        {
            "type": pa.array(["SELL", "BUY"]).take(pa.array(buy.astype(np.int8))),
            "id": np.arange(1, events + 1, dtype=np.int64),
            "name": names.take(pa.array(company)),
            "volume": np.where(block, _BLOCK, 10 * np.maximum(1, lots.astype(np.int64))),
            "price": _prices(random, moments, company),
            "time": pa.array(_DAY + moments.astype("timedelta64[ms]")),
            "stock_time": moments,
        }
    )


def _orders(random: np.random.Generator, events: int) -> tuple[Ints, Ints, Booleans, Booleans, Ints, Floats]:
    """Orders that are filled by this many trades.

    Of each its flurry, its company, whether it buys, whether it is traded in blocks, by how many trades it is filled,
    and how many ms it comes after the one before.
    """
    large = random.random(events) < _LARGE_FLURRIES
    sizes = np.where(large, random.geometric(1 / _LARGE, size=events), random.geometric(1 / _SMALL, size=events))
    flurry = np.repeat(np.arange(events), sizes)[:events]
    shares = np.array([share for *_, share in COMPANIES])
    company = random.choice(len(COMPANIES), size=events, p=shares / shares.sum())
    buyers = np.cumsum(random.random(events) < _TURNS) % 2 == 0
    buy = buyers[flurry] == (random.random(events) < np.where(large[flurry], *_ONE_SIDED))
    fills = random.choice(len(_FILLS), size=events, p=_FILLS) + 1
    block = (company == _NUMBERS["QQQ"]) & (random.random(events) < _BLOCKS)
    fills[block] = _BLOCK_FILLS
    gaps = random.exponential(1.0, size=events) * np.where(large[flurry], _LARGE_GAP, _SMALL_GAP)
    for start in random.integers(max(events, 1), size=round(events * _BASKETS)):
        turns = np.arange(min(len(_BASKET), events - start))
        basket = slice(start, start + len(turns))
        flurry[basket] = flurry[start]
        company[basket] = [_NUMBERS[_BASKET[turn]] for turn in turns]
        buy[basket] = (turns % 4 == 1) | (turns % 4 == 2)
        block[basket] = False
        fills[basket] = np.where(turns % 4 == 1, np.minimum(fills[basket], 2), 1)
        gaps[basket] = random.uniform(*_BASKET_GAPS)
    orders = int(np.searchsorted(np.cumsum(fills), events)) + 1
    return flurry[:orders], company[:orders], buy[:orders], block[:orders], fills[:orders], gaps[:orders]


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


def _prices(random: np.random.Generator, moments: Ints, company: Ints) -> Floats:
    """The price of each trade, in cents: it goes up and down, and returns to what is usual for the company."""
    price = np.empty(len(moments))
    for index, (_, usual, deviation, _) in enumerate(COMPANIES):
        mine = np.flatnonzero(company == index)
        elapsed = np.diff(_day_fraction(moments[mine]), prepend=0.0) / _MEMORY
        # The exact solution of the Ornstein-Uhlenbeck process: what is left of the past, and what is new.
        left = np.exp(-elapsed)
        new = random.normal(size=len(mine)) * deviation * np.sqrt(1 - left**2)
        log = np.empty(len(mine))
        at = random.normal() * deviation
        for row in range(len(mine)):
            at = log[row] = at * left[row] + new[row]
        price[mine] = usual * np.exp(log)
    return np.round(np.round(price / _TICK) * _TICK, 2)
