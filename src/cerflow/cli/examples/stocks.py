"""Stock ticks of ten companies over one trading day, made from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerflow.base.array_types import Floats, Ints
from cerflow.base.errors import ArgumentError

#: Name, usual price, how far the price goes from it (standard deviation of the logarithm), share of the orders.
COMPANIES = (
    ("AMAT", 18.72, 0.007, 0.080),
    ("CSCO", 22.42, 0.006, 0.095),
    ("DELL", 35.38, 0.005, 0.070),
    ("INTC", 27.65, 0.006, 0.110),
    ("IPIX", 11.40, 0.007, 0.190),
    ("MSFT", 26.01, 0.002, 0.105),
    ("ORCL", 11.10, 0.004, 0.075),
    ("QQQ", 36.15, 0.003, 0.125),
    ("RIMM", 114.20, 0.012, 0.067),
    ("YHOO", 11.15, 0.004, 0.060),
)
_NUMBERS = {name: number for number, (name, *_) in enumerate(COMPANIES)}


@dataclass(frozen=True)
class _ProgramTrade:
    """Orders that a program places one soon after another.

    ``orders`` are company and side (+ buys, - sells), the side once for each trade that fills the order; ``share`` of
    all orders are the first of such a program; there are ``gaps`` milliseconds between two, in the fastest program and
    in the slowest, and ``pause`` before the order ``late``.
    """

    orders: tuple[str, ...]
    share: float
    gaps: tuple[float, float]
    late: int = 0
    pause: float = 0.0


#: Of each order its flurry, its company, whether it buys, whether it is traded in blocks, by how many trades it is
#: filled, and how many ms it comes after the one before.
_ORDER = np.dtype([("flurry", "i8"), ("company", "i8"), ("buy", "?"), ("block", "?"), ("fills", "i8"), ("gap", "f8")])
#: Baskets have companies in a fixed order.
_BASKET = _ProgramTrade(
    (
        *("INTC-", "RIMM++", "QQQ++", "MSFT-"),
        *("IPIX-", "AMAT++", "CSCO+", "ORCL-"),
        *("YHOO-", "DELL++", "ORCL+", "ORCL-"),
        *("MSFT-", "INTC++", "RIMM+", "AMAT-"),
    ),
    share=0.0002,
    gaps=(12.0, 85.0),
)
#: Rallies, in which some companies cost at least so much, and AMAT more than ever else.
_RALLY = _ProgramTrade(
    (
        *("MSFT-", "ORCL++", "CSCO++", "AMAT--"),
        *("MSFT-", "MSFT-", "ORCL-", "CSCO-", "AMAT-", "MSFT-", "ORCL-", "CSCO+", "AMAT-", "AMAT-", "AMAT-"),
    ),
    share=0.000082,
    gaps=(20.0, 45.0),
    late=4,
    pause=1100.0,
)
_RALLY_PRICES = {"AMAT": 18.92, "MSFT": 26.01, "ORCL": 11.15}
#: Milliseconds around a rally in which its prices hold, but for AMAT's; and in which they go back to what is usual.
_AROUND, _APPROACH = 2000, 30_000.0
#: So long before a rally, and in it, nobody buys ORCL (ms).
_BEFORE = 1000
#: What AMAT costs at most outside of rallies.
_RESISTANCE = 18.91
#: How far the price of YHOO goes up at one basket, and down at the next.
_WAVE = 0.016

#: Multiples of it are spread evenly between 0 and 1.
_GOLDEN = (5**0.5 - 1) / 2

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
_ONE_SIDED = (0.98, 0.89)
#: The shares of orders that are filled by one trade and by two.
_FILLS = (0.5, 0.5)
#: The share of QQQ's orders that are traded in blocks, the shares of a block, and the blocks of an order.
_BLOCKS, _BLOCK, _BLOCK_FILLS = 0.013, 4000, 4
#: A price has forgotten most of where it was after this part of a day.
_MEMORY = 1 / 120
#: Orders, and large numbers of orders, of which the right share is dealt to each company, side and so on.
_DECK, _LARGE_DECK = 40, 1000


def stocks(events: int = 200_000, seed: int = 7) -> pa.Table:
    """Trades of ten companies between 9:30 and 16:00 of one day, in order of time.

    The columns are ``type`` (BUY or SELL: the side that began the trade), ``id`` (1, 2, …), ``name``, ``volume``
    (shares, in lots of ten; some of QQQ in blocks of 4,000), ``price`` (dollars), ``time`` (timestamp in ms) and
    ``stock_time`` (ms since midnight). Trading is busier and trades are larger near the opening and the close. Orders
    come in flurries, most of one flurry on one side; they are filled by one or more trades.

    In a day of 224,473 events, with every seed, the patterns of the paper on symbolic register transducers (§7) match
    about as often as in its ticks: within its narrowest windows half as often to three times as often, nested
    iterations up to six times; in wide windows a single flurry may have most matches of an iteration. Companies cost as
    much as there; but YHOO costs about as much as ORCL, and some orders are baskets, which sell and buy the companies
    in a fixed order, so that longer patterns match, too. The high prices that the paper's q2 and q4 ask for come
    together in short rallies alone, in which, and within a second before, nobody buys ORCL: so q4 matches in rallies,
    and q2 matches nothing within a second.

    The same arguments give the same table. Raises `ArgumentError` if ``events`` is negative.
    """
    if events < 0:
        raise ArgumentError(f"the number of events must not be negative, but is {events}")
    random = np.random.default_rng(seed)
    orders, first_of_baskets, ends_of_rallies = _orders(random, events)
    since, flurry = np.cumsum(orders["gap"]), orders["flurry"]
    first = np.searchsorted(flurry, flurry)
    opened = _moments(random, int(flurry.max(initial=-1)) + 1)
    moments = opened[flurry] + (since - since[first]).astype(np.int64)
    # Every trade of an order has its moment; what is beyond the number of events is left out.
    order = np.repeat(np.arange(len(orders)), orders["fills"])[:events]
    order = order[np.argsort(moments[order], kind="stable")]
    company, buy, block = (orders[name][order] for name in ("company", "buy", "block"))
    baskets, rallies = (np.minimum(moments[some], _CLOSE - 1) for some in (first_of_baskets, ends_of_rallies))
    moments = np.minimum(moments[order], _CLOSE - 1)
    early = np.column_stack((rallies[:, 0] - _BEFORE, rallies[:, 1]))
    buy &= (company != _NUMBERS["ORCL"]) | (_away(moments, early) > 0)
    busy = _busyness(_day_fraction(moments))
    lots = random.lognormal(mean=2.3 + 0.35 * np.log(busy), sigma=1.0, size=events)
    names = pa.array([name for name, *_ in COMPANIES])
    return pa.table(
        {
            "type": pa.array(["SELL", "BUY"]).take(pa.array(buy.astype(np.int8))),
            "id": np.arange(1, events + 1, dtype=np.int64),
            "name": names.take(pa.array(company)),
            "volume": np.where(block, _BLOCK, 10 * np.maximum(1, lots.astype(np.int64))),
            "price": _prices(random, moments, company, baskets, rallies),
            "time": pa.array(_DAY + moments.astype("timedelta64[ms]")),
            "stock_time": moments,
        }
    )


def _orders(random: np.random.Generator, events: int) -> tuple[npt.NDArray[np.void], Ints, Ints]:
    """Orders that are filled by at least this many trades.

    Also those that are the first of a basket, and pairs of the first and the last one of a rally.
    """
    orders = np.zeros(events, _ORDER)
    large = _dealt(random, events, round(1 / _LARGE_FLURRIES)) < _LARGE_FLURRIES
    sizes = np.ones(events, np.int64)
    for mine, mean in ((large, _LARGE), (~large, _SMALL)):
        # Quantiles of the geometric distribution.
        above = 1 - _dealt(random, int(mine.sum()), _LARGE_DECK)
        sizes[mine] = np.maximum(1, np.ceil(np.log(above) / np.log(1 - 1 / mean)))
    orders["flurry"] = flurry = np.repeat(np.arange(events), sizes)[:events]
    shares = np.array([share for *_, share in COMPANIES])
    orders["company"] = np.searchsorted(np.cumsum(shares / shares.sum()), _dealt(random, events, _DECK))
    buyers = np.cumsum(_dealt(random, events, _LARGE_DECK) < _TURNS) % 2 == 0
    orders["buy"] = buyers[flurry] == (_dealt(random, events, _DECK) < np.where(large[flurry], *_ONE_SIDED))
    orders["fills"] = np.searchsorted(np.cumsum(_FILLS), _dealt(random, events, _DECK)) + 1
    orders["block"] = (orders["company"] == _NUMBERS["QQQ"]) & (random.random(events) < _BLOCKS)
    orders["fills"][orders["block"]] = _BLOCK_FILLS
    orders["gap"] = np.where(
        large[flurry], 2 * _LARGE_GAP * _dealt(random, events, _DECK), random.exponential(_SMALL_GAP, events)
    )
    baskets, rallies = (round(events * program.share) for program in (_BASKET, _RALLY))
    # One program in each of several equal parts of the orders.
    starts = ((np.arange(baskets + rallies) + random.random(baskets + rallies) / 2) * events).astype(np.int64)
    starts //= max(baskets + rallies, 1)
    rally = np.diff(np.arange(len(starts) + 1) * rallies // max(len(starts), 1)) > 0
    firsts = starts[rally]
    ends = firsts[:, None] + np.array([_RALLY.late, len(_RALLY.orders) - 1])
    # The speeds of few programs, too, are all between the slowest and the fastest; of two baskets one after another
    # they are equal.
    for number, start in enumerate(starts[~rally].tolist()):
        _place(orders, _BASKET, start, number // 2 * _GOLDEN % 1)
    for number, start in enumerate(firsts.tolist()):
        _place(orders, _RALLY, start, number * _GOLDEN % 1)
    # Only programs within these orders count.
    count = int(np.searchsorted(np.cumsum(orders["fills"]), events)) + 1
    return orders[:count], starts[~rally & (starts < count)], ends[ends[:, 1] < count]


def _place(orders: npt.NDArray[np.void], program: _ProgramTrade, start: int, speed: float) -> None:
    """Put a program in the place of other orders; 0 is the slowest speed, 1 the fastest."""
    fastest, slowest = program.gaps
    placed = orders[start : start + len(program.orders)]
    placed["flurry"] = placed["flurry"][0]
    placed["company"] = [_NUMBERS[order.rstrip("+-")] for order in program.orders]
    placed["buy"] = [order.endswith("+") for order in program.orders]
    placed["block"] = False
    placed["fills"] = [len(order) - len(order.rstrip("+-")) for order in program.orders]
    placed["gap"] = slowest + speed * (fastest - slowest)
    placed["gap"][program.late] += program.pause


def _dealt(random: np.random.Generator, size: int, deck: int) -> Floats:
    """Numbers between 0 and 1: every deck has one in each of its equal parts, so that chance makes few clusters."""
    decks = -(-size // deck)
    parts = random.permuted(np.tile(np.arange(deck), (decks, 1)), axis=1)
    numbers: Floats = ((parts + random.random((decks, deck))) / deck).ravel()[:size]
    return numbers


def _away(moments: Ints, stretches: Ints) -> Ints:
    """How far each moment is from the nearest of some stretches, pairs of moments; 0 in one."""
    away = np.full(len(moments), _CLOSE)
    for first, last in stretches.tolist():
        away = np.minimum(away, np.maximum(0, np.maximum(first - moments, moments - last)))
    return away


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


def _prices(random: np.random.Generator, moments: Ints, company: Ints, baskets: Ints, rallies: Ints) -> Floats:
    """The price of each trade, in cents: it goes up and down, and returns to what is usual for the company."""
    price = np.empty(len(moments))
    near = np.exp(-np.maximum(0, _away(moments, rallies) - _AROUND) / _APPROACH)
    # Up at one basket and down at the next, and all that is between in between.
    wave = np.cos(np.pi * np.interp(moments, baskets, np.arange(len(baskets)))) if len(baskets) else near
    for index, (name, usual, deviation, _) in enumerate(COMPANIES):
        mine = np.flatnonzero(company == index)
        elapsed = np.diff(_day_fraction(moments[mine]), prepend=0.0) / _MEMORY
        # The exact solution of the Ornstein-Uhlenbeck process: what is left of the past, and what is new.
        left = np.exp(-elapsed)
        new = random.normal(size=len(mine)) * deviation * np.sqrt(1 - left**2)
        log = np.empty(len(mine))
        at = random.normal() * deviation
        for row in range(len(mine)):
            at = log[row] = at * left[row] + new[row]
        if name == "YHOO":
            log += _WAVE * wave[mine]
        if name in _RALLY_PRICES:
            log += near[mine] * np.maximum(0, np.log(_RALLY_PRICES[name] / usual) - log)
        price[mine] = usual * np.exp(log)
    price = np.round(np.round(price / _TICK) * _TICK, 2)
    resisted = (company == _NUMBERS["AMAT"]) & (_away(moments, rallies) > 0)
    price[resisted] = np.minimum(price[resisted], _RESISTANCE)
    return price
