"""Plots and sparklines of matches."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.look.viewing.plots import MatchesOverTime, sparkline

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
NOON = datetime(2024, 3, 15, 12)
QUERY = cerflow.parse("SELECT * WHERE (A AS x)+ ; B")


@pytest.fixture(autouse=True)
def _no_windows():
    matplotlib.use("agg")
    yield
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")


def stream(times):
    return pa.table({"type": ["A", "A", "B", "A", "B"], "t": times})


TIMES = {
    "timestamp": [NOON + timedelta(minutes=k) for k in (0, 1, 2, 10, 60)],
    "number": [0, 60_000, 120_000, 600_000, 3_600_000],
}


def drawn(ax):
    """The heights of the bars of a plot, whatever draws them."""
    if ax.patches and hasattr(ax.patches[0], "get_data"):
        return ax.patches[0].get_data().values.tolist()
    return [patch.get_height() for patch in ax.patches]


@pytest.mark.parametrize("kind", TIMES)
def test_over_time_counts_every_match_where_it_is_detected(kind):
    matches = QUERY.match(stream(TIMES[kind]), time="t")
    heights = drawn(matches.plot())
    assert (heights[0], heights[-1], sum(heights)) == (3, 7, 10)
    assert matches.plot().get_title(loc="left") == "10 matches over time"


def test_over_time_counts_without_unfolding():
    many = pa.table({"type": ["A"] * 70 + ["B"]})
    assert sum(drawn(QUERY.match(many).plot("over_time"))) == float(2**70 - 1)
    counted = cerflow.parse("SELECT COUNT(*) AS n WHERE (A AS x)+ ; B").match(many)
    assert sum(drawn(counted.plot())) == float(2**70 - 1)
    limited = cerflow.parse("SELECT * WHERE (A AS x)+ ; B LIMIT 5").match(many)
    assert sum(drawn(limited.plot())) == 5


@pytest.mark.parametrize("kind", TIMES)
def test_durations(kind):
    ax = QUERY.match(stream(TIMES[kind]), time="t").plot("duration")
    assert ax.get_xlabel() == "duration (minutes)"
    assert sum(drawn(ax)) == 10
    edges = [patch.get_x() for patch in ax.patches]
    assert (edges[0], ax.patches[-1].get_x() + ax.patches[-1].get_width()) == pytest.approx((1, 60))
    assert QUERY.match(stream(TIMES[kind])).plot("duration").get_xlabel() == "events from start to end"


def test_sizes():
    _, axes = matplotlib.pyplot.subplots()
    ax = QUERY.match(stream(TIMES["number"])).plot("size", ax=axes)
    assert ax is axes
    assert drawn(ax) == [5, 4, 1]
    assert [round(patch.get_x() + patch.get_width() / 2) for patch in ax.patches] == [2, 3, 4]


@pytest.mark.parametrize("kind", ["over_time", "duration", "size"])
def test_nothing_to_plot(kind):
    assert sum(drawn(cerflow.parse("SELECT * WHERE C").match(stream(TIMES["timestamp"]), time="t").plot(kind))) == 0


def test_a_part_of_the_matches_is_announced(monkeypatch):
    monkeypatch.setattr(limits, "PLOTTED_MATCHES", 4)
    ax = QUERY.match(stream(TIMES["number"])).plot("size")
    assert ax.get_title(loc="left") == "Events per match: 10 matches, the first 4 plotted"
    assert sum(drawn(ax)) == 4


def test_unknown_plots_are_refused():
    matches = QUERY.match(stream(TIMES["number"]))
    with pytest.raises(ValueError, match="'over_time', 'duration' or 'size', not 'pie'"):
        matches.plot("pie")
    with pytest.raises(cerflow.UnsupportedQueryError, match="size"):
        cerflow.parse("SELECT COUNT(*) AS n WHERE A").match(stream(TIMES["number"])).plot("size")


def test_sparkline():
    assert sparkline(np.array([0, 1, 4, 8])) == " ▁▄█"
    assert sparkline(np.array([0, 0])) == "  "
    assert sparkline(np.array([])) == ""


@pytest.mark.parametrize("column", [pa.array(TIMES["timestamp"]), pa.array(TIMES["number"]), pa.array([0.0, 1.5])])
def test_matches_over_time(column):
    found = MatchesOverTime(pa.chunked_array([column]), "ms", stretches=2)
    found.add(column[:1])
    found.add(column[-1:], np.array([8.0]))
    assert str(found).startswith("matches over time: |▁█|\n")
    assert str(found).endswith("at most 8 matches")
