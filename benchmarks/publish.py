"""Puts the results of runs into the documentation: ``python -m benchmarks.publish FOLDER …``.

Several folders are those of runs of different suites. Writes docs/benchmarks.md and the charts beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.charts import draw
from benchmarks.report import Report

__all__ = ["publish"]

_PREFACE = """This page compares cerflow with other engines, case by case. [Performance](performance.md#measuring)
explains the figures, and `make bench-docs` writes the page. On a busy machine (see the load)
elapsed times are unreliable; processor times and counts are not affected.
"""
_DOCS = Path(__file__).resolve().parent.parent / "docs"


def publish(folders: Sequence[Path], docs: Path = _DOCS) -> None:
    """Write ``benchmarks.md`` and the folder ``benchmarks`` with the charts into ``docs``."""
    report = Report.read(folders)
    pictures = docs / "benchmarks"
    pictures.mkdir(parents=True, exist_ok=True)
    # Jobs on Spark have a table only: what counts there are ratios.
    charts = draw([row for row in report.rows if row.suite != "spark"], pictures)
    text = report.markdown([chart.relative_to(docs) for chart in charts])
    (docs / "benchmarks.md").write_text(text.replace("# Benchmarks\n", f"# Benchmarks\n\n{_PREFACE}", 1))


if __name__ == "__main__":
    publish([Path(argument) for argument in sys.argv[1:]])
