"""The table of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import matches_of, millions, number, seconds, table
from benchmarks.measure import Row
from benchmarks.spark.bars import against
from benchmarks.spark.measure import cores_of
from benchmarks.spark.questions import PASS, TAKE

__all__ = ["jobs"]

_TIMES = ("Mev/s", "best", "worst", "first", "JVM", "Python", "× pass", "× taken in", "CPU", "× one core")
_HEAD = ("query", "way", "cores", "rows", *_TIMES, "peak MB", "all", "")
_NOTE = """Whole jobs, from planning to the last row, into Spark's sink `noop`. *Mev/s*: million events per second of
the best run; *first*: the first run of the session, which starts processes and loads kernels; *JVM*, *Python*: the
least processor time of a run, in seconds; *× pass*: how many times faster than a pass-through of the same columns on
the same cores; *× taken in*: than a `mapInArrow` that takes them in and returns nothing, and with how many times less
processor time (*CPU*); *× one core*: than itself on one core; *peak MB*: the most
resident memory of one Python process, and of all of them together. Numbers of rows that were compared and are equal
are marked `=`.

"""


def jobs(rows: Sequence[Row]) -> str:
    """The jobs as Markdown, questions together."""
    one = {(row.case, row.engine): row.best for row in rows if cores_of(row) == 1}
    shown = []
    for row in sorted(rows, key=lambda row: [r.case for r in rows].index(row.case)):
        alone = one.get((row.case, row.engine))
        ratio = alone / row.best if alone and row.best and cores_of(row) > 1 else None
        shown.append(
            (
                row.case,
                row.engine,
                str(cores_of(row)),
                matches_of(row),
                millions(row.rate(row.best)),
                seconds(row.best),
                seconds(max(row.seconds, default=None)),
                seconds(row.details.get("first")),
                number(row.details.get("jvm")),
                number(row.details.get("python")),
                number(against(PASS, row, rows)),
                number(against(TAKE, row, rows)),
                number(against(TAKE, row, rows, processor=True)),
                number(ratio),
                number(row.peak_mb),
                number(row.details.get("peak_all_mb")),
                "" if row.status == "ok" else row.status,
            )
        )
    return _NOTE + table(_HEAD, shown)
