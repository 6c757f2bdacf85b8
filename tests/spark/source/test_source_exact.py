"""The data source gives exactly what `Query.match` gives, however the events lie in files."""

import os
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="PySpark is not installed")

import cerflow
from cerflow.api.programs.program import query_as_text
from cerflow.base.errors import BadRecordError, InputError, UnsupportedQueryError
from cerflow.base.schema import Schema
from cerflow.engine.recognize.columns_needed import needs_positions
from cerflow.engine.slices.cutting import cut_at
from cerflow.language.formula import Strategy
from cerflow.spark.source import planned as planning
from support.conformance import drawn, limit
from support.generators.conditions import Fragment
from support.generators.deadlines import DeadlineQueries
from support.runners import examples
from support.spark.parquet_streams import recognised, write
from support.spark.results import bag

MORE = Fragment(more=True)
#: Types of the time column, in all of which the times of random streams are milliseconds.
TIMES = (pa.int64(), pa.int32(), pa.float64(), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns"))


def layout(data):
    """Row groups of one or more files, some of them empty."""
    return [data.draw(st.lists(st.integers(0, 3), max_size=6)) for _ in range(data.draw(st.integers(1, 3)))]


def same(data, query, table, *, writing=None, **options):
    """Compare the matches in-process with those of the data source, on a random layout of the same events."""
    text = text_of(query)
    time, sequence = options.setdefault("time", "t"), options.get("sequence")
    # A query that reads positions reports them.
    positions = options.get("positions") or needs_positions(query.tree, Schema(table.schema, time=time))
    policy = options.get("onBadRecord", "fail")
    try:
        until = options.get("until")
        local = query.match(table, time=time, sequence=sequence, positions=positions, on_bad_record=policy, until=until)
        expected = local.to_arrow()
    except BadRecordError:
        expected = None
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), table, layout(data), use_dictionary=data.draw(st.booleans()), **(writing or {}))
        options |= {"sliceRows": data.draw(st.integers(1, 4)), "language": query.language}
        with patch.object(os, "cpu_count", lambda: 64), drawn_borders(data):
            if expected is None:
                with pytest.raises(BadRecordError):
                    recognised(text, folder, **options)
                return
            found = recognised(text, folder, **options)
    if not expected.num_rows:
        assert not found.num_rows
        return
    event("matching")
    if limit(query.tree) is None:
        assert found.column_names == expected.column_names
        assert bag(comparable(found)) == bag(comparable(expected))
    elif positions:
        # Which of the matches of an event are taken is open.
        found_ends, ends = (Counter(rows.column("detected_at").to_pylist()) for rows in (found, expected))
        assert found_ends == ends


@contextmanager
def drawn_borders(data):
    """Streams that may be cut at all are cut anywhere: what is exact for any borders is so for those chosen."""
    if data.draw(st.booleans()):
        yield
        return
    borders = data.draw(st.lists(st.integers(-2, 30), max_size=5, unique=True).map(sorted))

    def cut(known, lookback, **_):
        found = cut_at(known, borders, lookback)
        event(f"{len(found.slices)} slices")
        return found

    with patch.object(planning.cutting, "slices_of_row_groups", cut):
        yield


def comparable(table):
    """Times to the microsecond, which is what Spark has, without a zone."""
    return table.cast(pa.schema([(f.name, plain(f.type)) for f in table.schema]), safe=False)


def plain(data_type):
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us")
    if pa.types.is_list(data_type):
        return pa.list_(plain(data_type.value_type))
    if pa.types.is_struct(data_type):
        return pa.struct([(f.name, plain(f.type)) for f in data_type])
    return data_type


def text_of(query):
    try:
        return query_as_text(query)
    except UnsupportedQueryError:
        assume(False)


def with_times(data, table):
    """The table with times of another type, which does not reach as far as the numbers."""
    wanted = data.draw(st.sampled_from(TIMES))
    times = table.column("t")
    if pa.types.is_timestamp(wanted):
        times = times.cast(pa.timestamp("ms"))
    return table.set_column(table.column_names.index("t"), "t", times.cast(wanted))


