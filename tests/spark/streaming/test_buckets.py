"""The buckets of streaming queries without Spark: cuts, disorder and accidents change nothing."""

import datetime as dt
import json
from base64 import b64decode
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, CerflowError, SnapshotError, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.base.units import DAY
from cerflow.engine.evaluate.measures import clock_time
from cerflow.engine.recognize.plan import Plan
from cerflow.spark.streaming import processor
from cerflow.spark.streaming.buckets import BEGINNING, PACKED, clock_value, instant_of, packed_by_bucket, unpacked_rows
from cerflow.spark.streaming.processor import StateHead
from support.generators.conditions import Fragment
from support.generators.queries import streams
from support.generators.selects import cases
from support.runners import examples
from support.spark.buckets import END, MemoryStore, StreamingRun, assert_as_sorted
from support.spark.results import bag

COLUMNS = pa.schema(
    [
        *(
            ("type", pa.string()),
            ("t", pa.int64()),
            ("v", pa.int64()),
            ("w", pa.float64()),
            ("s", pa.string()),
            ("e", pa.string()),
        ),
        *(("k", pa.int64()), ("n", pa.int64()), ("seq", pa.int64())),
    ]
)
PAIRS = "SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY [k] WITHIN 20 MILLISECONDS"


def by_key(query):
    """The bucket of a row by its keys."""

    def bucket_of(row):
        return hash(tuple(next((row[n] for n in key if row[n] is not None), None) for key in query.partition)) % 3

    return bucket_of


#: What is added to times in milliseconds: they lie on both sides of 1970, centuries away, or at the ends of instants.
PLACES = (0, -7, -10, -(10**13), 10**13, BEGINNING // 1000, END - 1000)


@pytest.mark.filterwarnings("ignore:one task at a time")
@given(cases(Fragment(), strategies=True, ends=False), st.data())
@examples(60)
def test_disorder_cuts_and_accidents_change_nothing(case, data):
    select, rows = case
    delay = data.draw(st.sampled_from((0, 1, 4)), "delay")
    rows = at_other_times(rows, data)
    arrivals = [row["t"] + data.draw(st.integers(0, delay)) for row in rows]
    coming = [rows[k] for k in sorted(range(len(rows)), key=lambda k: (arrivals[k], -k))]
    try:
        run = StreamingRun(cerflow.Query(select), COLUMNS, by_key(select), delay)
    except UnsupportedQueryError:
        return
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6), "cuts"))
    log, chunk = data.draw(st.sampled_from(((0, 100), (800, 1 << 20), (1 << 16, 1 << 20))), "sizes")
    with (
        mock.patch.multiple(limits, STREAM_LOG_BYTES=log, STREAM_LOG_RATIO=0, STREAM_CHUNK_BYTES=chunk),
        mock.patch.object(limits, "STREAM_BUCKETS_HELD", data.draw(st.sampled_from((1, 256)), "held")),
    ):
        for begin, end in zip([0, *cuts], [*cuts, len(rows)]):
            run.batch(coming[begin:end], pieces=data.draw(st.integers(1, 3)), rehearsed=data.draw(st.booleans()))
            if data.draw(st.booleans()):
                run.elsewhere()
        run.end()
    assert not run.late
    assert_as_sorted(run, rows)


def at_other_times(rows, data):
    """Rows with numbers, somewhere on the axis of time, those after a drawn one centuries after the others."""
    place, cut = data.draw(st.sampled_from(PLACES), "place"), data.draw(st.integers(0, 3 * len(rows)), "cut")
    gap = 10**13 if place < 10**13 else 0
    return [{**row, "seq": n, "t": row["t"] + place + gap * (n >= cut)} for n, row in enumerate(rows)]


ABSENCE = "SELECT {how} a.v AS v WHERE {what} PARTITION BY [k] {then}"
WAITING = "(A AS a NOT FOLLOWED BY B FOR 5 MILLISECONDS)"


