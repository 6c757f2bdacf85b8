"""Slices give what one task gives: the cuts and the tasks in-process, on random queries and streams."""

import datetime
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import assume, event, given
from hypothesis import strategies as st

import cerflow
from cerflow.api.programs.program import query_as_text
from cerflow.base.errors import QueryError, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.engine.events.time_order import sort_by_time
from cerflow.engine.recognize.columns_needed import needs_positions
from cerflow.engine.slices.division import divided
from cerflow.language.formula import AttributeWindow, CountWindow, DurationWindow, Strategy
from cerflow.language.select import Consumption, Projection, ProjectionKind
from support.conformance import table_of
from support.generators.conditions import Fragment
from support.generators.selects import cases
from support.runners import bag, examples, semantics
from support.spark.tasks import Simulation

#: Times of other types; WITHIN 4 MILLISECONDS means the same for all but dates.
TIMES = {
    "milliseconds": lambda t: pa.array(t, pa.int64()),
    "small": lambda t: pa.array(t, pa.int16()),
    "instants": lambda t: pa.array([n * 1000 for n in t], pa.timestamp("us", tz="Europe/Paris")),
    "local": lambda t: pa.array([n * 1000 for n in t], pa.timestamp("us")),
    "floats": lambda t: pa.array([n / 3 for n in t], pa.float64()),
    "singles": lambda t: pa.array([n / 3 for n in t], pa.float32()),
    "decimals": lambda t: pa.array([Decimal(n) / 10 for n in t], pa.decimal128(12, 1)),
    "days": lambda t: pa.array([datetime.date(1969, 12, 28) + datetime.timedelta(days=n) for n in t]),
}
WINDOWS = (
    CountWindow(1),
    CountWindow(3),
    CountWindow(200),
    DurationWindow(1000),
    DurationWindow(4000),
    DurationWindow(2500),
    DurationWindow(10**15),
    AttributeWindow(3, "n"),
    AttributeWindow(1.5, "n"),
)
STRATEGIES = (Strategy.ALL, Strategy.ALL, Strategy.NEXT, Strategy.LAST, Strategy.STRICT, Strategy.MAX)


def drawn(data):
    """A query that can be divided, and a table in order with ties and bursts."""
    fragment = Fragment(aggregates=True, more=data.draw(st.booleans()))
    select, rows = data.draw(cases(fragment, ends=False))
    window = data.draw(st.sampled_from(WINDOWS))
    kind = data.draw(st.sampled_from(sorted(TIMES)))
    if isinstance(window, DurationWindow) and kind == "days" and window.microseconds < 10**6:
        window = DurationWindow(window.microseconds * 24 * 3600)
    projection = Projection(ProjectionKind.ALL) if select.projection.kind is ProjectionKind.NONE else select.projection
    try:
        query = cerflow.Query(
            replace(
                select,
                projection=projection,
                strategy=data.draw(st.sampled_from(STRATEGIES)),
                window=window,
                consume=Consumption.NONE,
                limit=None,
                partition=select.partition if isinstance(window, DurationWindow) else (),
            )
        )
        rows = [*rows, *({**row, "n": row["n"] + 20} for row in rows)]
        gaps = data.draw(st.lists(st.sampled_from((0, 0, 0, 1, 1, 2, 30)), min_size=len(rows), max_size=len(rows)))
        for row, t in zip(rows, np.cumsum(gaps).tolist(), strict=True):
            row["t"] = t
            if isinstance(window, AttributeWindow) and data.draw(st.integers(0, 4)) == 0:
                row["n"] = None
        table = table_of(rows)
        table = table.set_column(table.column_names.index("t"), "t", TIMES[kind](table.column("t").to_pylist()))
        # Tasks get its text, and not every tree has one.
        query_as_text(query)
        found = divided(query.tree, query.plan(Schema(table.schema, "type", "t")).transducer).window
    except (QueryError, UnsupportedQueryError):
        assume(False)
    assume(found is not None)
    event(type(window).__name__)
    return query, table, found


def expected(query, table, data, positions, time="t"):
    """What one task finds, sometimes as the definitions say."""
    if positions and data.draw(st.integers(0, 9)) == 0:
        event("semantics")
        return bag(semantics(query, table, time=time))
    return bag(query.match(table, time=time, positions=positions).to_pylist())


