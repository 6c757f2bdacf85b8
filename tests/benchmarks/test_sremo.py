"""The patterns of the paper in SREMO and in CEL: the same matches."""

from itertools import islice
from pathlib import Path

import pytest
from benchmarks.suites.srt import PATTERNS
from benchmarks.suites.srt_streams import SMART_HOMES, TAXIS
from pyarrow import csv

import cerflow
from cerflow.examples import query_names, query_text, smart_homes, taxis
from cerflow.examples import stocks as generated
from support.runners import supports

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


@pytest.fixture(scope="module")
def ticks():
    """As many as in the paper."""
    return generated(224_473)


def window_of_the_paper(name):
    return 1000 if name.startswith("q") else 500


@pytest.mark.parametrize("name", FAMILIES)
def test_matches_of_generated_trades(name, ticks):
    """The same in both notations; and there are some, but of q2, as in the paper."""
    cel, sremo = both(name, window_of_the_paper(name))
    expected = supports(cel.match(ticks.slice(0, 60_000), time="stock_time").to_pylist())
    assert supports(sremo.match(ticks.slice(0, 60_000), time="stock_time").to_pylist()) == expected
    count = cel.match(ticks, time="stock_time").count()
    assert sremo.match(ticks, time="stock_time").count() == count
    assert (count > 0) == (name != "q2")


def test_every_pattern_tells_something_else(ticks):
    found = [both(name, window_of_the_paper(name))[0].match(ticks, time="stock_time") for name in FAMILIES]
    # Counts of two may be equal.
    assert len({str(list(islice(matches, 5))) for matches in found}) == len(FAMILIES)
    assert both("q2", 2000)[0].match(ticks, time="stock_time").count() > 0


#: Matches in the ticks of the paper within its window.
IN_THE_PAPER = {"seq3": 819, "kleene3": 1_367, "q1": 686, "q2": 0, "q3": 29_069, "q4": 272, "q5": 5_287}


@pytest.mark.parametrize("name", IN_THE_PAPER)
def test_trades_match_as_often_as_in_the_paper(name, ticks):
    count = both(name, window_of_the_paper(name))[0].match(ticks, time="stock_time").count()
    assert IN_THE_PAPER[name] / 2 <= count <= 2 * IN_THE_PAPER[name]


@pytest.mark.parametrize("name", IN_THE_PAPER)
def test_recorded_trades_match_as_often_as_is_known(name, trades):
    found = both(name, window_of_the_paper(name))[0].match(trades, type="event_type", time="stock_time")
    assert found.count() == IN_THE_PAPER[name]


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


STREAMS = [(SMART_HOMES, smart_homes, 20_000, 5), (TAXIS, taxis, 30_000, 100)]


@pytest.mark.parametrize(("patterns", "make", "events", "window"), STREAMS)
def test_matches_of_homes_and_trips(patterns, make, events, window):
    """The same matches in both notations, and of a sequence about as many as in the paper."""
    table, total = make(events), 0
    for named in patterns.values():
        for name, pattern in named.items():
            wide = window * (1 if name in ("seq3", "kleene3") else 2)
            cel, sremo = cerflow.parse(pattern.cel(wide)), cerflow.parse(pattern.sremo(wide), language="sremo")
            expected = cel.match(table, time="timestamp")
            found = sremo.match(table, time="timestamp")
            assert found.count() == expected.count(), name
            if expected.count() < 2_000:
                assert supports(found.to_pylist()) == supports(expected.to_pylist()), name
            total += expected.count()
    assert total > 0


@pytest.mark.parametrize(
    ("patterns", "make", "window", "shares"),
    [(SMART_HOMES, smart_homes, 5, (0.36, 1.35)), (TAXIS, taxis, 100, (0.05, 0.08))],
)
def test_matches_are_as_frequent_as_in_the_paper(patterns, make, window, shares):
    """Matches per hundred events; half and double are near, as so few matches vary from seed to seed."""
    table = make(200_000)
    for (kind, name), share in zip([("seq", "seq3"), ("kleene", "kleene3")], shares):
        count = cerflow.parse(patterns[kind][name].cel(window)).match(table, time="timestamp").count()
        assert share / 2 < 100 * count / len(table) < 2 * share, name


@pytest.mark.parametrize("name", query_names("sremo"))
def test_queries_of_the_package_in_both_notations(name):
    table = (taxis if name.startswith("taxi") else smart_homes)(30_000)
    cel, sremo = (cerflow.parse(query_text(name, language), language=language) for language in ("ceql", "sremo"))
    expected = supports(cel.match(table, time="timestamp").to_pylist())
    assert expected
    assert supports(sremo.match(table, time="timestamp").to_pylist()) == expected
