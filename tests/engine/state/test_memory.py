"""All that grows grows: results do not depend on how much room there was at first."""

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.engine import layout
from cerflow.engine.state.memory import Memory

ROOMS = {
    layout.FULL_SCRATCH: "scratch",
    layout.FULL_NODES: "nodes",
    layout.FULL_CONFIGS: "configurations",
    layout.FULL_MEMBERS: "members",
    layout.FULL_PARTITIONS: "partitions",
    layout.FULL_SETS: "collections",
    layout.FULL_DETECTIONS: "detections",
}


@pytest.fixture
def lacking(monkeypatch):
    """What was lacking so far; the automaton reads all events."""
    monkeypatch.setattr(limits, "JOINED_ROWS", 1 << 30)
    seen = set()
    make_room = Memory.make_room

    def noted(self, reason, events, k):
        seen.add(ROOMS[reason])
        make_room(self, reason, events, k)

    monkeypatch.setattr(Memory, "make_room", noted)
    return seen


def generated(size, **columns):
    generator = np.random.default_rng(3)
    return pa.table(
        {
            "type": np.array(list("AB"))[generator.integers(0, 2, size)],
            **{name: generator.integers(0, high, size) for name, high in columns.items()},
        }
    )


def rows(matches):
    return [(m["start"], m["end"]) for m in matches.to_pylist()]


def pairs(table, fits, window):
    types = table["type"].to_pylist()
    columns = [table[name].to_pylist() for name in table.column_names[1:]]
    return {
        (a, b)
        for b in range(table.num_rows)
        if types[b] == "B"
        for a in range(max(0, b - window + 1), b)
        if types[a] == "A" and fits(*[(c[a], c[b]) for c in columns])
    }


def test_many_partitions(lacking):
    keys = 20_000
    table = pa.table(
        {"type": ["A"] * keys + ["B"] * keys, "k": [*range(keys), *(k * 7919 % keys for k in range(keys))]}
    )
    query = cerflow.parse("SELECT * WHERE A ; B PARTITION BY k")
    recognizer = query.recognizer(table.schema)
    matches = recognizer.push(table)
    assert {"partitions", "nodes", "detections"} <= lacking
    assert matches.count() == keys
    assert {(row["start"], row["end"]) for row in matches} == {(k * 7919 % keys, keys + k) for k in range(keys)}
    assert recognizer.live["partitions"] == keys


@pytest.mark.slow
def test_many_register_values(lacking):
    table = generated(2_400, v=10**9)
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v WITHIN 300 EVENTS")
    found = rows(query.match(table))
    assert set(found) == pairs(table, lambda v: v[0] < v[1], 300)
    assert len(set(found)) == len(found) > 50_000
    assert {"configurations", "detections"} <= lacking


def test_many_updates_of_one_event(lacking):
    # Each B changes every configuration begun before.
    table = pa.table({"type": ["A"] * 300 + ["B", "B", "C"], "v": range(303)})
    query = cerflow.parse("SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x.v < y.v AND x.v != z.v")
    assert query.match(table).count() == 900
    assert "scratch" in lacking


@pytest.mark.slow
def test_many_members_of_sets(lacking):
    # Two runs with the same output: sets of states, with a register each.
    query = cerflow.parse("SELECT * WHERE (((A AS x ; A) OR (A ; A AS x)) ; B AS y) FILTER x.v != y.v WITHIN 20 EVENTS")
    table = generated(900, v=50)
    one = query.match(table)
    recognizer = query.recognizer(table.schema)
    found = [m for k in range(0, 900, 90) for m in recognizer.push(table.slice(k, 90)).to_pylist()]
    assert found == one.to_pylist()
    ambiguous = cerflow.parse("SELECT u WHERE ((A+ ; A AS x ; A+) AS u ; B AS y) FILTER x.v < y.v WITHIN 9 EVENTS")
    assert ambiguous.recognizer(table.schema)._machine.tables.grouped
    found = ambiguous.match(table)
    events = [(m["detected_at"], *(e["position"] for e in m["events"])) for m in found]
    assert len(events) == len(set(events)) == found.count() > 1_000
    assert "members" in lacking


