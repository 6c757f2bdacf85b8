"""Slices on real Spark: what is decided, that it gives what one process gives, and what is refused."""

import datetime
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import cerflow
from cerflow.base import limits
from cerflow.engine.events.time_order import sort_by_time
from cerflow.spark import explain, match
from cerflow.spark.frames.plan import make_plan
from cerflow.spark.frames.schemas import arrow_schema
from cerflow.spark.placing import survey
from cerflow.spark.placing.ordering import selected
from cerflow.spark.placing.placement import PlacementKind, place
from support.runners import ONLY_DEEP
from support.spark.results import bag

pytestmark = pytest.mark.slow

PAIR = "SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v"


@pytest.fixture(autouse=True)
def slices_are_short(nothing_is_small, monkeypatch):
    monkeypatch.setattr(limits, "SPARK_SLICE_EVENTS", 20)
    monkeypatch.setattr(limits, "SPARK_PIECE_BITS", 2)


def stream(size=600, seed=3, burst=True):
    """Events in the order of time, with ties, a gap and a burst."""
    rng = np.random.default_rng(seed)
    gaps = rng.integers(0, 3, size)
    gaps[size // 2] = 500
    if burst:
        gaps[size // 4 : size // 4 + 30] = 0
    t = np.cumsum(gaps)
    return pa.table(
        {
            "type": [("A", "B", "C")[k] for k in rng.integers(0, 3, size)],
            "t": t,
            "k": pa.array([None if k == 0 else int(k) for k in rng.integers(0, 4, size)]),
            "v": rng.integers(0, 4, size),
            "n": np.cumsum(rng.integers(0, 2, size)),
            "q": np.arange(size),
        }
    )


def rows_of(frame):
    """The same rows, but of a DataFrame whose files tasks do not read themselves: Spark filters it."""
    return frame.filter("true")


def written(spark, tmp_path, tables):
    """A DataFrame whose partitions are these tables, each in a file (larger files come first in Spark)."""
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"part-{number}.parquet")
    return rows_of(spark.read.option("maxPartitionBytes", 1).parquet(str(tmp_path)))


@pytest.fixture
def one_file_each(spark):
    """Files are not joined to partitions."""
    name = "spark.sql.files.openCostInBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, str(1 << 30))
    yield
    spark.conf.set(name, before)


def placed(query, frame, **roles):
    plan = make_plan(
        cerflow.parse(query),
        arrow_schema(frame),
        **({"type": "type", "time": None, "sequence": None, "stream": None, "positions": False} | roles),
    )
    return place(selected(frame, plan, skip=False))


def assert_alike(query, frame, table, positions, **roles):
    found = match(query, frame, positions=positions, **roles).toArrow()
    assert bag(found) == bag(cerflow.parse(query).match(table, positions=positions, **roles).to_arrow())
    return found.num_rows


def homes_of(decided):
    """The partitions in which slices stay."""
    return [some.home for some in decided.how if some.home is not None] if isinstance(decided.how, tuple) else []


def stays(decided, homes=None):
    """Whether some slices stay where they are, in this number."""
    found = homes_of(decided)
    return bool(found) and homes in (None, len(found))


def moves(decided):
    """Whether all events are shuffled to slices."""
    return isinstance(decided.how, tuple) and not homes_of(decided)


def in_parts(table, parts=4):
    """Tables of decreasing size, so that Spark reads them in this order."""
    sizes = [table.num_rows * (2 * parts - k) for k in range(parts)]
    ends = np.cumsum(np.array(sizes) * table.num_rows // sum(sizes))
    ends[-1] = table.num_rows
    return [table.slice(a, b - a) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def but_deep(*chosen, among=None):
    """All windows with and without positions; those not chosen, which take the same ways, run in `make test-deep`."""
    pairs = [(one, positions) for one in among or WINDOWS for positions in (False, True)]
    return [pytest.param(*pair, marks=() if pair in chosen else ONLY_DEEP) for pair in pairs]


WINDOWS = ("WITHIN 6 MILLISECONDS", "WITHIN 4 EVENTS", "WITHIN 3 [n]", "PARTITION BY k WITHIN 6 MILLISECONDS")


@pytest.mark.parametrize(("window", "positions"), but_deep((WINDOWS[2], True)))
def test_files_in_the_order_of_time_stay_where_they_are(spark, tmp_path, one_file_each, window, positions):
    table = stream()
    frame = written(spark, tmp_path, in_parts(table))
    decided = placed(f"{PAIR} {window}", frame, time="t", positions=positions)
    assert stays(decided, 4), decided
    assert len(decided.how) > 4
    assert assert_alike(f"{PAIR} {window}", frame, table, positions, time="t")


@pytest.mark.parametrize("key", ["", pytest.param("PARTITION BY k", marks=ONLY_DEEP)])
def test_a_window_on_the_time_column_is_one_of_time(spark, tmp_path, one_file_each, key):
    """Events that cannot matter stay behind, and so do integers that only conditions read."""
    table = stream()
    frame = written(spark, tmp_path, in_parts(table))
    query = f"SELECT COUNT(*) AS n WHERE (A AS x ; B AS y) FILTER x.v > 1 AND y.v = 2 {key} WITHIN 6 [t]"
    text = explain(query, frame, time="t")
    assert "only those with" in text
    assert "in slices of time" in text
    assert "v" not in re.search(r"columns (.*)", text)[1]
    assert assert_alike(query, frame, table, False, time="t")


LATE = (
    "SELECT * WHERE A AS x NOT FOLLOWED BY (B AS y FILTER x.v = y.v) FOR 6 MILLISECONDS",
    "SELECT * WHERE (A ; B AS x NOT FOLLOWED BY C FOR 4 MILLISECONDS) PARTITION BY k WITHIN 5 MILLISECONDS",
)


@pytest.mark.parametrize(("query", "positions"), but_deep((LATE[1], True), among=LATE))
def test_slices_extend_to_deadlines(spark, tmp_path, one_file_each, query, positions):
    table = stream()
    # The second file begins after the gap, so its first event shows deadlines of the first.
    half = table.num_rows // 2
    frame = written(spark, tmp_path, [table.slice(0, half), *in_parts(table.slice(half), 3)])
    decided = placed(query, frame, time="t", positions=positions)
    assert stays(decided), decided
    until = table["t"][-1].as_py() + 5
    assert assert_alike(query, frame, table, positions, time="t", until=until)
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    frame = spark.createDataFrame(mixed).repartition(5)
    roles = {"time": "t", "sequence": "q", "until": until}
    decided = placed(query, frame, positions=positions, **roles)
    assert moves(decided), decided
    assert "which overlap by that time" in decided.reason
    assert assert_alike(query, frame, mixed, positions, **roles)
    assert "windows and deadlines end" in explain(query, frame, positions=positions, **roles)


@pytest.mark.parametrize(
    ("window", "positions"),
    but_deep((WINDOWS[1], False), (WINDOWS[2], True), among=WINDOWS[:3]),
)
def test_other_events_are_shuffled_by_slice(spark, window, positions):
    table = stream()
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    frame = spark.createDataFrame(mixed).repartition(5)
    roles = {"time": "t", "sequence": "q"}
    decided = placed(f"{PAIR} {window}", frame, positions=positions, **roles)
    assert moves(decided), decided
    assert assert_alike(f"{PAIR} {window}", frame, mixed, positions, **roles)


@pytest.mark.parametrize(
    "kind", [pytest.param("timestamp", marks=ONLY_DEEP), "timestamp_ntz", "date", "float", "decimal(12,2)"]
)
@pytest.mark.parametrize("clustered", [True, pytest.param(False, marks=ONLY_DEEP)])
def test_times_of_every_type(spark, tmp_path, one_file_each, kind, clustered):
    table = stream(burst=False)
    frame = written(spark, tmp_path, in_parts(table))
    value = {
        "timestamp": "timestamp_millis(t)",
        "timestamp_ntz": "timestamp_ntz'1969-12-31T23:59:59.9' + make_dt_interval(0, 0, 0, t / 1000.0)",
        "date": "date_add(date'1969-12-30', cast(t as int))",
        "float": "cast(t / 8 as float)",
        "decimal(12,2)": "cast(t / 4 as decimal(12, 2))",
    }[kind]
    frame = frame.selectExpr("type", "v", "q", f"{value} AS t")
    table = frame.orderBy("q").toArrow()
    frame = frame if clustered else frame.repartition(3)
    window = "WITHIN 4 DAYS" if kind == "date" else "WITHIN 3 MILLISECONDS"
    query = f"SELECT x[q], y[q] WHERE (A AS x ; B AS y) FILTER x.v = y.v {window}"
    decided = placed(query, frame, time="t", sequence="q")
    assert stays(decided) if clustered else moves(decided), decided
    assert assert_alike(query, frame, table, True, time="t", sequence="q")


def test_without_a_time_the_place_in_the_files_counts(spark, tmp_path, one_file_each):
    table = stream()
    frame = written(spark, tmp_path, in_parts(table))
    for positions in (False, True):
        decided = placed(f"{PAIR} WITHIN 4 EVENTS", frame, positions=positions)
        assert stays(decided), decided
        assert assert_alike(f"{PAIR} WITHIN 4 EVENTS", frame, table, positions)


def test_partitions_that_overlap_a_little_and_are_out_of_order_inside(spark, tmp_path, one_file_each):
    table = stream()
    near = np.argsort(np.arange(table.num_rows) + np.random.default_rng(2).integers(0, 25, table.num_rows))
    frame = written(spark, tmp_path, in_parts(table.take(pa.array(near))))
    query = f"{PAIR} WITHIN 5 MILLISECONDS"
    assert stays(placed(query, frame, time="t", sequence="q"))
    assert assert_alike(query, frame, table, True, time="t", sequence="q")


@pytest.mark.parametrize(
    ("query", "kind", "says"),
    [
        (PAIR, PlacementKind.ONE_TASK, "no window"),
        (f"{PAIR} PARTITION BY k", PlacementKind.BY_KEY, "no window"),
        (f"{PAIR} PARTITION BY k WITHIN 3 EVENTS", PlacementKind.BY_KEY, "each partition"),
        (f"{PAIR} WITHIN 5 MILLISECONDS CONSUME BY ANY", PlacementKind.ONE_TASK, "CONSUME"),
        ("SELECT * WHERE (A ; B) UNLESS C WITHIN 5 MILLISECONDS", PlacementKind.ONE_TASK, "checked when a match ends"),
        (f"{PAIR} WITHIN 9 HOURS", PlacementKind.ONE_TASK, "long compared"),
        (f"{PAIR} PARTITION BY k WITHIN 9 HOURS", PlacementKind.BY_KEY, "in the order of time"),
    ],
)
def test_what_is_not_cut(spark, tmp_path, one_file_each, query, kind, says):
    frame = written(spark, tmp_path, in_parts(stream(200)))
    decided = placed(query, frame, time="t")
    assert decided.kind is kind
    assert says in decided.reason
    assert decided.how is None


def test_predicates_and_limits_go_along(spark, tmp_path, one_file_each):
    table = stream()
    frame = written(spark, tmp_path, in_parts(table))
    query = "SELECT COUNT(*) AS n WHERE A ; B ; C WITHIN 9 MILLISECONDS LIMIT 2"
    assert stays(placed(query, frame, time="t"))
    assert assert_alike(query, frame, table, True, time="t")


def test_all_events_at_one_time(spark, tmp_path, one_file_each):
    table = stream(100).set_column(1, "t", pa.array([7] * 100))
    frame = written(spark, tmp_path, in_parts(table))
    assert assert_alike(f"{PAIR} WITHIN 1 MILLISECONDS", frame, table, True, time="t")
    frame = frame.repartition(2)
    assert assert_alike(f"{PAIR} WITHIN 1 MILLISECONDS", frame, table, True, time="t", sequence="q")


def test_bad_records_fail_or_are_skipped(spark, tmp_path, one_file_each):
    table = stream()
    times = [None if k % 50 == 7 else t for k, t in enumerate(table.column("t").to_pylist())]
    table = table.set_column(1, "t", pa.array(times))
    frame = written(spark, tmp_path, in_parts(table))
    query = f"{PAIR} WITHIN 6 MILLISECONDS"
    with pytest.raises(PySparkException, match="no time in 't'"):
        match(query, frame, time="t").collect()
    for some in (frame, frame.repartition(3)):
        assert_alike(query, some, table, True, time="t", sequence="q", on_bad_record="skip")


def test_events_that_changed_since_they_were_counted_make_the_job_fail(spark, tmp_path, one_file_each):
    table = stream()
    frame = written(spark, tmp_path, in_parts(table))
    found = match(f"{PAIR} WITHIN 6 MILLISECONDS", frame, time="t")
    times = table.column("t").to_pylist()
    other = table.set_column(1, "t", pa.array([t + 900 for t in times]))
    for number, some in enumerate(in_parts(other)):
        pq.write_table(some, tmp_path / f"part-{number}.parquet")
    with pytest.raises(PySparkException, match=r"not those that were counted|changed|FileNotFound"):
        found.collect()


def test_days(spark):
    start = datetime.date(2024, 1, 1)
    table = pa.table({"type": ["A", "B"] * 50, "t": [start + datetime.timedelta(days=k // 3) for k in range(100)]})
    frame = spark.createDataFrame(table).repartition(1)
    assert assert_alike("SELECT * WHERE A ; B WITHIN 36 HOURS", frame, table, False, time="t")


def test_explain_says_what_is_done_and_why(spark, tmp_path, one_file_each):
    frame = written(spark, tmp_path, in_parts(stream()))
    query = f"{PAIR} WITHIN 6 MILLISECONDS"

    def said(*arguments):
        return " ".join(explain(*arguments, time="t").split())

    text = said(query, frame)
    assert "in slices of time" in text
    assert "4 partitions of the input follow one another" in text
    assert "put in order by Spark" in text
    assert "in one ordered task" in said(f"{query} CONSUME BY ANY", frame)
    assert "overlap by the window" in said(query, frame.repartition(2))


@pytest.mark.parametrize(
    ("window", "way_out"), [("", "a window of time for the whole query"), ("WITHIN 6 MILLISECONDS", "input in order")]
)
def test_a_key_with_most_of_the_events_is_told(spark, monkeypatch, window, way_out):
    monkeypatch.setattr(limits, "SPARK_SKEW_EVENTS", 100)
    table = stream()
    mixed = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    most = mixed.set_column(2, "k", pa.array([0 if n % 5 else n for n in range(mixed.num_rows)]))
    query = f"{PAIR} PARTITION BY k {window}"
    said = " ".join(explain(query, spark.createDataFrame(most).repartition(4), time="t").split())
    assert "one key has 80% of these events, so all tasks together are at most 1.2 times as fast as one" in said
    assert f"; {way_out}" in said
    few = spark.createDataFrame(most.slice(0, 99)).repartition(4)
    assert "skew" not in explain(query, few, time="t")
    even = spark.createDataFrame(mixed.set_column(2, "k", mixed["q"])).repartition(4)
    assert "skew" not in explain(query, even, time="t")


@pytest.fixture
def any_share(monkeypatch):
    """Slices between the stretches of an input may have all of its events."""
    monkeypatch.setattr(limits, "SPARK_BOUNDARY", 1.0)


def small_files(spark, tmp_path, table, seed):
    """Files of random sizes, some empty, which Spark puts together, larger ones first."""
    random = np.random.default_rng(seed)
    cuts = np.sort(random.integers(0, table.num_rows, 9))
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, table.num_rows], strict=True)):
        pq.write_table(table.slice(begin, end - begin), tmp_path / f"part-{number}.parquet", row_group_size=50)
    pq.write_table(table.slice(0, 0), tmp_path / "part-empty.parquet")
    return rows_of(spark.read.parquet(str(tmp_path)))


def in_order(frame, sequence=None):
    """The rows of a frame as a stream: by time, then by their place."""
    return sort_by_time(frame.toArrow(), "t", sequence)


def cut_between_files(frame, query, **roles):
    """Whether some partition is cut between its files."""
    decided = placed(query, frame, **roles)
    return len(homes_of(decided)) > len(set(homes_of(decided)))


@pytest.mark.parametrize(("window", "positions"), but_deep((WINDOWS[1], True), (WINDOWS[3], False)))
def test_partitions_are_cut_between_files(spark, tmp_path, any_share, window, positions):
    frame = small_files(spark, tmp_path, stream(900), seed=len(window))
    query = f"{PAIR} {window}"
    # Among equal times the place counts, unless there is a sequence, so the order of files may make 'n' decrease.
    sequence = "q" if "[n]" in window else None
    assert cut_between_files(frame, query, time="t", positions=positions, sequence=sequence)
    assert assert_alike(query, frame, in_order(frame, sequence), positions, time="t", sequence=sequence)
    assert "cut between files" in " ".join(explain(query, frame, time="t").split())


@pytest.mark.parametrize(("query", "positions"), but_deep((LATE[0], True), (LATE[1], False), among=LATE))
def test_deadlines_pass_between_files(spark, tmp_path, any_share, query, positions):
    table = stream(900)
    frame = small_files(spark, tmp_path, table, seed=5)
    assert cut_between_files(frame, query, time="t")
    assert assert_alike(query, frame, in_order(frame), positions, time="t", until=table["t"][-1].as_py() + 5)


@pytest.mark.parametrize("seed", [2, 3, *(pytest.param(seed, marks=ONLY_DEEP) for seed in (0, 1, 4, 5))])
def test_files_may_overlap_and_be_out_of_order_inside(spark, tmp_path, any_share, seed):
    table = stream(900, seed=seed, burst=bool(seed % 2))
    random = np.random.default_rng(seed)
    near = np.argsort(np.arange(table.num_rows) + random.integers(0, 1 + 8 * (seed % 3), table.num_rows), kind="stable")
    frame = small_files(spark, tmp_path, table.take(pa.array(near)), seed)
    sequence = "q" if seed % 3 == 2 else None
    key = "PARTITION BY k" if seed < 3 else ""
    query = f"{PAIR} {key} WITHIN 5 MILLISECONDS"
    assert cut_between_files(frame, query, time="t", sequence=sequence)
    assert assert_alike(query, frame, in_order(frame, sequence), True, time="t", sequence=sequence)


@pytest.mark.parametrize("positions", [pytest.param(False, marks=ONLY_DEEP), True])
def test_disorder_that_is_small_beside_the_window_does_not_cost_the_slices(spark, tmp_path, positions):
    """Spark puts files together, larger ones first; slices around cuts between these would have half of the events."""
    table = stream(1200, burst=False)
    near = np.argsort(
        np.arange(table.num_rows) + np.random.default_rng(1).integers(0, 5, table.num_rows), kind="stable"
    )
    for number, some in enumerate(in_parts(table.take(pa.array(near)), 12)):
        pq.write_table(some, tmp_path / f"part-{number:02}.parquet", use_dictionary=False, compression="none")
    frame = rows_of(spark.read.parquet(str(tmp_path)))
    query = f"{PAIR} PARTITION BY k WITHIN 20 MILLISECONDS"
    assert 2 <= len(homes_of(placed(query, frame, time="t", positions=positions))) <= 6
    assert assert_alike(query, frame, in_order(frame), positions, time="t")
    longer = query.replace("20 M", "400 M")
    assert "within a window around cuts between files are" in placed(longer, frame, time="t").reason


def test_more_files_than_ranges_that_the_source_is_told(spark, tmp_path, any_share, monkeypatch):
    monkeypatch.setattr(limits, "SPARK_RANGES", 3)
    frame = small_files(spark, tmp_path, stream(900), seed=7)
    query = f"{PAIR} WITHIN 6 MILLISECONDS"
    assert cut_between_files(frame, query, time="t")
    assert assert_alike(query, frame, in_order(frame), True, time="t")


def test_a_file_read_in_parts_and_a_file_read_twice(spark, tmp_path, any_share):
    name = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(name)
    whole = small_files(spark, tmp_path, stream(900), seed=1).rdd.getNumPartitions()
    query = f"{PAIR} WITHIN 6 MILLISECONDS"
    files = sorted(str(path) for path in tmp_path.iterdir())
    twice = rows_of(spark.read.parquet(*files, *files[2:5]))
    assert assert_alike(query, twice, in_order(twice), True, time="t")
    spark.conf.set(name, "3000")
    try:
        parts = rows_of(spark.read.parquet(*files))
        assert parts.rdd.getNumPartitions() > whole
        assert assert_alike(query, parts, in_order(parts), True, time="t")
    finally:
        spark.conf.set(name, before)


def test_small_input_is_not_worth_a_job(spark, monkeypatch):
    monkeypatch.setattr(limits, "SPARK_SMALL_BYTES", 1 << 22)
    monkeypatch.setattr(survey.Selected, "partitions", lambda *_: pytest.fail("a job was run"))
    frame = spark.createDataFrame(stream(50))
    assert placed(f"{PAIR} WITHIN 6 MILLISECONDS", frame, time="t").reason == "the input is small"


def test_local_data_does_not_stay_where_it_is(spark):
    table = stream()
    mixed = table.take(np.random.default_rng(1).permutation(len(table)))
    frame, roles = spark.createDataFrame(mixed), {"time": "t", "sequence": "q"}
    query = f"{PAIR} WITHIN 6 MILLISECONDS"
    assert moves(placed(query, frame, **roles))
    assert assert_alike(query, frame, mixed, False, **roles)


def test_slices_are_as_long_as_the_unit_says(spark):
    query, table = "SELECT * WHERE (A AS x ; B AS y) FILTER x.v = y.v WITHIN 5 SECONDS", stream()
    mixed = table.take(np.random.default_rng(1).permutation(len(table)))
    frame = spark.createDataFrame(mixed).repartition(3)
    for unit, way in (("s", "in slices of time"), ("ms", "in one ordered task")):
        assert way in explain(query, frame, time="t", time_unit=unit)
        roles = {"time": "t", "time_unit": unit}
        found = match(query, frame, sequence="q", **roles).toArrow()
        assert bag(found) == bag(cerflow.parse(query).match(table, positions=False, **roles).to_arrow())
