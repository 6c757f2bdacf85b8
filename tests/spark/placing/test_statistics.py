"""Local Parquet files whose statistics tell how they lie, so that no job has to count their rows, on real Spark."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import cerflow
from cerflow import limits
from cerflow.engine.events.time_order import sort_by_time
from cerflow.spark import explain, match
from cerflow.spark.placing import placement
from support.runners import ONLY_DEEP
from support.spark.results import bag

pytestmark = pytest.mark.slow

PAIR = "SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v {} WITHIN 6 MILLISECONDS"


@pytest.fixture(autouse=True)
def shuffling_is_cheap(nothing_is_small, monkeypatch):
    monkeypatch.setattr(limits, "SPARK_BOUNDARY", 1.0)


@pytest.fixture
def no_survey(monkeypatch):
    monkeypatch.setattr(placement, "survey_partitions", lambda *_, **__: pytest.fail("a job was run"))


@pytest.fixture
def surveys(monkeypatch):
    """The number of jobs that count, as the length of a list."""
    found = []
    real = placement.survey_partitions
    monkeypatch.setattr(placement, "survey_partitions", lambda *args, **named: found.append(1) or real(*args, **named))
    return found


def files(tmp_path, *, mixed=0, group=40):
    """Files that have no time in common, each in row groups; rows may be out of order inside these, and some tie."""
    rng = np.random.default_rng(7)
    tables, start = [], 0
    for number, size in enumerate((300, 30, 0, 120, 200)):
        t = start + np.cumsum(rng.integers(0, 3, size))
        start = int(t[-1]) + 1 + 3 * number if size else start
        table = pa.table(
            {
                "type": [("A", "B", "C")[k] for k in rng.integers(0, 3, size)],
                "t": t,
                "k": rng.integers(0, 4, size),
                "v": rng.integers(0, 4, size),
                "q": rng.permutation(size),
            },
            schema=pa.schema([("type", pa.string()), *((name, pa.int64()) for name in "tkvq")]),
        )
        order = np.arange(size) // group * group + (rng.integers(0, group, size) if mixed else 0)
        table = table.take(pa.array(np.argsort(order, kind="stable")))
        tables.append(table)
        pq.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=group)
    return pa.concat_tables(tables)


def assert_alike(query, frame, sequence=None):
    found = match(query, frame, time="t", sequence=sequence).toArrow()
    table = sort_by_time(frame.toArrow(), "t", sequence)
    assert bag(found) == bag(cerflow.parse(query).match(table, time="t", positions=False).to_arrow())
    assert found.num_rows


@pytest.mark.parametrize(
    ("key", "sequence"),
    [
        ("", None),
        ("PARTITION BY k", "q"),
        pytest.param("", "q", marks=ONLY_DEEP),
        pytest.param("PARTITION BY k", None, marks=ONLY_DEEP),
    ],
)
def test_files_are_cut_without_a_job(spark, tmp_path, no_survey, key, sequence):
    files(tmp_path)
    frame = spark.read.parquet(str(tmp_path))
    assert "cut between files" in " ".join(explain(PAIR.format(key), frame, time="t").split())
    assert_alike(PAIR.format(key), frame, sequence)
    # Conditions of the DataFrame and of the query leave rows out, and even whole files.
    some = frame.filter("t > 200 and k > 0").withColumnRenamed("k", "key").withColumn("k", frame.v + 0)
    assert_alike(PAIR.format(key), some, sequence)
    assert_alike("SELECT COUNT(*) AS n WHERE (A AS x ; B AS y) FILTER x.v = 2 WITHIN 9 MILLISECONDS", some, sequence)


def test_rows_are_put_in_order_inside_row_groups(spark, tmp_path, surveys):
    files(tmp_path, mixed=True, group=400)
    for sequence in (None, "q"):
        assert_alike(PAIR.format(""), spark.read.parquet(str(tmp_path)), sequence)
    assert not surveys


def test_a_file_is_read_in_parts(spark, tmp_path, no_survey):
    files(tmp_path)
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, "4000")
    try:
        frame = spark.read.parquet(str(tmp_path))
        assert_alike(PAIR.format(""), frame)
        found = match(PAIR.format(""), frame, time="t")
        spark.conf.set(name, "1500")
        # Now there are more partitions than those that were told.
        with pytest.raises(PySparkException, match="not those that were counted"):
            found.collect()
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize("kind", ["int", "timestamp", "timestamp_ntz", "date"])
def test_times_of_every_type(spark, tmp_path, no_survey, kind):
    table = files(tmp_path)
    stored = {
        "int": lambda t: t.cast(pa.int32()),
        "timestamp": lambda t: t.cast(pa.timestamp("ms", "UTC")),
        "timestamp_ntz": lambda t: t.cast(pa.timestamp("ms")),
        "date": lambda t: t.cast(pa.int32()).cast(pa.date32()),
    }[kind]
    for number, (begin, size) in enumerate(((0, 300), (300, 30), (330, 0), (330, 120), (450, 200))):
        part = table.slice(begin, size)
        path = tmp_path / f"part-{number}.parquet"
        pq.write_table(part.set_column(1, "t", stored(part["t"].combine_chunks())), path, row_group_size=40)
    frame = spark.read.parquet(str(tmp_path))
    assert dict(frame.dtypes)["t"] == kind
    query = PAIR.format("").replace("6 MILLISECONDS", "6 DAYS") if kind == "date" else PAIR.format("")
    assert_alike(query, frame)


def test_rows_are_counted_where_statistics_do_not_tell(spark, tmp_path, surveys):
    """Computed times, files that overlap, rows without a time, and files without statistics."""
    table = files(tmp_path)
    frame = spark.read.parquet(str(tmp_path))
    count = 0

    def counted(some):
        nonlocal count
        count += 1
        assert_alike(PAIR.format(""), some)
        assert len(surveys) == count

    counted(frame.withColumn("t", frame.t + 1))
    paths = sorted(str(path) for path in tmp_path.iterdir())
    counted(spark.read.parquet(*paths, paths[0]))
    counted(frame.sortWithinPartitions("v"))
    pq.write_table(table.slice(0, 300), paths[0], write_statistics=False)
    counted(spark.read.parquet(*paths))
    pq.write_table(pa.concat_tables([table.slice(40, 260), table.slice(0, 40)]), paths[0], row_group_size=40)
    counted(spark.read.parquet(*paths))
    t = table["t"].to_pylist()
    t[7] = None
    without = table.set_column(1, "t", pa.array(t, pa.int64()))
    pq.write_table(without.slice(0, 300), paths[0], row_group_size=40)
    with pytest.raises(PySparkException, match="no time in 't'"):
        match(PAIR.format(""), spark.read.parquet(*paths), time="t").collect()
    assert len(surveys) == count + 1


def test_old_dates_may_be_read_by_another_calendar(spark, tmp_path, surveys):
    days = [datetime.date(1899, 1, 1) + datetime.timedelta(days=k) for k in range(60)]
    table = pa.table({"type": ["A", "B"] * 30, "t": days, "v": [0] * 60})
    pq.write_table(table, tmp_path / "old.parquet")
    query = "SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v WITHIN 2 DAYS"
    assert_alike(query, spark.read.parquet(str(tmp_path)))
    assert surveys
