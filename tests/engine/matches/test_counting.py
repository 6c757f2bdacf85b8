"""Numbers of matches: however they are counted, they are those of the matches that are listed."""

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.engine.kernels.matches.semiring import COUNT, FACTORS, GREATEST, LEAST, PLUS, SUMS
from cerflow.engine.kernels.matches.slide import SlidingFold
from cerflow.engine.layout import M_POSITION
from cerflow.engine.matches import folding
from cerflow.engine.matches.counting import MatchCounter, match_numbers
from cerflow.engine.matches.folding import Folding, Values, extremes
from cerflow.engine.matches.graph import MatchGraph
from cerflow.engine.matches.unfolding import unfolded
from support.conformance import drawn, limit
from support.runners import engine_refuses, examples

QUERIES = (
    "SELECT * WHERE A ; B",
    "SELECT * WHERE A ; B ; C",
    "SELECT * WHERE A ; (B OR C) ; A",
    "SELECT * WHERE (A OR (B ; A)) ; C",
    "SELECT * WHERE ((A ; C) OR (B AS x)) ; A",
    "SELECT * WHERE A ; A ; A",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v",
    "SELECT * WHERE (A AS x ; B AS y ; C AS z) FILTER x.v <= z.v",
    "SELECT y WHERE A AS x ; B AS y ; C",
    "SELECT * WHERE PROJECT B (A ; B)",
    "SELECT * WHERE A ; (B+) ; C",
)


def listed(part):
    """The number of matches of each detection, by listing them."""
    numbers = np.zeros(len(part.graph.detections), np.int64)
    begin = 0
    for found in unfolded(part, None, 100):
        # Batches tell detections by their place in the batch, so they are found again by their positions.
        owner = found.detected[found.owner]
        begin += len(owner)
        for position, count in zip(*np.unique(owner, return_counts=True)):
            numbers[np.flatnonzero(part.graph.detections[:, 0] == position)[0]] += count
    assert begin == numbers.sum()
    return numbers


def by_position(part, numbers):
    first = np.searchsorted(part.graph.detections[:, 0], part.graph.detections[:, 0])
    return np.bincount(first, weights=numbers, minlength=len(numbers)).astype(np.int64)


def assert_counted(part):
    expected = listed(part)
    numbers = match_numbers(part)
    assert (by_position(part, numbers) == expected).all()
    counted, found = slid(part, COUNT, 1)
    assert (found[:counted, 0] == numbers[:counted]).all()
    return counted


def slid(part, operation, weights):
    """The number of detections along a sliding window that get a value, and these values."""
    found = np.zeros(
        (len(part.graph.detections), 1 if operation == COUNT else 2), np.int64 if operation == COUNT else float
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "FOLDED_PAIRS", -1)
        patch.setattr(limits, "COUNTED_PAIRS", -1)
        patch.setattr(limits, "FOLD_VISITS", 0)
        # Windows go on from one portion to the next.
        patch.setattr("cerflow.engine.stopping._PORTION", 7)
        return Folding(part, operation, weights).slide(found), found


@st.composite
def short_windows(draw, longest):
    """A query with a window of few events, and a stream of at most this many."""
    text, width = draw(st.sampled_from(QUERIES)), draw(st.integers(2, 25))
    letters, random = draw(st.text("ABC", min_size=10, max_size=longest)), draw(st.randoms(use_true_random=False))
    table = pa.table({"type": list(letters), "v": [random.randrange(3) for _ in letters]})
    return cerflow.parse(f"{text} WITHIN {width} EVENTS"), table


@examples(150)
@given(short_windows(150), st.data())
def test_long_streams_with_short_windows(drawn_, data):
    query, table = drawn_
    recognizer = query.recognizer(table.schema)
    cut = data.draw(st.integers(0, table.num_rows - 1))
    for rows in (table.slice(0, cut), table.slice(cut)):
        matches = recognizer.push(rows)
        if matches.count() < 20_000:
            for part in matches.parts:
                assert_counted(part)


def folds(part, pairs, visits=0):
    """Sums and least values of the matches of each detection, where parts with more ``pairs`` are folded as windows."""
    positions = part.graph.marks[:, M_POSITION].astype(float)
    own = Values(
        pa.array(np.where((positions < 0) | (positions % 3 == 0), np.nan, positions % 7 - 3), from_pandas=True)
    )
    lacking = np.isnan(own.floats)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "FOLDED_PAIRS", pairs)
        patch.setattr(limits, "FOLD_VISITS", visits)
        # Windows go on from one portion to the next.
        patch.setattr("cerflow.engine.stopping._PORTION", 7)
        for operation, weights in ((SUMS, np.nan_to_num(own.floats)), (FACTORS, np.where(lacking, 1.0, 0.0))):
            yield Folding(part, operation, weights).all().tolist()
        for operation in (PLUS, LEAST, GREATEST):
            for greatest in (False, True):
                yield extremes(part, operation, own, greatest=greatest)


@examples(120)
@given(short_windows(120))
def test_folds_in_windows(drawn_):
    query, table = drawn_
    matches = query.recognizer(table.schema).push(table)
    for part in matches.parts:
        # Numbers of matches beyond 2⁵³ are rounded in another order.
        if match_numbers(part).max(initial=0) < 2**45:
            plain = list(folds(part, 1 << 60))
            assert list(folds(part, -1)) == plain
            assert list(folds(part, -1, visits=1)) == plain


