"""Several threads: the matches of one, in the order of their detection, or one thread after all."""

import math
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, QueryError, UnsupportedQueryError
from cerflow.engine.recognize.driver import Driver
from cerflow.engine.recognize.planning import compile_select
from cerflow.engine.slices import threads as threads_of_slices
from cerflow.engine.slices.division import divided
from cerflow.engine.slices.threads import InSlices
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Strategy
from cerflow.language.select import Consumption, Projection, ProjectionKind
from support.conformance import table_of
from support.generators import predicates as random_predicates
from support.generators.conditions import Fragment
from support.generators.queries import streams
from support.generators.selects import cases
from support.runners import bag, examples
from support.slices import shorten


@pytest.fixture
def short(monkeypatch):
    """Slices of very few events."""
    shorten(monkeypatch)


def by_detection(rows):
    return [(n, bag(list(some))) for n, some in groupby(rows, key=lambda row: row["detected_at"])]


def assert_alike(query, table, threads, **roles):
    one, several = query.match(table, **roles), query.match(table, threads=threads, **roles)
    assert several.count() == one.count()
    if one.count() > 1_000:
        return
    expected = one.to_pylist()
    # Recognisers are used again in the second round; in the third one the reader's thread goes on alone.
    for alone in (False, False, True):
        with pytest.MonkeyPatch.context() as patch:
            if alone:
                patch.setattr(limits, "THREAD_SECONDS", math.inf)
                patch.delattr(threads_of_slices, "ThreadPoolExecutor")
            assert by_detection(several.to_pylist()) == by_detection(expected)
    assert several.schema == one.schema


WINDOWS = (CountWindow(3), DurationWindow(4000), AttributeWindow(3, "n"))


@pytest.mark.parametrize("some", [False, True])
@examples(60)
@given(data=st.data(), threads=st.integers(2, 3), events=st.integers(1, 4))
def test_random_queries(some, data, threads, events):
    if some:
        fragment = Fragment(some=True, depth=2)
    else:
        fragment = Fragment(aggregates=True, more=data.draw(st.booleans()))
    select, rows = data.draw(cases(fragment, ends=False))
    strategy = data.draw(st.sampled_from((Strategy.ALL, Strategy.ALL, Strategy.NEXT, Strategy.LAST, Strategy.STRICT)))
    window = data.draw(st.sampled_from(WINDOWS))
    kind = select.projection.kind
    projection = Projection(ProjectionKind.ALL) if kind is ProjectionKind.NONE else select.projection
    try:
        query = cerflow.Query(
            replace(
                select,
                projection=projection,
                strategy=strategy,
                window=window,
                consume=Consumption.NONE,
                limit=None,
                partition=select.partition if isinstance(window, DurationWindow) else (),
            )
        )
        division = divided(query.tree, compile_select(query.tree), threads=True)
    except (QueryError, UnsupportedQueryError):
        assume(False)
    event(division.reason)
    if division.window is not None:
        table = table_of([*rows, *({**row, "t": row["t"] + 30, "n": row["n"] + 20} for row in rows)])
        with pytest.MonkeyPatch.context() as patch:
            shorten(patch, events)
            assert_alike(query, table, threads, time="t")


QUERIES = [
    "SELECT * WHERE (A AS x ; B+ ; C AS y) FILTER x.v < y.v WITHIN 6 EVENTS",
    "SELECT * WHERE (A AS x ; (B OR C)+ ; C AS y) FILTER x.v <= y.v WITHIN 5 MILLISECONDS",
    "SELECT x, y WHERE (A AS x ; (B ; B+)+ ; C AS y) WITHIN 5 MILLISECONDS",
    "SELECT * WHERE (A :B+ ; C) PARTITION BY [k] WITHIN 7 MILLISECONDS",
    "SELECT * WHERE (A ; B ; C) WITHIN 6 [n]",
    "SELECT NEXT * WHERE (A+ ; B ; C) WITHIN 6 MILLISECONDS",
    "SELECT LAST x WHERE (A ; B AS x ; C) WITHIN 6 EVENTS",
    "SELECT COUNT(*) AS n WHERE (A ; B+ ; C) WITHIN 6 EVENTS",
    "SELECT position(x) AS p, y WHERE (A AS x ; B AS y) WITHIN 4 EVENTS",
]


