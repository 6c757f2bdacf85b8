"""The page that shows matches in their stream: one HTML file that needs neither a network nor other files."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import tempfile
import webbrowser
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base import limits
from cerflow.base.array_types import Ints
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import InputError, did_you_mean
from cerflow.base.events import UNNAMED
from cerflow.base.schema import HIDDEN_TYPES
from cerflow.base.units import TimeUnit
from cerflow.look.viewing.match_events import EXTENT, MatchEvents, is_list, match_events
from cerflow.look.viewing.packed_columns import PackedArrays, packed_column, packed_times, text_codes

#: Matches that are looked at together when they are counted.
BATCH = 8192

_SCRIPTS = ("values.js", "picture.js", "axis.js", "table.js", "controls.js")
_OTHERS = "(others)"
_NULL = "(null)"


@dataclass(frozen=True)
class ViewedStream:
    """The events of a stream in their order, and the columns with a role; position ``k`` is row ``k``.

    ``events`` is None if only those of the matches are known. ``keys`` are the columns, one or several alternatives,
    of each key by which events can be laid out in lanes; None takes columns of text with few values.
    """

    events: pa.Table | None
    type: str = "type"
    time: str | None = None
    time_unit: TimeUnit | None = None
    keys: Sequence[Sequence[str]] | None = None


def page_of(matches: pa.Table, stream: ViewedStream, *, title: str, notices: Sequence[str] = ()) -> str:
    """The text of the page, for a result (nested, flat or as read from CSV) and its stream.

    ``notices`` are sentences that the page shows above the picture, such as what was left out. Of streams with more
    events than `limits.VIEWED_EVENTS` those between the matches are thinned out, and the page says so. Raises
    `InputError` for a table that is not a result, or not one of these events, and for unknown keys.
    """
    found = match_events(matches)
    said = list(notices)
    table, places = _shown_events(found, stream, said)
    arrays = PackedArrays()
    rows = np.searchsorted(places, found.positions)
    _refuse_strangers(found, table, rows, stream)
    time = stream.time if stream.time in table.column_names else None
    axis = None if time is None else packed_times(table.column(time), stream.time_unit, arrays, rising=True)

    def packed(of: pa.Table, left_out: Collection[str | None]) -> list[dict[str, Any]]:
        return [packed_column(name, of.column(name), arrays) for name in of.column_names if name not in left_out]

    head = {
        "title": title,
        "notices": said,
        "events": len(table),
        "positions": arrays.add(places, rising=True),
        "axis": axis,
        "lanes": [
            {"name": name, "values": arrays.add(codes), "texts": texts}
            for name, (codes, texts) in _lanes(table, stream, rows, said).items()
        ],
        "marks": {
            "events": arrays.add(rows),
            "labels": arrays.add(found.labels),
            "sets": [list(labels) for labels in found.label_sets],
            "columns": packed(found.attributes, ("type", stream.type, time, *found.rest.column_names)),
        },
        "matches": {
            "size": len(found.rest),
            "offsets": arrays.add(found.offsets, rising=True),
            "marks": arrays.add(found.numbers),
            "columns": packed(found.rest, EXTENT),
        },
    }
    return _filled(title, head, arrays.text())


def first_matches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int) -> tuple[pa.Table, str | None]:
    """The first matches of a result, ``most`` or fewer if they have more events than a page can show.

    If there are others, also a sentence without full stop about that, in which ``{}`` stands for their number.
    """
    found, rows, events = [], 0, 0
    for batch in batches:
        fits = most - rows
        if "events" in schema.names and is_list(schema.field("events").type):
            sizes = pc.list_value_length(batch.column("events")).fill_null(0).to_numpy(zero_copy_only=False)
            room = int(np.searchsorted(np.cumsum(sizes), limits.VIEWED_MARKS - events, side="right"))
            # One match is always shown.
            fits = max(min(fits, room), 1 - rows)
            events += int(sizes[:fits].sum())
        found.append(batch.slice(0, fits))
        rows += len(found[-1])
        if fits < len(batch):
            said = f"The first {rows:,} of {{}} matches are shown"
            said += "; a higher limit shows more" if rows == most else f", as they have {events:,} events"
            return pa.Table.from_batches(found, schema), said
    return pa.Table.from_batches(found, schema), None


def _shown_events(found: MatchEvents, stream: ViewedStream, said: list[str]) -> tuple[pa.Table, Ints]:
    """The events of the picture, and their positions."""
    used, first = np.unique(found.positions, return_index=True)
    if stream.events is None:
        said.append("Only the events of matches are shown, as the others of the stream are not known here.")
        if not found.attributes.num_columns:
            return pa.table({"type": pa.nulls(len(first), pa.string())}), used
        return found.attributes.take(pa.array(first)), used
    events = stream.events
    if len(used) and (used[-1] >= len(events) or used[0] < 0):
        raise InputError(
            f"a match has an event at position {used[-1]:,}, but there are {len(events):,} events; "
            "give the events in which the matches were found"
        )
    most = limits.VIEWED_EVENTS
    if len(events) <= most:
        return events, np.arange(len(events))
    others = np.linspace(0, len(events) - 1, max(2, most - len(used))).astype(np.int64)
    places: Ints = np.union1d(used, others)
    said.append(
        f"{len(places):,} of {len(events):,} events are drawn: all events of the matches shown, "
        "and of the others an even selection."
    )
    return events.take(pa.array(places)), places


def _refuse_strangers(found: MatchEvents, table: pa.Table, rows: Ints, stream: ViewedStream) -> None:
    """Refuse matches whose events are of other types than the stream's at their positions."""
    if stream.events is None or "type" not in found.attributes.column_names or stream.type not in table.column_names:
        return
    types = one_array(table.column(stream.type)).take(pa.array(rows)).cast(pa.string())
    said = one_array(found.attributes.column("type")).cast(pa.string())
    apart = pc.fill_null(pc.not_equal(types, said), False)
    if pc.any(apart).as_py():
        k = pc.index(apart, True).as_py()
        raise InputError(
            f"the event at position {found.positions[k]:,} has the type '{types[k]}', but in the result it is "
            f"'{said[k]}'; give the events in which the matches were found, with the same options"
        )


