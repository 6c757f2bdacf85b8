"""Events are kept as long as matches may refer to them."""

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.engine.events.store import EventStore
from cerflow.engine.recognize.transaction import Transaction

SCHEMA = pa.schema([("v", pa.int64()), ("s", pa.dictionary(pa.int32(), pa.string()))])


def batch(*values):
    texts = pa.array([f"text {v}" for v in values]).dictionary_encode()
    return pa.record_batch([pa.array(values), texts], schema=SCHEMA)


@pytest.fixture
def store():
    store = EventStore(SCHEMA)
    store.add(np.array([2, 5, 6]), batch(20, 50, 60))
    store.add(np.array([7]), batch(70))
    return store


def shown(kept, *positions):
    return [(row["v"], row["s"]) for row in kept.at(np.array(positions, np.int64)).to_pylist()]


def test_events_by_position(store):
    assert shown(store.kept(), 7, 2, 2, 6) == [(v, f"text {v}") for v in (70, 20, 20, 60)]
    assert shown(store.kept()) == []


def test_what_was_handed_out_stays(store):
    before = store.kept()
    store.add(np.array([9]), batch(90))
    store.forget(np.array([5, 9]))
    store.add(np.array([11]), batch(110))
    assert shown(before, 2, 7) == [(20, "text 20"), (70, "text 70")]
    after = store.kept()
    assert after.positions.tolist() == [5, 9, 11]
    assert shown(after, 11, 5, 9) == [(110, "text 110"), (50, "text 50"), (90, "text 90")]


def test_all_can_be_forgotten(store):
    store.forget(np.zeros(0, np.int64))
    assert len(store.kept().positions) == 0
    assert store.kept().rows.schema == SCHEMA
    store.add(np.array([8]), batch(80))
    assert shown(store.kept(), 8) == [(80, "text 80")]


def test_it_says_when_it_wants_cleaning(monkeypatch):
    monkeypatch.setattr(limits, "EVENT_SLACK", 3)
    store = EventStore(SCHEMA)
    store.add(np.arange(3), batch(0, 1, 2))
    assert not store.wants_cleaning
    store.add(np.array([3]), batch(3))
    assert store.wants_cleaning
    store.forget(np.array([1, 3]))
    assert not store.wants_cleaning
    # Looking again is put off until the events that are needed are few among those kept.
    store.add(np.arange(4, 9), batch(4, 5, 6, 7, 8))
    assert not store.wants_cleaning
    store.add(np.array([9]), batch(9))
    assert store.wants_cleaning


def test_whole_batches_are_forgotten_as_rarely_as_small_ones(monkeypatch):
    monkeypatch.setattr(limits, "EVENT_SLACK", 3)
    monkeypatch.setattr(limits, "WHOLE_BATCH_ROWS", 2)
    store = EventStore(SCHEMA)
    # All rows of a batch count, chosen or not.
    store.keep(0, batch(0, 1, 2, 3), np.array([1, 3]))
    assert store.wants_cleaning
    store.forget(np.array([1, 3]))
    store.keep(4, batch(4, 5), np.array([4]))
    store.keep(6, batch(6, 7), np.array([7]))
    assert not store.wants_cleaning
    store.keep(8, batch(8, 9), np.array([9]))
    store.keep(10, batch(10), np.array([10]))
    assert store.wants_cleaning
    assert shown(store.kept(), 10, 4, 1, 9, 3, 4) == [(v, f"text {v}") for v in (10, 4, 1, 9, 3, 4)]


def test_nothing_is_kept_of_empty_batches():
    store = EventStore(SCHEMA)
    store.add(np.zeros(0, np.int64), batch())
    assert store.kept().rows.num_rows == 0


def test_going_back(store):
    before = Transaction([store])
    store.add(np.array([8]), batch(80))
    store.forget(np.array([8]))
    before.set_back()
    assert store.kept().positions.tolist() == [2, 5, 6, 7]
    assert shown(store.kept(), 2, 7) == [(20, "text 20"), (70, "text 70")]


