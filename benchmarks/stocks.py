"""Events per second on stock ticks: sequences and Kleene closure with a relational condition, by window and strategy.

    python benchmarks/stocks.py [--data stocks.csv.gz] [--spark] [--runs 5] [--json FILE]

Without ``--data`` the project's own generator supplies 1,000,000 ticks. The data file has the columns event_type,
id, name, volume, price and stock_time (milliseconds). Figures are the best and the median of several runs, those of
different queries in turn, so that a machine that slows down slows all of them.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.table import Table

import cerflow
from cerflow.examples import stocks

SEQUENCE = "(SELL AS a ; BUY AS b ; BUY AS c) FILTER a.name = 'INTC' AND b.name = 'RIMM' AND c.name = 'QQQ'"
KLEENE = SEQUENCE.replace("BUY AS b ;", "(BUY AS b)+ ;") + " AND b.price < 500"
RISE = " AND c.price > a.price"
#: Name, strategy, formula, windows, whether all matches can be written.
CASES = [
    ("seq3", "ALL", SEQUENCE + RISE, (500, 1000, 2000, 5000), True),
    ("seq3 unrelated", "ALL", SEQUENCE, (10_000,), True),
    ("k3", "ALL", KLEENE + RISE, (500, 1000, 2000), True),
    ("k3", "ALL", KLEENE + RISE, (5000,), False),
    *(
        (f"{name} {strategy.lower()}", strategy, formula, windows, True)
        for strategy in ("NEXT", "LAST")
        for name, formula, windows in (
            ("seq3", SEQUENCE + RISE, (1000, 5000)),
            ("seq3 unrelated", SEQUENCE, (10_000,)),
            ("k3", KLEENE + RISE, (1000, 5000)),
        )
    ),
]


def load(path: str | None) -> tuple[pa.Table, str]:
    """The ticks and the name of their type column."""
    if path is None:
        return stocks(events=1_000_000), "type"
    return pyarrow.csv.read_csv(path), "event_type"


def in_process(query: cerflow.Query, table: pa.Table, type_column: str, *, write: bool) -> tuple[float, int]:
    """Seconds and matches of one run; with ``write`` all matches are unfolded into Arrow batches."""
    begin = time.perf_counter()
    matches = query.match(table, type=type_column, time="stock_time")
    found = sum(batch.num_rows for batch in matches.to_batches()) if write else matches.count()
    return time.perf_counter() - begin, found


def on_spark(spark: Any, query: cerflow.Query, path: str, type_column: str) -> tuple[float, int]:
    """Seconds and matches of one Spark job over a Parquet file."""
    from cerflow.spark import match

    begin = time.perf_counter()
    found = match(query, spark.read.parquet(path), type=type_column, time="stock_time").count()
    return time.perf_counter() - begin, found


def floor(table: pa.Table) -> float:
    """Seconds that NumPy needs to look once at the numeric columns the queries read."""
    columns = [table.column(name).to_numpy() for name in ("price", "stock_time")]
    begin = time.perf_counter()
    for column in columns:
        np.count_nonzero(column > 500)
    return time.perf_counter() - begin


def main() -> None:
    """Run the suite and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    table, type_column = load(options.data)
    work = [
        (
            f"{name} WITHIN {window}",
            cerflow.parse(f"SELECT {strategy} * WHERE {formula} WITHIN {window} [stock_time]"),
            writes,
        )
        for name, strategy, formula, windows, writes in CASES
        for window in windows
    ]
    begin = time.perf_counter()
    in_process(work[0][1], table.slice(0, 1000), type_column, write=True)
    cold = time.perf_counter() - begin
    seconds: dict[tuple[str, str], list[float]] = {}
    counts: dict[str, int] = {}
    for _ in range(options.runs):
        for name, query, writes in work:
            for mode in ("count", "write") if writes else ("count",):
                took, counts[name] = in_process(query, table, type_column, write=mode == "write")
                seconds.setdefault((name, mode), []).append(took)
    if options.spark:
        _measure_spark(table, type_column, work, options.runs, seconds)
    _report(table, seconds, counts, cold, floor(table), options.json)


def _measure_spark(table: pa.Table, type_column: str, work: Any, runs: int, seconds: Any) -> None:
    import os
    import tempfile

    import pyarrow.parquet
    from pyspark.sql import SparkSession

    # Without an activated environment Spark would start another Python, which has no cerflow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/ticks.parquet"
        pyarrow.parquet.write_table(table, path)
        on_spark(spark, work[0][1], path, type_column)
        for _ in range(runs):
            for name, query, writes in work:
                if writes:
                    took, _ = on_spark(spark, query, path, type_column)
                    seconds.setdefault((name, "spark"), []).append(took)
    spark.stop()


def _report(table: pa.Table, seconds: Any, counts: Any, cold: float, base: float, target: Path | None) -> None:
    rows = []
    for (name, mode), runs in seconds.items():
        best, middle = min(runs), statistics.median(runs)
        rows.append(
            {
                "query": name,
                "mode": mode,
                "matches": counts[name],
                "best": round(table.num_rows / best / 1e6, 2),
                "median": round(table.num_rows / middle / 1e6, 2),
                "times a NumPy pass": round(best / base, 1),
            }
        )
    shown = Table("query", "mode", "matches", "best Mev/s", "median Mev/s", "times a NumPy pass")
    for row in rows:
        shown.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()))
    console = Console()
    console.print(shown)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    console.print(
        f"{table.num_rows:,} events; first query {cold:.1f} s; peak memory {peak} MB; {sys.version.split()[0]}"
    )
    if target is not None:
        target.write_text(json.dumps({"rows": rows, "first query": cold, "peak MB": peak}, indent=2))


if __name__ == "__main__":
    main()
