"""The recogniser as a whole: what fails leaves no trace, what has passed is forgotten, work does not grow."""

import gc
import threading
import weakref

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, InputError
from support.runners import bag, one_batch, semantics


def stream(size, seed=1, keys=7):
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "type": np.array(list("ABCD"))[generator.integers(0, 4, size)],
            "v": generator.integers(0, 100, size),
            "s": pa.array([f"name {k}" for k in generator.integers(0, 5, size)]),
            "k": generator.integers(0, keys, size),
            "t": np.cumsum(generator.integers(0, 3, size)),
        }
    )


def pushed(recognizer, table, step):
    return [m for at in range(0, table.num_rows, step) for m in recognizer.push(table.slice(at, step)).to_pylist()]


# --- failures --------------------------------------------------------------------------------------------------------

UNSIGNED = pa.schema([("type", pa.string()), ("t", pa.int64()), ("n", pa.uint64()), ("k", pa.int64())])


def unsigned(*rows):
    return pa.table({name: [row[c] for row in rows] for c, name in enumerate(UNSIGNED.names)}, schema=UNSIGNED)


FAILING = {
    "null type": (unsigned(("A", 5, 1, 0), (None, 6, 1, 0)), BadRecordError),
    "time goes backwards": (unsigned(("A", 5, 1, 0), ("B", 4, 1, 0)), BadRecordError),
    "a number too large": (unsigned(("A", 5, 1, 0), ("B", 6, 2**64 - 1, 0)), InputError),
}
FORMULA = "(A AS x ; B AS y) FILTER x.n < y.n"


