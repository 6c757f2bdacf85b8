"""Tasks in-process: results in bounded batches however many there are, and events that are not those counted."""

import subprocess
import sys
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.engine.slices.cutting import Slice
from cerflow.language.formula import DurationWindow
from cerflow.spark.frames.tasks import OwnSlices
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
    found = OwnSlices(simulation().recognition, (Slice(),))(iter(rows.to_batches()))
    assert [batch.num_rows for batch in islice(found, 5)] == [10] * 5


def test_slices_have_the_events_that_were_counted():
    sim, table = simulation(), events("ABAB").append_column("code", pa.array([0, 1, 3, 3]))
    right, wrong = (
        OwnSlices(sim.recognition, tuple(Slice(own=count) for count in counts)) for counts in ((1, 2), (1, 1))
    )
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
    assert np.array_equal(sim.keys(table), np.array(t))


def test_tasks_do_not_import_pandas():
    """Many functions of Arrow import it, at the first job in each process of Spark's Python."""
    sim, table = simulation(cerflow.parse("SELECT x, b WHERE A AS x ; B AS b WITHIN 4 MILLISECONDS")), events("AB" * 9)
    task = OwnSlices(sim.recognition, (Slice(own=18),))
    assert rows_in_a_process(task, iter(table.append_column("code", pa.array([1] * 18)).to_batches(3))) == 17


def test_tasks_of_the_command_line_need_no_library_for_it():
    """Spark's tasks import the modules of functions that the command line sends, on executors that have no Typer."""
    code = "import sys; sys.modules |= dict.fromkeys(('typer', 'rich', 'click')); import cerflow.cli.spark.reading"
    subprocess.run([sys.executable, "-c", code], check=True)
