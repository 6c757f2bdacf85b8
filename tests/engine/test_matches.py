"""Matches are unfolded only when they are read, in batches of bounded size, and counted without being unfolded."""

import itertools
from decimal import Decimal

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import QueryError, TooManyMatchesError
from cerflow.engine.matches.counting import Bound
from support.runners import bag, semantics

PAIRS = cerflow.parse("SELECT * WHERE A ; B")


def letters(text):
    return pa.table({"type": list(text)})


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_batches_are_bounded(size):
    matches = PAIRS.match(letters("AAAABBBBAB"))
    batches = list(matches.to_batches(size))
    assert all(0 < batch.num_rows <= size for batch in batches)
    assert pa.Table.from_batches(batches).to_pylist() == matches.to_pylist()
    assert sum(batch.num_rows for batch in batches) == matches.count() == 4 * 4 + 5


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 64])
def test_long_matches_in_small_batches(size):
    # Matches of more events than the buffers hold at first.
    matches = cerflow.parse("SELECT * WHERE A :+ : B").match(letters("A" * 700 + "B"))
    lengths = [len(row["events"]) for batch in matches.to_batches(size) for row in batch.to_pylist()]
    assert sorted(lengths) == list(range(2, 702))


def test_batches_must_hold_something():
    with pytest.raises(ValueError, match="max_rows"):
        next(PAIRS.match(letters("AB")).to_batches(0))


def test_reading_again_gives_the_same():
    for matches in (PAIRS.match(letters("AABAB")), PAIRS.recognizer(letters("A").schema).push(letters("AABAB"))):
        first = matches.to_pylist()
        assert len(first) == 5
        # Two readers at the same time do not disturb each other.
        one, two = iter(matches), iter(matches)
        assert [row for pair in zip(one, two) for row in pair] == [row for row in first for _ in "12"]
        assert matches.to_arrow().to_pylist() == first == list(matches)
        assert matches.to_pandas()["end"].tolist() == [row["end"] for row in first]
        assert matches.count() == 5


def test_matches_stay_valid_while_the_recogniser_goes_on():
    recognizer = PAIRS.recognizer(letters("A").schema)
    early = recognizer.push(letters("AAB"))
    for _ in range(3):
        recognizer.push(letters("AB" * 2_000)).count()
    assert [(row["start"], row["end"]) for row in early] == [(1, 2), (0, 2)] or early.count() == 2
    assert {(row["start"], row["end"]) for row in early} == {(0, 2), (1, 2)}


def test_the_beginning_of_very_many_matches():
    matches = cerflow.parse("SELECT * WHERE A+ ; B").match(letters("A" * 40 + "B"))
    assert matches.count() == 2**40 - 1
    some = list(itertools.islice(matches, 1_000))
    assert len({tuple(event["position"] for event in row["events"]) for row in some}) == 1_000


def test_counting_10_to_the_12_lists_none_of_them():
    # 4 * 10^12 matches: 40 As, then 40 Bs, any sets of them within a window.
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B ; C ; D WITHIN 1000 EVENTS")
    table = letters("A" * 30 + "B" * 10 + "C" * 10 + "D" * 10)
    matches = query.match(table)
    assert matches.count() == (2**30 - 1) * 1_000 > 10**12
    assert [int(row["n"]) for row in matches] == [(2**30 - 1) * 100] * 10


@pytest.mark.parametrize("length", [62, 63, 64, 65, 100, 126])
def test_counts_beyond_64_bits_are_exact(length):
    table = letters("A" * length + "B" + "AB")
    expected = [2**length - 1, 2 ** (length + 1) - 1]
    assert cerflow.parse("SELECT * WHERE A+ ; B").match(table).count() == sum(expected)
    if expected[1] < 10**38:
        counted = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B").match(table)
        assert [int(row["n"]) for row in counted] == expected


def test_counts_beyond_38_digits_are_an_error():
    matches = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B").match(letters("A" * 127 + "B"))
    assert matches.count() == 2**127 - 1
    with pytest.raises(TooManyMatchesError, match=r'1\.7e38, does not fit 38 digits; counts="text"'):
        matches.to_arrow()