@pytest.mark.parametrize("text", QUERIES)
@examples(8)
@given(data=st.data())
def test_divided_queries(text, data):
    query = cerflow.parse(text)
    table = table_of(data.draw(streams(min_size=12, max_size=24, like=query.tree.formula)))
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch, data.draw(st.integers(2, 6)))
        assert isinstance(query.match(table, time="t", threads=2).parts, InSlices)
        assert_alike(query, table, data.draw(st.integers(2, 3)), time="t")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT * WHERE A ; B", "no window"),
        ("SELECT * WHERE (A ; B) OR (B ; A WITHIN 3 EVENTS)", "no window"),
        ("SELECT * WHERE START(A ; B) WITHIN 3 EVENTS", "checked when a match ends"),
        ("SELECT * WHERE (A ; B) UNLESS C WITHIN 3 EVENTS", "checked when a match ends"),
        ("SELECT * WHERE PROJECT A (A ; B) WITHIN 3 EVENTS", "checked when a match ends"),
        ("SELECT * WHERE A ; B WITHIN 3 EVENTS CONSUME BY ANY", "CONSUME"),
        ("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 3 EVENTS", "each partition"),
        ("SELECT * FROM S WHERE A ; B WITHIN 3 EVENTS", "some streams"),
    ],
)
def test_what_one_thread_does(text, reason, short):
    query = cerflow.parse(text)
    assert reason in divided(query.tree, compile_select(query.tree), threads=True).reason
    assert divided(query.tree, compile_select(query.tree), threads=True).window is None
    explained = cerflow.parse(text).explain()
    assert "in one thread" in explained
    table = table_of(
        [{"type": "ABC"[n % 3], "t": n, "v": n, "w": 0.5, "s": "S", "e": "p", "k": 0, "n": n} for n in range(20)]
    )
    roles = {"stream": "s"} if "FROM" in text else {}
    matches = query.match(table, time="t", threads=4, **roles)
    assert not isinstance(matches.parts, InSlices)
    assert matches.to_pylist() == query.match(table, time="t", **roles).to_pylist()


def test_predicates_are_called_by_one_thread(short):
    with random_predicates.registered():
        query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER close(x.v, y.v) WITHIN 3 EVENTS")
        assert "predicates" in divided(query.tree, compile_select(query.tree), threads=True).reason


def table_with(**columns):
    return pa.table({"type": ["AB"[k % 2] for k in range(40)], **columns})


def test_a_measure_that_decreases_is_told_as_by_one_thread(short):
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 4 [n]")
    table = table_with(n=[*range(30), *range(10)])
    for threads in (1, 2):
        with pytest.raises(BadRecordError, match="row 30"):
            query.match(table, threads=threads).to_pylist()


def test_bad_records_are_refused_once(short):
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 4 SECONDS")
    table = table_with(t=[None if k % 7 == 3 else k * 1000 for k in range(40)])
    with pytest.raises(BadRecordError, match="row 3"):
        query.match(table, time="t", threads=2)
    for threads in (1, 2):
        refused = []
        matches = query.match(table, time="t", threads=threads, on_bad_record=refused.append)
        assert len(refused) == 1
        assert refused[0].num_rows == 6
        assert matches.count() == len(matches.to_pylist()) > 0
    assert_alike(query, table, 2, time="t", on_bad_record="skip")


def test_threads_are_counted():
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 4 EVENTS")
    for threads in (0, -1):
        with pytest.raises(ValueError, match="threads must be at least 1"):
            query.match(table_with(), threads=threads)


def test_few_slices_are_held(short, monkeypatch):
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 2 EVENTS")
    matches = query.match(pa.table({"type": ["A", "B"] * 300}), threads=2)
    recognized = []
    original = InSlices._recognize

    def counted(self, some, idle):
        recognized.append(some)
        return original(self, some, idle)

    monkeypatch.setattr(InSlices, "_recognize", counted)
    found = iter(matches)
    next(found)
    assert len(recognized) < 20
    assert len(list(found)) == 299
    assert len(recognized) == 200


def test_a_window_as_long_as_the_stream_is_left_to_one_thread():
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE A ; B WITHIN 90000 EVENTS")
    table = pa.table({"type": ["A", "B"] * 80_000})
    assert not isinstance(query.match(table, threads=2).parts, InSlices)
    query = cerflow.parse("SELECT * WHERE A ; B WITHIN 100 EVENTS")
    matches = query.match(table, threads=2)
    assert isinstance(matches.parts, InSlices)
    assert matches.count() == query.match(table).count()