@pytest.mark.parametrize("step", [1, 50, 2_000])
def test_collections_of_many_values(step, lacking):
    table = generated(1_500, v=400)
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE (A+ AS x ; B AS y) FILTER x.v != y.v WITHIN 10 EVENTS")
    recognizer = query.recognizer(table.schema)
    found = {}
    for k in range(0, table.num_rows, step):
        found.update((m["detected_at"], int(m["n"])) for m in recognizer.push(table.slice(k, step)))
    types, values = table["type"].to_pylist(), table["v"].to_pylist()
    expected = {}
    for b in range(table.num_rows):
        if types[b] == "B":
            usable = [a for a in range(max(0, b - 9), b) if types[a] == "A" and values[a] != values[b]]
            if usable:
                expected[b] = 2 ** len(usable) - 1
    assert found == expected
    assert "collections" in lacking


def test_collections_whose_number_is_no_power_of_two(lacking):
    # A table of collections that is probed with a mask must keep a size that is a power of two.
    names = [f"n{(k // 40) * 5 + (k * 7919) % 5} {'xyz'[k % 3]}" for k in range(400)]
    generator = np.random.default_rng(1)
    table = pa.table({"type": np.array(list("ABCD"))[generator.integers(0, 4, 400)], "s": names})
    query = cerflow.parse("SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER y.s != z.s AND x.s <= z.s WITHIN 9 EVENTS")
    recognizer = query.recognizer(table.schema)
    found = [m for k in range(400) for m in recognizer.push(table.slice(k, 1)).to_pylist()]
    assert found == query.match(table).to_pylist()
    size = len(recognizer._machine.memory.state.set_table)
    assert size & (size - 1) == 0
    assert "collections" in lacking


def test_nodes_are_collected_in_the_middle_of_a_batch(lacking):
    table = generated(60_000, v=3)
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v WITHIN 8 EVENTS")
    matches = query.match(table)
    assert set(rows(matches)) == pairs(table, lambda v: v[0] == v[1], 8)
    assert "nodes" in lacking
    recognizer = query.recognizer(table.schema)
    recognizer.push(table)
    assert recognizer.live["nodes"] < 10_000


def test_batches_are_divided_without_a_trace(monkeypatch):
    table = generated(2_000, v=5)
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v WITHIN 8 EVENTS")
    expected = query.match(table).to_pylist()
    monkeypatch.setattr(limits, "BATCH_ROWS", 7)
    recognizer = query.recognizer(table.schema)
    assert recognizer.push(table).to_pylist() == expected


@pytest.mark.parametrize("window", ["10 EVENTS", "10 [n]"])
def test_what_left_the_window_of_its_substream_is_forgotten(window):
    size = 20_000
    table = generated(size, k=5).append_column("n", pa.array(range(size)))
    recognizer = cerflow.parse(f"SELECT * WHERE A ; B PARTITION BY k WITHIN {window}").recognizer(table.schema)
    recognizer.push(table)
    recognizer.snapshot()
    assert recognizer.live["nodes"] < 200
    assert recognizer.live["events"] < 200


@pytest.mark.parametrize("consume", ["ANY", "PARTITION"])
def test_consuming_frees_what_it_forgets(consume, lacking):
    table = generated(20_000, k=3_000)
    query = cerflow.parse(f"SELECT * WHERE A ; A ; B PARTITION BY k CONSUME BY {consume}")
    one = query.match(table).to_pylist()
    recognizer = query.recognizer(table.schema)
    found = [m for k in range(0, 20_000, 1_111) for m in recognizer.push(table.slice(k, 1_111)).to_pylist()]
    assert found == one
    assert one
    assert "partitions" in lacking


