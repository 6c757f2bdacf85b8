"""A stream is stopped as each of its files appears, and goes on in every way there is to the matches of the batch."""

import os
import random
import re
import shutil
from collections import Counter
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import cerflow
from support.runners import EXAMPLES, only_deep
from support.spark.drivers import KEPT, Driver
from support.spark.file_streams import LAST, disordered, events
from support.spark.killed_stream import begun
from support.spark.servers import skip_without_java

QUERY = """SELECT a.seq AS first, b.seq AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v
    PARTITION BY [k] WITHIN 1 SECOND"""
#: Before and after 1970, and decades later.
GROUPS = [events(100, begin=-700), events(100, begin=10**12)]
EVENTS = pa.concat_tables(GROUPS).set_column(4, "seq", pa.array(range(200)))

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


def stops(folder, chosen):
    """The names of chosen files, each with a copy of all that is there when it appears."""
    driver = Driver(folder, QUERY, "files")
    try:
        for number, name in enumerate(driver.halts(chosen)):
            saved = folder / "stops" / str(number)
            put(folder, saved)
            yield name, saved
    finally:
        driver.kill()


def put(source, target):
    """Replace all that a stream has written in a folder by what it has in another one."""
    for name in KEPT:
        shutil.rmtree(target / name, ignore_errors=True)
        if (source / name).exists():
            shutil.copytree(source / name, target / name)


def goes_on(spark, folder, where, saved, ways):
    """The stream goes on in some ways from where it was stopped."""
    for way in ways:
        put(saved, folder)
        way(spark, folder)
        assert_the_matches_of_the_batch(folder, (where, way.__name__))


#: Files at which a stream stops before the watermark moves, and amid the flush.
TURNS = {"checkpoint/commits/2": flushed, r"checkpoint/cerflow/clock/-?\d+\.json": run_to_the_end}
KINDS = {"metadata", "sources", "offsets", "commits", "state", "cerflow", "output", *TURNS}


def kind_of(name):
    turn = next((pattern for pattern in TURNS if re.fullmatch(pattern, name)), None)
    return turn or re.findall(r"\w+", name.removeprefix("checkpoint/"))[0]


def test_a_stream_goes_on_from_one_file_of_each_kind(spark, folder):
    draw, seen = random.Random(1), Counter()

    def drawn(name):
        """Take any of a kind with the same chance: the last that is taken counts."""
        seen[kind_of(name)] += 1
        return draw.random() * seen[kind_of(name)] < 1

    found = {kind_of(name): (name, saved) for name, saved in stops(folder, drawn)}
    assert found.keys() == KINDS
    for (kind, (name, saved)), way in zip(found.items(), cycle(WAYS[:2])):
        goes_on(spark, folder, name, saved, [TURNS.get(kind, way)])


@only_deep
def test_a_stream_goes_on_from_any_of_its_files(spark, folder):
    """At EXAMPLES=10 each new file is one; with fewer, some are left out."""
    step = max(1, round(10 / EXAMPLES))
    seen = Counter()

    def chosen(name):
        seen[name] += 1
        return seen[name] == 1 and len(seen) % step == 0

    found = list(stops(folder, chosen))
    for name, saved in found:
        goes_on(spark, folder, name, saved, WAYS)
    print(f"stopped at {len(found)} of {len(seen)} files: {', '.join(name for name, _ in found)}")
    assert len(found) > 60 / step
