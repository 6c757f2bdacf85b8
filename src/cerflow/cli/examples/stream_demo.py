"""The demonstration of ``make demo-stream``: stock ticks arrive in files, out of order, and are matched as they arrive.

``python -m cerflow.examples.stream_demo`` writes its files to ``demo-output/stream``; it needs PySpark and Java 17+.
"""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from cerflow.api.query import parse
from cerflow.cli.examples import query_text, stocks
from cerflow.cli.examples.demo import run_as_command, settings_in
from cerflow.cli.output.reporting import PhaseTimer, compile_kernels
from cerflow.cli.spark.session import spark_session

if TYPE_CHECKING:
    from cerflow.spark.streaming.running import RunningStream

_FILES = 8
_DISORDER = 100


def run_stream_demo(directory: Path, events: int = 200_000, seed: int = 7) -> int:
    """Let stock ticks come into a folder, each up to 100 ticks too late, and match ``dip.ceql`` in the meantime.

    Prints a line for each micro-batch, and whether the matches are those of the ordered ticks; gives their number.
    """
    console = Console(highlight=False, soft_wrap=True)
    shutil.rmtree(directory, ignore_errors=True)
    folders = {name: directory / name for name in ("input", "found", "checkpoint")}
    folders["input"].mkdir(parents=True)
    ticks = stocks(events, seed)
    query = parse(query_text("dip"))
    console.print(f"{events:,} stock ticks come in {_FILES} files, in disorder, into {folders['input']}\n")
    console.print(query_text("dip"), markup=False)
    compile_kernels(PhaseTimer())
    with spark_session(None, settings_in(directory)) as spark:
        from cerflow.cli.spark.streaming import follow
        from cerflow.spark import stream

        source = spark.createDataFrame(ticks.slice(0, 1)).schema
        running = stream(
            query,
            spark.readStream.schema(source).parquet(str(folders["input"])),
            str(folders["found"]),
            checkpoint=str(folders["checkpoint"]),
            time="time",
            sequence="id",
            delay="1 minute",
            buckets=8,
        )
        coming = threading.Thread(target=_send, args=[ticks, folders["input"], seed, running], daemon=True)
        coming.start()
        follow(running, until=lambda: not coming.is_alive())
        # Failures that the end causes are not news.
        spark.sparkContext.setLogLevel("OFF")
        running.stop(flush=True)
        read = _events(running)
        found = spark.read.parquet(str(folders["found"])).count()
    expected = query.match(ticks, time="time", sequence="id").count()
    verdict = "the same" if found == expected else f"but {expected:,}"
    console.print(f"all {events:,} ticks were read; {read:,} could be part of a match, Spark left out the others")
    console.print(f"[bold]{found:,} matches[/bold] in the stream, {verdict} in the ordered ticks")
    console.print(f"matches: {folders['found']}")
    console.print(f"progress of the stream: cerflow stream --status {folders['checkpoint']}")
    return found


def _send(ticks: pa.Table, folder: Path, seed: int, running: RunningStream) -> None:
    """Write the ticks as files, each once the one before has been read, so that each is a micro-batch."""
    places = np.arange(ticks.num_rows) + np.random.default_rng(seed).integers(0, _DISORDER, ticks.num_rows)
    coming = ticks.take(pa.array(np.argsort(places, kind="stable")))
    size = -(-ticks.num_rows // _FILES)
    for number in range(_FILES):
        unfinished = folder / f".{number}.parquet"
        pq.write_table(coming.slice(number * size, size), unfinished)
        read = _events(running)
        unfinished.rename(folder / f"{number}.parquet")
        while _events(running) == read and running.query.isActive:
            time.sleep(0.1)


def _events(running: RunningStream) -> int:
    return 0 if running.status is None else running.status.totals["events"]


if __name__ == "__main__":
    run_as_command(lambda: run_stream_demo(Path("demo-output") / "stream"))
