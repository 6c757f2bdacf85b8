"""Two queries run side by side on a sample: the matches of both, and of each alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cerflow import limits
from cerflow.engine.matches.matches import Matches
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Select
from cerflow.query import Query
from cerflow.studio.sampling import LoadedEvents
from cerflow.values.arrow_columns import one_array

_Marks = NDArray[np.uint64]


@dataclass(frozen=True)
class SampleDifference:
    """How many matches two queries share in some events, and how many only one of them has."""

    both: int
    first: int
    second: int
    events: int
    stopped: str | None = None


def difference_in(first: Query, second: Query, loaded: LoadedEvents, stopped: Callable[[], bool]) -> SampleDifference:
    """Run two queries until one of them has too many matches, or it takes too long; raises what they raise."""
    recognizers = [q.recognizer(loaded.table.schema, on_bad_record="skip", **loaded.roles) for q in (first, second)]
    begin = time.perf_counter()
    only_first = only_second = np.zeros(0, np.uint64)
    both = reached = total = 0
    size = limits.STUDIO_PUSHED_ROWS
    ended = None
    while reached < loaded.table.num_rows and ended is None:
        if stopped():
            ended = "it was stopped"
        elif time.perf_counter() - begin > limits.STUDIO_COMPARED_SECONDS:
            ended = f"{limits.STUDIO_COMPARED_SECONDS} s are over"
        else:
            of_first, of_second = [r.push(loaded.table.slice(reached, size)) for r in recognizers]
            total += max(of_first.count(), of_second.count())
            if total > limits.STUDIO_COMPARED_MATCHES:
                ended = f"a query has more than {limits.STUDIO_COMPARED_MATCHES:,} matches"
                break
            only_first = np.concatenate([only_first, _marks(of_first)])
            only_second = np.concatenate([only_second, _marks(of_second)])
            shared = np.intersect1d(only_first, only_second)
            both += len(shared)
            only_first, only_second = np.setdiff1d(only_first, shared), np.setdiff1d(only_second, shared)
            reached = min(reached + size, loaded.table.num_rows)
    return SampleDifference(both, len(only_first), len(only_second), reached, ended)


def _marks(matches: Matches) -> _Marks:
    """A number for each match, the same for matches of the same events with the same labels, or of the same row."""
    if "events" not in matches.schema.names:
        table = matches.to_arrow()
        return np.array([hash(repr(row)) for row in table.to_pylist()], np.int64).view(np.uint64)
    lists = one_array(matches.to_arrow(columns=["events"]).column("events"))
    if not len(lists):
        return np.zeros(0, np.uint64)
    events = pc.list_flatten(lists)
    labels = pc.binary_join(pc.struct_field(events, ["labels"]).cast(pa.list_(pa.string())), "\x1f")
    coded = one_array(labels).dictionary_encode()
    names = np.array([hash(text) for text in coded.dictionary.to_pylist()], np.int64).view(np.uint64)
    positions = pc.struct_field(events, ["position"]).to_numpy(zero_copy_only=False).astype(np.uint64)
    mixed = _mixed(_mixed(positions) ^ names[coded.indices.to_numpy(zero_copy_only=False)])
    ends = np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    found: _Marks = sums[ends] - sums[np.concatenate([[0], ends[:-1]])]
    return found


def _mixed(values: _Marks) -> _Marks:
    """Numbers whose bits all depend on all bits of the given ones (splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


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
