"""The meaning of definitions (spec §10, composition): their matches as events between those of the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cerflow.language.select import ProjectionKind, Select
from cerflow.semantics.queries import Match, evaluate
from cerflow.values.events import Stream
from cerflow.values.units import TimeUnit

__all__ = ["Entry", "defined", "read_by"]


@dataclass(frozen=True)
class Entry:
    """An event of the input or of a definition.

    ``path`` says where it stands: its number in the input, and for each definition on the way from there to it the
    number of the definition and that of the match. So paths in the order of tuples are the order of events.
    """

    path: tuple[int, ...]
    stream: str | None
    row: Mapping[str, Any]


def read_by(query: Select, inputs: Sequence[str], entries: Sequence[Entry]) -> list[Entry]:
    """The entries that a query reads, in their order; without FROM those of the input.

    ``inputs`` are the streams of FROM that are no definitions. Events of an input without streams are of the only one.
    """
    if not query.streams:
        return [entry for entry in entries if len(entry.path) == 1]
    named = [Entry(entry.path, inputs[0], entry.row) if entry.stream is None and inputs else entry for entry in entries]
    return sorted((entry for entry in named if entry.stream in query.streams), key=lambda entry: entry.path)


def defined(
    number: int,
    name: str,
    query: Select,
    inputs: Sequence[str],
    entries: Sequence[Entry],
    columns: Sequence[str],
    *,
    type: str,
    time: str | None,
    time_unit: TimeUnit | None,
    forget: int | None,
) -> list[Entry]:
    """The entries together with the matches of definition ``number``; ``columns`` are those of its result."""
    read = read_by(query, inputs, entries)
    streams = "\0stream"
    told_apart = bool(query.streams) and any(entry.stream is not None for entry in read)
    rows = [{**entry.row, streams: entry.stream} if told_apart else entry.row for entry in read]
    stream = Stream.from_dicts(rows, type=type, time=time, time_unit=time_unit, stream=streams if told_apart else None)
    found: dict[int, list[Match]] = {}
    for match in evaluate(query, stream, forget=forget):
        assert match.detected_at is not None  # without `until` every match is detected at an event
        found.setdefault(match.detected_at, []).append(match)

    def moment(position: int | None) -> Any:
        return position if time is None or position is None else read[position].row[time]

    added = []
    for position, matches in found.items():
        if query.projection.kind is ProjectionKind.NONE:
            matches = matches[:1]
        matches.sort(key=lambda match: min(match.positions, default=-1))
        for k, match in enumerate(matches):
            own = {"start_time": min(match.positions, default=None), "end_time": max(match.positions, default=None)}
            keys = [column for column in columns if column not in own and column not in dict(match.columns)]
            row = {type: name, **{n: moment(at) for n, at in own.items()}, **dict(zip(keys, match.key))}
            row |= {} if time is None else {time: moment(position)}
            added.append(Entry((*read[position].path, number, k), name, {**row, **dict(match.columns)}))
    return [*entries, *added]
