"""Streams that write: every match once, whatever fails; dead letters, statistics, and what is refused."""

import json
import shutil
import threading
import time
from collections import Counter

import pyarrow as pa
import pytest

import cerflow
from cerflow.base.errors import InputError, QueryWarning
from cerflow.spark import stream as start
from cerflow.spark.streaming.checkpoint import prometheus_text
from cerflow.spark.streaming.matching import CHANGELOG
from cerflow.spark.streaming.processor import with_identifiers
from support.runners import only_deep
from support.spark.file_streams import LAST, PAIRS, disordered, events, patiently
from support.spark.results import bag

ROLES = {"time": "t", "sequence": "seq", "buckets": 2}


def started(stream, query=PAIRS, output="output", **given):
    arguments = {**ROLES, "delay": "1 second", "available_now": True, **given}
    target = str(stream.folder / output) if isinstance(output, str) else output
    return start(query, stream.frame(), target, checkpoint=str(stream.folder / "checkpoint"), **arguments)


def finished(stream, **given):
    def ended():
        running = started(stream, **given)
        running.await_termination()
        return running

    return patiently(ended)


def written(stream, folder="output", format="parquet"):
    return stream.spark.read.format(format).load(str(stream.folder / folder)).drop("batch").toArrow()


def expected_of(table):
    return cerflow.parse(PAIRS).match(table, time="t", sequence="seq", positions=False).to_arrow()


def ended_before_the_last_plan(stream):
    """The checkpoint as it is when a stream ends between its last micro-batch with events and the one after it."""
    for log in ("commits", "offsets"):
        folder = stream.folder / "checkpoint" / log
        last = max(int(path.name) for path in folder.iterdir() if path.name.isdigit())
        for name in (f"{last}", f".{last}.crc"):
            (folder / name).unlink()


def test_a_start_that_broke_off_before_the_first_micro_batch_was_planned_is_no_obstacle(stream):
    table = events(30)
    stream.add(table)
    (stream.folder / "checkpoint" / "offsets").mkdir(parents=True)
    (stream.folder / "checkpoint" / "offsets" / ".0.1f2e.tmp").write_text("v1\n")
    assert finished(stream).stop(flush=True) == 0
    assert bag(written(stream)) == bag(expected_of(table))


@pytest.mark.versions
def test_a_flush_releases_all_and_a_changed_query_is_refused(stream):
    table = events(60, begin=-1000)
    stream.add(disordered(table.slice(0, 30), 400))
    finished(stream)
    stream.add(disordered(table.slice(30), 400))
    running = finished(stream)
    assert running.status.remembered["waiting"] > 0
    ended_before_the_last_plan(stream)
    # The last events wait for longer than the delay of this run.
    running = finished(stream, delay="20 milliseconds")
    assert running.stop() > 0
    assert running.stop(flush=True) == 0
    assert bag(written(stream)) == bag(expected_of(table))
    status = running.status
    assert status.totals["matches"] == expected_of(table).num_rows
    assert status.totals["events"] == status.totals["released"]
    assert status.remembered["waiting"] == 0
    kept = json.loads((stream.folder / "checkpoint" / "cerflow" / "status.json").read_text())
    assert kept["totals"] == status.totals
    stream.add(table.slice(50))
    with pytest.warns(QueryWarning, match=r"[1-9] events are late: this stream was flushed up to 1970-01-01T00:00:0"):
        assert finished(stream).stop() == 0
    assert bag(written(stream)) == bag(expected_of(table))
    with pytest.raises(InputError) as refused:
        started(stream, query=PAIRS.replace("1 SECOND", "2 SECONDS"), buckets=3)
    for line in ('WITHIN 1 SECOND"', 'WITHIN 2 SECONDS"', '- "buckets": 2', '+ "buckets": 3'):
        assert line in str(refused.value)


@pytest.mark.long
def test_a_repeated_batch_replaces_what_it_wrote_and_identifiers_stay(stream):
    table = events(60)
    stream.add(table.slice(0, 30)).add(table.slice(30)).add(LAST)
    finished(stream, match_ids=True, format="json")
    before = written(stream, format="json")
    assert len(set(before["match_id"].to_pylist())) == before.num_rows == expected_of(table).num_rows
    commits = stream.folder / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in commits.glob(f"*{last}*"):
        path.unlink()
    (stream.folder / "output" / f"batch={last}" / "half-written.json").write_text("{}")
    totals = finished(stream, match_ids=True, format="json").status.totals
    assert Counter(written(stream, format="json")["match_id"].to_pylist()) == Counter(before["match_id"].to_pylist())
    assert totals["matches"] == before.num_rows


