"""A preview of a query while it is written: its matches in a small sample, and what reaches each part of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import log10

import pyarrow as pa

from cerflow import limits
from cerflow.drawing.boxes import Mark
from cerflow.engine.matches.matches import Matches
from cerflow.engine.stopping import checked
from cerflow.errors import CerflowError
from cerflow.language.event_kinds import kinds_in
from cerflow.language.formula import As, Filter, Formula, NotEvent, Strategy
from cerflow.language.node import walk
from cerflow.language.select import Consumption, Projection, ProjectionKind, Select
from cerflow.query import Query
from cerflow.studio.results import Outcome
from cerflow.studio.sampling import LoadedEvents

#: Matches whose events are shown in their colours.
_LISTED = 1_000


class _OverError(Exception):
    """There is no more time, or the preview is not wanted any more."""


@dataclass(frozen=True)
class Preview:
    """The number of matches of a query in the first events, and texts for parts of its tree, by their identity.

    The texts say how many events or partial matches there are of a part; parts have none after the time is over.
    ``outcome`` has the first of the matches.
    """

    query: Query
    outcome: Outcome
    parts: Mapping[int, Mark]


def preview(query: Query, loaded: LoadedEvents, stopped: Callable[[], bool]) -> Preview | None:
    """Count the matches of a query and of its parts in the first events; None if that takes too long.

    Raises what a recogniser raises, such as `MemoryLimitError`.
    """
    begin = time.perf_counter()
    events = loaded.table.slice(0, limits.STUDIO_PREVIEW_ROWS)

    def check() -> None:
        if stopped() or time.perf_counter() - begin > limits.STUDIO_PREVIEW_SECONDS:
            raise _OverError

    def found(select: Select) -> Matches:
        recognizer = Query(select, reading=query.reading).recognizer(
            events.schema, on_bad_record="skip", memory=limits.STUDIO_MEMORY // 4, **loaded.roles
        )
        with checked(check):
            return recognizer.push(events)

    counts: dict[int, int] = {}
    try:
        matches = found(replace(query.tree, projection=Projection(ProjectionKind.ALL)))
        count = matches.count()
    except _OverError:
        return None
    listed: list[pa.RecordBatch] = []
    for batch in matches[:_LISTED].to_batches(_LISTED // 20):
        listed.append(batch)
        if time.perf_counter() - begin > limits.STUDIO_PREVIEW_SECONDS / 2:
            break
    table = pa.Table.from_batches(listed, matches.schema)
    outcome = Outcome(count, table, events.num_rows, 0.0, types={*loaded.types, *kinds_in(query.tree)})
    plain = replace(
        query.tree,
        projection=Projection(ProjectionKind.ALL),
        strategy=Strategy.ALL,
        by=(),
        consume=Consumption.NONE,
        limit=None,
    )
    try:
        for node in walk(query.tree.formula):
            check()
            if isinstance(node, Formula):
                try:
                    counts[id(node)] = found(replace(plain, formula=node)).count()
                except (CerflowError, MemoryError):
                    continue  # it has conditions on labels of other parts, or is too large alone
    except _OverError:
        pass
    return Preview(query, outcome, _texts(query.tree, counts))


def _texts(select: Select, counts: Mapping[int, int]) -> dict[int, Mark]:
    found = {}
    for node in walk(select.formula):
        if isinstance(node, Formula) and id(node) in counts:
            noun = "events" if _is_single(node) else "matches"
            text = shown_number(counts[id(node)])
            if isinstance(node, Filter) and id(node.operand) in counts:
                text = f"{text} of {shown_number(counts[id(node.operand)])}"
            found[id(node)] = Mark((f"{text} {noun}",))
    return found


def _is_single(node: Formula) -> bool:
    """Whether the matches of a formula are single events."""
    while isinstance(node, As | Filter):
        node = node.operand
    return isinstance(node, NotEvent) or not any(isinstance(child, Formula) for child in node.children)


def shown_number(number: int) -> str:
    """A number of matches, which may be of any size."""
    return f"{number:,}" if number < 10**12 else f"> 10^{int((number.bit_length() - 1) * log10(2))}"
