"""The data source in Spark: found by its name, registered, and what a session makes of its matches and errors."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import cerflow
import cerflow.spark
from support.spark.parquet_streams import write
from support.spark.results import bag

KEYED = "SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 5 MILLISECONDS"


@pytest.fixture(scope="module")
def table():
    count = 3000
    return pa.table(
        {
            "type": ["AB"[n % 2] for n in range(count)],
            "t": pa.array(range(count), pa.timestamp("ms", "UTC")),
            "v": [n * 7 % 13 for n in range(count)],
            "k": [f"k{n % 3}" for n in range(count)],
            "p": pa.array([n % 5 for n in range(count)], pa.decimal128(10, 2)),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    return write(tmp_path_factory.mktemp("source"), table, [[200] * 7, [200] * 8])


def load(spark, path, **options):
    options = {name: str(value) for name, value in {"query": KEYED, "time": "t", **options}.items()}
    return spark.read.format("cerflow").options(**options).load(path)


def assert_same(frame, query, table, **options):
    found = frame.toArrow()
    expected = cerflow.parse(query).match(table, **options).to_arrow()
    # The same points in time, in Spark's unit.
    expected = pa.table([c.cast(f.type) for c, f in zip(expected.columns, found.schema)], names=expected.column_names)
    assert expected.num_rows > 0
    assert bag(found) == bag(expected)


@pytest.mark.long
def test_spark_finds_it_by_its_name(spark, folder, table):
    frame = load(spark, folder, sliceRows=300, positions=True)
    assert frame.rdd.getNumPartitions() > 3
    assert_same(frame, KEYED, table, time="t")


@pytest.mark.versions
def test_registered(spark, folder, table):
    cerflow.spark.register(spark)
    # Names of options, and of the format, in any case; and an action of another kind.
    frame = spark.read.format("CerFlow").option("QUERY", KEYED).option("Time", "t").load(folder)
    assert frame.count() == cerflow.parse(KEYED).match(table, time="t").count()
    counted = frame.groupBy("k").count().orderBy("k").collect()
    assert [row["k"] for row in counted] == ["k0", "k1", "k2"]


def test_several_paths(spark, folder, table):
    frame = load(spark, [f"{folder}/part-000.parquet", f"{folder}/part-001.parquet"])
    assert_same(frame, KEYED, table, time="t", positions=False)


def test_like_the_ordinary_path(spark, folder):
    query = "SELECT x[v], y.p - x.p AS gain WHERE A AS x ; B AS y FILTER y.v = 3 WITHIN 9 EVENTS"
    in_tasks = load(spark, folder, query=query, sliceRows=300)
    ordinary = cerflow.spark.match(query, spark.read.parquet(folder), time="t")
    assert in_tasks.schema == ordinary.schema
    assert bag(in_tasks.toArrow()) == bag(ordinary.toArrow())


def test_files_that_spark_has_written(spark, tmp_path, table):
    # Its old timestamps have no statistics; they are points in time.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        frame = spark.createDataFrame(table).coalesce(1)
        frame.write.parquet(str(tmp_path / "old"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    frame.write.parquet(str(tmp_path / "new"))
    for name in ("old", "new"):
        found = load(spark, str(tmp_path / name))
        assert_same(found, KEYED, table, time="t", positions=False)


def test_errors_at_load(spark, folder):
    for options, said in [
        ({"query": "SELECT * WHERE A AS x FILTER x.w > 1"}, "QueryError: line 1, column 30"),
        ({"qery": "x"}, "InputError: the data source cerflow has no option 'qery'; did you mean 'query'?"),
        ({"time": "tt"}, "InputError: the time column 'tt' is not in the input; did you mean 't'?"),
    ]:
        with pytest.raises(PySparkException) as caught:
            load(spark, folder, **options)
        assert said in str(caught.value)
        assert "\n" in str(caught.value)


def test_a_schema_of_the_user(spark, folder):
    own = load(spark, folder)
    reader = spark.read.format("cerflow").option("query", KEYED).option("time", "t")
    assert reader.schema(own.schema).load(folder).count() == own.count()
    other = reader.schema("n long").load(folder)
    with pytest.raises(PySparkException, match="the matches have the schema"):
        other.collect()


def test_errors_in_tasks_speak_for_themselves(spark, tmp_path):
    pq.write_table(pa.table({"type": ["A", None], "t": [1, 2], "k": [1, 1]}), tmp_path / "1.parquet")
    with pytest.raises(PySparkException, match=r"BadRecordError: row 1 of '.*1\.parquet': no event type in 'type'"):
        load(spark, str(tmp_path)).collect()
    assert load(spark, str(tmp_path), onBadRecord="skip").count() == 0


def test_no_matches(spark, folder):
    frame = load(spark, folder, query="SELECT * WHERE A AS x FILTER x.v > 100 WITHIN 3 EVENTS")
    assert frame.toArrow().num_rows == 0
