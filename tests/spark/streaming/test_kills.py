"""Drivers and workers are killed in the midst of a stream, and every match is written once all the same."""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import cerflow
from support.runners import EXAMPLES
from support.spark import killed_stream
from support.spark.drivers import PATIENCE, Driver
from support.spark.file_streams import disordered, events
from support.spark.kafka import broker, messages_of, skip_without_kafka
from support.spark.servers import skip_without_java

#: `make test-deep` kills twenty times.
KILLS = round(2 * EXAMPLES)
#: One file for each micro-batch.
FILES, ROWS = KILLS + 6, 50
QUERY = """SELECT a.seq AS first, b.seq AS second WHERE (A AS a ; B AS b) FILTER a.v < b.v
    PARTITION BY [k] WITHIN 1 SECOND"""


@pytest.fixture
def folder(tmp_path):
    skip_without_java()
    (tmp_path / "input").mkdir()
    coming = disordered(EVENTS, 400)
    for number in range(FILES):
        path = tmp_path / "input" / f"{number:04}.parquet"
        rows = [coming.slice(ROWS * number, ROWS)]
        if number >= 3:
            rows.append(LATE.set_column(3, "v", pa.array([number])))
        pq.write_table(pa.concat_tables([*rows, BAD.set_column(3, "v", pa.array([number]))]), path)
        # Spark reads the oldest file first.
        os.utime(path, (1000 + number, 1000 + number))
    return tmp_path


EVENTS = events(FILES * ROWS)
LATE, BAD = (pa.table({"type": [k], "t": [1000], "k": [1], "v": [0], "seq": [-1]}, EVENTS.schema) for k in ("A", None))


def found_in_files(folder):
    return ds.dataset(folder / "output", format="parquet", ignore_prefixes=["_", "."]).to_table().to_pylist()


def found_in_lines(folder):
    return [json.loads(line) for path in (folder / "lines").glob("[0-9]*") for line in path.read_text().splitlines()]


def assert_every_match_once(folder, found):
    expected = cerflow.parse(QUERY).match(EVENTS, time="t", sequence="seq", positions=False).to_pylist()
    assert max(Counter(row["match_id"] for row in found).values()) == 1
    pairs = [Counter((row["first"], row["second"]) for row in rows) for rows in (found, expected)]
    assert pairs[0] == pairs[1]
    assert len(expected) > 50
    letters = ds.dataset(folder / "letters", format="parquet", ignore_prefixes=["_", "."]).to_table().to_pylist()
    lost = Counter((row["type"], row["v"]) for row in letters)
    assert lost == Counter([("A", n) for n in range(3, FILES)] + [(None, n) for n in range(FILES)])


def killed(folder, sink, victim, server=None):
    """Run the stream to its end, with this many kills on the way; tells how many there were."""
    draw = random.Random(victim)
    driver = Driver(folder, QUERY, sink)
    done = 0
    try:
        for number in range(KILLS):
            driver.wait_for_progress()
            time.sleep(draw.random())
            if victim == "driver":
                done += not driver.done
                driver.kill()
                driver = Driver(folder, QUERY, sink)
            else:
                while not driver.done:
                    if driver.kill_workers():
                        done += 1
                        break
                    time.sleep(0.02)
            if server is not None and number % 5 == 0:
                server.kill()
                server.start()
        driver.wait_for_end()
    finally:
        driver.kill()
        print(f"{sink}: {victim} killed {done} times")


def send(spark, address, events):
    """Send events in their order, in turn to two partitions."""
    rows = [(json.dumps(event), number % 2) for number, event in enumerate(events)]
    frame = spark.createDataFrame(rows, "value string, partition int").coalesce(1)
    options = {"kafka.bootstrap.servers": address, "topic": killed_stream.GIVEN}
    frame.write.format("kafka").options(**options).save()


pytestmark = [
    pytest.mark.slow,
    pytest.mark.deep,
    pytest.mark.skipif(EXAMPLES < 1, reason="make test-deep kills streams"),
    pytest.mark.timeout(PATIENCE + 150 * KILLS),
    pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc"),
]


@pytest.mark.parametrize("victim", ["driver", "workers"])
def test_every_match_is_written_once_whatever_is_killed(folder, victim):
    killed(folder, "files", victim)
    assert_every_match_once(folder, found_in_files(folder))


def test_a_function_that_replaces_what_it_wrote_gets_every_match_once(folder):
    killed(folder, "function", "driver")
    assert_every_match_once(folder, found_in_lines(folder))


@pytest.mark.parametrize("victim", ["driver", "workers"])
def test_consumers_of_a_topic_see_every_match_of_another_once_by_its_key(spark, folder, victim):
    skip_without_kafka()
    (folder / "kafka").mkdir()
    with broker(folder / "kafka") as server:
        address = f"127.0.0.1:{server.port}"
        send(spark, address, ds.dataset(sorted(map(str, (folder / "input").iterdir()))).to_table().to_pylist())
        killed(folder, address, victim, server)
        messages = messages_of(spark, server.port, killed_stream.TOPIC)
    kept = dict(messages)
    assert set(messages) == set(kept.items()), "messages of one key are the same"
    assert_every_match_once(folder, [{**json.loads(value), "match_id": key} for key, value in kept.items()])
