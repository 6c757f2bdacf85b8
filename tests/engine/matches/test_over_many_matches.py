"""Aggregates over matches, orders and samples where brute force is too slow, and what they refuse."""

import math
import random
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import QueryError, TooManyMatchesError, UnsupportedQueryError
from cerflow.engine.matches import counting, picking


def letters(text, **columns):
    return pa.table({"type": list(text), **columns})


@pytest.mark.slow
def test_samples_are_uniform():
    matches = cerflow.parse("SELECT * WHERE A+ ; B").match(letters("AAAB"))
    drawn_ = Counter(len(row["events"]) for seed in range(600) for row in matches.sample(1, seed=seed))
    # Of 7 matches 3 have two events, 3 have three, 1 has four.
    assert drawn_.total() == 600
    assert all(abs(drawn_[k] - 600 * n / 7) < 50 for k, n in ((2, 3), (3, 3), (4, 1)))
    pairs = Counter(frozenset(len(r["events"]) for r in matches.sample(6, seed=seed)) for seed in range(100))
    assert sum(pairs.values()) == 100
    same = [matches.sample(3, replacement=True) for _ in range(2)]
    assert same[0].to_pylist() == same[0].to_pylist()


@pytest.mark.parametrize("pattern", ["A ; B", "A ; B OR A ; B ; A ; B"])
def test_samples_in_windows_are_uniform(monkeypatch, pattern):
    monkeypatch.setattr(picking, "_NODES", 0)
    monkeypatch.setattr(picking, "_FEW", 0)
    bounds = []
    numbers = counting.MatchCounter._numbers
    monkeypatch.setattr(
        *(counting.MatchCounter, "_numbers"),
        lambda self, some, bound: (bounds.append(bound), numbers(self, some, bound))[1],
    )
    matches = cerflow.parse(f"SELECT * WHERE {pattern} WITHIN 12 EVENTS").match(letters("AB" * 30))
    expected = {}
    for row in matches:
        expected.setdefault(row["detected_at"], []).append(tuple(e["position"] for e in row["events"]))
    drawn = {}
    for row in matches.sample(400, seed=1, replacement=True):
        drawn.setdefault(row["detected_at"], Counter())[tuple(e["position"] for e in row["events"])] += 1
    assert drawn.keys() == expected.keys()
    for at, all_ in expected.items():
        assert drawn[at].keys() <= set(all_)
        mean = 400 / len(all_)
        assert all(abs(drawn[at][match] - mean) < 6 * mean**0.5 for match in all_)
    if pattern == "A ; B":
        # The window of the counts moves less often than the window.
        assert 1 < len(set(bounds)) < len(expected) / 2
    without = [tuple(e["position"] for e in row["events"]) for row in matches.sample(1 << 20, seed=2)]
    assert without == [match for all_ in expected.values() for match in all_]


@pytest.mark.parametrize("outside", [0, 2, 1000])
@pytest.mark.parametrize("trend", [-1, 0, 1])
def test_the_first_matches_are_those_of_the_window(monkeypatch, trend, outside):
    """Values of matches that have left the window do not count, however long its counts stay behind."""
    monkeypatch.setattr(counting, "_OUTSIDE", outside)
    monkeypatch.setattr(picking, "_FEW", 0)
    rng = random.Random(trend + 2 * outside)
    types = "".join(rng.choices("AAB", k=150))
    values = [None if rng.random() < 0.2 else trend * k + rng.choice([0.0, 1.0, 2.0]) for k in range(len(types))]
    events = letters(types, v=pa.array(values, pa.float64()))
    for pattern in ("A AS x ; B AS y", "A AS x ; A AS x ; B AS y"):
        matches = cerflow.parse(f"SELECT * WHERE {pattern} WITHIN 20 EVENTS").match(events)
        listed = {}
        for row in matches:
            listed.setdefault(row["detected_at"], []).append(row)

        def value(row):
            known = [e["v"] for e in row["events"] if "x" in e["labels"] and e["v"] is not None]
            return sum(known) if known else None

        for descending in (False, True):

            def order(row, sign=-1 if descending else 1):
                return (1, 0) if value(row) is None else (0, sign * value(row))

            for size in (1, 4):
                expected = [row for some in listed.values() for row in sorted(some, key=order)[:size]]
                found = matches.first(size, by=("x", "v", "sum"), descending=descending)
                assert found.to_pylist() == expected


