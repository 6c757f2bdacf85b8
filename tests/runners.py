"""Ways of evaluating a query on a table of events, which must all give the same matches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import settings

import cerflow
from cerflow.errors import UnsupportedQueryError
from cerflow.language.condition import Aggregate, PredicateCall, SetTest
from cerflow.language.formula import All, Conjunction, Selection, Start, Strategy, Unless, Without
from cerflow.language.node import walk
from cerflow.language.select import CountItem

Rows = list[dict[str, Any]]
Runner = Callable[..., Rows]

_LATER = (All, Conjunction, Selection, Start, Unless, Without, Aggregate, SetTest, PredicateCall)


def examples(count: int) -> settings:
    """Settings for ``count`` examples, times the environment variable CERFLOW_EXAMPLES."""
    return settings(max_examples=max(1, round(count * float(os.environ.get("CERFLOW_EXAMPLES", "1")))))


def semantics(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    return query.match(table, runner="semantics", **roles).to_pylist()


def one_batch(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    matches = query.match(table, **roles)
    found = matches.to_pylist()
    if not any(isinstance(item, CountItem) for item in query.tree.projection.items):
        assert matches.count() == len(found)
    return found


def one_by_one(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    recognizer = query.recognizer(table.schema, **roles)
    return [m for k in range(table.num_rows) for m in recognizer.push(table.slice(k, 1)).to_pylist()]


def restored_at_every_event(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    recognizer = query.recognizer(table.schema, **roles)
    found = []
    for k in range(table.num_rows):
        found += recognizer.push(table.slice(k, 1)).to_pylist()
        recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    return found


ENGINE_RUNNERS: dict[str, Runner] = {
    "one batch": one_batch,
    "one by one": one_by_one,
    "restored": restored_at_every_event,
}
RUNNERS: dict[str, Runner] = {"semantics": semantics, **ENGINE_RUNNERS}


def unsupported(query: cerflow.Query) -> str | None:
    """The name of a construct of the query that the engine cannot evaluate yet, None if there is none."""
    if query.tree.strategy in (Strategy.STRICT, Strategy.MAX):
        return str(query.tree.strategy)
    for current in walk(query.tree):
        if isinstance(current, _LATER):
            return type(current).__name__
    return None


def engine_refuses(query: cerflow.Query, table: pa.Table, **roles: Any) -> bool:
    """Whether the engine says that it cannot evaluate a query (rather than anything else)."""
    try:
        query.match(table, **roles)
    except UnsupportedQueryError:
        return True
    return False


def frozen(value: Any) -> Any:
    """A result as something hashable; NaN equals NaN, and 0.0 equals -0.0."""
    if isinstance(value, dict):
        return tuple((name, frozen(v)) for name, v in value.items())
    if isinstance(value, list):
        return tuple(map(frozen, value))
    return "NaN" if value != value else value


def bag(rows: Rows) -> Counter[Any]:
    """Matches without their order."""
    return Counter(map(frozen, rows))


def supports(rows: Rows) -> set[tuple[int, frozenset[int]]]:
    """(detecting position, positions of the match) of each match."""
    return {(row["detected_at"], frozenset(e["position"] for e in row["events"])) for row in rows}


def complex_events(rows: Rows) -> set[tuple[int, frozenset[tuple[str, int]]]]:
    """(detecting position, pairs of label and position) of each match."""
    return {
        (row["detected_at"], frozenset((label, e["position"]) for e in row["events"] for label in e["labels"]))
        for row in rows
    }
