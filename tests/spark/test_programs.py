"""Programs on Spark find what they find in this process, divided as their statements allow."""

import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, assume, event, given, settings
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, InputError, QueryError, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.spark import bad_records, explain, match, run
from cerflow.spark.frames.plan import demands_of_program
from support.generators.limits import FLOATS, INTEGERS, mostly
from support.relevance_cases import satisfying
from support.runners import bag as rows_bag
from support.runners import examples
from support.spark.results import assert_same, bag
from support.spark.tasks import Simulation

pytestmark = pytest.mark.slow

START = datetime.datetime(2024, 1, 1)
FIRST = (
    "b.v AS v, a.w AS w FROM s1 WHERE A AS a ; B AS b FILTER a.v <= b.v",
    "a.v AS v, b.w AS w FROM s1, s2 WHERE (s1>A AS a ; B AS b) UNLESS s2>C",
    "b.v AS v FROM s1 WHERE (A OR B)+ AS a : B AS b",
    "a.v AS v, count(b) AS w WHERE A AS a ; B+ AS b FILTER b[v > 0]",
    "a.v AS v FROM s1 WHERE A AS a FILTER a.v IS NOT NULL",
)
SECOND = (
    "x.v AS v, y.v AS w FROM d WHERE d AS x ; d AS y",
    "y.v AS v FROM d, s1 WHERE d AS x ; s1>A AS y FILTER y.v >= 1 OR y.w IS NULL",
    "x.v AS v FROM s1, d WHERE (s1>B ; d AS x) UNLESS s1>C",
    "z.v AS v WHERE A ; B AS z",
)
LAST = (
    "* FROM e WHERE e+",
    "x.v AS v, y.v AS w FROM d, e WHERE d>EVENT AS x ; e>EVENT AS y",
    "x.v AS v, count(z) AS n FROM s1, d, e WHERE d AS x ; EVENT+ AS z ; s1>A",
    "MAX * FROM e, d, s1 WHERE (d OR e OR A)+",
    "COUNT(*) AS n FROM d, s1 WHERE d AS x ; s1>B AS y",
    "* FROM d, s1 WHERE s1>A AS y ; d AS x",
    "* FROM d WHERE d AS x ; d AS y",
)
COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("t", pa.timestamp("us")),
        ("v", pa.int64()),
        ("w", pa.float64()),
        ("k", pa.int64()),
        ("j", pa.int64()),
        ("s", pa.string()),
        ("unused", pa.int64()),
    ]
)
ROLES = {"time": "t", "stream": "s"}


@st.composite
def programs(draw):
    """Statements with keys and windows of which many are common."""
    keys = ("", " PARTITION BY k", " PARTITION BY k, j", " PARTITION BY [j, k]")
    windows = ("", " WITHIN 9 EVENTS", " WITHIN 1 SECOND", " WITHIN 2 SECONDS", " WITHIN 2 SECONDS")
    common = draw(st.sampled_from(keys)), draw(st.sampled_from(windows))

    def select(bodies):
        key, window = (draw(st.sampled_from((*(c,) * 6, *some))) for c, some in zip(common, (keys, windows)))
        return f"SELECT {draw(st.sampled_from(bodies))}{key}{window}"

    return f"DEFINE d AS {select(FIRST)};\nDEFINE e AS {select(SECOND)};\n{select(LAST)}"


