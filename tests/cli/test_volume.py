"""How many matches a run writes is known before, told, and bounded."""

import json
from decimal import Decimal

import pytest
import typer
from typer.testing import CliRunner

from cerflow.base import limits
from cerflow.cli.app import app
from cerflow.cli.options import parse_most
from cerflow.cli.output import targets

QUERY = "SELECT * WHERE A+ ; B"


def run(directory, letters, *arguments, query=QUERY):
    path = directory / "in.csv"
    path.write_text("\n".join(["type", *letters, ""]))
    result = CliRunner().invoke(app, ["run", "-e", query, "-i", str(path), "--runner", "local", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_more_than_can_be_written_are_an_error_before_anything_is_written(tmp_path):
    output = tmp_path / "o.jsonl"
    output.write_text("old")
    code, said, told = run(tmp_path, "A" * 350 + "B", "--output", output)
    assert (code, said) == (1, "")
    assert told.startswith("error: there are 2.3e105 matches or more, and at most 100,000,000 may be listed; ")
    assert "--max-matches" in told
    assert "COUNT(*)" in told
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "o.jsonl"]


@pytest.mark.parametrize(
    ("query", "rows"), [(QUERY, 1023), ("SELECT COUNT(*) AS n WHERE A+ ; B", 1), ("SELECT NONE WHERE A+ ; B", 1)]
)
def test_the_bound_is_on_rows(tmp_path, query, rows):
    code, said, _ = run(tmp_path, "A" * 10 + "B", "--max-matches", rows, query=query)
    assert code == 0
    assert len(said.splitlines()) == rows
    if rows > 1:
        code, said, told = run(tmp_path, "A" * 10 + "B", "--max-matches", rows - 1, query=query)
        assert (code, said) == (1, "")
        assert "there are 1,023 matches or more, and at most 1,022 may" in told


def test_many_matches_are_told_before_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MATCHES_COUNTED", 1000)
    code, said, told = run(tmp_path, "A" * 10 + "B", "--max-matches", "none")
    assert code == 0
    assert len(said.splitlines()) == 1023
    assert told.startswith("warning: 1,023 matches will be written; LIMIT n, ")
    monkeypatch.setattr(limits, "ROWS_WEIGHED", 100)
    monkeypatch.setattr(targets.shutil, "disk_usage", lambda _: targets.shutil._ntuple_diskusage(2**40, 2**40, 1 << 20))
    monkeypatch.setattr(limits, "OUTPUT_BATCH_ROWS", 100)
    code, _, told = run(tmp_path, "A" * 13 + "B", "--max-matches", "none", "--output", tmp_path / "o.jsonl")
    assert code == 0
    assert f"warning: the disk of '{tmp_path / 'o.jsonl'}' has 1 MiB left, and the matches need" in told


def test_numbers_of_any_length(tmp_path):
    query = "SELECT COUNT(*) AS n WHERE A+ ; B"
    code, said, told = run(tmp_path, "A" * 350 + "B", query=query)
    assert (code, said) == (1, "")
    assert told.startswith("error: the number of matches of one event, 2.3e105, does not fit 38 digits; ")
    assert "--counts text" in told
    code, said, _ = run(tmp_path, "A" * 350 + "B", "--counts", "text", query=query)
    assert code == 0
    assert json.loads(said)["n"] == f"{Decimal(2**350 - 1):f}"


def test_numbers_of_matches():
    assert [parse_most(text) for text in ("none", "NONE", "0", "12", "1_000", "1,0")] == [
        None,
        None,
        None,
        12,
        1000,
        10,
    ]
    for text in ("", "-1", "many", "1e6", "²"):
        with pytest.raises(typer.BadParameter, match="is not a number of matches"):
            parse_most(text)
