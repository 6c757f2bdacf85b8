"""Pushes that are stopped, interrupted or short of memory: they change nothing."""

import copy
import threading

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow import limits
from cerflow.engine.state.memory import Memory
from cerflow.engine.stopping import checked

#: Hardly any four events are no match, so nearly each triple of values is an entry of its own.
EXPLODING = "SELECT * WHERE (A AS a ; A AS b ; A AS c ; A AS d) FILTER " + " AND ".join(
    f"{x}.v + 1 <> {y}.w + 2" for k, x in enumerate("abcd") for y in "abcd"[k + 1 :]
)


class StoppedError(Exception):
    pass


def numbers(count):
    drawn = np.random.default_rng(1).integers(0, 10**6, (2, count))
    return pa.table({"type": ["A"] * count, "v": drawn[0], "w": drawn[1]})


def exploding(query, table, **arguments):
    recognizer = query.recognizer(table.schema, **arguments)
    recognizer.push(table.slice(0, 10))
    recognizer.snapshot()
    return recognizer


def stopping(calls):
    """A check that ends the work when it is called again after so many times."""
    left = iter(range(calls))

    def check():
        if next(left, None) is None:
            raise StoppedError

    return check


QUERIES = {
    "query": cerflow.parse(EXPLODING),
    "set": cerflow.QuerySet({"four": cerflow.parse(EXPLODING), "two": cerflow.parse("SELECT * WHERE A ; A")}),
    "program": cerflow.parse_program(
        "DEFINE one AS SELECT a.v AS v, a.w AS w WHERE A AS a\n"
        + EXPLODING.replace("WHERE", "FROM one WHERE").replace("A AS", "one AS")
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_check_ends_a_push_which_changes_nothing(name):
    table = numbers(5000)
    recognizer = exploding(QUERIES[name], table)
    before = recognizer.snapshot()
    with checked(stopping(6)), pytest.raises(StoppedError):
        recognizer.push(table.slice(10))
    assert (recognizer.events, recognizer.snapshot()) == (10, before)
    found = recognizer.push(table.slice(10, 5))
    expected = exploding(QUERIES[name], table)
    other = expected.push(table.slice(10, 5))
    if name == "set":
        assert {k: v.to_pylist() for k, v in found.items()} == {k: v.to_pylist() for k, v in other.items()}
    else:
        assert found.to_pylist() == other.to_pylist()


@pytest.mark.parametrize("name", QUERIES)
def test_a_push_beyond_its_memory_changes_nothing(name):
    table = numbers(5000)
    recognizer = exploding(QUERIES[name], table, memory=20_000_000)
    before = recognizer.snapshot()
    with pytest.raises(cerflow.MemoryLimitError, match="more than the 20,000,000 bytes that 'memory' allows") as raised:
        recognizer.push(table.slice(10))
    assert isinstance(raised.value, MemoryError)
    assert recognizer.snapshot() == before
    recognizer.push(table.slice(10, 1).to_pylist()[0])
    assert recognizer.events == 11


def test_a_stream_beyond_its_memory():
    matches = QUERIES["query"].match(numbers(5000), memory=20_000_000)
    with pytest.raises(cerflow.MemoryLimitError):
        matches.count()
    with pytest.raises(ValueError, match="memory must be at least 1, not 0"):
        QUERIES["query"].match(numbers(5), memory=0).count()


@pytest.mark.parametrize("after", range(3))
def test_a_machine_without_memory(monkeypatch, after):
    table = numbers(300)
    recognizer = exploding(QUERIES["query"], table)
    before = recognizer.snapshot()
    calls, make_room = [], Memory.make_room

    def full(*arguments):
        calls.append(arguments)
        if len(calls) > after:
            raise MemoryError
        make_room(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Memory, "make_room", full)
        with pytest.raises(MemoryError):
            recognizer.push(table.slice(10))
    assert (recognizer.events, recognizer.snapshot()) == (10, before)


def test_what_cannot_be_undone_is_said(monkeypatch):
    monkeypatch.setattr(limits, "COPIED_BYTES", 0)
    monkeypatch.setattr(limits, "COPIED_BYTES_EACH", 0)
    monkeypatch.setattr(limits, "COPIED_BYTES_A_SECOND", 0)
    table = numbers(300)
    recognizer = exploding(QUERIES["query"], table)
    before = recognizer.snapshot()

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Memory, "make_room", full)
    with pytest.raises(MemoryError):
        recognizer.push(table.slice(10))
    for call in (
        lambda: recognizer.push(table.slice(10, 1)),
        lambda: recognizer.push({"type": "A"}),
        recognizer.snapshot,
    ):
        with pytest.raises(cerflow.CerflowError, match="a push broke off"):
            call()
    assert cerflow.Recognizer.restore(QUERIES["query"], before).events == 10


@pytest.mark.parametrize("place", ["add_one", "advance"])
def test_a_single_event_that_is_interrupted(monkeypatch, place):
    query = cerflow.parse("SELECT * WHERE (A AS x ; B AS y) WITHIN 5 EVENTS")
    recognizer = query.recognizer(pa.schema([("type", pa.string())]))
    recognizer.push({"type": "A"})
    target = recognizer._driver.store if place == "add_one" else recognizer._machine

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(target, place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        recognizer.push({"type": "B"})
    monkeypatch.undo()
    with pytest.raises(cerflow.CerflowError, match="a push broke off"):
        recognizer.push({"type": "B"})


@pytest.mark.parametrize("events", [300, 3])
def test_numbered_matches_of_a_push_that_breaks_off(monkeypatch, events):
    query = cerflow.parse("SELECT match_number() AS n, x.v AS v WHERE A AS x")
    table = numbers(events + 1)
    recognizer = query.recognizer(table.schema)
    recognizer.push(table.slice(0, 1))
    with monkeypatch.context() as patch:
        patch.setattr("cerflow.engine.matches.matches.Matches.count", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            recognizer.push(table.slice(1))
    assert recognizer.push(table.slice(1)).to_pylist()[0]["n"] == 2


def test_threads_are_stopped():
    table = numbers(60_000).append_column("t", pa.array(range(60_000)))
    matches = cerflow.parse(EXPLODING + " WITHIN 2 SECONDS").match(table, time="t", threads=2)
    running = threading.active_count()
    with checked(stopping(6)), pytest.raises(StoppedError):
        matches.count()
    assert threading.active_count() <= running


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_goes_its_own_way(name, copied):
    table = numbers(40)
    recognizer = exploding(QUERIES[name], table)
    other = copied(recognizer)
    assert other.snapshot() == recognizer.snapshot()
    other.push(table.slice(10, 15))
    assert (recognizer.events, other.events) == (10, 25)
    recognizer.push(table.slice(25, 15))
    assert other.push(table.slice(30, 1).to_pylist()[0]) is not None
    assert (recognizer.events, other.events) == (25, 26)
    expected = exploding(QUERIES[name], table)
    expected.push(table.slice(25, 15))
    assert recognizer.snapshot() == expected.snapshot()
