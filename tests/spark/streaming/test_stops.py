"""A stream is killed as each of its files appears, and goes on in every way there is to the matches of the batch."""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import cerflow
from support.runners import EXAMPLES
from support.spark.drivers import Driver
from support.spark.file_streams import LAST, disordered, events
from support.spark.killed_stream import begun
from support.spark.servers import skip_without_java

QUERY = """SELECT a.seq AS first, b.seq AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v
    PARTITION BY [k] WITHIN 1 SECOND"""
#: Before and after 1970, and decades later.
GROUPS = [events(100, begin=-700), events(100, begin=10**12)]
EVENTS = pa.concat_tables(GROUPS).set_column(4, "seq", pa.array(range(200)))
KEPT = ("checkpoint", "output", "letters")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc"),
]


@pytest.fixture
def folder(tmp_path):
    skip_without_java()
    (tmp_path / "input").mkdir()
    for number, rows in enumerate((EVENTS.slice(0, 60), EVENTS.slice(60, 80), EVENTS.slice(140))):
        add(tmp_path, number, disordered(rows, 400, seed=number))
    return tmp_path


def add(folder, number, rows):
    path = folder / "input" / f"{number}.parquet"
    pq.write_table(rows, path)
    # Spark reads the oldest file first.
    os.utime(path, (1000 + number, 1000 + number))


def restarted(spark, folder):
    """It goes on without an end until all events have been read, and is flushed."""
    running = begun(spark, folder, QUERY)
    while running.status is None or running.status.totals["events"] < RELEVANT:
        assert not running.await_termination(0.05)
    assert running.stop(flush=True) == 0


def flushed(spark, folder):
    """It is flushed as soon as it has been started."""
    assert begun(spark, folder, QUERY, available_now=True).stop(flush=True) == 0


def run_to_the_end(spark, folder):
    """It reads what is there, and what comes later lets the watermark pass all."""
    begun(spark, folder, QUERY, available_now=True).await_termination()
    add(folder, 9, LAST.set_column(1, "t", pa.array([15 * 10**11])))
    begun(spark, folder, QUERY, available_now=True).await_termination()
    (folder / "input" / "9.parquet").unlink()


def run_twice(spark, folder):
    """It reads what is there twice, and is flushed."""
    begun(spark, folder, QUERY, available_now=True).await_termination()
    flushed(spark, folder)


WAYS = (restarted, flushed, run_to_the_end, run_twice)
RELEVANT = sum(row["type"] != "C" and row["k"] is not None for row in EVENTS.to_pylist())


def assert_the_matches_of_the_batch(folder, where):
    found = ds.dataset(folder / "output", format="parquet", ignore_prefixes=["_", "."]).to_table().to_pylist()
    expected = cerflow.parse(QUERY).match(EVENTS, time="t", sequence="seq", positions=False).to_pylist()
    pairs = [Counter((row["first"], row["second"]) for row in rows) for rows in (found, expected)]
    assert pairs[0] == pairs[1], where
    assert len(expected) > 20
    assert not (folder / "letters").exists(), where


def goes_on(spark, folder, where, ways=WAYS):
    """The stream goes on in some ways from where it was killed, and is put back after each."""
    saved = folder / "saved"
    for name in KEPT:
        if (folder / name).exists():
            shutil.copytree(folder / name, saved / name)
    for way in ways:
        way(spark, folder)
        assert_the_matches_of_the_batch(folder, (where, way.__name__))
        for name in KEPT:
            shutil.rmtree(folder / name, ignore_errors=True)
            if (saved / name).exists():
                shutil.copytree(saved / name, folder / name)
    shutil.rmtree(saved, ignore_errors=True)


def killed_at(folder, chosen):
    """Start a driver, and kill it as a chosen file appears; gives the file, None if it came to the end before."""
    driver = Driver(folder, QUERY, "files")
    try:
        return driver.kill_at(chosen)
    finally:
        driver.kill()


@pytest.mark.deep
@pytest.mark.skipif(EXAMPLES < 1, reason="make test-deep stops streams")
@pytest.mark.parametrize(
    ("file", "way"),
    [("checkpoint/commits/2", flushed), (r"checkpoint/cerflow/clock/-?\d+\.json", run_to_the_end)],
    ids=["before the watermark moves", "amid the flush"],
)
def test_a_stream_killed_between_its_micro_batches_goes_on(spark, folder, file, way):
    assert killed_at(folder, lambda name: re.fullmatch(file, name)) is not None
    goes_on(spark, folder, file, [way])


@pytest.mark.deep
@pytest.mark.skipif(EXAMPLES < 1, reason="make test-deep stops streams at each of their files")
def test_a_stream_killed_at_any_of_its_files_goes_on(spark, folder):
    """At EXAMPLES=10 each new file is one; with fewer, some are left out."""
    step = max(1, round(10 / EXAMPLES))
    seen = Counter()

    def chosen(name):
        if name in seen:
            return False
        seen[name] += 1
        return len(seen) % step == 0

    stops = []
    while (where := killed_at(folder, chosen)) is not None:
        stops.append(where)
        goes_on(spark, folder, where)
    print(f"killed at {len(stops)} of {len(seen)} files: {', '.join(stops)}")
    assert len(stops) > 60 / step
