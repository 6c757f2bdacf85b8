"""Long runs in parts: cases in batches, the rows of those that are measured in a file, and what time the rest takes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, Point
from benchmarks.measure import Row

__all__ = ["KeptRows", "Plan", "in_batches"]


def in_batches(cases: Sequence[Case]) -> list[list[Case]]:
    """Cases of one question are measured together: who failed at an easy one is not asked the others."""
    batches: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        # Strategies ask no question that others ask, too; all of a distribution and a query are one batch.
        name = case.question.pattern if case.question else case.name.split(" ", 1)[-1].partition(",")[0]
        batches.setdefault((case.suite, str(sorted(case.stream.arguments)), name), []).append(case)
    return list(batches.values())


class KeptRows:
    """The rows of a file, of which those count that were measured in the same way."""

    def __init__(self, path: Path, way: str) -> None:
        self._path, self._way = path, way
        #: Of each way its rows; those of other ways stay in the file.
        self._ways: dict[str, list[dict[str, Any]]] = {way: []}
        if path.exists():
            self._ways |= json.loads(path.read_text("utf-8"))
        self._rows = [Row(**row | {"point": row["point"] and Point(*row["point"])}) for row in self._ways[way]]

    def rows_of(self, case: Case) -> list[Row]:
        """What was measured of a case; a case that asks something else now has no rows."""
        asked = (case.suite, case.name, case.query)
        return [row for row in self._rows if (row.suite, row.case, row.query) == asked]

    def add(self, rows: Sequence[Row]) -> int:
        """Keep more rows; gives how many."""
        self._rows += rows
        self._ways[self._way] = [asdict(row) for row in self._rows]
        # A run that is killed leaves the old file or the new one.
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self._ways), "utf-8")
        new.replace(self._path)
        return len(rows)

    def forget(self, cases: Sequence[Case]) -> None:
        """Forget the rows of cases that were measured in this way."""
        forgotten = {(case.suite, case.name) for case in cases}
        self._rows = [row for row in self._rows if (row.suite, row.case) not in forgotten]


class Plan:
    """Tells what is to be asked, and after each batch how long the rest will take, judged by what is done."""

    def __init__(self, batches: Sequence[Sequence[Case]], runs: int, limit: float, tell: Callable[[str], None]) -> None:
        self._begin, self._tell = time.monotonic(), tell
        self._sizes = [sum(_questions(case) * min(runs, case.runs) for case in batch) for batch in batches]
        self._all, self._done = sum(self._sizes), 0
        cases = sum(map(len, batches))
        tell(f"{cases} cases in {len(batches)} batches, {self._all:,} questions, {limit:g} s at most for each")

    def done(self, rows: int) -> None:
        """Another batch is done, and gave this many rows."""
        self._done += self._sizes.pop(0)
        seconds = time.monotonic() - self._begin
        left = seconds * (self._all - self._done) / self._done
        told = f"{self._done:,} of {self._all:,} questions in {seconds / 60:.0f} min, {rows} rows more"
        self._tell(f"{told}; the rest will take {left / 60:.0f} min")


def _questions(case: Case) -> int:
    return len(case.layouts) * len(case.modes) + len(case.peers)
