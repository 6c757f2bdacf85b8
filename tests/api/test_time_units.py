"""What the numbers in a time column count: seconds, milliseconds, microseconds or nanoseconds, in every runner."""

import datetime
import warnings

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import InputError, QueryWarning, SnapshotError
from cerflow.base.schema import Schema
from cerflow.engine.slices.division import divided
from cerflow.language.formula import DurationWindow
from support.runners import ENGINE_RUNNERS, bag, examples, semantics

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
QUERY = cerflow.parse("SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS")
TEXTS = {
    "whole": "SELECT * WHERE A AS x ; B AS y WITHIN 3 SECONDS",
    "fraction": "SELECT * WHERE A AS x ; B AS y WITHIN 2 SECONDS 500 MILLISECONDS",
    "inside": "SELECT * WHERE (A AS x ; B AS y WITHIN 3 SECONDS) ; C AS z PARTITION BY k",
}


def events(times, types="AB", **more):
    return pa.table({"type": list(types), "t": pa.array(times), **more})


@pytest.mark.parametrize("unit", PER_SECOND)
def test_a_window_counts_in_the_unit(unit):
    for kind in (pa.int64(), pa.float64()):
        times = pa.array([t * PER_SECOND[unit] for t in (1000, 1009, 1010)]).cast(kind)
        table = events(times, "ABB")
        for runner in ("engine", "semantics"):
            (match,) = QUERY.match(table, time="t", time_unit=unit, runner=runner).to_pylist()
            # What is reported is what the column holds.
            assert (match["start_time"], match["end_time"]) == (times[0].as_py(), times[1].as_py())


@examples(30)
@given(st.sampled_from([*TEXTS]), st.sampled_from([*PER_SECOND]), st.booleans(), st.data())
def test_all_runners_agree_in_every_unit(name, unit, fractions, data):
    query = cerflow.parse(TEXTS[name])
    per = PER_SECOND[unit]
    steps = data.draw(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([0, 1, 2, 3])), max_size=9))
    times = [sum(step for _, step in steps[: k + 1]) * per for k in range(len(steps))]
    table = pa.table(
        {
            "type": pa.array([kind for kind, _ in steps], pa.string()),
            "t": pa.array(times, pa.float64() if fractions else pa.int64()),
            "k": pa.array(["p"] * len(steps), pa.string()),
        }
    )
    roles = {"time": "t", "time_unit": unit}
    expected = bag(semantics(query, table, **roles))
    moments = [datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=t / per) for t in times]
    stamped = table.set_column(1, "t", pa.array(moments, pa.timestamp("us")))
    ends = [match["detected_at"] for match in query.match(stamped, time="t").to_pylist()]
    assert sorted(ends) == sorted(match["detected_at"] for match in semantics(query, table, **roles))
    for runner in ENGINE_RUNNERS.values():
        assert bag(runner(query, table, **roles)) == expected
    assert bag(cerflow.QuerySet({"q": query}).match(table, **roles)["q"].to_pylist()) == expected


def test_units_that_are_none_or_have_no_place():
    with pytest.raises(ValueError, match="'s', 'ms', 'us', 'ns', not 'h'"):
        QUERY.match(events([1, 2]), time="t", time_unit="h")
    with pytest.raises(InputError, match="no time column is named"):
        QUERY.match(events([1, 2]), time_unit="s")
    stamped = events(pa.array([1, 2], pa.timestamp("ms")))
    with pytest.raises(InputError, match=r"'t' holds times of type timestamp\[ms\].*leave the unit out"):
        QUERY.match(stamped, time="t", time_unit="s")
    assert QUERY.result_schema(events([1, 2]).schema, time="t", time_unit="s").field("start_time").type == pa.int64()


# --- snapshots -------------------------------------------------------------------------------------------------------


def test_the_unit_is_part_of_a_snapshot():
    table = events([5, 14])
    for unit, found in (("s", 1), ("ms", 1), (None, 1), ("us", 1)):
        recognizer = QUERY.recognizer(table.schema, time="t", time_unit=unit)
        recognizer.push(table.slice(0, 1))
        again = cerflow.Recognizer.restore(QUERY, recognizer.snapshot())
        assert again._machine.plan.schema.microseconds == recognizer._machine.plan.schema.microseconds
        assert again.push(table.slice(1)).count() == found
    late = events([5, 15])
    recognizer = QUERY.recognizer(late.schema, time="t", time_unit="s")
    recognizer.push(late.slice(0, 1))
    assert cerflow.Recognizer.restore(QUERY, recognizer.snapshot()).push(late.slice(1)).count() == 0


def test_a_set_is_not_restored_in_another_unit():
    queries = cerflow.QuerySet({"q": QUERY})
    schema = events([1, 2]).schema
    data = queries.recognizer(schema, time="t", time_unit="s").snapshot()
    with pytest.raises(SnapshotError):
        queries.restore(data, schema, time="t")
    queries.restore(data, schema, time="t", time_unit="s")
    # Not to say anything is to say milliseconds.
    queries.restore(queries.recognizer(schema, time="t").snapshot(), schema, time="t", time_unit="ms")


# --- several inputs --------------------------------------------------------------------------------------------------


