"""Records that a stream cannot use, columns that files lack, checkpoints that are stuck or damaged."""

import json
import warnings

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import cerflow
from cerflow.base.errors import BadRecordError, InputError, QueryWarning, UnsupportedQueryError
from cerflow.spark import match
from cerflow.spark import stream as start
from cerflow.spark.streaming.checkpoint import Checkpoint
from support.runners import only_deep
from support.spark.file_streams import PAIRS
from support.spark.results import bag

COLUMNS = "type string, t bigint, k int, v int, note string"
GOOD = [{"type": "AB"[n % 2], "t": 1000 + 100 * n, "k": 1, "v": n, "note": "x"} for n in range(10)]
#: The end of the year 9999 in milliseconds, and a time of today in microseconds.
FAR = [253_402_300_799_000, 1_764_000_000_000_000]
BAD = [
    json.dumps({"type": "B", "t": 1150, "k": 1, "v": value, "note": "y"})
    for value in ("34x", "34", 34.5, 99_999_999_999)
]
BAD += ['{"type": "A", "t": 12', *(json.dumps({"type": "A", "t": t, "k": 1, "v": 1, "note": "z"}) for t in FAR)]


class Lines:
    """A folder of JSON lines as a stream."""

    def __init__(self, spark, folder):
        self.spark, self.folder = spark, folder
        self.checkpoint = folder / "checkpoint"
        (folder / "input").mkdir()

    def add(self, name, lines):
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (self.folder / "input" / f"{name}.jsonl").write_text(text)
        return self

    def frame(self, columns=f"{COLUMNS}, _corrupt_record string"):
        return self.spark.readStream.schema(columns).json(str(self.folder / "input"))

    def started(self, output="output", checkpoint="checkpoint", frame=None, **given):
        target = str(self.folder / output) if isinstance(output, str) else output
        arguments = {"time": "t", "delay": "1 second", "buckets": 1, "available_now": True, **given}
        frame = self.frame() if frame is None else frame
        return start(PAIRS, frame, target, checkpoint=str(self.folder / checkpoint), **arguments)

    def finished(self, **given):
        running = self.started(**given)
        running.await_termination()
        return running

    def written(self, folder="output"):
        return self.spark.read.parquet(str(self.folder / folder)).drop("batch").toArrow()


@pytest.fixture
def lines(spark, tmp_path):
    return Lines(spark, tmp_path)


def matches_of(events):
    types = {"type": pa.string(), "t": pa.int64(), "k": pa.int32(), "v": pa.int32(), "note": pa.string()}
    table = pa.Table.from_pylist(events, pa.schema(list(types.items())))
    return cerflow.parse(PAIRS).match(table, time="t", positions=False).to_arrow()


def test_what_the_reader_makes_null_and_times_far_ahead_are_bad_records(lines):
    lacking = [{"type": event["type"], "t": 5000 + event["t"], "k": 1} for event in GOOD[:4]]
    lines.add("1", [*GOOD[:5], *BAD, *GOOD[5:], *lacking])
    with pytest.warns(QueryWarning, match=r"batch 0: 4 of the events have no 'v'"):
        running = lines.finished(on_bad_record="dead-letter", dead_letter=str(lines.folder / "dead"))
    assert running.status.totals["bad"] == len(BAD)
    assert running.status.lacking == {"v": 4}
    # Otherwise all that comes later would be late.
    assert running.status.watermark.startswith("1970-01-01T00:00:0")
    letters = lines.written("dead").to_pylist()
    assert sorted(filter(None, (row["_corrupt_record"] for row in letters))) == sorted(BAD[:5])
    assert {row["reason"].split(",")[0] for row in letters if row["_corrupt_record"]} == {"it is malformed"}
    far = {row["t"]: row["reason"] for row in letters if row["t"] in FAR}
    assert all("'t' is more than 1 day ahead of the clock" in reason for reason in far.values())
    assert len(far) == len(FAR)
    running.stop(flush=True)
    assert bag(lines.written()) == bag(matches_of(GOOD))
    assert running.status.totals["late"] == 0
    # The verdict is the same whether the policy needs the column or not.
    with pytest.raises(BadRecordError, match=r"_corrupt_record: .*34x"):
        lines.finished(output="failed", checkpoint="failing")
    skipping = lines.finished(output="skipped", checkpoint="skipping", on_bad_record="skip")
    skipping.stop(flush=True)
    assert skipping.status.totals["bad"] == len(BAD)
    assert bag(lines.written("skipped")) == bag(matches_of(GOOD))


