"""What Spark refuses, and when: before any job, if that is possible."""

from inspect import Parameter, signature

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import cerflow
from cerflow.base.errors import ArgumentError, InputError, QueryError, QuerySyntaxError, UnsupportedQueryError
from cerflow.spark import bad_records, explain, match, run, stream
from support.spark.results import assert_same

pytestmark = pytest.mark.slow

QUERY = "SELECT * WHERE A AS a ; B AS b PARTITION BY k"
EVENTS = pa.table(
    {
        "type": ["A", "B", None, "A", "B", "B"],
        "k": [1, None, None, 1, 1, 1],
        "t": pa.array([1.0, 2.0, 3.0, None, float("nan"), 6.0], pa.float64()),
        "v": ["u", "v", "w", "x", "y", "z"],
    }
)


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(EVENTS)


@pytest.mark.parametrize(
    ("query", "roles", "error", "says"),
    [
        ("SELECT * WHERE", {}, QuerySyntaxError, "line 1"),
        ("SELECT * WHERE A AS a FILTER a.w > 3", {}, QueryError, "'w'"),
        ("SELECT * WHERE A AS a FILTER a.v > 3", {}, QueryError, "column"),
        ("SELECT * WHERE A PARTITION BY kk", {}, QueryError, "kk"),
        ("SELECT * WHERE A WITHIN 3 SECONDS", {}, QueryError, "time"),
        (QUERY, {"type": "typ"}, InputError, "did you mean 'type'"),
        (QUERY, {"time": "tt"}, InputError, "time column 'tt'"),
        (QUERY, {"time": "v"}, InputError, "must be a timestamp"),
        (QUERY, {"sequence": "vv"}, InputError, "sequence column 'vv'"),
        (QUERY, {"stream": "q"}, InputError, "stream column 'q'"),
        ("SELECT MAX * WHERE A+ AS a ; B AS b FILTER a.v != b.v", {}, UnsupportedQueryError, "MAX"),
        (QUERY, {"on_bad_record": "dead-letter"}, ValueError, "bad_records"),
    ],
)
def test_wrong_queries_and_columns_are_refused_at_once(frame, query, roles, error, says):
    with pytest.raises(error, match=says):
        match(query, frame, **roles)


@pytest.mark.parametrize("queries", [[QUERY, QUERY], cerflow.QuerySet({"one": QUERY})])
def test_spark_matches_one_query_at_a_time(queries):
    for function in (match, explain):
        with pytest.raises(ArgumentError, match="one query or one program at a time; call"):
            function(queries, EVENTS)


def test_streams_and_other_tables_are_refused_where_batches_are_needed(spark):
    rates = spark.readStream.format("rate").load().selectExpr("'A' AS type", "value AS k")
    with pytest.raises(UnsupportedQueryError, match="is a stream"):
        bad_records(rates)
    with pytest.raises(InputError, match="not a Spark DataFrame"):
        match(QUERY, EVENTS)


@pytest.mark.parametrize("bound", [{"max_matches": 3}, {"until": 3}])
def test_bounds_of_batches_are_refused_by_streams(spark, tmp_path, bound):
    rates = spark.readStream.format("rate").load().selectExpr("'A' AS type", "value AS k", "timestamp AS t")
    with pytest.raises(ValueError, match="is for batches"):
        match(QUERY, rates, time="t", delay="1 second", **bound)
    with pytest.raises(ValueError, match="is for batches"):
        stream(QUERY, rates, str(tmp_path / "out"), checkpoint=str(tmp_path), delay="1 second", time="t", **bound)


def test_arguments_that_do_not_exist_are_refused(frame, tmp_path):
    for call in (match, lambda *given, **more: run(*given, str(tmp_path / "out"), **more)):
        with pytest.raises(TypeError, match="tyme"):
            call(QUERY, frame, tyme="t")


def test_types_that_tasks_cannot_get_are_refused_where_they_are_needed(spark):
    frame = spark.sql("SELECT 'A' AS type, 1 AS k, make_interval(1) AS i")
    with pytest.raises(InputError, match="'i' has type interval"):
        match("SELECT * WHERE A", frame)
    assert match("SELECT a[k] WHERE A AS a", frame).count() == 1


@pytest.mark.parametrize("query", [QUERY, "SELECT * WHERE A ; B", f"{QUERY} CONSUME BY ANY"])
def test_a_bad_record_fails_the_job_and_shows_its_values(spark, query):
    # Also where it has no key and would belong to no substream.
    frame = spark.createDataFrame(EVENTS.slice(0, 3))
    with pytest.raises(PySparkException) as caught:
        match(query, frame, time="t").collect()
    shown = r"BadRecordError: row {type: null, k: null, t: 3.0, v: 'w'}: no event type in 'type'"
    assert shown in str(caught.value)


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("query", [QUERY, "SELECT * WHERE A ; B"])
def test_bad_records_may_be_left_out(spark, query, positions):
    assert assert_same(spark, query, EVENTS, time="t", positions=positions, on_bad_record="skip")
    assert assert_same(spark, query, EVENTS, positions=positions, on_bad_record="skip")


@pytest.mark.parametrize(
    "query", ["SELECT * WHERE A AS a ; B AS b FILTER a.n < b.n", "SELECT * WHERE A ; B PARTITION BY n"]
)
def test_values_that_cannot_be_held(spark, tmp_path, query):
    table = pa.table({"type": ["A", "A", "B", "C"], "n": [1, -(2**63), 1, -(2**63)], "t": [1, 2, 3, 4]})
    frame = spark.createDataFrame(table)
    with pytest.raises(PySparkException, match="the value -9223372036854775808 of 'n' is not between"):
        match(query, frame, time="t").collect()
    assert_same(spark, query, table, time="t", on_bad_record="skip")
    (one, other) = bad_records(frame, time="t", query=query).collect()
    assert one.reason == other.reason == f"a value of 'n' is not between -{2**63 - 1} and {2**63 - 1}"
    result = run(query, frame, str(tmp_path / "out"), time="t", on_bad_record="skip")
    assert (result.events, result.bad_records, result.reasons) == (2, 2, {one.reason: 2})


def test_bad_records_can_be_had(frame):
    found = bad_records(frame, time="t").toArrow().to_pylist()
    refused = []
    cerflow.parse(QUERY).match(EVENTS, time="t", on_bad_record=refused.append)
    (expected,) = refused
    assert sorted((r["v"], r["reason"]) for r in found) == sorted((r["v"], r["reason"]) for r in expected.to_pylist())
    assert list(found[0]) == [*EVENTS.column_names, "reason"]
    assert bad_records(frame).count() == 1
    with pytest.raises(InputError, match="type column"):
        bad_records(frame, type="tipe")


@pytest.mark.parametrize("function", [match, explain, run, stream])
def test_signatures_name_all_arguments(function):
    parameters = signature(function).parameters
    assert Parameter.VAR_KEYWORD not in {parameter.kind for parameter in parameters.values()}
    assert (parameters["type"].default, parameters["positions"].default) == ("type", False)
    assert ("until" in parameters) == ("max_matches" in parameters) == (function is not stream)
