"""``cerflow run`` on Spark gives what the local runner gives."""

import json

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app
from cerflow.cli.spark_session import spark_session
from cerflow.examples import query_text, stocks

pytestmark = pytest.mark.slow

CSV = """type,id,value,at
H,2,25,2024-07-01T06:00:00
T,0,45,2024-07-01T06:01:00
T,0,hot,2024-07-01T06:01:30
H,0,20,2024-07-01T06:02:00
T,0
T,0,42,2024-07-01T06:05:00
,0,42,2024-07-01T06:05:30
T,0,43,later
H,0,18,2024-07-01T06:08:00
"""
QUERY = (
    "SELECT * FROM readings WHERE (T AS hot ; H AS dry) "
    "FILTER hot.value > 40 AND dry.value <= 25 AND hot.id = dry.id WITHIN 10 MINUTES"
)


@pytest.fixture(scope="module", autouse=True)
def session():
    """One session for all tests here; the command line takes the one that is there."""
    with spark_session("local[2]", [("spark.sql.shuffle.partitions", "2")]) as spark:
        yield spark


def rows(path):
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def run(directory, runner, *arguments):
    output = directory / f"{runner}.jsonl"
    dead = directory / f"{runner}-dead.jsonl"
    options = ["--runner", runner, "--output", output, "--on-bad-record", f"dead-letter={dead}"]
    result = CliRunner().invoke(app, ["run", *map(str, [*arguments, *options])])
    assert result.exit_code == 0, result.stderr
    return rows(output), sorted(row["row"] for row in rows(dead)), result.stderr.split(" s,")[0].rsplit(",", 1)[0]


def test_a_file_with_bad_records(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_text(CSV)
    arguments = ["-e", QUERY, "--input", path, "--time-column", "at"]
    spark_rows, spark_dead, spark_counts = run(tmp_path, "spark", *arguments)
    local_rows, local_dead, local_counts = run(tmp_path, "local", *arguments)
    assert spark_rows == local_rows
    assert len(spark_rows) == 3
    assert spark_dead == local_dead == [2, 4, 6, 7]
    assert spark_counts == local_counts == "5 events, 3 matches, 4 bad records"
    failed = CliRunner().invoke(app, ["run", *map(str, arguments)])
    assert failed.exit_code == 1
    assert failed.stderr == "error: row 2: value is not a number: 'hot'\n"


def test_parquet_in_parquet_out(tmp_path):
    path = tmp_path / "stocks.parquet"
    pyarrow.parquet.write_table(stocks(5_000), path)
    (tmp_path / "q.ceql").write_text(query_text("dip").replace("1 MINUTES", "30 MINUTES"))
    arguments = ["run", tmp_path / "q.ceql", "--input", path, "--time-column", "time", "--sequence-column", "id"]
    answers = []
    for runner in ("spark", "local"):
        output = tmp_path / f"{runner}.parquet"
        result = CliRunner().invoke(app, [*map(str, arguments), "--runner", runner, "--output", str(output)])
        assert result.exit_code == 0, result.stderr
        table = pyarrow.parquet.read_table(output)
        events = table.column("events").to_pylist()
        answers.append(
            sorted((row["detected_at"], str([e["position"] for e in es])) for row, es in zip(table.to_pylist(), events))
        )
    assert answers[0] == answers[1]
    assert answers[0]


def test_the_demonstration(tmp_path, capsys):
    from cerflow.examples.demo import run_demo

    outcome = run_demo(tmp_path / "demo-output")
    said = capsys.readouterr().out
    assert outcome.events == 200_000
    assert outcome.matches == 1_183
    assert "1,183 matches" in said
    assert "events/s" in said
    assert sorted(p.name for p in (tmp_path / "demo-output").iterdir()) == [
        "dip.ceql",
        "matches.jsonl",
        "stocks.parquet",
    ]