@pytest.mark.parametrize("operation", [SUMS, LEAST])
def test_folds_visit_the_nodes_of_wide_windows_a_few_times(operation):
    generator = np.random.default_rng(2)
    size = 60_000
    table = pa.table({"type": np.array(list("ABC"))[generator.integers(0, 3, size)]})
    recognizer = cerflow.parse("SELECT * WHERE A ; B WITHIN 20000 EVENTS").recognizer(table.schema)
    part = max(recognizer.push(table).parts, key=lambda part: len(part.graph.detections))
    # It gives up before it has visited 64 times as many nodes as there are.
    assert slid(part, operation, generator.random(len(part.graph.marks)))[0] == len(part.graph.detections) > 3_000


@examples(200)
@given(st.data())
def test_random_queries(data):
    query, table = drawn(data)
    assume(limit(query.tree) is None and not engine_refuses(query, table, time="t"))
    for part in query.recognizer(table.schema, time="t").push(table).parts:
        assert_counted(part)


@pytest.mark.parametrize("formula", ["A ; B", "A ; B ; C", "A ; B+ ; C FILTER B.v < 2"])
def test_what_a_detection_costs_does_not_grow_with_the_window(formula):
    generator = np.random.default_rng(1)
    size = 60_000
    table = pa.table(
        {"type": np.array(list("ABC"))[generator.integers(0, 3, size)], "v": generator.integers(0, 5_000, size)}
    )
    query = cerflow.parse(f"SELECT * WHERE {formula} WITHIN 20000 EVENTS")
    part = max(query.recognizer(table.schema).push(table).parts, key=lambda part: len(part.graph.detections))
    last = replace(part, found=MatchGraph(part.graph.detections[-1:], part.graph.nodes, part.graph.marks))
    assert slid(last, COUNT, 1)[0] == 1  # compiled by now
    begun = time.process_time()
    assert slid(last, COUNT, 1)[0] == 1
    one = time.process_time() - begun
    counted, found = slid(part, COUNT, 1)
    assert counted == len(found) > 3_000
    # Thousands of detections times 10^4 nodes would take thousands of times as long.
    assert time.process_time() - begun - one < 300 * one
    some = [0, len(found) // 2, len(found) - 1]
    # One by one, and without what was remembered of other windows.
    assert [MatchCounter(part, lags=False).counted(range(d, d + 1), 0)[0] for d in some] == found[some].tolist()


@pytest.mark.parametrize("size", [5, 62, 63, 64, 126, 127, 128, 129, 300])
def test_numbers_of_any_size(size):
    """Of n As every nonempty set matches with each B: 2ⁿ − 1."""
    query = cerflow.parse("SELECT * WHERE A+ ; B")
    table = pa.table({"type": ["B", *["A"] * 5, "B", *["A"] * (size - 5), "B", "B"]})
    matches = query.match(table)
    counted = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B").match(table).to_batches(counts="text")
    assert [int(n) for batch in counted for n in batch["n"].to_pylist()] == [31, 2**size - 1, 2**size - 1]
    total = 31 + 2 * (2**size - 1)
    assert matches.count() == total
    last = matches[total - 1 : total].to_pylist()
    assert len(last) == 1
    (sample,) = matches[2**size // 3 : 2**size // 3 + 1].to_pylist()
    assert sample["events"][-1]["type"] == "B"
    assert len(matches.sample(3, seed=1).to_pylist()) == 9


@examples(40)
@given(
    st.text("AAB", min_size=80, max_size=160),
    st.integers(60, 150),
    st.sampled_from(["A+ ; B", "(A OR B)+ ; B", "A+ ; (A OR B)+"]),
)
def test_numbers_of_several_words(letters, width, formula):
    """Numbers in windows, where sets lose members, equal those of Python's integers."""
    query = cerflow.parse(f"SELECT * WHERE {formula} WITHIN {width} EVENTS")
    for part in query.match(pa.table({"type": list(letters)})).parts:
        size = len(part.graph.detections)
        found = np.zeros((size, 2), object)
        assert Folding(part, FACTORS, np.ones(len(part.graph.marks), object)).fold(0, found) == size
        expected = found[:, 0].tolist()
        assert match_numbers(part).tolist() == expected
        counter = MatchCounter(part, lags=False)
        assert [counter.counted(range(d, d + 1), 0)[0] for d in range(0, size, 9)] == found[::9, :1].tolist()


def test_a_few_matches_beside_a_large_graph_are_counted_without_a_window(monkeypatch):
    keys = [k % 500 for k in range(6000)]
    types = ["B" if k % 37 == 5 else "A" for k in range(6000)]
    table = pa.table({"type": types, "k": keys, "v": [k % 7 for k in range(6000)]})
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k WITHIN 100000 EVENTS")
    recognizer = query.recognizer(table.schema)
    recognizer.push(table.slice(0, 5000))
    (part,) = recognizer.push(table.slice(5000)).parts
    expected = match_numbers(part).tolist()
    assert sum(expected) > 100
    monkeypatch.setattr(limits, "COUNTED_PAIRS", -1)
    windows = []
    monkeypatch.setattr(folding, "SlidingFold", lambda *given: windows.append(given) or SlidingFold(*given))
    assert match_numbers(part).tolist() == expected
    assert not windows
    # A walk that would take too long is given up.
    monkeypatch.setattr(limits, "FOLD_VISITS", 0.01)
    assert match_numbers(part).tolist() == expected
    assert len(windows) == 1
