"""Spark gives what the same query gives in-process."""

import datetime
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings

import cerflow
from cerflow.api.programs.program import query_as_text
from cerflow.api.stream_inputs import Input
from cerflow.base.errors import BadRecordError, UnsupportedQueryError
from cerflow.language.formula import Strategy
from cerflow.spark import explain, match, run
from support.generators.selects import cases
from support.golden import PHI1, PHI2, PHI3, PHI4, SENSORS
from support.spark.results import assert_same, bag

pytestmark = pytest.mark.slow

SENSOR_TABLE = pa.Table.from_pylist([dict(row) for row in SENSORS])
KEYED = "SELECT * WHERE (T AS x ; H AS y) FILTER x.value > y.value PARTITION BY id"
RANDOM = pa.schema(
    [
        ("type", pa.string()),
        ("w", pa.float64()),
        ("s", pa.string()),
        ("e", pa.string()),
        *((name, pa.int64()) for name in "vkntq"),
    ]
)


@pytest.mark.versions
@pytest.mark.parametrize("formula", [PHI1, PHI2, PHI3, PHI4])
def test_worked_examples(spark, formula):
    assert assert_same(spark, f"SELECT * WHERE {formula}", SENSOR_TABLE, positions=True)


def test_the_flat_form(spark):
    frame = spark.createDataFrame(many())
    for text in (
        KEYED_AB,
        "SELECT * WHERE (A AS x ; B+ AS y ; EVENT) WITHIN 6 EVENTS",
        "SELECT NONE WHERE A",
    ):
        found = match(text, frame, time="t", sequence="seq", positions=True, flat=True).toArrow()
        expected = cerflow.parse(text).match(frame.toArrow(), time="t", sequence="seq").to_arrow(flat=True)
        assert found.schema.names == expected.schema.names
        assert bag(found) == bag(expected)
        assert found.num_rows
    with pytest.raises(ValueError, match="no column 'events'"):
        cerflow.parse(text).match(frame.toArrow(), time="t").to_arrow(flat=True, columns=["events"])


@pytest.mark.versions
def test_computed_columns(spark, predicate):
    predicate("near", compile=False)(lambda x, y: abs(x["v"] - y["v"]) < 2)
    table = pa.table({"type": list("AABABBAB"), "v": [1, 5, 3, 2, 1, 2, 4, 4], "k": [0, 1] * 4, "t": list(range(8))})
    for columns, key in (
        ("MATCH_NUMBER() AS n", "PARTITION BY k"),
        ("CASE WHEN y.v > 2 THEN 'large' END AS c, count(distinct y.v) AS n, near(x, y) AS near", "PARTITION BY k"),
        ("CASE WHEN x.v = 1 THEN 1 ELSE 2.5 END AS c, (x.v > y.v) AS less", ""),
    ):
        assert assert_same(spark, f"SELECT {columns} WHERE A AS x : B AS y {key} WITHIN 5 [t]", table, time="t")


def test_existential_conditions(spark):
    table = pa.table(
        {"type": list("AABABBAB"), "v": [1, 5, 3, None, 1, 2, 4, 4], "k": [0, 1, 1, 0, 0, 1, 0, 1], "t": list(range(8))}
    )
    pair = "(A+ AS x ; B+ AS y) FILTER"
    for text in (
        f"{pair} SOME x: x.v > 4 PARTITION BY k",
        f"{pair} SOME x, y: (x.v > y.v AND x.k = y.k) WITHIN 5 EVENTS",
        f"{pair} SOME x, y: x.v < y.v OR NOT SOME x: x.v > 1 WITHIN 4 [t]",
    ):
        assert assert_same(spark, f"SELECT * WHERE {text}", table, positions=True, time="t")


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("consume", ["NONE", "ANY", "PARTITION"])
def test_partitions_and_consumption(spark, consume, positions):
    found = assert_same(spark, f"{KEYED} CONSUME BY {consume}", SENSOR_TABLE, positions=positions)
    assert {"detected_at" in row for row in found} == {positions}


def test_consumption_changes_the_matches(spark):
    frame = spark.createDataFrame(many())
    numbers = [
        match(f"{KEYED_AB} CONSUME BY {policy}", frame, time="t").count() for policy in ("NONE", "PARTITION", "ANY")
    ]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == 3


