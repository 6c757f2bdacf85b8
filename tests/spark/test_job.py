"""A whole job: what is written, what is counted, and what a failure leaves."""

import json
import threading
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import cerflow
from cerflow.base import limits
from cerflow.base.errors import (
    BadRecordError,
    InputError,
    OutputError,
    PredicateError,
    QuerySyntaxError,
    TooManyMatchesError,
)
from cerflow.spark import run
from cerflow.spark.frames.output import exists, observed, write_frame
from support.spark.results import bag

pytestmark = pytest.mark.slow

QUERY = "SELECT a, b, a.v + b.v AS total WHERE A AS a ; B AS b PARTITION BY k WITHIN 10 SECONDS"
EVENTS = pa.table(
    {
        "type": ["A", "B", None, "A", "B", "B", "A", "B"],
        "k": ["x", "x", None, "x", "x", "y", "y", "y"],
        "t": pa.array([1.0, 2.0, 3.0, None, float("nan"), 6.0, 7.0, 8.0], pa.float64()),
        "v": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)
CLEAN = EVENTS.slice(5, 3)
#: Rows 2, 3, 4.
REASONS = {"no event type in 'type'": 1, "no time in 't'": 2}


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(EVENTS).repartition(2)


def tree(directory):
    """The files of a directory and what is in them, without the names that Spark gives them."""
    files = Path(directory).rglob("part-*")
    return sorted((str(p.parent.relative_to(directory)), p.read_bytes()) for p in files)


@pytest.mark.versions
def test_counts_and_dead_letters(spark, frame, tmp_path):
    output, dead = str(tmp_path / "out"), str(tmp_path / "dead")
    result = run(QUERY, frame, output, time="t", on_bad_record="dead-letter", dead_letter=dead, partition_by=["k"])
    assert (result.matches, result.events, result.bad_records, result.reasons) == (2, 5, 3, REASONS)
    assert result.written
    assert result.seconds > 0
    expected = cerflow.parse(QUERY).match(EVENTS, time="t", positions=False, on_bad_record="skip").to_arrow()
    written = spark.read.parquet(output).select(*expected.column_names).toArrow()
    assert bag(written) == bag(expected)
    assert sorted(p.name for p in tmp_path.joinpath("out").iterdir() if p.name[0] not in "._") == ["k=x", "k=y"]
    letters = spark.read.parquet(dead).toArrow().to_pylist()
    assert sorted((row["v"], row["reason"]) for row in letters) == [
        (3, "no event type in 'type'"),
        (4, "no time in 't'"),
        (5, "no time in 't'"),
    ]


def test_matches_are_bounded_and_counts_can_be_text(spark, tmp_path):
    letters = spark.createDataFrame(pa.table({"type": ["A"] * 200 + ["B"], "t": list(range(201))}))
    output = str(tmp_path / "out")
    with pytest.raises(TooManyMatchesError, match=r"there are 1\.6e60 matches or more, and at most"):
        run("SELECT * WHERE A+ ; B", letters, output, time="t", max_matches=9)
    query = "SELECT COUNT(*) AS n WHERE A+ ; B"
    assert run(query, letters, output, time="t", mode="overwrite", counts="text", max_matches=9).matches == 1
    assert [row["n"] for row in spark.read.parquet(output).collect()] == [str(2**200 - 1)]


def test_the_same_job_again_leaves_the_same_files(frame, tmp_path):
    output, dead = str(tmp_path / "out"), str(tmp_path / "dead")
    arguments = {"format": "json", "mode": "overwrite", "on_bad_record": "dead-letter", "dead_letter": dead}
    first = run(QUERY, frame, output, time="t", partition_by=["total"], **arguments)
    before = tree(tmp_path)
    again = run(QUERY, frame, output, time="t", partition_by=["total"], **arguments)
    assert tree(tmp_path) == before
    assert (again.matches, again.bad_records) == (first.matches, first.bad_records) == (2, 3)


def test_modes(spark, tmp_path):
    output = str(tmp_path / "out")
    frame = spark.createDataFrame(CLEAN)

    def matches(mode, **further):
        return run(QUERY, frame, output, time="t", mode=mode, format="orc", **further).matches

    def rows():
        return spark.read.orc(output).count()

    assert (matches("ignore"), rows()) == (1, 1)
    assert (matches("append"), rows()) == (1, 2)
    ignored = run("SELECT * WHERE A", frame, output, mode="ignore")
    assert (ignored.written, ignored.matches, ignored.events, rows()) == (False, 0, None, 2)
    with pytest.raises(InputError, match="already exists"):
        matches("error")
    assert (matches("overwrite"), rows()) == (1, 1)


def test_dead_letters_that_are_there_are_kept_and_events_counted(frame, spark, tmp_path):
    output, dead = str(tmp_path / "out"), tmp_path / "dead"
    dead.mkdir()
    (dead / "old").touch()
    arguments = {"on_bad_record": "dead-letter", "dead_letter": str(dead)}
    result = run(QUERY, frame, output, time="t", mode="ignore", **arguments)
    assert (result.matches, result.events, result.bad_records, result.reasons) == (2, 5, 3, REASONS)
    assert [file.name for file in dead.iterdir()] == ["old"]


def test_no_count_is_waited_for_without_end(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "SPARK_OBSERVED_SECONDS", 0.1)
    never = mock.Mock()
    type(never).get = mock.PropertyMock(side_effect=threading.Event().wait)
    with pytest.raises(OutputError, match="rows for 'somewhere' are written, but Spark did not report their number"):
        observed(never, "somewhere")
    monkeypatch.undo()
    # Spark itself would leave out the job that counts.
    (tmp_path / "x").touch()
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        write_frame(spark.range(1), str(tmp_path), format="parquet", mode="ignore")


def test_tables_are_known_by_the_catalog(spark, tmp_path, monkeypatch):
    spark.sql("CREATE TEMPORARY VIEW there AS SELECT 1 AS one")
    monkeypatch.chdir(tmp_path)
    assert exists(spark, "there", "Iceberg")
    assert not exists(spark, "there", "delta")
    assert not exists(spark, "missing", "iceberg")
    frame = spark.createDataFrame(CLEAN)
    # Decided before anything is read: there is no such format here.
    assert not run(QUERY, frame, "there", format="iceberg", mode="ignore", time="t").written
    with pytest.raises(InputError, match="'there' already exists"):
        run(QUERY, frame, "there", format="iceberg", time="t")
    with pytest.raises(
        InputError, match="'there' is partitioned by no column as it is, so there are no partitions by k"
    ):
        run(QUERY, frame, "there", format="iceberg", mode="overwrite-partitions", partition_by=["k"], time="t")
    with pytest.raises(ValueError, match="'/there' is the path of a table of Iceberg, where Spark would replace all"):
        run(QUERY, frame, "/there", format="iceberg", mode="overwrite-partitions", partition_by=["k"], time="t")


def test_only_partitions_that_are_written_are_replaced(spark, tmp_path):
    output = str(tmp_path / "out")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        # The setting of the session does not change what "overwrite" means.
        for rows in (EVENTS.slice(0, 2), CLEAN):
            run(QUERY, spark.createDataFrame(rows), output, time="t", mode="overwrite", partition_by=["k"])
        assert [row.k for row in spark.read.parquet(output).select("k").collect()] == ["y"]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    for rows in (EVENTS.slice(0, 2), CLEAN, CLEAN):
        frame = spark.createDataFrame(rows)
        run(QUERY, frame, output, time="t", mode="overwrite-partitions", partition_by=["k"])
    assert sorted(row.k for row in spark.read.parquet(output).select("k").collect()) == ["x", "y"]


def test_a_bad_record_fails_before_the_old_output_is_touched(frame, tmp_path):
    output = tmp_path / "out"
    run(QUERY, frame, str(output), time="t", on_bad_record="skip")
    before = tree(output)
    with pytest.raises(BadRecordError, match=r"row \{type: .*, v: \d\}: no (event type in 'type'|time in 't')"):
        run(QUERY, frame, str(output), time="t", mode="overwrite")
    assert tree(output) == before


def test_events_need_not_be_counted(frame, spark, tmp_path):
    result = run(QUERY, frame, str(tmp_path / "a"), time="t", on_bad_record="skip", count_events=False)
    assert (result.matches, result.events, result.bad_records, result.reasons) == (2, None, None, {})
    with pytest.raises(BadRecordError, match=r"row \{type: .*, v: \d\}: no (event type in 'type'|time in 't')"):
        run(QUERY, frame, str(tmp_path / "b"), time="t", count_events=False)
    assert not tree(tmp_path / "b")


def test_a_job_that_fails_leaves_no_half_output(spark, tmp_path, predicate):
    predicate("fails", compile=False)(lambda a: 1 // (a - 7) == 0)
    output, dead = tmp_path / "out", tmp_path / "dead"
    arguments = {"on_bad_record": "dead-letter", "dead_letter": str(dead), "time": "t", "partition_by": ["k"]}
    frame = spark.createDataFrame(EVENTS)
    query = QUERY.replace("PARTITION", "FILTER fails(a.v) PARTITION")
    run(QUERY, spark.createDataFrame(EVENTS.slice(0, 2)), str(output), time="t", partition_by=["k"])
    before = tree(output)
    with pytest.raises(PredicateError, match="'fails' failed"):
        run(query, frame, str(output), mode="overwrite-partitions", **arguments)
    assert tree(output) == before
    # The dead letters are there, the matches are not: never the other way round.
    assert tree(dead)
    with pytest.raises(PredicateError, match="'fails' failed"):
        run(query, frame, str(tmp_path / "new"), **arguments | {"dead_letter": str(tmp_path / "new-dead")})
    assert not tree(tmp_path / "new")


def test_csv_has_lists_as_json(spark, tmp_path):
    run("SELECT * WHERE A AS a ; B AS b", spark.createDataFrame(CLEAN), str(tmp_path / "out"), format="csv", time="t",
        options={"header": "true"}, positions=True)  # fmt: skip
    (row,) = spark.read.csv(str(tmp_path / "out"), header=True, escape='"').collect()
    (expected,) = cerflow.parse("SELECT * WHERE A AS a ; B AS b").match(CLEAN, time="t").to_pylist()
    assert json.loads(row["events"]) == expected["events"]
    assert float(row["start_time"]) == 7.0


def test_counts_without_matches(spark, tmp_path):
    frame = spark.createDataFrame(CLEAN).filter("v < 0")
    result = run(QUERY, frame, str(tmp_path / "out"), time="t")
    assert (result.matches, result.events, result.bad_records) == (0, 0, 0)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 0


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"mode": "replace"}, ValueError, "output mode must be one of"),
        ({"mode": "overwrite-partitions"}, ValueError, "needs columns to partition by"),
        ({"on_bad_record": "keep"}, ValueError, "on_bad_record must be"),
        ({"on_bad_record": "dead-letter"}, ValueError, "go together"),
        ({"dead_letter": "somewhere"}, ValueError, "go together"),
        ({"on_bad_record": "dead-letter", "dead_letter": "{out}/"}, ValueError, "a directory each"),
        ({"on_bad_record": "dead-letter", "dead_letter": "{out}/dead"}, ValueError, "a directory each"),
        ({"partition_by": ["kk"]}, InputError, "no column 'kk' to partition by; did you mean 'k'"),
        ({"partition_by": ["events"]}, InputError, "cannot be partitioned by 'events', which is array"),
        ({"time": "tt"}, InputError, "time column 'tt'"),
        ({"query": "SELECT"}, QuerySyntaxError, "line 1"),
        (
            {
                "query": "SELECT COUNT(*) AS n WHERE A",
                "partition_by": ["detected_time", "end_time", "n"],
            },
            InputError,
            "all",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_written(frame, tmp_path, arguments, error, says):
    output = str(tmp_path / "out")
    arguments = {k: v.format(out=output) if isinstance(v, str) else v for k, v in arguments.items()}
    with pytest.raises(error, match=says):
        run(**{"query": QUERY, "df": frame, "output": output, "time": "t"} | arguments)
    assert not list(tmp_path.iterdir())
