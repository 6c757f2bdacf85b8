"""What threads may share: queries, plans and matches; a recogniser is for one caller at a time, and says so."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Event, Thread

import pyarrow as pa
import pytest

import cerflow
from cerflow import QuerySet
from cerflow.base.errors import CerflowError, InUseError

TEXT = "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER x.v < z.v PARTITION BY k WITHIN 20 EVENTS"
ROWS = [{"type": "ABC"[i * 5 % 7 % 3], "v": i * 7 % 11, "k": f"k{i % 4}"} for i in range(400)]
TABLE = pa.Table.from_pylist(ROWS)


def test_one_recogniser_pushed_from_many_threads():
    recognizer = cerflow.parse(TEXT).recognizer(TABLE.schema)
    start = Barrier(4)

    def push(_):
        start.wait()
        for k in range(0, 400, 10):
            for what in (TABLE.slice(k, 10), ROWS[k]):
                with suppress(InUseError):
                    recognizer.push(what)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(push, range(4)))
    # Whoever was refused has changed nothing: what was accepted is still consistent.
    assert recognizer.events > 0
    restored = cerflow.Recognizer.restore(cerflow.parse(TEXT), recognizer.snapshot())
    assert restored.push(TABLE).to_pylist() == recognizer.push(TABLE).to_pylist()


@pytest.mark.parametrize("of_set", [False, True])
def test_whoever_comes_second_is_told(predicate, of_set):
    entered, leave = Event(), Event()

    @predicate("waits_here", compile=False)
    def waits(v):
        entered.set()
        assert leave.wait(300)
        return True

    text = "SELECT * WHERE A AS x ; B AS y FILTER waits_here(y.v)"
    recognizer = (QuerySet({"q": text}) if of_set else cerflow.parse(text)).recognizer(TABLE.schema)
    recognizer.push({"type": "A", "v": 1, "k": ""})
    thread = Thread(target=recognizer.push, args=({"type": "B", "v": 2, "k": ""},))
    thread.start()
    assert entered.wait(300)
    try:
        for again in (lambda: recognizer.push(ROWS[0]), lambda: recognizer.push(TABLE), recognizer.snapshot):
            with pytest.raises(InUseError, match="in use: another thread"):
                again()
    finally:
        leave.set()
        thread.join()
    assert issubclass(InUseError, CerflowError)
    assert recognizer.events == 2
    assert recognizer.push({"type": "B", "v": 2, "k": ""})


def test_a_function_that_is_called_by_a_push_may_not_push():
    said = []

    def refused(rows):
        with pytest.raises(InUseError) as raised:
            recognizer.push(ROWS[0])
        said.append(str(raised.value))

    recognizer = cerflow.parse(TEXT).recognizer(TABLE.schema, on_bad_record=refused)
    recognizer.push(pa.Table.from_pylist([{"type": None, "v": 1, "k": ""}], TABLE.schema))
    assert len(said) == 1
    assert (recognizer.events, recognizer.bad_records) == (0, 1)
    # An error ends the call.
    with pytest.raises(cerflow.InputError):
        recognizer.push(pa.table({"other": [1]}))
    recognizer.push(ROWS[0])


def test_a_query_and_its_matches_may_be_shared():
    query = cerflow.parse(TEXT)
    expected = query.match(TABLE).to_pylist()
    matches = query.match(TABLE)
    recognizer = query.recognizer(TABLE.schema)
    found = recognizer.push(TABLE.slice(0, 300))
    first = found.to_pylist()
    start = Barrier(4)

    def read(which):
        start.wait()
        for _ in range(2):
            if which == 0:
                assert matches.to_pylist() == expected
            elif which == 1:
                assert query.match(TABLE).to_pylist() == expected
            elif which == 2:
                own = query.recognizer(TABLE.schema)
                assert [m for row in ROWS for m in own.push(row)] == expected
            else:
                # What a push returned is read while the next ones run.
                assert found.to_pylist() == first
                recognizer.push(TABLE)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))
