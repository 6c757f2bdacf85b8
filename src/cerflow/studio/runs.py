"""Runs over the sample: of a query, of its parts while it is written, and of two queries side by side.

The matches of a run are shown as people read them: times, keys, computed columns and the events by label.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log10
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.base import limits
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import CerflowError
from cerflow.base.units import TimeUnit
from cerflow.engine.matches.matches import Matches
from cerflow.engine.stopping import checked, look
from cerflow.language import formula as f
from cerflow.language.event_kinds import kinds_in
from cerflow.language.lexicon import quote_name
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.select import BOOKKEEPING, Consumption, Projection, ProjectionKind, Select
from cerflow.look.pictures.boxes import Mark
from cerflow.look.studying.wording import cells, sentence, shown_duration, shown_time
from cerflow.studio.sampling import LoadedEvents

#: Rows of the first push of a run, and the seconds that a push should take at most.
_FIRST_ROWS, _PROMPT = 256, 0.4
#: Matches of a preview whose events are shown in their colours.
_LISTED = 1_000


class StoppedError(CerflowError):
    """Work that the user has stopped, or that has taken too long; the text says why, or how far it has come."""


def stopped_if(ends: Callable[[], bool], why: str = "it was stopped") -> AbstractContextManager[None]:
    """A block that ends by `StoppedError` once a function says so."""

    def check() -> None:
        if ends():
            raise StoppedError(why)

    return checked(check)


def limited(seconds: float) -> AbstractContextManager[None]:
    """A block that ends by `StoppedError` if it takes longer."""
    begin = time.perf_counter()
    return stopped_if(lambda: time.perf_counter() - begin > seconds, f"the limit of {seconds:g} s is exceeded")


# -- of a query

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


def run_query(
    query: Query | Program,
    loaded: LoadedEvents,
    *,
    most: int,
    seconds: float,
    told: Callable[[int], object] = lambda reached: None,
) -> Outcome:
    """The matches of a query, until it takes too long or the check of the caller raises `StoppedError`.

    ``told`` gets the number of events that have been read. Raises what a recogniser raises.
    """
    begin = time.perf_counter()
    table = loaded.table
    recognizer = query.recognizer(table.schema, on_bad_record="skip", memory=limits.STUDIO_MEMORY, **loaded.roles)
    tables: list[pa.Table] = []
    count = listed = reached = 0
    ended = None
    # Matches are shown of whole pushes, so where events cost much, few are pushed.
    size = min(_FIRST_ROWS, limits.STUDIO_PUSHED_ROWS)
    try:
        # A machine that is slow to load the engine still reads events.
        with limited(seconds):
            while reached < table.num_rows:
                look()
                pushed = time.perf_counter()
                matches = recognizer.push(table.slice(reached, size))
                count += matches.count()
                if listed < most or not tables:
                    tables.append(matches[: most - listed].to_arrow())
                    listed += tables[-1].num_rows
                reached = min(reached + size, table.num_rows)
                told(reached)
                spent = time.perf_counter() - pushed
                if spent < _PROMPT / 4:
                    size = min(2 * size, limits.STUDIO_PUSHED_ROWS)
                elif spent > _PROMPT:
                    size = max(1, size // 2)
    except StoppedError as stop:
        ended = str(stop)
    except MemoryError as error:
        ended = sentence(error) if isinstance(error, CerflowError) else "the memory of this machine is full"
    spent = time.perf_counter() - begin
    found = pa.concat_tables(tables).combine_chunks() if tables else pa.table({})
    kinds = query.definitions if isinstance(query, Program) else kinds_in(query.tree)
    return Outcome(count, found, reached, spent, ended, loaded.time_unit, {*loaded.types, *kinds})


# -- of a query that is being written


@dataclass(frozen=True)
class Preview:
    """The number of matches of a query in the first events, and texts for parts of its tree, by their identity.

    The texts say how many events or partial matches there are of a part; parts have none after the time is over.
    ``outcome`` has the first of the matches.
    """

    query: Query
    outcome: Outcome
    parts: Mapping[int, Mark]


def preview(query: Query, loaded: LoadedEvents) -> Preview | None:
    """Count the matches of a query and of its parts in the first events; None if that takes too long.

    Raises what a recogniser raises, such as `MemoryLimitError`.
    """
    begin = time.perf_counter()
    events = loaded.table.slice(0, limits.STUDIO_PREVIEW_ROWS)
    plain = replace(query.tree, projection=Projection(ProjectionKind.ALL))

    def found(select: Select) -> Matches:
        memory, asked = limits.STUDIO_MEMORY // 4, Query(select, reading=query.reading)
        return asked.recognizer(events.schema, on_bad_record="skip", memory=memory, **loaded.roles).push(events)

    counts: dict[int, int] = {}
    parts: dict[int, Mark] = {}
    with limited(limits.STUDIO_PREVIEW_SECONDS):
        try:
            matches = found(plain)
            count = matches.count()
        except StoppedError:
            return None
        listed: list[pa.RecordBatch] = []
        for batch in matches[:_LISTED].to_batches(_LISTED // 20):
            listed.append(batch)
            if time.perf_counter() - begin > limits.STUDIO_PREVIEW_SECONDS / 2:
                break
        table = pa.Table.from_batches(listed, matches.schema)
        outcome = Outcome(count, table, events.num_rows, 0.0, types={*loaded.types, *kinds_in(query.tree)})
        plain = replace(plain, strategy=f.Strategy.ALL, by=(), consume=Consumption.NONE, limit=None)
        for node in walk(query.tree.formula):
            if isinstance(node, f.Formula):
                try:
                    look()
                    counts[id(node)] = found(replace(plain, formula=node)).count()
                except StoppedError:
                    break
                except (CerflowError, MemoryError):
                    continue  # it has conditions on labels of other parts, or is too large alone
                text = shown_number(counts[id(node)])
                if isinstance(node, f.Filter) and id(node.operand) in counts:
                    text = f"{text} of {shown_number(counts[id(node.operand)])}"
                parts[id(node)] = Mark((f"{text} {'events' if _is_single(node) else 'matches'}",))
    return Preview(query, outcome, parts)


def _is_single(node: f.Formula) -> bool:
    while isinstance(node, f.As | f.Filter):
        node = node.operand
    return isinstance(node, f.NotEvent) or not any(isinstance(child, f.Formula) for child in node.children)


def shown_number(number: int) -> str:
    """A number of matches, which may be of any size."""
    return f"{number:,}" if number < 10**12 else f"> 10^{int((number.bit_length() - 1) * log10(2))}"


# -- of two queries


@dataclass(frozen=True)
class SampleDifference:
    """How many matches two queries share in some events, and how many only one of them has."""

    both: int
    first: int
    second: int
    events: int
    stopped: str | None = None


def difference_in(first: Query, second: Query, loaded: LoadedEvents) -> SampleDifference:
    """Run two queries until one of them has too many matches, or it takes too long; raises what they raise."""
    recognizers = [q.recognizer(loaded.table.schema, on_bad_record="skip", **loaded.roles) for q in (first, second)]
    texts = [[pa.array([], pa.string())], [pa.array([], pa.string())]]
    reached = total = 0
    ended = None
    try:
        with limited(limits.STUDIO_COMPARED_SECONDS):
            while reached < loaded.table.num_rows:
                look()
                some = loaded.table.slice(reached, limits.STUDIO_PUSHED_ROWS)
                found = [recognizer.push(some) for recognizer in recognizers]
                total += max(matches.count() for matches in found)
                if total > limits.STUDIO_COMPARED_MATCHES:
                    ended = f"a query has more than {limits.STUDIO_COMPARED_MATCHES:,} matches"
                    break
                for known, new in zip(texts, map(_as_texts, found)):
                    known.append(new)
                reached += len(some)
    except StoppedError as stop:
        ended = str(stop)
    own, other = (pc.unique(pa.concat_arrays(known)) for known in texts)
    both = pc.sum(pc.is_in(own, value_set=other), min_count=0).as_py()
    return SampleDifference(both, len(own) - both, len(other) - both, reached, ended)


def _as_texts(matches: Matches) -> pa.Array:
    """A text for each match, the same for matches of the same events with the same labels, or of the same row."""
    if "events" not in matches.schema.names:
        return pa.array([repr(row) for row in matches.to_arrow().to_pylist()], pa.string())
    lists = one_array(matches.to_arrow(columns=["events"]).column("events"))
    events = pc.list_flatten(lists)
    labels = pc.binary_join(pc.struct_field(events, ["labels"]).cast(pa.list_(pa.string())), "\x1f")
    texts = pc.binary_join_element_wise(pc.struct_field(events, ["position"]).cast(pa.string()), labels, "\x1e")
    ends = np.cumsum([0, *pc.list_value_length(lists).to_numpy(zero_copy_only=False)])
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(ends), texts), "\x1d")


def other_clauses(first: Select, second: Select) -> list[tuple[str, str]]:
    """The clauses besides the formula in which two queries differ, as each of them has it."""
    return [pair for pair in zip(_clauses(first), _clauses(second)) if pair[0] != pair[1]]


def _clauses(select: Select) -> list[str]:
    by = f" BY {', '.join(map(show, select.by))}" if select.by else ""
    keys = ", ".join("/".join(key) for key in select.partition)
    return [
        f"FROM {', '.join(select.streams)}" if select.streams else "all streams",
        f"WITHIN {show(select.window)}" if select.window is not None else "no window",
        f"PARTITION BY {keys}" if keys else "no PARTITION BY",
        f"the strategy {select.strategy}{by}",
        "no CONSUME BY" if select.consume is Consumption.NONE else f"CONSUME BY {select.consume}",
        "no LIMIT" if select.limit is None else f"LIMIT {select.limit}",
    ]
