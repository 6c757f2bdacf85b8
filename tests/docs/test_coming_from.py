"""The queries for those who come from other engines find what a few lines of Python find."""

import itertools
import random
import re
from pathlib import Path

import pytest

import cerflow

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text("utf-8")
MINUTE = 60_000


def query_below(heading):
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return cerflow.parse(re.search(r"^```sql\n(.*?)^```$", section, re.M | re.S)[1])


def stream(types, columns, seed, *, step, count=60):
    """Events at random distances of some ``step`` milliseconds, with random values of some columns."""
    draw = random.Random(seed)
    times = itertools.accumulate(draw.randrange(1, 2 * step) for _ in range(count))
    return [{"type": draw.choice(types), "t": t} | {n: draw.choice(c) for n, c in columns.items()} for t in times]


def positions(matches):
    return sorted(tuple(event["position"] for event in match["events"]) for match in matches)


def pairs(events, fits):
    return [(i, j) for i, j in itertools.combinations(range(len(events)), 2) if fits(events[i], events[j])]


def test_a_v_of_prices_ends_with_its_second_rise():
    prices = {"x": [10, 9, 8, 9, 10, 11, 7, 6, 7, 8], "y": [5, 4, 3, 2, 3, 3, 4]}
    events = [{"type": "tick", "name": n, "price": p} for n in prices for p in prices[n]]
    found = query_below("SQL MATCH_RECOGNIZE").match(events)
    assert [(m["before"], m["low"], m["after"]) for m in found] == [(10, 8, 10), (11, 6, 8)]


@pytest.mark.parametrize("seed", range(5))
def test_small_payments_and_large_ones(seed):
    events = stream(["payment"], {"card": [1, 2], "amount": [1, 100, 600]}, seed, step=5 * MINUTE)

    def fits(a, b):
        near = b["t"] - a["t"] < 30 * MINUTE
        return a["amount"] < 2 and b["amount"] > 500 and a["card"] == b["card"] and near

    expected = pairs(events, fits)
    assert expected
    for engine in ("FlinkCEP", "Esper"):
        assert positions(query_below(engine).match(events, time="t")) == expected


@pytest.mark.parametrize("seed", range(5))
def test_goods_that_leave_unpaid(seed):
    events = stream(["Shelf", "Counter", "Exit"], {"tag": [1, 2, 3]}, seed, step=90 * MINUTE)

    def fits(a, c):
        paid = any(
            b["type"] == "Counter" and b["tag"] == a["tag"] for b in events[events.index(a) + 1 : events.index(c)]
        )
        near = c["t"] - a["t"] < 12 * 60 * MINUTE
        return (a["type"], c["type"]) == ("Shelf", "Exit") and a["tag"] == c["tag"] and near and not paid

    expected = pairs(events, fits)
    assert expected
    assert positions(query_below("SASE+").match(events, time="t")) == expected


@pytest.mark.parametrize("seed", range(5))
def test_consumption_by_any(seed):
    columns = {"name": ["INTC", "AMZN"], "price": [25.0, 27.0]}
    events = [e | {"stock_time": k} for k, e in enumerate(stream(["SELL", "BUY"], columns, seed, step=1))]
    expected, consumed = [], -1
    for j, b in enumerate(events):
        begun = [
            i
            for i in range(max(consumed + 1, j - 9), j)
            if (events[i]["type"], events[i]["name"]) == ("SELL", "INTC") and b["name"] == "INTC"
        ]
        if b["type"] == "BUY" and b["price"] > 26 and begun:
            expected += [(i, j) for i in begun]
            consumed = j
    assert expected
    assert positions(query_below("CORE").match(events, time="stock_time")) == sorted(expected)
