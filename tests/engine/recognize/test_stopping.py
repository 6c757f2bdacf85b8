"""Pushes that are stopped, interrupted or short of memory: they change nothing."""

import contextlib
import copy
import threading

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.engine import layout
from cerflow.engine.layout import EventArrays
from cerflow.engine.state.compact import grown, kept_arrays
from cerflow.engine.state.memory import Memory
from cerflow.engine.stopping import checked

#: Hardly any four events are not a match, so nearly each triple of values is an entry of its own.
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
    with pytest.raises(
        cerflow.MemoryLimitError,
        match=r"needs [0-9,]+ bytes so far, more than the 20,000,000 bytes that 'memory' allows",
    ) as raised:
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


class Failing:
    """NumPy with a countdown of the calls inside `Memory.make_room`; the one at zero finds no memory."""

    def __init__(self, monkeypatch):
        self.left, self.calls, self._inside = -1, 0, False
        make_room = Memory.make_room

        def watched(*arguments):
            self._inside = True
            try:
                make_room(*arguments)
            finally:
                self._inside = False

        monkeypatch.setattr(Memory, "make_room", watched)
        for module in ("state.memory", "state.compact", "declared_arrays"):
            monkeypatch.setattr(f"cerflow.engine.{module}.np", self)

    def __getattr__(self, name):
        found = getattr(np, name)
        if not self._inside or isinstance(found, type) or not callable(found):
            return found

        def called(*arguments, **named):
            self.calls += 1
            self.left -= 1
            if self.left == 0:
                raise MemoryError
            return found(*arguments, **named)

        return called


GUESSING = "SELECT * WHERE (A AS a ; B AS b) UNLESS ((C AS c)+ ; D AS d FILTER c.v <> b.v AND d.v = a.v)"
GROWING = {
    "collections, members": (GUESSING, 30, 12),
    "partitions": (GUESSING + " PARTITION BY k", 10, 60),
    "configurations": ("SELECT * WHERE (A AS a ; B AS b ; C AS c) FILTER a.v <> b.v AND a.k <> c.k", 20, 60),
    "choices": ("SELECT NEXT * WHERE (A AS a ; B AS b ; C AS c) FILTER a.v <> b.v AND a.k <> c.k", 20, 60),
    "detections": ("SELECT * WHERE (A AS a OR EVENT AS a) ; (A AS c OR EVENT AS c) ; B AS b", 10, 90),
}


def lettered(count, seed):
    draw = np.random.default_rng(seed)
    return pa.table({"type": draw.choice(list("ABCD"), count), **dict(zip("vk", draw.integers(0, 50, (2, count))))})


