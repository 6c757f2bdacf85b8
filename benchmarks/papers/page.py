"""One page with a chart and a table for each figure of the papers: ours, other engines, and the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.markdown import number, table
from benchmarks.measure import OVER, Row
from benchmarks.papers.figures import FIGURES, Figure, place_and_form
from benchmarks.suites.determinism import COPIES, DETERMINISED

__all__ = ["write_page"]

_UNITS = {"rate": "events/s", "seconds": "s", "each": "µs", "enumeration": "s", "remembered": "MB"}
_PREFACE = """# The figures of the papers beside ours

P1 is *Foundations of Complex Event Processing*, 004 *Complex Event Recognition with Symbolic Register Transducers*.
Columns "paper: …" have the numbers of the papers, from their machines; all other columns were measured in this run, on
generated streams (or on the ticks that `--data` names). "over": an engine took longer than the limit, here or at an
easier question of the same kind. "–": not measured, or not in the paper.

CORE and FlinkCEP come from PyPI (`pycer`, `apache-flink-libraries`), Esper from Maven Central. Esper is asked for
sequences and for Q1 to Q6 with consumption, FlinkCEP for all patterns of 004 (with `--quick` for sequences) and for
the sequences of P1. CORE is asked for patterns that relate no attributes, as it has no words for that. FlinkCEP counts
more matches of nested iterations than there are by definition. Wayeb (Scala) and SASE (Java) were not run: there are
only sources of them. Maven Central knows none of `wayeb:wayeb`, `com.github.ElAlev:Wayeb` and `edu.umass.cs.sase:sase`,
and PyPI has neither. So only the papers' numbers stand here.

Of CORE's times that of an empty stream is subtracted, so that the least are uncertain, and may be 0. Memory remembered
by cerflow is the size of a snapshot, that of the papers what their Java processes used. On a machine
with other work (see the load) times are unreliable.

