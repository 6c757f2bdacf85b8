"""The command: ``python -m benchmarks [SUITE …]``."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.bars import judge
from benchmarks.cases import Case, Scale, Stream
from benchmarks.charts import draw
from benchmarks.engines import Engine, UnavailableError, cerflow_engine
from benchmarks.environment import environment, interpreter_mb
from benchmarks.measure import Row, measure
from benchmarks.peers import CACHE
from benchmarks.peers.core import core_engine
from benchmarks.peers.esper import esper_engine
from benchmarks.peers.flink import flink_engine
from benchmarks.peers.libraries import duckdb_engine, polars_engine
from benchmarks.report import Report
from benchmarks.streams import TickFiles, write_ticks
from benchmarks.suites import SUITES
from benchmarks.suites.start import measure_start

__all__ = ["main", "measured"]

_ROOT = Path(__file__).resolve().parent.parent
_NAMES = (*SUITES, "start")
_PEERS = {
    "CORE": core_engine,
    "FlinkCEP": flink_engine,
    "Polars": polars_engine,
    "DuckDB": duckdb_engine,
    "Esper": esper_engine,
}
_console = Console(stderr=True)


def main(
    suites: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(_NAMES)}; all by default.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs in which all engines have their turns.")] = 5,
    out: Annotated[Path, typer.Option(help="Folder for results.json, results.md and charts.")] = Path("bench-output"),
    data: Annotated[Path | None, typer.Option(help="CSV file of stock ticks; else ../shared/data, else made.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Events of the longest stream.")] = 100_000_000,
    limit: Annotated[float, typer.Option(help="Seconds that one question may take.")] = 60,
    cache: Annotated[Path, typer.Option(help="Where peers are installed.")] = CACHE,
    quick: Annotated[bool, typer.Option(help="Few and small cases: about two minutes.")] = False,
    one_core: Annotated[bool, typer.Option(help="Every engine on the same core (else peers may use all).")] = False,
) -> None:
    """Measure cerflow and its peers, and write the results as JSON, Markdown and charts."""
    chosen = suites or list(_NAMES)
    for name in chosen:
        if name not in _NAMES:
            raise typer.BadParameter(f"there is no suite {name!r}, only {', '.join(_NAMES)}")
    if one_core and not hasattr(os, "sched_setaffinity"):
        raise typer.BadParameter("this system does not tie processes to cores")
    if one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if quick:
        runs, limit = min(runs, 2), min(limit, 4.0)
    scale = _scale(data, most, quick=quick)
    out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    cases = [case for name in chosen if name in SUITES for case in SUITES[name](scale)]
    rows, missing = measured([cases], runs, limit, cache.resolve())
    if "start" in chosen:
        rows += _start(scale, runs)
    interpreter = interpreter_mb()
    told = {
        **environment(interpreter),
        "ticks": "recorded" if scale.stocks.arguments.get("path") else "generated",
        "runs": runs,
        "limit": f"{limit:g} s for one question",
        "size": "quick" if quick else "full",
        "cores": "one for all engines" if one_core else f"cerflow one, peers up to {os.cpu_count()}",
        "load": f"{os.getloadavg()[0]:.1f} at the end",
        "took": f"{time.monotonic() - begin:.0f} s",
    }
    report = Report(told, rows, judge(rows, interpreter), missing)
    charts = draw(rows, out)
    if not charts:
        _console.print("no charts: Matplotlib is not installed (it comes with the extra 'bench')")
    report.write(out, charts)
    Console().print(f"{len(rows)} rows in {out / 'results.md'}")
    wrong = [row for row in rows if row.wrong]
    if wrong:
        _console.print(f"[bold red]{len(wrong)} rows are wrong[/], see there")
        raise typer.Exit(1)


def measured(
    batches: Sequence[Sequence[Case]],
    runs: int,
    limit: float,
    cache: Path,
    keep: Callable[[list[Row]], None] = lambda rows: None,
) -> tuple[list[Row], dict[str, str]]:
    """The rows of batches of cases, one batch after another, and why engines are missing; ``keep`` gets a batch's."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, _console.status("") as status:
        engines, missing = _engines([case for batch in batches for case in batch], cache, Path(folder))
        for batch in batches:
            needed = [e for e in engines if e.layout is not None or any(case.peer(e.name) for case in batch)]
            found = measure(batch, needed, runs=runs, limit=limit, tell=status.update)
            keep(found)
            rows += found
    return rows, missing


def _start(scale: Scale, runs: int) -> list[Row]:
    """The rows of the suite that measures no events per second."""
    with tempfile.TemporaryDirectory() as folder, _console.status("start"):
        ticks = Path(folder) / "ticks.csv"
        write_ticks(scale.stocks.description, ticks)
        return measure_start(scale, ticks, 1 if scale.quick else runs)


def _scale(data: Path | None, most: int, *, quick: bool) -> Scale:
    path = data or _ROOT.parent / "shared" / "data" / "stocks.csv.gz"
    if data is not None and not data.exists():
        raise typer.BadParameter(f"{data} does not exist")
    arguments: dict[str, object] = {"path": str(path.resolve())} if path.exists() else {}
    stocks = Stream("stocks", arguments)
    if quick:
        return Scale(stocks, events=min(most, 100_000), most=min(most, 1_000_000), quick=True)
    return Scale(stocks, events=min(most, 1_000_000), most=most)


def _engines(cases: list[Case], cache: Path, folder: Path) -> tuple[list[Engine], dict[str, str]]:
    """The engines that the cases need, and why some of them are not here."""
    engines = [cerflow_engine("cerflow", "text", folder), cerflow_engine("cerflow, encoded", "encoded", folder)]
    files, missing = TickFiles(folder), {}
    for name, make in _PEERS.items():
        if any(case.peer(name) for case in cases):
            try:
                engines.append(make(cache, folder, files))
            except UnavailableError as reason:
                missing[name] = str(reason)
    return engines, missing


if __name__ == "__main__":
    typer.run(main)