def many(size=500):
    """Events out of order, with ties in time that only ``seq`` orders, and null keys."""
    rows = []
    for k in range(size):
        place = k * 37 % size
        rows.append(
            {
                "type": "ABC"[place % 3],
                "k": None if place % 11 == 0 else place % 7,
                "j": float(place % 5) if place % 4 else None,
                "v": place * 13 % 29,
                "seq": place % 4,
                "t": datetime.datetime(2024, 3, 31, tzinfo=datetime.UTC) + datetime.timedelta(seconds=place // 4),
            }
        )
    return pa.Table.from_pylist(rows)


SEQUENCES = {
    "by key": "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.v < b.v AND b.v < c.v PARTITION BY k WITHIN 60 SECONDS",
    "contiguous": "SELECT * WHERE A AS a : B AS b WITHIN 9 EVENTS",
    "either key": "SELECT a, b[v] WHERE A AS a ; B AS b PARTITION BY [k, j] WITHIN 10 EVENTS",
    "two keys": "SELECT * WHERE A AS a ; B AS b PARTITION BY k, j WITHIN 40 SECONDS",
    "count": "SELECT COUNT(*) AS n WHERE A AS a ; B+ AS b ; C AS c PARTITION BY k",
    "columns": "SELECT b[v], a.v + b.v AS total, position(b) - position(a) AS far, time(b) AS at, a.t AS began "
    "WHERE A AS a ; B AS b PARTITION BY k WITHIN 10 SECONDS",
    "position": "SELECT * WHERE A AS a ; B AS b FILTER position(b) - position(a) < 30 PARTITION BY k",
    "no events": "SELECT NONE WHERE A AS a ; B AS b PARTITION BY k WITHIN 20 SECONDS",
    "no key": "SELECT x[v] WHERE (A AS x ; B AS y FILTER x.v = y.v) WITHIN 30 SECONDS",
}
READS_POSITIONS = ("columns", "position")


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("name", SEQUENCES)
def test_ties_in_time_are_ordered_by_the_sequence(spark, name, positions):
    filled = positions or name in READS_POSITIONS
    roles = {"time": "t", "sequence": "seq"}
    found = assert_same(spark, SEQUENCES[name], many(), positions=positions, local_positions=filled, **roles)
    assert found
    assert {row.get("detected_at") is not None for row in found} == {filled}


def test_ties_in_time_without_a_sequence_keep_the_order_of_the_input(spark):
    assert assert_same(spark, SEQUENCES["by key"], many(), time="t", positions=True)


def test_a_sequence_may_order_events_that_have_no_time(spark):
    assert assert_same(spark, KEYED_AB, many(), sequence="seq", positions=True)


def test_without_a_time_the_order_of_the_input_counts_and_time_is_position(spark):
    table = many()
    query = "SELECT time(a) AS at, b WHERE A AS a ; B AS b FILTER time(b) - time(a) < 20 PARTITION BY k"
    assert assert_same(spark, query, table, frame=spark.createDataFrame(table).repartition(1), local_positions=True)
    assert assert_same(spark, query, table, local_positions=True)
    assert assert_same(spark, KEYED_AB, table)


KEYED_AB = "SELECT * WHERE A AS a ; B AS b PARTITION BY k WITHIN 5 EVENTS"


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_are_the_same_in_every_time_zone(spark, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        # Midnight in UTC, while summer time begins or not.
        query = "SELECT * WHERE A AS a ; B AS b FILTER a.t >= '2024-03-31T00:01:30' PARTITION BY k WITHIN 20 SECONDS"
        found = assert_same(spark, query, many(), time="t", positions=True)
        assert found[0]["start_time"].tzinfo is not None
        naive = many().set_column(5, "t", many().column("t").cast(pa.timestamp("us")))
        found = assert_same(spark, query, naive, time="t", positions=True)
        assert found[0]["start_time"].tzinfo is None
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_no_events_give_no_matches_in_the_same_columns(spark):
    table = SENSOR_TABLE.slice(0, 0)
    for query in (KEYED, "SELECT COUNT(*) AS n WHERE T ; H"):
        for positions in (True, False):
            assert not assert_same(spark, query, table, positions=positions)


def test_counts_are_whole_numbers_of_38_digits(spark):
    table = pa.table({"type": ["A"] * 100 + ["B"], "k": [1] * 101})
    query = "SELECT COUNT(*) AS n WHERE A+ ; B PARTITION BY k"
    (row,) = assert_same(spark, query, table)
    assert row["n"] == Decimal(2**100 - 1)


def test_keys_are_equal_where_the_engine_says_so(spark):
    zeros = [0.0, -0.0, float("nan"), None, 1.5]
    table = pa.table(
        {
            "type": ["A", "B"] * 25,
            "k": pa.array([zeros[n % 5] for n in range(50)], pa.float64()),
            "f": pa.array([zeros[n % 5] for n in range(50)], pa.float32()),
            "d": pa.array([Decimal(n // 4 % 3) / 2 for n in range(50)], pa.decimal128(30, 2)),
            "i": pa.array([n // 3 % 2 for n in range(50)], pa.int32()),
        }
    )
    for key in ("k", "f", "d", "[k, f]", "i, k"):
        assert assert_same(spark, f"SELECT a, b WHERE A AS a ; B AS b PARTITION BY {key} WITHIN 7 EVENTS", table)


def test_decimals_are_compared_exactly(spark):
    ids = ["18446744073709551615", "18446744073709551614", "5"]
    table = pa.table(
        {
            "type": ["A", "B", "C"] * 12,
            "id": pa.array([Decimal(ids[n // 2 % 3]) for n in range(36)], pa.decimal128(38, 0)),
            "short": pa.array([Decimal(900719925474099200 + n % 2) for n in range(36)], pa.decimal128(18, 0)),
            "price": pa.array(
                [Decimal(900719925474099200 + n // 3 % 3) / 100 for n in range(36)], pa.decimal128(18, 2)
            ),
            "other": pa.array([Decimal(900719925474099200 + n % 3) / 100 for n in range(36)], pa.decimal128(20, 3)),
            "small": pa.array([Decimal(n % 4) / 4 for n in range(36)], pa.decimal128(15, 2)),
        }
    )
    frame = spark.createDataFrame(table).cache()
    numbers = {}
    for condition in (
        "a.id = b.id", "a.id < b.id AND a.id >= 5", f"a.id = '{ids[0]}' AND b.id IN (5, '{ids[0]}')",
        "a.short = b.short", "a.short = 900719925474099201", "a.price != b.price AND a.price = b.other",
        "a.price > '9007199254740992.01'",        "a.small > 0.25 AND b.small = 0.5",
    ):  # fmt: skip
        query = f"SELECT a, b WHERE A AS a ; B AS b FILTER {condition} WITHIN 9 EVENTS"
        numbers[condition] = len(assert_same(spark, query, table, frame=frame))
    for key in ("id", "short", "price", "[price, other]"):
        query = f"SELECT a, b WHERE A AS a ; B AS b PARTITION BY {key} WITHIN 5 EVENTS"
        numbers[key] = len(assert_same(spark, query, table, frame=frame))
    assert all(numbers.values()), numbers


def test_names_that_are_awkward_in_spark(spark):
    table = pa.table({"type": ["A", "B", "B"], "a.b": [1, 1, 2], "A`C": [3, 4, 5], "position": [7, 8, 9]})
    query = 'SELECT a."A`C" AS "x.y", a, b WHERE A AS a ; B AS b FILTER b.position > 7 PARTITION BY "a.b"'
    assert len(assert_same(spark, query, table, positions=True)) == 1


def test_streams_are_told_apart(spark):
    table = pa.table({"type": ["A", "A", "A"], "from": ["s", "r", "s"], "k": [1, 1, 1]})
    query = "SELECT * FROM s, r WHERE s>A AS a ; r>A AS b PARTITION BY k"
    assert len(assert_same(spark, query, table, stream="from")) == 1


def test_first_order_queries_and_trees_built_in_python(spark):
    query = cerflow.parse(f"SELECT * WHERE {PHI4}", reading="first-order")
    assert assert_same(spark, query, SENSOR_TABLE)
    assert assert_same(spark, cerflow.Query(cerflow.parse(KEYED).tree), SENSOR_TABLE)


def test_only_columns_that_the_query_uses_travel(spark):
    plan = match(SEQUENCES["columns"], spark.createDataFrame(many()), time="t")
    # The type, k, v, t, and the position; neither j nor the sequence.
    assert len(plan._jdf.queryExecution().analyzed().child().output().mkString(",").split(",")) == 5


@settings(max_examples=15, database=None, phases=[Phase.explicit, Phase.generate])
@given(cases())
def test_random_queries(spark, case):
    select, rows = case
    # Which matches are picked is not specified.
    query = cerflow.Query(replace(select, strategy=Strategy.ALL, limit=None))
    table = pa.Table.from_pylist([{**row, "q": number} for number, row in enumerate(rows)], RANDOM)
    try:
        # Tasks get a text; a tree may have what no text gives.
        query_as_text(query)
        local = query.match(table, time="t")
    except UnsupportedQueryError:
        assume(False)
    mixed = table.take(pa.array(sorted(range(len(rows)), key=lambda n: n * 7 % 5)))
    found = match(query, spark.createDataFrame(mixed), time="t", sequence="q", positions=True)
    assert bag(found.toArrow()) == bag(local.to_arrow())


EVERY_TYPE = """
    SELECT if(id % 3 = 0, 'A', 'B') AS type, id AS k, cast(id AS decimal(12, 3)) AS dec, cast(id AS float) AS f,
    date_add(DATE'2024-03-30', cast(id AS int)) AS day, array(id, NULL) AS many, map('x', id) AS pairs,
    named_struct('u', id, 'v', array('w')) AS parts, cast('b' AS binary) AS bytes, id > 3 AS flag,
    cast(id AS short) AS s FROM range(0, 8, 1, 2)
"""


@pytest.mark.versions
@pytest.mark.parametrize("large", ["true", "false"])
def test_attributes_of_every_type_come_back(spark, large):
    frame = spark.sql(EVERY_TYPE)
    name = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(name, large)
    try:
        query = "SELECT b, NULL AS nothing, a.flag AS raised WHERE A AS a ; B AS b WITHIN 3 DAYS"
        for time in ("day", "dec", "f"):
            assert len(assert_same(spark, query, frame.toArrow(), frame=frame, time=time, positions=True)) > 2
        assert assert_same(spark, query.replace("WITHIN 3 DAYS", "PARTITION BY flag"), frame.toArrow(), frame=frame)
    finally:
        spark.conf.unset(name)


# --- the unit of times -----------------------------------------------------------------------------------------------


def test_the_unit_of_times(spark, tmp_path):
    table = pa.table({"type": ["A", "B", "B"], "t": [1700000000, 1700000009, 1700003600], "k": ["p"] * 3})
    text = "SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS"
    for query in (text, text.replace("WITHIN", "PARTITION BY k WITHIN")):
        assert len(assert_same(spark, query, table, time="t", time_unit="s")) == 1
    frame = spark.createDataFrame(table)
    frame.write.parquet(str(tmp_path / "events"))
    cerflow.spark.register(spark)
    reader = spark.read.format("cerflow").options(query=text, time="t", timeUnit="s")
    assert reader.load(str(tmp_path / "events")).count() == 1
    with pytest.warns(cerflow.QueryWarning, match="look like seconds since 1970"):
        assert cerflow.spark.run(text, frame, str(tmp_path / "matches"), time="t").matches == 2


def test_inputs_of_different_units(spark):
    left = spark.createDataFrame([("A", 1700000000)], "type string, t int")
    right = spark.createDataFrame([("B", 1700000009000.0), ("B", 1700000010000.0)], "type string, t double")
    both = cerflow.spark.streams({"left": Input(left, time_unit="s"), "right": Input(right)}, time="t")
    assert both.roles["time_unit"] == "ms"
    found = match("SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS", both.events, **both.roles).collect()
    assert [row.end_time for row in found] == [1700000009000]


def test_keys_without_a_window_are_shuffled_once(spark):
    plan = match(KEYED_AB, spark.createDataFrame(many()), time="t")._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange") == plan.count("Exchange hashpartitioning") == 1


def test_keys_begin_anew(spark):
    first = [("A", 0, "p"), ("C", 1500, "p"), ("A", 1600, "q"), ("B", 3000, "p")]
    rows = [*first, ("B", 5000, "p"), ("B", 7001, "p"), ("B", 9000, "q")]
    table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("type", "t", "k"))})
    for where, found in (("A AS x ; B AS y PARTITION BY k", 2), ("A AS x ; B AS y WITHIN 5 SECONDS", 3)):
        query = f"SELECT * WHERE {where}"
        assert len(assert_same(spark, query, table, time="t", forget="2 seconds")) == found
        assert "starts again" in cerflow.spark.explain(
            query, spark.createDataFrame(table), time="t", forget="2 seconds"
        )


DURATIONS = (
    "SELECT time(b) - time(a) AS gap, b.span * 2 AS double, a.t + (b.t - a.t) / 2 AS middle WHERE A AS a ; B AS b "
    "FILTER b.t - a.t >= 2 SECONDS AND a.span < INTERVAL '40' SECOND PARTITION BY k WITHIN 5 SECONDS",
    "SELECT a[span], max(b.span) AS most WHERE A AS a ; B{2} AS b FILTER b[span IS NOT NULL] WITHIN 9 SECONDS",
    "SELECT COUNT(*) AS n WHERE A AS a ; B AS b FILTER a.t + a.span > b.t AND b.v > 3 WITHIN 4 SECONDS",
)


@pytest.mark.parametrize("query", DURATIONS)
def test_durations_come_and_go(spark, query):
    table = many(200)
    spans = [None if v % 5 == 0 else datetime.timedelta(seconds=2 * v) for v in table.column("v").to_pylist()]
    table = table.append_column("span", pa.array(spans, pa.duration("us")))
    assert assert_same(spark, query, table, time="t", sequence="seq")
    told = explain(query, spark.createDataFrame(table), time="t", sequence="seq").partition("columns")
    # Spark compares durations with literals.
    assert ("SECOND" in told[0].partition("left to the tasks")[0]) == ("INTERVAL" in query)
    assert "span" in told[2]


def test_what_spark_cannot_read_is_a_bad_record(spark, tmp_path):
    lines = ['{"type": "A", "t": 1, "v": 1}', '{"type": "B", "t": 2, "v": "34x"}', '{"type": "B", "t": 3}', "{"]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    frame = spark.read.schema("type string, t bigint, v int, _corrupt_record string").json(str(tmp_path / "in.jsonl"))
    # The query reads no v, and yet the second line is bad.
    query = "SELECT b.t AS t WHERE A ; B AS b"
    found = match(query, frame, time="t", on_bad_record="skip")
    assert [row["t"] for row in found.toArrow().to_pylist()] == [3]
    with pytest.raises(Exception, match=r"BadRecordError: row \{.*(34x|_corrupt_record.*\{).*\}: it is malformed"):
        match(query, frame, time="t").collect()
    with pytest.raises(BadRecordError, match="it is malformed, or a value does not have the type of its column"):
        run(query, frame, str(tmp_path / "failed"), time="t")
    letters = str(tmp_path / "letters")
    done = run(query, frame, str(tmp_path / "out"), time="t", on_bad_record="dead-letter", dead_letter=letters)
    assert (done.matches, done.events, done.bad_records) == (1, 2, 2)
    kept = spark.read.parquet(letters).toArrow().to_pylist()
    assert {(row["_corrupt_record"], row["reason"].split(",")[0]) for row in kept} == {
        (lines[1], "it is malformed"),
        (lines[3], "it is malformed"),
    }


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("DEFINE failed AS result = 'failed' SELECT * WHERE failed AS f ; EVENT AS x", {}),
        ('SELECT * WHERE "4625" ; "4624" AS x FILTER x.type = \'4624\'', {"type": "code"}),
        ("SELECT * WHERE login : login AS x", {"constant_type": "login"}),
    ],
)
def test_events_without_a_column_of_types(spark, text, roles):
    rows = [("failed", 4625, 1), ("ok", 4624, 2), ("ok", 4624, 3)]
    df = spark.createDataFrame(rows, "result string, code int, t int")
    query = cerflow.parse(text)
    expected = query.match(pa.table(dict(zip(("result", "code", "t"), zip(*rows)))), time="t", **roles).to_pylist()
    found = cerflow.spark.match(query, df, time="t", positions=True, **roles)
    assert expected
    assert [row.asDict(recursive=True) for row in found.orderBy("detected_at").collect()] == expected
