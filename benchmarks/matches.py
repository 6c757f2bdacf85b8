"""What happens after recognition: unfolding into Arrow, counting, aggregates, first matches and samples.

    python -m benchmarks.matches [--data stocks.csv.gz] [--runs 5] [--json FILE]

Processor time of reading matches that are recognised already, the best of several runs in turns; for unfolding also
as a multiple of what NumPy takes to fill arrays as large as those of the result (without the attributes of events).
Without ``--data`` the project's own generator supplies them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import cerflow
from benchmarks.streams import load

SEQUENCE = "(SELL AS a ; BUY AS b ; BUY AS c) FILTER a.name = 'INTC' AND b.name = 'RIMM' AND c.name = 'QQQ'"
KLEENE = SEQUENCE.replace("BUY AS b ;", "(BUY AS b)+ ;") + " AND b.price < 500"
RISE = " AND c.price > a.price"

#: Name, formula, window, whether all matches are written, whether the rest is measured.
CASES = (
    ("seq3 unrelated", SEQUENCE, "10000 [stock_time]", True, True),
    ("seq3", SEQUENCE + RISE, "5000 [stock_time]", True, True),
    ("k3", KLEENE + RISE, "2000 [stock_time]", True, True),
    ("k3", KLEENE + RISE, "5000 [stock_time]", False, True),
    ("seq2", "SELL AS b ; BUY AS c", "100000 EVENTS", False, False),
    ("seq3 unrelated", SEQUENCE, "100000 EVENTS", False, False),
)


def fill(matches: cerflow.Matches) -> Callable[[], None]:
    """Writes as many numbers as the result has: those of events, offsets, and five columns."""
    sizes = [(b.num_rows, len(b["events"].values)) for b in matches.to_batches(events="dictionary")]

    def run() -> None:
        for rows, events in sizes:
            np.full(events, 1, np.int32)
            np.full(rows + 1, 1, np.int32)
            for _ in range(5):
                np.full(rows, 1, np.int64)

    return run


def work(matches: cerflow.Matches, *, writes: bool, folds: bool) -> dict[str, Callable[[], Any]]:
    """What is measured."""
    found: dict[str, Callable[[], Any]] = {"count": matches.count}
    if writes:
        found["NumPy fill"] = fill(matches)
        found["unfold, dictionary"] = lambda: sum(b.num_rows for b in matches.to_batches(events="dictionary"))
        found["unfold, structs"] = lambda: sum(b.num_rows for b in matches.to_batches())
    else:
        million = "the first million, dictionary"
        found[million] = lambda: (
            list(itertools.islice(matches.to_batches(1 << 16, events="dictionary"), 16))[-1].num_rows
        )
    if folds:
        found["aggregate: count, sum"] = lambda: matches.aggregate({"n": "count", "s": ("b", "price", "sum")})
        found["aggregate: greatest sum"] = lambda: matches.aggregate({"s": ("b", "price", "sum", "max")})
        found["first by sum"] = lambda: matches.first(1, by=("b", "price", "sum")).to_arrow()
        found["sample of 10"] = lambda: matches.sample(10, seed=1).to_arrow()
    return found


def main() -> None:
    """Run the suite and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    (table,) = load({"kind": "stocks", "path": options.data} if options.data else {"kind": "stocks"}).chunks()
    rows = []
    for name, formula, window, writes, folds in CASES:
        query = cerflow.parse(f"SELECT * WHERE {formula} WITHIN {window}")
        matches = query.recognizer(table.schema, time="stock_time").push(table)
        rows += measured(f"{name} WITHIN {window}", matches, work(matches, writes=writes, folds=folds), options.runs)
    shown = Table("query", "matches", "what", "ms", "million matches/s", "times the fill")
    for row in rows:
        shown.add_row(*("" if v is None else f"{v:,}" if isinstance(v, int) else str(v) for v in row.values()))
    Console().print(shown)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    Console().print(f"{table.num_rows:,} events; peak memory {peak} MB")
    if options.json is not None:
        options.json.write_text(json.dumps({"rows": rows, "peak MB": peak}, indent=2))


def measured(
    name: str, matches: cerflow.Matches, jobs: dict[str, Callable[[], Any]], runs: int
) -> list[dict[str, Any]]:
    """A row for each job."""
    seconds: dict[str, list[float]] = {what: [] for what in jobs}
    for _ in range(runs):
        for what, job in jobs.items():
            begin = time.process_time()
            job()
            seconds[what].append(time.process_time() - begin)
    best = {what: min(times) for what, times in seconds.items()}
    total = matches.count()
    rows = []
    for what, took in best.items():
        unfolds = what.startswith("unfold")
        rows.append(
            {
                "query": name,
                "matches": total,
                "what": what,
                "ms": round(1000 * took, 1),
                "million matches/s": round(total / took / 1e6, 1) if unfolds else None,
                "times the fill": round(took / best["NumPy fill"], 1) if unfolds else None,
            }
        )
    return rows


if __name__ == "__main__":
    main()