def test_small_batches_are_joined_later(monkeypatch):
    monkeypatch.setattr(limits, "RECENT_BATCHES", 3)
    store = EventStore(SCHEMA)
    store.add(np.array([0]), batch(0))
    for first in range(1, 40, 4):
        store.keep(first, batch(*range(first, first + 4)), np.array([first + 1, first + 3]))
        assert len(store) == 1 + 2 * (1 + first // 4)
        assert shown(store.kept(), 0, first + 3, first + 1) == [(v, f"text {v}") for v in (0, first + 3, first + 1)]
    store.add_one(50, {"v": 50, "s": "text 50"})
    store.keep(51, batch(51), np.array([51]))
    store.keep(52, batch(52), np.array([], np.int64))
    needed = [0, *range(2, 40, 2), 40, 50, 51]
    assert shown(store.kept(), *needed) == [(v, f"text {v}") for v in needed]
    store.forget(np.array(needed))
    assert store.kept().positions.tolist() == needed


def test_going_back_to_small_batches(store):
    store.keep(8, batch(80, 90), np.array([9]))
    before = Transaction([store])
    store.keep(10, batch(100), np.array([10]))
    store.add_one(11, {"v": 110, "s": "text 110"})
    before.set_back()
    assert len(store) == 5
    store.keep(10, batch(101), np.array([10]))
    assert shown(store.kept(), 9, 10) == [(90, "text 90"), (101, "text 101")]


SMALL = pa.dictionary(pa.int8(), pa.string())


def coded(texts, kind=SMALL):
    return pa.array(texts).dictionary_encode().cast(kind)


def nested(texts):
    """The same texts in each form of nested values."""
    count = range(len(texts) + 1)
    return [
        pa.StructArray.from_arrays([coded(texts)], names=["s"]),
        pa.ListArray.from_arrays(pa.array(count, pa.int32()), coded(texts)),
        pa.MapArray.from_arrays(pa.array(count, pa.int32()), pa.array(texts), coded(texts)),
    ]


@pytest.mark.parametrize("kind", [SMALL, pa.dictionary(pa.uint8(), pa.large_string())])
def test_dictionaries_of_small_indices_are_joined(kind):
    """Together they have more texts than one such dictionary has room for."""
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v")
    batches = []
    for k in range(150):
        texts = [f"{k} {n}" for n in range(40)]
        columns = [coded(["A", "B"] * 20), coded(texts, kind), *nested(texts)]
        batches.append(pa.record_batch(columns, names=["type", "v", "s", "l", "m"]))
    recognizer = query.recognizer(batches[0].schema)
    found = 0
    for batch in batches:
        found += recognizer.push(batch).count()
    assert found == 0
    again = cerflow.Recognizer.restore(query, recognizer.snapshot())
    late = {"type": "B", "v": "7 4", "s": {"s": "z"}, "l": ["z"], "m": [("z", "z")]}
    for one in (recognizer, again):
        match = one.push(late).to_pylist()[0]
        assert [event["v"] for event in match["events"]] == ["7 4", "7 4"]
        assert match["events"][0]["l"] == ["7 4"]
    whole = pa.Table.from_batches(batches)
    assert query.match(whole).count() == 0


def test_a_store_is_whole_when_arrow_fails(monkeypatch):
    store = EventStore(pa.schema([("v", pa.int64())]))
    for k in range(5):
        store.keep(10 * k, pa.record_batch({"v": range(10)}), np.arange(10 * k, 10 * k + 10))
    store.add_one(50, {"v": 7})

    def fails(*_):
        raise pa.ArrowInvalid("no room")

    with monkeypatch.context() as patch:
        patch.setattr(pa, "concat_batches", fails)
        for call in (
            lambda: store.content,
            lambda: store.forget(np.arange(3)),
            lambda: store.add(np.array([60]), None),
        ):
            with pytest.raises(pa.ArrowInvalid):
                call()
    assert len(store) == 51
    assert store.kept().positions.tolist() == [*range(50)]
    assert store.kept().at(np.array([3, 49, 50])).column("v").to_pylist() == [3, 9, 7]


def test_pieces_have_a_greatest_size(monkeypatch):
    """Arrow has no room for more than 2 GB of text in a batch."""
    monkeypatch.setattr("cerflow.base.limits.JOINED_BYTES", 100)
    store = EventStore(pa.schema([("v", pa.int64())]))
    for k in range(20):
        store.keep(10 * k, pa.record_batch({"v": range(10)}), np.arange(10 * k, 10 * k + 10))
    store.forget(np.arange(0, 200, 2))
    assert len(store) == 100
    assert max(piece.nbytes for piece in store._pieces) <= 100
    assert store.kept().at(np.arange(0, 200, 2)).column("v").to_pylist() == [0, 2, 4, 6, 8] * 20


@pytest.mark.parametrize("count", [1, limits.CHUNK_ROWS])
def test_a_table_may_have_empty_chunks(count):
    def chunk(first, rows):
        schema = pa.schema([("type", pa.string()), ("t", pa.int64())])
        return pa.table([["A"] * rows, range(first, first + rows)], schema=schema)

    table = pa.concat_tables([chunk(0, count), chunk(0, 0), chunk(count, count), chunk(0, 0)])
    queries = {
        "one": cerflow.parse("SELECT * WHERE A"),
        "late": cerflow.parse("SELECT * WHERE A NOT FOLLOWED BY B FOR 1 MILLISECOND"),
    }
    together = cerflow.QuerySet(queries).match(table, time="t")
    for name, query in queries.items():
        expected = query.match(table.combine_chunks(), time="t").to_pylist()
        assert expected
        assert query.match(table, time="t").to_pylist() == expected
        assert query.match(table, time="t", threads=2).to_pylist() == expected
        assert together[name].to_pylist() == expected
