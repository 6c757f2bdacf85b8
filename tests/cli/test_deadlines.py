"""Deadlines on the command line: ``run --until``, and what ``check`` says."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cerflow.cli.app import app

QUERY = "SELECT * WHERE A NOT FOLLOWED BY B FOR 5 MINUTES"
TIMES = "type,t\nA,2024-03-15T10:00:00\nA,2024-03-15T10:02:00\nC,2024-03-15T10:06:00\n"
NUMBERS = "type,t\nA,0\nA,120\nC,360\n"


def run(path, *arguments, query=QUERY, time=("--time-column", "t")):
    return CliRunner().invoke(app, ["run", "-e", query, "--input", str(path), *time, *arguments])


def found(result):
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return [(row["detected_at"], row["detected_time"], row["start"]) for row in rows]


@pytest.fixture
def times(tmp_path):
    path = tmp_path / "times.csv"
    path.write_text(TIMES)
    return path


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text(NUMBERS)
    return path


@pytest.mark.parametrize("runner", [["--runner", "local"], []])
def test_until(times, runner):
    shown = (2, "2024-03-15T10:06:00", 0)
    assert found(run(times, *runner)) == [shown]
    assert found(run(times, "--until", "2024-03-15T10:06:59", *runner)) == [shown]
    assert found(run(times, "--until", "2024-03-15T10:07", *runner)) == [shown, (None, "2024-03-15T10:07:00", 1)]


@pytest.mark.slow
def test_until_on_spark(spark, times, tmp_path):
    last = (None, "2024-03-15T10:07:00", 1)
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"type": ["A", "A", "C"], "t": [0, 120, 360]}), path)
    assert last in found(run(times, "--until", "2024-03-15T10:07", "--runner", "spark"))
    # The tasks read this file themselves.
    result = run(path, "--until", "420", "--time-unit", "s", "--runner", "spark")
    assert found(result) == [(2, 360, 0), (None, 420, 1)]


@pytest.mark.parametrize("until", ["420", "420.5", "1e3"])
def test_until_as_a_number(numbers, until):
    result = run(numbers, "--until", until, "--time-unit", "s")
    assert found(result) == [(2, 360, 0), (None, 420, 1)]


def test_times_that_cannot_be_used(times):
    result = run(times, "--until", "soon")
    assert result.exit_code != 0
    assert "'soon' is not a time of the column 't'" in " ".join(result.output.replace("│", " ").split())


def test_until_needs_a_time_column(times):
    result = run(times, "--until", "2024-03-15", time=())
    assert result.exit_code != 0
    assert "name the column of times with --time-column" in " ".join(result.output.replace("│", " ").split())


def test_check_tells_deadlines():
    result = CliRunner().invoke(app, ["check", "-e", QUERY])
    assert "deadline:    5 MINUTES without B\n" in result.stdout


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("A NOT FOLLOWED BY (B ; C) FOR 1 EVENT", "this excludes nothing: it can never match within 1 EVENT"),
        (
            "A AS x NOT FOLLOWED BY (B AS x FILTER x.v > 1) FOR 5 MINUTES",
            "'x' means an event of the excluded part here, not the one before it",
        ),
        ("A NOT FOLLOWED BY (B FILTER B.v > 1 AND B.v < 1) FOR 5 MINUTES", "this part can never match"),
        ("A NOT FOLLOWED BY (B ; C) FOR 2 EVENTS", None),
        ("A NOT FOLLOWED BY B FOR 5 MINUTES", None),
    ],
)
def test_check_warns_of_deadlines_without_effect(formula, said):
    result = CliRunner().invoke(app, ["check", "-e", f"SELECT * WHERE {formula}"])
    assert result.exit_code == 0, result.output
    assert said in result.stderr if said else not result.stderr