@st.composite
def streams(draw, most):
    event = st.fixed_dictionaries(
        {
            "type": st.sampled_from("AAABBBCDd"),
            "t": st.integers(0, 10).map(lambda k: START + datetime.timedelta(seconds=k / 3)),
            "v": mostly(st.sampled_from((None, 0, 1, 2)), INTEGERS),
            "w": mostly(st.sampled_from((None, 0.5, float("nan"))), FLOATS),
            "k": st.sampled_from((None, 0, 0, 1)),
            "j": st.sampled_from((None, 0, 3)),
            "s": st.sampled_from(("s1", "s1", "s1", "s1", "s2", "s3", None)),
        }
    )
    rows = sorted(draw(st.lists(event, min_size=most // 2, max_size=most)), key=lambda row: row["t"])
    return pa.Table.from_pylist(rows, COLUMNS)


def prepared(text, table, roles=ROLES):
    """A program that fits the events, and what it demands of a job that reports no positions."""
    program = cerflow.parse_program(text)
    try:
        plan = program.plan(Schema(table.schema, "type", roles["time"], roles.get("stream")))
    except (QueryError, UnsupportedQueryError, InputError):
        assume(False)
    return program, demands_of_program(plan, positions=False)


@pytest.mark.long
@examples(300)
@given(programs(), streams(16), st.data())
def test_what_need_not_be_together_may_be_apart(text, table, data):
    roles = dict(ROLES)
    if data.draw(st.booleans()) and "s2" not in text:
        # Without a column of streams the one input is whatever no definition is called.
        table, roles = table.drop_columns(["s"]), {"time": "t"}
    program, demands = prepared(text, table, roles)
    whole = program.match(table, positions=False, **roles)
    # A few examples have millions.
    assume(whole.count() < 20_000)
    expected = rows_bag(whole.to_pylist())
    event("matches" if expected else "no matches")
    assert "unused" not in demands.needed or "*" in text or "MAX" in text
    table = table.select(demands.needed)
    schema = Schema(table.schema, "type", *roles.values())
    kept = satisfying(table, demands.relevance.condition, schema)
    event(f"{'all' if len(kept) == len(table) else 'some'} events matter")
    assert rows_bag(program.match(kept, positions=False, **roles).to_pylist()) == expected
    if demands.by_key:
        event("by key")
        columns = [pc.coalesce(*(kept.column(name).cast(pa.string()) for name in key)) for key in demands.keys]
        values = list(zip(*(column.to_pylist() for column in columns), strict=True))
        found = []
        for value in {value for value in values if None not in value}:
            some = kept.filter(pa.array([other == value for other in values]))
            found += program.match(some, positions=False, **roles).to_pylist()
        assert rows_bag(found) == expected
    if demands.division.window is not None:
        event("slices")
        simulation = Simulation(
            program, table.schema, time="t", window=demands.division.window, positions=False, stream=roles.get("stream")
        )
        near = st.sampled_from(sorted({int(k) + d for k in simulation.keys(table) for d in (-1, 0, 1)}))
        starts = data.draw(st.lists(near, min_size=1, max_size=5, unique=True))
        found, _ = simulation.sliced(table, starts, batch=data.draw(st.integers(1, 9)), parts=[])
        assert rows_bag(found) == expected


@settings(examples(16), phases=[Phase.explicit, Phase.generate])
@given(programs(), streams(40), st.booleans())
def test_random_programs_on_spark(spark, text, table, positions):
    program, demands = prepared(text, table)
    event("by key" if demands.by_key and not positions else "one task")
    numbered = table.append_column("at", pa.array(range(len(table))))
    frame = spark.createDataFrame(numbered.take(pa.array(range(len(table) - 1, -1, -1))))
    found = match(text, frame, sequence="at", positions=positions, **ROLES).toArrow()
    expected = program.match(numbered, sequence="at", positions=positions, **ROLES).to_arrow()
    assert found.column_names == expected.column_names
    assert bag(found) == bag(expected)


DIPS = """
DEFINE dip AS SELECT b.price - a.price AS size FROM log
WHERE (BUY AS a ; BUY AS b) FILTER b.price < a.price PARTITION BY k WITHIN 20 SECONDS;
SELECT d.size AS size, n.price AS price FROM dip, log
WHERE dip AS d ; log>SELL AS n FILTER d.size < -1 PARTITION BY k WITHIN 15 SECONDS
"""


def trades(size=400):
    rows = [
        {
            "type": ("BUY", "SELL", "X")[k * 7 % 3],
            "t": START + datetime.timedelta(seconds=k // 2),
            "price": k * 13 % 11,
            "k": k % 5 if k % 7 else None,
        }
        for k in range(size)
    ]
    return pa.Table.from_pylist(rows)


def test_by_key_in_slices_and_in_one_task(spark, tmp_path, monkeypatch):
    table, program = trades(), cerflow.parse_program(DIPS)
    frame = spark.createDataFrame(table)
    assert assert_same(spark, program, table, frame=frame, time="t")
    assert "in parallel by key" in explain(program, frame, time="t")
    assert "type = BUY" in explain(DIPS, frame, time="t")
    assert assert_same(spark, program, table, frame=frame, time="t", positions=True)
    told = " ".join(explain(program, frame, time="t", positions=True).split())
    assert "in one ordered task" in told
    assert "positions count the events of definitions, too" in told
    for name in ("SPARK_SMALL_BYTES", "SPARK_SMALL_EVENTS"):
        monkeypatch.setattr(limits, name, 0)
    for number, at in enumerate((0, 150, 300)):
        pq.write_table(table.slice(at, 150), tmp_path / f"{number}.parquet")
    files = spark.read.parquet(str(tmp_path)).repartitionByRange(3, "t")
    monkeypatch.setattr(limits, "SPARK_SLICE_EVENTS", 20)
    keyless = cerflow.parse_program(DIPS.replace(" PARTITION BY k", ""))
    for some in (program, keyless):
        assert assert_same(spark, some, table, frame=files.cache(), time="t")
    told = " ".join(explain(keyless, files, time="t").split())
    assert "in slices of time" in told
    assert "no match goes back further than the windows of all statements" in told


def test_positions_that_statements_read_need_all_events(spark):
    table = trades(60)
    text = DIPS.replace("d.size AS size", "position(d) AS size")
    assert assert_same(spark, cerflow.parse_program(text), table, time="t", local_positions=True)
    assert "a statement reads positions" in explain(text, spark.createDataFrame(table), time="t")
    untimed = "DEFINE d AS SELECT b.price AS v FROM log WHERE BUY : SELL AS b PARTITION BY k;"
    untimed += "SELECT x.start_time AS a, x.v AS v FROM d WHERE d AS x PARTITION BY k"
    assert assert_same(spark, cerflow.parse_program(untimed), table)
    assert "times are positions" in " ".join(explain(untimed, spark.createDataFrame(table)).split())


def test_a_key_that_is_computed_anew_is_no_common_key(spark):
    table = trades(60)
    for definition in (
        "SELECT b.price AS k FROM log WHERE BUY ; SELL AS b",
        "SELECT b.k AS k FROM log WHERE SELL AS b",
    ):
        text = f"DEFINE d AS {definition}; SELECT x FROM d WHERE d AS x ; d PARTITION BY k WITHIN 9 SECONDS"
        assert assert_same(spark, cerflow.parse_program(text), table, time="t")
        assert "in parallel by key" not in explain(text, spark.createDataFrame(table), time="t")


def test_a_whole_job(spark, tmp_path):
    table = pa.concat_tables([trades(100), pa.Table.from_pylist([{"type": None}], trades().schema)])
    frame = spark.createDataFrame(table)
    letters = str(tmp_path / "bad")
    result = run(
        DIPS, frame, str(tmp_path / "out"), time="t", on_bad_record="dead-letter", dead_letter=letters, positions=True
    )
    expected = cerflow.parse_program(DIPS).match(table, time="t", on_bad_record="skip").to_arrow()
    assert (result.matches, result.events, result.bad_records) == (len(expected), 100, 1)
    assert bag(spark.read.parquet(str(tmp_path / "out")).toArrow()) == bag(expected)
    assert bad_records(frame, time="t", query=DIPS).count() == 1
    with pytest.raises(BadRecordError, match="no event type"):
        run(DIPS, frame, str(tmp_path / "other"), time="t")


@pytest.mark.parametrize(
    ("text", "roles", "error", "says"),
    [
        (DIPS, {"time": "at"}, InputError, "'at' is not in the input"),
        (DIPS.replace("n.price AS", "n.prize AS"), {"time": "t"}, QueryError, "price"),
        (DIPS.replace("d.size <", "d.sice <"), {"time": "t"}, QueryError, "Did you mean size?"),
        (DIPS.replace("AS size FROM", "AS size, a.price AS t FROM"), {"time": "t"}, QueryError, "column with the time"),
        (
            DIPS.replace("AS size FROM", "AS size, a.price AS type FROM"),
            {"time": "t"},
            QueryError,
            "column with the type",
        ),
        (DIPS.replace("FROM dip, log", "FROM dip, log, news"), {"time": "t"}, InputError, "log and news"),
        (DIPS, {"time": "t", "sequence": "no"}, InputError, "sequence column 'no'"),
        (DIPS.replace("FILTER d.size", "FILTER d.size ="), {"time": "t"}, cerflow.QuerySyntaxError, "line 5"),
    ],
)
def test_unhappy_programs_are_refused_before_any_job(spark, text, roles, error, says):
    with pytest.raises(error, match=says):
        match(text, spark.createDataFrame(trades(3)), **roles)


def test_the_data_source_refuses_definitions(spark, tmp_path):
    pq.write_table(trades(3), tmp_path / "some.parquet")
    cerflow.spark.register(spark)
    with pytest.raises(Exception, match="does not evaluate definitions"):
        spark.read.format("cerflow").option("query", DIPS).option("time", "t").load(str(tmp_path)).collect()
