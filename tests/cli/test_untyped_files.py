"""Files without a type column: every command reads them if the query names no type (spec §11)."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import cerflow as library
from cerflow.cli.app import app

TEXT = """ts,user,result
2024-03-01 10:00:00,eve,failed
2024-03-01 10:00:05,bob,ok
2024-03-01 10:00:07,eve,failed
2024-03-01 10:00:09,eve,ok
"""
KINDS = "DEFINE failed AS result = 'failed', ok AS result = 'ok' "
QUERY = KINDS + "SELECT f, o WHERE failed AS f ; ok AS o PARTITION BY user WITHIN 8 SECONDS"
NO_TYPES = "'failed' is named as the type of an event, but the events have no types"


def cerflow(*arguments, **further):
    return CliRunner().invoke(app, list(map(str, arguments)), **further)


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def logins(request, tmp_path):
    path = tmp_path / f"logins.{request.param}"
    table = pyarrow.csv.read_csv(pa.py_buffer(TEXT.encode()))
    if request.param == "csv":
        path.write_text(TEXT)
    elif request.param == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        path.write_text("".join(json.dumps({**row, "ts": str(row["ts"])}) + "\n" for row in table.to_pylist()))
    return path


def rows_of(result):
    assert result.exit_code == 0, result.stderr
    return [
        [(e["position"], e["user"], e["type"]) for e in json.loads(r)["events"]] for r in result.stdout.splitlines()
    ]


def test_runs_and_checks(logins, tmp_path):
    given = ["-i", logins, "--time-column", "ts"]
    result = cerflow("run", "-e", QUERY, *given, "--runner", "local", "-o", tmp_path / "m.jsonl")
    assert (result.exit_code, "warning" in result.stderr) == (0, False), result.stderr
    found = rows_of(cerflow("run", "-e", QUERY, *given, "--runner", "local"))
    assert found == [[(2, "eve", None), (3, "eve", None)]]
    assert library.parse(QUERY).match(library.read_events(logins, time="ts"), time="ts").count() == 1
    checked = cerflow("check", "-e", QUERY, *given)
    assert (checked.exit_code, checked.stderr) == (0, "")
    columns = checked.stdout.partition("columns:\n")[2]
    assert [line.split()[0] for line in columns.splitlines()] == ["ts", "user", "result"]
    assert cerflow("explain", "-e", QUERY, *given).exit_code == 0
    page = tmp_path / "page.html"
    shown = cerflow("show", tmp_path / "m.jsonl", *given, "-o", page)
    assert shown.exit_code == 0, shown.stderr
    assert "\\u0000" not in page.read_text()


def test_named_types_are_refused_with_ways_out(logins):
    for command in ("run", "check", "explain"):
        result = cerflow(command, "-e", "SELECT * WHERE failed", "-i", logins, "--time-column", "ts")
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"line 1, column 16: {NO_TYPES}" in result.stderr
        for way in ("such as user, result", "--type-column", "--constant-type", "DEFINE failed AS condition"):
            assert way in result.stderr
    typed = cerflow("run", "-e", "SELECT * WHERE failed : ok", "-i", logins, "--type-column", "result")
    assert len(rows_of(typed)) == 2


def test_events_that_come_by_a_pipe():
    code = "import sys; from cerflow.cli.app import app; app(sys.argv[1:])"
    command = [
        sys.executable,
        "-c",
        code,
        "run",
        "-e",
        QUERY,
        "-i",
        "-",
        "--input-format",
        "csv",
        "--time-column",
        "ts",
    ]
    result = subprocess.run(command, input=TEXT, capture_output=True, text=True, timeout=300, check=True)
    assert [e["user"] for row in map(json.loads, result.stdout.splitlines()) for e in row["events"]] == ["eve", "eve"]


def test_inputs_with_types_beside_others_without(logins, tmp_path):
    (tmp_path / "typed.csv").write_text("type,v\nA,1\n")
    both = ["-i", logins, "-i", tmp_path / "typed.csv", "--runner", "local"]
    result = cerflow("run", "-e", "SELECT * WHERE EVENT", *both)
    assert result.exit_code == 1
    assert "the type column 'type' is not in the input 'logins', but in 'typed'" in result.stderr
    result = cerflow("run", "-e", "SELECT COUNT(*) AS n WHERE LOGIN", *both, "--constant-type", "logins=LOGIN")
    assert (result.exit_code, result.stdout.count("\n")) == (0, 4), result.stderr
    result = cerflow("run", "-e", KINDS + "SELECT * FROM a, b WHERE a>failed AS f ; b>ok AS o", "--runner", "local",
                     "-i", f"a={logins}", "-i", f"b={logins}", "--time-column", "ts")  # fmt: skip
    assert rows_of(result)


def test_empty_files_beside_files_without_types(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"v": 1}\n')
    (tmp_path / "b.jsonl").write_text("")
    result = cerflow("run", "-e", "SELECT * WHERE EVENT AS x", "-i", tmp_path / "*.jsonl", "--runner", "local")
    assert (result.exit_code, result.stdout.count("\n")) == (0, 1), result.stderr