def _lanes(table: pa.Table, stream: ViewedStream, used: Ints, said: list[str]) -> dict[str, tuple[Ints, list[str]]]:
    """The choices of lanes for events: for each the lane of every event, and the names of the lanes."""
    own = stream.type if stream.type in table.column_names else "type"
    keys = _likely_keys(table, {own, stream.time}) if stream.keys is None else stream.keys
    columns = [[own], *map(list, keys)]
    found = {}
    for names in columns:
        missing = [name for name in names if name not in table.column_names]
        if stream.events is None and missing:
            continue
        for name in missing:
            raise InputError(f"there is no column '{name}' for lanes{did_you_mean(name, table.column_names)}")
        values = [one_array(table.column(name)) for name in names]
        column = values[0] if len(values) == 1 else pc.coalesce(*(value.cast(pa.string()) for value in values))
        codes, texts = text_codes(column)
        texts = ["without a type" if text == UNNAMED else text for text in texts]
        title = "type" if names[0] in HIDDEN_TYPES else "/".join(names)
        found[title] = _ranked(codes, texts, used, title, said)
    return found


def _likely_keys(table: pa.Table, others: set[str | None]) -> list[list[str]]:
    """The columns of text whose values are few and come again, a few of them."""
    found = []
    for name in table.column_names:
        kind = table.schema.field(name).type
        if name not in others and (pa.types.is_string(kind) or pa.types.is_dictionary(kind)):
            values = pc.count_distinct(table.column(name).cast(pa.string())).as_py()
            if 1 < values <= min(limits.VIEWED_LANES, len(table) // 2):
                found.append([name])
    return found[: limits.VIEWED_KEYS]


def _ranked(
    codes: np.ndarray[Any, Any], texts: Sequence[str | None], used: Ints, name: str, said: list[str]
) -> tuple[Ints, list[str]]:
    """Lanes in alphabetical order; of very many, those with the most events in matches, and one for the others."""
    named = [_NULL if text is None else text for text in texts]
    kept = range(len(named))
    most = limits.VIEWED_LANES
    if len(named) > most:
        weight = np.bincount(codes[used], minlength=len(named)) * len(codes) + np.bincount(codes, minlength=len(named))
        kept = np.argsort(-weight, kind="stable")[: most - 1].tolist()
        said.append(
            f"The column '{name}' has {len(named):,} values: the {most - 1:,} with the most events in matches have "
            f"lanes of their own, the lane {_OTHERS} has the rest."
        )
    order = sorted(kept, key=lambda code: (texts[code] is None, _natural(named[code])))
    lane = np.full(len(named), len(order), np.int64)
    lane[order] = np.arange(len(order))
    return lane[codes], [named[code] for code in order] + ([_OTHERS] if len(named) > most else [])


def _natural(text: str) -> tuple[float, str]:
    """Texts that are numbers come first, by their value."""
    try:
        return (float(text), text)
    except ValueError:
        return (float("inf"), text)


def _filled(title: str, head: dict[str, Any], data: str) -> str:
    """The page; nothing in it comes from elsewhere, and the browser is told to fetch nothing."""
    style, body = (_asset(name) for name in ("page.css", "page.html"))
    script = "".join(['"use strict";\n(async () => {\n', *map(_asset, _SCRIPTS), "})();\n"])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # In a script element only "<" could end it or begin a comment.
    facts = json.dumps(head, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    filled = {"TITLE": escape(title), "STYLE": style, "DIGEST": digest, "HEAD": facts, "DATA": data, "SCRIPT": script}
    return Template(body).substitute(filled)


@cache
def _asset(name: str) -> str:
    return files("cerflow.look.viewing").joinpath("assets", name).read_text(encoding="utf-8")


# -- where the user is


def open_page(text: str) -> Path | None:
    """Show a page: in the notebook this process works for, or in the browser; then the path of its file is returned.

    The file is a temporary one that stays, as the browser reads it later.
    """
    # A notebook has imported IPython before us.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        display: Any = import_module("IPython.display")
        display.display(display.HTML(frame_of(text)))
        return None
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="cerflow-matches-", suffix=".html", delete=False
    ) as file:
        file.write(text)
    webbrowser.open(Path(file.name).as_uri())
    return Path(file.name)


def frame_of(text: str, height: int = 640) -> str:
    """A page as part of another one, as high as this many pixels and without access to the other one.

    Notebooks that are not trusted leave only the sentence.
    """
    return (
        f'<iframe srcdoc="{escape(text)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 1px solid #8884; border-radius: 6px">'
        "The matches in their stream are shown once the notebook is trusted.</iframe>"
    )
