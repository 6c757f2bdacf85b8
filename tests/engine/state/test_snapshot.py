"""Snapshots: restorable elsewhere, for the same query only, and never anything but data."""

import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import cerflow
from cerflow import QuerySet, Recognizer
from cerflow.base.errors import SnapshotError
from cerflow.base.schema import Schema
from cerflow.engine import layout
from cerflow.engine.state.compact import kept_arrays
from cerflow.engine.state.snapshot import RECOGNIZER, decoded, read_snapshot, write_snapshot
from support import snapshot_mutants
from support.runners import bag

TEXT = "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x.s != y.s AND y.v < z.v PARTITION BY k WITHIN 60 SECONDS"
SCHEMA = pa.schema(
    [("type", pa.string()), ("s", pa.string()), ("v", pa.int64()), ("k", pa.string()), ("t", pa.int64())]
)


def events(start, stop):
    rows = [
        {"type": "ABC"[k * 5 % 7 % 3], "s": f"s{k % 4}", "v": k * 13 % 11, "k": f"k{k % 3}", "t": k * 1000}
        for k in range(start, stop)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture(scope="module")
def snapshot():
    recognizer = cerflow.parse(TEXT).recognizer(SCHEMA, time="t")
    recognizer.push(events(0, 60))
    return recognizer.snapshot()


@pytest.fixture(scope="module")
def rest():
    recognizer = cerflow.parse(TEXT).recognizer(SCHEMA, time="t")
    recognizer.push(events(0, 60))
    found = recognizer.push(events(60, 90)).to_pylist()
    assert any(row["start"] < 60 for row in found)
    return found


def test_taking_one_changes_nothing(rest):
    recognizer = cerflow.parse(TEXT).recognizer(SCHEMA, time="t")
    recognizer.push(events(0, 60))
    assert len(recognizer.snapshot()) > 0
    recognizer.snapshot()
    assert recognizer.push(events(60, 90)).to_pylist() == rest


@pytest.mark.slow
def test_it_restores_in_another_process(snapshot, rest, tmp_path):
    (tmp_path / "snapshot").write_bytes(snapshot)
    with pa.ipc.new_file(tmp_path / "events", SCHEMA) as sink:
        sink.write_table(events(60, 90))
    code = (
        "import sys, json, cerflow, pyarrow as pa\n"
        "query = cerflow.parse(sys.argv[1])\n"
        "recognizer = cerflow.Recognizer.restore(query, open('snapshot', 'rb').read())\n"
        "print(json.dumps(recognizer.push(pa.ipc.open_file('events').read_all()).to_pylist()))"
    )
    done = subprocess.run([sys.executable, "-c", code, TEXT], cwd=tmp_path, capture_output=True, check=True, text=True)
    assert json.loads(done.stdout) == rest


def test_one_snapshot_restores_many_times(snapshot, rest):
    for query in (cerflow.parse(TEXT), cerflow.parse(TEXT).tree, cerflow.parse(TEXT.replace(" ", "\n"))):
        recognizer = Recognizer.restore(query, snapshot)
        assert (recognizer.events, recognizer.bad_records) == (60, 0)
        assert recognizer.push(events(60, 90)).to_pylist() == rest


@pytest.mark.parametrize("text", [TEXT.replace("60", "61"), "SELECT * WHERE A", TEXT.replace("y", "u")])
def test_another_query(text, snapshot):
    with pytest.raises(SnapshotError, match=r"another query"):
        Recognizer.restore(cerflow.parse(text), snapshot)


def test_no_query(snapshot):
    with pytest.raises(TypeError, match="restore needs the query"):
        Recognizer.restore(TEXT, snapshot)


DAMAGED = {
    "empty": lambda data: b"",
    "text": lambda data: b"a snapshot",
    "zip": lambda data: data[:4],
    "half": lambda data: data[: len(data) // 2],
    "end only": lambda data: data[len(data) // 2 :],
    "one array": lambda data: _saved(np.zeros(3)),
    "another archive": lambda data: _archived(a=np.zeros(3)),
    "header of another kind": lambda data: _archived(header=np.frombuffer(b"[1, 2]", np.uint8)),
    "header that is not text": lambda data: _archived(header=np.frombuffer(b"\xff\xfe", np.uint8)),
}


def _saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _archived(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_damaged_bytes(damage, snapshot):
    with pytest.raises(SnapshotError):
        Recognizer.restore(cerflow.parse(TEXT), damage(snapshot))


def changed(snapshot, **changes):
    """A snapshot with a valid checksum that says something else."""
    contents = read_snapshot(RECOGNIZER, snapshot)
    contents.description.update(changes)
    return write_snapshot(RECOGNIZER, contents)


def test_another_version(snapshot):
    query = cerflow.parse(TEXT)
    with pytest.raises(SnapshotError, match=r"version 99, this version of cerflow reads version 6"):
        Recognizer.restore(query, snapshot.replace(b"snapshot 6\n", b"snapshot 99\n", 1))
    earlier = _archived(header=np.frombuffer(b'{"version": 5}', np.uint8), positions=np.zeros(1), events=np.zeros(1))
    with pytest.raises(SnapshotError, match=r"version 5 or an earlier one, this version of cerflow reads version 6"):
        Recognizer.restore(query, earlier)
    with pytest.raises(SnapshotError, match="snapshot of a recogniser, not of a set of queries"):
        QuerySet({"q": TEXT}).restore(snapshot, SCHEMA, time="t")
    with pytest.raises(SnapshotError, match="numbers states or labels"):
        Recognizer.restore(query, changed(snapshot, labels=[["A"]]))
    with pytest.raises(SnapshotError, match="numbers states or labels"):
        Recognizer.restore(query, changed(snapshot, automaton="another"))
    with pytest.raises(SnapshotError, match="numbers states or labels"):
        Recognizer.restore(query, changed(snapshot, remembering="another"))
    assert Recognizer.restore(query, changed(snapshot)).events == 60


def test_automata_that_differ_in_conditions_on_registers_are_told_apart():
    texts = [f"SELECT * WHERE (A AS x ; B AS y) FILTER x.v {sign} y.v WITHIN 9 EVENTS" for sign in ("<", "<=", "<")]
    plans = [cerflow.parse(text).plan(Schema(SCHEMA, "type", "t"), None, True) for text in texts]
    assert plans[0].numbering == plans[1].numbering
    assert plans[0].remembering == plans[2].remembering != plans[1].remembering


def test_what_was_written_once_can_be_read(rest):
    """The bytes of version 6 as they were when it came: if this fails, the format needs another number.

    Configurations stood in another order then, so matches of one event may come in another order.
    """
    golden = (Path(__file__).parent / "golden" / "snapshot-6.bin").read_bytes()
    recognizer = Recognizer.restore(cerflow.parse(TEXT), golden)
    assert bag(recognizer.push(events(60, 90)).to_pylist()) == bag(rest)


def test_every_damage_is_noticed(snapshot):
    query = cerflow.parse(TEXT)
    for at in range(len(snapshot)):
        damaged = bytearray(snapshot)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(SnapshotError) as raised:
            Recognizer.restore(query, bytes(damaged))
        assert "allow_pickle" not in str(raised.value)
    with pytest.raises(SnapshotError, match="a snapshot is bytes, not str"):
        Recognizer.restore(query, "snapshot")


def test_no_code_is_kept(snapshot):
    contents = read_snapshot(RECOGNIZER, snapshot)
    assert all(array.dtype.kind in "iu" for array in contents.arrays.values())


def test_what_is_unpacked_is_bounded(snapshot):
    """An index that promises more than its bytes can hold is refused before anything is made."""
    head = json.dumps({"kind": RECOGNIZER, "sections": [["description", "int64", [1 << 39], 40]]}).encode()
    body = len(head).to_bytes(4, "little") + head + bytes(40)
    forged = b"cerflow snapshot 6\n" + hashlib.blake2b(body, digest_size=16).digest() + body
    with pytest.raises(SnapshotError, match="40 bytes cannot hold an array of"):
        Recognizer.restore(cerflow.parse(TEXT), forged)
    # Arrow's own compression has no bound.
    contents = read_snapshot(RECOGNIZER, snapshot)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, contents.events.schema, options=options) as stream:
        stream.write_table(contents.events)
    with pytest.raises(SnapshotError, match="compressed twice"):
        decoded(sink.getvalue())


@pytest.mark.parametrize("roles", [{}, {"position": "v"}, {"positions": False}, {"type": "k"}, {"time": "t"}])
def test_roles_are_restored(roles):
    query = cerflow.parse("SELECT * WHERE A ; B")
    table = pa.table({"type": ["A", "B"], "s": ["x", "y"], "v": [10, 20], "k": ["A", "B"], "t": [5, 6]}, schema=SCHEMA)
    recognizer = query.recognizer(SCHEMA, **roles)
    recognizer.push(table.slice(0, 1))
    restored = Recognizer.restore(query, recognizer.snapshot())
    assert restored.schema == recognizer.schema
    assert restored.push(table.slice(1)).to_pylist() == recognizer.push(table.slice(1)).to_pylist()


@pytest.mark.parametrize("name", snapshot_mutants.TEXTS)
def test_what_kernels_rely_on_is_there_after_restoring(name):
    base = snapshot_mutants.Base(name)
    memory = base.restore(base.snapshot)._machine.memory
    counters, config = memory.state.counters, memory.state.config
    live = config[: counters[layout.N_CONFIGS]]
    nodes = memory.state.nodes[: counters[layout.N_NODES]].view(np.int32)
    # The rank bounds the nodes that an event may need.
    assert counters[layout.N_RANK] == nodes[:, layout.I_RANK].max()
    assert (
        counters[layout.N_LIVE]
        == len(live)
        == np.count_nonzero(memory.state.table >= 0) + np.count_nonzero(live[:, layout.C_CHAIN] >= 0)
    )
    assert counters[layout.N_CLASSES] == 1 + len(set(live[:, layout.C_CLASS].tolist()) - {0})
    held = memory.state.partition[: counters[layout.N_PARTITIONS], layout.R_LIVE]
    assert held.tolist() == np.bincount(live[:, layout.C_PARTITION], minlength=len(held)).tolist()
    arrays = read_snapshot(RECOGNIZER, base.snapshot).arrays
    assert all(np.array_equal(array, arrays[each]) for each, array in kept_arrays(memory.image()).items())


def test_the_roles_and_columns_of_another_set_are_named():
    columns = {"type": pa.string(), "t": pa.int64(), "u": pa.int64()}
    queries = QuerySet({"q": "SELECT * WHERE A ; B", "r": "SELECT * WHERE B ; C"})
    recognizer = queries.recognizer(pa.schema(columns), time="t")
    recognizer.push({"type": "A", "t": 1, "u": 1})
    for changes, roles, said in (
        ({}, {"time": "u"}, "the snapshot was taken with time=t, but this recogniser has u"),
        ({}, {}, "the snapshot was taken with time=t, but this recogniser has None"),
        ({"u": pa.string()}, {"time": "t"}, "with the columns type string, t int64, u int64; this .* u string"),
    ):
        with pytest.raises(SnapshotError, match=said):
            queries.restore(recognizer.snapshot(), pa.schema(columns | changes), **roles)
