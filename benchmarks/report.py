"""The report of a run: everything as JSON, tables and ratios as Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bars import Verdict, judge
from benchmarks.cases import Point
from benchmarks.markdown import matches_of, millions, number, seconds, table
from benchmarks.measure import OVER, Row
from benchmarks.spark.bars import judge_jobs
from benchmarks.spark.table import jobs

__all__ = ["Report"]


#: What of the environment may differ between the runs of one report.
_OF_A_RUN = ("commit", "date", "runs", "limit", "size", "cores", "events", "load", "took")


@dataclass(frozen=True)
class Report:
    """What a run gave: where it ran and how, its rows, the verdicts on the bars, and the engines that were missing."""

    environment: Mapping[str, Any]
    rows: Sequence[Row]
    verdicts: Sequence[Verdict]
    missing: Mapping[str, str]

    @classmethod
    def read(cls, folders: Sequence[Path]) -> Report:
        """The report of one or more runs, whose suites it puts together, with how each of them was run."""
        found = [json.loads((folder / "results.json").read_text()) for folder in folders]
        names = {field.name for field in fields(Row)}
        rows = [Row(**{n: v for n, v in row.items() if n in names}) for data in found for row in data["rows"]]
        for row in rows:
            row.point = Point(*row.point) if row.point else None
        missing = {name: why for data in found for name, why in data["missing"].items()}
        environment = {name: value for name, value in found[-1]["environment"].items() if name not in _OF_A_RUN}
        for data in found:
            suites = ", ".join(dict.fromkeys(row["suite"] for row in data["rows"]))
            told = {name: value for name, value in data["environment"].items() if name in _OF_A_RUN}
            environment[f"Run of {suites}"] = ", ".join(f"{name} {_text(value)}" for name, value in told.items())
        verdicts = [*judge(rows, environment["memory of a bare Python"]), *judge_jobs(rows)]
        return cls(environment, rows, verdicts, missing)

    def write(self, folder: Path, charts: Sequence[Path]) -> None:
        """Write ``results.json`` and ``results.md`` into a folder; the charts are there already."""
        (folder / "results.json").write_text(json.dumps(self.as_dict(), indent=1) + "\n")
        (folder / "results.md").write_text(self.markdown([Path(chart.name) for chart in charts]))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "environment": dict(self.environment),
            "missing": dict(self.missing),
            "bars": [asdict(verdict) for verdict in self.verdicts],
            "rows": [row.as_dict() for row in self.rows],
        }

    def markdown(self, charts: Sequence[Path] = ()) -> str:
        """The report as Markdown, with links to charts."""
        parts = ["# Benchmarks\n", *_summary(self.rows), *_losses(self.rows), "## Bars\n", self._bars()]
        for suite in dict.fromkeys(row.suite for row in self.rows):
            rows = [row for row in self.rows if row.suite == suite]
            parts.append(f"## Suite {suite}\n")
            parts += [f"![{chart.stem}]({chart.as_posix()})\n" for chart in charts if chart.stem.split("-")[0] == suite]
            parts.append(_shown(suite, rows, self.rows))
            parts += _courses(rows)
        return "\n".join([*parts, "## How it was measured\n", self._measured()])

    def _measured(self) -> str:
        lines = [f"{name}: {_text(value)}  " for name, value in self.environment.items()]
        lines += [f"Not measured: {engine}, because {why}.  " for engine, why in self.missing.items()]
        odd = [row for row in self.rows if row.status != "ok" and row.engine.startswith("cerflow")]
        odd += [row for row in self.rows if row.checked is False]
        if odd:
            lines += ["", "**To check:**", ""]
            lines += [f"- {_place(row)}: {row.note if row.checked is False else row.status}" for row in odd]
        return "\n".join(lines) + "\n"

    def _bars(self) -> str:
        rows = [
            (v.bar, f"{number(v.asked)} {v.unit}", f"{number(v.measured)} {v.unit}", v.where, _met(v.met))
            for v in self.verdicts
        ]
        return table(("bar", "asked", "worst measured", "where", ""), rows)


def _text(value: object) -> str:
    return f"{value:.0f} MB" if isinstance(value, float) else str(value)


def _met(met: bool | None) -> str:
    return "–" if met is None else "met" if met else "**missed**"


def _place(row: Row) -> str:
    return f"{row.suite}, {row.case}, {row.engine}, {row.mode}"


def _shown(suite: str, rows: Sequence[Row], everything: Sequence[Row]) -> str:
    if suite == "start":
        return _times(rows)
    return jobs(rows) if suite == "spark" else _rates(rows, everything)


_RATES = ("case", "engine", "mode", "matches", "best", "median", "× floor", "× peer", "on one core", "peak MB", "")
_RATES_NOTE = """Best and median in million events per second; *× peer*: how many times faster than the other engines;
*on one core*: the same by the processor time of all threads.

