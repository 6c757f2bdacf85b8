"""Matches as a sequence: whether there are any, how many, and which is number k, without unfolding those before it."""

import pickle
import sys
from itertools import islice, pairwise

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.engine.matches.unfolding import Part
from cerflow.engine.recognize.planning import limit_of
from support.conformance import drawn
from support.runners import engine_refuses, examples

PAIRS = cerflow.parse("SELECT * WHERE A ; B")
COUNTED = cerflow.parse("SELECT COUNT(*) AS n WHERE A ; B")
DETECTED = cerflow.parse("SELECT NONE WHERE A ; B")
QUERIES = (PAIRS, COUNTED, DETECTED, cerflow.parse("SELECT ANY * WHERE A ; B"))
MANY = cerflow.parse("SELECT * WHERE A+ ; B")


def letters(text):
    return pa.table({"type": list(text)})


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("runner", ["engine", "semantics"])
def test_truth_is_whether_there_is_a_match(query, runner):
    assert query.match(letters("AAB"), runner=runner)
    assert not query.match(letters("BAA"), runner=runner)
    assert not query.match(letters("B").slice(1), runner=runner)


@pytest.mark.parametrize("query", QUERIES)
def test_nothing_pushed_is_false(query):
    recognizer = query.recognizer(letters("").cast(pa.schema([("type", pa.string())])).schema)
    assert not recognizer.push({"type": "A"})
    assert recognizer.push({"type": "B"})
    assert not recognizer.push({"type": "C"})


def test_truth_stops_at_the_first_part_with_a_match():
    read = []

    def parts(found):
        for part in found:
            read.append(part)
            yield part

    found = list(PAIRS.recognizer(letters("A").schema).push(letters("AB")).parts)
    assert all(isinstance(part, Part) for part in found)
    matches = cerflow.Matches(parts(found * 3), PAIRS.match(letters("AB"))._report, None)
    assert matches
    assert len(read) == 1


def test_truth_of_some_matches():
    matches = PAIRS.match(letters("AAB"))
    assert matches[1:]
    assert not matches[2:]
    assert matches.first(1, by="start")
    assert matches.sample(1)


@pytest.mark.parametrize("runner", ["engine", "semantics"])
def test_length_is_what_iterating_gives(runner):
    for query in QUERIES:
        matches = query.match(letters("AABB"), runner=runner)
        assert len(matches) == len(matches.to_pylist()) == len(list(matches))
    # The number of matches is another one where rows count them.
    assert COUNTED.match(letters("AABB"), runner=runner).count() == 4


def test_length_beyond_what_len_can_say():
    matches = MANY.match(letters("A" * 70 + "B"))
    with pytest.raises(OverflowError, match=r"there are 1180591620717411303423 matches.*use \.count\(\)"):
        len(matches)
    assert matches
    assert matches.count() == 2**70 - 1 > sys.maxsize
    assert matches[10:].count() == 2**70 - 11


@examples(80)
@given(st.data())
def test_any_span_is_that_of_the_list(data):
    query, table = drawn(data)
    if engine_refuses(query, table, time="t"):
        return
    recognizer = query.recognizer(table.schema, time="t")
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=3)))
    parts = [p for a, b in pairwise([0, *cuts, table.num_rows]) for p in recognizer.push(table.slice(a, b - a)).parts]
    # Matches of several parts.
    matches = cerflow.Matches(parts, recognizer.report, limit_of(query.tree))
    rows = matches.to_pylist()
    assert bool(matches) == bool(rows)
    assert len(matches) == len(rows)
    numbers = st.integers(-len(rows) - 2, len(rows) + 2)
    some = slice(
        data.draw(st.none() | numbers), data.draw(st.none() | numbers), data.draw(st.sampled_from((None, 1, 2, 3)))
    )
    found = matches[some]
    assert found.to_pylist() == rows[some]
    assert len(found) == len(rows[some])
    assert bool(found) == bool(rows[some])
    again = slice(data.draw(st.none() | numbers), data.draw(st.none() | numbers))
    assert found[again].to_pylist() == rows[some][again]
    if rows:
        number = data.draw(st.integers(-len(rows), len(rows) - 1))
        assert matches[number] == rows[number]
    for number in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError, match=f"there is no match number {number}, there are {len(rows)}"):
            matches[number]


