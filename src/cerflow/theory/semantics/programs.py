"""The meaning of definitions (spec §10, composition): their matches as events between those of the input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cerflow.base.events import Stream
from cerflow.base.units import TimeUnit
from cerflow.language.select import Select
from cerflow.theory.semantics.complex_events import Time
from cerflow.theory.semantics.queries import Match, evaluate


@dataclass(frozen=True)
class Entry:
    """An event of the input or of a definition.

    ``path`` says where it stands: its number in the input, and for each definition on the way from there to it the
    number of the definition and that of the match. So paths in the order of tuples are the order of events. After all
    input stand the times that the clock shows, instead of an event of the input: the paths of what is detected there
    begin with the number of events of the input, and that time.
    """

    path: tuple[Any, ...]
    stream: str | None
    row: Mapping[str, Any]


def read_by(query: Select, inputs: Sequence[str], entries: Sequence[Entry]) -> list[Entry]:
    """The entries that a query reads, in their order; without FROM those of the input.

    ``inputs`` are the streams of FROM that are not definitions. Events of an input without streams are of the only one.
    """
    if not query.streams:
        return _of_input(entries)
    named = [Entry(entry.path, inputs[0], entry.row) if entry.stream is None and inputs else entry for entry in entries]
    return sorted((entry for entry in named if entry.stream in query.streams), key=lambda entry: entry.path)


def _of_input(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if len(entry.path) == 1]


def clocked(read: Sequence[Entry], count: int) -> int:
    """How many of these entries go back to times that the clock showed; ``count`` is the number of input events."""
    return sum(entry.path[0] == count for entry in read)


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
    until: Time | None,
    as_time: Callable[[Time], Any],
) -> list[Entry]:
    """The entries together with the matches of definition ``number``; ``columns`` are those of its result.

    ``until`` is as for `evaluate`; ``as_time`` gives the time of an event that is detected at a deadline.
    """
    count = len(_of_input(entries))
    read = read_by(query, inputs, entries)
    streams = "\0stream"
    told_apart = bool(query.streams) and any(entry.stream is not None for entry in read)
    rows = [{**entry.row, streams: entry.stream} if told_apart else entry.row for entry in read]
    stream = Stream.from_dicts(rows, type=type, time=time, time_unit=time_unit, stream=streams if told_apart else None)
    found: dict[tuple[Any, ...], list[Match]] = {}
    for match in evaluate(query, stream, forget=forget, until=until, clocked=clocked(read, count)):
        if match.detected_at is not None:
            shown = read[match.detected_at].path
        else:
            assert match.deadline is not None
            shown = (count, as_time(match.deadline))
        found.setdefault(shown, []).append(match)

    def moment(position: int | None) -> Any:
        return position if time is None or position is None else read[position].row[time]

    added = []
    for shown, matches in found.items():
        matches.sort(key=lambda match: min(match.positions, default=-1))
        for k, match in enumerate(matches):
            own = {"start_time": min(match.positions, default=None), "end_time": max(match.positions, default=None)}
            keys = [column for column in columns if column not in own and column not in dict(match.columns)]
            row = {type: name, **{n: moment(at) for n, at in own.items()}, **dict(zip(keys, match.key))}
            at = match.detected_at
            row |= {} if time is None else {time: shown[1] if at is None else moment(at)}
            added.append(Entry((*shown, number, k), name, {**row, **dict(match.columns)}))
    return [*entries, *added]