def test_events_may_be_filled_anew_in_place():
    table = pa.table({"type": list("ABCAB"), "v": [1, 2, 0, 5, 3]})
    recognizer = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v").recognizer(table.schema)
    memory, batches = recognizer._machine.memory, table.to_batches(max_chunksize=1)
    found = []
    for k, batch in enumerate(batches):
        events, count = recognizer._machine.reader.read(batch, k)
        if count:
            found.append(events)
            assert memory.advance(events, 0, 1) == (layout.DONE, 1)
    assert all(events is found[0] for events in found)
    assert memory.take_detections()[0][:, layout.D_POSITION].tolist() == [1, 4]


def test_kernels_get_no_arrays_that_they_cannot_read():
    memory = cerflow.parse("SELECT * WHERE A").recognizer(pa.schema({"type": pa.string()}))._machine.memory
    memory.state = memory.state._replace(detections=memory.state.detections.astype(np.int32))
    with pytest.raises(TypeError, match="State"):
        memory._address()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT MAX x WHERE (A AS x)+ ; (B AS y)+ ; C AS z",
        "SELECT x WHERE ((A AS x)+ ; (A OR B AS y)+ ; C AS z) FILTER y.v != z.v",
    ],
)
def test_collections_of_sets_of_runs_are_renumbered(query, lacking):
    drawn = np.random.default_rng(2)
    table = pa.table({"type": drawn.choice(list("ABCDE"), 400), "v": drawn.integers(0, 1000, 400)})
    query = cerflow.parse(f"{query} WITHIN 10 EVENTS")
    found = rows_by_detection(query.match(table).to_pylist(), 0)
    assert "collections" in lacking
    for n in range(0, 400, 7):
        # Nothing before the window matters.
        begin = max(0, n - 9)
        alone = rows_by_detection(query.match(table.slice(begin, n - begin + 1)).to_pylist(), begin)
        assert found.get(n) == alone.get(n)


def rows_by_detection(matches, first):
    found = {}
    for match in matches:
        events = frozenset((e["position"] + first, frozenset(e["labels"])) for e in match["events"])
        found.setdefault(match["detected_at"] + first, set()).add(events)
    return found


@pytest.mark.parametrize("together", [False, True])
def test_the_work_of_forgetting_is_proportional_to_the_events_in_batches_of_any_size(monkeypatch, together):
    monkeypatch.setattr(limits, "WHOLE_BATCH_ROWS", 64)
    monkeypatch.setattr(limits, "EVENT_SLACK", 256)
    walked = []
    collect_nodes = Memory._collect_nodes

    def noted(self, *arguments, **options):
        walked.append(int(self.state.counters[layout.N_NODES]))
        collect_nodes(self, *arguments, **options)

    monkeypatch.setattr(Memory, "_collect_nodes", noted)
    size = 6_000
    table = pa.table({"type": np.array(list("AB"))[np.random.default_rng(3).integers(0, 2, size)]})
    query = cerflow.parse("SELECT * WHERE A ; B ; C")
    recognizer = cerflow.QuerySet({"q": query}).recognizer(table.schema) if together else query.recognizer(table.schema)
    for step in (50, 80, 300):
        walked.clear()
        for start in range(0, size, step):
            recognizer.push(table.slice(start, step))
        assert sum(walked) < 12 * size
    if not together:
        assert recognizer.live["events"] <= 3 * size


@pytest.mark.parametrize("size", [100, 20_000])
def test_room_grows_where_a_large_batch_is_swept_often(monkeypatch, size):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1 << 30)
    drawn = np.random.default_rng(1)
    kinds, keys = drawn.choice(list("AAABBC"), 20_000), drawn.integers(0, 20_000, 20_000)
    table = pa.table({"type": kinds, "k": keys, "t": np.arange(20_000)})
    query = cerflow.parse(
        "SELECT NEXT * WHERE (A ; B) NOT FOLLOWED BY C FOR 90 MILLISECONDS PARTITION BY k WITHIN 200 MILLISECONDS"
    )
    recognizer = query.recognizer(table.schema, time="t")
    for batch in table.to_batches(max_chunksize=size):
        recognizer.push(batch)
    # Small pushes copy the state each time, so it must stay small.
    assert (len(recognizer._machine.memory.state.config) > 1024) == (size > 100)
