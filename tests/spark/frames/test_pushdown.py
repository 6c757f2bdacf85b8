"""What Spark drops cannot be noticed, and Spark evaluates what it is sent as the engine does."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812

from cerflow.base.operators import Operator
from cerflow.engine.pushdown.relevance import plainly
from cerflow.language.condition import Arithmetic, Attribute, Comparison, Literal, Not
from cerflow.logic.conditions.connectives import TRUE
from cerflow.logic.conditions.guards import Satisfied
from cerflow.logic.conditions.propositions import is_not_true, is_true, leaves_of, weakened
from cerflow.logic.conditions.register_values import Microseconds
from cerflow.spark import explain, match
from cerflow.spark.frames import events as spark_events
from cerflow.spark.frames.conditions import SparkConditions
from cerflow.spark.placing import ordering
from support import adversarial
from support.relevance_cases import FRAGMENTS, drawn
from support.runners import ONLY_DEEP, examples
from support.spark.results import assert_same, bag

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def adversarial_frame(spark):
    numbered = adversarial.TABLE.append_column("at", pa.array(range(len(adversarial.TABLE))))
    return spark.createDataFrame(numbered).repartition(1).cache()


@pytest.mark.parametrize("ansi", ["true", "false"])
@settings(
    examples(4), deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(st.lists(adversarial.conditions(), min_size=30, max_size=30))
def test_spark_sees_conditions_as_the_engine_does(spark, adversarial_frame, ansi, drawn_conditions):
    frame = adversarial_frame
    types = {field.name: field.dataType for field in frame.schema.fields}
    conditions = SparkConditions(types, {name: name for name in types}, "type")
    columns, expected = [], []
    for condition in drawn_conditions:
        for make, asked in ((is_true, condition), (is_not_true, Not(Satisfied(condition)))):
            proposition = plainly(make(condition), adversarial.SCHEMA)
            exact = all(map(conditions.decides, leaves_of(proposition)))
            left = weakened(proposition, conditions.decides)
            columns.append(F.coalesce(conditions.proposition(left), F.lit(False)).alias(f"x{len(columns)}"))
            expected.append((condition, exact, adversarial.truth(asked)))
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        found = frame.select("at", *columns).orderBy("at").toArrow()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    assert any(exact for _, exact, _ in expected)
    for k, (condition, exact, true) in enumerate(expected):
        kept = found[f"x{k}"].to_pylist()
        if exact:
            assert kept == true, condition
        else:
            assert all(a for a, b in zip(kept, true) if b), condition


@pytest.mark.long
@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=ONLY_DEEP), "America/New_York"])
def test_times_do_not_depend_on_the_zone_of_the_session(spark, adversarial_frame, zone):
    types = {field.name: field.dataType for field in adversarial_frame.schema.fields}
    conditions = SparkConditions(types, {name: name for name in types}, "type")
    asked = []
    for names in adversarial.TIMES:
        first, second = (Microseconds(Attribute(None, name)) for name in names)
        for literal in map(Literal, (0, -1, 300 * 10**6, 2**62, 1_711_846_800_000_000)):
            asked += [Comparison(o, v, literal) for o in Operator for v in (first, Arithmetic("-", first, second))]
    assert all(map(conditions.decides, asked))
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        columns = [F.coalesce(conditions.proposition(c), F.lit(False)).alias(f"x{k}") for k, c in enumerate(asked)]
        found = adversarial_frame.select("at", *columns).orderBy("at").toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for k, condition in enumerate(asked):
        assert found[f"x{k}"].to_pylist() == adversarial.truth(condition), condition


def test_durations_are_compared_by_spark(spark):
    table = pa.table(
        {
            "type": ["A"] * 4,
            "t": range(4),
            "begun": pa.array([0] * 4, pa.timestamp("us", "UTC")),
            "ended": pa.array([0, 10**7, 4 * 10**8, None], pa.timestamp("us", "UTC")),
            "took": pa.array([0, 10**7, 4 * 10**8, None], pa.duration("us")),
        }
    )
    for asked in ("x.ended - x.begun > 5 MINUTES", "x.took > 5 MINUTES"):
        query = f"SELECT * WHERE A AS x FILTER {asked}"
        said = explain(query, spark.createDataFrame(table), time="t")
        assert "only those with  type = A AND microseconds(" in said
        assert "left to the tasks" not in said
        assert len(assert_same(spark, query, table, time="t")) == 1


def filters(frame):
    """The conditions by which Spark drops rows."""
    # As asked for: of local data the optimiser drops rows by itself.
    plan = frame._jdf.queryExecution().analyzed().toString()
    return [line.strip(" +-:") for line in plan.splitlines() if line.strip(" +-:").startswith("Filter")]


def turned_off(monkeypatch):
    monkeypatch.setattr(spark_events, "pushdown", lambda *_: (TRUE, ()))
    monkeypatch.setattr(ordering.e, "narrowed", lambda plan, events: (plan, None))


@settings(
    examples(10), deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(st.data(), st.sampled_from(sorted(FRAGMENTS)), st.booleans(), st.sampled_from(("fail", "skip")))
def test_matches_are_the_same_without_it(spark, data, kind, positions, policy):
    query, table = drawn(data, kind)
    frame = spark.createDataFrame(table).repartition(1).sortWithinPartitions("at").cache()
    roles = {"time": "t", "sequence": "at", "stream": "from", "positions": positions, "on_bad_record": policy}
    found = bag(match(query, frame, **roles).toArrow())
    with pytest.MonkeyPatch.context() as patch:
        turned_off(patch)
        assert bag(match(query, frame, **roles).toArrow()) == found
    frame.unpersist()


EVENTS = pa.Table.from_pylist(
    [
        {
            "type": "ABCD"[k % 4],
            "v": k % 7,
            "s": ("pq", "q", None)[k % 3],
            "k": None if k % 11 == 0 else k % 3,
            "t": k // 2,
        }
        for k in range(200)
    ]
)


@pytest.mark.parametrize(
    ("query", "kept", "options"),
    [
        ("SELECT * WHERE A AS a ; B AS b FILTER a.v > 4 WITHIN 20 MILLISECONDS", "cast(4 as bigint)", {}),
        ("SELECT COUNT(*) AS n WHERE A ; B FILTER A.s LIKE 'p%' PARTITION BY k", "StartsWith", {}),
        ("SELECT * WHERE A ; B FILTER B.v = 2 PARTITION BY k", "cast(2 as bigint)", {"positions": True}),
        ("SELECT NONE WHERE A ; B UNLESS C FILTER A.v < 2", "(B,C)", {"on_bad_record": "skip"}),
        ("SELECT * WHERE A ; B FILTER A.s REGEXP 'p' AND B.v = 1", "cast(1 as bigint)", {}),
    ],
)
def test_what_is_dropped(spark, query, kept, options):
    frame = spark.createDataFrame(EVENTS)
    assert any(kept in line for line in filters(match(query, frame, time="t", **options)))
    options.pop("on_bad_record", None)
    assert assert_same(spark, query, EVENTS, time="t", **options)


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("SELECT * WHERE A : B", {}),
        ("SELECT * WHERE A ; B WITHIN 3 EVENTS", {}),
        ("SELECT * WHERE A ; EVENT WITHIN 3 MILLISECONDS", {}),
        ("SELECT * WHERE A ; B FILTER A.v = 1", {"positions": True}),
        ("SELECT position(b) AS p WHERE A ; B AS b FILTER A.v = 1", {}),
    ],
)
def test_where_nothing_is_dropped(spark, query, options):
    assert not filters(match(query, spark.createDataFrame(EVENTS), time="t", **options))


def test_bad_records_are_found_among_events_that_do_not_matter(spark):
    rows = [{"type": "A", "t": 1}, {"type": "B", "t": None}, {"type": None, "t": 3}, {"type": "B", "t": 4}]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows))
    for kind in ("C", "A"):
        with pytest.raises(Exception, match=r"no (time|event type) in '"):
            match(f"SELECT * WHERE {kind}", frame, time="t").count()
    assert match("SELECT * WHERE A", frame, time="t", on_bad_record="skip").count() == 1


def test_texts_that_are_compared_without_case_are_left_to_the_engine(spark):
    frame = spark.createDataFrame(EVENTS).selectExpr("type", "v", "t", "s COLLATE UTF8_LCASE AS s")
    query = "SELECT * WHERE A AS a FILTER a.s = 'PQ'"
    plan = match(query, frame, time="t")
    assert not any("PQ" in line for line in filters(plan))
    assert plan.count() == 0


def test_files_are_searched_for_what_matters(spark, tmp_path):
    spark.createDataFrame(EVENTS).write.parquet(str(tmp_path / "events"))
    frame = spark.read.parquet(str(tmp_path / "events"))
    query = "SELECT * WHERE A AS a ; B AS b FILTER a.v > 4.5 AND b.s != 'q'"
    found = match(query, frame, time="t", on_bad_record="skip")
    assert "GreaterThanOrEqual(v,5)" in found._jdf.queryExecution().executedPlan().toString()


def test_conditions_without_end_are_sent_as_types(spark):
    steps = " ; ".join(f"T{k} AS t{k}" for k in range(150))
    conditions = " AND ".join(f"t{k}.v > {k} AND t{k}.s != 'x'" for k in range(150))
    frame = spark.createDataFrame(EVENTS)
    (line,) = filters(match(f"SELECT * WHERE {steps} FILTER {conditions}", frame, time="t"))
    assert "T149" in line
    assert "x" not in line.replace("T149", "")
    assert match(f"SELECT * WHERE {steps} FILTER {conditions}", frame, time="t").count() == 0


def test_it_is_told_what_is_sent(spark):
    frame = spark.createDataFrame(EVENTS)
    text = explain("SELECT COUNT(*) AS n WHERE A ; B FILTER A.s REGEXP 'p' AND B.v < 3 AND A.v = 1", frame, time="t")
    assert text.splitlines() == [
        "Sent to the tasks",
        "  rows               only those with  type = A AND v = 1 OR type = B AND v < 3",
        "  left to the tasks  s REGEXP 'p'",
        "  columns            s, t",
        "  as bits            type = A; v = 1; type = B; v < 3",
        "",
        "Divided",
        "  how        in one ordered task",
        "  why        no window bounds how far back a match may depend on events",
        "  positions  not asked for",
    ]
    assert "all: no event may come between" in explain("SELECT * WHERE A : B", frame)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT COUNT(*) AS n WHERE A ; B FILTER A.s LIKE 'p%' AND B.v != 3 WITHIN 9 MILLISECONDS", ["t"]),
        ("SELECT NONE WHERE A ; (EVENT AS x FILTER NOT x.s = 'q') ; B PARTITION BY k", ["k", "t"]),
        ("SELECT x[v] WHERE A AS x ; B AS y FILTER y.s IN ('pq', 'r') AND x.v < y.v", ["type", "v", "t"]),
        ("SELECT COUNT(*) AS n WHERE A : D FILTER A.s = 'q' PARTITION BY k", ["k", "t"]),
    ],
)
def test_what_only_conditions_read_is_sent_as_bits(spark, query, columns):
    text = explain(query, spark.createDataFrame(EVENTS), time="t")
    assert f"columns {', '.join(columns)} as bits " in " ".join(text.split())
    assert assert_same(spark, query, EVENTS, time="t")


def test_where_columns_are_reported_nothing_is_sent_as_bits(spark):
    frame = spark.createDataFrame(EVENTS)
    for query, options in (
        ("SELECT * WHERE A FILTER A.s = 'q'", {}),
        ("SELECT COUNT(*) AS n WHERE A FILTER A.s = 'q'", {"positions": True}),
        ("SELECT COUNT(*) AS n WHERE A FILTER A.s REGEXP 'q' AND A.type REGEXP 'A'", {}),
    ):
        assert "as bits" not in explain(query, frame, time="t", **options)


def test_values_that_cannot_be_held_are_told_where_they_are_not_sent(spark):
    rows = [("A", 1, -(2**63), "x"), ("A", 2, 5, "x")]
    frame = spark.createDataFrame(rows, "type string, t bigint, v bigint, s string")
    query = "SELECT COUNT(*) AS n WHERE A AS x FILTER x.v < 7 AND x.s = 'x'"
    assert "columns  t\n" in explain(query, frame, time="t")
    with pytest.raises(Exception, match=r"BadRecordError: row \{v: -9223372036854775808\}: a value of 'v' is not "):
        match(query, frame, time="t").count()
    assert match(query, frame, time="t", on_bad_record="skip").count() == 1


def test_bad_records_are_told_where_types_are_not_sent(spark):
    rows = [{"type": "A", "t": 1, "s": "x"}, {"type": None, "t": 3, "s": "y"}]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows))
    query = "SELECT COUNT(*) AS n WHERE A FILTER A.s = 'x'"
    with pytest.raises(Exception, match=r"\{t: 3\}.*no event type in 'type'"):
        match(query, frame, time="t").count()
    assert match(query, frame, time="t", on_bad_record="skip").count() == 1