@only_deep
def test_a_stuck_checkpoint_is_set_back(lines):
    """An event of the year 9999 that is let through makes all others late, until the checkpoint is set back."""
    lines.add("1", GOOD[:4])
    lines.finished(ahead=None)
    lines.add("2", [{"type": "A", "t": FAR[0], "k": 1, "v": 1, "note": "z"}])
    assert lines.finished(ahead=None).status.watermark.startswith("9999-12-31")
    lines.add("3", GOOD[4:])
    with pytest.warns(QueryWarning, match=r"6 of 6 events are late.*a time far ahead.*modification times"):
        assert lines.finished(ahead=None).status.totals["late"] == 6
    kept = Checkpoint(lines.spark, str(lines.checkpoint))
    with pytest.raises(InputError, match="is no longer in the checkpoint"):
        kept.set_back(0, 1000)
    first = kept.set_back(FAR[0] * 1000 - 10**12)
    assert first > 0
    with pytest.raises(InputError, match="no watermark in the checkpoint"):
        kept.set_back(FAR[0] * 1000 - 10**12)
    with pytest.warns(QueryWarning, match="counts start again"):
        running = lines.finished(on_bad_record="skip")
    running.stop(flush=True)
    assert bag(lines.written()) == bag(matches_of(GOOD))
    assert running.status.totals["late"] == 0


def test_a_checkpoint_in_use_or_damaged_is_refused_with_the_remedy(lines):
    seen = []

    def sink(found, batch):
        seen.append(batch)
        match(PAIRS, lines.spark.createDataFrame(pa.Table.from_pylist(GOOD)), time="t")

    lines.add("1", GOOD)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        running = lines.started(output=sink, available_now=False)
        try:
            running.query.processAllAvailable()
            with pytest.raises(InputError, match="a running query uses the checkpoint"):
                lines.started(output=sink)
            assert running.query.isActive
        finally:
            running.stop()
    assert any("loses matches across them" in str(one.message) for one in said)
    assert seen
    note = lines.checkpoint / "cerflow" / "query.json"
    before = note.read_text()
    note.write_text("")
    (note.parent / ".query.json.crc").unlink(missing_ok=True)
    with pytest.raises(InputError, match=r"cerflow/query.json' is damaged .* remove it, and it is written again"):
        lines.started(output=sink)
    note.write_text(before)
    offsets = sorted((lines.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    text = offsets[-1].read_text()
    offsets[-1].unlink()
    with pytest.raises(InputError, match=rf"lacks offsets/{offsets[-1].name}: restore it"):
        lines.started(output=sink)
    offsets[-1].write_text(text)
    (lines.checkpoint / "sources").rename(lines.folder / "lost")
    with pytest.raises(InputError, match="lacks sources: restore it"):
        lines.started(output=sink)


def test_a_watermark_of_the_user_is_refused(lines):
    frame = lines.add("1", GOOD).frame().withColumn("at", F.timestamp_millis("t")).withWatermark("at", "1 second")
    for given in (frame, frame.dropDuplicatesWithinWatermark(["k"]).drop("at")):
        with pytest.raises(UnsupportedQueryError, match="has a watermark of its own") as refused:
            match(PAIRS, given, time="t", delay="1 second")
        assert "delay= sets the watermark" in str(refused.value)
        with pytest.raises(UnsupportedQueryError, match="has a watermark of its own"):
            lines.started(frame=given)
    assert not lines.checkpoint.exists()