def test_inputs_of_different_units_are_brought_to_the_finest():
    left, right = events([100], "A"), events(pa.array([108_000.0, 110_000.0]), "BB")
    both = cerflow.streams(
        {"left": cerflow.Input(left, time_unit="s"), "right": cerflow.Input(right)}, time="t", time_unit="ms"
    )
    assert both.roles == {"type": "type", "time": "t", "time_unit": "ms", "stream": "stream"}
    assert both.events["t"].to_pylist() == [100_000, 108_000, 110_000]
    (match,) = QUERY.match(both.events, **both.roles).to_pylist()
    assert match["end_time"] == 108_000
    # What has no unit at all keeps none.
    plain = cerflow.streams({"left": cerflow.Input(left), "right": cerflow.Input(left)}, time="t")
    assert "time_unit" not in plain.roles


def test_inputs_that_do_not_fit():
    far = cerflow.Input(events([2**62], "A"), time_unit="s")
    with pytest.raises(InputError, match="'t' of the input 'far' does not fit 64 bits in the unit 'ns'"):
        cerflow.streams({"far": far, "near": cerflow.Input(events([1], "B"), time_unit="ns")}, time="t")
    with pytest.raises(InputError, match="no time column"):
        cerflow.streams({"far": far})
    with pytest.raises(ValueError, match="a time unit must be"):
        cerflow.Input(events([1], "B"), time_unit="m")


# --- numbers that look like another unit -----------------------------------------------------------------------------

DOUBTFUL = {"s": 1_700_000_000, "us": 1_700_000_000_000_000, "ns": 1_700_000_000_000_000_000}


@pytest.mark.parametrize("unit", DOUBTFUL)
def test_times_that_look_like_another_unit(unit):
    table = events([DOUBTFUL[unit], DOUBTFUL[unit] + 5])
    text = f"'t', such as {DOUBTFUL[unit]}, look like .* count as milliseconds.*time_unit='{unit}'"
    with pytest.warns(QueryWarning, match=text):
        QUERY.match(table, time="t")
    with pytest.warns(QueryWarning, match=text):
        cerflow.QuerySet({"q": QUERY}).match(table, time="t")
    (warning,) = QUERY.warnings(Schema(table.schema, time="t"), (DOUBTFUL[unit], DOUBTFUL[unit] + 5))
    assert (warning.line, warning.column) == (1, 39)


def test_times_that_look_right():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seconds = events([DOUBTFUL["s"], DOUBTFUL["s"] + 5])
        QUERY.match(seconds, time="t", time_unit="s")
        QUERY.match(seconds, time="t", time_unit="ms")
        QUERY.match(events([5, DOUBTFUL["s"]]), time="t")
        QUERY.match(events([1_700_000_000_000, 1_700_000_000_001]), time="t")
        QUERY.match(seconds.slice(0, 0), time="t")
        cerflow.parse("SELECT * WHERE A AS x ; B AS y WITHIN 10 EVENTS").match(seconds, time="t")


# --- windows on the time column --------------------------------------------------------------------------------------


@examples(30)
@given(
    st.sampled_from(["3 [t]", "2.5 [t]", "0.1 [t]", "1000000.5 [t]"]),
    st.sampled_from(["s", "ms", "ns", None]),
    st.sampled_from([pa.int64(), pa.float64()]),
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([0, 1, 2]), st.sampled_from("pq")), max_size=10),
)
def test_a_window_on_the_time_column_means_the_same(window, unit, kind, steps):
    times = [sum(step for _, step, _ in steps[: k + 1]) for k in range(len(steps))]
    table = pa.table(
        {
            "type": pa.array([step[0] for step in steps], pa.string()),
            "t": pa.array(times).cast(kind),
            "k": pa.array([step[2] for step in steps], pa.string()),
        }
    )
    for text in (f"A AS x ; B AS y PARTITION BY k WITHIN {window}", f"(A AS x ; B AS y WITHIN {window}) ; C AS z"):
        query = cerflow.parse(f"SELECT * WHERE {text}")
        expected = bag(semantics(query, table, time="t", time_unit=unit))
        for runner in ENGINE_RUNNERS.values():
            assert bag(runner(query, table, time="t", time_unit=unit)) == expected


@pytest.mark.parametrize(
    "where", ["A AS x ; B AS y PARTITION BY k WITHIN 20 [t]", "(A ; B WITHIN 20 [t]) PARTITION BY k"]
)
def test_keys_that_a_window_on_the_time_column_has_passed_are_forgotten(where):
    query = cerflow.parse(f"SELECT * WHERE {where}")
    count = 20_000
    table = pa.table({"type": ["A"] * count, "t": range(count), "k": range(count)})
    recognizer = query.recognizer(table.schema, time="t")
    for start in range(0, count, 1000):
        recognizer.push(table.slice(start, 1000))
    assert recognizer.live["partitions"] < 1000
    # Of another attribute nobody knows that it ascends along the whole stream.
    recognizer = query.recognizer(table.schema)
    recognizer.push(table)
    assert recognizer.live["partitions"] == count


def test_a_snapshot_of_a_window_on_the_time_column():
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y WITHIN 20 [t]")
    table = events([1, 20])
    recognizer = query.recognizer(table.schema, time="t")
    recognizer.push(table.slice(0, 1))
    assert cerflow.Recognizer.restore(query, recognizer.snapshot()).push(table.slice(1)).count() == 1


def test_slices_by_a_window_on_the_time_column():
    query = cerflow.parse("SELECT * WHERE A AS x ; B AS y PARTITION BY k WITHIN 20 [t]")
    schema = events([1], "A", k=[1]).schema
    for time, window in (("t", DurationWindow(20_000)), (None, None)):
        plan = query.plan(Schema(schema, time=time))
        assert divided(query.tree, plan.transducer).window == window