@pytest.mark.parametrize("length", [50, 62, 64, 100])
def test_more_matches_than_numbers_of_64_bits(length):
    values = [*range(1, length + 1), 0]
    matches = cerflow.parse("SELECT * WHERE A+ AS x ; B").match(letters("A" * length + "B", v=values))
    total = 2**length - 1
    of = {
        "n": "count",
        "events": ("x", None, "count"),
        "sum": ("x", "v", "sum"),
        "avg": ("x", "v", "avg"),
        "most": ("x", "v", "sum", "max"),
        "mean": ("x", "v", "sum", "avg"),
    }
    (row,) = matches.aggregate(of).to_pylist()
    # Each event is in half of all sets.
    half, everything = 2 ** (length - 1), length * (length + 1) // 2
    assert (row["n"], row["events"], row["sum"]) == (total, length * half, everything * half)
    assert row["avg"] == everything / length
    assert row["most"] == everything
    assert row["mean"] == everything * half / total
    sample = matches.sample(20, seed=3).to_pylist()
    assert len({tuple(e["position"] for e in r["events"]) for r in sample}) == 20
    assert all(length / 4 < len(r["events"]) < length * 3 / 4 + 2 for r in sample)
    shortest = matches.first(length + 1, by="events").to_pylist()
    assert [len(r["events"]) for r in shortest] == [2] * length + [3]
    (longest,) = matches.first(1, by=("x", "v", "sum"), descending=True)
    assert len(longest["events"]) == length + 1


def test_large_integers_are_exact():
    big = 2**62
    table = letters("AAB", v=[big, big + 1, 0])
    matches = cerflow.parse("SELECT * WHERE A+ AS x ; B").match(table)
    of = {
        "sum": ("x", "v", "sum"),
        "max": ("x", "v", "max"),
        "most": ("x", "v", "sum", "max"),
        "less": ("x", "v", "min"),
    }
    (row,) = matches.aggregate(of).to_pylist()
    assert row == {**row, "sum": 4 * big + 2, "max": big + 1, "most": 2 * big + 1, "less": big}
    first = matches.first(3, by=("x", "v", "sum")).to_pylist()
    assert [[e["v"] for e in r["events"][:-1]] for r in first] == [[big], [big + 1], [big, big + 1]]


def test_sums_beyond_38_digits_are_an_error():
    matches = cerflow.parse("SELECT * WHERE A+ ; B").match(letters("A" * 130 + "B"))
    with pytest.raises(OverflowError, match="38 digits"):
        matches.aggregate({"n": "count"})


def test_types_of_results():
    table = letters("AAB", v=pa.array([1, 2, 3], pa.int32()), w=[1.5, 2.5, 0.0], s=["p", "q", "r"])
    of = {
        "n": "count",
        "vs": ("A", "v", "sum"),
        "ws": ("A", "w", "sum"),
        "va": ("A", "v", "avg"),
        "vm": ("A", "v", "min"),
        "sm": ("A", "s", "max"),
        "most": ("A", "v", "count", "max"),
    }
    found = cerflow.parse("SELECT * WHERE A+ ; B PARTITION BY k").match(table.append_column("k", pa.array(["k"] * 3)))
    table = found.aggregate(of)
    decimal = pa.decimal128(38, 0)
    assert table.schema.names == ["detected_at", "detected_time", "end_time", "k", *of]
    assert table.schema.types[4:] == [decimal, decimal, pa.float64(), pa.float64(), pa.int32(), pa.string(), pa.int64()]
    assert table.to_pylist()[0]["k"] == "k"


QUERY = cerflow.parse("SELECT price[v], other WHERE A+ AS price ; B AS other ; C AS hidden")
EVENTS = letters("AABC", v=[1, 2, 3, 4], s=list("abcd"))


@pytest.mark.parametrize(
    ("of", "error", "said"),
    [
        (("prices", "v", "sum"), QueryError, "unknown label 'prices'\nDid you mean 'price'"),
        (("hidden", "v", "sum"), QueryError, "'hidden' is not selected"),
        (("price", "vv", "sum"), QueryError, "unknown attribute 'vv'\nDid you mean 'v'"),
        (("price", "s", "sum"), QueryError, "values are of kind string"),
        (("price", "v", "median"), ValueError, "function must be one of"),
        (("price", None, "sum"), ValueError, "needs an attribute"),
        (("price", "v", "min", "sum"), UnsupportedQueryError, "without listing"),
        (("price", "v", "sum", "first"), ValueError, "function over the matches"),
        ("sum", ValueError, "must be 'count' or"),
    ],
)
def test_refused_aggregates(of, error, said):
    with pytest.raises(error, match=said):
        QUERY.match(EVENTS).aggregate({"a": of})


