"""Files that cannot be read give a notice with the reason, in the studio as for ``--input``."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cerflow
from cerflow.base import limits
from cerflow.base.errors import BadRecordError, InputError
from cerflow.studio.sampling import load_events

TEXT = b"type,v\n" + b"".join(b"%s,%d\n" % (b"AB"[k % 2 : k % 2 + 1], k * 7919 % 10007) for k in range(20_000))
CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}


@pytest.mark.parametrize("suffix", CODECS)
def test_packed_files_that_are_cut_or_something_else(tmp_path, suffix):
    path = tmp_path / f"a.csv.{suffix}"
    with pa.output_stream(str(path), compression=CODECS[suffix]) as file:
        file.write(TEXT)
    assert len(load_events(path).table) == 20_000
    whole = path.read_bytes()
    for data, reason in (
        (whole[: len(whole) // 2], "Truncated compressed stream"),
        (whole[:15], "Truncated compressed stream"),
        (b"not packed at all" * 9, "failed"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=f"a.csv.{suffix} cannot be read: .*{reason}"):
            load_events(path)
        with pytest.raises(InputError, match=f"cannot read .*a.csv.{suffix} as csv: .*{reason}"):
            cerflow.read_events(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "brackets are nested more than 100 deep"),
        ('{"type": ' + "[" * 100_000 + "]" * 100_000 + "}", "row 0: brackets are nested more than 100 deep"),
        ("1\n2\n", "row 0: not a JSON object"),
        ("null", "row 0: not a JSON object"),
        ("[1, 2]", "row 0: not a JSON object"),
        ('"text"', "row 0: not a JSON object"),
        ('{"type":', "row 0: not JSON: Expecting value, at character 8"),
        ('{"type": "A", "v": ' + "1" * 5000 + "}", "row 0: a number of 5000 digits is out of range"),
        ("", "it has no rows"),
    ],
)
def test_json_without_objects(tmp_path, text, reason):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        load_events(path)
    if text:
        with pytest.raises((InputError, BadRecordError), match=reason):
            cerflow.read_events(path)


def test_objects_behind_other_lines_and_in_an_array(tmp_path):
    (tmp_path / "a.json").write_text('"text"\n{"type": "A"}\n')
    found = load_events(tmp_path / "a.json")
    assert found.table.to_pylist() == [{"type": "A"}]
    assert found.remarks == ("1 rows cannot be used and are left out, the first because not a JSON object",)
    (tmp_path / "b.json").write_text('[\n {"type": "A"},\n {"type": "B"}\n]\n')
    assert load_events(tmp_path / "b.json").types == ["A", "B"]


@pytest.mark.parametrize("name", ["~nouser/x", "x" * 300, "missing.csv", "a\0b"])
def test_paths_that_lead_nowhere(name):
    with pytest.raises(InputError, match=r"there is no file|too long"):
        load_events(Path(name))
    with pytest.raises(InputError, match=r"no file or directory|too long"):
        cerflow.read_events(name)


def test_a_file_without_line_breaks(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_BYTES", 1 << 20)
    (tmp_path / "a.csv").write_bytes(b"0" * (2 << 20))
    with pytest.raises(InputError, match="there is no line break in its first 1 MB"):
        load_events(tmp_path / "a.csv")


def test_columns_that_names_of_directories_give(tmp_path):
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table({"type": ["A", "B"]}), tmp_path / "day=1" / "a.parquet")
    assert load_events(tmp_path).columns == ("type", "day")


def test_the_first_rows_of_a_file_with_a_short_suffix(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "STUDIO_ROWS", 1)
    pq.write_table(pa.table({"type": ["A", "B"]}), tmp_path / "a.pq")
    found = load_events(tmp_path / "a.pq")
    assert found.table.to_pylist() == [{"type": "A"}]
    assert found.remarks == ("the file has 2 rows; only the first 1 are loaded",)
