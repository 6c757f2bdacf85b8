"""The matches of a run as people read them: times, keys, computed columns and the events by label."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.base.units import TimeUnit
from cerflow.language.lexicon import quote_name
from cerflow.language.select import BOOKKEEPING
from cerflow.look.studying.wording import shown_duration, shown_time, shown_value

_TIMES = ("start_time", "end_time", "detected_time")


@dataclass(frozen=True)
class Outcome:
    """The matches of a run: how many, the first of them as a table, and what ended the run before the last event."""

    count: int
    table: pa.Table
    events: int
    seconds: float
    stopped: str | None = None
    time_unit: TimeUnit | None = None
    types: Collection[str] = field(default=())

    def match(self, number: int) -> dict[str, Any]:
        """A match by its number, from 0."""
        found: dict[str, Any] = self.table.slice(number, 1).to_pylist()[0]
        return found

    @cached_property
    def positions(self) -> dict[str, set[int]]:
        """The positions of the events by label; types only of events without other labels."""
        if "events" not in self.table.column_names or not self.table.num_rows:
            return {}
        events = pc.list_flatten(self.table.column("events").combine_chunks())
        joined = pc.binary_join(pc.struct_field(events, ["labels"]).cast(pa.list_(pa.string())), "\x1f")
        pairs = pa.table([joined, pc.struct_field(events, ["position"])], ["labels", "position"])
        found: dict[str, set[int]] = {}
        for text, positions in zip(*pairs.group_by("labels", use_threads=False).aggregate([("position", "distinct")])):
            for label in self.own_labels(text.as_py().split("\x1f")) if text.as_py() else ():
                found.setdefault(label, set()).update(positions.as_py())
        return found

    def own_labels(self, labels: list[str]) -> list[str]:
        """The labels of an event without its type, unless it has no others."""
        return [label for label in labels if label not in self.types] or labels

    def asked(self, match: dict[str, Any]) -> list[str]:
        """The events of a match, as one writes them to ask about them."""
        return [
            f"{quote_name(label)}@{event['position']}"
            for event in match.get("events") or ()
            for label in self.own_labels(event["labels"])
        ]

    def columns(self, *, bookkeeping: bool) -> tuple[list[str], list[str]]:
        """The columns that are shown, and those of them by which matches are sorted."""
        names = [name for name in self.table.column_names if name != "events"]
        own = [name for name in names if name not in BOOKKEEPING]
        timed = "start_time" in names and self.table.column("start_time").null_count < self.table.num_rows
        first = ["time", "duration"] if timed else []
        kept = [name for name in names if name in BOOKKEEPING] if bookkeeping else []
        labels = [label for label in self.positions if label not in own]
        return [*first, *own, *labels, *kept], [*first, *own, *kept]

    def page(self, first: int, end: int, by: str | None, down: bool) -> list[dict[str, Any]]:
        """Some rows, as text and numbers for the browser, with their numbers from 1."""
        if by is None or by == "#":
            numbers = np.arange(first, min(end, self.table.num_rows))
            numbers = self.table.num_rows - 1 - numbers if down else numbers
        else:
            numbers = self._order(by, down)[first:end]
        rows = self.table.take(pa.array(numbers)).to_pylist()
        return [{"#": int(number) + 1, **self._shown(row)} for number, row in zip(numbers, rows)]

    def _order(self, by: str, down: bool) -> np.ndarray[Any, Any]:
        values = self.table.column({"time": "start_time"}.get(by, "end_time" if by == "duration" else by))
        if by == "duration":
            values = pc.subtract(values, self.table.column("start_time"))
        order = "descending" if down else "ascending"
        found: np.ndarray[Any, Any] = pc.array_sort_indices(values.combine_chunks(), order=order).to_numpy()
        return found

    def _shown(self, row: dict[str, Any]) -> dict[str, Any]:
        found = cells({name: value for name, value in row.items() if name != "events"}, _TIMES, self.time_unit)
        start, end = row.get("start_time"), row.get("end_time")
        if start is not None and end is not None:
            found["time"] = shown_time(start, self.time_unit)
            found["duration"] = shown_duration(end - start, self.time_unit)
        for label in self.positions:
            places = [str(e["position"]) for e in row.get("events") or () if label in self.own_labels(e["labels"])]
            found.setdefault(label, ", ".join(places))
        return found


def cells(row: Mapping[str, Any], times: Collection[str | None], unit: TimeUnit | None) -> dict[str, Any]:
    """The values of a row as they stand in tables, given the columns of ``times`` and what numbers in these count."""
    return {n: shown_time(v, unit) if n in times and v is not None else cell(v) for n, v in row.items()}


def cell(value: Any) -> Any:
    """A value as it stands in a table: numbers as they are, without needless zeros, nothing for null, and text."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else shown_value(value)
