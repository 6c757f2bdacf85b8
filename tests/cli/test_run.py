"""``cerflow run --runner local``, from arguments to files and exit codes."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app

QUERY = "SELECT * FROM s WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25 AND hot.id = dry.id"
FARM = [("H", 2, 25), ("T", 0, 45), ("H", 0, 20), ("H", 1, 25), ("T", 1, 40), ("T", 0, 42), ("T", 1, 25), ("H", 1, 70)]
FARM_CSV = "type,id,value\n" + "".join(f"{t},{i},{v}\n" for t, i, v in [*FARM, ("H", 0, 18)])
#: The answer of the worked example: (detected at, start).
ANSWER = {(2, 1), (8, 1), (8, 5)}


def cerflow(*arguments, text=None):
    return CliRunner().invoke(app, [str(a) for a in arguments], input=text)


def run(*arguments, query=QUERY, text=None):
    return cerflow("run", "-e", query, "--runner", "local", *arguments, text=text)


@pytest.fixture
def farm(tmp_path):
    path = tmp_path / "farm.csv"
    path.write_text(FARM_CSV)
    return path


@pytest.fixture
def dirty(tmp_path):
    path = tmp_path / "dirty.csv"
    path.write_text(FARM_CSV.replace("T,0,45\n", "T,0,45\nT,0,hot\n,0,41\nT,0\n"))
    return path


def pairs(rows):
    return {(row["detected_at"], row["start"]) for row in rows}


def test_standard_output_gets_json_lines(farm):
    result = run("--input", farm)
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert pairs(rows) == ANSWER
    assert list(rows[0]) == ["detected_at", "detected_time", "start", "end", "start_time", "end_time", "events"]
    assert rows[0]["events"][0] == {"position": 1, "labels": ["T", "hot"], "type": "T", "id": 0, "value": 45}
    assert "9 events, 3 matches, 0 bad records" in result.stderr


def test_a_query_file(farm, tmp_path):
    path = tmp_path / "q.ceql"
    path.write_text(QUERY)
    result = cerflow("run", path, "--runner", "local", "--input", farm)
    assert len(result.stdout.splitlines()) == 3


@pytest.mark.parametrize("name", ["o.jsonl", "o.csv", "o.parquet"])
def test_output_files(farm, tmp_path, name):
    path = tmp_path / name
    result = run("--input", farm, "--output", path)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    if name.endswith("parquet"):
        rows = pyarrow.parquet.read_table(path).to_pylist()
    elif name.endswith("csv"):
        rows = [{k: json.loads(v) for k, v in row.items()} for row in csv.DictReader(path.open())]
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert pairs(rows) == ANSWER
    assert all([event["id"] for event in row["events"]] == [0, 0] for row in rows)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["farm.csv", name])


@pytest.mark.parametrize("name", ["o.jsonl", "o.csv", "o.parquet", "o.orc"])
def test_flat_output(farm, tmp_path, name):
    path = tmp_path / name
    text = "SELECT * WHERE (T AS hot ; (H AS dry)+) FILTER hot.value > 40 AND dry.value <= 25 AND hot.id = dry.id"
    result = cerflow("run", "-e", text, "--runner", "local", "--flat", "--input", farm, "--output", path)
    assert result.exit_code == 0, result.stderr
    if name.endswith("parquet"):
        rows = pyarrow.parquet.read_table(path).to_pylist()
    elif name.endswith("orc"):
        rows = pyarrow.orc.read_table(path).to_pylist()
    elif name.endswith("csv"):
        rows = [
            {k: v if k.endswith("type") and not v.startswith("[") else json.loads(v) for k, v in row.items()}
            for row in csv.DictReader(path.open())
        ]
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert list(rows[0])[:8] == [f"{x}_{a}" for x in ("hot", "dry") for a in ("position", "type", "id", "value")]
    assert {(row["hot_position"], tuple(row["dry_position"])) for row in rows} >= {(1, (2,)), (1, (2, 8)), (5, (8,))}
    assert {row["hot_type"] for row in rows} == {"T"}


@pytest.mark.parametrize("output_format", ["csv", "jsonl", "parquet"])
def test_every_format_on_standard_output(farm, output_format):
    result = run("--input", farm, "--output", "-", "--output-format", output_format)
    if output_format == "parquet":
        assert pairs(pyarrow.parquet.read_table(io.BytesIO(result.stdout_bytes)).to_pylist()) == ANSWER
    else:
        assert len(result.stdout.splitlines()) == 3 + (output_format == "csv")


@pytest.mark.parametrize("input_format", ["csv", "json", "parquet"])
def test_input_formats(farm, tmp_path, input_format):
    rows = [{"type": t, "id": int(i), "value": int(v)} for t, i, v in csv.reader(FARM_CSV.splitlines()[1:])]
    path = tmp_path / "events"
    if input_format == "csv":
        path.write_text(FARM_CSV)
    elif input_format == "json":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    result = run("--input", path, "--input-format", input_format)
    assert pairs(map(json.loads, result.stdout.splitlines())) == ANSWER


def test_standard_input():
    result = run("--input", "-", "--input-format", "csv", text=FARM_CSV)
    assert len(result.stdout.splitlines()) == 3


def test_events_are_put_in_order_of_time(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("kind,at,nr\nB,2024-01-01T00:00:02,2\nA,2024-01-01T00:00:01,9\nB,2024-01-01T00:00:01,1\n")
    query = "SELECT * FROM s WHERE A ; B WITHIN 1 MINUTES"
    columns = ("--type-column", "kind", "--time-column", "at")
    assert len(run("--input", path, *columns, query=query).stdout.splitlines()) == 2
    result = run("--input", path, *columns, "--sequence-column", "nr", query=query)
    row = json.loads(result.stdout)
    assert (row["start"], row["end"], row["end_time"]) == (1, 2, "2024-01-01T00:00:02")


def test_streams_have_names(tmp_path):
    (tmp_path / "quotes.csv").write_text("type,at\nUP,1\n")
    (tmp_path / "t.csv").write_text("type,at\nUP,2\n")
    inputs = ("--input", tmp_path / "quotes.csv", "--input", f"trades={tmp_path / 't.csv'}", "--time-column", "at")
    query = "SELECT * FROM quotes, trades WHERE {} ; {}"
    assert len(run(*inputs, query=query.format("quotes>UP", "trades>UP")).stdout.splitlines()) == 1
    assert run(*inputs, query=query.format("trades>UP", "quotes>UP")).stdout == ""


def test_counting(farm):
    result = run("--input", farm, query=QUERY.replace("*", "COUNT(*) AS n"))
    assert [json.loads(line)["n"] for line in result.stdout.splitlines()] == [1, 2]


def test_a_bad_record_fails_the_run_and_leaves_no_output(dirty, tmp_path):
    result = run("--input", dirty, "--output", tmp_path / "o.jsonl")
    assert result.exit_code == 1
    assert result.stderr == "error: row 2: value is not a number: 'hot'\n"
    assert list(tmp_path.iterdir()) == [dirty]


def test_bad_records_are_skipped_and_counted(dirty):
    result = run("--input", dirty, "--on-bad-record", "skip")
    assert pairs(map(json.loads, result.stdout.splitlines())) == ANSWER
    assert "9 events, 3 matches, 3 bad records" in result.stderr


@pytest.mark.parametrize("short", [True, False])
def test_bad_records_are_kept(dirty, tmp_path, short):
    path = tmp_path / "dead.jsonl"
    options = [f"dead-letter={path}"] if short else ["dead-letter", "--dead-letter", path]
    result = run("--input", dirty, "--on-bad-record", *options)
    assert len(result.stdout.splitlines()) == 3
    dead = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(d["row"], d["reason"]) for d in dead] == [
        (2, "value is not a number: 'hot'"),
        (3, "the type is null"),
        (4, "2 fields where 3 are expected"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "nothing.csv"], "there is no file or directory 'nothing.csv'"),
        (
            ["--input", "{farm}", "--type-column", "typ"],
            "the type column 'typ' is not in the input; did you mean 'type'",
        ),
        (["--input", "{farm}", "--time-column", "when"], "the time column 'when' is not in the input"),
        (["--input", "{farm}", "--delimiter", ";", "--time-column", "when"], "is the delimiter another one?"),
        (["--input", "{farm}", "--output", "no/such/o.csv"], "there is no directory 'no/such'"),
        (["--input", "{farm}", "--output", "o.txt"], "give --output-format"),
        (["--input", "-"], "--input-format"),
        (["--input", "{farm}", "--on-bad-record", "dead-letter=no/such/d.csv"], "there is no directory 'no/such'"),
    ],
)
def test_errors_of_the_input_are_one_sentence(farm, arguments, message):
    result = run(*[a.format(farm=farm) for a in arguments])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_pipes_are_read_by_standard_input(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    result = run("--input", tmp_path / "pipe.csv")
    assert result.exit_code == 1
    assert "is a pipe or a device; read it by standard input: --input - <" in result.stderr


def test_dead_letters_do_not_lie_among_the_matches(farm, tmp_path):
    (tmp_path / "o").mkdir()
    directory = ["--output", tmp_path / "o", "--output-format", "orc", "--output-mode", "overwrite"]
    dead = ["--on-bad-record", f"dead-letter={tmp_path / 'o' / 'dead.jsonl'}"]
    result = cerflow("run", "-e", QUERY, "--input", farm, *directory, *dead)
    assert result.exit_code == 1
    assert "cannot be in the directory of the matches" in result.stderr


@pytest.mark.parametrize("content", ["", "\n", "type,id,value\n"])
def test_files_without_rows_give_no_matches(tmp_path, content):
    path = tmp_path / "empty.csv"
    path.write_text(content)
    result = run("--input", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "warning: the input has no rows\n" in result.stderr
    assert "0 events, 0 matches, 0 bad records" in result.stderr


def test_a_wrong_query_shows_the_place(farm, tmp_path):
    path = tmp_path / "q.ceql"
    path.write_text("SELECT *\nWHERE A ; ; B\n")
    result = cerflow("run", path, "--runner", "local", "--input", farm)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"error: {path}, line 2, column 11:")
    assert lines[1] == "WHERE A ; ; B"
    assert lines[2] == "          ^"
    assert "Traceback" not in result.stderr


def test_an_unbound_label_is_named(farm):
    result = run("--input", farm, query="SELECT * FROM s WHERE (T AS hot)+ FILTER hott.value > 3")
    assert result.exit_code == 1
    assert "hott" in result.stderr
    assert "^" in result.stderr


def test_a_missing_query_file(farm):
    result = cerflow("run", "SELECT * WHERE A", "--runner", "local", "--input", farm)
    assert result.exit_code == 1
    assert "there is no query file" in result.stderr
    assert "-e" in result.stderr


def test_sremo(farm, tmp_path):
    path = tmp_path / "q.sremo"
    path.write_text("[type = 'T' AND value > 40] AS hot INTO r . [TRUE]* . [type = 'H' AND id = r.id] AS dry")
    result = cerflow("run", path, "--runner", "local", "--input", farm)
    assert result.exit_code == 0, result.stderr
    query = "SELECT hot, dry WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND hot.id = dry.id"
    same = cerflow("run", "-e", query, "--runner", "local", "--input", farm)
    assert result.stdout == same.stdout
    assert json.loads(result.stdout.splitlines()[0])["events"][0]["labels"] == ["hot"]
    behind = cerflow("run", "-e", path.read_text(), "--language", "sremo", "--runner", "local", "--input", farm)
    assert behind.stdout == result.stdout


def test_sremo_that_cannot_be_evaluated(farm):
    text = "[type = 'T'] MARK . !([TRUE]* . [TRUE] INTO r . [TRUE]* . [id = r.id]) . [type = 'H'] MARK"
    result = cerflow("run", "-e", text, "--language", "sremo", "--runner", "local", "--input", farm)
    assert result.exit_code == 1
    assert "'!' needs a window here" in result.stderr
    assert "WITHIN" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--input", "x.csv"],
        ["run", "q.ceql", "-e", "SELECT * WHERE A", "--input", "x.csv"],
        ["run", "-e", "SELECT * WHERE A"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--on-bad-record", "ignore"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--on-bad-record", "dead-letter"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--conf", "nothing"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--runner", "local", "--master", "local[2]"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--runner", "fast"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--runner", "local", "--output-mode", "append"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--runner", "local", "--partition-by", "k"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--output-mode", "append"],
        ["run", "-e", "SELECT * WHERE A", "--input", "x.csv", "--output", "o", "--output-mode", "replace"],
        ["generate", "bonds"],
        ["check"],
        ["no-such-command"],
    ],
)
def test_wrong_use_has_an_exit_code_of_its_own(arguments):
    assert cerflow(*arguments).exit_code == 2


def test_a_closed_pipe_is_quiet(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("type\n" + "A\n" * 20_000)
    command = [sys.executable, "-c", "from cerflow.cli import main; main()", "run", "--runner", "local"]
    process = subprocess.Popen(
        [*command, "-e", "SELECT * WHERE A", "--input", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    _, errors = process.communicate()
    assert errors == b""
    assert process.returncode == 0


def test_the_version():
    assert cerflow("--version").stdout.startswith("cerflow ")


def test_without_arguments_there_is_help():
    assert "Usage" in cerflow().output


def test_nothing_needs_spark_in_process():
    code = "import sys, cerflow.cli.app, cerflow.cli.commands.local_runner; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parent).returncode == 0


@pytest.mark.skipif(pa.__version__ < "20", reason="Arrow 19 imports pandas for more")
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("output", ["jsonl", "csv", "parquet"])
def test_a_run_does_not_import_pandas(tmp_path, form, output):
    rows = pa.table({"type": ["A", "B"] * 20, "t": range(40), "v": [1.5, 2.0] * 20})
    write = pyarrow.parquet.write_table if form == "parquet" else pyarrow.csv.write_csv
    write(rows, tmp_path / f"in.{form}")
    arguments = ["run", "-e", PAIR, "--input", f"in.{form}", "--time-column", "t", "--output", f"o.{output}"]
    code = f"import sys; from cerflow.cli.app import app; app({arguments}, standalone_mode=False)"
    code += "; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path).returncode == 0
    assert (tmp_path / f"o.{output}").stat().st_size > 100


# --- the unit of times -----------------------------------------------------------------------------------------------

PAIR = "SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS"


def test_seconds_since_1970(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("type,t\nA,1700000000\nB,1700000009\nB,1700003600\n")
    result = run("--input", path, "--time-column", "t", query=PAIR)
    assert len(result.stdout.splitlines()) == 2
    assert (
        "warning: line 1, column 39: the numbers in the time column 't', such as 1700000000, look like" in result.stderr
    )
    assert "(--time-unit s)" in result.stderr
    result = run("--input", path, "--time-column", "t", "--time-unit", "s", query=PAIR)
    assert [json.loads(line)["end_time"] for line in result.stdout.splitlines()] == [1700000009]
    assert "warning" not in result.stderr


def test_inputs_of_different_units(tmp_path):
    left, right = tmp_path / "left.csv", tmp_path / "right.csv"
    left.write_text("type,t\nA,1700000000\n")
    right.write_text("type,t\nB,1700000009000\nB,1700000010000\n")
    inputs = ["--input", left, "--input", right, "--time-column", "t"]
    for units in (["left=s"], ["left=s", "right=ms"], ["s", "right=ms"]):
        given = [option for unit in units for option in ("--time-unit", unit)]
        result = run(*inputs, *given, query=PAIR)
        assert [json.loads(line)["end_time"] for line in result.stdout.splitlines()] == [1700000009000], result.stderr


def test_units_that_are_wrong(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("type,t\nA,2024-01-01\n")
    result = run("--input", path, "--time-column", "t", "--time-unit", "s", query=PAIR)
    assert (result.exit_code, "leave the unit out" in result.stderr) == (1, True)
    result = run("--input", path, "--time-column", "t", "--time-unit", "h", query=PAIR)
    assert (result.exit_code, "'h' is not one of s, ms, us, ns" in " ".join(result.stderr.split())) == (2, True)
    result = run("--input", path, "--time-unit", "s", query=PAIR)
    assert (result.exit_code, "no time column is named" in result.stderr) == (1, True)


def test_a_decreasing_measure_names_the_row_of_the_file(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("type,v\n,1\nA,5\nB,4\n")
    query = "SELECT * WHERE A AS x ; B AS y WITHIN 10 [v]"
    result = run("--input", path, "--on-bad-record", "skip", query=query)
    assert (result.exit_code, "row 2: an attribute that measures a window decreases" in result.stderr) == (1, True)
