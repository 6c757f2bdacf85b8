"""Aggregates over matches, first matches in an order and samples, compared with the list of all matches."""

import datetime
import math
import random
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.engine.matches import picking
from cerflow.logic.analysis.scopes import labels_of
from support.conformance import drawn, limit, table_of
from support.generators.queries import streams
from support.runners import engine_refuses, examples, frozen

# Sums of these floats are exact, so the order of adding does not matter.
FUNCTIONS = ("count", "sum", "avg", "min", "max")
OVER = {"count": ("sum", "avg", "min", "max"), "sum": ("sum", "avg", "min", "max"), "min": ("min",), "max": ("max",)}


def by_event(rows):
    found = defaultdict(list)
    for row in rows:
        found[row["detected_at"]].append(row)
    return found


def values_of(row, label, attribute):
    events = [e for e in row["events"] if label in e["labels"]]
    if attribute is None:
        return [1] * len(events)
    # NaN counts as null.
    return [v for e in events if (v := e[attribute]) is not None and v == v]


def applied(function, values):
    if function == "count":
        return len(values)
    if not values:
        return None
    return {"sum": sum, "min": min, "max": max, "avg": lambda v: sum(v) / len(v)}[function](values)


def aggregated(rows, label, attribute, function, over=None):
    if over is None:
        return applied(function, [v for row in rows for v in values_of(row, label, attribute)])
    each = [applied(function, values_of(row, label, attribute)) for row in rows]
    return applied(over, [v for v in each if v is not None])


def close(value, expected):
    if expected is None or isinstance(expected, str):
        return value == expected
    return value is not None and math.isclose(value, expected, rel_tol=1e-12)


def graph_query(data, **options):
    """A query all of whose matches are reported with their events, and events."""
    query, table = drawn(data, **options)
    assume(query.tree.projection.has_events)
    assume(limit(query.tree) is None and not engine_refuses(query, table, time="t"))
    return query, table


def labels(query):
    kept = {i.label for i in query.tree.projection.items if hasattr(i, "label")}
    assigned = labels_of(query.tree.formula).assigned
    return sorted(assigned & kept if kept else assigned)


def pushed(data, query, table):
    """Matches that come in several parts."""
    recognizer = query.recognizer(table.schema, time="t")
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=3)))
    return [recognizer.push(table.slice(a, b - a)) for a, b in pairwise([0, *cuts, table.num_rows])]


@examples(200)
@given(st.data())
def test_aggregates(data):
    query, table = graph_query(data)
    known = labels(query)
    assume(known)
    wanted = {"matches": "count"}
    for k in range(3):
        label = data.draw(st.sampled_from(known))
        function = data.draw(st.sampled_from(FUNCTIONS))
        names = ("v", "w") if function in ("sum", "avg") else ("v", "w", "s", "t")
        attribute = (
            data.draw(st.sampled_from(names)) if function != "count" else data.draw(st.sampled_from((None, "v")))
        )
        over = data.draw(st.sampled_from((None, *OVER.get(function, ()))))
        wanted[f"a{k}"] = (label, attribute, function) if over is None else (label, attribute, function, over)
    for matches in pushed(data, query, table):
        expected = by_event(matches.to_pylist())
        found = matches.aggregate(wanted)
        assert found["detected_at"].to_pylist() == list(expected)
        assert found.schema.names[-4:] == ["matches", "a0", "a1", "a2"]
        for row in found.to_pylist():
            rows = expected[row["detected_at"]]
            assert row["matches"] == len(rows)
            for name, of in wanted.items():
                if of != "count":
                    value = row[name]
                    value = float(value) if isinstance(value, Decimal) else value
                    assert close(value, aggregated(rows, *of)), (of, rows)


def order_key(by, descending):
    def key(row):
        if by == "start":
            value = row["start"]
        elif by == "events":
            value = len(row["events"])
        else:
            value = applied(by[2], values_of(row, by[0], by[1]))
        return value

    def sort(rows):
        with_value = [row for row in rows if key(row) is not None]
        with_value.sort(key=key, reverse=descending)
        if descending:
            # Equal ones stay in their order.
            groups = defaultdict(list)
            for row in rows:
                if key(row) is not None:
                    groups[key(row)].append(row)
            with_value = [row for value in sorted(groups, reverse=True) for row in groups[value]]
        return with_value + [row for row in rows if key(row) is None]

    return sort


