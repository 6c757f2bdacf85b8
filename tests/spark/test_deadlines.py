"""NOT FOLLOWED BY on Spark: any event may show that a deadline has passed, in one task or in slices of time."""

import random

import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.base.schema import Schema
from cerflow.spark import explain, match
from cerflow.spark.frames.plan import demands_of_program
from support.spark.parquet_streams import recognised, write
from support.spark.results import assert_same, bag

pytestmark = pytest.mark.slow

CART = "SELECT * WHERE (cart AS c NOT FOLLOWED BY checkout FOR 5 SECONDS) PARTITION BY [user]"


def shop(count):
    draw = random.Random(3)
    users = [draw.choice(["ann", "bob", "cleo", None]) for _ in range(count)]
    return pa.table(
        {
            "type": [draw.choice(["cart", "checkout", "view"]) for _ in range(count)],
            "t": pa.array(sorted(draw.randint(0, 300_000) for _ in range(count))),
            "user": users,
        }
    )


def test_events_of_other_keys_show_deadlines(spark):
    table = shop(300)
    assert assert_same(spark, CART, table, positions=True, time="t")
    assert assert_same(spark, CART, table, time="t")
    # What the query does not name shows the time, too.
    assert "any event may show that a deadline has passed" in explain(CART, spark.createDataFrame(table), time="t")
    unbounded = "SELECT * WHERE (view ; cart NOT FOLLOWED BY checkout FOR 5 SECONDS)"
    assert "nothing bounds the" in explain(unbounded, spark.createDataFrame(table), time="t")


BY_CLOCK = [
    "SELECT * WHERE (view ; cart) NOT FOLLOWED BY checkout FOR 5 SECONDS PARTITION BY [user]",
    "SELECT count(c) AS n WHERE (view AS v ; cart+ AS c) NOT FOLLOWED BY checkout FOR 2 SECONDS PARTITION BY [user]",
    "SELECT * WHERE (view NOT FOLLOWED BY cart FOR 2 SECONDS) ; checkout PARTITION BY [user]",
]
#: What depends on the matches that are detected together.
TOGETHER = [
    "SELECT MAX * WHERE (view ; cart) NOT FOLLOWED BY checkout FOR 5 SECONDS PARTITION BY [user]",
    "SELECT v WHERE (view AS v ; cart) NOT FOLLOWED BY checkout FOR 5 SECONDS PARTITION BY [user]",
    "SELECT COUNT(*) WHERE (view ; cart) NOT FOLLOWED BY checkout FOR 5 SECONDS PARTITION BY [user]",
    "SELECT * WHERE (view ; cart) NOT FOLLOWED BY checkout FOR 5 SECONDS PARTITION BY [user] LIMIT 1",
    "SELECT * WHERE (view ; cart) NOT FOLLOWED BY checkout FOR 5 SECONDS PARTITION BY [user] CONSUME BY PARTITION",
]


@pytest.mark.parametrize("query", BY_CLOCK)
def test_a_clock_shows_deadlines_to_keys_of_a_large_input(spark, monkeypatch, query):
    monkeypatch.setattr(limits, "SPARK_SMALL_BYTES", 0)
    table = shop(60)
    frame = spark.createDataFrame(table).repartition(3)
    assert "in parallel by key" in explain(query, frame, time="t")
    for until in (None, table["t"][-1].as_py() + 1_500):
        expected = cerflow.parse(query).match(table, time="t", positions=False, until=until).to_arrow()
        assert bag(match(query, frame, time="t", until=until).toArrow()) == bag(expected)
        assert expected.num_rows
    assert "one ordered task" in explain(query, frame, time="t", positions=True)


@pytest.mark.parametrize("query", TOGETHER)
def test_one_task_sees_what_is_detected_together(spark, monkeypatch, query):
    monkeypatch.setattr(limits, "SPARK_SMALL_BYTES", 0)
    assert "one ordered task" in explain(query, spark.createDataFrame(shop(60)), time="t")