@pytest.mark.parametrize(
    ("by", "error", "said"),
    [
        ("length", ValueError, "by must be"),
        (("price", "v", "avg"), ValueError, "must be one of"),
        (("pric", "v", "sum"), QueryError, "Did you mean 'price'"),
        (("price", "s", "sum"), QueryError, "of kind string"),
    ],
)
def test_refused_orders(by, error, said):
    with pytest.raises(error, match=said):
        QUERY.match(EVENTS).first(1, by=by)


def test_other_refusals():
    matches = QUERY.match(EVENTS)
    with pytest.raises(ValueError, match="at least 1, not 0"):
        matches.first(0, by="start")
    with pytest.raises(ValueError, match="at least 1, not 0"):
        matches.sample(0)
    with pytest.raises(ValueError, match="nothing to aggregate"):
        matches.aggregate({})
    with pytest.raises(ValueError, match="has a column 'end_time' already"):
        matches.aggregate({"end_time": "count"})
    with pytest.raises(UnsupportedQueryError, match="chosen already"):
        matches.sample(1).sample(1)
    with pytest.raises(UnsupportedQueryError, match="SELECT NONE"):
        cerflow.parse("SELECT NONE WHERE A").match(EVENTS).sample(1)
    with pytest.raises(UnsupportedQueryError, match="numbers of matches"):
        cerflow.parse("SELECT COUNT(*) AS n WHERE A").match(EVENTS).first(1, by="start")
    with pytest.raises(UnsupportedQueryError, match="definitions"):
        QUERY.match(EVENTS, runner="semantics").aggregate({"n": "count"})
    with pytest.raises(QueryError, match="'v' is not selected"):
        cerflow.parse("SELECT A[s] WHERE A").match(EVENTS).aggregate({"a": ("A", "v", "sum")})


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.aggregate({"n": "count"}),
        lambda m: m.first(1, by="start").to_arrow(),
        lambda m: m.sample(1).to_arrow(),
    ],
)
def test_limits_must_not_cut(ask):
    query = "SELECT * WHERE A+ ; B LIMIT {}"
    assert ask(cerflow.parse(query.format(3)).match(letters("AAB"))).num_rows == 1
    with pytest.raises(UnsupportedQueryError, match="at most 2 of the 3 matches"):
        ask(cerflow.parse(query.format(2)).match(letters("AAB")))


def test_forms_and_columns_must_exist():
    matches = QUERY.match(EVENTS)
    with pytest.raises(ValueError, match="'structs' or 'dictionary'"):
        matches.to_arrow(events="lists")
    with pytest.raises(ValueError, match="no column 'event'; did you mean 'events'"):
        matches.to_arrow(columns=["event"])
    with pytest.raises(ValueError, match="at least one column"):
        matches.to_arrow(columns=[])


def test_the_definitions_know_dictionaries_too():
    listed = QUERY.match(EVENTS, runner="semantics")
    table = listed.to_arrow(events="dictionary")
    assert table.schema == QUERY.match(EVENTS).to_arrow(events="dictionary").schema
    assert table.to_pylist() == listed.to_pylist()


def test_values_of_every_kind():
    table = letters(
        "AAB",
        b=[True, False, None],
        d=pa.array([Decimal("1.50"), Decimal("2.25"), Decimal(0)], pa.decimal128(6, 2)),
        t=pa.array([3, 1, 2], pa.timestamp("ms")),
        s=pa.array(["x", "y", "x"]).dictionary_encode(),
        u=pa.array([2**64 - 1, 1, 2], pa.uint64()),
        f=pa.array([math.nan, 1.5, 2], pa.float32()),
        n=pa.nulls(3, pa.int64()),
        many=[[1], [2], [3]],
    )
    matches = cerflow.parse("SELECT * WHERE A+ AS x ; B").match(table)
    extremes = {}
    for name in "bdtsufn":
        extremes |= {f"{name}0": ("x", name, "min"), f"{name}1": ("x", name, "max")}
    found = matches.aggregate(extremes).select(list(extremes))
    events = table.slice(0, 2).to_pylist()
    for name in "bdtsufn":
        values = [e[name] for e in events if e[name] is not None and e[name] == e[name]]
        expected = [min(values), max(values)] if values else [None, None]
        assert [found[f"{name}{k}"][0].as_py() for k in (0, 1)] == expected
    sums = {"d": ("x", "d", "sum"), "u": ("x", "u", "sum"), "f": ("x", "f", "avg"), "n": ("x", "n", "sum", "max")}
    (row,) = matches.aggregate(sums).to_pylist()
    assert (row["d"], row["u"], row["f"], row["n"]) == (7.5, 2 * 2**64, 1.5, None)
    latest = matches.first(1, by=("x", "t", "min"), descending=True).to_pylist()
    assert [e["position"] for e in latest[0]["events"]] == [0, 2]
    # NaN is null, and matches without a value are last.
    order = [[e["position"] for e in r["events"]] for r in matches.first(3, by=("x", "f", "sum"))]
    assert sorted(order[:2]) == [[0, 1, 2], [1, 2]]
    assert order[2] == [0, 2]
    with pytest.raises(QueryError, match="of kind other"):
        matches.aggregate({"a": ("x", "many", "min")})
    counted = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ AS x ; B").match(table)
    assert counted.aggregate({"c": ("x", None, "count")})["c"].to_pylist() == [4]