@examples(150)
@given(st.data(), st.booleans(), st.integers(1, 9))
def test_slices_of_the_whole_stream(data, positions, batch):
    query, table, window = drawn(data)
    positions |= needs_positions(query.tree, Schema(table.schema, "type", "t"))
    simulation = Simulation(query, table.schema, time="t", window=window, positions=positions)
    keys = simulation.keys(table)
    near = st.sampled_from(sorted({int(k) + d for k in keys for d in (-1, 0, 1)}))
    starts = data.draw(st.lists(near, min_size=1, max_size=5, unique=True))
    parts = data.draw(st.lists(near, max_size=12))
    found, slices = simulation.sliced(table, starts, batch=batch, parts=parts)
    assert bag(found) == expected(query, table, data, positions)
    event(f"{len(slices)} slices")


@examples(150)
@given(st.data(), st.booleans(), st.booleans(), st.integers(1, 9), st.integers(1, 5))
def test_partitions_in_the_order_of_time(data, positions, with_sequence, batch, piece):
    query, table, window = drawn(data)
    sequence = "place" if with_sequence else None
    # The order wanted is that of the table; with a sequence, ties may come in any order.
    schema = table.schema
    positions |= needs_positions(query.tree, Schema(schema, "type", "t"))
    simulation = Simulation(query, schema, time="t", window=window, positions=positions)
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=4)))
    numbered = table.append_column("place", pa.array(range(table.num_rows)))
    mixed = numbered
    if with_sequence:
        swaps = data.draw(st.lists(st.tuples(*[st.integers(0, table.num_rows - 1)] * 2), max_size=6))
        order = list(range(table.num_rows))
        for a, b in swaps:
            order[a], order[b] = order[b], order[a]
        mixed = numbered.take(pa.array(order))
    elif data.draw(st.booleans()):
        # Time goes back here and there: then the order of the stream is another one.
        at = data.draw(st.integers(0, table.num_rows - 1))
        mixed = pa.concat_tables([numbered.slice(at), numbered.slice(0, at)])
        assume(not isinstance(window, AttributeWindow))
    tables = [mixed.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    if with_sequence or not isinstance(window, AttributeWindow):
        tables = data.draw(st.permutations(tables))
    table = sort_by_time(pa.concat_tables(tables), "t", sequence)
    borders = [data.draw(st.sets(st.integers(1, 20), max_size=3)) for _ in tables]
    found, slices = simulation.partitioned(
        [t.select([*schema.names, *(["place"] if with_sequence else [])]) for t in tables],
        piece=piece,
        batch=batch,
        sequence=sequence,
        borders=borders,
    )
    assert bag(found) == expected(query, table.select(schema.names), data, positions)
    homes = [some.home for some in slices]
    event(f"{homes.count(None)} between")
    event(f"{len(homes) - homes.count(None)} at home")


@examples(150)
@given(st.data(), st.booleans(), st.booleans(), st.integers(1, 9), st.integers(1, 8))
def test_partitions_in_any_order(data, positions, counts, batch, piece):
    """Partitions return after others, ties lie in several, and rows are not in order inside."""
    query, table, window = drawn(data)
    assume(isinstance(window, DurationWindow))
    positions |= needs_positions(query.tree, Schema(table.schema, "type", "t"))
    numbered = table.append_column("place", pa.array(range(table.num_rows)))
    part, parts = 0, []
    for _ in range(table.num_rows):
        part = data.draw(st.sampled_from((part, part, part, 0, 1, 2)))
        parts.append(part)
    tables = [numbered.filter(pa.array([p == k for p in parts])) for k in range(3)]
    tables = [some.take(pa.array(data.draw(st.permutations(range(some.num_rows))), pa.int64())) for some in tables]
    borders = [set(range(0, some.num_rows, 3)) for some in tables]
    simulation = Simulation(query, table.schema, time="t", window=window, positions=positions)
    found, slices = simulation.partitioned(
        tables, piece=piece, batch=batch, sequence="place", borders=borders, counts=positions or counts
    )
    assert bag(found) == expected(query, table, data, positions)
    homes = [some.home for some in slices]
    event(f"{homes.count(None)} between")
    event(f"{len(homes) - homes.count(None)} at home")


@examples(60)
@given(st.data(), st.booleans(), st.integers(1, 9), st.integers(1, 5))
def test_partitions_without_a_time(data, positions, batch, piece):
    query, table, window = drawn(data)
    schema = Schema(table.schema, "type", None)
    try:
        # A part of the query may have a window of time.
        query.check(schema)
    except QueryError:
        assume(False)
    positions |= needs_positions(query.tree, schema)
    simulation = Simulation(query, table.schema, time=None, window=window, positions=positions)
    cuts = sorted(data.draw(st.lists(st.integers(0, table.num_rows), max_size=4)))
    tables = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True)]
    wanted = expected(query, table, data, positions, time=None)
    found, _ = simulation.partitioned(tables, piece=piece, batch=batch)
    assert bag(found) == wanted