@pytest.mark.usefixtures("short")
def test_threads_compute_with_times():
    rng = np.random.default_rng(1)
    moments = np.cumsum(rng.integers(0, 3, 300)) * 10**6
    table = pa.table({"type": rng.choice(list("AB"), 300), "t": pa.array(moments, pa.timestamp("us"))})
    query = cerflow.parse(
        "SELECT time(b) - time(a) AS gap, a.t + (b.t - a.t) / 2 AS middle WHERE A AS a ; B AS b "
        "FILTER b.t - a.t >= INTERVAL '2' SECOND WITHIN 5 SECONDS"
    )
    assert query.match(table, time="t").count() > 100
    assert_alike(query, table, 3, time="t")


@pytest.mark.slow
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM S WHERE (A AS x ; B AS y) FILTER x.v = y.v PARTITION BY [k] WITHIN 30 SECONDS",
        "SELECT NEXT * WHERE (A AS x ; (A OR B)+ AS y ; B) FILTER y.k != 'k1' WITHIN 9 SECONDS",
    ],
)
def test_chunks_with_dictionaries_of_their_own(text, monkeypatch):
    rng = np.random.default_rng(2)
    chunks = []
    for begin, count in ((0, 70), (70, 1), (71, 129), (200, 100)):
        texts = {"type": rng.choice(list("AB"), count), "k": rng.choice(["k0", "k1", "k2"], count)}
        columns = {name: pa.array(values).dictionary_encode() for name, values in texts.items()}
        chunks.append(
            pa.table(
                {
                    **columns,
                    "v": rng.integers(0, 3, count),
                    "s": rng.choice(list("ST"), count),
                    "t": np.arange(begin, begin + count) * 1000,
                }
            )
        )
    query = cerflow.parse(text)
    whole = pa.concat_tables([chunk.cast(chunks[0].schema) for chunk in chunks])
    for few in (1, 1000):
        monkeypatch.setattr(limits, "FEW_CHUNKS", few)
        matches = query.match(whole, time="t", stream="s", threads=2)
        assert isinstance(matches.parts, InSlices)
        assert_alike(query, whole, 2, time="t", stream="s")
        plain = whole.unify_dictionaries().combine_chunks()
        assert query.match(plain, time="t", stream="s").count() == matches.count() > 20


def test_slices_are_read_where_they_are(monkeypatch):
    table = pa.table({"type": ["A", "B"] * 200_000, "n": range(400_000)})
    table = pa.concat_tables([table.slice(0, 150_000), table.slice(150_000)])
    query = cerflow.parse("SELECT COUNT(*) AS c WHERE A AS x ; B AS y FILTER x.n < y.n WITHIN 2 EVENTS")
    places = {chunk.buffers()[1].address for chunk in table.column("n").chunks}
    seen = []
    original = Driver.process

    def process(self, rows, begin):
        seen.append((begin, rows.num_rows))
        assert {rows.column("n").buffers()[1].address} <= places
        return original(self, rows, begin)

    monkeypatch.setattr(Driver, "process", process)
    for threads in (1, 2):
        seen.clear()
        assert query.match(table, threads=threads).count() == 200_000
        assert sum(count for _, count in seen) >= 400_000


@pytest.mark.slow
def test_a_recogniser_begins_anew_with_the_room_it_has():
    """Growth in a slice must not change what the next one finds."""
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v != y.v PARTITION BY [k] WITHIN 50 SECONDS")
    rng = np.random.default_rng(3)
    n = 4000
    columns = {"type": rng.choice(list("AB"), n), "k": rng.integers(0, 300, n), "v": rng.integers(0, 9, n)}
    table = pa.table({**columns, "t": np.arange(n) * 100})
    stream = query.match(table, time="t").parts
    driver = stream.driver(0)
    for begin in (0, 1000, 2500):
        driver.begin_anew(begin)
        again = [part for _, parts in stream.detected_between(driver, begin, n) for part in parts]
        fresh = stream.driver(begin)
        expected = [part for _, parts in stream.detected_between(fresh, begin, n) for part in parts]
        assert sum(len(p.graph.detections) for p in again) == sum(len(p.graph.detections) for p in expected) > 100
        report = query.match(table, time="t")._report
        assert bag(cerflow.Matches(again, report, None).to_pylist()) == bag(
            cerflow.Matches(expected, report, None).to_pylist()
        )
