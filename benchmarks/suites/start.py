"""The suite *start*: what is not events per second - compiling kernels and queries, starting, one event at a time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cases import Scale, Stream
from benchmarks.engines import source_path
from benchmarks.measure import Row
from benchmarks.suites import core
from benchmarks.suites.srt import PATTERNS

__all__ = ["measure_start"]

_DEMO = "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v WITHIN 10 EVENTS"


def measure_start(scale: Scale, ticks: Path, runs: int) -> list[Row]:
    """The rows of the suite; ``ticks`` is a CSV file with the columns of the stock ticks."""
    return [
        *_cold(1 if scale.quick else 2),
        *_cached(runs),
        *_shell(ticks, runs),
        *_compiling(scale, runs),
        *_push(scale.stocks, runs),
    ]


def _cold(runs: int) -> Iterator[Row]:
    """All kernels compiled into an empty cache."""
    row = _row("compile all kernels, nothing cached", "cold")
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            row.seconds.append(_probe("kernels", CERFLOW_CACHE_DIR=cache)["seconds"])
    yield row


def _cached(runs: int) -> Iterator[Row]:
    """From the end of the imports to the first match, and the imports themselves."""
    start, imports = _row("first match after imports, kernels cached", "cached"), _row("imports", "imports")
    start.query = _DEMO
    _probe("first-match", _DEMO)
    for _ in range(runs):
        answer = _probe("first-match", _DEMO)
        start.seconds.append(answer["seconds"])
        imports.seconds.append(answer["imports"])
    yield start
    yield imports


def _shell(ticks: Path, runs: int) -> Iterator[Row]:
    """The whole command, from the shell and back, with kernels cached."""
    row = _row("cerflow run --runner local on the ticks", "shell")
    row.query = _stocks_query()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-c",
            "from cerflow.cli import main; main()",
            "run",
            "-e",
            row.query,
            "--runner",
            "local",
        ]
        files = ["--input", str(ticks), "--time-column", "stock_time", "--output", f"{folder}/matches.jsonl"]
        for run in range(runs + 1):
            begin = time.perf_counter()
            subprocess.run([*command, *files], env=source_path({}), capture_output=True, check=True)
            # The first run warms the caches of the kernels and of the files.
            if run:
                row.seconds.append(time.perf_counter() - begin)
            Path(folder, "matches.jsonl").unlink(missing_ok=True)
    yield row


def _compiling(scale: Scale, runs: int) -> Iterator[Row]:
    """From the text of a query to a recogniser that is ready."""
    texts = {case.name: case.query for case in core.cases(scale) if "matches" in case.tags}
    texts |= {name: PATTERNS[kind][name].cel(500) for kind, name in (("kleene", "kleene12"), ("nested", "nested16"))}
    answers = [_probe("compiling", json.dumps(scale.stocks.description), *texts.values()) for _ in range(runs)]
    for number, (name, text) in enumerate(texts.items()):
        row = _row(f"compile {name}")
        row.query = text
        row.seconds = [answer["seconds"][number] for answer in answers]
        yield row


def _push(stocks: Stream, runs: int) -> Iterator[Row]:
    """One event at a time: the median and the 99th percentile of a push."""
    query = _stocks_query()
    answers = [_probe("push", query, json.dumps(stocks.description)) for _ in range(runs)]
    for what in ("median", "99th percentile"):
        row = _row(f"push one event, {what}", "push")
        row.query = query
        row.seconds = [answer[what] for answer in answers]
        row.note = answers[0]["how"]
        yield row
    for size in (100, 1000):
        row = _row(f"push of {size} events, beyond the events", "batch")
        row.query = query
        row.seconds = [_probe("batches", query, json.dumps(stocks.description), str(size))["beyond"] for _ in answers]
        row.note = "the events cost what they do in batches of 65,536"
        yield row


def _stocks_query() -> str:
    return PATTERNS["seq"]["seq3"].cel(500)


def _row(name: str, *tags: str) -> Row:
    return Row("start", name, "cerflow", "time", "", list(tags))


def _probe(name: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a probe answers in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.probes", name, *arguments]
    done = subprocess.run(command, env=source_path(environment), capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
