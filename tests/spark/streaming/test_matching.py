"""Streaming DataFrames beside the same events as a table."""

import datetime as dt
import warnings
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException

import cerflow
from cerflow.base.errors import InputError, QueryWarning, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.spark import explain, match
from cerflow.spark.frames.events import EventColumns
from cerflow.spark.frames.schemas import arrow_schema
from cerflow.spark.streaming import matching
from cerflow.spark.streaming.matching import LACKING
from support.runners import ONLY_DEEP, only_deep
from support.spark.file_streams import LAST, PAIRS, disordered, events
from support.spark.results import bag


def observed(report):
    """What the results of a query count, one row for each; apart from events that lack a column."""
    return [counts for name, counts in report.observedMetrics.items() if not name.endswith(LACKING)]


def total(progress, name):
    return sum(counts[name] or 0 for report in progress for counts in observed(report))


@pytest.mark.long
def test_disorder_and_cuts_change_nothing(stream):
    table = events(240)
    coming = disordered(table, 400)
    for begin in (0, 70, 150):
        stream.add(coming.slice(begin, (70, 80, 90)[begin // 70]))
    stream.add(LAST)
    found, progress = stream.run(
        match(PAIRS, stream.frame(), time="t", sequence="seq", delay=dt.timedelta(milliseconds=400), buckets=3)
    )
    expected = cerflow.parse(PAIRS).match(table, time="t", sequence="seq", positions=False).to_arrow()
    assert found.column_names == expected.column_names
    assert bag(found) == bag(expected)
    assert expected.num_rows > 50
    relevant = sum(kind != "C" and k is not None for kind, k in zip(table["type"].to_pylist(), table["k"].to_pylist()))
    assert total(progress, "events") == total(progress, "released") == relevant
    assert total(progress, "matches") == expected.num_rows
    assert total(progress, "late") == 0


@pytest.mark.long
def test_a_restart_goes_on_and_late_events_are_counted(stream):
    table = events(60)
    roles = {"time": "t", "sequence": "seq", "delay": "1 second", "buckets": 2}
    stream.add(table.slice(0, 30)).add(table.slice(30))
    stream.run(match(PAIRS, stream.frame(), **roles))
    late = pa.table({"type": ["A", "C"], "t": [1000, 1000], "k": [1, 1], "v": [0, 0], "seq": [0, 0]})
    stream.add(late).add(LAST)
    found, progress = stream.run(match(PAIRS, stream.frame(), **roles))
    expected = cerflow.parse(PAIRS).match(table, time="t", sequence="seq", positions=False).to_arrow()
    assert bag(found) == bag(expected)
    # What no condition asks for is not missed.
    assert total(progress, "late") == 1
    changed = PAIRS.replace("1 SECOND", "2 SECONDS")
    stream.add(LAST.set_column(0, "type", pa.array(["A"])).set_column(2, "k", pa.array([1])))
    with pytest.raises(StreamingQueryException, match="another query"):
        stream.run(match(changed, stream.frame(), **roles))


@only_deep
def test_several_results_in_one_query(stream):
    table = events(60)
    stream.add(table).add(LAST)
    roles = {"time": "t", "sequence": "seq", "delay": "1 second", "buckets": 1}
    other = PAIRS.replace("<", ">")
    found, progress = stream.run(match(PAIRS, stream.frame(), **roles).union(match(other, stream.frame(), **roles)))
    expected = [
        cerflow.parse(q).match(table, time="t", sequence="seq", positions=False).to_arrow() for q in (PAIRS, other)
    ]
    assert bag(found) == bag(pa.concat_tables(expected))
    assert total(progress, "matches") == sum(rows.num_rows for rows in expected)
    assert all(rows.num_rows for rows in expected)
    assert {len(observed(report)) for report in progress} == {2}
    assert {len(report.observedMetrics) for report in progress} == {4}


@pytest.mark.long
def test_a_late_event_may_be_an_error(stream):
    late = pa.table({"type": ["A"], "t": [1000], "k": [1], "v": [0], "seq": [0]})
    stream.add(LAST).add(late)
    with pytest.raises(StreamingQueryException, match=r"type: 'A', t: 1000.*late.*1970-01-01T00:01:39"):
        stream.run(match(PAIRS, stream.frame(), time="t", delay="1 second", buckets=2, late="fail"))


@only_deep
def test_a_whole_stream_goes_through_one_bucket_with_positions(stream):
    table = events(30)
    query = "SELECT * WHERE A ; C ; B WITHIN 4 EVENTS"
    for begin in (0, 15):
        stream.add(table.slice(begin, 15))
    stream.add(LAST)
    with pytest.warns(QueryWarning, match="one task at a time recognises the whole stream"):
        frame = match(query, stream.frame(), time="t", sequence="seq", positions=True, delay="0 seconds")
    found, _ = stream.run(frame)
    expected = cerflow.parse(query).match(table, time="t", sequence="seq").to_arrow()
    assert bag(found) == bag(expected)
    assert expected.num_rows


@pytest.mark.long
@pytest.mark.parametrize("skip", [pytest.param(True, marks=ONLY_DEEP), False])
def test_bad_records_are_left_out_or_make_the_query_fail(stream, skip):
    bad = pa.table({"type": ["A", None, "B"], "t": [10, 11, 12], "k": [1, 1, 1], "v": [1, 2, 3], "seq": [1, 2, 3]})
    stream.add(bad).add(LAST)
    policy = "skip" if skip else "fail"
    frame = match(PAIRS, stream.frame(), time="t", delay="0 seconds", buckets=1, on_bad_record=policy)
    if skip:
        assert stream.run(frame)[0].num_rows == 1
    else:
        with pytest.raises(StreamingQueryException, match="no event type in 'type'"):
            stream.run(frame)


def test_refusals(spark, stream):
    frame = stream.add(LAST).frame()
    with pytest.raises(InputError, match="needs a time column"):
        match("SELECT * WHERE A ; B", frame, delay="1 second")
    with pytest.raises(ValueError, match="needs delay="):
        match(PAIRS, frame, time="t")
    with pytest.raises(ValueError, match="not a duration"):
        match(PAIRS, frame, time="t", delay="soon")
    with pytest.raises(ValueError, match="buckets"):
        match(PAIRS, frame, time="t", delay="1 second", buckets=0)
    with pytest.raises(ValueError, match="late must be"):
        match(PAIRS, frame, time="t", delay="1 second", late="skip")
    with pytest.raises(ValueError, match="max_matches"):
        match(PAIRS, frame, time="t", delay="1 second", max_matches=3)
    with pytest.raises(ValueError, match="delay is for streaming"):
        match(PAIRS, spark.createDataFrame(LAST), time="t", delay="1 second")
    with pytest.raises(UnsupportedQueryError, match="is a stream"):
        explain(PAIRS, frame, time="t")
    name, _ = matching.PROVIDER
    spark.conf.unset(name)
    with pytest.raises(InputError, match=r"spark\.conf\.set"):
        match(PAIRS, frame, time="t", delay="1 second")
    spark.conf.set(*matching.PROVIDER)


def test_no_warning_where_keys_divide_the_stream(stream):
    with warnings.catch_warnings():
        warnings.simplefilter("error", QueryWarning)
        match(PAIRS, stream.add(LAST).frame(), time="t", delay="1 second")


def test_deadlines_pass_with_the_watermark(stream):
    query = "SELECT a.v AS v, a.t AS t WHERE (A AS a NOT FOLLOWED BY B FOR 300 MILLISECONDS) PARTITION BY [k] LIMIT 1"
    table = events(90)
    for begin in (0, 45):
        stream.add(disordered(table.slice(begin, 45), 200))
    found, _ = stream.run(match(query, stream.add(LAST).frame(), time="t", sequence="seq", delay="1 second", buckets=3))
    expected = cerflow.parse(query).match(table, time="t", sequence="seq", positions=False, until=99_000).to_arrow()
    # The clock shows every deadline when it passes, not the next event.
    place = expected.column_names.index("detected_time")
    expected = expected.set_column(place, "detected_time", pc.add(expected["t"], 300))
    assert bag(found) == bag(expected)
    assert 3 < expected.num_rows < 30


UTC = dt.UTC
TIMES = [
    ("bigint", None, [0, 1500, -3, 2**62, None], ["1970-01-01 00:00:00", "1970-01-01 00:00:01.5", "-", None, None]),
    ("bigint", "s", [7], ["1970-01-01 00:00:07"]),
    ("bigint", "ns", [1_764_000_000_123_456_789, -1], ["2025-11-24 16:00:00.123456", "1969-12-31 23:59:59.999999"]),
    ("bigint", "ns", [-(2**63), 2**63 - 1], ["1677-09-21 00:12:43.145224", "2262-04-11 23:47:16.854775"]),
    ("bigint", "s", [-(2**63), 2**63 - 1, -(2**43)], [None, None, None]),
    ("double", None, [0.25, float("nan"), 1e300], ["1970-01-01 00:00:00.00025", None, None]),
    ("decimal(12,3)", "s", [Decimal("1.5")], ["1970-01-01 00:00:01.5"]),
    ("date", None, [dt.date(2026, 3, 29), dt.date(1, 1, 1)], ["2026-03-29 00:00:00", "0001-01-01 00:00:00"]),
    ("timestamp_ntz", None, [dt.datetime(2026, 3, 29, 2, 30, 0, 5)], ["2026-03-29 02:30:00.000005"]),
    ("timestamp_ntz", None, [dt.datetime(1960, 3, 29, 2, 30, 59, 5)], ["1960-03-29 02:30:59.000005"]),
    ("timestamp_ntz", None, [dt.datetime(1, 1, 1), dt.datetime.max], [str(dt.datetime.min), str(dt.datetime.max)]),
    ("timestamp", None, [dt.datetime(2026, 3, 29, 2, 30, tzinfo=UTC)], ["2026-03-29 02:30:00"]),
]


@pytest.mark.parametrize(("type", "unit", "values", "expected"), TIMES, ids=[f"{t[0]} {t[1]}" for t in TIMES])
def test_times_become_instants(spark, type, unit, values, expected):
    zone = spark.conf.get("spark.sql.session.timeZone")
    # Two in the morning is missing there on that day.
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = spark.createDataFrame([("A", value) for value in values], f"type string, t {type}")
        schema = Schema(arrow_schema(frame), "type", "t", None, unit)
        events = EventColumns(schema, frame.schema)
        rows = events.renamed(frame).select(matching._instant(events).alias("i"))
        found = [
            None if row.i is None else dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=row.i)
            for row in rows.collect()
        ]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    wanted = [
        dt.datetime(1969, 12, 31, 23, 59, 59, 997_000) if e == "-" else e and dt.datetime.fromisoformat(e)
        for e in expected
    ]
    assert found == wanted


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "window"),
    [("PARTITION BY k", "1 SECOND"), pytest.param("", "250 MILLISECONDS", marks=ONLY_DEEP)],
)
@pytest.mark.filterwarnings("ignore:one task at a time")
def test_programs_go_on_after_a_restart(stream, keys, window):
    text = f"""
        DEFINE rise AS SELECT b.v - a.v AS by WHERE (A AS a ; B AS b) FILTER a.v < b.v {keys} WITHIN {window};
        SELECT x.by AS first, y.by AS second FROM rise, log WHERE rise AS x ; log>B ; rise AS y {keys} WITHIN {window}
    """
    table = events(90)
    for begin in (0, 45):
        stream.add(disordered(table.slice(begin, 45), 200))
        if begin:
            stream.add(LAST)
        found, _ = stream.run(
            match(text, stream.frame(), time="t", sequence="seq", delay=dt.timedelta(milliseconds=200), buckets=3)
        )
    expected = cerflow.parse_program(text).match(table, time="t", sequence="seq", positions=False).to_arrow()
    assert bag(found) == bag(expected)
    assert expected.num_rows > 3