"""

#: Each column has one colour in all charts, and an engine the same for our measurement and for the paper's.
_COLOURS = {
    "cerflow": "C0",
    "cerflow, count": "C0",
    "cerflow, write": "C1",
    "cerflow, detect": "C2",
    "cerflow, count, SREMO": "C9",
    "cerflow, detect, SREMO": "C8",
    f"cerflow, count{DETERMINISED}": "C3",
    f"cerflow, count{COPIES}": "C4",
    "FlinkCEP": "C3",
    "Esper": "C4",
    "CORE": "C5",
    "CEL": "C6",
    "Wayeb": "C7",
    "SASE": "black",
}

#: The columns of a figure: a name, and the values at its places.
Columns = dict[str, list[float | None]]


def write_page(folder: Path, rows: Sequence[Row], told: Mapping[str, object], missing: Mapping[str, str]) -> Path:
    """Write ``papers.md`` and its charts into the folder; gives the page."""
    lines = [_PREFACE]
    # Sizes of memory are the only fractions.
    lines += [f"{name}: {f'{value:.0f} MB' if isinstance(value, float) else value}  \n" for name, value in told.items()]
    lines += [f"Not measured: {engine}, because {why}.  \n" for engine, why in missing.items()]
    for row in rows:
        if row.wrong or row.status not in ("ok", OVER):
            head = "Wrong" if row.wrong else "Failed"
            lines.append(f"\n**{head}:** {row.case}, {row.engine}, {row.mode}: {row.note or row.status}\n")
    for figure in FIGURES:
        columns = _columns(figure, rows)
        if all(name.startswith("paper") for name in columns):
            continue
        lines += [f"\n## {figure.title}\n\n", f"{figure.note}\n\n" if figure.note else ""]
        if _drawn(figure, columns, folder / f"{figure.key}.svg"):
            lines.append(f"![{figure.title}]({figure.key}.svg)\n\n")
        matches = _matches(figure, rows)
        head = (figure.axis, "matches", *columns)
        cells = [
            (place, matches[at], *(_cell(values[at]) for values in columns.values()))
            for at, place in enumerate(figure.places)
            if any(values[at] for values in columns.values())
        ]
        lines += [f"In {_UNITS[figure.measure]}.\n\n", table(head, cells), _memory(figure, rows)]
    page = folder / "papers.md"
    page.write_text("".join(lines), "utf-8")
    return page


def _columns(figure: Figure, rows: Sequence[Row]) -> Columns:
    """What was measured, by engine, mode and language, and then what the paper says."""
    names = list(figure.places.values())
    found: Columns = {}
    for row in rows:
        name, form = place_and_form(row.case)
        ours = row.engine.startswith("cerflow")
        value = _value(figure, row)
        if name not in names or value is None or (ours and row.mode not in figure.modes):
            continue
        mode = f", {row.mode}" if len(figure.modes) > 1 else ""
        column = f"cerflow{mode}{form}" if ours else row.engine
        found.setdefault(column, [None] * len(names))[names.index(name)] = value
    return found | {f"paper: {name}": list(values) for name, values in figure.paper.items()}


def _cell(value: float | None) -> str:
    return "over" if value == math.inf else number(value and max(value, 0.0))


def _value(figure: Figure, row: Row) -> float | None:
    if row.status == OVER and not row.seconds:
        # Memory and listing are told apart for cerflow alone.
        return math.inf if row.engine.startswith("cerflow") or figure.measure in ("rate", "seconds", "each") else None
    if figure.measure == "rate":
        return row.rate(row.best)
    if figure.measure == "seconds":
        return row.best
    if figure.measure == "each":
        return row.best and row.events and 1e6 * row.best / row.events
    value: float | None = row.details.get(figure.measure)
    return value


def _matches(figure: Figure, rows: Sequence[Row]) -> list[str]:
    """The number of matches at each place."""
    by_case = {row.case: row.matches for row in rows if row.engine.startswith("cerflow") and row.mode != "detect"}
    found = [by_case.get(name) for name in figure.places.values()]
    return ["–" if n is None else f"{int(n):,}" if len(n) < 16 else f"{float(n):.3g}" for n in found]


def _memory(figure: Figure, rows: Sequence[Row]) -> str:
    """A sentence on how much memory the processes had, where the paper's figure is one of throughput."""
    if figure.measure != "rate":
        return ""
    names = set(figure.places.values())
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.case in names and row.peak_mb is not None and row.mode in figure.modes:
            found.setdefault("cerflow" if row.engine.startswith("cerflow") else row.engine, []).append(row.peak_mb)
    ranges = {name: (f"{min(sizes):.0f}", f"{max(sizes):.0f}") for name, sizes in found.items()}
    told = ", ".join(f"{name} {' to '.join(dict.fromkeys(ends))}" for name, ends in ranges.items())
    return f"\nMB of the processes here, with all events: {told}.\n" if told else ""


def _drawn(figure: Figure, columns: Columns, path: Path) -> bool:
    """Draw the chart: ours as lines, other engines dotted, the paper's dashed; whether Matplotlib is there to do it."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("svg")
    from matplotlib.figure import Figure as Drawing

    matplotlib.rcParams.update({"svg.hashsalt": "cerflow", "svg.fonttype": "none", "font.size": 8})
    drawing = Drawing(figsize=(8, 3.2), layout="constrained")
    axes = drawing.add_subplot()
    places = list(figure.places)
    shown: set[str] = set()
    for name, values in columns.items():
        style, marker = (
            ("-", "o") if name.startswith("cerflow") else ("--", "x") if name.startswith("paper") else (":", "^")
        )
        colour = _COLOURS[name.removeprefix("paper: ")]
        points = [(at, value) for at, value in enumerate(values) if value and 0 < value < math.inf]
        for _, joined in groupby(points, lambda point: figure.part(places[point[0]])):
            label = name if name not in shown else None
            shown.add(name)
            axes.plot(*zip(*joined), style, marker=marker, markersize=3, color=colour, label=label)
    axes.set_xticks(range(len(places)), places, rotation=90 if len(places) > 10 else 0)
    axes.set_yscale("log")
    axes.set_xlabel(figure.axis)
    axes.set_ylabel(_UNITS[figure.measure])
    axes.grid(True, axis="y", alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=6)
    drawing.savefig(path, metadata={"Date": None})
    return True
