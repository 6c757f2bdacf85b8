"""Files whose rows are too long are refused in little memory, packed or not, and the process lives on."""

import subprocess
import sys

import pyarrow as pa
import pytest

from cerflow.base import limits
from cerflow.base.errors import InputError
from cerflow.files.reading import read_events

ZEROS = b"0" * (1 << 16)
#: Bytes of a row in these tests.
MOST = 1 << 20


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(limits, "READ_BYTES", 1 << 16)
    monkeypatch.setattr(limits, "FILE_HEAD_BYTES", 1 << 12)
    monkeypatch.setattr(limits, "TEXT_ROW_BYTES", MOST)
    monkeypatch.setattr(limits, "JSON_ARRAY_BYTES", 2 * MOST)


def write(path, begin, end, size, filling=ZEROS):
    suffix = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix)
    with pa.output_stream(str(path), compression=suffix) as file:
        file.write(begin)
        for _ in range(size // len(filling)):
            file.write(filling)
        file.write(end)
    return path


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".zst"])
@pytest.mark.parametrize(
    ("name", "begin", "end", "said"),
    [
        ("a.csv", b"type,v\nA,1\nB,", b"\n", "is a quotation mark not closed?"),
        ("a.csv", b'type,v\nA,1\nB,"', b'"\n', "is a quotation mark not closed?"),
        ("a.csv", b"type,", b"\nA,1\n", "is a quotation mark not closed?"),
        ("a.csv", b"", b"", "is a quotation mark not closed?"),
        ("a.json", b'{"type":"A","v":1}\n{"type":"B","v":"', b'"}\n', "are line breaks missing?"),
        ("a.json", b"", b"", "are line breaks missing?"),
    ],
)
def test_a_long_row_is_refused(tmp_path, name, begin, end, said, suffix):
    long = write(tmp_path / (name + suffix), begin, end, 8 * MOST)
    with pytest.raises(InputError, match="has more than 1 MB; ") as refused:
        read_events(long)
    assert str(refused.value).startswith(f"cannot read {long} as {name[2:]}: a row ")
    assert str(refused.value).endswith(said)


def test_the_message_says_behind_which_row(tmp_path):
    rows = b"".join(b"A,%d\n" % k for k in range(60_000))
    long = write(tmp_path / "a.csv", b"type,v\n" + rows + b"B,", b"\n", 8 * MOST)
    with pytest.raises(InputError, match=r"a row after row \d{3,5} has more"):
        read_events(long)
    lines = b'{"type": "A"}\n' * 1000
    with pytest.raises(InputError, match="a row after row 999 has more"):
        read_events(write(tmp_path / "a.json", lines, b"\n", 8 * MOST))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_rows_that_are_not_too_long_are_read(tmp_path, suffix):
    half = MOST // 2
    for name, begin, end in (
        ("a.csv", b"type,v\nA,x\nB,x", b"\nC,z\n"),
        ("a.json", b'{"type":"A","v":"x"}\n{"type":"B","v":"x', b'"}\n{"type":"C","v":"z"}\n'),
    ):
        table = read_events(write(tmp_path / (name + suffix), begin, end, half))
        assert table.column("type").to_pylist() == ["A", "B", "C"]
        assert len(table.column("v")[1].as_py()) == half + 1


def test_an_array_is_read_as_a_whole_and_so_has_a_limit(tmp_path):
    begin, end = b' \n[{"type":"A","v":"x', b'"},\n{"type":"B","v":"y"}]'
    assert len(read_events(write(tmp_path / "a.json", begin, end, MOST))) == 2
    with pytest.raises(InputError, match="the array has more than 2 MB; write it with one object a line"):
        read_events(write(tmp_path / "b.json.gz", begin, end, 8 * MOST))


def test_deep_brackets_end_early(tmp_path):
    deep = write(tmp_path / "a.json", b'{"type":"A"}\n', b"\n", MOST // 2, b"[" * (1 << 16))
    refused = []
    assert len(read_events(deep, on_bad_record=refused.append)) == 1
    assert refused[0].column("reason").to_pylist() == ["brackets are nested more than 100 deep"]


def test_a_long_number_that_begins_with_zeros(tmp_path):
    """It is 0 to Arrow, and too long for Python's integers."""
    table = read_events(write(tmp_path / "a.csv", b"type,v\nA,1\nB,", b"\n", MOST // 2))
    assert table.column("v").to_pylist() == [1, 0]


@pytest.mark.slow
def test_memory_and_end_of_a_process(tmp_path):
    """With the true limits, and a row of 1 GB."""
    path = write(tmp_path / "a.csv.zst", b"type,v\nA,1\nB,", b"\n", 1 << 30, ZEROS * 16)
    script = f"""
import resource, cerflow
from cerflow.base.errors import InputError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    cerflow.read_events({str(path)!r})
except InputError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, grown = done.stdout.splitlines()
    assert "has more than 64 MB" in said
    assert int(grown) < 600
