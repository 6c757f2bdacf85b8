"""Matches as an HTML table for notebooks: the first few, one per line, with a column for each label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from cerflow.engine.results.flat import OTHERS, FlatColumn
from cerflow.engine.results.report import Report

__all__ = ["SHOWN", "as_html"]

#: Limits of the display: matches, events of a label in a match, and characters of a value.
SHOWN, _EVENTS, _CHARACTERS = 20, 3, 60


def as_html(report: Report, rows: Sequence[Mapping[str, Any]], number: int) -> str:
    """A table of some rows of a result with ``number`` rows."""
    labels: dict[str | None, list[FlatColumn]] = {}
    for column in report.flat:
        labels.setdefault(column.label, []).append(column)
    plain = [name for name in report.schema.names if name != "events"]
    head = "".join(f"<th>{escape(name)}</th>" for name in [*plain, *(label or OTHERS for label in labels)])
    lines = []
    for row in rows:
        cells = [_text(row[name]) for name in plain]
        for label, columns in labels.items():
            if label is None:
                events = [e for e in row["events"] if not labels.keys() & set(e["labels"])]
            else:
                events = [e for e in row["events"] if label in e["labels"]]
            cells.append(_events(events, columns))
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    said = f"{number:,} {'match' if number == 1 else 'matches'}" if not report.counts else f"{number:,} rows"
    if number > len(rows):
        said += f", the first {len(rows)} shown"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table><p>{said}</p>"


def _events(events: Sequence[Mapping[str, Any]], columns: Iterable[FlatColumn]) -> str:
    """The events of a label in a match, one per line; the type is shown only if there is nothing else."""
    fields = [column.field for column in columns if column.attribute is not None] or ["type"]
    lines = [", ".join(f"{escape(name)} {_text(event[name])}" for name in fields) for event in events[:_EVENTS]]
    if len(events) > _EVENTS:
        lines.append(f"… {len(events)} events")
    return "<br>".join(lines)


def _text(value: object) -> str:
    text = "" if value is None else str(value)
    return escape(text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…")
