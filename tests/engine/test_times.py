"""Timestamps and durations: random queries that compute with them, on columns of all units."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.language.select import ExpressionItem, Projection, ProjectionKind
from cerflow.logic.analysis.scopes import labels_of
from support.conformance import limit, table_of
from support.generators.conditions import Fragment
from support.generators.selects import cases
from support.generators.times import BEGIN, Times, moments, spans
from support.runners import ENGINE_RUNNERS, bag, examples, semantics

#: Columns of timestamps: that of the time, ``u`` and ``d``.
STAMPED = {
    "microseconds": (pa.timestamp("us"), pa.timestamp("us"), pa.duration("us")),
    "zones": (pa.timestamp("us", "Europe/Vienna"), pa.timestamp("us", "UTC"), pa.duration("us")),
    "milliseconds": (pa.timestamp("ms"), pa.timestamp("us"), pa.duration("ms")),
    "nanoseconds": (pa.timestamp("ns"), pa.timestamp("ns"), pa.duration("ns")),
}
#: Columns of a numeric time, and its unit.
NUMERIC = {
    "milliseconds": (pa.int64(), None),
    "seconds": (pa.int32(), "s"),
    "microseconds": (pa.int64(), "us"),
    "nanoseconds": (pa.int64(), "ns"),
    "floats": (pa.float64(), "ms"),
}


def with_times(data, rows, t, u, d):
    """The rows of a random stream as a table with times."""
    far = "ns" not in (u.unit, d.unit) and d.unit == "us"
    table = table_of(rows)
    if pa.types.is_timestamp(t):
        begin = int(BEGIN.timestamp() * 1000)
        at = pa.array([begin + row["t"] for row in rows], pa.timestamp("ms", t.tz)).cast(t)
        if far and t.tz is None and data.draw(st.integers(0, 2)) == 2:
            size = len(rows)
            ends = data.draw(st.lists(moments(far), min_size=size, max_size=size).map(sorted))
            at = pa.array([moment.replace(tzinfo=None) for moment in ends], t)
    else:
        at = pa.array([row["t"] for row in rows], t)
    size = len(rows)

    def column(values, kind):
        found = data.draw(st.lists(st.one_of(st.none(), values, values, values, values), min_size=size, max_size=size))
        return pa.array(found, kind)

    table = table.set_column(table.schema.get_field_index("t"), "t", at)
    plain = moments(far).map(lambda m: m.replace(tzinfo=None)) if u.tz is None else moments(far)
    return table.append_column("u", column(plain, u)).append_column("d", column(spans(far), d))


def drawn(data, fragment, kinds):
    select, rows = data.draw(cases(fragment, ends=kinds[0] == pa.int64()))
    labels = labels_of(select.formula)
    if labels.bound and data.draw(st.booleans()):
        times = Times(data.draw, sorted(labels.bound), fragment.numeric)
        made = [times.span, times.moment, lambda: times.of_set(data.draw(st.sampled_from(sorted(labels.assigned))))]
        if fragment.numeric:
            made.append(times.ticks)
        items = tuple(ExpressionItem(data.draw(st.sampled_from(made))(), name) for name in ("c1", "c2"))
        select = replace(select, projection=Projection(ProjectionKind.ALL, items))
    table = with_times(data, rows, *kinds)
    try:
        query = cerflow.Query(select)
        query.result_schema(table.schema, time="t")
    except QueryError:
        assume(False)
    assume(limit(query.tree) is None)
    return query, table


def assert_conforms(query, table, **roles):
    wanted = semantics(query, table, time="t", **roles)
    for name, run in ENGINE_RUNNERS.items():
        try:
            found = run(query, table, time="t", **roles)
        except UnsupportedQueryError as error:
            # Parts of dates, as of all that is computed, are not asked of values of several events.
            event(error.reason)
            return
        assert bag(found) == bag(wanted), name


@pytest.mark.slow
@pytest.mark.parametrize("units", STAMPED)
@examples(60)
@given(st.data())
def test_timestamps(units, data):
    fragment = Fragment(times=True, aggregates=data.draw(st.booleans()), depth=2)
    assert_conforms(*drawn(data, fragment, STAMPED[units]))


@pytest.mark.parametrize("units", NUMERIC)
@examples(40)
@given(st.data())
def test_numeric_times(units, data):
    t, unit = NUMERIC[units]
    fragment = Fragment(times=True, numeric=True, aggregates=data.draw(st.booleans()), depth=2)
    query, table = drawn(data, fragment, (t, pa.timestamp("us"), pa.duration("us")))
    assert_conforms(query, table, time_unit=unit)


# -- worked examples --------------------------------------------------------------------------------------------


def at(minute, second=0):
    return datetime(2024, 3, 15, 10, minute, second, tzinfo=UTC)


VISITS = pa.table(
    {
        "type": ["A", "B", "B", "B"],
        "t": pa.array([at(0), at(2), at(7), at(9, 30)], pa.timestamp("us", "UTC")),
        "d": pa.array([timedelta(minutes=3), None, timedelta(minutes=7), timedelta(seconds=-1)], pa.duration("us")),
    }
)


@pytest.mark.parametrize(
    ("condition", "ends"),
    [
        ("y.t - x.t < 5 MINUTES", [1]),
        ("y.t - x.t = INTERVAL '7' MINUTE", [2]),
        ("y.t - x.t BETWEEN 7 MINUTES AND 9 MINUTES 30 SECONDS", [2, 3]),
        ("time(y) > time(x) + 7 MINUTES", [3]),
        ("y.t - 5 MINUTES < '2024-03-15T10:00'", [1]),
        ("y.t - '2024-03-15T10:07' > 0 SECONDS", [3]),
        ("'2024-03-15T11:00+01:00' - x.t < y.d", [2]),
        ("y.d > 2 * x.d", [2]),
        ("y.d / 2 > 3 MINUTES", [2]),
        ("(y.t - x.t) / 1 MINUTE > 9", [3]),
        ("abs(y.d) = 1 SECOND", [3]),
        ("-y.d = 1 SECOND", [3]),
        ("y.d IN (7 MINUTES, -1 SECONDS)", [2, 3]),
        ("y.d IS NULL", [1]),
        ("y.t + y.d IS NULL", [1]),
        ("y.d * 1e300 IS NULL AND y.d IS NOT NULL", [2, 3]),
        ("y.t + 3000000 DAYS IS NULL", [1, 2, 3]),
        ("y.d / 0 IS NULL", [1, 2, 3]),
        ("y.t - x.t < x.d AND y.d IS NULL", [1]),
    ],
)
def test_conditions(condition, ends, runner):
    query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition}")
    assert [row["end"] for row in runner(query, VISITS, time="t")] == ends


@pytest.mark.parametrize(
    ("condition", "supports"),
    [
        ("max(y.t) - min(y.t) > 7 MINUTES", [(1, 3), (1, 2, 3)]),
        ("avg(y.d) = 3 MINUTES 29.5 SECONDS", [(2, 3), (1, 2, 3)]),
        ("sum(y.d) = 7 MINUTES AND last(y.t) - first(y.t) >= 5 MINUTES", [(1, 2)]),
        ("decreasing(y.d) AND count(y) > 1", [(2, 3)]),
    ],
)
def test_aggregates(condition, supports, runner):
    query = cerflow.parse(f"SELECT * WHERE (B AS y)+ FILTER {condition}")
    found = [tuple(e["position"] for e in row["events"]) for row in runner(query, VISITS, time="t")]
    assert sorted(found) == sorted(supports)


def test_computed_columns(runner):
    query = cerflow.parse(
        "SELECT y.t - x.t AS gap, y.t + x.d AS later, avg(y.d) AS mean, y.d AS own, x.d / 1 MINUTE AS ratio, "
        "time(y) AS stamp WHERE (A AS x ; B AS y) FILTER y.d > 5 MINUTES"
    )
    (row,) = runner(query, VISITS, time="t")
    minutes = timedelta(minutes=7)
    expected = {"gap": minutes, "later": at(10), "mean": minutes, "own": minutes, "ratio": 3.0, "stamp": at(7)}
    assert {name: row[name] for name in expected} == expected
    types = query.result_schema(VISITS.schema, time="t")
    assert [types.field(name).type for name in ("gap", "later")] == [pa.duration("us"), pa.timestamp("us", "UTC")]


@pytest.mark.parametrize(("unit", "size"), [(None, 1000), ("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)])
def test_a_numeric_time_counts_its_unit(unit, size, runner):
    table = pa.table({"type": ["A", "B", "B"], "t": [0, size, 3 * size]})
    query = cerflow.parse(
        "SELECT time(y) - 1 SECOND AS before WHERE (A AS x ; B AS y) FILTER time(y) - time(x) > 1.5 SECONDS"
    )
    (row,) = runner(query, table, time="t", time_unit=unit)
    assert row["before"] == 2 * size


def test_durations_finer_than_microseconds_are_rounded_down(runner):
    values = pa.array([1999, -1], pa.duration("ns"))
    table = pa.table({"type": ["A", "A"], "d": values})
    query = cerflow.parse("SELECT x.d / 0.001 MILLISECONDS AS n WHERE A AS x")
    assert [row["n"] for row in runner(query, table)] == [1.0, -1.0]


def test_durations_beyond_64_bits_are_refused():
    table = pa.table({"type": ["A"], "d": pa.array([2**60], pa.duration("s"))})
    with pytest.raises(cerflow.BadRecordError, match="beyond 64 bits of microseconds"):
        cerflow.parse("SELECT * WHERE A AS x FILTER x.d > 1 SECOND").match(table)


def test_a_duration_is_a_partition_key(runner):
    table = pa.table({"type": ["A", "A", "B"], "d": pa.array([5, 6, 5], pa.duration("s"))})
    (row,) = runner(cerflow.parse("SELECT * WHERE A ; B PARTITION BY d"), table)
    assert (row["start"], row["end"], row["d"]) == (0, 2, timedelta(seconds=5))


def test_predicates_get_timedeltas(predicate, runner):
    predicate("long", compile=False)(lambda span, moment: span > timedelta(minutes=5) and moment == at(7))
    query = cerflow.parse("SELECT * WHERE B AS y FILTER long(y.d, time(y))")
    assert [row["end"] for row in runner(query, VISITS, time="t")] == [2]