#: Conditions make all events of a match agree on the user; a match of one event may have none.
AGREEING = {
    "cart AS c NOT FOLLOWED BY (checkout AS o FILTER o.user = c.user) FOR 5 SECONDS": "a clock shows deadlines",
    "(view AS v ; cart AS c) FILTER v.user = c.user AND c.v > v.v": "agree on user",
    "((view AS v ; cart AS c) FILTER v.user = c.user) WITHOUT (checkout AS o FILTER o.user = v.user)": "agree on user",
    "(view AS v ; cart AS c ; checkout AS o) FILTER v.user = c.user AND c.user = o.user AND v.v < 5": "agree on user",
}


@pytest.mark.parametrize("formula", AGREEING)
def test_keys_that_follow_from_conditions_divide_a_batch(spark, monkeypatch, formula):
    monkeypatch.setattr(limits, "SPARK_SMALL_BYTES", 0)
    table = shop(80)
    table = table.append_column("v", pa.array(range(80)))
    frame, query = spark.createDataFrame(table).repartition(3), f"SELECT * WHERE ({formula})"
    told = explain(query, frame, time="t")
    assert "in parallel by key" in told
    assert AGREEING[formula] in " ".join(told.split())
    expected = cerflow.parse(query).match(table, time="t", positions=False).to_arrow()
    assert bag(match(query, frame, time="t").toArrow()) == bag(expected)
    assert expected.num_rows
    assert any(len({event["user"] for event in row}) == 1 for row in expected["events"].to_pylist())
    schema = Schema(table.schema, "type", "t")
    assert "by key (user, in batches)" in cerflow.parse(query).explain("text", schema)
    assert_same(spark, query, table, positions=True, time="t")


def test_until(spark):
    table = shop(300)
    until = table["t"][-1].as_py() + 4_000
    found = assert_same(spark, CART, table, positions=True, time="t", until=until)
    assert {row["detected_time"] for row in found if row["detected_at"] is None}
    frame = spark.createDataFrame(table)
    program = cerflow.parse_program(
        f"DEFINE lost AS {CART};\nSELECT * FROM lost WHERE lost NOT FOLLOWED BY lost FOR 1 SECOND"
    )
    assert_same(spark, program, table, positions=True, time="t", until=until)
    with pytest.raises(InputError, match="'soon' is not a time of the column 't'"):
        match(CART, frame, time="t", until="soon")
    endless = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match="until is for batches"):
        match("SELECT * WHERE A", endless, type="value", time="timestamp", until="2024-03-15")


def test_programs_with_deadlines_are_not_cut():
    """The events of the last query come from far apart, and only they show its deadlines."""
    text = "DEFINE d AS SELECT a.v AS v FROM s WHERE A AS a FILTER a.v > 0 WITHIN 1 SECOND;\n"
    program = cerflow.parse_program(text + "SELECT * FROM d WHERE d AS x NOT FOLLOWED BY d FOR 5 SECONDS")
    columns = pa.schema([("type", pa.string()), ("t", pa.int64()), ("v", pa.int64())])
    division = demands_of_program(program.plan(Schema(columns, "type", "t")), positions=False).division
    assert division.window is None
    assert "of the last query: any event that it reads may show" in division.reason


def test_deadlines_of_attributes_are_shown_by_events_of_the_key(spark):
    query = "SELECT * WHERE (cart AS c NOT FOLLOWED BY checkout FOR 5000 [at]) PARTITION BY [user]"
    table = shop(300)
    assert assert_same(spark, query, table.append_column("at", table["t"]), time="t")


def test_the_data_source(tmp_path):
    table = shop(2000)
    write(tmp_path, table, [(100,) * 10, (100,) * 5])
    found = recognised(CART, tmp_path, time="t")
    expected = cerflow.parse(CART).match(table, time="t", positions=False).to_arrow()
    assert bag(found) == bag(expected)
