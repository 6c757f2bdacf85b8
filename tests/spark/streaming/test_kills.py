"""Drivers and workers are killed in the midst of a stream, and every match is written once all the same."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import cerflow
from support.runners import EXAMPLES
from support.spark import killed_stream
from support.spark.file_streams import PAIRS, disordered, events
from support.spark.results import bag
from support.spark.servers import skip_without_java

pytestmark = pytest.mark.slow

#: In the deep tests ten times as many.
KILLS = max(2, round(2 * EXAMPLES))
_PATIENCE = 400.0


class Driver:
    """A driver in a group of processes of its own: the driver, its JVM and the workers."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("started", "done"):
            (folder / name).unlink(missing_ok=True)
        command = [sys.executable, killed_stream.__file__, str(folder), PAIRS]
        with (folder / "log").open("a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def wait_until(self, condition):
        end = time.monotonic() + _PATIENCE
        while not condition(self.process):
            assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        assert condition(self.process), (self.folder / "log").read_text()[-2000:]

    def wait_for_progress(self):
        """Wait for one more micro-batch."""
        before = self.batches()
        self.wait_until(lambda _: self.batches() > before or (self.folder / "done").exists())

    def batches(self):
        commits = self.folder / "checkpoint" / "commits"
        return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0

    def kill(self):
        """End all at once, as a loss of power would."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_workers(self):
        """End the processes of Python that Spark has started; gives how many there were."""
        killed = 0
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                own = os.getpgid(int(entry.name)) == self.process.pid
                command = (entry / "cmdline").read_bytes()
                if own and b"pyspark.daemon" in command:
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed += 1
            except OSError:
                continue
        return killed


@pytest.fixture
def folder(tmp_path):
    skip_without_java()
    (tmp_path / "input").mkdir()
    coming = disordered(events(400), 400)
    for number in range(8):
        path = tmp_path / "input" / f"{number}.parquet"
        pq.write_table(coming.slice(50 * number, 50), path)
        # Spark reads the oldest file first.
        os.utime(path, (1000 + number, 1000 + number))
    return tmp_path


def assert_every_match_once(folder):
    found = ds.dataset(folder / "output", format="parquet", ignore_prefixes=["_", "."]).to_table()
    expected = cerflow.parse(PAIRS).match(events(400), time="t", sequence="seq", positions=False).to_arrow()
    assert max(Counter(found["match_id"].to_pylist()).values()) == 1
    found = found.select(expected.column_names)
    assert bag(found) == bag(pa.Table.from_pylist(expected.to_pylist(), schema=found.schema))
    assert expected.num_rows > 50


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["driver", "workers"])
def test_every_match_is_written_once_whatever_is_killed(folder, victim):
    """Without its workers a local query fails; the next start repeats the micro-batch."""
    draw = random.Random(victim)
    for _ in range(KILLS):
        driver = Driver(folder)
        driver.wait_for_progress()
        time.sleep(2 * draw.random())
        if victim == "driver":
            driver.kill()
        else:
            driver.kill_workers()
            driver.wait_until(lambda process: process.poll() is not None)
    driver = Driver(folder)
    driver.wait_until(lambda _: (folder / "done").exists())
    driver.kill()
    assert_every_match_once(folder)