def test_late_and_bad_events_go_to_dead_letters_with_all_columns(stream):
    table = pa.table(
        {"type": ["A", None], "t": [50_000, 1], "k": [1, 2], "v": [0, 0], "seq": [0, 1], "note": ["n", "m"]}
    )
    late = pa.table({"type": ["A"], "t": [1000], "k": [1], "v": [0], "seq": [2], "note": ["too late"]})
    stream.add(table).add(late)
    given = {"late": "dead-letter", "on_bad_record": "dead-letter", "dead_letter": str(stream.folder / "dead")}
    totals = finished(stream, **given).status.totals
    assert (totals["late"], totals["bad"], totals["events"]) == (1, 1, 3)
    letters = sorted(written(stream, "dead").to_pylist(), key=lambda row: row["seq"])
    assert [(row["note"], row["type"], row["reason"]) for row in letters] == [
        ("m", None, "no event type in 'type'"),
        ("too late", "A", "late: its 't' is before the watermark, 1970-01-01T00:00:49Z"),
    ]


def test_dead_letters_without_types_have_the_columns_of_the_input(stream):
    table = pa.table(
        {"type": ["A", "A"], "t": [50_000, None], "k": [1, 2], "v": [0, 0], "seq": [0, 1], "note": ["n", "m"]}
    )
    stream.add(table)
    given = {"on_bad_record": "dead-letter", "dead_letter": str(stream.folder / "dead"), "type": None}
    assert finished(stream, query="SELECT * WHERE EVENT AS x", **given).status.totals["bad"] == 1
    letters = written(stream, "dead")
    assert {*letters.column_names} == {*table.column_names, "reason"}
    assert letters["reason"].to_pylist() == ["no time in 't'"]


@pytest.mark.long
def test_a_function_gets_each_batch_and_a_limit_stops_the_query(stream):
    stream.add(events(30)).add(LAST)
    seen = []
    finished(stream, output=lambda frame, batch: seen.append((batch, frame.count())))
    assert [batch for batch, _ in seen] == sorted({batch for batch, _ in seen})
    assert sum(count for _, count in seen) == expected_of(events(30)).num_rows
    shutil.rmtree(stream.folder / "checkpoint")
    with pytest.raises(InputError, match=r"bucket \d remembers .* more than state_limit=5"):
        finished(stream, state_limit=5)


def awaited(condition, running):
    """Wait for a condition of a query that runs."""
    end = time.monotonic() + 300
    while not condition():
        assert running.query.isActive, running.query.exception()
        assert time.monotonic() < end, running.status
        time.sleep(0.1)


def ticks(stream, running):
    """How many times of the clock a query has read, and how many files of them are there."""
    sources = [source for report in running.query.recentProgress for source in report.sources]
    read = sum(source.numInputRows for source in sources if "/cerflow/clock" in source.description)
    return read, len(list((stream.folder / "checkpoint" / "cerflow" / "clock").glob("[0-9]*.json")))


@pytest.mark.long
def test_time_goes_on_in_silence(stream):
    """First all that waits is released, then the clock shows a deadline after it, also after a restart."""
    table = pa.table({"type": ["A", "A"], "t": [5000, 5500], "k": [1, 2], "v": [1, 2], "seq": [0, 1]})
    query = "SELECT a.v AS v WHERE (A AS a NOT FOLLOWED BY B FOR {}) PARTITION BY [k]"
    stream.add(table)
    assert finished(stream, query=query.format("3 SECONDS")).status.totals["released"] == 0
    running = started(stream, query=query.format("3 SECONDS"), available_now=False, idle_timeout="1 second")
    awaited(lambda: running.status.totals["matches"] == 2, running)
    assert running.status.totals["released"] == 2
    awaited(lambda: ticks(stream, running)[0] >= 5, running)
    stream.add(LAST)
    awaited(lambda: running.status.watermark > "1970-01-01T00:01", running)
    read, there = ticks(stream, running)
    assert there < read
    running.stop()
    found = written(stream).to_pylist()
    assert sorted((row["v"], row["detected_time"]) for row in found) == [(1, 8000), (2, 8500)]


@pytest.mark.long
def test_silence_releases_what_waits_once_if_no_deadline_matters(stream):
    table = events(20)
    stream.add(table)
    running = started(stream, available_now=False, idle_timeout="1 second")
    awaited(lambda: running.status is not None and running.status.remembered["waiting"] == 0, running)
    read, _ = ticks(stream, running)
    assert running.status.totals["released"] == running.status.totals["events"] > 5
    running.stop()
    assert read == 1
    assert bag(written(stream)) == bag(expected_of(table))


