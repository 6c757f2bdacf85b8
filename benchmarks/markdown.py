"""Markdown of results: tables, numbers, times."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measure import Row

__all__ = ["matches_of", "millions", "number", "seconds", "table"]


def matches_of(row: Row) -> str:
    """The number of matches, and whether it was compared with others."""
    if row.matches is None:
        return "–"
    digits = f"{int(row.matches):,}" if len(row.matches) < 16 else f"{float(row.matches):.4g}"
    return digits + {True: " =", False: " **≠**", None: ""}[row.checked]


def seconds(value: float | None) -> str:
    """A time in the unit that fits."""
    if value is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def millions(value: float | None) -> str:
    """A number in millions."""
    return "–" if value is None else f"{value / 1e6:.3g}"


def number(value: float | None) -> str:
    """A number with three digits, or all before the point."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, its rows under its head."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
