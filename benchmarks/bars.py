"""The bars of the project: what was asked for, what was measured, and whether it was met."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.measure import Row

__all__ = ["Bar", "Verdict", "judge"]


@dataclass(frozen=True)
class Verdict:
    """A bar and the worst measurement that it speaks of; ``measured`` is None where nothing was measured."""

    bar: str
    asked: float
    unit: str
    measured: float | None
    where: str

    met: bool | None


@dataclass(frozen=True)
class Bar:
    """At least (or at most) so much of a unit, of all figures that ``figures`` finds: pairs of value and place."""

    name: str
    asked: float
    unit: str
    figures: Callable[[Sequence[Row]], Iterable[tuple[float, str]]]
    at_least: bool = True

    def judge(self, rows: Sequence[Row]) -> Verdict:
        """The verdict on the worst figure."""
        figures = list(self.figures(rows))
        if not figures:
            return Verdict(self.name, self.asked, self.unit, None, "not measured in this run", None)
        measured, where = min(figures) if self.at_least else max(figures)
        met = measured >= self.asked if self.at_least else measured <= self.asked
        return Verdict(self.name, self.asked, self.unit, measured, where, met)


def judge(rows: Sequence[Row], interpreter_mb: float) -> list[Verdict]:
    """The verdicts on all bars; ``interpreter_mb`` is the memory of a bare Python."""
    return [bar.judge(rows) for bar in _bars(interpreter_mb)]


def _bars(interpreter_mb: float) -> list[Bar]:
    bars = []
    for engine in ("cerflow", "cerflow, encoded"):
        bars += [
            *_against_core(engine, ""),
            *_against_core(engine, ", processor time"),
            Bar(f"dataframes: {engine} against Polars, counted, processor time", 1, "times", _against_polars(engine)),
            Bar(f"srt, 500 and 5000 ms, few matches, counted: {engine}", 20, "M events/s", _speeds(engine, "count")),
            Bar(f"srt, 500 and 5000 ms, few matches, written: {engine}", 20, "M events/s", _speeds(engine, "write")),
        ]
    return [
        *bars,
        Bar("core, nothing matches: cerflow, encoded, as a multiple of the floor", 6, "times", _floor, at_least=False),
        Bar("large: two threads against one", 1.7, "times", _threads),
        Bar("large: matches with structs against NumPy's gathering", 2, "times", _structs, at_least=False),
        Bar("matches written to Arrow", 30, "M matches/s", _enumeration),
        Bar("memory above the interpreter", 300, "MB", lambda rows: _memory(rows, interpreter_mb), at_least=False),
        Bar("all kernels compiled, nothing cached", 25, "s", _seconds("cold"), at_least=False),
        Bar("first match after imports, kernels cached", 0.3, "s", _seconds("cached"), at_least=False),
        Bar("imports", 0.35, "s", _seconds("imports"), at_least=False),
        Bar("cerflow run --runner local on the ticks, warm", 1.2, "s", _seconds("shell"), at_least=False),
        Bar("push of one event, median", 2.8e-6, "s", _seconds("push", "median"), at_least=False),
        Bar("push of 100 events, beyond the events", 5.6e-5, "s", _seconds("batch", " 100 "), at_least=False),
        Bar("push of 1000 events, beyond the events", 8.5e-5, "s", _seconds("batch", " 1000 "), at_least=False),
    ]


def _against_core(engine: str, how: str) -> list[Bar]:
    asked = 100 if "encoded" in engine else 70
    return [
        Bar(f"core, nothing matches: {engine} against CORE{how}", asked, "times", _ratios(engine, "nothing", how)),
        Bar(f"core, all matches written: {engine} against CORE{how}", 40, "times", _ratios(engine, "matches", how)),
    ]


def _ratios(engine: str, tag: str, how: str) -> Callable[[Sequence[Row]], Iterable[tuple[float, str]]]:
    def taken(row: Row) -> float | None:
        return row.least_processor if how else row.best

    def figures(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
        peers = {row.case: taken(row) for row in rows if row.engine == "CORE"}
        for row in rows:
            theirs, ours = peers.get(row.case), taken(row)
            chosen = row.suite == "core" and row.engine == engine and row.mode == "write" and tag in row.tags
            if chosen and ours and theirs:
                yield theirs / ours, row.case

    return figures


def _against_polars(engine: str) -> Callable[[Sequence[Row]], Iterable[tuple[float, str]]]:
    def figures(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
        peers = {row.case: row.least_processor for row in rows if row.engine == "Polars" and row.suite == "dataframes"}
        for row in rows:
            theirs, ours = peers.get(row.case), row.least_processor
            if row.suite == "dataframes" and row.engine == engine and ours and theirs:
                yield theirs / ours, row.case

    return figures


def _floor(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    for row in rows:
        if (
            row.suite == "core"
            and "nothing" in row.tags
            and row.engine == "cerflow, encoded"
            and row.best
            and row.floor
        ):
            yield row.best / row.floor, row.case


def _threads(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    one = {row.case: row.best for row in rows if row.suite == "large" and row.mode == "count"}
    for row in rows:
        alone = one.get(row.case)
        if row.mode == "threads" and row.best and alone:
            yield alone / row.best, row.case


def _structs(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    """What writing takes longer than counting."""
    counted = {row.case: row.best for row in rows if row.suite == "large" and row.mode == "count"}
    for row in rows:
        base = counted.get(row.case)
        if row.mode == "structs" and row.best and base and row.details.get("gather"):
            yield (row.best - base) / row.details["gather"], row.case


def _speeds(engine: str, mode: str) -> Callable[[Sequence[Row]], Iterable[tuple[float, str]]]:
    """Of the queries with under one match for ten events."""

    def figures(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
        for row in rows:
            ours = row.engine == engine and row.mode == mode and "at bar" in row.tags
            if ours and row.best and row.events and 10 * int(row.matches or 0) < row.events:
                yield row.events / row.best / 1e6, row.case

    return figures


def _enumeration(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
    """Matches per second of what writing takes longer than counting, where there are enough of them to tell."""
    counted = {(row.suite, row.case, row.engine): row.best for row in rows if row.mode == "count"}
    for row in rows:
        base = counted.get((row.suite, row.case, row.engine))
        matches = int(row.matches or 0)
        if row.mode == "write" and row.engine.startswith("cerflow") and base and row.best and matches >= 300_000:
            yield matches / max(row.best - base, 1e-9) / 1e6, f"{row.suite}, {row.case}"


def _memory(rows: Sequence[Row], interpreter_mb: float) -> Iterable[tuple[float, str]]:
    for row in rows:
        if row.own_mb:
            yield row.own_mb - interpreter_mb, f"{row.suite}, {row.case}, {row.mode}"


def _seconds(tag: str, word: str = "") -> Callable[[Sequence[Row]], Iterable[tuple[float, str]]]:
    def figures(rows: Sequence[Row]) -> Iterable[tuple[float, str]]:
        for row in rows:
            if tag in row.tags and word in row.case and row.best:
                yield row.best, row.case

    return figures
