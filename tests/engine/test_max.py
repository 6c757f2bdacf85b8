"""SELECT MAX in a window, chosen when matches are read, against the definition; the work does not grow with it.

MAX, NEXT and LAST of patterns without gaps choose the same.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.optimise.ambiguity import enlarged
from cerflow.base import limits
from cerflow.base.schema import Schema
from cerflow.engine import layout
from cerflow.engine.recognize.plan import Plan
from cerflow.language.formula import Strategy
from cerflow.theory.semantics.complex_events import kept_by
from support.conformance import assert_conforms
from support.golden import rows
from support.runners import ENGINE_RUNNERS, bag, complex_events, examples, in_random_pieces, semantics

#: Labels after BY, if any, and a formula.
LONGER = [
    ("", "A+ ; B WITHIN 9 EVENTS"),
    ("", "A+ ; B+ ; C WITHIN 9 EVENTS"),
    ("", "(A ; B)+ ; C WITHIN 12 EVENTS"),
    ("", "((A ; B ; C) OR (A ; (A OR B)+ ; C)) WITHIN 9 EVENTS"),
    ("", "((A AS x ; C) OR (B ; A AS y ; C) OR (C ; B+ ; C)) WITHIN 12 EVENTS"),
    ("", "(((A AS x ; A+) OR (A ; A AS x)) ; B AS y) FILTER x.v != y.v WITHIN 9 EVENTS"),
    ("", "((A AS x)+ ; B AS y) FILTER x.v <= y.v WITHIN 9 EVENTS"),
    ("", "((A+ ; B+) WITHIN 6 EVENTS) ; C PARTITION BY k WITHIN 9 EVENTS"),
    ("", "(A OR B)+ ; C PARTITION BY k WITHIN 7 EVENTS CONSUME BY PARTITION"),
    ("", "((A AS x ; (A OR B)+ ; C AS z) FILTER x.v = z.v) WITHIN 9 EVENTS CONSUME BY ANY"),
    ("", "A+ ; B+ ; C WITHIN 9 MILLISECONDS"),
    ("", "A+ ; B WITHIN 6 [n]"),
    ("", "((A : B :+) OR (A ; B ; C)+) WITHIN 6 [n]"),
    ("", "(A ; B+) WITHOUT C WITHIN 9 EVENTS"),
    ("A", "A+ ; B+ ; C WITHIN 9 EVENTS"),
    ("B", "A+ ; B+ ; C WITHIN 9 MILLISECONDS"),
    ("x, C", "(A OR B AS x)+ ; C WITHIN 8 EVENTS"),
    ("y", "((A AS x)+ ; (B AS y)+ ; (C OR B)) FILTER x.v <= y.v PARTITION BY k WITHIN 9 EVENTS"),
    # Whether the detecting event is compared depends on its type.
    ("C", "A+ ; (B OR C)+ WITHIN 7 EVENTS"),
]


def table_of(size, seed):
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "type": np.array(list("ABC"))[generator.choice(3, size, p=(0.45, 0.35, 0.2))],
            "v": generator.integers(0, 5, size),
            "k": generator.integers(0, 3, size),
            "t": np.cumsum(generator.integers(0, 3, size)),
            "n": pa.array(np.cumsum(generator.integers(0, 2, size)), mask=generator.random(size) < 0.1),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(("by", "formula"), LONGER)
def test_the_choice_among_all_matches(by, formula):
    table = table_of(200, len(formula))
    everything = {}
    for n, c in complex_events(cerflow.parse(f"SELECT * WHERE {formula}").match(table, time="t").to_pylist()):
        everything.setdefault(n, set()).add(c)
    labels = by.split(", ") if by else []
    expected = {(n, c) for n, found in everything.items() for c in kept_by(Strategy.MAX, found, labels)}
    assert 10 < len(expected) < sum(map(len, everything.values()))
    query = cerflow.parse(f"SELECT MAX {'BY' if by else ''} {by} * WHERE {formula}")
    matches = query.match(table, time="t")
    found = matches.to_pylist()
    assert complex_events(found) == expected
    assert len(found) == len(expected) == matches.count()
    pieces = []
    recognizer = query.recognizer(table.schema, time="t")
    for start in range(0, table.num_rows, 17):
        pieces += recognizer.push(table.slice(start, 17)).to_pylist()
        recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    assert pieces == found


#: Queries that the engine does not choose in, or of which something is left out.
TRICKY = [
    "MAX * WHERE MAX(A+ ; B) ; C WITHIN 7 EVENTS",
    "* WHERE MAX((A+ ; B) WITHIN 4 EVENTS)",
    "* WHERE MAX BY A ((A+ ; B+) WITHIN 5 EVENTS) LIMIT 1",
    "MAX x WHERE (A AS x)+ ; B WITHIN 4 EVENTS",
    "MAX BY A B WHERE A+ ; B+ WITHIN 5 EVENTS",
    "MAX * WHERE PROJECT x ((A AS x)+ ; B) WITHIN 4 EVENTS",
    "MAX COUNT(*) AS n WHERE (A AS x OR A AS y)+ ; B WITHIN 5 EVENTS",
    "MAX *, count(A) AS n WHERE A+ ; B WITHIN 4 EVENTS",
    "MAX NONE WHERE A+ ; B WITHIN 4 EVENTS",
    "MAX * WHERE (A AS x OR A AS y)+ ; (B OR C) WITHIN 4 EVENTS",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", TRICKY)
def test_tricky_queries(text):
    generator = np.random.default_rng(7)
    for size in (6, 9, 10):
        stream = rows("".join("ABC"[i] for i in generator.choice(3, size, p=(0.5, 0.3, 0.2))))
        table = pa.Table.from_pylist([{**row, "t": i} for i, row in enumerate(stream)])
        assert_conforms(cerflow.parse(f"SELECT {text}"), table, ENGINE_RUNNERS)


@pytest.mark.parametrize("formula", ["A ; B ; C", "A+ ; B", "A+ ; B+ ; C", "(A ; B)+ ; C"])
def test_the_work_does_not_grow_with_the_window(formula):
    table = table_of(4_000, 5).select(["type"])
    for window in (10, 100, 3_000):
        recognizer = cerflow.parse(f"SELECT MAX * WHERE {formula} WITHIN {window} EVENTS").recognizer(table.schema)
        assert recognizer.push(table)
        assert recognizer.live["configurations"] <= 8
        assert recognizer.live["visited"] <= 8 * table.num_rows
        recognizer.snapshot()
        assert recognizer.live["nodes"] <= 10 * window + 10


@pytest.mark.parametrize(("window", "number"), [(203, 1), (202, 2**100)])
def test_more_matches_are_part_of_another_than_can_be_looked_at_one_by_one(window, number):
    # The A stands before matches that begin with E and have one event of every pair.
    table = pa.table({"type": ["A", "E"] + ["B", "C"] * 100 + ["D"]})
    chosen = "PROJECT E, x, D (E : ((B AS x : C) OR (B : C AS x)) :+ : D)"
    query = cerflow.parse(f"SELECT MAX * WHERE (A ; (E OR B OR C)+ ; D) OR {chosen} WITHIN {window} EVENTS")
    assert query.match(table).count() == number


@pytest.mark.parametrize("by", ["", "BY A"])
def test_matches_are_the_same_however_little_room_there_is(by, monkeypatch):
    table = table_of(200, 3)
    query = cerflow.parse(f"SELECT MAX {by} * WHERE A+ ; (B AS x OR B AS y)+ ; C WITHIN 12 EVENTS")
    expected = query.match(table).to_pylist()
    for size in (1, 2, 7, 50):
        monkeypatch.setattr("cerflow.base.limits.CHOSEN_NODES", size)
        assert query.match(table).to_pylist() == expected
    assert len(expected) > 60


@pytest.mark.slow
def test_threads_first_matches_and_aggregates():
    table = table_of(40_000, 4)
    query = cerflow.parse("SELECT MAX * WHERE A+ ; B+ ; C WITHIN 12 MILLISECONDS")
    matches = query.match(table, time="t")
    assert complex_events(query.match(table, time="t", threads=3).to_pylist()) == complex_events(matches.to_pylist())
    small = query.match(table.slice(0, 300), time="t")
    listed = {}
    for row in small.to_pylist():
        listed.setdefault(row["detected_at"], []).append(len(row["events"]))
    longest = {row["detected_at"]: len(row["events"]) for row in small.first(1, by="events", descending=True)}
    assert longest == {n: max(sizes) for n, sizes in listed.items()}
    counts = small.aggregate({"n": "count"}).to_pylist()
    assert {row["detected_at"]: row["n"] for row in counts} == {n: len(sizes) for n, sizes in listed.items()}


@pytest.mark.parametrize(
    ("formula", "by", "at_all", "from_before"),
    [
        ("A ; B ; C", "", False, False),
        ("A ; B+ ; C", "", True, False),
        ("A+ ; B", "", True, True),
        ("A+ ; B", "B", False, False),
        ("A+ ; B", "A", True, True),
        ("(A AS x FILTER x.v < 3) ; (A AS y FILTER y.v > 5)+ ; B", "", True, False),
    ],
)
def test_where_one_match_may_be_part_of_another(formula, by, at_all, from_before, monkeypatch):
    automaton = compile_formula(cerflow.parse(f"SELECT * WHERE {formula}").tree.formula)
    labels = frozenset(by)
    assert enlarged(automaton, labels) is at_all
    assert enlarged(automaton, labels, before=True) is from_before
    monkeypatch.setattr(limits, "AMBIGUITY_PAIRS", 1)
    assert enlarged(automaton, labels) is True


#: Patterns without gaps, whose matches that end together are parts of each other or have the same events.
GAPLESS = [
    "(A AS x OR B AS x) :+",
    "((A OR B) AS x :+) AS y",
    "(EVENT AS x :+ : B AS y) FILTER x[v <= prev(v)]",
    "((A AS x : ((A OR B) AS d) :+) AS y : (B OR C) AS u) FILTER y[v <= prev(v)] AND u.v > last(d.v)",
    "((A OR B) AS x : ((B OR C) AS y) :{1,3}) FILTER x.v != y.v",
    "(A AS x : B? : (C AS y OR B AS y)) OR (B AS x : A : B AS y)",
    "(A AS x :+) OR (EVENT AS y : A AS x : A)",
    "((A AS x : B AS y) :+) FILTER x.v <= y.v",
    "((EVENT AS x :+) WITHIN 3 EVENTS) : C AS y",
    "((EVENT AS x) :+ AND (A OR B) :+)",
    "START((A OR B) AS x :+)",
    "(A AS x : B AS y : C) FILTER x.v < y.v",
]


@given(st.data())
@examples(400)
def test_patterns_without_gaps(data):
    strategy = data.draw(st.sampled_from(["MAX", "MAX", "NEXT", "LAST"]))
    formula = data.draw(st.sampled_from(GAPLESS))
    what = data.draw(st.sampled_from(["*", "*", "x", "NONE"]))
    keys = data.draw(st.sampled_from(["", " PARTITION BY k"]))
    window = data.draw(st.sampled_from(["", "", " WITHIN 4 EVENTS", " WITHIN 5 MILLISECONDS", " WITHIN 3 [n]"]))
    consume = data.draw(st.sampled_from(["", " CONSUME BY ANY", " CONSUME BY PARTITION"]))
    query = cerflow.parse(f"SELECT {strategy} {what} WHERE ({formula}){keys}{window}{consume}")
    table = table_of(data.draw(st.integers(0, 30)), data.draw(st.integers(0, 10**6)))
    expected = semantics(query, table, time="t")
    found = query.match(table, time="t")
    assert bag(found.to_pylist()) == bag(expected)
    assert found.count() == len(expected)
    assert bag(in_random_pieces(query, table, data, time="t")) == bag(expected)


@pytest.mark.parametrize("strategy", ["MAX", "NEXT", "LAST"])
@pytest.mark.parametrize(
    ("formula", "registers", "recognized", "read"),
    [
        ("(A OR B) :+", 0, layout.LATEST, layout.EVERYTHING),
        ("(A OR B) :+ WITHIN 5 EVENTS", 0, layout.EVERYTHING, layout.LATEST),
        ("((A AS x :+) : B AS y) FILTER x.v < y.v", 1, layout.LATEST, layout.EVERYTHING),
        # What a detection consumed is in no later match.
        ("(A OR B) :+ CONSUME BY ANY", 0, layout.EVERYTHING, layout.LATEST),
        ("((A AS x :+) : B AS y) FILTER x.v < y.v CONSUME BY PARTITION", 1, layout.EVERYTHING, layout.LATEST),
        ("A : B : C CONSUME BY ANY", 0, layout.EVERYTHING, layout.EVERYTHING),
        # Every match of an event has the same events.
        ("A : B : C", 0, layout.EVERYTHING, layout.EVERYTHING),
        ("A : B :+ WITHIN 5 EVENTS", 0, layout.EVERYTHING, layout.EVERYTHING),
    ],
)
def test_which_matches_without_gaps_are_compared(strategy, formula, registers, recognized, read):
    plan = Plan(cerflow.parse(f"SELECT {strategy} * WHERE {formula}").tree, Schema(table_of(1, 0).schema))
    assert len(plan.transducer.registers) == registers
    tables = plan.begin_scan().tables
    assert (int(tables.arrays.options[layout.O_STRATEGY]), tables.pick) == (recognized, read)
