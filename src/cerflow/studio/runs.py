"""Runs over the sample: of a query, of its parts while it is written, and of two queries side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import log10

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerflow.api.programs.program import Program
from cerflow.api.query import Query
from cerflow.base import limits
from cerflow.base.arrow_columns import one_array
from cerflow.base.errors import CerflowError
from cerflow.engine.matches.matches import Matches
from cerflow.engine.stopping import checked, look
from cerflow.language import formula as f
from cerflow.language.event_kinds import kinds_in
from cerflow.language.node import walk
from cerflow.language.printer import show
from cerflow.language.select import Consumption, Projection, ProjectionKind, Select
from cerflow.look.pictures.boxes import Mark
from cerflow.look.studying.wording import sentence
from cerflow.studio.results import Outcome
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
    only_first = only_second = pa.array([], pa.string())
    both = reached = total = 0
    ended = None
    try:
        with limited(limits.STUDIO_COMPARED_SECONDS):
            while reached < loaded.table.num_rows:
                look()
                some = loaded.table.slice(reached, limits.STUDIO_PUSHED_ROWS)
                of_first, of_second = [recognizer.push(some) for recognizer in recognizers]
                total += max(of_first.count(), of_second.count())
                if total > limits.STUDIO_COMPARED_MATCHES:
                    ended = f"a query has more than {limits.STUDIO_COMPARED_MATCHES:,} matches"
                    break
                only_first = pc.unique(pa.concat_arrays([only_first, _as_texts(of_first)]))
                only_second = pc.unique(pa.concat_arrays([only_second, _as_texts(of_second)]))
                shared = only_first.filter(pc.is_in(only_first, value_set=only_second))
                both += len(shared)
                only_first, only_second = (
                    one.filter(pc.invert(pc.is_in(one, value_set=shared))) for one in (only_first, only_second)
                )
                reached += len(some)
    except StoppedError as stop:
        ended = str(stop)
    return SampleDifference(both, len(only_first), len(only_second), reached, ended)


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
