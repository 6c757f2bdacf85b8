"""Recognisers of programs: failed pushes, snapshots, bad records."""

from __future__ import annotations

from copy import copy
from typing import Literal

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import BadRecordError, InputError, InUseError, SnapshotError
from support.programs import BURSTS, DIP


def test_without_events_there_are_no_matches() -> None:
    program = cerflow.parse_program(BURSTS)
    assert program.match([]).count() == 0
    schema = pa.schema([("type", pa.string()), ("t", pa.timestamp("us")), ("machine", pa.string()), ("v", pa.int64())])
    assert program.match(schema.empty_table(), time="t").count() == 0
    assert program.recognizer(schema, time="t").push(schema.empty_table()).count() == 0


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_with_a_zone(zone: str | None, unit: Literal["s", "ms", "us", "ns"]) -> None:
    program = cerflow.parse_program(
        "DEFINE d AS SELECT a.v AS v WHERE A AS a NOT FOLLOWED BY B FOR 2 SECONDS; SELECT x.v AS v FROM d WHERE d AS x"
    )
    times = pa.array([1, 2, 5, 6], pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))
    table = pa.table({"type": list("ABAB"), "t": times, "v": [1, 2, 3, 4]}).slice(0, 3)
    recognizer = program.recognizer(table.schema, time="t")
    assert sum(recognizer.push(table.slice(k, 1)).count() for k in range(3)) == 0
    deadline = pa.scalar(7, pa.timestamp("s", zone)).cast(times.type)
    (found,) = recognizer.advance(deadline)
    assert found["v"] == 3
    assert pa.scalar(found["detected_time"], times.type) == deadline
    assert program.match(table, time="t", until=deadline).count() == 1


def test_a_failed_push_changes_nothing() -> None:
    program = cerflow.parse_program(
        "DEFINE d AS SELECT b.v AS v WHERE A AS a ; A AS b; SELECT x.v AS v FROM d WHERE d AS x WITHIN 5 [v]"
    )
    schema = pa.schema([("type", pa.string()), ("v", pa.int64())])
    recognizer = program.recognizer(schema)
    assert recognizer.push([{"type": "A", "v": 1}, {"type": "A", "v": 5}]).count() == 1
    before = recognizer.snapshot()
    with pytest.raises(BadRecordError, match="decreases"):
        recognizer.push([{"type": "A", "v": 2}])
    assert recognizer.snapshot() == before
    assert [match["v"] for match in recognizer.push({"type": "A", "v": 6})] == [6, 6]
    assert recognizer.events == 3


def test_a_push_that_breaks_off_stops_the_recogniser(monkeypatch: pytest.MonkeyPatch) -> None:
    program = cerflow.parse_program(DIP + "SELECT d.low AS low FROM dip WHERE dip AS d")
    schema = pa.schema([("type", pa.string()), ("v", pa.int64())])
    recognizer = program.recognizer(schema)
    recognizer.push({"type": "A", "v": 1})
    before = recognizer.snapshot()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("cerflow.api.programs.merged_streams.Merging.add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            recognizer.push({"type": "B", "v": 2})
        assert recognizer.snapshot() == before
        # Where a copy of what is remembered would cost too much, there is nothing to go back to.
        patch.setattr("cerflow.base.limits.COPIED_BYTES", 0)
        with pytest.raises(KeyboardInterrupt):
            recognizer.push({"type": "B", "v": 2})
    for call in (lambda: recognizer.push({"type": "B", "v": 2}), recognizer.snapshot):
        with pytest.raises(cerflow.CerflowError, match="an earlier push failed midway"):
            call()
    recognizer.take_over(before)
    assert recognizer.push({"type": "B", "v": 2}).count() == 1


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        # Beyond 2^53 a key that is a float elsewhere cannot distinguish integers.
        (
            "DEFINE d AS SELECT b.v AS w FROM log WHERE A ; A AS b; SELECT * FROM d, log WHERE d PARTITION BY [w, f]",
            r"2\^53",
        ),
        (
            "DEFINE d AS SELECT b.v AS f FROM log WHERE A ; A AS b; SELECT * FROM d, log WHERE d",
            "'d' does not fit double",
        ),
    ],
)
def test_what_a_statement_refuses_of_a_definition_is_undone(text: str, refused: str) -> None:
    schema = pa.schema([("type", pa.string()), ("v", pa.int64()), ("f", pa.float64())])
    recognizer = cerflow.parse_program(text).recognizer(schema)
    recognizer.push([{"type": "A", "v": 1}])
    before = recognizer.snapshot()
    with pytest.raises(InputError, match=refused):
        recognizer.push({"type": "A", "v": 2**53 + 1})
    assert recognizer.snapshot() == before
    assert recognizer.push({"type": "A", "v": 2}).count() == 1


def test_bad_records_of_the_input() -> None:
    program = cerflow.parse_program(DIP + "SELECT d.low AS low FROM dip WHERE dip AS d")
    rows = [{"type": "A", "v": 1}, {"type": None, "v": 7}, {"type": "B", "v": 2}]
    with pytest.raises(BadRecordError):
        program.match(rows)
    assert program.match(rows, on_bad_record="skip").count() == 1
    recognizer = program.recognizer(pa.Table.from_pylist(rows).schema, on_bad_record="skip")
    assert recognizer.push(rows).count() == 1
    assert (recognizer.events, recognizer.bad_records) == (2, 1)


def test_snapshots_of_something_else_are_refused() -> None:
    program = cerflow.parse_program(DIP + "SELECT d.low AS low FROM dip WHERE dip AS d")
    schema = pa.schema([("type", pa.string()), ("v", pa.int64())])
    data = program.recognizer(schema).snapshot()
    other = cerflow.parse_program(DIP + "SELECT d.high AS low FROM dip WHERE dip AS d")
    with pytest.raises(SnapshotError, match="another program"):
        other.restore(data, schema)
    with pytest.raises(SnapshotError, match="other columns"):
        program.restore(data, pa.schema([("type", pa.string()), ("v", pa.float64())]))
    with pytest.raises(SnapshotError):
        program.restore(data[:-3], schema)


def test_milliseconds_that_are_named_are_those_that_are_not() -> None:
    program = cerflow.parse_program(DIP + "SELECT d.low AS low FROM dip WHERE dip AS d")
    schema = pa.schema([("type", pa.string()), ("v", pa.int64()), ("t", pa.int64())])
    recognizer = program.recognizer(schema, time="t", time_unit="ms")
    assert not recognizer.push({"type": "A", "v": 2, "t": 0}).count()
    for roles in ({"time_unit": "ms"}, {}):
        assert program.restore(recognizer.snapshot(), schema, time="t", **roles).events == 1
    assert copy(recognizer).push({"type": "B", "v": 1, "t": 1}).count() == 1
    with pytest.raises(SnapshotError, match="other columns"):
        program.restore(recognizer.snapshot(), schema, time="t", time_unit="s")


def test_a_recogniser_is_for_one_caller_at_a_time() -> None:
    program = cerflow.parse_program(DIP + "SELECT d.low AS low FROM dip WHERE dip AS d")
    rows = [{"type": None, "v": 1}]
    inner: list[type[Exception]] = []

    def again(_: pa.Table) -> None:
        for call in (recognizer.snapshot, lambda: recognizer.push([])):
            try:
                call()
            except InUseError as error:
                inner.append(type(error))

    recognizer = program.recognizer(pa.schema([("type", pa.string()), ("v", pa.int64())]), on_bad_record=again)
    recognizer.push(rows)
    assert inner == [InUseError, InUseError]
