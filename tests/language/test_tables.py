"""The tables of the parsers are kept between processes where that is possible, and it does not matter where not."""

import subprocess
import sys

import pytest

from cerflow.language.tables import kept_tables

PARSE = "import cerflow; print(cerflow.parse('SELECT * WHERE A AS x').tree.formula)"


def test_a_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / "deep" / "er"))
    path = kept_tables("ceql")
    assert isinstance(path, str)
    assert (tmp_path / "deep" / "er").is_dir()
    monkeypatch.delenv("CERFLOW_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert str(kept_tables("ceql")).startswith(str(tmp_path / "cerflow"))


def test_no_place(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert kept_tables("ceql") is False


@pytest.mark.parametrize("damaged", [False, True])
def test_queries_are_read_with_kept_tables_or_damaged_ones(tmp_path, monkeypatch, damaged):
    monkeypatch.setenv("CERFLOW_CACHE_DIR", str(tmp_path))
    said = [subprocess.run([sys.executable, "-c", PARSE], capture_output=True, text=True, check=True).stdout]
    (kept,) = tmp_path.glob("*.tables")
    if damaged:
        kept.write_bytes(b"nothing of use")
    said.append(subprocess.run([sys.executable, "-c", PARSE], capture_output=True, text=True, check=True).stdout)
    assert said[0] == said[1] != ""