"""


def _rates(rows: Sequence[Row], everything: Sequence[Row]) -> str:
    """Cases with events per second and with what the peers did at them."""
    several = len({row.engine for row in rows if not row.engine.startswith("cerflow")}) > 1
    shown = []
    for row in rows:
        peers = _peers(row, everything)
        shown.append(
            (
                row.case,
                row.engine,
                row.mode,
                matches_of(row),
                millions(row.rate(row.best)),
                millions(row.rate(row.median)),
                number(row.best / row.floor if row.best and row.floor else None),
                *_against(row, peers, named=several),
                number(row.peak_mb),
                "" if row.status == "ok" else row.status,
            )
        )
    return _RATES_NOTE + table(_RATES, shown)


def _ratios(rows: Sequence[Row]) -> list[tuple[Row, str, float]]:
    """For each row of cerflow and each peer how many times faster it is, by processor time where both tell it."""
    found = []
    for row in rows:
        for peer in _peers(row, rows):
            pairs = [(row.least_processor, peer.least_processor), (row.best, peer.best)]
            # What is measured of a peer, less its start, may come out below nothing.
            ours, theirs = next(((a, b) for a, b in pairs if a and b and b > 0), (None, None))
            if ours and theirs:
                found.append((row, peer.engine, theirs / ours))
    return found


def _summary(rows: Sequence[Row]) -> list[str]:
    """How cerflow does against each engine, suite by suite."""
    found: dict[tuple[str, str], list[float]] = {}
    for row, peer, ratio in _ratios(rows):
        found.setdefault((row.suite, peer), []).append(ratio)
    if not found:
        return []
    shown = [
        (
            suite,
            peer,
            str(len(some)),
            str(sum(r >= 1 for r in some)),
            *map(number, (median(some), min(some), max(some))),
        )
        for (suite, peer), some in found.items()
    ]
    head = ("suite", "against", "measurements", "cerflow as fast or faster", "times as fast, median", "least", "most")
    return ["## In short\n", table(head, shown)]


def _losses(rows: Sequence[Row]) -> list[str]:
    """The cases at which another engine is faster."""
    found = [
        (ratio, (row.suite, row.case, row.engine, row.mode, peer)) for row, peer, ratio in _ratios(rows) if ratio < 1
    ]
    if not found:
        return []
    shown = [(*names, f"{ratio:.2f}") for ratio, names in sorted(found)]
    return ["## Where cerflow is slower\n", table(("suite", "case", "", "mode", "than", "times as fast"), shown)]


def _peers(row: Row, everything: Sequence[Row]) -> list[Row]:
    """The other engines' rows at the case, for a row of cerflow."""
    if not row.engine.startswith("cerflow"):
        return []
    same = [other for other in everything if (other.suite, other.case) == (row.suite, row.case)]
    return [other for other in same if not other.engine.startswith("cerflow")]


def _against(row: Row, peers: Sequence[Row], *, named: bool) -> tuple[str, str]:
    """How many times faster than each peer, in elapsed and in processor time; ``named`` tells the peers apart."""
    elapsed, processor = [], []
    for peer in peers:
        name = f"{peer.engine} " if named else ""
        if peer.status == OVER:
            elapsed.append(name + OVER)
            continue
        pairs = ((elapsed, row.best, peer.best), (processor, row.least_processor, peer.least_processor))
        for told, ours, theirs in pairs:
            if ours and theirs and theirs > 0:
                told.append(f"{name}{theirs / ours:,.1f}")
    return ", ".join(elapsed), ", ".join(processor)


def _courses(rows: Sequence[Row]) -> list[str]:
    """Whether long streams cost the same from the beginning to the end."""
    shown = []
    for row in rows:
        course = row.details.get("course", [])
        if len(course) >= 10:
            (first, seconds, memory), (before, so_far, _), (last, whole, at_end) = course[0], course[-2], course[-1]
            begin, end = first / seconds, (last - before) / (whole - so_far)
            shown.append((row.case, millions(begin), millions(end), number(memory), number(at_end)))
    if not shown:
        return []
    head = ("long stream", "Mev/s at first", "at last", "resident MB at first", "at last")
    return ["The first and the last tenth of streams that come in many batches:\n", table(head, shown)]


def _times(rows: Sequence[Row]) -> str:
    shown = [(row.case, seconds(row.best), seconds(row.median), row.note) for row in rows]
    return table(("what", "best", "median", ""), shown)
