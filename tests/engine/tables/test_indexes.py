"""Configurations that are found by a register: the same results, and no work for those that an event cannot concern."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.engine import layout
from cerflow.engine.recognize.planning import compile_select
from cerflow.engine.tables.transducer_tables import TransducerTables
from support.conformance import assert_conforms, drawn
from support.runners import ENGINE_RUNNERS, examples


@pytest.fixture(autouse=True)
def by_automaton(monkeypatch):
    """Pairs of events are left to the automaton, which has the indexes."""
    monkeypatch.setattr(limits, "JOINED_ROWS", 1 << 30)


@pytest.fixture
def at_once(monkeypatch):
    """Every state that can have an index has one from its first configuration on."""
    monkeypatch.setattr(limits, "INDEXED_CONFIGURATIONS", 0)


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(limits, "INDEXED_CONFIGURATIONS", 64)


@pytest.mark.usefixtures("at_once")
class TestFromTheFirstConfigurationOn:
    @examples(200)
    @given(data=st.data())
    def test_random_queries(self, data):
        assert_conforms(*drawn(data), ENGINE_RUNNERS)


CONDITIONS = {
    "x.i = y.i": lambda x, y: x["i"] == y["i"],
    "x.f = y.f": lambda x, y: x["f"] == y["f"],
    "x.s = y.s": lambda x, y: x["s"] == y["s"],
    "x.i < y.i": lambda x, y: x["i"] < y["i"],
    "y.i <= x.i": lambda x, y: y["i"] <= x["i"],
    "x.f > y.f": lambda x, y: x["f"] > y["f"],
    "y.f >= x.f": lambda x, y: y["f"] >= x["f"],
    "-x.f = y.f": lambda x, y: -x["f"] == y["f"],
    "x.s < y.s": lambda x, y: x["s"] < y["s"],
    "x.i = y.i AND x.f < y.f": lambda x, y: x["i"] == y["i"] and x["f"] < y["f"],
    "x.f < y.f AND x.f > y.i": lambda x, y: y["i"] < x["f"] < y["f"],
    "y.f - x.f > 8.75": lambda x, y: y["f"] - x["f"] > 8.75,
    "y.i - x.i <= -30": lambda x, y: y["i"] - x["i"] <= -30,
    "x.f + y.f >= 1e17": lambda x, y: x["f"] + y["f"] >= 1e17,
    "abs(x.f - y.f) < 0.5": lambda x, y: abs(x["f"] - y["f"]) < 0.5,
}


def table_of(size, seed, values=40, keys=3):
    """Events with nulls, zeros of both signs, infinities and NaN."""
    generator = np.random.default_rng(seed)
    i = generator.integers(-values, values, size)
    odd = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324]
    f = np.where(generator.random(size) < 0.2, generator.choice(odd, size), i / 4)
    missing = generator.random((3, size)) < 0.1
    return pa.table(
        {
            "type": np.array(list("AB"))[generator.integers(0, 2, size)],
            "i": pa.array(i, mask=missing[0]),
            "f": pa.array(f, mask=missing[1]),
            "s": pa.array([f"name {v}" for v in i.tolist()], mask=missing[2]),
            "k": generator.integers(0, keys, size),
        }
    )


class _Unknown:
    """What nothing is equal to, less than or greater than."""

    def __eq__(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None

    def __neg__(self, other=None):
        return self

    __abs__ = __add__ = __radd__ = __sub__ = __rsub__ = __neg__


def pairs(matches):
    return [(m["start"], m["end"]) for m in matches.to_pylist()]


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("keyed", [False, True])
def test_many_configurations(condition, keyed):
    table = table_of(600, 5, values=80)
    text = f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} WITHIN 300 EVENTS"
    if keyed:
        text = f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} PARTITION BY k"
    query = cerflow.parse(text)
    recognizer = query.recognizer(table.schema)
    found = pairs(recognizer.push(table))
    indexing = recognizer._machine.memory.state.indexing.any()
    assert indexing == ("s <" not in condition)
    rows = [{name: _Unknown() if v is None or v != v else v for name, v in row.items()} for row in table.to_pylist()]
    wanted = {
        (a, b)
        for b, y in enumerate(rows)
        if y["type"] == "B"
        for a in range(0 if keyed else max(0, b - 299), b)
        if rows[a]["type"] == "A" and (not keyed or rows[a]["k"] == y["k"]) and CONDITIONS[condition](rows[a], y)
    }
    assert len(found) == len(set(found))
    assert set(found) == wanted


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("condition", ["x.i = y.i", "x.f < y.f", "x.s = y.s"])
def test_what_is_left_of_a_stream_after_a_snapshot(condition):
    table = table_of(500, 6, values=400)
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} WITHIN 220 EVENTS")
    whole = pairs(query.match(table))
    recognizer = query.recognizer(table.schema)
    found = pairs(recognizer.push(table.slice(0, 300)))
    assert recognizer._machine.memory.state.indexing.any()
    recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    for start in range(300, 500, 50):
        found += pairs(recognizer.push(table.slice(start, 50)))
    assert found == whole


@pytest.mark.parametrize(
    "condition", ["x.i = y.i", "x.i < y.i", "x.i > y.i", "x.f = y.f", "x.f >= y.f", "x.s = y.s", "x.i - y.i < -3"]
)
def test_work_does_not_grow_with_configurations(condition):
    size = 20_000
    first = np.arange(size) % 2 == 0
    values = np.where(first, np.arange(size) + 1, 2 * size if condition[4] == "=" else -np.arange(size))
    if ">" in condition:
        values = -values
    table = pa.table(
        {"type": np.where(first, "A", "B"), "i": values, "f": values / 8, "s": [str(v) for v in values.tolist()]}
    )
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} WITHIN 10000 EVENTS")
    recognizer = query.recognizer(table.schema)
    assert recognizer.push(table).count() == 0
    assert recognizer.live["visited"] < 4 * size


def test_expired_configurations_go():
    # They are the first in the heap, and each is looked at once.
    size = 20_000
    types = np.array(["A", "B"])[np.arange(size) % 2]
    table = pa.table({"type": types, "v": np.where(types == "A", np.arange(size), 4)})
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v WITHIN 2000 EVENTS")
    recognizer = query.recognizer(table.schema)
    assert recognizer.push(table).count() == 2 * 1000
    assert recognizer.live["visited"] < 4 * size
    assert len(recognizer._machine.memory.state.config) <= 8192


@pytest.mark.parametrize(
    "condition",
    [
        "abs(y.v - x.v) < 3",
        "y.v - x.v BETWEEN -2 AND 2",
        "x.v > y.v - 3 AND y.v + 3 > x.v",
        "x.v > y.low AND x.v < y.high",
    ],
)
def test_between_two_bounds_few_are_visited(condition):
    size = 6_000
    draw = np.random.default_rng(4)
    values = draw.integers(0, 10_000, size)
    table = pa.table(
        {"type": draw.choice(["A", "B"], size), "v": values, "low": values - 3, "high": values + 3},
    )
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} WITHIN 4000 EVENTS")
    recognizer = query.recognizer(table.schema)
    found = recognizer.push(table).count()
    assert found > 1_000
    # Those before there is an index.
    assert recognizer.live["visited"] < found + 2 * size + limits.INDEXED_CONFIGURATIONS**2
    a, b = (np.flatnonzero(table["type"].to_numpy(zero_copy_only=False) == kind) for kind in "AB")
    near = abs(values[a][:, None] - values[b]) < 3
    assert found == (near & (a[:, None] < b) & (b - a[:, None] < 4_000)).sum()


def test_which_register_is_looked_up():
    schema = cerflow.Schema(pa.schema({"type": pa.string(), "a": pa.int64(), "b": pa.float64()}))

    def kinds(text):
        tables = TransducerTables(compile_select(cerflow.parse(text).tree), schema)
        return sorted(tables.arrays.indexes[:, layout.X_KIND].tolist())

    assert kinds("SELECT * WHERE (A AS x ; B AS y) FILTER x.a = y.a")[-1] == layout.EQUAL
    assert kinds("SELECT * WHERE (A AS x ; B AS y) FILTER x.a = y.a AND x.b < y.b")[-1] == layout.EQUAL
    assert kinds("SELECT * WHERE (A AS x ; B AS y) FILTER x.b < y.b")[-1] == layout.ORDERED
    assert kinds("SELECT * WHERE (A AS x ; B AS y) FILTER x.b > y.b")[-1] == layout.ORDERED
    assert set(kinds("SELECT * WHERE (A AS x ; B AS y) FILTER x.a != y.a")) == {layout.SCAN}
    assert set(kinds("SELECT * WHERE (A AS x ; B AS y) WITHIN 5 EVENTS")) == {layout.SCAN}
    assert set(kinds("SELECT * WHERE (A AS x : B AS y) FILTER x.a = y.a")) == {layout.SCAN}
