"""Streams on Spark beside a bare shuffle: ``python -m benchmarks.streaming``.

Files of events are read one for each micro-batch, by a job that only shuffles them and by one that recognises; both
take turns. A micro-batch takes the time that Spark reports as ``addBatch``. The first of each run is left out.

``--live SECONDS`` measures latency instead: events of the present come in a file each second, with triggers of a
second and no delay, and a match is as late as the clock is behind its last event when the match can be read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import sleep
from time import time as clock
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from cerflow.cli.spark.session import spark_session
from cerflow.spark import match
from cerflow.spark.streaming.matching import PROVIDER

__all__ = ["main"]

QUERY = "SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v AND b.v > 97 PARTITION BY [k] WITHIN 500 MILLISECONDS"
COLUMNS = "type string, t bigint, k bigint, v bigint, seq bigint"
SETTINGS = [PROVIDER, ("spark.sql.shuffle.partitions", "2")]
#: Events in a millisecond.
RATE = 100


@dataclass(frozen=True)
class Run:
    """The micro-batches of one run: median and longest time in seconds, and the bytes of state at the end."""

    median: float
    longest: float
    state: int


def written_events(folder: Path, *, keys: int, batches: int, rows: int) -> Path:
    """Files of events in the order of time, of keys drawn at random."""
    draw = np.random.default_rng(keys)
    for number in range(batches):
        places = np.arange(number * rows, (number + 1) * rows)
        types = pa.DictionaryArray.from_arrays(draw.integers(0, 3, rows), ["A", "B", "C"]).cast(pa.string())
        columns = {
            "type": types,
            "t": places // RATE,
            "k": draw.integers(0, keys, rows),
            "v": draw.integers(0, 100, rows),
            "seq": places,
        }
        path = folder / f"{number:04}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1000 + number, 1000 + number))
    return folder


def shuffled(frame: DataFrame) -> DataFrame:
    """The same rows through Python, a shuffle by key, and Python again, which counts them."""

    def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})

    return frame.mapInArrow(through, COLUMNS).repartition("k").mapInArrow(counted, "rows bigint")


def measured(spark: SparkSession, source: Path, way: str) -> Run:
    """One run over all files."""
    frame = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(source))
    found = shuffled(frame) if way == "shuffle" else match(QUERY, frame, time="t", sequence="seq", delay="0 seconds")
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = found.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        reports: list[Any] = [report for report in query.recentProgress if report.numInputRows][1:]
    seconds = [report.durationMs["addBatch"] / 1000 for report in reports]
    metrics = reports[-1].observedMetrics.get("cerflow")
    return Run(median(seconds), max(seconds), 0 if metrics is None else metrics["state_bytes"])


def latencies(spark: SparkSession, folder: Path, *, keys: int, seconds: int, rows: int) -> list[float]:
    """How many seconds after its last event each match came, but for those of the first third of the time."""
    inputs, found = folder / "input", list[tuple[float, float]]()
    inputs.mkdir(parents=True)

    def send(number: int) -> None:
        now = round(1000 * clock())
        draw = np.random.default_rng(number)
        columns = {
            "type": draw.choice(["A", "B", "C"], rows),
            "t": np.sort(now - draw.integers(0, 1000, rows)),
            "k": draw.integers(0, keys, rows),
            "v": draw.integers(0, 100, rows),
            "seq": np.arange(number * rows, (number + 1) * rows),
        }
        unfinished = inputs / f".{number}.parquet"
        pq.write_table(pa.table(columns), unfinished)
        unfinished.rename(inputs / f"{number}.parquet")

    def take(matches: DataFrame, _: int) -> None:
        times = [row[0] / 1000 for row in matches.select("detected_time").collect()]
        now = clock()
        found.extend((now, now - time) for time in times)

    frame = spark.readStream.schema(COLUMNS).parquet(str(inputs))
    matches = match(QUERY, frame, time="t", sequence="seq", delay="0 seconds")
    writer = matches.writeStream.foreachBatch(take).option("checkpointLocation", str(folder / "state"))
    query = writer.trigger(processingTime="1 second").start()
    begun = clock()
    for number in range(seconds):
        send(number)
        sleep(max(0.0, begun + number + 1 - clock()))
    query.stop()
    return [late for at, late in found if at > begun + seconds / 3]


def main(
    keys: Annotated[list[int] | None, typer.Option(help="Numbers of keys: 1, 100, 10,000 and 100,000.")] = None,
    batches: Annotated[int, typer.Option(min=3, help="Micro-batches of a run.")] = 12,
    rows: Annotated[int, typer.Option(min=1, help="Events of a micro-batch.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each way, in turns.")] = 2,
    live: Annotated[int, typer.Option(min=0, help="Measure latency for so many seconds.")] = 0,
    master: Annotated[str, typer.Option(help="Master of Spark.")] = "local[2]",
) -> None:
    """Measure micro-batches of a stream, or how late its matches are, and print a table."""
    if live:
        Console().print(_live_table(keys or [100, 10_000], live, rows, master))
        return
    table = Table("keys", "shuffle, s", "recognition, s", "ratio", "longest, s", "events/s", "state, bytes")
    with spark_session(master, SETTINGS) as spark, tempfile.TemporaryDirectory() as folder:
        for number in keys or [1, 100, 10_000, 100_000]:
            place = Path(folder) / str(number)
            place.mkdir()
            source = written_events(place, keys=number, batches=batches, rows=rows)
            found = {way: [] for way in ("shuffle", "recognition")}
            for _ in range(runs):
                for way, each in found.items():
                    each.append(measured(spark, source, way))
            floor, own = (min(found[way], key=lambda run: run.median) for way in ("shuffle", "recognition"))
            cells = (floor.median, own.median, own.median / floor.median, own.longest)
            table.add_row(
                f"{number:,}", *(f"{cell:.2f}" for cell in cells), f"{rows / own.median:,.0f}", f"{own.state:,}"
            )
    Console().print(table)


def _live_table(keys: list[int], seconds: int, rows: int, master: str) -> Table:
    table = Table("keys", "events/s", "matches", "p50, s", "p99, s")
    with spark_session(master, SETTINGS) as spark, tempfile.TemporaryDirectory() as folder:
        for number in keys:
            late = latencies(spark, Path(folder) / str(number), keys=number, seconds=seconds, rows=rows)
            shown = [f"{at:.2f}" for at in np.percentile(late, [50, 99])] if late else ["-", "-"]
            table.add_row(f"{number:,}", f"{rows:,}", f"{len(late):,}", *shown)
    return table


if __name__ == "__main__":
    typer.run(main)
