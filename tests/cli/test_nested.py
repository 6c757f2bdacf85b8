"""Nested attributes in files of JSON and Parquet, also as columns with a role."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import cerflow
from cerflow.base.errors import InputError
from cerflow.cli.app import app

EVENTS = [
    {"meta": {"kind": "AB"[n % 2], "at": 1000 + 50 * (n // 2), "n": -n}, "device": {"id": n % 3, "os": "xy"[n // 6]}}
    for n in range(12)
]
QUERY = "SELECT a.device.os WHERE (A AS a : B AS b) FILTER a.device.os = b.device.os"
ROLES = {"type": "meta.kind", "time": "meta.at", "sequence": "meta.n"}
OPTIONS = ["--type-column", "meta.kind", "--time-column", "meta.at", "--sequence-column", "meta.n"]


def write(path, events=EVENTS):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(events), path)
    else:
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return str(path)


def run(*arguments, **further):
    return CliRunner().invoke(app, list(arguments), **further)


@pytest.mark.parametrize("name", ["events.json", "events.parquet"])
def test_fields_have_roles(tmp_path, name):
    path = write(tmp_path / name)
    wanted = cerflow.parse(QUERY).match(EVENTS, until=1260, **ROLES).to_pylist()
    assert 0 < len(wanted) < len(cerflow.parse(QUERY).match(EVENTS, type="meta.kind", time="meta.at").to_pylist())
    done = run("run", "-e", QUERY, "-i", path, *OPTIONS, "--until", "1260", "--summary", "--output", "-")
    assert done.exit_code == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == wanted
    assert "from 1000 to 1250" in done.stderr
    checked = run("check", "-e", f"{QUERY} PARTITION BY device.id", "-i", path, *OPTIONS[:4])
    assert "partitioned: device.id" in checked.stdout
    wrong = run("run", "-e", QUERY, "-i", path, "--type-column", "meta.knd")
    assert "the type column 'meta.knd' is not in the input; did you mean 'meta'?" in wrong.stderr
    assert cerflow.read_events(path, type="meta.kind", time="meta.at").num_rows == 12
    with pytest.raises(InputError, match=r"time column 'meta\.to' is not in the input"):
        cerflow.read_events(path, type="meta.kind", time="meta.to")


@pytest.mark.slow
def test_a_pipe_brings_fields(tmp_path):
    text = "".join(json.dumps(event) + "\n" for event in [*EVENTS, {"meta": {"kind": "A"}}])
    command = [sys.executable, "-m", "cerflow", "run", "-e", QUERY, "-i", "-", "--input-format", "json", *OPTIONS[:4]]
    given = {"input": text.encode(), "capture_output": True, "env": os.environ}
    done = subprocess.run([*command, "--on-bad-record", "skip"], check=True, **given)
    wanted = cerflow.parse(QUERY).match(EVENTS, type="meta.kind", time="meta.at").to_pylist()
    assert wanted
    assert [json.loads(line) for line in done.stdout.splitlines()] == wanted
    assert b"1 bad record" in done.stderr


@pytest.mark.parametrize("piped", [False, True])
def test_an_input_without_rows_may_have_any_fields(tmp_path, piped):
    (tmp_path / "events.json").write_text("")
    path = "-" if piped else str(tmp_path / "events.json")
    query = (
        "SELECT a.meta.kind, a.meta.at, b.device.os.version + 1 AS m\n"
        "WHERE (A AS a ; B AS b) FILTER a.device.os IS NULL"
    )
    arguments = ["-i", path, "--input-format", "json", *OPTIONS, "--runner", "local", "--output", "-"]
    done = run("run", "-e", query, *arguments, input="")
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert "0 events, 0 matches" in done.stderr
