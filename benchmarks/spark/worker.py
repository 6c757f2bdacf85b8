"""The process with a session on some cores: a request is one line of JSON, and so is its answer.

A request has the ``way``, the name of the ``question`` and the ``path`` of the files. The whole job is timed, from
planning to the last row, which nobody takes (Spark's sink ``noop``).
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.spark.questions import QUESTIONS, frame_of
from benchmarks.spark.usage import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.sql.session.timeZone": "UTC",
}


def main(cores: int) -> None:
    """Answer the requests on standard input until it ends; everything runs on this many cores."""
    if hasattr(os, "sched_setaffinity"):
        # Spark's tasks alone would share one "core" between the JVM and the Python process that it feeds.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:])
    # The answers have standard output for themselves; what Spark writes there goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = _session(cores)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            reply = _answer(session, json.loads(line))
        except Exception as failure:
            reply = {"error": _last_line(failure)}
        print(json.dumps(reply), file=answers, flush=True)
    session.stop()


def _session(cores: int) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master(f"local[{cores}]").appName("cerflow benchmarks")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _answer(session: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    (question,) = (q for q in QUESTIONS if q.name == request["question"])
    rows = Observation()
    with watched() as usage:
        begin = time.perf_counter()
        frame = frame_of(session, request["way"], question, request["path"])
        frame.observe(rows, F.count(F.lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "rows": rows.get["rows"],
        "peak_mb": usage.one_mb,
        "peak_all_mb": usage.all_mb,
        "jvm": usage.jvm,
        "python": usage.python,
    }


def _last_line(failure: Exception) -> str:
    """An error of Spark ends its traceback of a worker with what it is about."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if "Error: " in line and not line.startswith("at ")), None)
    return f"{type(failure).__name__}: {told or (lines[0] if lines else '')}"


if __name__ == "__main__":
    main(int(sys.argv[1]))