def run_in_random_batches(run, rows, data):
    """Give a run the rows in batches of drawn sizes, some of them twice, with states that other processes hold."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=6), "cuts"))
    with mock.patch.multiple(limits, STREAM_LOG_BYTES=data.draw(st.sampled_from((0, 1 << 16))), STREAM_LOG_RATIO=0):
        for begin, end in zip([0, *cuts], [*cuts, len(rows)]):
            run.batch(rows[begin:end], rehearsed=data.draw(st.booleans()))
            if data.draw(st.booleans()):
                run.elsewhere()
        run.end()


def clocked(query, rows):
    """The matches of rows in the order of time, with a clock that is shown at each time."""
    recognizer = query.recognizer(COLUMNS, type="type", time="t", positions=False)
    rows = sorted(rows, key=lambda row: (row["t"], row["seq"]))
    found = []
    # No deadline is so far after an event.
    times = {row["t"] + after for row in rows for after in range(40)}
    for time in sorted(times):
        found += recognizer.advance(time).to_arrow().to_pylist()
        found += recognizer.push([row for row in rows if row["t"] == time]).to_arrow().to_pylist()
    return found


WHAT = (
    WAITING,
    f"{WAITING} ; C",
    f"{WAITING} OR (B AS a)",
    f"({WAITING} OR (C AS a NOT FOLLOWED BY A FOR 7 MILLISECONDS))",
    "((A AS a)+ NOT FOLLOWED BY B FOR 5 MILLISECONDS)",
    "(A AS a ; B) NOT FOLLOWED BY C FOR 5 MILLISECONDS",
    f"LAST {WAITING}",
    "MAX ((A AS a)+ NOT FOLLOWED BY B FOR 5 MILLISECONDS) ; C",
)


@given(streams(nulls=False, max_size=14, ends=False), st.data())
@examples(100)
def test_the_watermark_shows_that_deadlines_pass(rows, data):
    how = data.draw(st.sampled_from(("", "LAST", "NEXT", "MAX", "STRICT")), "how")
    then = data.draw(st.sampled_from(("", "WITHIN 9 MILLISECONDS")), "window")
    then += data.draw(st.sampled_from(("", " CONSUME BY PARTITION")), "consumption")
    then += data.draw(st.sampled_from(("", " LIMIT 1")), "limit")
    text = ABSENCE.format(how=how, what=data.draw(st.sampled_from(WHAT), "what"), then=then)
    if data.draw(st.booleans(), "count"):
        text = text.replace("a.v AS v", "COUNT(*)")
    try:
        query = cerflow.parse(text)
        query.plan(Schema(COLUMNS, "type", "t"), None, False)
    except CerflowError as refused:
        event(f"refused: {str(refused)[:60]}")
        return
    delay = data.draw(st.sampled_from((0, 4)), "delay")
    rows = at_other_times(rows, data)
    arrivals = [row["t"] + data.draw(st.integers(0, delay)) for row in rows]
    coming = [rows[k] for k in sorted(range(len(rows)), key=lambda k: (arrivals[k], -k))]
    run = StreamingRun(query, COLUMNS, lambda row: row["k"] % 3, delay)
    run_in_random_batches(run, coming, data)
    expected = clocked(query, rows)
    assert bag(pa.Table.from_pylist(run.rows)) == bag(pa.Table.from_pylist(expected))
    event(f"{min(len(expected), 3)} matches")


DEFINED = """
DEFINE d AS SELECT a.v AS v FROM s WHERE {what} PARTITION BY k;
SELECT {how} x.v AS v, time(x) AS u FROM d, s WHERE {last}
"""
LAST = (
    "d AS x NOT FOLLOWED BY d FOR 4 MILLISECONDS PARTITION BY k",
    "(d AS x NOT FOLLOWED BY s>C FOR 4 MILLISECONDS) ; d PARTITION BY k",
    "(d AS x ; (d OR s>A)) PARTITION BY k WITHIN 20 MILLISECONDS",
    "d AS x : d",
    "d AS x NOT FOLLOWED BY d FOR 3 MILLISECONDS CONSUME BY ANY",
)


@pytest.mark.filterwarnings("ignore:one task at a time")
@given(streams(nulls=False, max_size=14, ends=False), st.data())
@examples(60)
def test_definitions_that_wait(rows, data):
    text = DEFINED.format(
        what=data.draw(st.sampled_from((*WHAT[:4], "A AS a")), "what"),
        how=data.draw(st.sampled_from(("", "LAST")), "how"),
        last=data.draw(st.sampled_from(LAST), "last"),
    )
    program = cerflow.parse_program(text)
    rows = at_other_times(rows, data)
    run = StreamingRun(program, COLUMNS, lambda row: row["k"] % 3, 0)
    run_in_random_batches(run, rows, data)
    expected = clocked(program, rows)
    assert bag(pa.Table.from_pylist(run.rows)) == bag(pa.Table.from_pylist(expected))
    event(f"{min(len(expected), 3)} matches, {len(run.stores)} buckets")


def test_a_deadline_passes_in_a_silent_bucket():
    run = StreamingRun(ABSENCE.format(how="", what=WAITING, then=""), COLUMNS, lambda row: row["k"], 0)
    first, *others = rows_of(("A", 1, 1, 7), ("C", 5, 2, 1), ("C", 7, 2, 1))
    run.batch([first])
    run.batch([others[0]])
    run.batch([])
    assert not run.rows
    run.batch([others[1]])
    run.batch([])
    run.end()
    assert [(row["v"], row["detected_time"]) for row in run.rows] == [(7, 6)]


CLOCKS = [
    (pa.int64(), None, 1_500_000, 1500),
    (pa.int64(), "s", 1_500_000, 2),
    (pa.int64(), "ns", 1_500, 1_500_000),
    (pa.date32(), None, DAY + 1, dt.datetime(1970, 1, 3)),
    (pa.date32(), None, -1, dt.datetime(1970, 1, 1)),
    (pa.timestamp("s"), None, -1_500_000, dt.datetime(1969, 12, 31, 23, 59, 59)),
    (pa.timestamp("us"), None, 1_500_001, dt.datetime(1970, 1, 1, 0, 0, 1, 500_001)),
    (pa.timestamp("us", "Europe/Berlin"), None, 0, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
]


@pytest.mark.parametrize(("type", "unit", "watermark", "value"), CLOCKS)
def test_the_watermark_as_a_time_of_the_column(type, unit, watermark, value):
    schema = Schema(pa.schema([("type", pa.string()), ("t", type)]), "type", "t", None, unit)
    (shown,) = clock_time(clock_value(schema, watermark), schema).to_pylist()
    assert shown == (value.date() if type == pa.date32() else value)


EXTREME = [pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")]


@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("type", [*EXTREME, pa.timestamp("s"), pa.timestamp("ns")], ids=str)
def test_a_recogniser_takes_every_watermark(type, unit):
    schema = pa.schema([("type", pa.string()), ("t", type)])
    query = cerflow.parse("SELECT * WHERE A AS a NOT FOLLOWED BY B FOR 1 SECOND")
    recognizer = query.recognizer(schema, time="t", time_unit=unit if pa.types.is_integer(type) else None)
    described = Schema(schema, "type", "t", None, unit if pa.types.is_integer(type) else None)
    for watermark in (BEGINNING, -(2**52), 0, 2**52, -BEGINNING):
        value = clock_value(described, watermark)
        assert recognizer.advance(value).count() == 0
        if type == pa.timestamp("us"):
            assert instant_of(described, value) == watermark


def test_the_watermark_is_rounded_down_where_times_are_floats():
    schema = Schema(pa.schema([("type", pa.string()), ("t", pa.float64())]), "type", "t", None, "s")
    assert 0.099999 < clock_value(schema, 100_000) < 0.1


def rows_of(*events):
    return [{"type": t, "t": at, "k": k, "v": v, "seq": n} for n, (t, at, k, v) in enumerate(events)]


def test_late_events_are_told_and_left_out():
    first, late, last = rows_of(("A", 10, 1, 1), ("A", 3, 1, 1), ("B", 12, 1, 2))
    run = StreamingRun(PAIRS, COLUMNS, lambda row: 0, 5)
    run.batch([first])
    assert run.watermark == 5
    run.batch([late, last])
    run.end()
    assert [(row["t"], row["instant"]) for row in run.late] == [(3, 3000)]
    assert assert_as_sorted(run, [first, last]) == 1


def test_an_event_at_the_watermark_is_not_late():
    first, at, last = rows_of(("A", 10, 1, 1), ("A", 5, 1, 1), ("B", 12, 1, 2))
    run = StreamingRun(PAIRS, COLUMNS, lambda row: 0, 5)
    for row in (first, at, last):
        run.batch([row])
    run.end()
    assert not run.late
    assert assert_as_sorted(run, [first, at, last]) == 2


def test_a_timer_releases_the_events_of_a_silent_bucket():
    a, b, other = rows_of(("A", 1, 1, 1), ("B", 2, 1, 2), ("C", 50, 2, 1))
    run = StreamingRun(PAIRS, COLUMNS, lambda row: row["k"], 0)
    run.batch([a, b])
    assert run.stores[1].timers == {3}
    run.batch([other])
    run.batch([])
    assert len(run.rows) == 1
    assert not run.stores[1].timers


def test_events_are_recognised_in_the_micro_batch_that_moves_the_watermark_beyond_them():
    a, b, other, behind = rows_of(("A", 1, 1, 1), ("B", 4, 1, 2), ("C", 50, 2, 1), ("A", 49, 1, 1))
    run = StreamingRun(PAIRS, COLUMNS, lambda row: row["k"], 40)
    # The other event is of another bucket, but came to the same task.
    run.batch([b, other, a])
    assert len(run.rows) == 1
    assert not run.stores[1].timers
    run.batch([behind])
    assert not run.late
    assert run.stores[1].timers == {50}


def test_a_bucket_in_memory_is_used_only_if_it_is_what_the_store_holds():
    rows = rows_of(("A", 1, 1, 1), ("B", 2, 1, 2), ("B", 3, 1, 2), ("B", 4, 1, 2))
    run = StreamingRun(PAIRS, COLUMNS, lambda row: 0, 0)
    for row in rows[:2]:
        run.batch([row])
    assert run.counts["held"] > 0
    held = run.counts["held"]
    # The failed attempt finds it in memory, the next one must not.
    run.batch([rows[2]], rehearsed=True)
    assert run.counts["held"] - held <= 2
    run.batch([rows[3]])
    run.end()
    assert assert_as_sorted(run, rows) == 3


def test_a_bucket_in_memory_takes_what_came_elsewhere():
    rows = rows_of(*(("AB"[n % 2], n, 1, n) for n in range(12)))
    run = StreamingRun(PAIRS, COLUMNS, lambda row: 0, 2)
    own = processor.BucketProcessor._restored
    with mock.patch.object(processor.BucketProcessor, "_restored", autospec=True, side_effect=own) as restored:
        for number, row in enumerate(rows):
            # The last attempt of one micro-batch is made in another process.
            run.batch([row], rehearsed=number == 7)
            if number % 3 != 1:
                run.elsewhere()
        run.end()
    # Once in each process, and where a micro-batch failed.
    assert restored.call_count == 2
    assert assert_as_sorted(run, rows) > 20


def test_the_state_of_keys_that_fell_silent_is_freed():
    run = StreamingRun(PAIRS, COLUMNS, lambda row: 0, 0)
    sizes = []
    with mock.patch.multiple(limits, STREAM_LOG_BYTES=1 << 13):
        for hour in range(40):
            keys = range(100 * hour, 100 * hour + 100)
            run.batch([{"type": "A", "t": 1000 * hour + k % 100, "k": k, "v": 1, "seq": 0} for k in keys])
            head = run.stores[0].known
            sizes.append(head.snapshot + head.log)
    assert max(sizes[20:]) <= 1.2 * max(sizes[:20])


@pytest.mark.parametrize(("change", "says"), [({"format": 9}, "version 9"), ({"query": "x"}, "another query")])
def test_the_state_of_another_query_or_version_is_refused(change, says):
    run = StreamingRun(PAIRS, COLUMNS, lambda row: 0, 0)
    rows = rows_of(("A", 1, 1, 1), ("B", 2, 1, 2))
    run.batch(rows[:1])
    run.stores[0].known = run.stores[0].known._replace(**change)
    with pytest.raises(SnapshotError, match=says):
        run.batch(rows[1:])


GOLDEN = sorted((Path(__file__).parent / "golden").glob("state-*.json"))
GOLDEN_ROWS = [
    {"type": "AB"[n % 3 == 2], "t": 10 + n, "k": n % 2, "v": n % 5, "w": n / 2, "s": "xyz"[n % 3], "n": n, "seq": n}
    for n in range(24)
]


def kept_once(path):
    """A run that goes on from the state of a bucket that was written once; the first 16 rows had come by then."""
    kept = json.loads(path.read_text())
    run = StreamingRun(kept["query"], COLUMNS, lambda row: 0, 3)
    run.watermark, run.latest = kept["watermark"], kept["latest"]
    store = run.stores[0] = MemoryStore()
    head = kept["head"]
    store.known = StateHead(**{**head, "nonce": b64decode(head["nonce"])})
    store.snapshot, store.blobs = ([b64decode(blob) for blob in kept[name]] for name in ("snapshot", "log"))
    store.timers = {head["timer"]}
    return run


@pytest.mark.parametrize("path", GOLDEN, ids=[path.stem for path in GOLDEN])
def test_states_that_were_written_once_can_be_read(path):
    """If this fails, the format needs another number, or states of it must be converted."""
    run = kept_once(path)
    assert len(run.stores[0].snapshot) > 2
    assert run.stores[0].blobs
    run.batch(GOLDEN_ROWS[16:])
    run.end()
    whole = run.query.match(pa.Table.from_pylist(GOLDEN_ROWS, COLUMNS), time="t", sequence="seq", positions=False)
    expected = whole.to_arrow()
    # Three matches were found before.
    assert bag(pa.Table.from_pylist(run.rows, schema=expected.schema)) == bag(expected.slice(3))
    assert expected.num_rows > 10


def test_every_format_has_a_state_that_was_written_once():
    assert [path.stem for path in GOLDEN] == [f"state-{n}" for n in range(1, processor._FORMAT + 1)]


def test_the_state_of_a_query_that_is_compiled_otherwise_now_is_refused():
    run = kept_once(GOLDEN[-1])
    with mock.patch.multiple(limits, STREAM_LOG_BYTES=0, STREAM_LOG_RATIO=0):
        run.batch(GOLDEN_ROWS[16:20])
    run.elsewhere()
    with (
        mock.patch.object(Plan, "numbering", property(lambda plan: "another")),
        pytest.raises(SnapshotError, match=r"numbers states .* continue with the cerflow that wrote it, or start with"),
    ):
        run.batch(GOLDEN_ROWS[20:])


@pytest.mark.parametrize("damage", [lambda data: data[:5], lambda data: b"\xff" * 8 + data[8:], lambda data: data[:40]])
def test_a_damaged_snapshot_is_refused(damage):
    run = StreamingRun(PAIRS, COLUMNS, lambda row: 0, 0)
    rows = rows_of(("A", 1, 1, 1), ("B", 2, 1, 2))
    with mock.patch.multiple(limits, STREAM_LOG_BYTES=0):
        run.batch(rows[:1])
    assert run.stores[0].known.snapshot
    run.stores[0].snapshot = [damage(b"".join(run.stores[0].snapshot))]
    run.elsewhere()
    with pytest.raises(SnapshotError, match="damaged"):
        run.batch(rows[1:])


def test_packing_keeps_the_rows_of_each_bucket_in_order():
    schema = pa.schema([("type", pa.string()), ("instant", pa.int64())])
    given = pa.record_batch(
        [
            pa.array([2, 0, 2, 0], pa.int32()),
            pa.nulls(4, pa.string()),
            pa.array([4, 3, 2, 1]),
            pa.nulls(4, pa.string()),
            pa.array(["a", "b", "c", "d"]),
        ],
        ["bucket", "reason", "instant", "record", "type"],
    )
    (batch,) = packed_by_bucket(schema, False, iter([given]))
    assert batch.schema == PACKED
    rows = {row["bucket"]: unpacked_rows([row["blob"]], schema).to_pylist() for row in batch.to_pylist()}
    assert rows == {
        0: [{"type": "b", "instant": 3}, {"type": "d", "instant": 1}],
        2: [{"type": "a", "instant": 4}, {"type": "c", "instant": 2}],
    }


def test_packing_refuses_bad_records_by_their_values():
    schema = pa.schema([("type", pa.string()), ("instant", pa.int64())])
    columns = [[0, 0], [None, "no event type in 'type'"], [1, 2], pa.nulls(2, pa.string()), ["A", None]]
    given = pa.record_batch(columns, ["bucket", "reason", "instant", "record", "type"])
    with pytest.raises(BadRecordError, match=r"\{type: null\}.*no event type"):
        list(packed_by_bucket(schema, False, iter([given])))


def test_memory_holds_a_bounded_number_of_buckets():
    processor._held.clear()
    run = StreamingRun(PAIRS, COLUMNS, lambda row: row["k"], 0)
    with mock.patch.object(limits, "STREAM_BUCKETS_HELD", 3):
        run.batch([{"type": "A", "t": 1, "k": k, "v": 1, "seq": k} for k in range(8)])
        assert len(processor._held) == 3
