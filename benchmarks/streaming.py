"""Streams on Spark beside a bare shuffle: ``python -m benchmarks.streaming``.

Files of events are read one for each micro-batch, by a job that only shuffles them and by one that recognises; both
take turns. Times are those that Spark reports: ``addBatch`` for the ratio, whole triggers for the events per second.
The first third of each run is left out.

``--live SECONDS`` measures latency instead: events of the present come in four files a second, with triggers of a
second and no delay, to `cerflow.spark.stream`. A match is as late as the clock is after its last event when a function
has read it. The first third of the time is left out.

``--hours HOURS`` measures what is kept instead: micro-batches of half a simulated hour, each with other keys.

Few events complete many matches if there are few keys; LIMIT makes the output about the same for all numbers of keys.
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

from benchmarks.spark.usage import Usage, watched
from cerflow.cli.spark.session import spark_session
from cerflow.spark import match, stream
from cerflow.spark.streaming.matching import CHANGELOG, PROVIDER

__all__ = ["main"]

QUERY = """SELECT * WHERE (A AS a ; B AS b) FILTER a.v < b.v AND b.v > 97
    PARTITION BY [k] WITHIN 500 MILLISECONDS LIMIT 1"""
COLUMNS = "type string, t bigint, k bigint, v bigint, seq bigint"
SETTINGS = [PROVIDER, CHANGELOG, ("spark.sql.shuffle.partitions", "2")]
#: Events in a millisecond.
RATE = 100
#: Files in a second of a live stream.
PACE = 4
#: Milliseconds in a micro-batch of simulated hours, and how many of these make an hour.
STRETCH, STRETCHES = 1_800_000, 2


@dataclass(frozen=True)
class Run:
    """The micro-batches of one run: median times in seconds, matches, and kB of state after a third and at the end.

    ``batch`` is the time of the work, ``trigger`` that from one micro-batch to the next.
    """

    batch: float
    trigger: float
    matches: int
    states: tuple[float, float]


@dataclass(frozen=True)
class Live:
    """How late matches were, in seconds; kB of state and MB of checkpoint, a third in and at the end.

    ``memory`` is the most that Spark's Python processes had, in MB.
    """

    late: list[float]
    states: tuple[float, float]
    checkpoints: tuple[float, float]
    memory: float


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
        reports: list[Any] = [report for report in query.recentProgress if report.numInputRows]
    reports = reports[len(reports) // 3 :]
    batch, trigger = (
        median(report.durationMs[name] / 1000 for report in reports) for name in ("addBatch", "triggerExecution")
    )
    counts = [metrics for report in reports for metrics in report.observedMetrics.values()]
    states = (counts[0]["state_bytes"] / 1e3, counts[-1]["state_bytes"] / 1e3) if counts else (0, 0)
    return Run(batch, trigger, sum(metrics["matches"] for metrics in counts), states)


def live_run(spark: SparkSession, folder: Path, *, keys: int, seconds: int, rows: int) -> Live:
    """Events of the present, and the matches in them, but for those of the first third of the time."""
    inputs, found = folder / "input", list[tuple[float, float]]()
    inputs.mkdir(parents=True)

    def send(number: int) -> None:
        count = rows // PACE
        now = round(1000 * clock())
        draw = np.random.default_rng(number)
        columns = {
            "type": draw.choice(["A", "B", "C"], count),
            "t": np.sort(now - draw.integers(0, 1000 // PACE, count)),
            "k": draw.integers(0, keys, count),
            "v": draw.integers(0, 100, count),
            "seq": np.arange(number * count, (number + 1) * count),
        }
        unfinished = inputs / f".{number}.parquet"
        pq.write_table(pa.table(columns), unfinished)
        unfinished.rename(inputs / f"{number}.parquet")

    def take(matches: DataFrame, _: int) -> None:
        times = [row[0] / 1000 for row in matches.select("detected_time").collect()]
        now = clock()
        found.extend((now, now - time) for time in times)

    def sizes() -> tuple[float, float]:
        files = [path.stat().st_size for path in (folder / "state").rglob("*") if path.is_file()]
        return running.status.remembered["state_bytes"] / 1e3 if running.status else 0, sum(files) / 1e6

    running = stream(
        QUERY,
        spark.readStream.schema(COLUMNS).parquet(str(inputs)),
        take,
        checkpoint=str(folder / "state"),
        time="t",
        sequence="seq",
        delay="0 seconds",
        trigger="1 second",
    )
    begun = clock()
    with watched() as usage:
        for number in range(seconds * PACE):
            if number == seconds * PACE // 3:
                early = sizes()
            send(number)
            sleep(max(0.0, begun + (number + 1) / PACE - clock()))
    running.stop()
    states, checkpoints = zip(early, sizes())
    counted = [late for at, late in found if at > begun + seconds / 3]
    return Live(counted, states, checkpoints, usage.all_mb or 0.0)


def hours_run(spark: SparkSession, folder: Path, *, keys: int, hours: int, rows: int) -> list[dict[str, float]]:
    """What is kept after each micro-batch of simulated hours: `RunningStream.status`, MB on disk and in Python."""
    inputs, state = folder / "input", folder / "state"
    inputs.mkdir()
    for number in range(hours * STRETCHES):
        draw = np.random.default_rng(number)
        columns = {
            "type": draw.choice(["A", "B", "C"], rows),
            "t": number * STRETCH + np.sort(draw.integers(0, STRETCH, rows)),
            "k": draw.integers(number * keys, (number + 1) * keys, rows),
            "v": draw.integers(0, 100, rows),
            "seq": np.arange(number * rows, (number + 1) * rows),
        }
        path = inputs / f"{number:06}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1000 + number, 1000 + number))
    running = stream(
        QUERY.replace("500 MILLISECONDS", "1 MINUTE"),
        spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(inputs)),
        lambda matches, batch: None,
        checkpoint=str(state),
        time="t",
        sequence="seq",
        delay="0 seconds",
        available_now=True,
    )
    found: dict[int, dict[str, float]] = {}
    while not running.await_termination(0.1):
        status, usage = running.status, Usage()
        if status is not None and status.batch not in found:
            usage.note()
            disk = sum(path.stat().st_size for path in state.rglob("*") if path.is_file()) / 1e6
            sizes = {
                **status.remembered,
                "matches": status.totals["matches"],
                "disk": disk,
                "memory": usage.all_mb or 0,
            }
            found[status.batch] = {**sizes, "batches": status.batch + 1, "at": clock()}
    return list(found.values())


def main(
    keys: Annotated[list[int] | None, typer.Option(help="Numbers of keys: 1, 100, 10,000 and 100,000.")] = None,
    batches: Annotated[int, typer.Option(min=3, help="Micro-batches of a run.")] = 12,
    rows: Annotated[int, typer.Option(min=1, help="Events of a micro-batch.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each way, in turns.")] = 2,
    live: Annotated[int, typer.Option(min=0, help="Measure latency for this many seconds; rows are those of one.")] = 0,
    hours: Annotated[int, typer.Option(min=0, help="Simulate this many hours; keys are those of half of one.")] = 0,
    master: Annotated[str, typer.Option(help="Master of Spark.")] = "local[2]",
) -> None:
    """Measure micro-batches of a stream, or how late its matches are, or what is kept, and print a table."""
    if live:
        Console(width=140).print(_live_table(keys or [1, 100, 10_000, 100_000], live, rows, master))
        return
    if hours:
        Console(width=140).print(_hours_table((keys or [1000])[0], hours, rows, master))
        return
    table = Table("keys", "shuffle, s", "recognition, s", "ratio", "trigger, s", "events/s", "matches", "state, kB")
    with spark_session(master, SETTINGS) as spark, tempfile.TemporaryDirectory() as folder:
        for number in keys or [1, 100, 10_000, 100_000]:
            place = Path(folder) / str(number)
            place.mkdir()
            source = written_events(place, keys=number, batches=batches, rows=rows)
            found: dict[str, list[Run]] = {way: [] for way in ("shuffle", "recognition")}
            for _ in range(runs):
                for way, each in found.items():
                    each.append(measured(spark, source, way))
            floor, own = (min(found[way], key=lambda run: run.batch) for way in ("shuffle", "recognition"))
            if not own.matches:
                raise SystemExit(f"no match in {batches} micro-batches of {rows:,} events: take more")
            cells = (floor.batch, own.batch, own.batch / floor.batch, own.trigger)
            table.add_row(
                f"{number:,}",
                *(f"{cell:.2f}" for cell in cells),
                f"{rows / own.trigger:,.0f}",
                f"{own.matches:,}",
                _grown(own.states),
            )
    Console(width=140).print(table)


def _live_table(keys: list[int], seconds: int, rows: int, master: str) -> Table:
    table = Table(
        "keys", "events/s", "matches", "p50, s", "p99, s", "longest, s", "state, kB", "checkpoint, MB", "Python, MB"
    )
    with spark_session(master, SETTINGS) as spark, tempfile.TemporaryDirectory() as folder:
        # The first query compiles and loads.
        live_run(spark, Path(folder) / "warm", keys=100, seconds=20, rows=rows)
        for number in keys:
            run = live_run(spark, Path(folder) / str(number), keys=number, seconds=seconds, rows=rows)
            if not run.late:
                raise SystemExit(f"no match in the last {2 * seconds // 3} s: take more seconds or rows")
            shown = [f"{at:.2f}" for at in np.percentile(run.late, [50, 99, 100])]
            sizes = (_grown(run.states), _grown(run.checkpoints), f"{run.memory:,.0f}")
            table.add_row(f"{number:,}", f"{rows:,}", f"{len(run.late):,}", *shown, *sizes)
    return table


def _hours_table(keys: int, hours: int, rows: int, master: str) -> Table:
    """A row for each quarter of the time, with the most of it."""
    names = ("keys", "configurations", "nodes", "state_bytes", "disk", "memory")
    table = Table(
        "hours", "keys so far", "matches so far", *names[:3], "state, kB", "checkpoint, MB", "Python, MB", "s"
    )
    with spark_session(master, SETTINGS) as spark, tempfile.TemporaryDirectory() as folder:
        found = hours_run(spark, Path(folder), keys=keys, hours=hours, rows=rows)
    begin = 0
    for end in (len(found) * part // 4 for part in range(1, 5)):
        if not (part := found[begin:end]):
            continue
        # The last micro-batch has no events.
        through = min(part[-1]["batches"], hours * STRETCHES)
        most = {name: max(sizes[name] for sizes in part) for name in names}
        most["state_bytes"] /= 1000
        table.add_row(
            f"{(part[0]['batches'] - 1) / STRETCHES:.0f}–{through / STRETCHES:.0f}",
            *(f"{many:,.0f}" for many in (through * keys, part[-1]["matches"], *most.values())),
            f"{(part[-1]['at'] - part[0]['at']) / max(1, len(part) - 1):.2f}",
        )
        begin = end
    return table


def _grown(sizes: tuple[float, float]) -> str:
    """A size a third in and at the end."""
    return " → ".join(f"{size:,.0f}" for size in sizes)


if __name__ == "__main__":
    typer.run(main)
