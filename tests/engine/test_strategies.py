"""SELECT NEXT and SELECT LAST in the engine, against the definitions and the algorithms of the paper."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerflow
from cerflow.automata.compile.formulas import compile_formula
from cerflow.automata.model.runs import matches
from cerflow.automata.model.transducer import Transducer, Transition
from cerflow.base.events import support
from cerflow.engine import layout
from cerflow.engine.kernels.state.classes import WORST, new_class, release
from cerflow.engine.state.memory import Memory
from cerflow.language.formula import Strategy
from cerflow.language.select import Projection, ProjectionKind, Select
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.guards import TypeTest
from cerflow.theory.semantics.complex_events import kept_by
from support.conformance import assert_conforms, drawn, table_of
from support.generators.conditions import Fragment
from support.generators.queries import formulas, stream_of, streams
from support.golden import rows
from support.paper_strategies import SelectiveEvaluation
from support.runners import ENGINE_RUNNERS, bag, complex_events, examples, one_batch, supports

BOTH = (Strategy.NEXT, Strategy.LAST)
TESTS = Path(__file__).parents[1]


# --- the definitions -------------------------------------------------------------------------------------------------


@examples(120)
@given(st.data())
def test_random_queries(data):
    query, table = drawn(data, strategies=BOTH)
    assert_conforms(query, table, {"one batch": one_batch})


@examples(40)
@given(st.data())
def test_random_queries_event_by_event_and_from_snapshots(data):
    query, table = drawn(data, strategies=BOTH)
    assert_conforms(query, table, ENGINE_RUNNERS)


#: Queries whose choice is not obvious.
TRICKY = {
    "label variants stay": "SELECT {} * WHERE (A AS x OR A AS y)+ ; B",
    "variants that come to different states": "SELECT {} * WHERE ((A AS x ; B) OR (A AS y ; (B OR C))) ; C",
    "projection does not choose": "SELECT {} y WHERE A AS x ; B AS y",
    "projection makes matches equal": "SELECT {} x WHERE (A AS x ; (B AS y OR B AS z) ; C)",
    "projection leaves nothing": "SELECT {} x WHERE (A AS x OR A AS y) ; B",
    "a computed column reads what is not listed": "SELECT {} x, y.v AS v WHERE A AS x ; (B AS y OR B AS z)",
    "hidden events begin the window": "SELECT {} y WHERE A AS x ; B AS y WITHIN 3 EVENTS",
    "projection inside comes before": "SELECT {} * WHERE PROJECT x, z (A AS x ; B AS y ; C AS z)",
    "nothing is the worst": "SELECT {} * WHERE PROJECT x (A AS x ; B AS y) OR PROJECT z (B AS y ; C)",
    "nothing at all": "SELECT {} * WHERE PROJECT z (A AS x ; B AS y)",
    "a window in the formula": "SELECT {} * WHERE ((A+ AS x ; B) WITHIN 3 EVENTS) ; C",
    "two windows": "SELECT {} * WHERE ((A+ AS x ; B) WITHIN 3 EVENTS) ; C WITHIN 6 EVENTS",
    "a match that goes on": "SELECT {} * WHERE (A ; B)+ OR (A ; B ; C)",
    "contiguous": "SELECT {} * WHERE (A OR B) :+ : C",
    "registers": "SELECT {} * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x.v <= z.v AND y.v != z.v WITHIN 7 EVENTS",
    "consumed": "SELECT {} * WHERE A+ ; B+ ; C CONSUME BY ANY",
    "counted": "SELECT {} COUNT(*) AS n WHERE (A AS x OR A AS y)+ ; (B OR C)",
    "limited": "SELECT {} * WHERE (A AS x OR A AS y)+ ; B LIMIT 2",
    "in partitions": "SELECT {} * WHERE A+ ; B ; C PARTITION BY k WITHIN 4 EVENTS CONSUME BY PARTITION",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY)
@pytest.mark.parametrize("strategy", BOTH)
def test_tricky_queries(text, strategy):
    query = cerflow.parse(text.format(strategy))
    generator = np.random.default_rng(7)
    for size in (6, 9):
        types = "".join("ABC"[i] for i in generator.choice(3, size, p=(0.5, 0.3, 0.2)))
        stream = rows(types, v=generator.integers(0, 3, size).tolist(), k=generator.integers(0, 2, size).tolist())
        table = pa.Table.from_pylist([{**row, "t": i} for i, row in enumerate(stream)])
        assert_conforms(query, table, ENGINE_RUNNERS)


def test_projected_events_decide():
    table = pa.table({"type": list("ABAB")})
    texts = ("SELECT {} x WHERE A AS x ; B AS y ; B AS z", "SELECT {} y WHERE A AS x ; B AS y")
    for text, strategy, expected in (
        (texts[0], "NEXT", {(3, frozenset({0}))}),
        (texts[0], "LAST", {(3, frozenset({0}))}),
        (texts[1], "NEXT", {(1, frozenset({1})), (3, frozenset({3}))}),
        (texts[1], "LAST", {(1, frozenset({1})), (3, frozenset({3}))}),
    ):
        found = cerflow.parse(text.format(strategy)).match(table).to_pylist()
        assert supports(found) == expected
        assert all(event["labels"] for row in found for event in row["events"])


# --- longer streams, where all matches can still be listed ------------------------------------------------------------

LONGER = [
    "A ; B ; C WITHIN 12 EVENTS",
    "A+ ; B WITHIN 9 EVENTS",
    "(A ; B)+ ; C WITHIN 10 EVENTS",
    "(A AS x ; B AS y ; C AS z) FILTER x.v < z.v AND y.v != z.v WITHIN 20 EVENTS",
    "((A AS x ; A) OR (A ; A AS x)) ; B AS y FILTER x.v != y.v WITHIN 15 EVENTS",
    "((A+ ; A AS x ; A+) AS u ; B AS y) FILTER x.v < y.v WITHIN 9 EVENTS",
    "((A+ ; B+) WITHIN 6 EVENTS) ; C PARTITION BY k WITHIN 9 EVENTS",
    "(A OR B)+ ; C PARTITION BY k WITHIN 7 EVENTS CONSUME BY PARTITION",
    "A ; B+ ; C PARTITION BY k WITHIN 10 EVENTS CONSUME BY ANY",
    "(A ; B ; C) FILTER A.v = C.v CONSUME BY ANY",
    # Without a window there may be more matches before the first is consumed than can be listed.
    "((A AS x ; (A OR B)+ ; C AS z) FILTER x.v = z.v) WITHIN 10 EVENTS CONSUME BY ANY",
]


@pytest.mark.slow
@pytest.mark.parametrize("formula", LONGER)
def test_the_choice_among_all_matches(formula):
    generator = np.random.default_rng(len(formula))
    size = 320
    table = pa.table(
        {
            "type": np.array(list("ABC"))[generator.choice(3, size, p=(0.45, 0.35, 0.2))],
            "v": generator.integers(0, 9, size),
            "k": generator.integers(0, 3, size),
        }
    )
    everything = {}
    for n, c in complex_events(cerflow.parse(f"SELECT * WHERE {formula}").match(table).to_pylist()):
        everything.setdefault(n, set()).add(c)
    assert len(everything) > 10
    for strategy in BOTH:
        query = cerflow.parse(f"SELECT {strategy} * WHERE {formula}")
        expected = {(n, c) for n, found in everything.items() for c in kept_by(strategy, found)}
        assert complex_events(query.match(table).to_pylist()) == expected
        recognizer = query.recognizer(table.schema)
        found = []
        for start in range(0, size, 37):
            found += recognizer.push(table.slice(start, 37)).to_pylist()
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
        assert complex_events(found) == expected


# --- the algorithms of the paper --------------------------------------------------------------------------------------

UNARY = Fragment(relating=False, outer=False, windows=False, projection=False)


@examples(60)
@given(st.data())
def test_algorithms_5_and_6(data):
    formula = data.draw(formulas(UNARY))
    automaton = compile_formula(formula)
    assume(not automaton.registers)
    events = data.draw(streams(max_size=12, like=formula))
    for strategy in BOTH:
        found = SelectiveEvaluation(automaton, strategy, stream_of(events)).outputs
        query = cerflow.Query(Select(formula, Projection(ProjectionKind.ALL), strategy))
        answer = supports(query.match(table_of(events), time="t").to_pylist())
        assert answer == {(n, s) for n, s in enumerate(found) if s is not None}


def automaton(*transitions, states=2):
    return Transducer(
        states,
        frozenset({0}),
        frozenset({1}),
        tuple(Transition(p, q, test, labels=frozenset("m" * marks)) for p, test, marks, q in transitions),
    )


B = TypeTest("B")
A = TypeTest("A")


def test_final_states_are_entered_by_marking_transitions():
    """Erratum E4."""
    e4 = automaton((1, B, True, 1), (0, B, True, 0), (0, B, False, 1))
    assert SelectiveEvaluation(e4, Strategy.NEXT, stream("BB")).outputs == [None, frozenset({1})]


def test_the_latest_choice_of_an_automaton_that_is_no_formula():
    """Erratum E5: Algorithm 6 is right."""
    e5 = automaton((0, TRUE, False, 0), (0, TRUE, True, 1), (1, A, True, 0))
    expected = [{0}, {1}, {0, 1, 2}, {1, 2, 3}]
    assert SelectiveEvaluation(e5, Strategy.LAST, stream("AAAA")).outputs == expected
    everything = matches(e5, stream("AAAA"), reporting=True)
    for n, wanted in enumerate(expected):
        chosen = kept_by(Strategy.LAST, (c for at, c in everything if at == n))
        assert {support(c) for c in chosen} == {frozenset(wanted)}


def stream(types):
    return stream_of([{**row, "t": i} for i, row in enumerate(rows(types))])


# --- work and memory --------------------------------------------------------------------------------------------------


def letters(size, weights=(0.6, 0.3, 0.1)):
    return pa.table({"type": np.array(list("ABC"))[np.random.default_rng(5).choice(3, size, p=weights)]})


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("formula", ["A+ ; B", "(A ; B)+ ; C", "A ; B ; C", "(A+ ; B+)+ ; C"])
def test_without_a_window_one_support_is_remembered_for_each_state(strategy, formula):
    query = cerflow.parse(f"SELECT {strategy} COUNT(*) AS n WHERE {formula}")
    table = letters(4_000)
    recognizer = query.recognizer(table.schema)
    visited = []
    for start in range(0, 4_000, 1_000):
        before = recognizer.live["visited"]
        found = recognizer.push(table.slice(start, 1_000)).to_pylist()
        assert {row["n"] for row in found} == {1}
        visited.append(recognizer.live["visited"] - before)
        assert recognizer.live["configurations"] <= 6
    assert max(visited) <= 6 * 1_000
    assert max(visited) < 1.3 * min(visited)


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize(
    "formula",
    [
        "(A AS x ; B AS y ; C AS z) FILTER y.v > x.v",
        "(A AS x ; (B AS y)+ ; C AS z) FILTER y.v > x.v",
        "(A AS x ; (B AS y)+ ; C AS z) FILTER increasing(y.v)",
    ],
)
def test_without_a_window_the_best_value_stands_for_all(strategy, formula):
    query = cerflow.parse(f"SELECT {strategy} * WHERE {formula}")
    draw = np.random.default_rng(3)
    table = letters(3_000).append_column("v", pa.array(draw.random(3_000)))
    recognizer = query.recognizer(table.schema)
    assert len(recognizer.push(table)) > 100
    assert recognizer.live["configurations"] <= 40
    some = table.slice(0, 25)
    assert bag(query.match(some)) == bag(query.match(some, runner="semantics"))


@pytest.mark.parametrize("strategy", BOTH)
def test_with_a_window_one_support_is_remembered_for_each_start(strategy):
    table = letters(3_000)
    recognizer = cerflow.parse(f"SELECT {strategy} * WHERE A+ ; B WITHIN 30 EVENTS").recognizer(table.schema)
    for start in range(0, 3_000, 100):
        recognizer.push(table.slice(start, 100))
        assert recognizer.live["configurations"] <= 62
    recognizer.snapshot()
    assert recognizer.live["nodes"] < 2_000


@pytest.mark.parametrize("strategy", BOTH)
@pytest.mark.parametrize("formula", ["A ; B ; C", "A+ ; B+ ; C", "(A+ ; B)+ ; C", "(A:+)+"])
def test_the_work_does_not_grow_with_the_window(strategy, formula):
    table = letters(4_000)
    for window in (10, 100, 3_000):
        recognizer = cerflow.parse(f"SELECT {strategy} * WHERE {formula} WITHIN {window} EVENTS").recognizer(
            table.schema
        )
        assert len(recognizer.push(table)) > 100
        assert recognizer.live["configurations"] <= 8
        assert recognizer.live["visited"] <= 8 * table.num_rows
        # One for every configuration that an event changes, and one for each place that it is kept at.
        recognizer.snapshot()
        assert recognizer.live["nodes"] <= 10 * window + 10


@pytest.mark.parametrize("strategy", BOTH)
def test_matches_are_the_same_however_little_room_there_is(strategy, monkeypatch):
    table = letters(300)
    query = cerflow.parse(f"SELECT {strategy} * WHERE ((A AS x OR A AS y) ; B+ ; (C OR C AS z)) WITHIN 60 EVENTS")
    expected = query.match(table).to_pylist()
    monkeypatch.setattr("cerflow.base.limits.CHOSEN_NODES", 2)
    assert query.match(table).to_pylist() == expected
    assert query.match(table).count() == len(expected) > 60


@pytest.mark.parametrize("strategy", BOTH)
def test_variants_are_counted_without_listing_them(strategy):
    table = pa.table({"type": ["A"] * 500 + ["B"]})
    query = cerflow.parse(f"SELECT {strategy} COUNT(*) AS n WHERE ((A AS x) OR (A AS y))+ ; B WITHIN 100 EVENTS")
    recognizer = query.recognizer(table.schema)
    (row,) = recognizer.push(table).to_pylist()
    assert row["n"] == 2**99
    assert recognizer.live["configurations"] <= 300


@pytest.mark.slow
@pytest.mark.parametrize("strategy", BOTH)
def test_many_configurations(strategy, monkeypatch):
    seen = set()
    make_room = Memory.make_room

    def noted(self, reason, events, k):
        seen.add(reason)
        make_room(self, reason, events, k)

    monkeypatch.setattr(Memory, "make_room", noted)
    size, window = 3_000, 300
    generator = np.random.default_rng(2)
    types = np.array(list("AB"))[generator.integers(0, 2, size)]
    values = generator.integers(0, 10**6, size)
    query = cerflow.parse(
        f"SELECT {strategy} * WHERE (A AS x ; B AS y) FILTER x.v < y.v PARTITION BY k WITHIN {window} EVENTS"
    )
    table = pa.table({"type": types, "v": values, "k": [1] * size})
    expected = set()
    for b in range(size):
        starts = [a for a in range(max(0, b - window + 1), b) if types[a] == "A" and values[a] < values[b]]
        if types[b] == "B" and starts:
            expected.add((b, frozenset({b, starts[0] if strategy is Strategy.NEXT else starts[-1]})))
    assert supports(query.match(table).to_pylist()) == expected
    assert layout.FULL_CONFIGS in seen
    kleene = cerflow.parse(f"SELECT {strategy} COUNT(*) AS n WHERE A+ ; B WITHIN {window} EVENTS")
    assert all(row["n"] == 1 for row in kleene.match(table).to_pylist())
    assert layout.FULL_SCRATCH in seen


# --- the order of classes ---------------------------------------------------------------------------------------------


def test_classes_are_numbered_anew_when_there_is_no_number_left():
    # Every B makes a class directly below that of the A.
    table = pa.table({"type": ["A"] + ["B"] * 300 + ["C", "C"]})
    query = cerflow.parse("SELECT NEXT * WHERE (A OR B+) ; C WITHIN 302 EVENTS")
    found = query.match(table).to_pylist()
    assert supports(found) == {(301, frozenset({0, 301})), (302, frozenset(range(1, 301)) | {302})}


@examples(60)
@given(st.data())
def test_classes_keep_their_order(data):
    classes = np.zeros((100, 4), np.int64)
    classes[layout.NO_EVENTS, layout.K_NUMBER] = WORST
    partition = np.zeros((1, layout.PARTITION_COLUMNS), np.int32)
    counters = np.zeros(layout.COUNTERS, np.int64)
    counters[layout.N_CLASSES] = 1
    order = []
    zero = np.int64(0)
    for step in data.draw(st.lists(st.integers(-3, 9), min_size=20, max_size=90)):
        if step < 0 and order:
            cls = order.pop(step % len(order))
            release(zero, np.int64(cls), classes, partition, counters)
            continue
        strategy = layout.LATEST if step == 9 else layout.EARLIEST
        below = min(step % 3, len(order))
        cls = order[below - 1] if below and strategy == layout.EARLIEST else layout.NO_EVENTS
        new = int(new_class(zero, np.int64(cls), np.int64(strategy), classes, partition, counters))
        classes[new, layout.K_HELD] = 1
        assert new not in order
        order.insert(len(order) if strategy == layout.LATEST else below, new)
        numbers = [int(classes[c, layout.K_NUMBER]) for c in order]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > WORST


# --- every loop ends --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
def test_nested_iterations_on_streams_of_many_windows():
    """In a process of its own, with a time limit for each case, because a loop without end holds no signal."""
    command = [sys.executable, "-m", "support.long_choices", "12", "16", "60"]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout[-3000:], done.stderr[-3000:])
    assert done.stdout.count(" matches\n") > 10


def test_a_class_whose_last_configuration_is_overwritten_goes_on_in_others():
    for strategy, formula, window, first in (
        ("NEXT", "(A:+)+", 3, 0),
        ("LAST", "(A:+)+", 6, 0),
        ("NEXT", "A:+ ; A:+", 6, 1),
        ("LAST", "(A ; A) OR A:+", 6, 0),
        ("LAST", "(A+):+", 6, 0),
    ):
        query = cerflow.parse(f"SELECT {strategy} * WHERE {formula} WITHIN {window} EVENTS")
        expected = {(n, frozenset(range(max(0, n - window + 1), n + 1))) for n in range(first, 40)}
        assert supports(query.match(pa.table({"type": ["A"] * 40})).to_pylist()) == expected
