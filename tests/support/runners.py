"""Ways of evaluating a query on a table of events, which must all give the same matches."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

import cerflow
from cerflow.base import limits
from cerflow.base.errors import UnsupportedQueryError
from cerflow.language.formula import Exclusion, Selection, Strategy
from cerflow.language.node import walk
from cerflow.language.select import CountItem

Rows = list[dict[str, Any]]
Runner = Callable[..., Rows]

#: Random tests try this share of the examples that they name.
EXAMPLES = float(os.environ.get("CERFLOW_EXAMPLES", "0.1"))

#: The marks of what costs more than it would find every day.
ONLY_DEEP = (pytest.mark.deep, pytest.mark.skipif(EXAMPLES < 1, reason="only make test-deep runs it"))

#: Below these the engine follows all runs of a part, which have to remember something bounded.
_FOLLOWING = (Exclusion, Selection)


def only_deep(test: Any) -> Any:
    """Mark a whole test so."""
    for mark in ONLY_DEEP:
        test = mark(test)
    return test


def examples(count: int) -> settings:
    """Settings for ``count`` examples, times `EXAMPLES`."""
    return settings(max_examples=max(1, round(count * EXAMPLES)))


def semantics(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    return query.match(table, runner="semantics", **roles).to_pylist()


def one_batch(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    # To find out why nothing matches takes longer than all else, and has tests of its own.
    with mock.patch.object(cerflow.Query, "warn_of_no_match"):
        matches = query.match(table, **roles)
    found = matches.to_pylist()
    if not any(isinstance(item, CountItem) for item in query.tree.projection.items):
        assert matches.count() == len(found)
    return found


def narrowed(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    """Batches that leave out rows as large ones do: the first ones of sixteen rows, then more."""
    few = {"NARROWED_ROWS": 1, "FLOW_ROWS": 16, "COLUMN_ROWS": 64}
    with mock.patch.multiple(limits, **few):
        fresh = copy(query)
        # Plans that have matched before know larger batches.
        vars(fresh).pop("_plans", None)
        return one_batch(fresh, table, **roles)


def one_by_one(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    """Events as mappings, some of them as batches of one."""
    recognizer = query.recognizer(table.schema, **roles)
    rows = table.to_pylist()
    return [m for k, row in enumerate(rows) for m in recognizer.push(row if k % 4 else table.slice(k, 1)).to_pylist()]


def restored_at_every_event(query: cerflow.Query, table: pa.Table, **roles: Any) -> Rows:
    """Events by turns as mappings and as batches of one, with a snapshot after each; of many, after some."""
    recognizer = query.recognizer(table.schema, **roles)
    found = []
    # A snapshot costs a hundred times as much as an event.
    gap = -(-table.num_rows // 8)
    for k, row in enumerate(table.to_pylist()):
        found += recognizer.push(row if k % 2 else table.slice(k, 1)).to_pylist()
        if (k + 1) % gap == 0:
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
    return found


def in_random_pieces(query: cerflow.Query, table: pa.Table, data: DataObject, **roles: Any) -> Rows:
    """Batches of drawn sizes, events as mappings, and snapshots, in a drawn order."""
    recognizer, found = query.recognizer(table.schema, **roles), []
    while table.num_rows:
        size = data.draw(st.integers(1, 25))
        how = data.draw(st.sampled_from(["batch", "batch", "batch", "single", "restored"]))
        if how == "single":
            found += recognizer.push(table.slice(0, 1).to_pylist()[0]).to_pylist()
            size = 1
        else:
            matches = recognizer.push(table.slice(0, size))
            found += matches.to_pylist()
            assert matches.rows() == len(matches.to_pylist())
        if how == "restored":
            recognizer = cerflow.Recognizer.restore(query, recognizer.snapshot())
        table = table.slice(size)
    return found


ENGINE_RUNNERS: dict[str, Runner] = {
    "one batch": one_batch,
    "narrowed": narrowed,
    "one by one": one_by_one,
    "restored": restored_at_every_event,
}
RUNNERS: dict[str, Runner] = {"semantics": semantics, **ENGINE_RUNNERS}


def may_refuse(query: cerflow.Query) -> bool:
    """Whether a query has what the engine may not be able to evaluate."""
    chosen = query.tree.strategy is Strategy.MAX or query.tree.by
    return bool(chosen) or any(isinstance(n, _FOLLOWING) for n in walk(query.tree))


def engine_refuses(query: cerflow.Query, table: pa.Table, **roles: Any) -> bool:
    """Whether the engine says that it cannot evaluate a query (rather than anything else)."""
    try:
        query.recognizer(table.schema, **roles)
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
