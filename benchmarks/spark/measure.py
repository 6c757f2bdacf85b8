"""One session after the other, each with its number of cores; in every run of a question each way has its turn."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engines import source_path
from benchmarks.measure import DIFFER, OVER, Row
from benchmarks.processes import OverLimitError, ProcessDiedError, Worker
from benchmarks.spark.questions import ORDINARY, PASS, SCAN, SOURCE, TAKE, Question

__all__ = ["cores_of", "measure_jobs"]

_START_LIMIT = 300.0


def cores_of(row: Row) -> int:
    """The cores that a row speaks of."""
    return int(row.details["cores"])


def measure_jobs(
    questions: Sequence[Question],
    path: Path,
    *,
    events: int,
    cores: Sequence[int],
    runs: int,
    limit: float,
    missing: Mapping[str, str],
    tell: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """The rows of all questions in all ways that are not missing, for each number of cores.

    The first run of a job starts Python processes and loads kernels; ``details`` tells it apart from the ``runs``
    that come after it. A job that goes over the limit (seconds) or fails has no further turn.
    """
    rows = []
    for number in cores:
        session = _Session(number, str(path), limit)
        jobs = {
            (q.name, way): _row(q, way, number, events) for q in questions for way in _ways(q) if way not in missing
        }
        try:
            # Spark ends Python processes that had nothing to do for a minute, so the runs of a question follow at once.
            for question in questions:
                for run in range(runs + 1):
                    for way, row in ((way, row) for (name, way), row in jobs.items() if name == question.name):
                        tell(f"{number} cores, {f'run {run} of {runs}' if run else 'first run'}: {row.case}, {way}")
                        if row.status == "ok":
                            session.ask(row, way, first=not run)
        finally:
            session.close()
        rows += jobs.values()
    _check(questions, rows)
    return rows


def _ways(question: Question) -> Iterable[str]:
    return (SCAN, PASS, TAKE) if question.query is None else (ORDINARY, SOURCE)


def _row(question: Question, way: str, cores: int, events: int) -> Row:
    details: dict[str, Any] = {"cores": cores, "columns": len(question.columns)}
    tags = sorted(question.tags)
    mode = f"local[{cores}]"
    return Row("spark", question.name, way, mode, question.query or "", tags, events=events, details=details)


class _Session:
    """A session in a process of its own, started when it is needed, and again after a job over the limit."""

    def __init__(self, cores: int, path: str, limit: float) -> None:
        self._cores, self._path, self._limit = cores, path, limit
        self._worker: Worker | None = None

    def ask(self, row: Row, way: str, *, first: bool) -> None:
        """Put a question once and note in its row what comes of it."""
        line = json.dumps({"way": way, "question": row.case, "path": self._path})
        try:
            if self._worker is None:
                command = [sys.executable, "-m", "benchmarks.spark.worker", str(self._cores)]
                self._worker = Worker(command, environment=source_path({}), start_limit=_START_LIMIT)
            answer = self._worker.ask(line, self._limit)
        except OverLimitError:
            self._worker, row.status = None, OVER
            return
        except ProcessDiedError as death:
            self._worker, row.status = None, f"died: {death}"
            return
        if "error" in answer:
            row.status = answer["error"]
            return
        if first:
            row.details["first"] = answer["seconds"]
        else:
            row.seconds.append(answer["seconds"])
            row.processor.append(answer["jvm"] + answer["python"])
            if row.least_processor == row.processor[-1]:
                row.details |= {"jvm": answer["jvm"], "python": answer["python"]}
        for name in ("peak_mb", "peak_all_mb"):
            row.details[name] = max(row.details.get(name) or 0.0, answer[name] or 0.0) or None
        row.peak_mb = row.details["peak_mb"]
        found = str(answer["rows"])
        if row.matches not in (None, found):
            row.status = f"not the same number of rows in all runs: {row.matches}, then {found}"
        row.matches = found

    def close(self) -> None:
        """End the process, and Spark with it."""
        if self._worker is not None:
            self._worker.close()


def _check(questions: Sequence[Question], rows: Sequence[Row]) -> None:
    """Compare the numbers of matches of all ways and cores, and of questions that mean the same."""
    same = {q.name: "same" if "same" in q.tags else q.name for q in questions}
    for group in dict.fromkeys(same.values()):
        found = [row for row in rows if same[row.case] == group and row.matches is not None]
        told = [row for row in found if row.engine != TAKE]
        numbers = {row.matches for row in told}
        for row in told:
            if len(numbers) > 1:
                row.checked = False
                row.note = f"{DIFFER}: " + ", ".join(f"{o.case} {o.engine} {o.mode} {o.matches}" for o in told)
            elif len(told) > 1:
                row.checked = True
