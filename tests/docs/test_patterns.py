"""The queries of `docs/how-to/patterns.md` on random events, compared with pandas."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "patterns.md"
KEYS = 20
MINUTE = pd.Timedelta(minutes=1)


@pytest.fixture(scope="module")
def queries():
    """The names that the page defines."""
    names = {"__name__": "example"}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
    return names


def events(types, *, seed, mean_gap, size=5000):
    """Events of some keys in the order of their times, no two at the same one; ``mean_gap`` in seconds."""
    random = np.random.default_rng(seed)
    seconds = np.cumsum(random.integers(1, 2 * mean_gap, size))
    return pd.DataFrame(
        {
            "at": pd.Timestamp("2024-05-06") + pd.to_timedelta(seconds, unit="s"),
            "type": random.choice(types, size),
            "key": random.integers(0, KEYS, size).astype(str),
            "value": random.integers(0, 40, size).astype(float),
        }
    )


def found(query, frame, *columns, **options):
    """The key, the first and the last time of each match, and some columns, in order."""
    matches = query.match(frame, time="at", **options).to_pandas()
    names = ["key", "start_time", "end_time", *columns]
    return sorted(matches[names].itertuples(index=False, name=None))


def rows(frame, *columns):
    assert len(frame) > 20
    return sorted(frame[list(columns)].itertuples(index=False, name=None))


def later(first, second, wait):
    """For each of the first events the time of the next of the second of its key, if that comes before a deadline."""
    second = second[["at", "key"]].assign(then=second["at"])
    # A tolerance belongs to what is found.
    tolerance = wait - pd.Timedelta(microseconds=1)
    return pd.merge_asof(
        first, second, on="at", by="key", direction="forward", tolerance=tolerance, allow_exact_matches=False
    )["then"]


def test_abandoned_cart(queries):
    frame = events(["cart", "checkout", "view"], seed=1, mean_gap=40)
    until = frame["at"].iloc[-1] + 10 * MINUTE
    carts = frame[frame["type"] == "cart"].reset_index(drop=True)
    abandoned = carts[later(carts, frame[frame["type"] == "checkout"], 30 * MINUTE).isna()]
    shown = abandoned[abandoned["at"] + 30 * MINUTE <= frame["at"].iloc[-1]]
    assert found(queries["abandoned_cart"], frame) == rows(shown, "key", "at", "at")
    known = abandoned[abandoned["at"] + 30 * MINUTE <= until]
    assert len(known) > len(shown)
    assert found(queries["abandoned_cart"], frame, until=until) == rows(known, "key", "at", "at")


def test_brute_force_login(queries):
    frame = events(["failure", "failure", "success"], seed=2, mean_gap=6)
    by_key = frame.groupby("key")
    before = [by_key["type"].shift(n) == "failure" for n in (1, 2, 3)]
    frame["start"], frame["first"] = by_key["at"].shift(3), by_key["value"].shift(3)
    broken = frame[(frame["type"] == "success") & np.logical_and.reduce(before)]
    broken = broken[broken["at"] - broken["start"] < 10 * MINUTE]
    assert found(queries["brute_force"], frame, "first_address", "address") == rows(
        broken, "key", "start", "at", "first", "value"
    )


def test_missing_heartbeat(queries):
    frame = events(["beat"], seed=3, mean_gap=2)
    frame["next"] = frame.groupby("key")["at"].shift(-1)
    last = frame["at"].iloc[-1]
    silent = frame[(frame["next"].fillna(last) - frame["at"]) >= 1.5 * MINUTE]
    assert found(queries["missing_heartbeat"], frame) == rows(silent, "key", "at", "at")


def test_temperature_ramp(queries):
    frame = events(["reading"], seed=4, mean_gap=3)
    ramps = []
    for key, readings in frame.groupby("key"):
        rising = []
        for at, value in readings[["at", "value"]].itertuples(index=False):
            rising = [r for r in rising if at - r[0] < 5 * MINUTE] if not rising or value > rising[-1][1] else []
            rising.append((at, value))
            if value - rising[0][1] >= 10:
                ramps.append((key, rising[0][0], at, rising[0][1], value, len(rising)))
                rising = []
    assert len(ramps) > 20
    assert found(queries["ramp"], frame, "low", "high", "readings") == sorted(ramps)


def test_order_not_paid_and_then_cancelled(queries):
    frame = events(["ordered", "paid", "cancelled"], seed=5, mean_gap=60, size=2000)
    orders = frame[frame["type"] == "ordered"].reset_index(drop=True)
    unpaid = orders[later(orders, frame[frame["type"] == "paid"], 60 * MINUTE).isna()]
    pairs = unpaid.merge(frame[frame["type"] == "cancelled"], on="key", suffixes=("", "_end"))
    cancelled = pairs[pairs["at_end"] - pairs["at"] >= 60 * MINUTE]
    assert found(queries["unpaid"], frame) == rows(cancelled, "key", "at", "at_end")


def test_sessions_by_inactivity(queries):
    frame = events(["view", "cart"], seed=6, mean_gap=60)
    until = frame["at"].iloc[-1] + 60 * MINUTE
    number = frame.groupby("key")["at"].diff().ge(30 * MINUTE).groupby(frame["key"]).cumsum()
    sessions = frame.groupby(["key", number])["at"].agg(["min", "max", "count"]).reset_index("key")
    assert found(queries["sessions"], frame, "clicks", until=until) == rows(sessions, "key", "min", "max", "count")
