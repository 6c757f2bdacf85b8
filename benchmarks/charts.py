"""Charts of a run as SVG, with Matplotlib (the extra ``bench``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Row

__all__ = ["draw"]

_COLOURS = {
    "cerflow": "#1f77b4",
    "cerflow, encoded": "#17becf",
    "CORE": "#ff7f0e",
    "FlinkCEP": "#d62728",
    "Polars": "#2ca02c",
    "DuckDB": "#9467bd",
    "Esper": "#8c564b",
}


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """One chart for each suite with rates: lines where something grows, bars elsewhere; nothing without Matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("svg")
    # The same figures give the same file, without a date in it.
    matplotlib.rcParams.update({"svg.hashsalt": "cerflow", "svg.fonttype": "none", "font.size": 8})
    made = []
    for suite in dict.fromkeys(row.suite for row in rows):
        rated = [row for row in rows if row.suite == suite and row.rate(row.best) is not None]
        for name, some in (("", [r for r in rated if r.point is None]), ("-growth", [r for r in rated if r.point])):
            if some:
                path = folder / f"{suite}{name}.svg"
                (_lines if name else _bars)(some, suite, path)
                made.append(path)
    return made


def _bars(rows: Sequence[Row], suite: str, path: Path) -> None:
    """Events per second of every case, the engines beside each other."""
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(row.case for row in rows))
    series = list(dict.fromkeys((row.engine, row.mode) for row in rows))
    figure = Figure(figsize=(9, 1 + 0.14 * len(cases) * (len(series) + 1)), layout="constrained")
    axes = figure.add_subplot()
    height = 0.85 / len(series)
    for number, (engine, mode) in enumerate(series):
        some = [row for row in rows if (row.engine, row.mode) == (engine, mode)]
        axes.barh(
            [cases.index(row.case) + number * height for row in some],
            [row.rate(row.best) or 0 for row in some],
            height=height,
            color=_COLOURS.get(engine, "#7f7f7f"),
            alpha=1 if mode == "write" else 0.5,
            label=f"{engine}, {mode}",
        )
    axes.set_yticks([number + 0.4 for number in range(len(cases))], cases)
    axes.invert_yaxis()
    _finish(axes, f"{suite}: events per second", "x")
    figure.savefig(path, metadata={"Date": None})


def _lines(rows: Sequence[Row], suite: str, path: Path) -> None:
    """Events per second over what grows: a panel for each quantity, a colour for each line, a style for each engine."""
    from matplotlib.figure import Figure

    quantities = list(dict.fromkeys(row.point.axis for row in rows if row.point))
    figure = Figure(figsize=(9, 3.2 * len(quantities)), layout="constrained")
    for number, quantity in enumerate(quantities):
        axes = figure.add_subplot(len(quantities), 1, number + 1)
        points: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for row in rows:
            # Two layouts of the same columns would hide each other.
            if row.point and row.point.axis == quantity and row.engine != "cerflow":
                at = (row.point.value, row.rate(row.best) or 0)
                points.setdefault((row.point.line, row.engine, row.mode), []).append(at)
        names = list(dict.fromkeys(line for line, _, _ in points))
        for (line, engine, mode), some in points.items():
            style = {"count": "--", "detect": "-."}.get(mode, "-") if engine.startswith("cerflow") else ":"
            label = f"{line}, {engine}, {mode}"
            axes.plot(*zip(*sorted(some)), style, marker=".", color=f"C{names.index(line)}", label=label)
        axes.set_xscale("log")
        axes.set_xlabel(quantity)
        _finish(axes, f"{suite}: events per second", "y")
    figure.savefig(path, metadata={"Date": None})


def _finish(axes: Any, title: str, scale: str) -> None:
    (axes.set_xscale if scale == "x" else axes.set_yscale)("log")
    axes.set_title(title)
    axes.grid(True, axis=scale, which="major", alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=6)
