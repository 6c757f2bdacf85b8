"""What it means that the engine gives what the definitions say, for random queries on random events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import assume, currently_in_test_context, event
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError
from cerflow.language.formula import AttributeWindow, Strategy
from cerflow.language.node import walk
from cerflow.language.select import CountItem, ProjectionKind, Select
from support.generators.kinds import with_some_kinds
from support.generators.queries import Row
from support.generators.selects import cases
from support.runners import Rows, Runner, bag, frozen, semantics

COLUMNS = {
    "type": pa.string(),
    "t": pa.int64(),
    "v": pa.int64(),
    "w": pa.float64(),
    "s": pa.string(),
    "e": pa.string(),
    "k": pa.int64(),
    "n": pa.int64(),
}


def table_of(rows: list[Row], columns: Mapping[str, pa.DataType] = COLUMNS) -> pa.Table:
    """The rows of a random stream as a table."""
    return pa.table({name: pa.array([row[name] for row in rows], type_) for name, type_ in columns.items()})


def drawn(
    data: st.DataObject, *, strategies: tuple[Strategy, ...] = (), kinds: bool | None = None, **options: Any
) -> tuple[cerflow.Query, pa.Table]:
    """A query that is well-formed, and events; where a window measures ``n``, some events lack it.

    With ``strategies`` the query has one of them; with ``kinds`` it has event kinds (None: now and then).
    """
    select, rows = data.draw(cases(**options))
    if kinds or (kinds is None and data.draw(st.integers(0, 9)) == 9):
        select = data.draw(with_some_kinds(select))
    if strategies:
        select = replace(select, strategy=data.draw(st.sampled_from(strategies)))
    try:
        query = cerflow.Query(select)
    except QueryError:
        assume(False)
    if any(isinstance(current, AttributeWindow) for current in walk(select)):
        for row in rows:
            if data.draw(st.integers(0, 4)) == 0:
                row["n"] = None
    return query, table_of(rows)


def limit(select: Select) -> int | None:
    """How many matches of one event are reported at most."""
    limits = [1] if select.strategy is Strategy.ANY or select.projection.kind is ProjectionKind.NONE else []
    limits += [select.limit] if select.limit is not None else []
    return min(limits) if limits else None


def assert_limited(query: cerflow.Query, table: pa.Table, found: Rows) -> None:
    """LIMIT and ANY choose among the matches of each detecting event; which of them is open."""
    strategy = Strategy.ALL if query.tree.strategy is Strategy.ANY else query.tree.strategy
    everything = semantics(cerflow.Query(replace(query.tree, limit=None, strategy=strategy)), table, time="t")
    most = limit(query.tree)
    assert most is not None
    counts = [item.name for item in query.tree.projection.items if isinstance(item, CountItem)]
    if counts:
        assert bag(found) == bag([{**row, **{n: min(row[n], most) for n in counts}} for row in everything])
        return
    # One event may show that deadlines of several partitions have passed.
    names = ["detected_at", "detected_time", *query.tree.key_columns]

    def counted(rows: Rows) -> Counter[Any]:
        return Counter(tuple(row[name] for name in names) for row in rows)

    assert counted(found) == {moment: min(most, k) for moment, k in counted(everything).items()}
    assert bag(found) <= bag(everything)


def assert_conforms(query: cerflow.Query, table: pa.Table, runners: Mapping[str, Runner]) -> None:
    """Every runner gives the matches of the definitions, all in the same order."""
    expected = None
    for name, run in runners.items():
        found = run(query, table, time="t")
        detected = [row["detected_at"] for row in found]
        assert detected == sorted(detected), name
        if expected is not None:
            # The same order, too: what is written does not depend on how the events came.
            assert [frozen(row) for row in found] == expected, name
            continue
        expected = [frozen(row) for row in found]
        if limit(query.tree) is not None:
            assert_limited(query, table, found)
        else:
            wanted = semantics(query, table, time="t")
            assert bag(found) == bag(wanted)
            if currently_in_test_context():
                event("matching" if wanted else "not matching")
