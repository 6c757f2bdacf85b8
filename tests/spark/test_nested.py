"""Nested attributes on Spark find what they find in this process."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError, QueryWarning
from cerflow.spark import bad_records, explain, match, run, stream
from support.conformance import drawn
from support.generators.nested import below_structs
from support.runners import examples
from support.spark.file_streams import patiently
from support.spark.results import assert_same, bag

pytestmark = pytest.mark.slow

TYPES = "type string, t int, device struct<os: string, id: int, at: struct<lat: double>>, `device.os` string"
ROWS = [
    ("A", 1, ("ios", 7, (1.5,)), "own"),
    ("B", 2, ("ios", 7, None), None),
    ("A", 3, None, None),
    ("B", 4, (None, 8, (2.5,)), None),
]
QUERIES = (
    "SELECT x.device.os, y.device.id AS k WHERE (A AS x ; B AS y) FILTER x.device.os = y.device.os",
    "SELECT * WHERE A AS x FILTER x.device.at.lat > 1 AND x.\"device.os\" = 'own'",
    "SELECT x[device.os] WHERE B AS x PARTITION BY device.id",
    "DEFINE k AS device.id > 7 SELECT x WHERE k AS x WITHIN 5 SECONDS",
    "SELECT * WHERE SREMO([device.id = 7] MARK . [device.os = 'ios'] MARK)",
    "SELECT MAX(l.device.id) AS m, COUNT(l.device.os), LAST(l.device.os) AS o WHERE (A AS a : B+ AS l) "
    "FILTER SUM(l.device.id) > 6",
    "DEFINE d AS SELECT x.device.os WHERE A AS x PARTITION BY device.id ; "
    "SELECT d.device_id, y.device.id AS k FROM d, s WHERE d ; B AS y",
)


@pytest.mark.parametrize("text", QUERIES)
def test_spark_finds_what_python_finds(spark, tmp_path, text):
    frame = spark.createDataFrame(ROWS, TYPES)
    query = cerflow.parse_program(text) if text.startswith("DEFINE d") else cerflow.parse(text)
    wanted = query.match(frame.toArrow(), time="t", positions=False).to_pylist()
    assert wanted
    assert match(text, frame, time="t").toArrow().to_pylist() == wanted
    path = str(tmp_path / "events.parquet")
    pq.write_table(frame.toArrow(), path, row_group_size=2)
    assert match(text, spark.read.parquet(path), time="t").toArrow().to_pylist() == wanted
    if not text.startswith("DEFINE d"):
        cerflow.spark.register(spark)
        source = spark.read.format("cerflow").options(query=text, time="t").load(path)
        assert source.toArrow().to_pylist() == wanted


@settings(examples(8), phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_random_queries_on_spark(spark, data):
    query, table = data.draw(below_structs(*drawn(data)))
    assert_same(spark, query, table, time="t")


def test_jobs_errors_and_explanations_on_spark(spark, tmp_path):
    frame = spark.createDataFrame(ROWS, TYPES).selectExpr("struct(type AS kind, t AS at) AS meta", "device")
    text = "SELECT x.device.os WHERE A AS x PARTITION BY device.id"
    done = run(text, frame, str(tmp_path / "out"), type="meta.kind", time="meta.at")
    assert (done.matches, done.events, done.bad_records) == (1, 4, 0)
    assert pa.Table.from_pylist(spark.read.parquet(str(tmp_path / "out")).toArrow().to_pylist()).num_rows == 1
    bad = frame.selectExpr("struct(meta.kind, IF(meta.at = 2, NULL, meta.at) AS at) AS meta", "device")
    (row,) = bad_records(bad, type="meta.kind", time="meta.at", query=text).collect()
    assert row.asDict() == {"meta": row.meta, "device": row.device, "reason": "no time in 'meta.at'"}
    said = explain(text, frame, type="meta.kind", time="meta.at")
    assert "device.os" in said
    assert "\u2024" not in said
    with pytest.raises(QueryError, match="Did you mean 'os'"):
        match("SELECT * WHERE A AS x FILTER x.device.oss = 'ios'", frame, type="meta.kind")


def test_a_field_orders_events_of_one_time_on_spark(spark, tmp_path):
    rows = [("AB"[n % 2], (n // 4, -n), n) for n in range(9)]
    frame = spark.createDataFrame(rows, "type string, m struct<t: int, n: int>, v int").coalesce(1)
    text = "SELECT a.v, b.v WHERE A AS a : B AS b"
    roles = {"time": "m.t", "sequence": "m.n"}
    wanted = cerflow.parse(text).match(frame.toArrow(), positions=False, **roles).to_pylist()
    assert wanted
    assert wanted != cerflow.parse(text).match(frame.toArrow(), time="m.t", positions=False).to_pylist()
    assert match(text, frame, **roles).toArrow().to_pylist() == wanted
    path = str(tmp_path / "events.parquet")
    pq.write_table(frame.toArrow(), path)
    cerflow.spark.register(spark)
    assert spark.read.format("cerflow").options(query=text, **roles).load(path).toArrow().to_pylist() == wanted


def test_a_stream_of_json_finds_what_python_finds(spark, tmp_path):
    events = [
        {"meta": {"kind": "AB"[n % 2], "at": 1000 + 50 * n}, "device": {"id": n % 3, "os": "xyz"[n // 6 % 3]}, "v": n}
        for n in range(40)
    ]
    bad = {"meta": {"kind": "A"}, "device": {"id": 7}, "v": 1}
    lacking = {"meta": {"kind": "A", "at": 500}, "device": {"id": 1}, "v": 1}
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "events.json").write_text("\n".join(map(json.dumps, [lacking, *events, bad])))
    types = "meta struct<kind: string, at: bigint>, device struct<id: int, os: string>, v int"
    frame = spark.readStream.schema(types).json(str(tmp_path / "input"))
    query = (
        "SELECT a.device.os, b.v WHERE (A AS a ; B AS b) FILTER a.device.os = b.device.os "
        "PARTITION BY device.id WITHIN 1 SECOND"
    )

    def ended():
        running = stream(
            query, frame, str(tmp_path / "found"), checkpoint=str(tmp_path / "checkpoint"), delay="0 seconds",
            available_now=True, buckets=2, type="meta.kind", time="meta.at", on_bad_record="dead-letter",
            dead_letter=str(tmp_path / "dead"),
        )  # fmt: skip
        running.await_termination()
        return running.status

    with pytest.warns(QueryWarning, match="1 of the events have no 'device.os'"):
        status = patiently(ended)
    assert [status.totals[name] for name in ("events", "late", "bad")] == [42, 0, 1]
    assert status.lacking == {"device.os": 1}
    wanted = cerflow.parse(query).match(events, type="meta.kind", time="meta.at", positions=False).to_pylist()
    found = spark.read.parquet(str(tmp_path / "found")).drop("batch").toArrow().to_pylist()
    # The last event waits for the watermark.
    assert bag(pa.Table.from_pylist(found)) == bag(pa.Table.from_pylist([row for row in wanted if row["b_v"] < 39]))
    assert len(found) > 10
    (letter,) = spark.read.parquet(str(tmp_path / "dead")).drop("batch").toArrow().to_pylist()
    assert letter == {
        "meta": {"kind": "A", "at": None},
        "device": {"id": 7, "os": None},
        "v": 1,
        "reason": "no time in 'meta.at'",
    }
