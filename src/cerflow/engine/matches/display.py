"""Shows matches: the first few as a table for notebooks, and the data for pages and plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.arrow_columns import one_array, with_plain_columns
from cerflow.base.errors import ArgumentError, InputError, UnsupportedQueryError, at_least_one, counted
from cerflow.base.event_tables import to_table
from cerflow.base.graphs import gathered
from cerflow.engine.events.time_order import EventsInOrder, sort_by_time
from cerflow.engine.matches.counting import readable_number
from cerflow.engine.results.report import OTHERS, FlatColumn, Report
from cerflow.language.printer import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cerflow.engine.matches.matches import Matches

#: Limits of the display: matches, events of a label in a match, and characters of a value.
SHOWN, _EVENTS, _CHARACTERS = 20, 3, 60


def as_html(report: Report, rows: Sequence[Mapping[str, Any]], number: int) -> str:
    """A table of some rows of a result with ``number`` rows."""
    labels = gathered((column.label, column) for column in report.flat)
    asked = [name for name in report.schema.names[len(report.leading) :] if name != "events"]
    timed = [row for row in rows if row.get("start_time") is not None]
    ends = [row["end_time"] if row["detected_time"] is None else row["detected_time"] for row in timed]
    scale = (min(row["start_time"] for row in timed), max(ends)) if timed else None
    names = [*asked, *(["timeline"] if scale else []), *(label or OTHERS for label in labels), *report.leading]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    lines = []
    for row in rows:
        cells = [_text(row[name]) for name in asked]
        if scale is not None:
            cells.append(_timeline(row, report.event_fields.get(report.events.time or "", "position"), *scale))
        for label, columns in labels.items():
            named = ((e, labels.keys() & set(e["labels"]) or {None}) for e in row["events"])
            cells.append(_events([e for e, own in named if label in own], columns))
        cells += [_text(row[name]) for name in report.leading]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    said = counted(number, "row") if report.counts else counted(number, "match", "matches")
    if number > len(rows):
        said += f", the first {len(rows)} shown"
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f'<div style="overflow-x:auto;white-space:nowrap">{table}</div><p>{said}</p>'


def _timeline(row: Mapping[str, Any], time: str, least: Any, most: Any) -> str:
    """A match on the axis of all shown ones: its events, and a tick where it was detected."""

    def place(moment: Any) -> float:
        return 4 + 152 * ((moment - least) / (most - least) if moment is not None and most > least else 0.5)

    if row["start_time"] is None:
        return ""
    begin, end, detected = (place(row[name]) for name in ("start_time", "end_time", "detected_time"))
    moments = {begin, end, *(place(event[time]) for event in row.get("events", ()) if event.get(time) is not None)}
    dots = "".join(f'<circle cx="{x:.1f}" cy="7" r="3" stroke="none"/>' for x in sorted(moments))
    return (
        '<svg width="160" height="14" role="img" fill="currentColor" stroke="currentColor"><title>'
        f"{_text(row['start_time'])} – {_text(row['end_time'])}</title>"
        f'<path d="M{begin:.1f} 7H{max(end, detected):.1f}M{detected:.1f} 2v10"/>{dots}</svg>'
    )


def _events(events: Sequence[Mapping[str, Any]], columns: Iterable[FlatColumn]) -> str:
    """The events of a label in a match, without nulls; the type is shown only if nothing else is."""
    fields = [column.field for column in columns if column.attribute is not None] or ["type"]
    shown = [
        ", ".join(f"{escape(name)} {_text(event[name])}" for name in fields if event[name] is not None)
        for event in events[:_EVENTS]
    ]
    if len(events) > _EVENTS:
        shown.append(f"… {len(events)} events")
    return " · ".join(shown)


def _text(value: object) -> str:
    text = "" if value is None else str(value)
    return escape(text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 1]}…")


def page(
    matches: Matches, report: Report, ordered: EventsInOrder | None, events: Any, title: str | None, limit: int | None
) -> str:
    """The page of `Matches.to_html`."""
    from cerflow.look.viewing.page import BATCH, ViewedStream, first_matches, page_of

    most = limits.VIEWED_MATCHES if limit is None else at_least_one(limit, "limit")
    schema = report.events
    if events is not None:
        if report.position is not None:
            raise InputError(
                f"positions are values of the column '{report.position}', so they do not say which events are meant; "
                "leave events= out"
            )
        stream = sort_by_time(to_table(events), schema.time, None)
    else:
        stream = None if ordered is None else with_plain_columns(ordered.whole)
    schema_shown = matches.shown_schema(counts="text")
    table, cut = first_matches(matches.to_batches(BATCH, counts="text"), schema_shown, most)
    notices = [] if cut is None else [f"{cut.format(readable_number(matches.rows()))}."]
    time = schema.time if stream is not None else report.event_fields.get(schema.time or "")
    keys = [[schema.column(name) for name in key] for key in report.select.partition]
    keys += [[schema.stream]] if schema.stream is not None else []
    viewed = ViewedStream(stream, schema.type, time, schema.time_unit, keys or None)
    return page_of(table, viewed, title=show(report.select) if title is None else title, notices=notices)


def drawn(matches: Matches, report: Report, kind: str, ax: Axes | None) -> Axes:
    """The plots of `Matches.plot`."""
    from cerflow.look.viewing import plots

    schema = report.events
    unit = schema.time_unit or "ms" if schema.time is not None else None
    if pa.types.is_timestamp(report.time_type):
        unit = report.time_type.unit
    if kind == "over_time":
        times, numbers = _detections(matches, report)
        total, counts = readable_number(sum(numbers)), np.array([float(n) for n in numbers])
        return plots.plot_over_time(times, counts, unit, f"{total} matches over time", ax)
    if kind not in ("duration", "size"):
        raise ArgumentError(f"a plot must be of 'over_time', 'duration' or 'size', not {kind!r}")
    wanted = ["events"] if kind == "size" else ["start_time", "end_time"]
    if not set(wanted) <= set(report.schema.names):
        raise UnsupportedQueryError(f"the query does not report the {kind} of matches: COUNT(*) and SELECT without *")
    rows = matches[: limits.PLOTTED_MATCHES].to_arrow(columns=wanted)
    number = matches.rows() if len(rows) == limits.PLOTTED_MATCHES else len(rows)
    said = f"{readable_number(number)} matches" + (f", the first {len(rows):,} plotted" if number > len(rows) else "")
    if kind == "size":
        sizes = pc.list_value_length(rows.column("events")).fill_null(0).to_numpy()
        return plots.plot_sizes(sizes, f"Events per match: {said}", ax)
    start, end = (plots.time_numbers(rows.column(name)) for name in wanted)
    durations = end - start
    if pa.types.is_date(report.time_type):
        unit = "ms"
    return plots.plot_durations(durations[~np.isnan(durations)], unit, f"Duration: {said}", ax)


def _detections(matches: Matches, report: Report) -> tuple[pa.Array, list[int]]:
    """The times of detections and the matches of each; matches are unfolded only if necessary."""
    if report.counts:
        name = report.counts[0].name
        found = matches.to_arrow(columns=["detected_time", name], counts="text")
        numbers = [int(n) for n in found.column(name).to_pylist()]
    else:
        try:
            found = matches.aggregate({"matches": "count"})
            numbers = [int(n) for n in found.column("matches").to_pylist()]
        except UnsupportedQueryError:
            found = matches.to_arrow(columns=["detected_time"])
            numbers = [1] * len(found)
    return one_array(found.column("detected_time")), numbers