def fitting(query, table, **roles):
    """Leave out queries that do not fit the columns, as they compare numbers with times, or cannot be evaluated."""
    try:
        query.recognizer(table.schema, **roles)
    except (cerflow.QueryError, UnsupportedQueryError):
        assume(False)


def shuffled(data, table):
    """The events in another order."""
    return table.take(data.draw(st.permutations(range(table.num_rows))))


@examples(80)
@given(st.data())
def test_files_in_the_order_of_time(data):
    query, table = drawn(data, strategies=tuple(Strategy) if data.draw(st.booleans()) else (), ends=False)
    table = with_times(data, table)
    fitting(query, table, time="t")
    same(data, query, table, positions=data.draw(st.booleans()))


@examples(80)
@given(st.data(), st.integers(0, 2**32))
def test_deadlines(data, seed):
    own = DeadlineQueries(seed)
    query, table = cerflow.parse(own.query()), own.events(6, 20)
    fitting(query, table, time="t")
    until = data.draw(st.none() | st.integers(0, 8).map(lambda n: table["t"][-1].as_py() + n))
    same(data, query, table, positions=data.draw(st.booleans()), until=until)


@examples(40)
@given(st.data())
def test_files_in_no_order(data):
    query, table = drawn(data, fragment=MORE, ends=False)
    table = shuffled(data, with_times(data, table))
    fitting(query, table, time="t")
    sequence = data.draw(st.sampled_from((None, "v", "s", "w")))
    same(data, query, table, positions=data.draw(st.booleans()), sequence=sequence)


@examples(40)
@given(st.data())
def test_events_that_cannot_be_used(data):
    query, table = drawn(data, ends=False)
    table = with_times(data, table)
    fitting(query, table, time="t")
    for name in ("type", "t"):
        missing = data.draw(st.lists(st.integers(0, 12).map(lambda n: n == 0), min_size=10, max_size=10))
        column = pc.if_else(pa.array(missing[: table.num_rows]), None, table.column(name).combine_chunks())
        table = table.set_column(table.column_names.index(name), name, column)
    if data.draw(st.booleans()):
        table = shuffled(data, table)
    policy = data.draw(st.sampled_from(("skip", "skip", "fail")))
    same(data, query, table, positions=data.draw(st.booleans()), onBadRecord=policy)


@examples(40)
@given(st.data())
def test_without_a_time(data):
    query, table = drawn(data)
    fitting(query, table)
    sequence = data.draw(st.sampled_from((None, "t", "n")))
    if sequence is not None:
        assume(not table.column(sequence).null_count)
    same(data, query, shuffled(data, table), time=None, positions=data.draw(st.booleans()), sequence=sequence)


@examples(40)
@given(st.data())
def test_without_statistics(data):
    query, table = drawn(data)
    fitting(query, table, time="t")
    sequence = data.draw(st.sampled_from((None, "v")))
    same(data, query, table, sequence=sequence, positions=True, writing={"write_statistics": False})


@examples(20)
@given(st.data())
def test_disorder_without_statistics_is_noticed(data):
    query, table = drawn(data)
    fitting(query, table, time="t")
    table = shuffled(data, table)
    text, said, found = text_of(query), "", None
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), table, [[1] * table.num_rows], write_statistics=False)
        try:
            found = recognised(text, folder, time="t", language=query.language)
        except InputError as error:
            said = str(error)
    times = table.column("t").to_pylist()
    if found is None:
        assert "not in the order of 't'" in said
        assert times != sorted(times)
        event("noticed")
        return
    # The order of events that the query cannot notice does not matter.
    positions = needs_positions(query.tree, Schema(table.schema, time="t"))
    expected = query.match(table, time="t", positions=positions).to_arrow()
    assert found.num_rows == expected.num_rows
    if found.num_rows and limit(query.tree) is None:
        assert bag(found) == bag(expected)