@only_deep
def test_the_number_of_shuffle_partitions_stays_that_of_the_first_start(stream):
    table = events(60)
    stream.add(table.slice(0, 30))
    finished(stream, buckets=6)
    name = "spark.sql.shuffle.partitions"
    before = stream.spark.conf.get(name)
    stream.add(table.slice(30))
    try:
        stream.spark.conf.set(name, str(int(before) + 2))
        finished(stream, buckets=6).stop(flush=True)
    finally:
        stream.spark.conf.set(name, before)
    partitions = {path.name for path in (stream.folder / "checkpoint" / "state" / "0").glob("[0-9]*")}
    assert partitions == {str(n) for n in range(int(before))}
    assert bag(written(stream)) == bag(expected_of(table))


def test_a_micro_batch_has_no_more_tasks_than_buckets_and_writes_changes_and_metrics(stream):
    before = {name: stream.spark.conf.get(name, None) for name in (CHANGELOG[0], "spark.sql.shuffle.partitions")}
    status = finished(stream.add(events(30)).add(LAST), buckets=1).status
    assert {name: stream.spark.conf.get(name, None) for name in before} == before
    state = stream.folder / "checkpoint" / "state" / "0"
    assert [path.name for path in state.glob("[0-9]*")] == ["0"]
    assert list(state.glob("0/*.changelog"))
    assert_metrics_for_prometheus(stream, status)


@pytest.mark.long
def test_the_end_breaks_off_a_micro_batch_without_a_failure(stream):
    begun = threading.Event()

    def sink(matches, batch):
        begun.set()
        time.sleep(2)
        raise ValueError("x\n" * 20_000)

    running = started(stream.add(events(30)), output=sink, available_now=False)
    assert begun.wait(120)
    running.stop()
    assert running.query.exception() is None
    assert finished(stream).status.totals["events"] > 5


def assert_metrics_for_prometheus(stream, status):
    text = (stream.folder / "checkpoint" / "cerflow" / "metrics.prom").read_text()
    assert text == prometheus_text(status, str(stream.folder / "checkpoint"))
    found = dict(line.split(" ") for line in text.splitlines() if not line.startswith("#"))
    label = f'{{checkpoint="{stream.folder / "checkpoint"}"}}'
    assert int(found[f"cerflow_stream_matches_total{label}"]) == status.totals["matches"] > 0
    assert float(found[f"cerflow_stream_watermark_seconds{label}"]) == 99.0
    assert 0 <= int(found[f"cerflow_stream_buckets_held{label}"]) <= int(found[f"cerflow_stream_buckets{label}"])
    described = [line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert described == [name.partition("{")[0] for name in found]
    assert r'{checkpoint="a\\b\"\n"}' in prometheus_text(status, 'a\\b"\n')


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"format": "xml"}, "format must be"),
        ({"format": "kafka"}, "output is"),
        ({"output": None}, "output is"),
        ({"output": None, "format": "kafka"}, "kafka.bootstrap.servers"),
        ({"late": "keep"}, "late must be"),
        ({"on_bad_record": "keep"}, "on_bad_record must be"),
        ({"late": "dead-letter"}, "goes together"),
        ({"dead_letter": "x"}, "goes together"),
        ({"trigger": "1 second"}, "available_now ends it"),
    ],
)
def test_arguments_that_do_not_go_together(stream, given, says):
    with pytest.raises(ValueError, match=says):
        started(stream.add(LAST), **given)
    assert not (stream.folder / "checkpoint").exists()


def test_batches_are_refused(spark, tmp_path):
    with pytest.raises(InputError, match="streaming DataFrame"):
        start(PAIRS, spark.createDataFrame(LAST), str(tmp_path / "o"), checkpoint=str(tmp_path / "c"), delay="1 second")


def test_identifiers_are_those_of_content_and_number_equal_matches():
    batch = pa.record_batch({"a": [1, 2, 1], "b": [None, "x", None]})
    first, again = (with_identifiers(batch, "query", Counter())["match_id"].to_pylist() for _ in range(2))
    assert first == again
    assert len(set(first)) == 3
    assert first[0].split("-")[0] == first[2].split("-")[0]
    backwards = with_identifiers(batch.take(pa.array([2, 1, 0])), "query", Counter())["match_id"].to_pylist()
    assert set(backwards) == set(first)
    assert not set(with_identifiers(batch, "other", Counter())["match_id"].to_pylist()) & set(first)
