"""Joins with many partial matches alive: nanoseconds per event by window, for equality and for an order.

    python -m benchmarks.joins [--events 400000] [--windows 2000 20000 200000]

Half of the events of a window are alive as partial matches, nearly all with a value of their own. Almost none of them
fits a later event, so whatever an event costs is the cost of finding that out. Each figure is the last of four equal
parts of the stream, columns and counting included.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

import cerflow

CONDITIONS = ("x.id = y.id", "x.v < y.v")


def events(count: int, window: int) -> pa.Table:
    """Identifiers from a range as large as the window; the v of B is rarely beyond that of some A."""
    generator = np.random.default_rng(1)
    first = generator.integers(0, 2, count) == 0
    value = generator.random(count) * np.where(first, 1.0, 1 + 0.4 / window) + np.where(first, 1.0, 0.0)
    return pa.table(
        {"type": np.where(first, "A", "B"), "id": generator.integers(0, window, count), "v": value},
    )


def main() -> None:
    """Print a line for each condition and window."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--windows", type=int, nargs="+", default=[2_000, 20_000, 200_000])
    options = parser.parse_args()
    for condition in CONDITIONS:
        for window in options.windows:
            table = events(options.events, window)
            query = cerflow.parse(f"SELECT * WHERE (A AS x ; B AS y) FILTER {condition} WITHIN {window} EVENTS")
            recognizer = query.recognizer(table.schema)
            part = options.events // 4
            matches = 0
            for start in range(0, 4 * part, part):
                begin = time.process_time()
                matches += recognizer.push(table.slice(start, part)).count()
                seconds = time.process_time() - begin
            live = recognizer.live["configurations"]
            figures = f"{seconds / part * 1e9:7.0f} ns/event  {matches:>7,} matches  {live:>7,} entries"
            print(f"{condition}  window {window:>7,}  {figures}")


if __name__ == "__main__":
    main()
