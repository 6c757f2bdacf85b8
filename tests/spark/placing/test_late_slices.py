"""Slices of queries that wait for deadlines give what one task gives: the cuts and the tasks, in-process."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base.schema import Schema
from cerflow.engine.slices.division import divided
from support.generators.deadlines import DeadlineQueries
from support.runners import EXAMPLES, bag, engine_refuses, semantics
from support.spark.tasks import Simulation

_divided = Counter()


def drawn(seed):
    """A random query with its division and a stream with ties and gaps; None if it cannot be divided."""
    own = DeadlineQueries(seed)
    query = cerflow.parse(own.query())
    table = own.events(8, 24)
    gaps = np.cumsum([own.random.choice([0, 0, 0, 0, 30]) for _ in range(table.num_rows)])
    table = table.set_column(1, "t", pa.array(table["t"].to_numpy() + gaps))
    if engine_refuses(query, table, time="t"):
        return None
    schema = Schema(table.schema, "type", "t")
    division = divided(query.tree, query.plan(schema).transducer, schema)
    _divided[division.reason if division.window is None else (type(division.window).__name__, division.late)] += 1
    return None if division.window is None else (own.random, query, table, division)


@pytest.mark.parametrize("seed", range(round(400 * EXAMPLES)))
def test_random_queries(seed):
    found = drawn(seed)
    if found is None:
        return
    draw, query, table, division = found
    until = draw.choice([None, table["t"][-1].as_py() + draw.randint(0, 8)])
    expected = bag(query.match(table, time="t", until=until).to_pylist())
    if draw.random() < 0.2:
        assert bag(semantics(query, table, time="t", until=until)) == expected
    simulation = Simulation(
        query, table.schema, time="t", window=division.window, positions=True, late=division.late, until=until
    )
    keys = simulation.keys(table)
    near = sorted({int(k) + d for k in keys for d in (-1, 0, 1)})
    for _ in range(3):
        starts = draw.sample(near, draw.randint(1, 5))
        parts = draw.sample(near, min(len(near), draw.randint(0, 8)))
        rows, _ = simulation.sliced(table, starts, batch=draw.randint(1, 9), parts=parts)
        assert bag(rows) == expected
        cuts = sorted(draw.randint(0, table.num_rows) for _ in range(draw.randint(0, 4)))
        tables = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
        rows, _ = simulation.partitioned(tables, piece=draw.randint(1, 5), batch=draw.randint(1, 9))
        assert bag(rows) == expected
