"""The command: ``python -m benchmarks.papers [--quick]``, or ``make papers``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.__main__ import measured
from benchmarks.cases import Case, Scale, Stream
from benchmarks.environment import environment, interpreter_mb
from benchmarks.measure import check_questions
from benchmarks.papers.figures import FIGURES, place_and_form
from benchmarks.papers.keeping import KeptRows, Plan, in_batches
from benchmarks.papers.page import write_page
from benchmarks.peers import CACHE
from benchmarks.suites import cel, determinism, srt
from cerflow import __version__

__all__ = ["main", "paper_cases"]

_console = Console(stderr=True)

#: The longest stream whose matches are all listed, and the events of random streams, where time is short.
_LISTED, _EVENTS = 1000, 50_000
#: The patterns that are left out then, and those that other engines are not asked for.
_BETWEEN = re.compile("(seq|kleene)[69],|nested(8|12),")
_WITHOUT_PEERS = re.compile(r"(kleene|nested)\d+,|\bq[2-4],")


def paper_cases(stocks: Stream, *, quick: bool = False) -> list[Case]:
    """The cases of all figures, at the sizes of the papers.

    With ``quick`` of patterns of registers the shortest and the longest alone, of q1 to q5 q1 alone beside other
    engines, and random streams are shorter.
    """
    names = {name for figure in FIGURES for name in figure.places.values()}
    random = Scale(stocks, events=_EVENTS if quick else 1_000_000)
    found = [*srt.cases(Scale(stocks)), *determinism.cases(Scale(stocks)), *cel.cases(random)]
    kept = [case for case in found if place_and_form(case.name)[0] in names]
    if quick:
        kept = [case for case in kept if "apart" not in case.modes or case.stream.arguments["events"] <= _LISTED]
        kept = [case for case in kept if not _BETWEEN.search(case.name)]
        # FlinkCEP is over the limit at most iterations, and has no number in the paper.
        kept = [replace(case, peers=()) if _WITHOUT_PEERS.search(case.name) else case for case in kept]
    return [replace(case, layouts=("encoded",)) for case in kept]


def main(
    quick: Annotated[
        bool, typer.Option(help="One run, eight seconds for a question, fewer and smaller cases.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for papers.md and its charts.")] = Path("bench-output/papers"),
    data: Annotated[Path | None, typer.Option(help="CSV file of recorded stock ticks; else they are made.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs in which all engines have their turns.")] = 3,
    limit: Annotated[float, typer.Option(help="Seconds that one question may take.")] = 60,
    cache: Annotated[Path, typer.Option(help="Where peers are installed.")] = CACHE,
    figures: Annotated[list[str] | None, typer.Option("--figure", help="Only figures whose key begins so.")] = None,
    again: Annotated[bool, typer.Option(help="Measure the cases again whose rows are in the folder.")] = False,
) -> None:
    """Measure the figures of the papers with cerflow and other engines, and write one page.

    Every case that was measured stays in the folder: a run that was interrupted (Ctrl-C) writes the page with what
    there is, and the next one goes on after it.
    """
    if quick:
        runs, limit = 1, min(limit, 8.0)
    if data is not None and not data.exists():
        raise typer.BadParameter(f"{data} does not exist")
    stocks = Stream("stocks", {} if data is None else {"path": str(data.resolve())})
    cases = _chosen(paper_cases(stocks, quick=quick), figures)
    out.mkdir(parents=True, exist_ok=True)
    way = f"cerflow {__version__}, {runs} runs, {limit:g} s, {'quick' if quick else 'full'}, {stocks.arguments}"
    kept = KeptRows(out / "measured.json", way)
    if again:
        kept.forget(cases)
    batches = in_batches([case for case in cases if not kept.rows_of(case)])
    plan = Plan(batches, runs, limit, _console.print)
    missing: dict[str, str] = {}
    with suppress(KeyboardInterrupt):
        _, missing = measured(batches, runs, limit, cache.resolve(), lambda found: plan.done(kept.add(found)))
    rows = [row for case in cases for row in kept.rows_of(case)]
    check_questions(cases, rows)
    left = sum(not kept.rows_of(case) for case in cases)
    if left:
        _console.print(f"{left} cases are not measured; the same command goes on with them")
    told = {**environment(interpreter_mb()), "runs": runs, "limit": f"{limit:g} s for one question"}
    told |= {"size": "quick" if quick else "full", "load": f"{os.getloadavg()[0]:.1f} at the end"}
    page = write_page(out, rows, told, missing)
    Console().print(f"{len(rows)} rows in {page}")
    wrong = [row for row in rows if row.wrong]
    for row in wrong:
        _console.print(f"[bold red]wrong[/]: {row.case}, {row.engine}, {row.mode}: {row.note or row.status}")
    if wrong:
        raise typer.Exit(1)


def _chosen(cases: Sequence[Case], keys: Sequence[str] | None) -> list[Case]:
    chosen = [figure for figure in FIGURES if keys is None or figure.key.startswith(tuple(keys))]
    if not chosen:
        raise typer.BadParameter(f"the figures are {', '.join(figure.key for figure in FIGURES)}")
    names = {name for figure in chosen for name in figure.places.values()}
    return [case for case in cases if place_and_form(case.name)[0] in names]


if __name__ == "__main__":
    typer.run(main)
