"""After warming up no kernel is left to compile."""

import pyarrow as pa
import pytest

import cerflow
from cerflow.engine import layout
from cerflow.engine.evaluate import encoding
from cerflow.engine.events import signatures
from cerflow.engine.events import text_tests as prefilter
from cerflow.engine.kernels.base.jit import Kernel
from cerflow.engine.matches import counting, strategy_parts, unfolding
from cerflow.engine.recognize import recognizer
from cerflow.engine.recognize.warmup import warm_up
from cerflow.engine.state import memory

ROOMS = (counting, encoding, memory, prefilter, recognizer, signatures, strategy_parts, unfolding)
KERNELS = {k for room in ROOMS for k in vars(room).values() if isinstance(k, Kernel)}
#: Conditions on two columns of text.
QUERY = "SELECT * WHERE (A AS a ; B AS b) FILTER a.s = 'x' AND b.u != 'yy' AND a.v < b.v"
ROWS = pa.table({"type": ["A", "B"] * 3, "s": ["x", "z"] * 3, "u": ["", "y" * 20] * 3, "v": range(6)})


def test_every_kernel_that_the_engine_calls_is_compiled():
    warm_up()
    assert len(KERNELS) >= 8
    assert [k.py_func.__name__ for k in KERNELS if not k.compiled] == []


def test_choosing_from_a_graph_without_detections_compiles_what_queries_call():
    warm_up()
    for pick in (layout.LATEST, layout.LARGEST):
        strategy_parts.prepare_choice(pick)
    assert [len(kernel.compiled) for kernel in (strategy_parts.largest, strategy_parts.pick)] == [1, 1]


def through_memory(table, memory):
    """The table in memory of a kind, as it comes from another process: ``bytes``, or a ``bytearray`` (mutable)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(pa.py_buffer(memory(sink.getvalue()))).read_all()


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        ROWS.slice(1, 3),
        ROWS.slice(0, 1),
        through_memory(ROWS, bytes),
        through_memory(ROWS, bytearray),
        through_memory(ROWS.slice(1, 1), bytearray),
        ROWS.set_column(1, "s", pa.array(["x", None] * 3)),
        ROWS.set_column(1, "s", ROWS.column("s").combine_chunks().dictionary_encode()),
        ROWS.set_column(2, "u", pa.array(["", None] * 3, pa.large_string())),
    ],
)
def test_where_events_come_from_compiles_nothing_anew(table):
    warm_up()
    before = {k.py_func.__name__: list(k.compiled) for k in KERNELS}
    query = cerflow.parse(QUERY)
    assert query.match(table).count() == query.match(pa.Table.from_pylist(table.to_pylist())).count()
    assert {k.py_func.__name__: list(k.compiled) for k in KERNELS} == before
