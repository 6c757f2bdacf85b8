"""Durations on the command line: times of CSV are subtracted, and durations are written in ISO 8601."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app

CSV = "type,t\nA,2024-03-15T10:00:00Z\nB,2024-03-15T10:02:00Z\nB,2024-03-15T11:00:00.5Z\n"


@pytest.mark.parametrize("time", [["--time-column", "t"], []])
def test_times_of_files_are_subtracted(tmp_path, time):
    events, result = tmp_path / "events.csv", tmp_path / "result.jsonl"
    events.write_text(CSV)
    query = "SELECT y.t - x.t AS gap, x.t - y.t AS back WHERE (A AS x ; B AS y) FILTER y.t - x.t > 1 MINUTE"
    arguments = ["run", "-e", query, "--input", str(events), "--output", str(result), "--runner", "local", *time]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in result.read_text().splitlines()]
    assert [(row["gap"], row["back"]) for row in found] == [("PT2M", "-PT2M"), ("PT1H0.5S", "-PT1H0.5S")]


def test_parquet_keeps_durations(tmp_path):
    events, result = tmp_path / "events.csv", tmp_path / "result.parquet"
    events.write_text(CSV)
    query = "SELECT y.t - x.t AS gap WHERE A AS x ; B AS y"
    arguments = ["run", "-e", query, "--input", str(events), "--output", str(result), "--runner", "local"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert pa.parquet.read_table(result).schema.field("gap").type == pa.duration("us")