@pytest.mark.parametrize("runner", ["engine", "semantics"])
@pytest.mark.parametrize("query", QUERIES)
def test_numbers_of_all_kinds_of_rows(query, runner):
    matches = query.match(letters("AABABB"), runner=runner)
    rows = matches.to_pylist()
    assert [matches[k] for k in range(len(rows))] == rows
    assert matches[-1] == rows[-1]
    assert matches[1:3].to_pylist() == rows[1:3]
    assert matches[1:3].count() == (sum(int(r["n"]) for r in rows[1:3]) if query is COUNTED else len(rows[1:3]))
    assert matches[::2].to_pylist() == rows[::2]


def test_a_match_among_very_many():
    matches = MANY.match(letters("A" * 80 + "B"))
    place = 2**79 + 12345
    one, two = matches[place : place + 2]
    assert one == matches[place] != two == matches[place + 1]
    assert matches[-1] == matches[2**80 - 2]
    # Order is that of reading: the first matches by number are the first ones read.
    assert matches[:64].to_pylist() == list(islice(matches, 64))


def test_numbers_among_chosen_matches():
    matches = PAIRS.match(letters("AAABB"))
    first = matches.first(2, by="start")
    assert [first[k] for k in range(4)] == first.to_pylist()
    assert first[1:3].to_pylist() == first.to_pylist()[1:3]
    assert len(first[1:]) == 3
    sample = matches.sample(2, seed=3)
    assert sample[-1] == sample.to_pylist()[-1]


@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        ("start", TypeError, "an integer or a slice, not 'start'"),
        (1.0, TypeError, "not 1.0"),
        (None, TypeError, "not None"),
        (slice(None, None, -1), ValueError, "read forwards, so the step of a slice is 1 or more, not -1"),
        (slice(None, None, 0), ValueError, "not 0"),
        (slice("a", None), TypeError, "not 'a'"),
    ],
)
def test_what_is_no_number(at, error, message):
    with pytest.raises(error, match=message):
        PAIRS.match(letters("AB"))[at]


def test_arrow_streams():
    matches = PAIRS.match(letters("AABB"))
    assert pa.table(matches) == matches.to_arrow()
    assert pl.DataFrame(matches).to_dicts() == matches.to_pylist()
    assert matches.to_polars().to_dicts() == matches.to_pylist()
    assert isinstance(matches.to_pandas(), pd.DataFrame)
    assert pa.table(PAIRS.match(letters("BA"))).num_rows == 0
    # Of a query with very many matches the beginning is read.
    reader = pa.RecordBatchReader.from_stream(MANY.match(letters("A" * 80 + "B")))
    assert reader.read_next_batch().num_rows > 0


def test_matches_are_events_again():
    starts = cerflow.parse("SELECT a.type AS type, a WHERE A AS a ; B").match(letters("AAB"))
    assert cerflow.parse("SELECT * WHERE A ; A").match(starts).count() == 1


def test_pickled_rows_need_no_engine():
    assert pickle.loads(pickle.dumps(PAIRS.match(letters("AB"))[0])) == PAIRS.match(letters("AB")).to_pylist()[0]


SOON = [
    "SELECT * WHERE (A AS a ; B AS b) FILTER a.v = 7 AND b.v > a.v",
    "SELECT * WHERE A ; B : A PARTITION BY v WITHIN 40 EVENTS",
    "SELECT MAX * WHERE (A AS a)+ FILTER a.v > 8 WITHIN 12 [v]",
    "SELECT * WHERE A AS a NOT FOLLOWED BY (B AS b FILTER b.v = a.v) FOR 60 MILLISECONDS",
    "SELECT NONE WHERE A ; C",
]


@pytest.mark.parametrize("text", SOON)
@pytest.mark.parametrize("rows", [1, 7, 300])
@pytest.mark.parametrize("first", [0, 600, 995])
def test_whether_there_is_a_match_is_asked_of_a_few_rows_first(text, rows, first, monkeypatch):
    monkeypatch.setattr(limits, "SOON_ROWS", rows)
    types = ["C"] * first + ["A", "B", "A", "A", "B"] * 200
    table = pa.table({"type": types[:1000], "v": [n % 10 for n in range(1000)], "t": range(1000)})
    for until in (None, 2000):
        found = cerflow.parse(text.replace("[v]", "[t]")).match(table, time="t", until=until)
        there = bool(found)
        assert not there or found.reached() <= max(8 * rows, first + 9 * rows + 100)
        assert there == (found.count() > 0)