@pytest.mark.parametrize(("failing", "error"), FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("end", ["", "PARTITION BY k", "WITHIN 10 [t]"])
def test_a_failed_push_leaves_no_trace(failing, error, end):
    query = cerflow.parse(f"SELECT * WHERE {FORMULA} {end}")
    first, then = unsigned(("A", 1, 0, 0), ("A", 2, 3, 0)), unsigned(("B", 3, 4, 0), ("A", 3, 4, 0), ("B", 4, 9, 0))
    expected = query.match(pa.concat_tables([first, then]), time="t").to_pylist()
    recognizer = query.recognizer(UNSIGNED, time="t")
    found = recognizer.push(first).to_pylist()
    for _ in range(2):
        with pytest.raises(error):
            recognizer.push(failing)
        assert (recognizer.events, recognizer.bad_records) == (2, 0)
    assert found + recognizer.push(then).to_pylist() == expected
    assert len(expected) == 5


@pytest.mark.parametrize("end", ["WITHIN 10 [n]", "PARTITION BY k WITHIN 10 [n]"])
def test_a_measure_that_decreases_fails_the_whole_batch(end):
    query = cerflow.parse(f"SELECT * WHERE A ; B {end}")
    first, then = unsigned(("A", 1, 2, 0), ("A", 2, 3, 0)), unsigned(("B", 3, 4, 0))
    recognizer = query.recognizer(UNSIGNED)
    recognizer.push(first)
    before = recognizer.live
    for _ in range(2):
        with pytest.raises(BadRecordError, match="row 4: "):
            recognizer.push(unsigned(("A", 1, 5, 0), ("A", 1, 6, 0), ("B", 1, 1, 0)))
        assert recognizer.live == before
        assert recognizer.events == 2
    assert recognizer.push(then).to_pylist() == query.match(pa.concat_tables([first, then])).to_pylist()


@pytest.mark.parametrize("end", ["WITHIN 10 [n]", "PARTITION BY k WITHIN 10 [n]"])
def test_failures_among_pushes_of_all_sizes(end):
    query = cerflow.parse(f"SELECT * WHERE A ; B {end}")
    recognizer, fellow = query.recognizer(UNSIGNED), query.recognizer(UNSIGNED)
    generator = np.random.default_rng(5)
    latest, failed, found, expected = 5, 0, [], []
    for _ in range(300):
        size = int(generator.integers(1, 4))
        numbers = (latest + generator.integers(-2, 3, size)).tolist()
        rows = unsigned(*(("AB"[int(generator.integers(2))], 0, n, int(generator.integers(2))) for n in numbers))
        try:
            found += recognizer.push(rows.to_pylist()[0] if size == 1 else rows).to_pylist()
        except BadRecordError:
            failed += 1
        else:
            latest = max(latest, *numbers)
            expected += fellow.push(rows).to_pylist()
            assert recognizer.live == fellow.live
    assert found == expected
    assert 20 < failed < 280


def test_a_failure_far_into_a_batch(monkeypatch):
    monkeypatch.setattr(limits, "BATCH_ROWS", 3)
    monkeypatch.setattr(limits, "STRING_SLACK", 0)
    monkeypatch.setattr(limits, "EVENT_SLACK", 0)
    schema = pa.schema([("type", pa.string()), ("s", pa.string()), ("n", pa.uint64())])
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.s = y.s AND x.n <= y.n WITHIN 4 EVENTS")

    def events(text, *numbers):
        names = [f"s{k % 3}" for k in range(len(text))]
        return pa.table({"type": list(text), "s": names, "n": numbers or range(len(text))}, schema=schema)

    first, then = events("AABBAA"), events("AAAABBBB")
    recognizer = query.recognizer(schema)
    found = recognizer.push(first).to_pylist()
    with pytest.raises(InputError):
        recognizer.push(events("ABABABABAB", 1, 1, 1, 1, 1, 1, 1, 1, 1, 2**64 - 1))
    assert found + recognizer.push(then).to_pylist() == query.match(pa.concat_tables([first, then])).to_pylist()


def test_a_failure_behind_events_that_were_dropped(monkeypatch):
    monkeypatch.setattr(limits, "EVENT_SLACK", 5)
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.k = y.k WITHIN 9 [v]")

    def events(begin, size):
        numbers = range(begin, begin + size)
        return pa.table({"type": ["AB"[k // 3 % 2] for k in numbers], "k": [k % 2 for k in numbers], "v": numbers})

    first, then = events(0, 40), events(40, 20)
    recognizer = query.recognizer(first.schema)
    found = recognizer.push(first).to_pylist()
    with pytest.raises(BadRecordError, match="decreases"):
        recognizer.push(pa.concat_tables([then, first]))
    assert found + recognizer.push(then).to_pylist() == query.match(pa.concat_tables([first, then])).to_pylist()


# --- threads ---------------------------------------------------------------------------------------------------------


def test_threads_use_recognisers_of_their_own_at_the_same_time():
    query = cerflow.parse(
        "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x.v < y.v AND x.s != z.s "
        "PARTITION BY k WITHIN 12 MILLISECONDS"
    )
    tables = [stream(4_000, seed) for seed in range(6)]
    expected = [bag(one_batch(query, table, time="t")) for table in tables]
    found: list = [None] * len(tables)
    together = threading.Barrier(len(tables))

    def work(number):
        recognizer = query.recognizer(tables[number].schema, time="t")
        together.wait()
        found[number] = bag(pushed(recognizer, tables[number], 100))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(tables))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
    assert all(expected)


# --- forgetting ------------------------------------------------------------------------------------------------------

FORGETTING = [
    "SELECT * WHERE (A AS x ; B AS y ; C AS z) FILTER x.s = z.s AND y.s < z.s WITHIN 30 EVENTS",
    "SELECT * WHERE (A AS x ; B+ AS y) FILTER x.s <= y.s PARTITION BY s WITHIN 6 EVENTS",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v PARTITION BY s",
    "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER y.s != z.s AND x.s <= z.s WITHIN 9 EVENTS",
    "SELECT * WHERE (A AS x ; B AS y) OR (A ; B) FILTER A.s >= B.s WITHIN 15 EVENTS",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", FORGETTING)
@pytest.mark.parametrize("step", [1, 17])
def test_forgetting_strings_and_events_changes_nothing(text, step, monkeypatch):
    size = 600
    table = stream(size, keys=3)
    # New names all the time, of which the last few come again.
    names = [f"n{(k // 40) * 5 + (k * 7919) % 5} {'xyz'[k % 3]}" for k in range(size)]
    table = table.set_column(2, "s", pa.array(names))
    query = cerflow.parse(text)
    expected = pushed(query.recognizer(table.schema), table, step)
    with monkeypatch.context() as patch:
        patch.setattr(limits, "STRING_SLACK", 3)
        patch.setattr(limits, "EVENT_SLACK", 2)
        recognizer = query.recognizer(table.schema)
        found = pushed(recognizer, table, step)
        bounded = recognizer.live
    assert found == expected
    assert len(expected) > 5
    if "WITHIN" in text and "PARTITION" not in text:
        assert bounded["events"] < 150
        if "!=" not in text:
            assert bounded["strings"] < 100


def test_strings_are_forgotten_under_a_window(monkeypatch):
    monkeypatch.setattr(limits, "STRING_SLACK", 500)
    monkeypatch.setattr(limits, "EVENT_SLACK", 500)
    query = cerflow.parse("SELECT * WHERE (A AS x ; A AS y) FILTER x.s = y.s PARTITION BY p WITHIN 50 MILLISECONDS")
    schema = pa.schema([("type", pa.string()), ("s", pa.string()), ("p", pa.string()), ("t", pa.int64())])
    recognizer = query.recognizer(schema, time="t")
    found = 0
    for at in range(0, 20_000, 200):
        numbers = range(at, at + 200)
        batch = pa.table(
            {
                "type": ["A"] * 200,
                "s": [f"{k // 2}" for k in numbers],
                "p": [f"part {k // 20}" for k in numbers],
                "t": numbers,
            },
            schema=schema,
        )
        found += recognizer.push(batch).count()
        assert recognizer.live["strings"] < 2_500
        assert recognizer.live["events"] < 2_500
    assert found == 10_000


WINDOWED = [
    "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x.v < z.v WITHIN 200 EVENTS",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v WITHIN 200 MILLISECONDS",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.v != y.v PARTITION BY k WITHIN 200 MILLISECONDS",
    "SELECT * WHERE (A AS x ; B+ AS y) FILTER x.v < y.v PARTITION BY k WITHIN 50 [t]",
    "SELECT * WHERE ((A AS x ; B AS y) WITHIN 100 EVENTS) ; C WITHIN 400 EVENTS",
    "SELECT * WHERE (A ; B) OR (A ; B AS y) PARTITION BY k WITHIN 20 EVENTS",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", WINDOWED)
def test_memory_is_flat_and_work_does_not_grow(text, monkeypatch):
    monkeypatch.setattr(limits, "EVENT_SLACK", 4_096)
    query = cerflow.parse(text)
    batches = 50
    table = stream(10_000)
    span = table["t"][-1].as_py() + 1
    recognizer = query.recognizer(table.schema, time="t")
    live = []
    for k in range(batches):
        later = pa.array(table["t"].to_numpy() + k * span)
        recognizer.push(table.set_column(4, "t", later))
        live.append(recognizer.live)
    assert recognizer.events == 500_000
    for name in ("configurations", "events", "partitions", "strings"):
        first, then = (max(each[name] for each in some) for some in (live[2:10], live[10:]))
        assert then <= 1.2 * first + 10, name
    assert max(each["nodes"] for each in live[10:]) <= 2 * max(each["nodes"] for each in live[2:10])
    visited = np.diff([each["visited"] for each in live])
    assert 0 < visited[-5:].sum() <= 1.1 * visited[:5].sum()
    assert len(recognizer.snapshot()) < 500_000


def test_work_without_a_window_does_not_grow_with_matches():
    # Every B ends as many matches as there are sets of As before it; their configurations are one.
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE A+ ; B")
    table = pa.table({"type": ["A", "A", "A", "B"] * 250})
    recognizer = query.recognizer(table.schema)
    visits = []
    for _ in range(10):
        before = recognizer.live["visited"]
        recognizer.push(table)
        visits.append(recognizer.live["visited"] - before)
    assert max(visits) <= 1.1 * visits[0]
    assert recognizer.live["configurations"] <= 4


def test_nothing_is_kept_of_idle_partitions():
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k WITHIN 100 MILLISECONDS")
    schema = pa.schema([("type", pa.string()), ("k", pa.int64()), ("t", pa.int64())])
    recognizer = query.recognizer(schema, time="t")
    most = 0
    for k in range(100):
        keys = np.arange(k * 1_000, (k + 1) * 1_000)
        types = pa.array(["A"] * 1_000)
        recognizer.push(pa.table([types, keys, keys], schema=schema))
        most = max(most, recognizer.live["partitions"])
    assert most < 1_000
    assert len(recognizer.snapshot()) < 50_000
    recognizer.push(pa.table([["B"], [99_999], [100_000]], schema=schema))


def test_partitions_end_with_their_matches():
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k CONSUME BY PARTITION")
    table = pa.table({"type": ["A", "B"] * 5_000, "k": [k // 2 for k in range(10_000)]})
    recognizer = query.recognizer(table.schema)
    assert recognizer.push(table).count() == 5_000
    assert recognizer.live["partitions"] == recognizer.live["configurations"] == 0


def test_results_of_long_streams_are_those_of_the_definition_at_the_end():
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v AND x.s = y.s WITHIN 8 EVENTS")
    table = stream(20_000)
    tail = table.slice(19_900)
    late = [row for row in one_batch(query, table) if row["start"] >= 19_900]
    wanted = semantics(query, tail)
    assert [row["end"] - 19_900 for row in late] == [row["end"] for row in wanted]
    assert wanted


@pytest.mark.parametrize("keys", ["", " PARTITION BY k"])
@pytest.mark.parametrize(
    "formula", ["A ; B", "A : B", "EVENT AS a ; EVENT AS b", "A NOT FOLLOWED BY C FOR 5 MILLISECONDS"]
)
def test_a_recogniser_is_freed_as_soon_as_nothing_uses_it(formula, keys):
    size = 5_000
    table = pa.table({"type": ["A", "B"] * (size // 2), "k": [k % 7 for k in range(size)], "t": range(size)})
    query = cerflow.parse(f"SELECT * WHERE {formula}{keys} WITHIN 10 MILLISECONDS")
    recognizer = query.recognizer(table.schema, time="t")
    gc.collect()
    gc.disable()
    try:
        recognizer.push(table)
        recognizer.push({"type": "A", "k": 1, "t": size})
        parts = [recognizer, *(machine.reader.scan for machine in recognizer._driver.machines.values())]
        still = [weakref.ref(part) for part in parts]
        del recognizer, parts
        assert [of() for of in still] == [None] * len(still)
    finally:
        gc.enable()
