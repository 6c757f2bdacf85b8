"""Streams on Spark beside a bare shuffle: ``python -m benchmarks.streaming``.

Files of events are read one for each micro-batch, by a job that only shuffles them and by one that recognises; both
take turns. A micro-batch takes the time that Spark reports as ``addBatch``. The first of each run is left out.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
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


def main(
    keys: Annotated[list[int] | None, typer.Option(help="Numbers of keys: 1, 100, 10,000 and 100,000.")] = None,
    batches: Annotated[int, typer.Option(min=3, help="Micro-batches of a run.")] = 12,
    rows: Annotated[int, typer.Option(min=1, help="Events of a micro-batch.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each way, in turns.")] = 2,
    master: Annotated[str, typer.Option(help="Master of Spark.")] = "local[2]",
) -> None:
    """Measure micro-batches of a stream, and print a table."""
    table = Table("keys", "shuffle, s", "recognition, s", "ratio", "longest, s", "events/s", "state, bytes")
    settings = [PROVIDER, ("spark.sql.shuffle.partitions", "2")]
    with spark_session(master, settings) as spark, tempfile.TemporaryDirectory() as folder:
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


if __name__ == "__main__":
    typer.run(main)
