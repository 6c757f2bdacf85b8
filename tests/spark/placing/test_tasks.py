"""Tasks in-process: results in bounded batches however many there are, and events that are not those counted."""

import subprocess
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow import limits
from cerflow.errors import InputError
from cerflow.language.formula import DurationWindow
from cerflow.spark.frames.stamps import Stamps
from cerflow.spark.placing.slice_tasks import OwnSlices, PartitionsInOrder, Stretch
from support.spark.results import rows_in_a_process
from support.spark.tasks import Simulation

SCHEMA = pa.schema([("type", pa.string()), ("t", pa.int64())])
QUERY = cerflow.parse("SELECT * WHERE A+ ; B WITHIN 100 MILLISECONDS")


def simulation(query=QUERY):
    return Simulation(query, SCHEMA, time="t", window=DurationWindow(100_000), positions=False)


def events(types, first=0):
    return pa.table({"type": list(types), "t": pa.array(range(first, first + len(types)))})


def test_more_matches_of_one_event_than_fit_in_memory(monkeypatch):
    monkeypatch.setattr(limits, "RESULT_ROWS", 10)
    found = simulation().recognition(iter(events("A" * 40 + "B").to_batches()))
    # There are 2^40 - 1.
    assert [batch.num_rows for batch in islice(found, 5)] == [10] * 5
    rows = events("A" * 40 + "B").append_column("code", pa.array([1] * 41))
    found = OwnSlices(simulation().recognition, None, None)(iter(rows.to_batches()))
    assert [batch.num_rows for batch in islice(found, 5)] == [10] * 5


def partition(sim, table, piece=4):
    pieces, _ = sim.cut_up([table], piece, None)
    return PartitionsInOrder(
        recognition=sim.recognition,
        stretches=(Stretch(0, 0, pieces, 0),),
        edges=(),
        sequence=False,
        in_order=False,
        numbered=False,
    )


def given(table, number=0):
    return iter(table.append_column("part", pa.array([number] * table.num_rows, pa.int32())).to_batches(3))


def test_partitions_are_those_that_were_counted():
    sim, table = simulation(), events("ABABABABAB")
    task = partition(sim, table)
    assert sum(batch.num_rows for batch in task(given(table))) > 0
    others = (
        (table.slice(1), 0),
        (table.slice(0, 8), 0),
        (pa.concat_tables([table, events("B", 10)]), 0),
        (events("ABABABABAB", 1), 0),
        (table, 1),
        (table.take(pa.array([4, *range(10)])[:10]), 0),
    )
    for other, number in others:
        with pytest.raises(InputError, match="not those that were counted"):
            list(task(given(other, number)))
    # Rows that Spark has put in order are checked as a whole.
    for other in (table.slice(1), events("ABABABABAB", 1)):
        with pytest.raises(InputError, match="not those that were counted"):
            list(replace(task, in_order=True)(given(other)))


def test_rows_that_are_not_counted_lie_where_the_statistics_say():
    sim, table = simulation(), events("ABABABABAB")
    pieces, _ = sim.cut_up([table.slice(0, 6), table.slice(6)], 3, None)
    parts = [Stretch(number, number, pieces.of(number), 0) for number in (0, 1)]
    task = replace(partition(sim, table), stretches=tuple(parts), counted=False)

    def read(rows):
        return sum(batch.num_rows for batch in task(iter(rows.to_batches(2))))

    assert read(table.slice(0, 6)) > 0
    # Any row may be missing.
    assert read(table.take(pa.array([0, 2, 5]))) > 0
    for other in (table, events("AB", 20), events("AB", -1), table.take(pa.array([0, 4, 1])), table.take([7, 1])):
        with pytest.raises(InputError, match="not those that were counted"):
            read(other)
    task = replace(task, stretches=tuple(replace(some, part=0) for some in parts))
    assert read(table) > 0
    assert read(pa.concat_tables([table.slice(6), table.slice(0, 6)])) > 0
    with pytest.raises(InputError, match="not those that were counted"):
        read(table.take(pa.array([0, 7, 1])))


def test_slices_have_the_events_that_were_counted():
    sim, table = simulation(), events("ABAB").append_column("code", pa.array([0, 1, 3, 3]))
    right, wrong = (OwnSlices(sim.recognition, None, counts) for counts in ((1, 2), (1, 1)))
    assert sum(batch.num_rows for batch in right(iter(table.to_batches()))) == 2
    with pytest.raises(InputError, match="not those that were counted"):
        list(wrong(iter(table.to_batches())))


def test_times_at_the_ends_of_their_type():
    """Windows near the least and greatest integers do not wrap around."""
    t = [-(2**63) + 2, -(2**63) + 3, 0, 5, 2**63 - 4, 2**63 - 3]
    table = pa.table({"type": list("ABABAB"), "t": t})
    sim = simulation(cerflow.parse("SELECT * WHERE A ; B WITHIN 100 MILLISECONDS"))
    found, _ = sim.sliced(table, [t[1], 3, t[-1]], batch=2, parts=[])
    assert len(found) == 3
    assert np.array_equal(sim.axis.keys(table.column("t")), np.array(t))


@pytest.mark.parametrize("counted", [True, False])
def test_tasks_do_not_import_pandas(counted):
    """Many functions of Arrow import it, at the first job in each process of Spark's Python."""
    sim, table = simulation(cerflow.parse("SELECT x, b WHERE A AS x ; B AS b WITHIN 4 MILLISECONDS")), events("AB" * 9)
    task = replace(partition(sim, table), counted=counted)
    if counted:
        batches = [*given(table)]
    else:
        task = replace(task, stamps=Stamps(("A", "B"), 0, 1, pa.int64()))
        stamps = pa.array((np.arange(18) << 5) + np.arange(18) % 2)
        batches = pa.table({"stamp": stamps}).to_batches(3)
    assert rows_in_a_process(task, iter(batches)) == 17


def test_tasks_of_the_command_line_need_no_library_for_it():
    """Spark's tasks import the modules of functions that the command line sends, on executors that have no Typer."""
    code = "import sys; sys.modules |= dict.fromkeys(('typer', 'rich', 'click')); import cerflow.cli.spark.reading"
    subprocess.run([sys.executable, "-c", code], check=True)