@pytest.mark.parametrize("name", GROWING)
def test_every_allocation_may_fail(monkeypatch, name):
    text, before, count = GROWING[name]
    for limit, value in (("FIRST_NODES", 64), ("MEMBERS", 1), ("COLLECTIONS", 1)):
        monkeypatch.setattr(limits, limit, value)
    query, first, table = cerflow.parse(text), lettered(before, 1), lettered(count, 2)
    failing = Failing(monkeypatch)

    def begun():
        recognizer = query.recognizer(table.schema)
        recognizer.push(first)
        return recognizer, recognizer.snapshot()

    recognizer, snapshot = begun()
    failing.calls = 0
    expected = recognizer.push(table).count()
    assert failing.calls
    for number in range(1, failing.calls + 1, 1 + failing.calls // 60):
        recognizer, snapshot = begun()
        failing.left = number
        with pytest.raises(MemoryError):
            recognizer.push(table)
        assert (recognizer.events, recognizer.snapshot()) == (before, snapshot)
        assert recognizer.push(table).count() == expected


@pytest.mark.parametrize("lost", ["scratch", "classes", "members", "collections"])
def test_room_is_made_wholly_or_not_at_all(monkeypatch, lost):
    # The arrays are looked at themselves, as no push could be undone that broke off between them.
    text = GROWING["choices" if lost in ("scratch", "classes") else "collections, members"][0]
    recognizer = cerflow.parse(text).recognizer(lettered(1, 1).schema)
    recognizer.push(lettered(30, 1))
    memory = recognizer._machine.memory
    if lost == "scratch":
        capacity = len(memory.scratch.updates)
        monkeypatch.setattr("cerflow.engine.state.compact.first_ranking", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            memory.make_room(layout.FULL_SCRATCH, _events(), 0)
        assert len(memory.scratch.updates) == capacity
        return
    before = kept_arrays(memory.image())
    failing = Failing(monkeypatch)
    lacking = {"classes": layout.FULL_CONFIGS, "members": layout.FULL_MEMBERS, "collections": layout.FULL_SETS}[lost]
    memory.scratch = memory.scratch._replace(updates=grown(memory.scratch.updates, 100_000))
    for failing.left in range(1, 100):
        left = failing.left
        with contextlib.suppress(MemoryError):
            memory.make_room(lacking, _events(), 0)
        if failing.left > 0:
            break
        assert failing.left <= 0 < left
        assert _are_equal(kept_arrays(memory.image()), before)
        assert len(memory.state.table) == 2 * len(memory.state.config)
        assert len(memory.state.classes) in (1, len(memory.state.config) + 1)
    assert _are_equal(kept_arrays(memory.image()), before)


def _are_equal(some, others):
    return some.keys() == others.keys() and all(np.array_equal(some[name], others[name]) for name in some)


def _events():
    words = np.full((1, 1), layout.NO_BOUND, np.int64)
    row = words[0]
    return EventArrays(np.zeros(1, np.int32), row, row, row, words, words, row, row, row, row)


@pytest.mark.parametrize("text", [GUESSING, "SELECT * WHERE ((A AS x)+ ; B AS y) FILTER x.v <> y.v"])
@pytest.mark.parametrize("partition", ["", " PARTITION BY g"])
def test_guesses_without_bound_are_ended(monkeypatch, text, partition):
    monkeypatch.setattr(limits, "GUESSED_CONTENTS", 100)
    monkeypatch.setattr(limits, "GUESSED_TOGETHER", 100)
    monkeypatch.setattr(limits, "COLLECTIONS", 256)
    table = lettered(200, 1).append_column("g", pa.array([1] * 200))
    table = table.set_column(1, "v", pa.array(range(200)))
    recognizer = cerflow.parse(text + partition).recognizer(table.schema)
    recognizer.push(table.slice(0, 8))
    before = recognizer.snapshot()
    for push in (table.slice(8), table.slice(8).to_pylist()):
        with pytest.raises(cerflow.MemoryLimitError, match=r"more than 100 different sets of values \(.*v\).*WITHIN"):
            recognizer.push(push)
        assert (recognizer.events, recognizer.snapshot()) == (8, before)
    refused = False
    for event in table.slice(8).to_pylist():
        at, before = recognizer.events, recognizer.snapshot()
        try:
            recognizer.push(event)
        except cerflow.MemoryLimitError:
            refused = True
            break
    assert refused
    assert (recognizer.events, recognizer.snapshot()) == (at, before)


def test_the_limit_is_one_of_each_substream(monkeypatch):
    monkeypatch.setattr(limits, "GUESSED_CONTENTS", 50)
    monkeypatch.setattr(limits, "COLLECTIONS", 1)
    table = pa.table({"type": ["A"] * 400, "v": range(400), "g": [k // 4 for k in range(400)]})
    query = cerflow.parse("SELECT COUNT(*) AS n WHERE ((A AS x)+ ; B AS y) FILTER x.v <> y.v PARTITION BY g")
    # 15 sets for each of 100 substreams
    assert query.match(table).count() == 0


def test_one_content_for_all_runs_has_no_limit(monkeypatch):
    monkeypatch.setattr(limits, "GUESSED_CONTENTS", 1)
    monkeypatch.setattr(limits, "COLLECTIONS", 1)
    table = lettered(3000, 1)
    text = "SELECT * WHERE ((A AS a ; B AS b) WITHIN 5 EVENTS) UNLESS (C AS c ; D AS d FILTER c.v <> b.v AND d.v = a.v)"
    # They keep values without bound, but not sets of values.
    assert all("for good" in str(warning) for warning in cerflow.parse(text).warnings())
    cerflow.parse(text).recognizer(table.schema).push(table)


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
        with pytest.raises(cerflow.CerflowError, match="an earlier push failed midway"):
            call()
    assert cerflow.Recognizer.restore(QUERIES["query"], before).events == 10


def test_a_refused_event_behind_a_push_that_could_be_undone(monkeypatch):
    # What measures the window went on in the large push, whose state was kept, so the last one may fail.
    monkeypatch.setattr(limits, "COPIED_BYTES", 0)
    monkeypatch.setattr(limits, "COPIED_BYTES_EACH", 1000)
    monkeypatch.setattr(limits, "COPIED_BYTES_A_SECOND", 0)
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y FILTER x.v <> y.v WITHIN 1000000 [v]")

    def events(count, first):
        return pa.table({"type": ["A"] * count, "v": range(first, first + count)})

    recognizer = query.recognizer(events(1, 0).schema)
    for batch in (events(3000, 0), events(5, 3500), events(3000, 10_000)):
        recognizer.push(batch)
    with pytest.raises(cerflow.BadRecordError, match="decreases"):
        recognizer.push(events(5, 5000))
    recognizer.push(events(5, 20_000))
    assert recognizer.events == 6010


def test_a_refused_push_that_drops_events_first(monkeypatch):
    for name in ("COPIED_BYTES", "COPIED_BYTES_EACH", "COPIED_BYTES_A_SECOND"):
        monkeypatch.setattr(limits, name, 0)
    monkeypatch.setattr(limits, "EVENT_SLACK", 5)
    table = numbers(300)
    recognizer = exploding(QUERIES["query"], table)
    before, store = recognizer.snapshot(), recognizer._machine.store
    store._limit = 0
    assert store.wants_cleaning
    with pytest.raises(cerflow.BadRecordError):
        recognizer.push(table.slice(10).set_column(0, "type", pa.nulls(290, pa.string())))
    assert (recognizer.events, recognizer.snapshot()) == (10, before)


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
    with pytest.raises(cerflow.CerflowError, match="an earlier push failed midway"):
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


@pytest.mark.parametrize(
    ("text", "read", "checks"),
    [
        ("SELECT * WHERE A AS a ; A AS b WITHIN 3 EVENTS", lambda found: found.count(), 3),
        ("SELECT * WHERE A AS a ; A AS b WITHIN 3 EVENTS", lambda found: found.to_pylist(), 0),
        ("SELECT NEXT * WHERE A AS a ; A AS b WITHIN 3 EVENTS", lambda found: found.to_pylist(), 1),
        (
            "SELECT * WHERE A AS a ; A AS b WITHIN 3 EVENTS",
            lambda found: found.aggregate({"v": ("a", "v", "sum")}).to_pylist(),
            3,
        ),
    ],
)
def test_reading_matches_is_stopped(monkeypatch, text, read, checks):
    monkeypatch.setattr("cerflow.engine.stopping._PORTION", 10)
    matches = cerflow.parse(text).recognizer(numbers(0).schema).push(numbers(200))
    with checked(stopping(checks)), pytest.raises(StoppedError):
        read(matches)
    # What was counted before is right, and the rest follows.
    assert read(matches) == read(cerflow.parse(text).recognizer(numbers(0).schema).push(numbers(200)))
