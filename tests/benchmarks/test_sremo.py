"""The patterns of the paper in SREMO and in CEL: the same matches."""

from pathlib import Path

import pytest
from benchmarks.suites.srt import PATTERNS
from pyarrow import csv

import cerflow
from cerflow.examples import stocks as generated
from runners import supports

STOCKS = Path(__file__).parents[3] / "shared" / "data" / "stocks.csv.gz"
FAMILIES = {name: pattern for named in PATTERNS.values() for name, pattern in named.items()}

#: Windows in which all matches can be listed, by the kind of pattern.
LISTED = {"seq": 2000, "kleene": 500, "nested": 500, "q": 1000}
WINDOWS = {name: LISTED[kind] for kind, named in PATTERNS.items() for name in named}


@pytest.fixture(scope="module")
def trades():
    if not STOCKS.exists():
        pytest.skip(f"the stock data {STOCKS.name} is not beside the repository")
    return csv.read_csv(STOCKS)


def both(name, window):
    """The pattern in CEL, which labels events with their types too, and in SREMO."""
    pattern = FAMILIES[name]
    return cerflow.parse(pattern.cel(window)), cerflow.parse(pattern.sremo(window), language="sremo")


def test_words():
    assert FAMILIES["kleene3"].sremo(500) == (
        "any([type = 'SELL' AND name = 'INTC'] AS x0 INTO x0, "
        "any([type = 'BUY' AND name = 'RIMM' AND price < 500] AS y0+), "
        "[type = 'BUY' AND name = 'QQQ' AND price > x0.price] AS z0) WITHIN 500 [stock_time]"
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_matches_of_generated_trades(name):
    cel, sremo = both(name, 400_000)
    table = generated(3000, 3)
    expected = supports(cel.match(table, type="type", time="stock_time").to_pylist())
    assert supports(sremo.match(table, type="type", time="stock_time").to_pylist()) == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_matches_of_real_trades(name, trades):
    cel, sremo = both(name, WINDOWS[name])
    expected = supports(cel.match(trades, type="event_type", time="stock_time").to_pylist())
    found = sremo.match(trades, type="event_type", time="stock_time")
    assert supports(found.to_pylist()) == expected
    assert found.count() == len(expected)


@pytest.mark.parametrize("name", FAMILIES)
def test_counts_of_real_trades(name, trades):
    cel, sremo = both(name, 2000)
    counts = [query.match(trades, type="event_type", time="stock_time").count() for query in (cel, sremo)]
    assert counts[0] == counts[1]