def test_types_that_any_event_may_have_are_labels():
    matches = cerflow.parse("SELECT * WHERE EVENT+ ; B").match(letters("AAB", v=[5, 3, 1]))
    assert matches.aggregate({"m": ("A", "v", "max"), "z": ("Z", None, "count")}).select(["m", "z"]).to_pylist() == [
        {"m": 5, "z": 0}
    ]


def test_nothing_found():
    matches = cerflow.parse("SELECT * WHERE B ; A").match(letters("AAB"))
    assert matches.aggregate({"n": "count"}).num_rows == 0
    assert matches.sample(2).to_arrow().schema == matches.schema
    assert matches.first(1, by="start").count() == matches.to_arrow(events="dictionary").num_rows == 0


def test_dictionaries_survive_arrow_files(tmp_path):
    matches = cerflow.parse("SELECT * WHERE A+ ; B").match(letters("AAABAB" * 2, s=list("abcdef") * 2))
    table = matches.to_arrow(events="dictionary")
    with pa.OSFile(str(tmp_path / "matches.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    with pa.memory_map(str(tmp_path / "matches.arrow")) as source:
        assert pa.ipc.open_file(source).read_all().to_pylist() == matches.to_pylist()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        for batch in matches.to_batches(50, events="dictionary"):
            stream.write_batch(batch)
    assert pa.ipc.open_stream(sink.getvalue()).read_all().to_pylist() == matches.to_pylist()


def test_averages_over_more_matches_than_floats_hold_in_windows():
    """The number of matches is asked for twice, and the windows of the events differ."""
    types = "A" * 70 + "B" + "A" * 3 + "B" + "A" * 3 + "B"
    matches = cerflow.parse("SELECT * WHERE A+ AS x ; B WITHIN 64 EVENTS").match(letters(types, v=range(len(types))))
    wanted = {"n": "count", "mean": ("x", "v", "sum", "avg"), "sum": ("x", "v", "sum", "sum")}
    rows = matches.aggregate({**wanted, "events": ("x", None, "count", "avg")}).to_pylist()
    assert [int(row["n"]) for row in rows] == [2**63 - 1, 2**62 - 1, 2**61 - 1]
    assert [row["mean"] for row in rows] == [int(row["sum"]) / int(row["n"]) for row in rows]
    # Each of n events is in half of the sets of them.
    assert [row["events"] for row in rows] == [63 / 2, 62 / 2, 61 / 2]


def test_averages_where_the_numbers_of_matches_exceed_floats():
    table = pa.table({"type": ["A"] * 1_200, "v": [6] * 1_200})
    matches = cerflow.parse("SELECT * WHERE A+ AS x").match(table)
    found = matches.aggregate({"mean": ("x", "v", "avg")})["mean"]
    assert found.to_pylist() == [6.0] * 1_200
    with pytest.raises(TooManyMatchesError, match="does not fit 38 digits"):
        matches.aggregate({"sum": ("x", "v", "sum")})


@pytest.mark.parametrize("by", ["start", ("x", "v", "min")])
def test_matches_that_have_left_the_window_do_not_keep_others_back(monkeypatch, by):
    """The values ascend, so every match that has left the window would be the first of all."""
    types = ["ABC"[k * 7 % 10 % 3] for k in range(150)]
    table = pa.table({"type": types, "v": range(150)})
    matches = cerflow.parse("SELECT * WHERE A AS x ; (B AS y)+ ; C AS z WITHIN 60 EVENTS").match(table).held()
    rooms = []
    search = picking.table.search
    monkeypatch.setattr(picking.table, "search", lambda *given: (rooms.append(len(given[-1])), search(*given))[1])
    starts = [row["start"] for row in matches.first(2, by=by)]
    assert len(starts) > 50
    assert max(rooms) <= 2 * picking._BEHIND
    monkeypatch.setattr(picking, "_BEHIND", 0)
    assert starts == [row["start"] for row in matches.first(2, by=by)]
