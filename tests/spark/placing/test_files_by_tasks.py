"""Files that tasks read themselves: the matches are those of the DataFrame's rows, which tasks get otherwise."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

import cerflow
from cerflow.base import limits
from cerflow.engine.events.time_order import sort_by_time
from cerflow.spark import explain, match
from cerflow.spark.placing import survey
from support.spark.results import bag

pytestmark = pytest.mark.slow

PAIR = "SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v"


@pytest.fixture(autouse=True)
def slices_are_short(nothing_is_small, monkeypatch):
    """They overlap as they like."""
    monkeypatch.setattr(limits, "SPARK_OVERLAP", 9.0)
    monkeypatch.setattr(limits, "SOURCE_SLICE_ROWS", 100)


def stream(seed, size=900):
    """Events that are out of order by up to eight rows; many tie."""
    rng = np.random.default_rng(seed)
    near = np.argsort(np.arange(size) + rng.integers(0, 9, size), kind="stable")
    return pa.table(
        {
            "type": [("A", "B", "C")[k] for k in rng.integers(0, 3, size)],
            "t": pa.array(np.cumsum(rng.integers(0, 3, size))[near]).cast(pa.timestamp("ms", "UTC")),
            "k": pa.array([None if k == 0 else int(k) for k in rng.integers(0, 4, size)]),
            "v": rng.integers(0, 4, size),
            "q": rng.permutation(size),
        }
    )


def written(spark, path, table, seed=1):
    """Files of random sizes whose names tell nothing of their order."""
    rng = np.random.default_rng(seed)
    cuts = [0, *np.sort(rng.integers(0, table.num_rows, 7)).tolist(), table.num_rows]
    for name, begin, end in zip(rng.permutation(8), cuts, cuts[1:]):
        pq.write_table(table.slice(begin, end - begin), path / f"part-{name}.parquet", row_group_size=40)
    return spark.read.parquet(str(path))


@pytest.fixture
def no_survey(monkeypatch):
    monkeypatch.setattr(survey.Selected, "partitions", lambda *_, **__: pytest.fail("a job was run"))


def by_tasks(query, frame, **roles):
    said = " ".join(explain(query, frame, time="t", **roles).split())
    return "tasks read the files themselves" in said


def assert_alike(query, frame, sequence=None, positions=False):
    found = match(query, frame, time="t", sequence=sequence, positions=positions).toArrow()
    table = sort_by_time(frame.toArrow(), "t", sequence)
    assert bag(found) == bag(cerflow.parse(query).match(table, time="t", positions=positions).to_arrow())
    assert found.num_rows


@pytest.mark.parametrize("seed", range(4))
def test_files_in_any_order(spark, tmp_path, no_survey, seed):
    """Ties are ordered by partition and row, also where Spark reads a file in parts that it does not keep together."""
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, "3000" if seed % 2 else before)
    try:
        frame = written(spark, tmp_path, stream(seed), seed).select("v", "k", "t", "q", "type")
        query = f"{PAIR} {'PARTITION BY k' if seed < 2 else ''} WITHIN 5 MILLISECONDS"
        sequence = "q" if seed % 3 == 2 else None
        assert by_tasks(query, frame, sequence=sequence)
        assert_alike(query, frame, sequence, positions=seed > 1)
    finally:
        spark.conf.set(name, before)


def test_times_mean_what_they_do_in_the_zone_of_the_session(spark, tmp_path):
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, "Asia/Tokyo")
    try:
        frame = written(spark, tmp_path, stream(5))
        query = f"{PAIR} AND x.t < '1970-01-01T09:00:00.400' WITHIN 5 MILLISECONDS"
        assert by_tasks(query, frame)
        assert_alike(query, frame)
        late = "NOT FOLLOWED BY C FOR 2 MILLISECONDS WITHIN 4 MILLISECONDS"
        assert_alike(f"SELECT * WHERE (A AS x ; B AS y) {late}", frame)
    finally:
        spark.conf.set(name, before)


def test_what_spark_computes_or_reads_otherwise_stays_with_spark(spark, tmp_path, monkeypatch):
    query = f"{PAIR} WITHIN 5 MILLISECONDS"
    frame = written(spark, tmp_path, stream(6))
    assert by_tasks(query, frame)
    with monkeypatch.context() as little:
        little.setattr(limits, "SPARK_OVERLAP", 0.0)
        assert not by_tasks(query, frame)
    view = "events_of_this_test"
    frame.createOrReplaceTempView(view)
    assert by_tasks(query, spark.table(view))
    computed = (frame.filter("v > 0"), frame.withColumn("v", frame.v + 0), frame.union(frame), frame.limit(800))
    for other in computed:
        assert not by_tasks(query, other)
    assert_alike(query, computed[0])
    marked = frame.withColumn("_corrupt_record", F.when(frame.v == 3, "no event"))
    marked.write.parquet(str(tmp_path / "marked"))
    read = spark.read.parquet(str(tmp_path / "marked"))
    assert not by_tasks(query, read, on_bad_record="skip")
    # Here a file lacks a column, and another has a column in another type.
    path = next(tmp_path.glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["v"]), path)
    assert not by_tasks(query, spark.read.schema(frame.schema).parquet(f"{tmp_path}/part*"))
    pq.write_table(table.set_column(3, "v", table["v"].cast(pa.int32())), path)
    assert not by_tasks(query, spark.read.schema(frame.schema).parquet(f"{tmp_path}/part*"))


def test_columns_of_directories_stay_with_spark(spark, tmp_path):
    for day in (1, 2):
        path = tmp_path / f"day={day}"
        path.mkdir()
        written(spark, path, stream(day), day)
    frame = spark.read.parquet(str(tmp_path))
    query = "SELECT x[v], y[v] WHERE (A AS x ; B AS y) FILTER x.v = y.v {} WITHIN 5 MILLISECONDS"
    assert by_tasks(query.format(""), frame)
    assert_alike(query.format(""), frame)
    assert not by_tasks(query.format("AND x.day = 1"), frame)
    assert_alike(query.format("AND x.day = 1"), frame)


@pytest.mark.parametrize("kind", ["int", "bigint", "timestamp", "timestamp_ntz", "date"])
def test_times_of_every_type(spark, tmp_path, no_survey, kind):
    table = stream(7)
    t = table["t"].cast(pa.int64())
    stored = {
        "int": t.cast(pa.int32()),
        "bigint": t,
        "timestamp": t.cast(pa.timestamp("ms", "UTC")),
        "timestamp_ntz": t.cast(pa.timestamp("ms")),
        "date": t.cast(pa.int32()).cast(pa.date32()),
    }[kind]
    frame = written(spark, tmp_path, table.set_column(1, "t", stored))
    assert dict(frame.dtypes)["t"] == kind
    query = f"{PAIR} WITHIN 5 {'DAYS' if kind == 'date' else 'MILLISECONDS'}"
    assert by_tasks(query, frame)
    assert_alike(query, frame)


def test_rows_stay_with_spark_where_statistics_do_not_tell(spark, tmp_path):
    """Times that Spark may read by another calendar, times of other types, rows without a time, no statistics."""
    query, table = f"{PAIR} WITHIN 5 DAYS", stream(8)
    days = pa.array([datetime.date(1899, 1, 1) + datetime.timedelta(days=k // 5) for k in range(900)])
    others = {"old": days, "float": pa.array(np.arange(900) / 9)}
    for name, times in others.items():
        folder = tmp_path / name
        folder.mkdir()
        frame = written(spark, folder, table.set_column(1, "t", times))
        assert not by_tasks(query, frame)
        assert_alike(query, frame)
    t = table["t"].to_pylist()
    t[70] = None
    folder = tmp_path / "without"
    folder.mkdir()
    frame = written(spark, folder, table.set_column(1, "t", pa.array(t, table["t"].type)))
    query = f"{PAIR} WITHIN 5 MILLISECONDS"
    assert not by_tasks(query, frame)
    with pytest.raises(PySparkException, match="no time in 't'"):
        match(query, frame, time="t").collect()
    for path in folder.glob("*.parquet"):
        kept = pq.read_table(path)
        pq.write_table(kept.filter(kept["t"].is_valid()), path, write_statistics=False)
    assert not by_tasks(query, spark.read.parquet(str(folder)))


def test_files_that_change_make_the_job_fail(spark, tmp_path):
    frame = written(spark, tmp_path, stream(9))
    query = f"{PAIR} WITHIN 5 MILLISECONDS"
    found = match(query, frame, time="t")
    path = next(tmp_path.glob("*.parquet"))
    pq.write_table(stream(10), path)
    with pytest.raises(PySparkException, match="has changed since it was planned"):
        found.collect()
