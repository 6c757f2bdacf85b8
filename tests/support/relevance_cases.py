"""Queries and streams with many events that do not matter, and what it means to leave these out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import cerflow
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.engine.evaluate.rows import BatchRows, finest_unit
from cerflow.engine.pushdown.relevance import or_invalid, relevant_events
from cerflow.language import formula as f
from cerflow.language.condition import Condition, PredicateCall
from cerflow.language.node import Node, transform, walk
from cerflow.logic.conditions.propositions import weakened
from support.conformance import COLUMNS
from support.generators.conditions import STRINGS, Fragment
from support.generators.queries import OPERATORS
from support.generators.selects import cases

FRAGMENTS = {
    "first": Fragment(),
    "operators": Fragment(more=True),
    "sets": Fragment(aggregates=True),
    "some": Fragment(some=True, depth=2),
    "patient": Fragment(strict=False, windows=False, wild=False),
}
STREAMS = ("s1", "s2")
#: The columns of `drawn_events`: `support.generators.queries`, and the stream and place of an event.
ALL = pa.schema([*COLUMNS.items(), ("from", pa.string()), ("at", pa.int64())])


def drawn_query(data: st.DataObject, kind: str) -> tuple[f.Formula, list[dict[str, object]]]:
    """A query, perhaps about named streams, and the rows of a stream that fit it."""
    operator = data.draw(st.sampled_from((None, *OPERATORS))) if kind == "operators" else None
    select, rows = data.draw(cases(FRAGMENTS[kind], strategies=True, operator=operator))
    if data.draw(st.integers(0, 3)) == 0:

        def of_stream(current: Node) -> Node:
            if isinstance(current, f.EventType) and data.draw(st.booleans()):
                return replace(current, stream=data.draw(st.sampled_from(STREAMS)))
            return current

        select = transform(select, of_stream)
        select = replace(select, streams=data.draw(st.sampled_from(((), ("s1",), STREAMS))))
    return select, rows


def drawn(data: st.DataObject, kind: str) -> tuple[cerflow.Query, pa.Table]:
    """A query that the engine evaluates, and events of which many do not matter to it."""
    select, rows = drawn_query(data, kind)
    extra = st.fixed_dictionaries(
        {
            "type": st.sampled_from("ABCDE"),
            "v": st.sampled_from((None, -1, 0, 3, 2**53 + 1, -(2**63) + 1)),
            "w": st.sampled_from((None, math.nan, -0.0, 1.0, math.inf, 1e308)),
            "s": st.sampled_from((None, *STRINGS, "é\U0001f600%")),
            "k": st.sampled_from((None, 0, 1)),
        }
    )
    mixed: list[dict[str, object]] = []
    for row in rows:
        mixed.append(row)
        mixed += [{**row, **other} for other in data.draw(st.lists(extra, max_size=3))]
    for at, row in enumerate(mixed):
        row = mixed[at] = dict(row)
        row["from"] = data.draw(st.sampled_from(("s1", "s1", "s2", "s3", None)))
        row["at"] = 3 * at
    try:
        query = cerflow.Query(select)
        query.recognizer(ALL, time="t", stream="from", position="at")
    except (QueryError, UnsupportedQueryError):
        assume(False)
    return query, pa.Table.from_pylist(mixed, ALL)


def condition_of(query: cerflow.Query, schema: Schema, *, counted: bool = False) -> Condition:
    """The condition of the events that the query can notice."""
    return relevant_events(query.tree, query.plan(schema).transducer, schema, counted=counted).condition


def satisfying(table: pa.Table, condition: Condition, schema: Schema, *, unusable: bool = False) -> pa.Table:
    """The rows that satisfy a condition as the engine evaluates it, predicates taken for true."""
    condition = weakened(condition, lambda leaf: not any(isinstance(n, PredicateCall) for n in walk(leaf)))
    if unusable:
        condition = or_invalid(condition, schema)
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    rows = BatchRows(batch, schema, np.arange(len(batch)), finest_unit(schema))
    return table.filter(pa.array(np.broadcast_to(rows.truth(condition).true, (len(batch),))))
