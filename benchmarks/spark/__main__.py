"""The command: ``python -m benchmarks.spark``."""

from __future__ import annotations

import os
import time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.environment import environment, interpreter_mb
from benchmarks.peers import CACHE
from benchmarks.report import Report
from benchmarks.spark.bars import judge_jobs
from benchmarks.spark.measure import measure_jobs
from benchmarks.spark.questions import QUESTIONS, WAYS, missing
from benchmarks.spark.ticks import written_ticks

__all__ = ["main"]

_console = Console(stderr=True)


def main(
    events: Annotated[int, typer.Option(min=1, help="Ticks in the files, a million for each day.")] = 20_000_000,
    cores: Annotated[list[int] | None, typer.Option(help="Numbers of cores, a session for each: 1 and 2.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs after the first, in which all jobs have their turns.")] = 3,
    only: Annotated[str, typer.Option(help="Queries whose names have this in them; pass-throughs stay.")] = "",
    way: Annotated[list[str] | None, typer.Option(help=f"Of {'; '.join(WAYS)}: all by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.json and results.md.")] = Path("bench-output/spark"),
    limit: Annotated[float, typer.Option(help="Seconds that one job may take.")] = 900,
    cache: Annotated[Path, typer.Option(help="Where the files are kept.")] = CACHE,
) -> None:
    """Measure Spark jobs over Parquet files of stock ticks, and print one table and the bars."""
    for name in way or ():
        if name not in WAYS:
            raise typer.BadParameter(f"there is no way {name!r}, only {'; '.join(WAYS)}")
    questions = [q for q in QUESTIONS if q.query is None or only in q.name]
    reasons = missing() | {name: "it was not asked for" for name in WAYS if way and name not in way}
    for name, reason in reasons.items():
        _console.print(f"not measured: {name}, because {reason}")
    begin = time.monotonic()
    with _console.status("writing ticks") as status:
        path = written_ticks(events, cache.resolve())
        rows = measure_jobs(
            questions,
            path,
            events=events,
            cores=cores or [1, 2],
            runs=runs,
            limit=limit,
            missing=reasons,
            tell=status.update,
        )
    told = {
        **environment(interpreter_mb()),
        "PySpark": version("pyspark"),
        "events": f"{events:,} generated ticks in {len(list(path.iterdir()))} files",
        "runs": f"{runs} after the first",
        "limit": f"{limit:g} s for one job",
        "cores": "Spark, its JVM and its Python processes are tied to so many",
        "load": f"{os.getloadavg()[0]:.1f} at the end",
        "took": f"{time.monotonic() - begin:.0f} s",
    }
    report = Report(told, rows, judge_jobs(rows), reasons)
    out.mkdir(parents=True, exist_ok=True)
    report.write(out, ())
    print(report.markdown())
    if any(row.wrong for row in rows):
        _console.print("[bold red]rows are wrong[/], see there")
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
