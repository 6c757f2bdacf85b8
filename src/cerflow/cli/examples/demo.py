"""The demonstration of ``make demo``: a pattern in a day of stock ticks, recognised by Spark in local mode.

``python -m cerflow.examples.demo`` writes its files to the directory ``demo-output``; it needs PySpark and Java 17+.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from heapq import nsmallest
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet
import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from cerflow.api.query import parse
from cerflow.cli.commands.request import Request
from cerflow.cli.examples import query_text, stocks
from cerflow.cli.options import InputOptions, OutputOptions, RunOptions, Setting, SparkOptions
from cerflow.cli.output.reporting import PhaseTimer, Progress, RunSummary, errors_reported
from cerflow.cli.spark.session import require_pyspark

_SHOWN = 5


def run_demo(directory: Path, events: int = 200_000, seed: int = 7) -> RunSummary:
    """Generate the stock ticks, recognise ``dip.ceql`` in them on Spark, and print the result.

    Leaves ``stocks.parquet``, ``dip.ceql`` and ``matches.jsonl`` in the directory, which is created if necessary.
    """
    console = Console(highlight=False, soft_wrap=True)
    directory.mkdir(parents=True, exist_ok=True)
    events_path, query_path, matches_path = (directory / n for n in ("stocks.parquet", "dip.ceql", "matches.jsonl"))
    pyarrow.parquet.write_table(stocks(events, seed), events_path)
    query_path.write_text(query_text("dip"), encoding="utf-8")
    console.print(f"{events:,} stock ticks of ten companies over a trading day: {events_path}\n")
    console.print(query_text("dip"), markup=False)
    request = Request(
        parse(query_text("dip")),
        InputOptions([str(events_path)], time=["time"], sequence=["id"]),
        OutputOptions(str(matches_path)),
        RunOptions(max_matches=None),
    )
    require_pyspark()
    from cerflow.cli.spark.runner import run_on_spark

    with Progress() as show:
        outcome = run_on_spark(request, show, PhaseTimer(), SparkOptions(conf=settings_in(directory)))
    console.print(f"[bold]{outcome.matches:,} matches[/bold]; the first {min(_SHOWN, outcome.matches)} of them:")
    with matches_path.open("rb") as lines:
        first = nsmallest(_SHOWN, map(json.loads, lines), key=itemgetter("detected_at", "start"))
    console.print(_table(first))
    console.print(f"on Spark in local mode: {outcome}")
    console.print(f"all matches: {matches_path}")
    console.print(
        f"the same by hand: cerflow run {query_path} --runner spark --input {events_path} "
        f"--time-column time --sequence-column id --output {matches_path}"
    )
    return outcome


def settings_in(directory: Path) -> list[Setting]:
    """Spark's settings for a job of seconds, with its tables in a directory.

    Java's best compiler and its collector for large heaps would take longer than they save.
    """
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return [
        Setting("spark.sql.warehouse.dir", str((directory / "warehouse").resolve())),
        Setting("spark.driver.extraJavaOptions", java),
    ]


def _table(matches: Sequence[dict[str, Any]]) -> Table:
    table = Table("company", "begins", "lasts", "sold", "bought", "resold", box=SIMPLE, show_edge=False)
    for match in matches:
        begin, end = (datetime.fromisoformat(match[t]) for t in ("start_time", "end_time"))
        trades = ([e for e in match["events"] if label in e["labels"]] for label in ("sold", "bought", "resold"))
        columns = ["\n".join(f"{e['volume']:,} at {e['price']:.2f}" for e in events) for events in trades]
        table.add_row(match["name"], f"{begin:%H:%M:%S}", f"{(end - begin).total_seconds():.1f} s", *columns)
    return table


def run_as_command(demo: Callable[[], object]) -> None:
    """Run a demonstration and end the process; a failure is a plain sentence on standard error."""

    def command() -> None:
        with errors_reported():
            demo()

    typer.run(command)


if __name__ == "__main__":
    run_as_command(lambda: run_demo(Path("demo-output")))
