"""The suite *spark*: jobs over the stock ticks on Spark in local mode; run only when it is named."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet

from benchmarks.cases import Scale
from benchmarks.engines import UnavailableError
from benchmarks.measure import Row
from benchmarks.streams import load
from benchmarks.suites.srt import PATTERNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["measure_spark"]

_QUESTIONS = (("seq", "seq3"), ("kleene", "kleene3"), ("q", "q3"))
_WINDOWS = (500, 1000, 2000)


def measure_spark(scale: Scale, runs: int) -> list[Row]:
    """The rows of the suite: whole jobs, from planning to the number of matches.

    Raises `UnavailableError` without PySpark.
    """
    session = _session()
    from cerflow import parse
    from cerflow.spark import match

    texts = {f"{name}, {w} ms": PATTERNS[kind][name].cel(w) for kind, name in _QUESTIONS for w in _WINDOWS}
    rows = {name: Row("spark", name, "cerflow on Spark", "write", text, []) for name, text in texts.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "ticks.parquet")
        table = next(load(scale.stocks.description).chunks())
        pyarrow.parquet.write_table(table, path)
        # The first job starts the workers and loads the kernels.
        for run in range(runs + 1):
            for name, row in rows.items():
                begin = time.perf_counter()
                found = match(parse(texts[name]), session.read.parquet(path), time="stock_time").count()
                if run:
                    row.seconds.append(time.perf_counter() - begin)
                row.events, row.matches = table.num_rows, str(found)
    session.stop()
    return list(rows.values())


def _session() -> SparkSession:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UnavailableError("PySpark is not installed (it comes with the extra 'spark')") from None
    # Without an activated environment Spark would start another Python, which has no cerflow.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