@examples(200)
@given(st.data())
def test_first_matches(data):
    query, table = graph_query(data)
    known = labels(query)
    choices = ["start", "events"]
    if known:
        label = data.draw(st.sampled_from(known))
        choices += [(label, None, "count"), (label, "v", "count"), (label, "v", "sum"), (label, "w", "sum")]
        choices += [(label, name, function) for name in "vs" for function in ("min", "max")]
    by, descending = data.draw(st.sampled_from(choices)), data.draw(st.booleans())
    size = data.draw(st.integers(1, 5))
    for matches in pushed(data, query, table):
        sort = order_key(by, descending)
        expected = [row for rows in by_event(matches.to_pylist()).values() for row in sort(rows)[:size]]
        first = matches.first(size, by=by, descending=descending)
        assert list(map(frozen, first)) == list(map(frozen, expected))
        assert first.count() == len(expected)
        assert first.to_arrow().schema == matches.schema


@examples(150)
@given(st.data())
def test_samples(data):
    query, table = graph_query(data)
    size, seed = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 5))
    for matches in pushed(data, query, table):
        everything = by_event(matches.to_pylist())
        without = by_event(matches.sample(size, seed=seed))
        assert list(without) == list(everything)
        for at, rows in without.items():
            # In the order of all, none twice; all if there are no more. Matches may look alike.
            left = map(frozen, everything[at])
            assert all(frozen(row) in left for row in rows)
            assert len(rows) == min(size, len(everything[at]))
        again = by_event(matches.sample(size, seed=seed, replacement=True))
        for at, rows in again.items():
            assert len(rows) == size
            assert set(map(frozen, rows)) <= set(map(frozen, everything[at]))


@examples(200)
@given(st.data())
def test_dictionaries_of_events(data):
    query, table = drawn(data)
    assume(not engine_refuses(query, table, time="t"))
    for matches in pushed(data, query, table):
        rows = data.draw(st.integers(1, 5))
        expected = list(map(frozen, matches.to_pylist()))
        batches = list(matches.to_batches(rows, events="dictionary"))
        assert [frozen(row) for batch in batches for row in batch.to_pylist()] == expected
        whole = matches.to_arrow(events="dictionary")
        assert list(map(frozen, whole.to_pylist())) == expected
        for batch in [*batches, *whole.to_batches()]:
            batch.validate(full=True)
            if "events" in batch.schema.names:
                events = batch["events"].values.dictionary.to_pylist()
                assert len(set(map(frozen, events))) == len(events)
        if "events" in whole.schema.names and whole.num_rows:
            used = {i for chunk in whole["events"].chunks for i in chunk.values.indices.to_pylist()}
            assert used == set(range(len(whole["events"].chunk(0).values.dictionary)))
        chosen = data.draw(st.lists(st.sampled_from(matches.schema.names), min_size=1, unique=True))
        some = matches.to_arrow(columns=chosen)
        assert some.column_names == [n for n in matches.schema.names if n in chosen]
        also = matches.to_arrow().select(some.column_names).to_pylist()
        assert list(map(frozen, some.to_pylist())) == list(map(frozen, also)) or "c1" in chosen


@examples(100)
@given(rows=streams(min_size=10, max_size=40), width=st.integers(3, 30), seed=st.integers(0, 9))
def test_longer_streams(rows, width, seed):
    # More expired nodes, more detections that share what was computed before.
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; (B AS y) ; (A OR C AS z)) WITHIN {width} EVENTS")
    table = table_of(rows)
    matches = query.match(table, time="t")
    expected = by_event(matches.to_pylist())
    assert matches.count() == sum(map(len, expected.values()))
    of = {"n": "count", "s": ("y", "v", "sum"), "m": ("x", "v", "sum", "max"), "l": ("y", "w", "min")}
    for row in matches.aggregate(of).to_pylist():
        found = expected[row["detected_at"]]
        assert row["n"] == len(found)
        assert row["s"] == aggregated(found, *of["s"])
        assert row["m"] == aggregated(found, *of["m"])
        assert row["l"] == aggregated(found, *of["l"])
    first = [row for rows in expected.values() for row in order_key("start", True)(rows)[:3]]
    found = matches.first(3, by="start", descending=True).to_pylist()
    assert list(map(frozen, found)) == list(map(frozen, first))
    sample = matches.sample(2, seed=seed).to_pylist()
    assert Counter(map(frozen, sample)) <= Counter(frozen(r) for rows in expected.values() for r in rows)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations(unit):
    spans = [datetime.timedelta(seconds=n) for n in (1, -4, 9, 2)]
    rows = pa.array([*spans[:2], None, spans[2], None, spans[3]], pa.duration(unit))
    table = pa.table({"type": list("AAAABA"), "d": rows})
    matches = cerflow.parse("SELECT * WHERE A+ AS a ; B").match(table)
    wanted = {(f, over): ("a", "d", f, over) for f, over in (("sum", "max"), ("sum", "min"), ("sum", "avg"))}
    wanted |= {(f,): ("a", "d", f) for f in ("sum", "avg", "min", "max", "count")}
    (found,) = matches.aggregate({" ".join(name): of for name, of in wanted.items()}).to_pylist()
    known = [[e["d"] for e in m["events"] if "a" in e["labels"] and e["d"] is not None] for m in matches]
    # Nanoseconds come as times of pandas.
    listed = [[datetime.timedelta(seconds=d.total_seconds()) for d in some] for some in known]
    nothing = datetime.timedelta()
    everything, sums = [d for some in listed for d in some], [sum(some, nothing) for some in listed if some]
    assert found["sum"] == sum(everything, nothing)
    assert found["avg"] == sum(everything, nothing) / len(everything)
    assert (found["min"], found["max"]) == (spans[1], spans[2])
    assert (found["sum max"], found["sum min"]) == (max(sums), min(sums))
    assert found["sum avg"] == sum(sums, nothing) / len(sums)
    best, *_ = matches.first(1, by=("a", "d", "sum"), descending=True)
    assert sum((e["d"] for e in best["events"] if e["d"] is not None), nothing) == max(sums)