@pytest.mark.slow
def test_counts_as_text_have_all_digits():
    # Python itself shows no number of this many digits.
    matches = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B").match(letters("A" * 20_000 + "BAB"))
    table = matches.to_arrow(counts="text")
    assert table.schema.field("n").type == pa.string()
    assert table.column("n").to_pylist() == [f"{Decimal(2**k - 1):f}" for k in (20_000, 20_001)]
    assert [batch.schema for batch in matches.to_batches(counts="text")] == [table.schema]
    with pytest.raises(TooManyMatchesError, match=r"8\.0e6020"):
        matches.to_pylist()
    with pytest.raises(ValueError, match="counts must be 'decimal' or 'text', not 'exact'"):
        matches.to_arrow(counts="exact")


@pytest.mark.parametrize("select", ["*", "NONE", "COUNT(*) AS n", "ANY *"])
@pytest.mark.parametrize("limit", ["", " LIMIT 3"])
@pytest.mark.parametrize("window", ["", " WITHIN 9 EVENTS"])
def test_rows_are_announced(select, limit, window):
    table = letters("AAB" * 4 + "AC" * 3 + "B")
    told = []
    query = cerflow.parse(f"SELECT {select} WHERE A+ ; B{window}{limit}")
    matches = query.match(table).announced(lambda *rows: told.append(rows))
    rows = matches.to_arrow().num_rows
    assert told == [(rows, True)]
    assert rows == len(query.match(table))


def test_rows_beyond_64_bits_are_announced_before_they_are_listed():
    table = letters("AB" + "A" * 300 + "B" + "B" * 50)
    told = []
    for text in ("SELECT * WHERE A+ ; B", "SELECT * WHERE A+ ; B LIMIT 7", "SELECT COUNT(*) AS n WHERE A+ ; B"):
        next(
            iter(
                cerflow.parse(text).match(table).announced(lambda *rows: told.append(rows)).to_batches(1, counts="text")
            )
        )
    # Large numbers are rounded.
    assert told == [(pytest.approx(51 * 2**301), False), (1 + 51 * 7, True), (52, True)]


def test_a_bound_stops():
    bound = Bound(100)
    bound.add(100)
    with pytest.raises(TooManyMatchesError, match=r"^there are 5,100 matches or more, and at most 100 may"):
        bound.add(5_000, exact=False)
    assert not bound.exact
    Bound(None).add(10**200)


def test_limits_count_too():
    table = letters("A" * 127 + "B" + "AB")
    limited = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B LIMIT 5").match(table)
    assert limited.count() == 10
    assert [int(row["n"]) for row in limited] == [5, 5]
    listed = cerflow.parse("SELECT * WHERE A+ ; B LIMIT 5").match(table)
    assert listed.count() == len(listed.to_pylist()) == 10
    assert len({tuple(e["position"] for e in row["events"]) for row in listed}) == 10
    assert cerflow.parse("SELECT ANY * WHERE A+ ; B").match(table).count() == 2
    assert cerflow.parse("SELECT NONE WHERE A+ ; B").match(table).count() == 2
    assert len(cerflow.parse("SELECT NONE WHERE A+ ; B").match(table).to_pylist()) == 2


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_limits_hold_across_batches(size):
    matches = cerflow.parse("SELECT * WHERE (A ; B) OR (A ; B AS y) LIMIT 3").match(letters("AAABAB"))
    rows = [row for batch in matches.to_batches(size) for row in batch.to_pylist()]
    assert [row["detected_at"] for row in rows] == [3, 3, 3, 5, 5, 5]


def test_the_same_match_is_always_chosen():
    query = cerflow.parse("SELECT ANY * WHERE A+ ; B")
    table = letters("AAABAAB")
    assert query.match(table).to_pylist() == query.match(table).to_pylist()


def test_windows_end_counts():
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B WITHIN 4 EVENTS")
    table = letters("AAAABABBAAAAAB")
    assert bag(query.match(table).to_pylist()) == bag(semantics(query, table))


def test_errors_come_at_once():
    with pytest.raises(QueryError, match="unknown attribute"):
        cerflow.parse("SELECT * WHERE A FILTER A.v > 1").match(letters("A"))
    with pytest.raises(ValueError, match="runner"):
        PAIRS.match(letters("A"), runner="spark")
