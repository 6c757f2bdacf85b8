"""Several threads give the matches that wait for deadlines as one thread does."""

import random

import pyarrow as pa
import pytest

import cerflow
from cerflow.automata.model.run_windows import reach_of_runs
from cerflow.engine.recognize.planning import compile_select
from cerflow.engine.slices.division import divided
from cerflow.engine.slices.threads import InSlices
from cerflow.language.formula import CountWindow, DurationWindow
from support.generators.deadlines import DeadlineQueries
from support.runners import EXAMPLES, bag, engine_refuses
from support.slices import shorten


@pytest.fixture
def short(monkeypatch):
    """Slices of very few events."""
    shorten(monkeypatch)


@pytest.mark.parametrize("seed", range(round(200 * EXAMPLES)))
def test_random_queries(short, seed):
    own = DeadlineQueries(seed)
    query = cerflow.parse(own.query())
    if engine_refuses(query, own.events(), time="t"):
        return
    for _ in range(2):
        table = own.events(6, 20)
        until = own.random.choice([None, table["t"][-1].as_py() + own.random.randint(0, 8)])
        found = query.match(table, time="t", threads=2, until=until).to_pylist()
        assert bag(found) == bag(query.match(table, time="t", until=until).to_pylist())


def test_slices_begin_before_the_event_that_shows_a_deadline(short):
    """The event that shows a deadline may come much later, with the next slice."""
    query = cerflow.parse("SELECT * WHERE A AS x NOT FOLLOWED BY B FOR 5 MILLISECONDS")
    times = [0, 1, 2, 1000, 1001, 1002, 5000, 5001, 5002]
    table = pa.table({"type": [random.Random(t).choice("AC") for t in times], "t": times})
    matches = query.match(table, time="t", threads=2)
    assert isinstance(matches.parts, InSlices)
    rows = matches.to_pylist()
    assert rows == query.match(table, time="t").to_pylist()
    assert {row["detected_at"] for row in rows} <= {3, 6}
    assert rows


TIMED = [
    ("A NOT FOLLOWED BY B FOR 5 SECONDS", 5),
    ("A NOT FOLLOWED BY (B ; C) FOR 5 SECONDS", 5),
    ("(A NOT FOLLOWED BY B FOR 5 SECONDS) WITHIN 1 MINUTE", 5),
    ("(A ; C NOT FOLLOWED BY B FOR 5 SECONDS) WITHIN 1 MINUTE", 65),
    ("(A NOT FOLLOWED BY B FOR 5 SECONDS) ; C WITHIN 1 MINUTE", 60),
    ("(A NOT FOLLOWED BY B FOR 5 SECONDS) NOT FOLLOWED BY C FOR 9 SECONDS", 14),
    ("(A NOT FOLLOWED BY B FOR 5 SECONDS) OR (C NOT FOLLOWED BY B FOR 9 SECONDS)", 9),
    ("((A NOT FOLLOWED BY B FOR 5 SECONDS) ; C+ NOT FOLLOWED BY B FOR 7 SECONDS) WITHIN 1 MINUTE", 67),
    ("A ; C NOT FOLLOWED BY B FOR 5 SECONDS", None),
    ("A NOT FOLLOWED BY B FOR 5 [n]", None),
    ("START(A NOT FOLLOWED BY B FOR 5 SECONDS)", None),
]


@pytest.mark.parametrize(("formula", "seconds"), TIMED)
def test_windows_and_deadlines_add_up(formula, seconds):
    select = cerflow.parse(f"SELECT * WHERE {formula}").tree
    transducer = compile_select(select)
    assert reach_of_runs(transducer) == (None if seconds is None else DurationWindow(seconds * 10**6))
    division = divided(select, transducer)
    assert division.late == (seconds is not None)
    if seconds is None:
        assert "any event of the whole stream may show that a deadline has passed" in division.reason


def test_deadlines_that_count_events():
    transducer = compile_select(cerflow.parse("SELECT * WHERE A NOT FOLLOWED BY B FOR 5 EVENTS").tree)
    assert reach_of_runs(transducer) == CountWindow(6)