def test_sums_of_durations_beyond_64_bits_are_null():
    table = pa.table({"type": list("AAB"), "d": pa.array([2**62, 2**62, None], pa.duration("us"))})
    matches = cerflow.parse("SELECT * WHERE A+ AS a ; B").match(table)
    (found,) = matches.aggregate({"all": ("a", "d", "sum"), "mean": ("a", "d", "avg")}).to_pylist()
    assert found["all"] is None
    assert found["mean"] == datetime.timedelta(microseconds=2**62)


ORDERS = ["start", "events", ("x", "f", "sum"), ("x", "f", "min"), ("y", "i", "max"), ("x", None, "count")]


@pytest.mark.parametrize("seed", range(25))
def test_the_kernel_searches_as_python_does(monkeypatch, seed):
    """Python searches where numbers need more than 64 bits."""
    monkeypatch.setattr(picking, "_BRANCHES", 1)
    monkeypatch.setattr(picking, "_FEW", 0)
    rng = random.Random(seed)
    size = rng.randint(6, 60)
    floats = [rng.choice([None, 1, 2, 3, -5, 7.5, float("nan")]) for _ in range(size)]
    whole = [rng.choice([None, 1, 2, -3]) for _ in range(size)]
    columns = {"type": [*rng.choices("AAB", k=size - 2), "A", "B"], "f": floats, "i": whole}
    events = pa.table({**columns, "f": pa.array(floats, pa.float64())})
    for text in (
        "SELECT * WHERE A AS x ; B AS y WITHIN 30 EVENTS",
        "SELECT * WHERE A+ AS x ; B AS y WITHIN 7 EVENTS",
        "SELECT * WHERE B AS y OR (A AS x ; B+ AS y) WITHIN 8 EVENTS",
    ):
        matches = cerflow.parse(text).match(events)
        for by in ORDERS:
            first = matches.first(rng.choice([1, 3, 1000]), by=by, descending=rng.random() < 0.5)
            found = str(first.to_pylist())
            assert len(found) > 2
            with monkeypatch.context() as patch:
                patch.setattr(picking.table, "search", picking.search.search)
                assert str(first.to_pylist()) == found


def test_runs_that_begin_where_others_go_on_leave_the_window():
    """Sets of events that may be empty or not are counted anew once they leave the window."""
    columns = {"type": list("ADBABDCADB"), "t": [0, 1, 4, 4, 5, 5, 6, 6, 8, 10], "v": range(10)}
    matches = cerflow.parse("SELECT * WHERE (EVENT AS a UNLESS (D ; D))+ WITHIN 6 [t]").match(
        pa.table(columns), time="t"
    )
    listed = by_event(matches.to_pylist())
    assert matches.count() == sum(map(len, listed.values())) == 214
    totals = matches.aggregate({"n": "count", "s": ("a", "v", "sum"), "least": ("a", "v", "min")}).to_pylist()
    for row in totals:
        values = [event["v"] for match in listed[row["detected_at"]] for event in match["events"]]
        assert (row["n"], row["s"], row["least"]) == (len(listed[row["detected_at"]]), sum(values), min(values))
