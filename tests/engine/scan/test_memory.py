"""The scan reads Arrow's memory where it is, and nothing beside it."""

import ctypes
import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow.base import limits

QUERIES = [
    "SELECT * WHERE A AS x : B AS y",
    "SELECT * WHERE (A AS x : B AS y) FILTER x.n = 'p' AND y.v > 1",
    "SELECT * WHERE (A AS x : B AS y) FILTER x.v < y.v PARTITION BY n",
    "SELECT * WHERE (A AS x : B AS y) FILTER x.v < y.v PARTITION BY n, v",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.n = 'p' AND y.n LIKE 'a long%' AND x.v < y.v WITHIN 5 EVENTS",
]
TYPES = [pa.string(), pa.large_string(), *(pa.dictionary(i, pa.string()) for i in (pa.int8(), pa.int32(), pa.uint32()))]
TEXTS = ["p", "", "a long name", "eight by", None, "q"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(limits, "NARROWED_ROWS", 1)


def stream(kind, size=50):
    columns = {
        "type": pa.array(["AB"[k % 2] for k in range(size)]).cast(kind),
        "n": pa.array([TEXTS[k // 2 % 6] for k in range(size)]).cast(kind),
        "v": pa.array([k * 7 % 5 if k % 9 else None for k in range(size)], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def count(query, *batches):
    recognizer = cerflow.parse(query).recognizer(batches[0].schema)
    return sum(recognizer.push(batch).count() for batch in batches)


# --- guarded memory: any byte behind a buffer ends the process ------------------------------------------------------


def at_the_end(data):
    """A copy of some bytes right before a page that nobody may read."""
    page = mmap.PAGESIZE
    room = -(-max(1, len(data)) // page) * page
    memory = mmap.mmap(-1, room + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    memory[room - len(data) : room] = data
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + room), page, 0) == 0
    return pa.foreign_buffer(address + room - len(data), len(data), memory)


def guarded(array):
    """The array in buffers that are no longer than they have to be."""
    if pa.types.is_dictionary(array.type):
        indices = guarded(array.indices)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, safe=False)
    end = array.offset + len(array)
    sizes = {1: 1 + (end - 1) // 8 if end else 0}
    buffers = array.buffers()
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        width = 8 if pa.types.is_large_string(array.type) else 4
        offsets = np.frombuffer(buffers[1], f"i{width}")[: end + 1]
        needed = [sizes[1], width * (end + 1), int(offsets[-1]) if len(offsets) else 0]
    else:
        needed = [sizes[1], array.type.bit_width * end // 8]
    copies = [None if b is None else at_the_end(bytes(b)[:size]) for b, size in zip(buffers, needed)]
    return pa.Array.from_buffers(array.type, len(array), copies, offset=array.offset)


def read_guarded():
    """What the subprocess does: the guarded events have the matches of the others."""
    limits.NARROWED_ROWS = 1
    for kind in TYPES:
        for begin, size in ((0, 50), (3, 40), (7, 43), (49, 1), (10, 0), (48, 2)):
            batch = stream(kind).slice(begin, size)
            batches = pa.RecordBatch.from_arrays([guarded(c) for c in batch.columns], schema=batch.schema)
            for query in QUERIES:
                assert count(query, batches) == count(query, batch), (kind, begin, size, query)
    print("all read")


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect as on Linux")
def test_nothing_is_read_behind_a_buffer():
    code = "import sys; sys.path[:0] = sys.argv[1:]; from engine.scan.test_memory import read_guarded; read_guarded()"
    tests = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", code, str(tests)], capture_output=True, text=True, check=False)
    assert told.stdout.strip().endswith("all read"), (told.returncode, told.stderr[-2000:])


# --- what lies in arrays beside values ------------------------------------------------------------------------------


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("index", [pa.int8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()])
def test_indices_of_nulls_may_be_anything(query, index):
    whole = stream(pa.dictionary(index, pa.string()))
    indices = whole["n"].indices
    wild = np.where(np.asarray(indices.is_null()), 119, np.asarray(indices.fill_null(0))).astype(
        index.to_pandas_dtype()
    )
    wild = pa.Array.from_buffers(index, len(whole), [indices.buffers()[0], pa.py_buffer(wild)])
    names = pa.DictionaryArray.from_arrays(wild, whole["n"].dictionary, safe=False)
    batch = pa.RecordBatch.from_arrays([whole["type"], names, whole["v"]], schema=whole.schema)
    assert count(query, batch) == count(query, whole)


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint32(), pa.int64()])
def test_indices_beyond_the_dictionary_count_as_null(index):
    """Nobody should make such arrays, but a file may hold them."""
    data = np.array([0, 1, 100, 0, 101, 0, 1], index.to_pandas_dtype())
    if pa.types.is_signed_integer(index):
        data[2] = -5
    kinds = pa.DictionaryArray.from_arrays(pa.array(data), pa.array(["A", "B"]), safe=False)
    batch = pa.RecordBatch.from_arrays([kinds], names=["type"])
    assert count("SELECT * WHERE A : B", batch) == 2
    assert count("SELECT * WHERE A ; B", batch) == 4


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("query", QUERIES)
def test_empty_buffers(kind, query):
    full = stream(kind)
    nothing = pa.RecordBatch.from_arrays([pa.array([], t) for t in full.schema.types], schema=full.schema)
    nulls = pa.RecordBatch.from_arrays([full["type"], pa.nulls(50, kind), pa.nulls(50, pa.int64())], schema=full.schema)
    empty = pa.RecordBatch.from_arrays([full["type"], pa.array([""] * 50).cast(kind), full["v"]], schema=full.schema)
    expected = count(query, full)
    for batch in (nothing, full.slice(20, 0), nulls, empty):
        assert count(query, batch, full) >= expected
        assert count(query, batch) == cerflow.parse(query).match(pa.table(batch), runner="semantics").count()


@pytest.mark.parametrize(("kind", "begin"), [(pa.large_string(), 2**32 + 5), (pa.string(), 2**31 - 300)])
def test_texts_far_into_a_buffer(kind, begin):
    """Pages that nobody writes take no memory, which 0x4000 says (MAP_NORESERVE)."""
    try:
        memory = mmap.mmap(-1, begin + 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    except (OSError, AttributeError):
        pytest.skip("no room for so large a mapping")
    near = stream(kind)
    arrays = []
    for name in ("type", "n"):
        array = near[name]
        _, offsets, data = array.buffers()
        wide = np.frombuffer(offsets, "i8" if kind == pa.large_string() else "i4")[: len(array) + 1]
        memory[begin : begin + int(wide[-1])] = bytes(data)[: int(wide[-1])]
        buffers = [array.buffers()[0], pa.py_buffer(wide + wide.dtype.type(begin)), pa.py_buffer(memory)]
        arrays.append(pa.Array.from_buffers(kind, len(array), buffers))
        if name == "type":
            # The names come behind.
            begin += int(wide[-1])
    batch = pa.RecordBatch.from_arrays([*arrays, near["v"]], schema=near.schema)
    for query in QUERIES:
        assert count(query, batch) == count(query, near)


@pytest.mark.parametrize("query", QUERIES)
def test_views_of_strings_are_copied_first(query):
    """They have buffers of another kind."""
    whole = stream(pa.string())
    views = whole.set_column(1, "n", whole["n"].cast(pa.string_view()))
    assert count(query, views) == count(query, whole)
