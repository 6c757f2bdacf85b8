"""The aims for Spark, each judged by its worst figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.bars import Bar, Verdict
from benchmarks.measure import Row
from benchmarks.spark.measure import cores_of
from benchmarks.spark.questions import ORDINARY, SOURCE, TAKE

__all__ = ["against", "judge_jobs"]


def judge_jobs(rows: Sequence[Row]) -> list[Verdict]:
    """The verdicts on Spark's bars."""
    return [bar.judge(rows) for bar in _BARS]


def against(way: str, row: Row, rows: Sequence[Row], *, processor: bool = False) -> float | None:
    """How many times faster than another way with the same columns, on the same cores, in the same session.

    With ``processor`` by the processor time of all processes.
    """

    def taken(row: Row) -> float | None:
        return row.least_processor if processor else row.best

    for other in rows:
        if other.engine == way and all(other.details[name] == row.details[name] for name in ("cores", "columns")):
            theirs, ours = taken(other), taken(row)
            return theirs / ours if theirs and ours else None
    return None


def _against_floor(way: str, tag: str = "selective") -> Callable[[Sequence[Row]], Iterable[tuple[float, str]]]:
    def figures(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
        for row in _of(rows, way):
            if tag in row.tags and (ratio := against(TAKE, row, rows)):
                yield ratio, f"{row.case}, {row.mode}"

    return figures


def _two_cores(way: str) -> Callable[[Sequence[Row]], Iterable[tuple[float, str]]]:
    def figures(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
        best = {(row.case, cores_of(row)): row.best for row in _of(rows, way)}
        for (case, cores), one in best.items():
            two = best.get((case, 2))
            if cores == 1 and one and two:
                yield one / two, case

    return figures


def _starting(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    for row in _of(rows, ORDINARY):
        if row.best and "first" in row.details:
            yield row.details["first"] - row.best, f"{row.case}, {row.mode}"


def _of(rows: Sequence[Row], way: str) -> list[Row]:
    return [row for row in rows if row.suite == "spark" and row.engine == way and row.status == "ok"]


_BARS = (
    Bar("selective query, ordinary path against taking in", 2.0, "times", _against_floor(ORDINARY)),
    Bar("unselective query, ordinary path against taking in", 0.9, "times", _against_floor(ORDINARY, "unselective")),
    Bar("selective query, data source against taking in", 8.0, "times", _against_floor(SOURCE)),
    Bar("first job of a session, ordinary path, beyond later ones", 4.0, "s", _starting, at_least=False),
    Bar("ordinary path, two cores against one", 1.6, "times", _two_cores(ORDINARY)),
    Bar("data source, two cores against one", 1.6, "times", _two_cores(SOURCE)),
)
